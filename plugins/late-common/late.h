/* Loads a plugin's second module when it is first needed. The module lies in the folder named like
 * the plugin and links the large libraries, since every command opens every plugin. */
#ifndef LATE_LATE_H
#define LATE_LATE_H

#include <cnnrun/kit.h>

/* The function `symbol` of NAME/MODULE.so beside the plugin that contains `of`; NULL with err.
 * Modules stay loaded. */
typedef void (*late_fn)(void);
/* Loads a module that lies beside the plugin that has the address `of`, and returns its function
 * `symbol`; NULL: failed, see err. The module stays loaded. */
late_fn late_function(const cnr_host *host, const void *of, const char *module, const char *symbol,
                      cnr_error *err);

/* An object whose name, summary, methods and reach (NULL: none) are known before its module is
 * loaded. `module` exports const cnr_object *late_object(const cnr_host *host); */
typedef const cnr_object *(*late_object_fn)(const cnr_host *host);
/* Defines an object whose module is loaded when the first one is created. */
#define LATE_OBJECT(symbol, module, object_name, object_summary, object_methods, object_reach) \
    static const cnr_host *late_host; \
    static _Atomic(const cnr_object *) late_it; \
    static cnr_status late_create(const cnr_attr *const *options, int32_t n, void **state, \
                                  cnr_error *err) { \
        if (!late_it) { \
            const late_object_fn get = \
                (late_object_fn)late_function(late_host, &late_it, module, "late_object", err); \
            if (!get) return CNR_E_IO; \
            late_it = get(late_host); \
        } \
        return late_it->create(options, n, state, err); \
    } \
    static cnr_status late_call(void *state, int32_t method, const cnr_tensor *const *in, \
                                int32_t n_in, cnr_tensor *const *out, int32_t n_out, \
                                cnr_error *err) { \
        return late_it->call(state, method, in, n_in, out, n_out, err); \
    } \
    static void late_destroy(void *state) { late_it->destroy(state); } \
    static const cnr_object symbol = { \
        .size = sizeof(cnr_object), \
        .n_methods = sizeof(object_methods) / sizeof *(object_methods), \
        .name = object_name, \
        .summary = object_summary, \
        .methods = object_methods, \
        .create = late_create, \
        .call = late_call, \
        .destroy = late_destroy, \
        .touches = object_reach, \
    }; \
    static cnr_status late_init(const cnr_host *host, struct cnr_registrar *registrar, \
                                cnr_error *err) { \
        (void)err; \
        late_host = host; \
        return host->add(registrar, CNR_KIND_OBJECT, &symbol); \
    }

#endif
