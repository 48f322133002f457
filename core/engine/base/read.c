/* Reads files, whole or mapped, and checks who may have written the files that are kept. *
 * Nothing here waits: pipes and devices are opened without blocking, recognised and refused. A
 * file is mapped only if nobody else may write it, because cutting a mapped file short kills the
 * process that reads it (SIGBUS); other files are copied. */
#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

/* What an entry that is no regular file is, for messages. */
static const char *kind_of(mode_t mode) {
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISLNK(mode)  ? "a link"
                            : "a device";
}

/* Checks that fd is a regular file, and returns it; else closes it and returns -1. */
static int only_regular(int fd, const char *path, struct stat *info, cnr_error *err) {
    if (fstat(fd, info) != 0) cnri_fail_errno(err, path, "can't be examined");
    else if (!S_ISREG(info->st_mode))
        cnri_fail(err, CNR_E_IO, path, "is %s, want a file", kind_of(info->st_mode));
    else return fd;
    close(fd);
    return -1;
}

enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

int cnri_open_file(const char *path, struct stat *info, cnr_error *err) {
    /* checked before opening too, because opening some devices has effects */
    if (stat(path, info) == 0 && !S_ISREG(info->st_mode)) {
        cnri_fail(err, CNR_E_IO, path, "is %s, want a file", kind_of(info->st_mode));
        return -1;
    }
    const int fd = open(path, FLAGS);
    if (fd >= 0) return only_regular(fd, path, info, err);
    cnri_fail_errno(err, path, "can't be opened");
    return -1;
}

/* ---- what is kept between runs: ours alone ---- */

