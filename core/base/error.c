/* Fills cnr_error records. */
#include "core/base/base.h"
#include <cnnrun/cnnrun.h>
#include <errno.h>
#include <string.h>

cnr_status cnri_failv(cnr_error *err, int32_t code, const char *where, const char *format,
                      va_list args) {
    if (err) {
        err->code = code;
        snprintf(err->where, sizeof err->where, "%s", where ? where : "");
        vsnprintf(err->text, sizeof err->text, format, args);
    }
    return (cnr_status)code;
}

cnr_status cnri_given(cnr_error *err, const char *name, ...) {
    cnr_status status = CNR_OK;
    va_list args;
    va_start(args, name);
    for (; name && !status; name = va_arg(args, const char *))
        if (!va_arg(args, const void *))
            status = cnri_fail(err, CNR_E_INVALID, name, "wanted, got NULL");
    va_end(args);
    return status;
}

/* NULL: none of ours. */
static const char *text_of(int32_t status) {
    switch (status) {
#define X(name, value, text) case value: return text;
        CNR_STATUS_LIST(X)
#undef X
    default: return NULL;
    }
}

const char *cnr_status_text(int32_t status) {
    const char *text = text_of(status);
    return text ? text : "unknown status";
}

cnr_status cnri_told(cnr_error *err, int32_t status, const char *where, const char *what) {
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

cnr_status cnri_fail_errno(cnr_error *err, const char *path, const char *what) {
    const int code = errno;
    const cnr_status status = code == ENOENT ? CNR_E_NOT_FOUND
                              : code == ENOMEM ? CNR_E_MEMORY : CNR_E_IO;
    return cnri_fail(err, status, path, "%s: %s", what, strerror(code));
}
