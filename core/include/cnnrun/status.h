/* Status codes, and the error record that every function that can fail fills. */
#pragma once

#include <stdint.h>

/* Enclose the declarations of functions that shared libraries export. */
#ifdef __cplusplus
#define CNR_BEGIN_EXPORTS _Pragma("GCC visibility push(default)") extern "C" {
#define CNR_END_EXPORTS \
    } \
    _Pragma("GCC visibility pop")
#else
#define CNR_BEGIN_EXPORTS _Pragma("GCC visibility push(default)")
#define CNR_END_EXPORTS _Pragma("GCC visibility pop")
#endif

/* The values never change: they cross the plugin boundary and become exit codes. */
/* clang-format off */
#define CNR_STATUS_LIST(X) \
    X(OK,            0, "ok") \
    X(E_ARG,        -1, "bad argument") \
    X(E_MEMORY,     -2, "out of memory") \
    X(E_IO,         -3, "input or output failed") \
    X(E_FORMAT,     -4, "malformed data") \
    X(E_UNSUPPORTED,-5, "not supported") \
    X(E_NOT_FOUND,  -6, "not found") \
    X(E_VERSION,    -7, "version mismatch") \
    X(E_SHAPE,      -8, "shapes do not fit") \
    X(E_LIMIT,      -9, "limit exceeded") \
    X(E_DEVICE,    -10, "device failed") \
    X(E_SCRIPT,    -11, "script failed") \
    X(E_CANCELLED, -12, "cancelled") \
    X(E_STATE,     -13, "called in the wrong state")
/* clang-format on */

/* Result of a call: CNR_OK, or a negative number. */
typedef enum cnr_status {
/* One status. */
#define X(name, value, text) CNR_##name = value,
    CNR_STATUS_LIST(X)
#undef X
} cnr_status;

/* Error details. The caller owns the struct; the callee fills it when it returns non-zero. `where`
 * is a file, a layer ("net.lua:14"), a node or a plugin. `text` says what was wrong and what was
 * expected. */
typedef struct cnr_error {
    uint32_t size; /* sizeof(cnr_error), set by the caller (see CNR_ERROR_INIT) */
    int32_t code;  /* a cnr_status */
    char where[256];
    char text[1024];
} cnr_error;

#define CNR_ERROR_INIT \
    { \
        (uint32_t)sizeof(cnr_error), 0, {0}, { 0 } \
    }
