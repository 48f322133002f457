/* Files: mapped, read whole; and paths. Written they are by output.c. */
#include "core/base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

cnr_status cnri_fail_errno(cnr_error *err, const char *path, const char *what) {
    const int code = errno;
    const cnr_status status = code == ENOENT ? CNR_E_NOT_FOUND
                              : code == ENOMEM ? CNR_E_MEMORY : CNR_E_IO;
    return cnri_fail(err, status, path, "%s: %s", what, strerror(code));
}

static int open_to_read(const char *path, struct stat *info, cnr_error *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cnri_fail_errno(err, path, "can't be opened"), -1;
    if (fstat(fd, info) != 0) cnri_fail_errno(err, path, "can't be examined");
    else if (S_ISDIR(info->st_mode)) cnri_fail(err, CNR_E_IO, path, "is a directory, want a file");
    else return fd;
    close(fd);
    return -1;
}

/* What open_to_read left in err, or E_IO when the caller wanted no record. */
static cnr_status code_of(const cnr_error *err) {
    return err ? (cnr_status)err->code : CNR_E_IO;
}

cnr_status cnri_map_file(const char *path, cnri_mapping *out, cnr_error *err) {
    struct stat info;
    *out = (cnri_mapping){0};
    const int fd = open_to_read(path, &info, err);
    if (fd < 0) return code_of(err);
    cnr_status status = CNR_OK;
    if (!S_ISREG(info.st_mode)) {
        status = cnri_fail(err, CNR_E_IO, path, "can't be mapped: not a regular file");
    } else if ((uint64_t)info.st_size > SIZE_MAX) {
        status = cnri_fail(err, CNR_E_LIMIT, path, "too large to be mapped on this machine");
    } else if (info.st_size > 0) {
        void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED) status = cnri_fail_errno(err, path, "can't be mapped");
        else *out = (cnri_mapping){at, (uint64_t)info.st_size};
    }
    close(fd);
    return status;
}

void cnri_unmap_file(cnri_mapping *m) {
    if (m->at) munmap(m->at, (size_t)m->bytes);
    *m = (cnri_mapping){0};
}

/* Reads to the end, growing: the size that fstat told may be wrong (pipes, /proc). */
static cnr_status read_all(int fd, const char *path, size_t room, uint64_t limit, char **out,
                           size_t *bytes, cnr_error *err) {
    char *text = cnri_alloc(room + 1);
    size_t n = 0;
    for (;;) {
        if (!text) return cnri_fail(err, CNR_E_MEMORY, path, "no memory for %zu bytes", room);
        const ssize_t got = read(fd, text + n, room - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const cnr_status status = cnri_fail_errno(err, path, "can't be read");
            cnri_free(text);
            return status;
        }
        if (got == 0) break;
        n += (size_t)got;
        if (n > limit) {
            cnri_free(text);
            return cnri_fail(err, CNR_E_LIMIT, path, "larger than the limit of %llu bytes",
                             (unsigned long long)limit);
        }
        if (n < room) continue;
        room = room > SIZE_MAX / 4 ? SIZE_MAX / 2 : 2 * room;
        char *larger = cnri_resize(text, room + 1);
        if (!larger) cnri_free(text);
        text = larger;
    }
    text[n] = 0;
    *out = text;
    if (bytes) *bytes = n;
    return CNR_OK;
}

cnr_status cnri_read_file(const char *path, uint64_t limit, char **out, size_t *bytes,
                          cnr_error *err) {
    struct stat info;
    *out = NULL;
    const int fd = open_to_read(path, &info, err);
    if (fd < 0) return code_of(err);
    cnr_status status;
    if (S_ISREG(info.st_mode) && (uint64_t)info.st_size > limit)
        status = cnri_fail(err, CNR_E_LIMIT, path, "%lld bytes, larger than the limit of %llu",
                           (long long)info.st_size, (unsigned long long)limit);
    else /* one byte over the size, so that the end is seen without growing */
        status = read_all(fd, path, info.st_size > 0 ? (size_t)info.st_size + 1 : 4096, limit, out,
                          bytes, err);
    close(fd);
    return status;
}

/* ---- paths ---- */

char *cnri_path_join(const char *directory, const char *name) {
    const size_t n = directory ? strlen(directory) : 0;
    if (n == 0 || name[0] == '/') return cnri_strdup(name);
    return cnri_format("%s%s%s", directory, directory[n - 1] == '/' ? "" : "/", name);
}

char *cnri_path_dir(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return cnri_strdup(".");
    if (slash == path) return cnri_strdup("/");
    return cnri_format("%.*s", (int)(slash - path), path);
}

char *cnri_executable_dir(void) {
    for (size_t room = 256; room <= 1 << 20; room *= 2) {
        char *path = cnri_alloc(room);
        if (!path) return NULL;
        const ssize_t n = readlink("/proc/self/exe", path, room);
        if (n > 0 && (size_t)n < room) {
            path[n] = 0;
            char *directory = cnri_path_dir(path);
            cnri_free(path);
            return directory;
        }
        cnri_free(path);
        if (n <= 0) return NULL;
    }
    return NULL;
}
