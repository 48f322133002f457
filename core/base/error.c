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

cnr_status cnri_fail(cnr_error *err, int32_t code, const char *where, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cnri_failv(err, code, where, format, args);
    va_end(args);
    return (cnr_status)code;
}
