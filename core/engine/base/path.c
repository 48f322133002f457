/* Paths: join, split, and follow links. */
#define _GNU_SOURCE
#include "base/base.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    for (size_t capacity = 256; capacity <= 1 << 20; capacity *= 2) {
        char *path = cnri_alloc(capacity);
        if (!path) return NULL;
        const ssize_t n = readlink("/proc/self/exe", path, capacity);
        if (n > 0 && (size_t)n < capacity) {
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

char *cnri_library_dir(void) {
    Dl_info info;
    const char *name = NULL;
    char real[PATH_MAX];
#ifdef RTLD_DL_LINKMAP
    struct link_map *map = NULL;
    if (dladdr1((void *)cnri_library_dir, &info, (void **)&map, RTLD_DL_LINKMAP) && map)
        name = map->l_name; /* an empty name stands for the program */
#else /* musl, bionic: they name the program, too, whose folder is searched anyway */
    if (dladdr((void *)cnri_library_dir, &info)) name = info.dli_fname;
#endif
    return name && name[0] == '/' && realpath(name, real) ? cnri_path_dir(real) : NULL;
}

/* ---- where paths lead ---- */

bool cnri_path_is_inside(const char *name) {
    if (!*name || *name == '/') return false;
    for (const char *p = name; *p;) {
        const size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') return false;
        p += n + (p[n] == '/');
    }
    return true;
}

bool cnri_path_real_below(const char *path, const char *folder) {
    const size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == 0);
}

/* Cuts a path without links down to its folder. */
static void cut_name(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = 0;
}

/* True if `real` lies in or below the folder of the file that `from` is a link to and has the
 * same owner. Download caches are folders of such links. */
static bool beside_target(const char *real, const char *from) {
    char root[PATH_MAX];
    struct stat a, b;
    if (!realpath(from, root) || stat(root, &a) != 0 || stat(real, &b) != 0) return false;
    cut_name(root);
    return a.st_uid == b.st_uid && cnri_path_real_below(real, root);
}

cnr_status cnri_path_beside(const char *from, const char *name, char **out, cnr_error *err) {
    char real[PATH_MAX], root[PATH_MAX];
    *out = NULL;
    if (!cnri_path_is_inside(name))
        return cnri_fail(err, CNR_E_FORMAT, name, "is no path within the folder of %s", from);
    char *folder = cnri_path_dir(from), *path = folder ? cnri_path_join(folder, name) : NULL;
    cnr_status status = CNR_OK;
    if (!path) status = cnri_out_of_memory(err, name);
    else if (!realpath(folder, root)) status = cnri_fail_errno(err, folder, "can't be found");
    else if (!realpath(path, real)) status = cnri_fail_errno(err, path, "can't be found");
    else if (!cnri_path_real_below(real, root) && !beside_target(real, from))
        status =
            cnri_fail(err, CNR_E_FORMAT, path, "leads out of the folder of %s, to %s", from, real);
    else if (!(*out = cnri_strdup(real))) status = cnri_out_of_memory(err, path);
    cnri_free(path);
    cnri_free(folder);
    return status;
}
