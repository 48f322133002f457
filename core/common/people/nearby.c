/* The file that a misspelt path may have meant. */
#include "people/people.h"
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

/* The name in a folder that is nearest to a misspelt one, written into `best`; NULL: none is near.
 */
static const char *nearest_in(DIR *folder, const char *name, char *best, size_t capacity) {
    const struct dirent *entry;
    const char *both[2] = {NULL, best};
    *best = 0;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= capacity) continue;
        both[0] = entry->d_name; /* the better of this name and the best so far */
        const char *near = cnri_nearest_word(name, both, *best ? 2 : 1);
        if (near && near != best) snprintf(best, capacity, "%s", near);
    }
    return *best ? best : NULL;
}

bool cnri_nearest_path(const char *path, char *out, size_t capacity) {
    char parent[4096], name[256], best[256];
    struct stat info;
    const size_t n = strlen(path);
    if (n == 0 || n >= sizeof parent || stat(path, &info) == 0) return false;
    memcpy(parent, path, n + 1);
    for (;;) { /* goes up to a folder that exists; `name` is the part that is missing in it */
        char *slash = strrchr(parent, '/');
        const char *last = slash ? slash + 1 : parent;
        if (strlen(last) >= sizeof name) return false;
        memcpy(name, last, strlen(last) + 1);
        if (!slash) memcpy(parent, ".", 2);
        else if (slash == parent) slash[1] = 0;
        else *slash = 0;
        if (stat(parent, &info) == 0) break;
        if (!slash || slash == parent) return false;
    }
    DIR *folder = opendir(parent);
    if (!folder) return false;
    const char *near = nearest_in(folder, name, best, sizeof best);
    closedir(folder);
    if (!near) return false;
    const size_t length = strlen(parent);
    const bool here = strcmp(parent, ".") == 0 && strncmp(path, "./", 2) != 0;
    const int wrote = here ? snprintf(out, capacity, "%s", near)
                           : snprintf(out, capacity, "%s%s%s", parent,
                                      parent[length - 1] == '/' ? "" : "/", near);
    return wrote > 0 && (size_t)wrote < capacity;
}
