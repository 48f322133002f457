/* Fills cnr_error records. */
#include "core/base/base.h"

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

cnr_status cnri_fail(cnr_error *err, int32_t code, const char *where, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cnri_failv(err, code, where, format, args);
    va_end(args);
    return (cnr_status)code;
}
