/* Finds the shipped scripts: beside the program or the shared library in a build tree or an
 * install prefix, or where they were installed. */
#include "lua/script.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PLACES = 6 };

/* Path of the folder of scripts number `place`, for cnri_free; NULL: unknown, or out of memory. */
static char *folder_at(int32_t place) {
    static const struct {
        bool library; /* beside the shared library, not the program */
        const char *path;
    } beside[PLACES - 1] = {{false, "../share/cnnrun/scripts"},
                            {false, "../scripts"},
                            {true, "../share/cnnrun/scripts"},
                            {true, "../../share/cnnrun/scripts"}, /* lib/x86_64-linux-gnu */
                            {true, "../scripts"}};
    if (place == PLACES - 1) return cnri_strdup(CNRI_INSTALLED_SCRIPTS);
    char *home = beside[place].library ? cnri_library_dir() : cnri_executable_dir();
    char *folder = home ? cnri_format("%s/%s", home, beside[place].path) : NULL;
    cnri_free(home);
    return folder;
}

char *cnri_lua_scripts(void) {
    struct stat info;
    for (int32_t i = 0; i < PLACES; i++) {
        char *folder = folder_at(i);
        if (folder && stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return folder;
        cnri_free(folder);
    }
    return NULL;
}

char *cnri_lua_shipped(const char *name) {
    char *path = NULL;
    struct stat info;
    for (int32_t i = 0; i < PLACES && !path; i++) {
        char *folder = folder_at(i);
        path = folder ? cnri_format("%s/%s", folder, name) : NULL;
        cnri_free(folder);
        if (path && stat(path, &info) == 0 && S_ISREG(info.st_mode)) break;
        cnri_free(path);
        path = NULL;
    }
    return path;
}

char *cnri_lua_app(const char *name) {
    char file[300];
    const int n = snprintf(file, sizeof file, "apps/%s.lua", name);
    return n < (int)sizeof file && *name && !strchr(name, '/') ? cnri_lua_shipped(file) : NULL;
}

/* Calls fn for the applications of the first folder that has any. */
void cnri_lua_apps(void (*fn)(void *arg, const char *name), void *arg) {
    bool found = false;
    for (int32_t i = 0; i < PLACES && !found; i++) {
        struct dirent **entries;
        char name[256], *folder = folder_at(i),
                        *apps = folder ? cnri_format("%s/apps", folder) : NULL;
        const int n = apps ? scandir(apps, &entries, NULL, alphasort) : -1;
        for (int k = 0; k < n; k++) {
            const size_t length = strlen(entries[k]->d_name);
            if (length > 4 && strcmp(entries[k]->d_name + length - 4, ".lua") == 0) {
                snprintf(name, sizeof name, "%.*s", (int)length - 4, entries[k]->d_name);
                fn(arg, name);
                found = true;
            }
            free(entries[k]);
        }
        if (n >= 0) free(entries);
        cnri_free(apps);
        cnri_free(folder);
    }
}
