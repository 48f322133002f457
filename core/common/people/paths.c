/* Folders that are locked, and what is checked of an output before work begins. */
#define _GNU_SOURCE
#include "people/people.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- folders ---- */

/* Locks the folder's own descriptor, so no lock file is left behind. *lock is the open descriptor;
 * on a file system without locks it is open but unlocked. Waits up to five seconds for another
 * process, then fails. */
cnr_status cnri_folder_lock(const char *folder, int *lock, cnr_error *err) {
    const struct timespec pause = {0, 10000000};
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0) return cnri_fail_errno(err, folder, "can't be opened");
    for (int i = 0; i < 500; i++) {
        if (flock(*lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return CNR_OK;
        nanosleep(&pause, NULL);
    }
    close(*lock);
    return cnri_fail(err, CNR_E_STATE, folder, "another process has its lock");
}

bool cnri_folder_try(const char *folder, int *lock) {
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB) == 0) return *lock >= 0;
    close(*lock);
    return false;
}

void cnri_folder_unlock(int lock) { close(lock); }

/* ---- before work begins ---- */

/* True if the path names the very file (device and inode) that `file` describes. */
static bool is_file(const char *path, const struct stat *file) {
    struct stat info;
    return stat(path, &info) == 0 && info.st_dev == file->st_dev && info.st_ino == file->st_ino;
}

/* True if the first n bytes of the text are a path of the very file that `file` describes. */
static bool is_part(const char *text, size_t n, const struct stat *file) {
    char part[PATH_MAX];
    if (n == 0 || n >= sizeof part) return false;
    memcpy(part, text, n);
    part[n] = 0;
    return is_file(part, file);
}

/* True if the word, or a part of it at or between its separators, names that file. */
static bool names_file(const char *word, const struct stat *file) {
    if (is_file(word, file)) return true;
    for (const char *p = word; *p; p += strcspn(p, ",=:"), p += *p != 0)
        if (is_file(p, file) || is_part(p, strcspn(p, ","), file) ||
            is_part(p, strcspn(p, ",=:"), file))
            return true;
    return false;
}

cnr_status cnri_write_check(const char *path, const char *const *words, int32_t n, cnr_error *err) {
    struct stat info;
    cnri_writer trial;
    if (strcmp(path, "-") != 0 && stat(path, &info) == 0)
        for (int32_t i = 0; i < n; i++)
            if (words[i] && names_file(words[i], &info))
                return cnri_fail(err, CNR_E_ARG, path,
                                 "is an input (%s), which writing would "
                                 "replace: want another file",
                                 words[i]);
    const cnr_status status = cnri_write_begin(&trial, path, 0, err);
    if (!status) cnri_write_abandon(&trial);
    return status;
}

/* ---- links ---- */

/* Writes the path with links followed to `out`, which has PATH_MAX bytes. A path that does not
 * exist yet is the place where it would be created. False: it leads nowhere. */
static bool real_place(const char *path, char *out) {
    char parent[PATH_MAX];
    struct stat info;
    if (realpath(path, out)) return true;
    /* A link whose target does not exist. */
    if (errno != ENOENT || lstat(path, &info) == 0) return false;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const int n = slash ? (int)(slash - path) : 1;
    if (strcmp(name, "..") == 0 || strcmp(name, ".") == 0) return false;
    if (snprintf(parent, sizeof parent, "%.*s", n ? n : 1, slash ? path : ".") >= PATH_MAX)
        return false;
    if (!realpath(parent, out)) return false;
    const size_t k = strlen(out);
    const int more = snprintf(out + k, PATH_MAX - k, "%s%s", strcmp(out, "/") ? "/" : "", name);
    return more >= 0 && (size_t)more < PATH_MAX - k;
}

bool cnri_path_leads_below(const char *path, const char *given) {
    char real[PATH_MAX], root[PATH_MAX];
    return real_place(path, real) && real_place(given, root) && cnri_path_real_below(real, root);
}
