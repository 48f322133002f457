/* Files are written whole or not at all: a locked temporary beside the target, synced, renamed. */
#define _GNU_SOURCE
#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- what a signal would leave behind ---- */

/* The temporary files of this process, for signal handlers. A writer takes a FREE row, fills it
 * and makes it READY. Whoever changes READY to another state owns the row: the writer before it
 * renames, or the handler before it removes the file. If no row is free, the next write removes
 * left-over files instead. */
enum { ROWS = 32, FREE = 0, FILLING, READY, DROPPED };
static struct pending {
    _Atomic int state;
    pid_t owner; /* a child after fork removes nothing of its parent's */
    char path[PATH_MAX];
} pending[ROWS];

/* Lists the writer's temporary file, so that a signal handler can remove it; a full list or a long
 * path: it isn't. */
static void remember(cnri_writer *w) {
    const size_t n = strlen(w->temporary) + 1;
    for (int i = 0; i < ROWS && n <= sizeof pending[i].path; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&pending[i].state, &expected, FILLING)) continue;
        pending[i].owner = getpid();
        memcpy(pending[i].path, w->temporary, n);
        atomic_store(&pending[i].state, READY);
        w->listed = i + 1;
        return;
    }
}

/* Takes the writer's file off that list. */
static void forget(cnri_writer *w) {
    int expected = READY;
    if (w->listed) atomic_compare_exchange_strong(&pending[w->listed - 1].state, &expected, FREE);
    w->listed = 0;
}

void cnri_write_drop_all(void) {
    const int code = errno;
    for (int i = 0; i < ROWS; i++) {
        int expected = READY;
        if (atomic_compare_exchange_strong(&pending[i].state, &expected, DROPPED) &&
            pending[i].owner == getpid())
            unlink(pending[i].path);
    }
    errno = code;
}

/* ---- temporaries ---- */

/* Locks an open file. On file systems without locks nothing is locked, so left-over files are
 * never removed there. */
static bool lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

/* True if the open file still has this name. Other writers do not rename or remove a file while
 * it is locked, so the answer then stays true. */
