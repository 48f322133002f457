/* Attributes below /sys: finds them by pattern, reads them repeatedly, writes them. */
#define _GNU_SOURCE /* strverscmp */
#include "gauge.h"
#include <cnnrun/kit.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const cnr_host *gauge_host;

/* ---- finding ---- */

/* Writes the root, with special characters escaped, and the pattern behind it to out; 0: it is too
 * long. */
static int full_pattern(const char *root, const char *pattern, char *out, size_t room) {
    size_t n = 0;
    for (; *root; root++) {
        if (n + 2 >= room) return 0;
        if (strchr("*?[]\\", *root)) out[n++] = '\\';
        out[n++] = *root;
    }
    while (n > 0 && out[n - 1] == '/') n--;
    return snprintf(out + n, room - n, "%s%s", *pattern == '/' ? "" : "/", pattern) <
           (int)(room - n);
}

/* Compares two paths with numbers in them, cpu2 before cpu10. */
static int by_version(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Copies the paths that were found into *out; the caller frees it also after an error. */
static cnr_status keep(const glob_t *g, gauge_found *out, cnr_error *err, const char *pattern) {
    out->at = gauge_host->alloc((g->gl_pathc + 1) * sizeof *out->at);
    for (size_t i = 0; out->at && i < g->gl_pathc; i++) {
        const size_t bytes = strlen(g->gl_pathv[i]) + 1;
        char *own = gauge_host->alloc(bytes);
        if (!own) return gauge_host->fail(err, CNR_E_MEMORY, pattern, "out of memory");
        memcpy(own, g->gl_pathv[i], bytes);
        out->at[out->n++] = own;
    }
    if (!out->at) return gauge_host->fail(err, CNR_E_MEMORY, pattern, "out of memory");
    qsort(out->at, (size_t)out->n, sizeof *out->at, by_version);
    return CNR_OK;
}

cnr_status gauge_find(const char *root, const char *pattern, gauge_found *out, cnr_error *err) {
    char full[2 * GAUGE_PATH];
    glob_t g;
    memset(out, 0, sizeof *out);
    if (!full_pattern(root, pattern, full, sizeof full))
        return gauge_host->fail(err, CNR_E_LIMIT, root, "the path is too long");
    const int failed = glob(full, GLOB_NOSORT, NULL, &g);
    if (failed == GLOB_NOSPACE) return gauge_host->fail(err, CNR_E_MEMORY, full, "out of memory");
    if (failed) return CNR_OK; /* no match, or no permission */
    const cnr_status status = keep(&g, out, err, pattern);
    globfree(&g);
    return status;
}

/* Frees the paths and the list, and zeroes it. */
void gauge_found_free(gauge_found *found) {
    GAUGE_EACH(i, found->n) gauge_host->free(found->at[i]);
    gauge_host->free(found->at);
    memset(found, 0, sizeof *found);
}

cnr_status gauge_each(const char *root, const char *pattern,
                      cnr_status (*add)(void *list, const char *path, cnr_error *err), void *list,
                      cnr_error *err) {
    gauge_found found;
    cnr_status status = gauge_find(root, pattern, &found, err);
    for (int32_t i = 0; i < found.n && !status; i++) status = add(list, found.at[i], err);
    gauge_found_free(&found);
    return status;
}

const char *gauge_last(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- reading ---- */

void gauge_name(gauge_file *file, const char *folder, const char *name) {
    const int n = snprintf(file->path, sizeof file->path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof file->path) file->path[0] = 0;
    file->fd = -1;
}

int gauge_is_there(const gauge_file *file) {
    struct stat info;
    return *file->path && stat(file->path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Closes the file if it is open. */
void gauge_close(gauge_file *file) {
    if (*file->path && file->fd >= 0) close(file->fd);
    file->fd = -1;
}

/* Fails with the text of error `number`: CNR_E_UNSUPPORTED if reading is denied, else CNR_E_IO. */
static cnr_status no_answer(const gauge_file *file, int number, cnr_error *err) {
    /* Fills err: a file could not be read. */
    const int denied = number == EACCES || number == EPERM;
    return gauge_host->fail(err, denied ? CNR_E_UNSUPPORTED : CNR_E_IO, file->path, "%s: %s%s",
                            gauge_last(file->path), strerror(number),
                            denied ? " (only root may read it)" : "");
}

/* Opens the file. The host refuses anything but regular files; a missing permission is reported
 * here. */
static cnr_status open_again(gauge_file *file, cnr_error *err) {
    if (file->fd >= 0) return CNR_OK;
    if (!*file->path) return gauge_host->fail(err, CNR_E_LIMIT, "sysfs", "the path is too long");
    if (access(file->path, R_OK) != 0) return no_answer(file, errno, err);
    file->fd = gauge_host->file_open(file->path, NULL, err);
    return file->fd < 0 ? CNR_E_IO : CNR_OK;
}

cnr_status gauge_read_text(gauge_file *file, char *out, size_t room, cnr_error *err) {
    *out = 0;
    CNR_TRY(open_again(file, err));
    const ssize_t got = pread(file->fd, out, room - 1, 0);
    const int number = errno;
    if (got < 0) { /* a driver that was reloaded has a new file */
        gauge_close(file);
        return no_answer(file, number, err);
    }
    size_t n = (size_t)got;
    while (n > 0 && strchr(" \t\r\n", out[n - 1])) n--;
    out[n] = 0;
    const size_t blank = strspn(out, " \t\r\n");
    memmove(out, out + blank, n - blank + 1);
    if (*out) return CNR_OK;
    gauge_close(file);
    return gauge_host->fail(err, CNR_E_IO, file->path, "%s: holds nothing", gauge_last(file->path));
}

cnr_status gauge_read_number(gauge_file *file, double *out, cnr_error *err) {
    char text[GAUGE_TEXT];
    const char *end;
    CNR_TRY(gauge_read_text(file, text, sizeof text, err));
    if (gauge_host->parse_number(text, &end, out) && *out - *out == 0) return CNR_OK;
    return gauge_host->fail(err, CNR_E_FORMAT, file->path, "%s: want a number, got \"%s\"",
                            gauge_last(file->path), text);
}

int gauge_look(const char *folder, const char *name, char *out, size_t room) {
    gauge_file file;
    gauge_name(&file, folder, name);
    const int there = gauge_is_there(&file) && gauge_read_text(&file, out, room, NULL) == CNR_OK;
    gauge_close(&file);
    if (!there) *out = 0;
    return there;
}

int gauge_look_number(const char *folder, const char *name, double *out) {
    gauge_file file;
    gauge_name(&file, folder, name);
    const int there = gauge_is_there(&file) && gauge_read_number(&file, out, NULL) == CNR_OK;
    gauge_close(&file);
    return there;
}

/* ---- writing ---- */

/* Writes text to a file from a signal handler; returns 0, or errno. Writes in place: an attribute
 * can't be replaced by a renamed file. */
int gauge_order(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
    const size_t n = strlen(text);
    if (fd < 0) return errno;
    const ssize_t put = write(fd, text, n);
    const int number = put == (ssize_t)n ? 0 : put < 0 ? errno : EIO;
    close(fd);
    return number;
}

cnr_status gauge_write_text(const char *path, const char *text, cnr_error *err) {
    const int number = gauge_order(path, text);
    if (!number) return CNR_OK;
    return gauge_host->fail(err, number == EACCES || number == EPERM ? CNR_E_UNSUPPORTED : CNR_E_IO,
                            path, "%s: can't be set to %s: %s", gauge_last(path), text,
                            strerror(number));
}
