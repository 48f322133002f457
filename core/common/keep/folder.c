/* A cache folder of limited size. */
#define _GNU_SOURCE
#include "keep/keep.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cnri_cache_touch(const char *path) {
    (void)!utimensat(AT_FDCWD, path, NULL, 0); /* fails in a read-only folder: no harm */
}

/* True if the text ends with `tail` and has at least one byte before it. */
static bool ends_with(const char *text, const char *tail) {
    const size_t n = strlen(text), k = strlen(tail);
    return n > k && strcmp(text + n - k, tail) == 0;
}

/* Whether the file can be created again: a stored plan, or a plugin's file that ends in "bin". */
static bool counts(const char *name) {
    return ends_with(name, CNRI_PLAN_SUFFIX) || ends_with(name, "bin");
}

/* Removes a temporary file of the folder, unless a process still writes it. Errors are ignored. */
static void remove_temporary(const char *folder, const char *name) {
    char *path = cnri_path_join(folder, name);
    if (path) cnri_write_remove_temporary(path);
    cnri_free(path);
}

/* Compares two cache files by time of last use, the oldest first; then by name. For qsort. */
static int by_use(const void *a, const void *b) {
    const cnri_cache_file *x = a, *y = b;
    if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

bool cnri_cache_list(const char *folder, cnri_cache_files *out) {
    DIR *d = opendir(folder);
    bool good = true;
    for (const struct dirent *e; d && good && (e = readdir(d)) != NULL;) {
        struct stat info;
        if (ends_with(e->d_name, CNRI_TEMPORARY_SUFFIX)) remove_temporary(folder, e->d_name);
        if (!counts(e->d_name)) continue;
        if (fstatat(dirfd(d), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (!S_ISREG(info.st_mode)) continue;
        cnri_cache_file *file = cnri_push(out);
        good = file && (file->name = cnri_strdup(e->d_name)) != NULL;
        if (!good) break;
        file->bytes = (uint64_t)info.st_size;
        file->used_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
        file->is_plan = ends_with(e->d_name, CNRI_PLAN_SUFFIX);
    }
    if (d) closedir(d);
    if (good && out->n > 1) qsort(out->at, (size_t)out->n, sizeof *out->at, by_use);
    return good;
}

void cnri_cache_list_free(cnri_cache_files *files) {
    for (int32_t i = 0; i < files->n; i++) cnri_free(files->at[i].name);
    cnri_vec_free(files);
}

bool cnri_cache_remove(const char *folder, const char *name) {
    char *path = cnri_path_join(folder, name);
    const bool gone = path && counts(name) && (unlink(path) == 0 || errno == ENOENT);
    cnri_free(path);
    return gone;
}

/* Whether CNRI_CACHE_VARIANTS files that were used later share the first `shared` bytes of `name`
 * with this file. */
static bool is_one_too_many(const cnri_cache_files *files, int32_t index, const char *name,
                            size_t shared) {
    int32_t later = 0;
    if (!shared || strncmp(files->at[index].name, name, shared) != 0) return false;
    for (int32_t i = index + 1; i < files->n; i++)
        later += strncmp(files->at[i].name, name, shared) == 0;
    return later >= CNRI_CACHE_VARIANTS;
}

void cnri_cache_trim(const char *folder, uint64_t limit, const char *keep, size_t shared) {
    cnri_cache_files files = {0};
    uint64_t bytes = 0;
    const bool good = cnri_cache_list(folder, &files);
    for (int32_t i = 0; i < files.n; i++) bytes += files.at[i].bytes;
    for (int32_t i = 0; good && i < files.n; i++) {
        const cnri_cache_file *file = &files.at[i];
        const bool many = keep && is_one_too_many(&files, i, keep, shared);
        if ((keep && strcmp(file->name, keep) == 0) || (bytes <= limit && !many)) continue;
        if (!cnri_cache_remove(folder, file->name)) break;
        bytes -= file->bytes;
        cnri_log(CNR_LOG_INFO, "cache", "%s removed: %s", file->name,
                 many ? "plans for later weights are there" : "the folder is full");
    }
    cnri_cache_list_free(&files);
}

char *cnri_cache_latest(const char *folder, const char *prefix) {
    cnri_cache_files files = {0};
    char *found = NULL;
    cnri_cache_list(folder, &files);
    for (int32_t i = files.n - 1; i >= 0 && !found; i--)
        if (files.at[i].is_plan && strncmp(files.at[i].name, prefix, strlen(prefix)) == 0)
            found = cnri_path_join(folder, files.at[i].name);
    cnri_cache_list_free(&files);
    return found;
}
