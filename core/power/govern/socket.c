/* A Unix socket's file: made, given to a group, and removed again. Only what is surely left of a
 * process of ours is ever removed: a socket, our own, at which nobody listens. The folder's lock
 * keeps two of us apart; against others a file is moved aside first and looked at once nobody else
 * knows its name. */
#define _GNU_SOURCE
#include "govern/govern.h"
#include "people/people.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* True if both are the same socket file. */
static bool is_same(const struct stat *a, const struct stat *b) {
    return S_ISSOCK(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Removes the socket with these numbers, by way of another name, but no other file that took its
 * name meanwhile. False: it isn't there, or could not be removed. */
static bool remove_same(const char *path, const struct stat *is) {
    struct stat now;
    char *aside = cnri_format("%s.%d.old", path, (int)getpid());
    bool good = aside && lstat(path, &now) == 0 && is_same(&now, is) &&
                renameat2(AT_FDCWD, path, AT_FDCWD, aside, RENAME_NOREPLACE) == 0;
    if (good && (lstat(aside, &now) != 0 || !is_same(&now, is))) {
        renameat2(AT_FDCWD, aside, AT_FDCWD, path, RENAME_NOREPLACE);
        good = false;
    }
    if (good) good = unlink(aside) == 0;
    cnri_free(aside);
    return good;
}

/* Fails unless path is a socket of this user that nobody listens at, left over from a killed
 * process. */
static cnr_status check_left(const struct sockaddr_un *at, struct stat *is, cnr_error *err) {
    const char *path = at->sun_path;
    if (lstat(path, is) != 0) return cnri_fail_errno(err, path, "can't be looked at");
    if (!S_ISSOCK(is->st_mode))
        return cnri_fail(err, CNR_E_IO, path,
                         "is there and is no socket: give another path, or remove it");
    if (is->st_uid != geteuid())
        return cnri_fail(err, CNR_E_IO, path,
                         "is another user's socket: give another path, or remove it");
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int failed =
        fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 ? 0 : errno;
    if (fd >= 0) close(fd);
    if (failed == ECONNREFUSED) return CNR_OK;
    return cnri_fail(err, CNR_E_STATE, path,
                     "another process listens there: end it, or give another path");
}

/* Binds the socket, and replaces one that a dead process left. */
static cnr_status bind_at(int fd, const struct sockaddr_un *at, cnr_error *err) {
    struct stat left;
    const mode_t before = umask(0177); /* nobody can connect before the group is set */
    int bound = bind(fd, (const struct sockaddr *)at, sizeof *at);
    cnr_status status = CNR_OK;
    if (bound != 0 && errno == EADDRINUSE) {
        status = check_left(at, &left, err);
        if (!status && remove_same(at->sun_path, &left))
            bound = bind(fd, (const struct sockaddr *)at, sizeof *at);
    }
    if (!status && bound != 0) status = cnri_fail_errno(err, at->sun_path, "can't be listened at");
    umask(before);
    return status;
}

/* Sets the group through a descriptor, so that no other file that takes the name is changed. */
static cnr_status give(const char *path, int64_t group, struct stat *is, cnr_error *err) {
    char by_handle[40];
    const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    snprintf(by_handle, sizeof by_handle, "/proc/self/fd/%d", fd);
    bool good = fd >= 0 && fstat(fd, is) == 0 && S_ISSOCK(is->st_mode) && is->st_uid == geteuid();
    if (good && group >= 0)
        good = fchownat(fd, "", (uid_t)-1, (gid_t)group, AT_EMPTY_PATH) == 0 &&
               chmod(by_handle, 0660) == 0;
    const cnr_status status =
        good ? CNR_OK : cnri_fail_errno(err, path, "can't be given to the group");
    if (fd >= 0) close(fd);
    return status;
}

cnr_status cnri_socket_listen(const char *path, int64_t group, cnri_socket *out, cnr_error *err) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct stat is;
    int lock;
    *out = (cnri_socket){.fd = -1};
    if (strlen(path) >= sizeof at.sun_path)
        return cnri_fail(err, CNR_E_LIMIT, path, "a socket's path has less than %d bytes",
                         (int)sizeof at.sun_path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    char *folder = cnri_path_dir(path);
    cnr_status status = folder ? cnri_folder_lock(folder, &lock, err)
                               : cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    cnri_free(folder);
    if (status) return status;
    out->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    status = out->fd < 0 ? cnri_fail_errno(err, path, "no socket") : bind_at(out->fd, &at, err);
    if (!status && (status = give(path, group, &is, err)) == CNR_OK) {
        out->device = is.st_dev;
        out->inode = is.st_ino;
        if (listen(out->fd, 64) != 0) status = cnri_fail_errno(err, path, "can't be listened at");
        if (status) remove_same(path, &is);
    }
    if (status && out->fd >= 0) close(out->fd);
    if (status) out->fd = -1;
    cnri_folder_unlock(lock);
    return status;
}

void cnri_socket_close(const char *path, cnri_socket *s) {
    const struct stat is = {.st_dev = (dev_t)s->device, .st_ino = (ino_t)s->inode};
    int lock;
    char *folder = s->fd >= 0 ? cnri_path_dir(path) : NULL;
    if (folder && cnri_folder_lock(folder, &lock, NULL) == CNR_OK) {
        remove_same(path, &is);
        cnri_folder_unlock(lock);
    }
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
    cnri_free(folder);
}
