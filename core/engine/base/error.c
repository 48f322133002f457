/* Fills cnr_error records. */
#include "base/base.h"
#include <cnnrun/cnnrun.h>
#include <errno.h>
#include <string.h>

/* Copies a place for an error. If it is too long, whole folders are dropped from the front:
 * ".../nets/lenet.cfg". */
static void copy_place(char *to, size_t capacity, const char *from) {
    const size_t n = strlen(from);
    if (n < capacity) {
        memcpy(to, from, n + 1);
        return;
    }
    const char *tail = from + n - (capacity - 4), *slash = strchr(tail, '/');
    snprintf(to, capacity, "...%s", slash ? slash : tail);
}

/* Cuts a truncated text back to the end of a whole word. */
static void end_at_word(char *text, size_t capacity) {
    static const char mark[] = " ...";
    size_t n = capacity - sizeof mark;
    while (n > 0 && text[n] != ' ' && text[n] != '\n') n--;
    if (n == 0) n = capacity - sizeof mark;
    memcpy(text + n, mark, sizeof mark);
}

cnr_status cnri_failv(cnr_error *err, int32_t code, const char *where, const char *format,
                      va_list args) {
    if (err) {
        err->code = code;
        copy_place(err->where, sizeof err->where, where ? where : "");
        const int n = vsnprintf(err->text, sizeof err->text, format, args);
        if (n >= (int)sizeof err->text) end_at_word(err->text, sizeof err->text);
    }
    return (cnr_status)code;
}

cnr_status cnri_require_arguments(cnr_error *err, const char *name, ...) {
    cnr_status status = CNR_OK;
    va_list args;
    va_start(args, name);
    for (; name && !status; name = va_arg(args, const char *))
        if (!va_arg(args, const void *))
            status = cnri_fail(err, CNR_E_ARG, name, "wanted, got NULL");
    va_end(args);
    return status;
}

/* The text of a status; NULL: it is no cnr_status. */
static const char *text_of(int32_t status) {
    switch (status) {
/* Case of one status: its text. */
#define X(name, value, text) \
    case value: return text;
        CNR_STATUS_LIST(X)
#undef X
    default: return NULL;
    }
}

const char *cnr_status_text(int32_t status) {
    const char *text = text_of(status);
    return text ? text : "unknown status";
}

cnr_status cnri_plugin_status(cnr_error *err, int32_t status, const char *where, const char *what) {
    if (status == CNR_OK) return CNR_OK;
    const int32_t code = text_of(status) ? status : CNR_E_STATE;
    if (!err) return (cnr_status)code;
    if (err->code != status || !err->text[0])
        return cnri_fail(err, code, where, "%s failed without saying why: %s", what,
                         code == status ? cnr_status_text(code) : "not a status of ours");
    err->code = code;
    return (cnr_status)code;
}

cnr_status cnri_fail(cnr_error *err, int32_t code, const char *where, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cnri_failv(err, code, where, format, args);
    va_end(args);
    return (cnr_status)code;
}

cnr_status cnri_out_of_memory(cnr_error *err, const char *where) {
    return cnri_fail(err, CNR_E_MEMORY, where, "out of memory");
}

cnr_status cnri_fail_errno(cnr_error *err, const char *path, const char *what) {
    const int code = errno;
    const cnr_status status = code == ENOENT   ? CNR_E_NOT_FOUND
                              : code == ENOMEM ? CNR_E_MEMORY
                                               : CNR_E_IO;
    return cnri_fail(err, status, path, "%s: %s", what, strerror(code));
}
