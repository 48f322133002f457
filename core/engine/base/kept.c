/* What plugins keep between runs: blocks by name, in a folder of ours, told apart from damage.
 *
 *   "cnnrun kept 1\n"  length, 8 bytes, little-endian  SHA-256 of what follows, 32 bytes  the block
 *
 * Folder and file are trusted by the rule of cnri_read_kept; a file that does not fit is as good as
 * none, and replaced by the next that is kept under its name. */
#define _GNU_SOURCE
#include "base/base.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[] = "cnnrun kept 1\n";
enum { MAGIC = sizeof magic - 1, HEAD = MAGIC + 8 + 32 };

/* Makes such a folder and those above it, of mode 0700, and fails if others may write it. */
cnr_status cnri_kept_create(const char *folder, cnr_error *err) {
    char *path = cnri_strdup(folder);
    if (!path) return cnri_out_of_memory(err, folder);
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') path[--n] = 0;
    bool made = true;
    for (char *p = path + 1; made && *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        made = mkdir(path, 0700) == 0 || errno != ENOENT; /* an existing path may be any folder */
        *p = '/';
    }
    made = made && (mkdir(path, 0700) == 0 || errno == EEXIST);
    const cnr_status status = made ? CNR_OK : cnri_fail_errno(err, folder, "can't be made");
    cnri_free(path);
    return status ? status : cnri_kept_check(folder, err);
}

/* Path of the user's own folder for kept files; NULL with err if there is none. */
char *cnri_kept_folder(cnr_error *err) {
    const char *folder = secure_getenv("CNNRUN_CACHE"), *home = secure_getenv("HOME"),
               *caches = secure_getenv("XDG_CACHE_HOME");
    if (folder && *folder) return cnri_strdup(folder);
    if (caches && *caches == '/') return cnri_path_join(caches, "cnnrun");
    if (home && *home) return cnri_format("%s/.cache/cnnrun", home);
    cnri_fail(err, CNR_E_NOT_FOUND, "CNNRUN_CACHE", "neither it nor HOME names a folder");
    return NULL;
}

bool cnri_kept_disabled(void) {
    const char *off = secure_getenv("MODEL_CACHE_DISABLE");
    return off && *off && strcmp(off, "0") != 0;
}

char *cnri_kept_plans(void) {
    const char *folder = secure_getenv("CNNRUN_CACHE");
    return cnri_kept_disabled() || (folder && !*folder) ? NULL : cnri_kept_folder(NULL);
}

/* True if `name` is a plain file name: letters, digits and "._-", without a dot in front. */
static bool is_name(const char *name) {
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t n = strlen(name);
    return n > 0 && n < 200 && name[0] != '.' && strspn(name, good) == n;
}

/* Path of the kept file `name`, which the caller frees with cnri_free; NULL with err. `make`:
 * creates the folder. */
static char *place_of(const char *given, const char *name, bool make, cnr_error *err) {
    if (!is_name(name)) {
        cnri_fail(err, CNR_E_ARG, name, "is no name for what is kept: want letters, digits, . _ -");
        return NULL;
    }
    if (err) err->code = CNR_OK;
    char *folder = given ? cnri_strdup(given) : cnri_kept_folder(err), *path = NULL;
    if (folder && (!make || cnri_kept_create(folder, err) == CNR_OK))
        if (!(path = cnri_path_join(folder, name))) cnri_out_of_memory(err, name);
    if (!folder && err && !err->code) cnri_out_of_memory(err, name);
    cnri_free(folder);
    return path;
}

cnr_status cnri_kept_load(const char *folder, const char *name, uint64_t limit, void **data,
                          uint64_t *bytes, cnr_error *err) {
    cnr_error own = CNR_ERROR_INIT;
    char *file = NULL, *path;
    size_t n = 0;
    *data = NULL;
    *bytes = 0;
    if (!err) err = &own;
    if (!(path = place_of(folder, name, false, err))) return (cnr_status)err->code;
    if (limit > UINT64_MAX - HEAD) limit = UINT64_MAX - HEAD;
    cnr_status status = cnri_read_kept(path, limit + HEAD, &file, &n, err);
    if (!status) {
        uint8_t digest[32];
        uint64_t length = 0;
        for (int i = 0; n >= HEAD && i < 8; i++)
            length |= (uint64_t)(uint8_t)file[MAGIC + i] << 8 * i;
        const bool whole = n >= HEAD && memcmp(file, magic, MAGIC) == 0 && length == n - HEAD;
        if (whole) cnri_sha256_of(file + HEAD, length, digest);
        if (!whole || memcmp(digest, file + MAGIC + 8, sizeof digest) != 0)
            status = cnri_fail(err, CNR_E_FORMAT, path, "damaged: it is not what was kept");
    }
    if (!status) {
        /* Moves the NUL that follows the file's bytes too. */
        memmove(file, file + HEAD, n - HEAD + 1);
        *data = file;
        *bytes = n - HEAD;
    } else cnri_free(file);
    cnri_free(path);
    return status;
}

cnr_status cnri_kept_save(const char *folder, const char *name, const void *data, uint64_t bytes,
                          cnr_error *err) {
    cnr_error own = CNR_ERROR_INIT;
    cnri_writer w;
    uint8_t head[HEAD];
    if (!err) err = &own;
    char *path = place_of(folder, name, true, err);
    if (!path) return (cnr_status)err->code;
    memcpy(head, magic, MAGIC);
    for (int i = 0; i < 8; i++) head[MAGIC + i] = (uint8_t)(bytes >> 8 * i);
    cnri_sha256_of(data, bytes, head + MAGIC + 8);
    cnr_status status = cnri_write_begin(&w, path, CNRI_WRITE_PRIVATE, err);
    cnri_free(path);
    if (status) return status;
    status = cnri_write(&w, head, sizeof head, err);
    if (!status) status = cnri_write(&w, data, bytes, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}