static bool has_name(int fd, const char *path) {
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

bool cnri_write_remove_temporary(const char *temporary) {
    struct stat info;
    const int fd = open(temporary, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT;
    const bool gone = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                      flock(fd, LOCK_EX | LOCK_NB) == 0 && has_name(fd, temporary) &&
                      unlink(temporary) == 0;
    close(fd);
    return gone;
}

/* Creates and locks a temporary file, removing one that a dead process left. Returns its
 * descriptor, or -1 and errno. */
static int claim(const char *temporary, mode_t mode) {
    for (int attempt = 0; attempt < 20; attempt++) {
        const int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd >= 0) {
            if (lock(fd) && has_name(fd, temporary)) return fd;
            close(fd); /* another process removed it between its creation and its locking */
        } else if (errno != EEXIST) {
            return -1;
        } else if (!cnri_write_remove_temporary(temporary)) {
            break; /* another process is writing it */
        }
    }
    errno = EBUSY;
    return -1;
}

/* Creates a locked temporary file beside the target; returns its descriptor, *out: its path. -1
 * with errno: failed. Slot 0 unless another process writes the same target; later files that nobody
 * writes are removed, as left over from killed processes. */
static int create_beside(const char *target, mode_t mode, char **out) {
    enum { SLOTS = 32, LONGEST = 200 /* bytes of the name; file systems allow 255 */ };
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    int fd = -1, code = EBUSY;
    for (int slot = 0; slot < SLOTS; slot++) {
        char *path = cnri_format("%.*s.%.*s.%d" CNRI_TEMPORARY_SUFFIX, (int)(name - target), target,
                                 LONGEST, name, slot);
        if (!path) {
            code = ENOMEM;
            break;
        }
        if (fd >= 0) {
            cnri_write_remove_temporary(path);
        } else if ((fd = claim(path, mode)) >= 0) {
            *out = path;
            continue;
        } else {
            code = errno;
        }
        cnri_free(path);
        if (fd < 0 && code != EBUSY) break;
    }
    if (fd < 0) errno = code;
    return fd;
}

/* ---- targets ---- */

/* True if a symbolic link may be followed. In a folder where anybody can create one, only links
 * of this user and of the folder's owner are (Linux's protected_symlinks does the same). */
static bool follows(const char *path, const struct stat *link) {
    struct stat folder;
    char *directory = cnri_path_dir(path);
    const bool known = directory && stat(directory, &folder) == 0;
    cnri_free(directory);
    if (!known) return false;
    const bool shared = (folder.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH);
    return !shared || link->st_uid == geteuid() || link->st_uid == folder.st_uid;
}

/* Path that a symbolic link leads to; the caller frees it. NULL: failed, see err. */
static char *read_link(const char *path, cnr_error *err) {
    char text[PATH_MAX];
    const ssize_t n = readlink(path, text, sizeof text);
    if (n < 0 || (size_t)n >= sizeof text) {
        errno = n < 0 ? errno : ENAMETOOLONG;
        cnri_fail_errno(err, path, "its link can't be followed");
        return NULL;
    }
    text[n] = 0;
    char *directory = cnri_path_dir(path);
    char *next = directory ? cnri_path_join(directory, text) : NULL;
    cnri_free(directory);
    if (!next) cnri_out_of_memory(err, path);
    return next;
}

/* Replaces *target by the path that its links lead to, whether or not a file exists there. */
static cnr_status follow(char **target, cnr_error *err) {
    struct stat info;
    cnr_error why = CNR_ERROR_INIT;
    for (int links = 0; lstat(*target, &info) == 0 && S_ISLNK(info.st_mode); links++) {
        if (links == 40) {
            errno = ELOOP;
            return cnri_fail_errno(err, *target, "its link can't be followed");
        }
        if (!follows(*target, &info))
            return cnri_fail(err, CNR_E_STATE, *target,
                             "is another user's link, in a folder where "
                             "anybody can put one: not followed");
        char *next = read_link(*target, &why);
        if (!next) return cnri_fail(err, why.code, why.where, "%s", why.text);
        cnri_free(*target);
        *target = next;
    }
    return CNR_OK;
}

/* Looks at the target. *there: a file exists and may be replaced; fails if it is no regular file or
 * the path names a folder. */
static cnr_status look(const cnri_writer *w, uint32_t flags, struct stat *info, bool *there,
                       cnr_error *err) {
    const char *slash = strrchr(w->target, '/'), *name = slash ? slash + 1 : w->target;
    *there = lstat(w->target, info) == 0;
    if (*there && S_ISLNK(info->st_mode) && flags & CNRI_WRITE_PRIVATE) return CNR_OK;
    /* Renaming over a device such as /dev/null would replace it. */
    if (*there && !S_ISREG(info->st_mode))
        return cnri_fail(err, CNR_E_IO, w->path, "is there and not a regular file: not replaced");
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return cnri_fail(err, CNR_E_IO, w->path, "names no file");
    if (*there && !(flags & CNRI_WRITE_PRIVATE) &&
        faccessat(AT_FDCWD, w->target, W_OK, AT_EACCESS) != 0)
        return cnri_fail_errno(err, w->path, "can't be written");
    return CNR_OK;
}

/* Gives the new file the owner, group and mode of the file that it replaces; fails if they can't
 * be kept. */
static cnr_status keep_rights(const cnri_writer *w, int fd, const struct stat *there,
                              cnr_error *err) {
    struct stat opened;
    if (fstat(fd, &opened) != 0) return cnri_fail_errno(err, w->path, "can't be written");
    const bool alike = opened.st_uid == there->st_uid && opened.st_gid == there->st_gid;
    if (!alike && fchown(fd, there->st_uid, there->st_gid) != 0)
        return cnri_fail_errno(err, w->path,
                               "is not replaced, since it could not keep its owner "
                               "and group");
    if (fchmod(fd, there->st_mode & 0777) != 0)
        return cnri_fail_errno(err, w->path, "is not replaced, since it could not keep its mode");
    return CNR_OK;
}

/* ---- writing ---- */

/* Removes the temporary file while its lock is held; later another writer may have the name. */
static void remove_temporary(cnri_writer *w) {
    if (!w->temporary) return;
    forget(w);
    unlink(w->temporary);
    cnri_free(w->temporary);
    w->temporary = NULL;
}

static bool is_silent;

void cnri_write_to_nowhere(void) { is_silent = true; }

/* Does what cnri_write_begin says; on failure the caller cleans up. */
static cnr_status begin(cnri_writer *w, const char *path, uint32_t flags, cnr_error *err) {
    struct stat info;
    bool there = false;
    if (strcmp(path, "-") == 0)
        return cnri_fail(err, CNR_E_ARG, path,
                         "files are written whole, by renaming: want a path, "
                         "not standard output (./- for a file of that name)");
    w->path = cnri_strdup(path);
    w->target = cnri_strdup(path);
    w->unsynced = flags & CNRI_WRITE_UNSYNCED;
    if (!w->path || !w->target) return cnri_out_of_memory(err, path);
    if (is_silent)
        return (w->file = tmpfile()) ? CNR_OK : cnri_fail_errno(err, path, "can't be written");
    cnr_status status = flags & CNRI_WRITE_PRIVATE ? CNR_OK : follow(&w->target, err);
    if (!status) status = look(w, flags, &info, &there, err);
    if (status) return status;
    const bool ours = flags & CNRI_WRITE_PRIVATE || there;
    const int fd = create_beside(w->target, ours ? 0600 : 0666, &w->temporary);
    if (fd < 0) return cnri_fail_errno(err, path, "can't be written");
    remember(w);
    if (flags & CNRI_WRITE_PRIVATE) (void)fchmod(fd, 0600); /* regardless of the umask */
    else if (there) status = keep_rights(w, fd, &info, err);
    if (!status && !(w->file = fdopen(fd, "wb")))
        status = cnri_fail_errno(err, path, "can't be written");
    if (!w->file) {
        remove_temporary(w);
        close(fd);
    }
    return status;
}

cnr_status cnri_write_begin(cnri_writer *w, const char *path, uint32_t flags, cnr_error *err) {
    *w = (cnri_writer){0};
    const cnr_status status = begin(w, path, flags, err);
    if (status) cnri_write_abandon(w);
    return status;
}

cnr_status cnri_write(cnri_writer *w, const void *data, uint64_t bytes, cnr_error *err) {
    if (bytes > SIZE_MAX) return cnri_fail(err, CNR_E_LIMIT, w->path, "too much to write at once");
    if (bytes == 0 || fwrite(data, 1, (size_t)bytes, w->file) == bytes) return CNR_OK;
    return cnri_fail_errno(err, w->path, "can't be written");
}

cnr_status cnri_write_seek(cnri_writer *w, uint64_t offset, cnr_error *err) {
    if (offset <= INT64_MAX && fseeko(w->file, (off_t)offset, SEEK_SET) == 0) return CNR_OK;
    return cnri_fail_errno(err, w->path, "can't be written");
}

/* Syncs the folder, so that the rename survives a crash. File systems that cannot sync folders
 * are no error. */
static void sync_directory(const char *path) {
    char *directory = cnri_path_dir(path);
    const int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
    cnri_free(directory);
}

cnr_status cnri_write_commit(cnri_writer *w, cnr_error *err) {
    cnr_status status = CNR_OK;
    if (ferror(w->file)) /* an error of writes through w->file that nobody checked */
        status = cnri_fail(err, CNR_E_IO, w->path, "can't be written");
    else if (fflush(w->file) != 0 || (!w->unsynced && fsync(fileno(w->file)) != 0))
        status = cnri_fail_errno(err, w->path, "can't be written");
    if (!status && !is_silent) {
        forget(w); /* once renamed, its name may belong to any writer */
        if (rename(w->temporary, w->target) != 0) {
            status = cnri_fail_errno(err, w->path, "can't be replaced");
        } else {
            if (!w->unsynced) sync_directory(w->target);
            cnri_free(w->temporary);
            w->temporary = NULL;
        }
    }
    cnri_write_abandon(w); /* closes the file, which unlocks it last */
    return status;
}

void cnri_write_abandon(cnri_writer *w) {
    remove_temporary(w);
    if (w->file) fclose(w->file);
    cnri_free(w->target);
    cnri_free(w->path);
    *w = (cnri_writer){0};
}