/* True if only this user or root owns the file and nobody else can write it. */
static bool only_ours(const struct stat *info) {
    return (info->st_uid == geteuid() || info->st_uid == 0) &&
           !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* Fails with the reason unless only_ours() holds. */
static cnr_status check_ours(const struct stat *info, const char *path, cnr_error *err) {
    if (only_ours(info)) return CNR_OK;
    if (info->st_mode & (S_IWGRP | S_IWOTH))
        return cnri_fail(err, CNR_E_STATE, path, "can be written by others than its owner");
    return cnri_fail(err, CNR_E_STATE, path, "belongs to another user");
}

/* Opens a folder of kept files: its descriptor, or -1 with err: missing, or others may write it. */
static int open_folder(const char *folder, cnr_error *err) {
    struct stat info;
    char *path = cnri_strdup(folder);
    if (!path) return cnri_out_of_memory(err, folder), -1;
    /* a link would be followed if the path ended in a slash */
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/';) path[--n] = 0;
    const int fd = open(path, O_DIRECTORY | O_NOFOLLOW | FLAGS);
    const bool link = fd < 0 && lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
    cnri_free(path);
    if (link) cnri_fail(err, CNR_E_STATE, folder, "is a link: name the folder that it leads to");
    else if (fd < 0) cnri_fail_errno(err, folder, "can't be opened as a folder");
    else if (fstat(fd, &info) != 0) cnri_fail_errno(err, folder, "can't be examined");
    else if (check_ours(&info, folder, err) == CNR_OK) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

cnr_status cnri_kept_check(const char *folder, cnr_error *err) {
    cnr_error own = CNR_ERROR_INIT;
    if (!err) err = &own;
    const int fd = open_folder(folder, err);
    if (fd < 0) return (cnr_status)err->code;
    close(fd);
    return CNR_OK;
}

/* Opens a kept file, if folder and file keep the rule. Returns its descriptor; -1 with err. */
static int open_kept(const char *path, struct stat *info, cnr_error *err) {
    const char *slash = strrchr(path, '/');
    char *folder = cnri_path_dir(path);
    if (!folder) return cnri_out_of_memory(err, path), -1;
    const int in = open_folder(folder, err);
    cnri_free(folder);
    if (in < 0) return -1;
    int fd = openat(in, slash ? slash + 1 : path, O_NOFOLLOW | FLAGS);
    if (fd >= 0) fd = only_regular(fd, path, info, err);
    else if (errno == ELOOP) cnri_fail(err, CNR_E_STATE, path, "is a link, want a file");
    else cnri_fail_errno(err, path, "can't be opened");
    close(in);
    if (fd < 0 || check_ours(info, path, err) == CNR_OK) return fd;
    close(fd);
    return -1;
}

/* ---- whole ---- */

/* Reads to the end into a growing buffer, because the size from fstat may be wrong (/proc). */
static cnr_status read_all(int fd, const char *path, size_t capacity, uint64_t limit, char **out,
                           size_t *bytes, cnr_error *err) {
    char *text = cnri_alloc(capacity + 1);
    size_t n = 0;
    for (;;) {
        if (!text) return cnri_fail(err, CNR_E_MEMORY, path, "no memory for %zu bytes", capacity);
        const ssize_t got = read(fd, text + n, capacity - n);
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
        if (n < capacity) continue;
        capacity = capacity > SIZE_MAX / 4 ? SIZE_MAX / 2 : 2 * capacity;
        char *larger = cnri_resize(text, capacity + 1);
        if (!larger) cnri_free(text);
        text = larger;
    }
    text[n] = 0;
    *out = text;
    if (bytes) *bytes = n;
    return CNR_OK;
}

/* The status in err, or CNR_E_IO if the caller passed no err. */
static cnr_status code_of(const cnr_error *err) {
    return err && err->code ? (cnr_status)err->code : CNR_E_IO;
}

/* Reads the open file into *out, ended with a 0 that *bytes doesn't count, and closes fd. Free with
 * cnri_free. */
static cnr_status read_open(int fd, const struct stat *info, const char *path, uint64_t limit,
                            char **out, size_t *bytes, cnr_error *err) {
    *out = NULL;
    if (fd < 0) return code_of(err);
    cnr_status status;
    if ((uint64_t)info->st_size > limit)
        status = cnri_fail(err, CNR_E_LIMIT, path, "%lld bytes, larger than the limit of %llu",
                           (long long)info->st_size, (unsigned long long)limit);
    else /* one byte more than the size, so that the end is seen without growing */
        status = read_all(fd, path, info->st_size > 0 ? (size_t)info->st_size + 1 : 4096, limit,
                          out, bytes, err);
    close(fd);
    return status;
}

cnr_status cnri_read_file(const char *path, uint64_t limit, char **out, size_t *bytes,
                          cnr_error *err) {
    struct stat info;
    const int fd = cnri_open_file(path, &info, err);
    return read_open(fd, &info, path, limit, out, bytes, err);
}

cnr_status cnri_read_kept(const char *path, uint64_t limit, char **out, size_t *bytes,
                          cnr_error *err) {
    struct stat info;
    const int fd = open_kept(path, &info, err);
    return read_open(fd, &info, path, limit, out, bytes, err);
}

cnr_status cnri_read_head(const char *path, void *out, size_t capacity, size_t *bytes,
                          cnr_error *err) {
    struct stat info;
    *bytes = 0;
    const int fd = cnri_open_file(path, &info, err);
    if (fd < 0) return code_of(err);
    ssize_t got;
    do got = read(fd, out, capacity);
    while (got < 0 && errno == EINTR);
    const cnr_status status = got < 0 ? cnri_fail_errno(err, path, "can't be read") : CNR_OK;
    close(fd);
    if (got > 0) *bytes = (size_t)got;
    return status;
}

/* ---- mapped ---- */

/* Reads an open file of `bytes` bytes into memory, for where it can't be mapped; closes nothing. */
static cnr_status copy_open(int fd, const char *path, uint64_t bytes, cnri_mapping *out,
                            cnr_error *err) {
    char *copy = cnri_alloc((size_t)bytes);
    uint64_t n = 0;
    if (!copy)
        return cnri_fail(err, CNR_E_MEMORY, path, "no memory for a copy of %llu bytes",
                         (unsigned long long)bytes);
    while (n < bytes) {
        const ssize_t got = read(fd, copy + n, (size_t)(bytes - n));
        if (got < 0 && errno == EINTR) continue;
        if (got > 0) {
            n += (uint64_t)got;
            continue;
        }
        const cnr_status status =
            got < 0 ? cnri_fail_errno(err, path, "can't be read")
                    : cnri_fail(err, CNR_E_IO, path, "was cut short while it was read");
        cnri_free(copy);
        return status;
    }
    *out = (cnri_mapping){.at = copy, .bytes = bytes, .copied = true};
    return CNR_OK;
}

/* Maps the open file, or copies one that others can change, into *out, and closes fd; fails if fd
 * is -1, with the code in err. */
static cnr_status map_open(int fd, const struct stat *info, const char *path, cnri_mapping *out,
                           cnr_error *err) {
    *out = (cnri_mapping){0};
    if (fd < 0) return code_of(err);
    const uint64_t bytes = (uint64_t)info->st_size;
    cnr_status status = CNR_OK;
    if (bytes > SIZE_MAX) {
        status = cnri_fail(err, CNR_E_LIMIT, path, "too large to be mapped on this machine");
    } else if (bytes > 0 && only_ours(info)) {
        void *at = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED) status = cnri_fail_errno(err, path, "can't be mapped");
        else *out = (cnri_mapping){.at = at, .bytes = bytes};
    } else if (bytes > 0) status = copy_open(fd, path, bytes, out, err);
    close(fd);
    return status;
}

cnr_status cnri_map_file(const char *path, cnri_mapping *out, cnr_error *err) {
    struct stat info;
    const int fd = cnri_open_file(path, &info, err);
    return map_open(fd, &info, path, out, err);
}

cnr_status cnri_map_kept(const char *path, cnri_mapping *out, cnr_error *err) {
    struct stat info;
    const int fd = open_kept(path, &info, err);
    return map_open(fd, &info, path, out, err);
}

void cnri_unmap_file(cnri_mapping *m) {
    if (m->copied) cnri_free(m->at);
    else if (m->at) munmap(m->at, (size_t)m->bytes);
    *m = (cnri_mapping){0};
}
