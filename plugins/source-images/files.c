/* Expands a spec: a picture, a folder (sub-folders are classes), a pattern, or a list. */
#include "images.h"
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

enum { MAX_ENTRIES = 50000000, MAX_CLASSES = 1000000 };

/* *data receives the whole file, which the caller frees; *n its bytes. */
cnr_status img_read_file(const char *path, uint8_t **data, size_t *n, cnr_error *err) {
    void *all;
    uint64_t bytes;
    const cnr_status status = img_host->file_read(path, IMG_MAX_FILE, &all, &bytes, err);
    *data = all;
    *n = (size_t)bytes;
    return status;
}

/* ---- lists ---- */

/* folder/name, in memory of the host's for the caller to free; NULL: no memory. */
static char *join(const char *folder, const char *name) {
    const size_t a = strlen(folder), b = strlen(name);
    const size_t slash = a > 0 && folder[a - 1] != '/';
    char *path = img_host->alloc(a + slash + b + 1);
    if (!path) return NULL;
    memcpy(path, folder, a);
    if (slash) path[a] = '/';
    memcpy(path + a + slash, name, b + 1);
    return path;
}

/* Appends a path with a label to the list, which takes ownership of it, also on failure. Fails with
 * CNR_E_MEMORY, for a path NULL or too many entries. */
static cnr_status add(img_list *list, char *path, int32_t label, cnr_error *err) {
    if (path && list->n == list->room) {
        const int64_t room = list->room ? list->room * 2 : 64;
        img_entry *grown = room > MAX_ENTRIES * 2
                               ? NULL
                               : img_host->resize(list->at, (size_t)room * sizeof *grown);
        if (grown) {
            list->at = grown;
            list->room = room;
        }
    }
    if (!path || list->n == list->room) {
        img_host->free(path);
        return img_host->fail(err, CNR_E_MEMORY, "source-images", "out of memory");
    }
    list->at[list->n++] = (img_entry){path, label};
    return CNR_OK;
}

/* Frees the paths and clears the list. */
void img_list_free(img_list *list) {
    for (int64_t i = 0; i < list->n; i++) img_host->free(list->at[i].path);
    img_host->free(list->at);
    memset(list, 0, sizeof *list);
}

/* ---- directories ---- */

/* Compares two entries by path, for qsort. */
static int by_path(const void *a, const void *b) {
    return strcmp(((const img_entry *)a)->path, ((const img_entry *)b)->path);
}

