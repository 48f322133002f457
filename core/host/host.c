/* The host table: all that a plugin may call. */
#include "core/host/internal.h"

static cnr_status add(struct cnr_registrar *registrar, int32_t kind, const void *descriptor) {
    return cnri_registrar_add(registrar, kind, descriptor);
}

static cnr_status fail(cnr_error *err, int32_t code, const char *where, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const cnr_status status = cnri_failv(err, code, where, format, args);
    va_end(args);
    return status;
}

static void log_for(int32_t level, const char *plugin, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cnri_logv(level, plugin, format, args);
    va_end(args);
}

static const cnr_op *find_op(const char *name) {
    return cnri_op(name);
}

cnr_host cnri_host = {
    .size = sizeof(cnr_host),
    .abi = CNR_ABI,
    .add = add,
    .intern = cnri_intern,
    .name_of = cnri_name,
    .alloc = cnri_alloc,
    .resize = cnri_resize,
    .free = cnri_free,
    .fail = fail,
    .log = log_for,
    .now_ns = cnri_now_ns,
    .sha256 = cnri_sha256_of,
    .find_op = find_op,
};

cnr_host *cnri_host_mutable(void) {
    return &cnri_host;
}