/* 1: the path is a folder, or a link to one. */
static int is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* 1: the path is a regular file, or a link to one. */
static int is_file(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* Lists the pictures in `folder`, sorted; its sub-folders in `folders` (may be NULL). */
static cnr_status scan(const char *folder, int32_t label, img_list *pictures, img_list *folders,
                       cnr_error *err) {
    cnr_status status = img_host->may_open(folder, 0, err);
    if (status) return status;
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    const int64_t first = pictures->n;
    if (!dir) return img_host->fail(err, CNR_E_IO, folder, "%s", strerror(errno));
    while (!status && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        char *path = join(folder, entry->d_name);
        if (path && is_folder(path)) {
            if (folders) status = add(folders, path, 0, err);
            else img_host->free(path);
        } else if (!path || img_has_picture_name(path)) {
            status = add(pictures, path, label, err);
        } else {
            img_host->free(path);
        }
    }
    closedir(dir);
    if (pictures->n > first)
        qsort(pictures->at + first, (size_t)(pictures->n - first), sizeof *pictures->at, by_path);
    return status;
}

/* Pictures directly in the folder have no label; each sub-folder with pictures is a class. */
static cnr_status open_directory(const char *path, img_list *out, cnr_error *err) {
    img_list folders = {0};
    const char *empty = NULL; /* the last folder without pictures */
    cnr_status status = scan(path, -1, out, &folders, err);
    if (folders.n) qsort(folders.at, (size_t)folders.n, sizeof *folders.at, by_path);
    for (int64_t i = 0; i < folders.n && !status; i++) {
        const int64_t before = out->n;
        status = scan(folders.at[i].path, (int32_t)out->classes, out, NULL, err);
        if (out->n > before) out->classes++;
        else if (!status) empty = folders.at[i].path;
    }
    if (empty && out->classes > 0)
        img_host->log(CNR_LOG_WARN, empty,
                      "has no pictures, so it is no class: classes behind it have smaller numbers "
                      "than where it has some");
    img_list_free(&folders);
    if (!status && out->n == 0)
        status = img_host->fail(err, CNR_E_NOT_FOUND, path, "no pictures in here");
    return status;
}

/* ---- "images:LIST": lines "path index", or "path.jpg" ---- */

/* Adds a line of a list to *out: a path, and a label after blanks, which may lack where the path
 * ends as a picture's does. Paths are relative to folder. */
static cnr_status add_line(const char *folder, char *line, int64_t number, const char *list_path,
                           img_list *out, cnr_error *err) {
    char *end = line + strlen(line);
    while (end > line && strchr(" \t\r", end[-1])) *--end = 0;
    while (*line == ' ' || *line == '\t') line++;
    if (!*line || *line == '#') return CNR_OK;
    if (img_has_picture_name(line))
        return add(out, *line == '/' ? join("", line) : join(folder, line), -1, err);
    char *space = end;
    while (space > line && !strchr(" \t", space[-1])) space--;
    int64_t label = 0;
    const char *digits = space;
    for (; *digits >= '0' && *digits <= '9' && label < MAX_CLASSES; digits++)
        label = label * 10 + (*digits - '0');
    if (space == line || digits == space || *digits || label >= MAX_CLASSES) {
        char where[512];
        snprintf(where, sizeof where, "%s:%lld", list_path, (long long)number);
        return img_host->fail(err, CNR_E_FORMAT, where,
                              "wanted a picture and, for some uses, the index of its class "
                              "behind it, got \"%.80s\"",
                              line);
    }
    while (space > line && strchr(" \t", space[-1])) space--;
    *space = 0;
    if (label >= out->classes) out->classes = label + 1;
    return add(out, *line == '/' ? join("", line) : join(folder, line), (int32_t)label, err);
}

/* Reads a list file, of a path and perhaps a label in each line, into *out; paths are relative to
 * its folder. Fails with a reason. */
static cnr_status open_list(const char *path, img_list *out, cnr_error *err) {
    uint8_t *text;
    size_t n;
    cnr_status status = img_read_file(path, &text, &n, err);
    if (status) return status;
    const char *slash = strrchr(path, '/');
    char *folder = join("", slash ? path : "./");
    if (!folder) status = img_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    else if (slash) folder[slash - path + 1] = 0;
    int64_t number = 0;
    for (char *line = (char *)text, *next; !status && line < (char *)text + n; line = next) {
        char *end = memchr(line, '\n', (size_t)((char *)text + n - line));
        if (!end) end = (char *)text + n;
        *end = 0;
        next = end + 1;
        status = add_line(folder, line, ++number, path, out, err);
    }
    if (!status && out->n == 0)
        status = img_host->fail(err, CNR_E_FORMAT, path, "the list names no pictures");
    img_host->free(folder);
    img_host->free(text);
    return status;
}

/* ---- patterns such as "*.jpg" that the shell did not expand ---- */

int img_is_pattern(const char *spec) {
    struct stat about;
    return strpbrk(spec, "*?") && img_has_picture_name(spec) && stat(spec, &about) != 0;
}

/* *out receives the files that the pattern matches. */
static cnr_status open_pattern(const char *spec, img_list *out, cnr_error *err) {
    glob_t found;
    cnr_status status = img_host->may_open(spec, 0, err);
    if (status) return status;
    const int failed = glob(spec, 0, NULL, &found);
    if (failed == GLOB_NOMATCH) return img_host->fail(err, CNR_E_NOT_FOUND, spec, "no such files");
    if (failed) return img_host->fail(err, CNR_E_IO, spec, "the folder cannot be read");
    for (size_t i = 0; i < found.gl_pathc && !status; i++)
        if (img_has_picture_name(found.gl_pathv[i]))
            status = add(out, join("", found.gl_pathv[i]), -1, err);
    globfree(&found);
    if (!status && out->n == 0)
        status = img_host->fail(err, CNR_E_NOT_FOUND, spec, "no pictures among these");
    return status;
}

cnr_status img_list_open(const char *spec, img_list *out, cnr_error *err) {
    static const char scheme[] = "images:";
    cnr_status status;
    memset(out, 0, sizeof *out);
    if (is_file(spec)) {
        status = add(out, join("", spec), -1, err);
    } else if (strncmp(spec, scheme, sizeof scheme - 1) == 0) {
        const char *path = spec + sizeof scheme - 1;
        status = is_folder(path) ? open_directory(path, out, err) : open_list(path, out, err);
    } else if (is_folder(spec)) {
        status = open_directory(spec, out, err);
    } else if (img_is_pattern(spec)) {
        status = open_pattern(spec, out, err);
    } else {
        status = add(out, join("", spec), -1, err);
    }
    if (status) img_list_free(out);
    return status;
}
