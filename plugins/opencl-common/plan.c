/* Parts of the plan hooks of all kernels: state, chain, options, programs. */
#include "support.h"

#include <stdarg.h>
#include <stdio.h>

void *ocl_plan_begin(ocl_plan *p, const cnr_device *device, const cnr_node *node, size_t bytes,
                     cnr_error *err) {
    p->device = device;
    p->node = node;
    p->err = err;
    p->head[0] = p->options[0] = 0;
    p->state = cnr_state(ocl_host, node, bytes, err);
    p->status = p->state ? CNR_OK : CNR_E_MEMORY;
    return p->state;
}

cnr_status ocl_unless(const cnr_node *node, const char *why, cnr_error *err) {
    return why ? ocl_host->fail(err, CNR_E_STATE, node->name, "%s", why) : CNR_OK;
}

int ocl_plan_unless(ocl_plan *p, const char *why) {
    if (p->status == CNR_OK) p->status = ocl_unless(p->node, why, p->err);
    return p->status == CNR_OK;
}

/* Writes behind `text`, which has `room` bytes; where it does not fit, p->status becomes a failure
 * with too_long. */
static void append(ocl_plan *p, char *text, size_t room, const char *too_long, const char *format,
                   va_list args) {
    const size_t n = strlen(text);
    const int more = vsnprintf(text + n, room - n, format, args);
    if (p->status == CNR_OK && (more < 0 || (size_t)more >= room - n))
        p->status = ocl_host->fail(p->err, CNR_E_LIMIT, p->node->name, "%s", too_long);
}

/* Appends to the source text that stands before the program. */
void ocl_plan_head(ocl_plan *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    append(p, p->head, sizeof p->head, "its epilogue is too long a source", format, args);
    va_end(args);
}

/* Appends to the program's build options, as printf; a failure is kept in p->status. */
void ocl_plan_options(ocl_plan *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    append(p, p->options, sizeof p->options, "too many build options", format, args);
    va_end(args);
}

void ocl_plan_window(ocl_plan *p, const ocl_shape *s) {
    for (int32_t i = 0; i < 3; i++)
        ocl_plan_options(p, "-DK%c=%d -DS%c=%d -DD%c=%d ", "DHW"[i], (int)s -> k[i], "DHW"[i],
                         (int)s -> stride[i], "DHW"[i], (int)s -> dilation[i]);
}

/* *out receives the code of `kernel` in `source`, built with the plan's head and options; a plan
 * that failed is left alone. */
void ocl_plan_code(ocl_plan *p, const ocl_source *source, const char *kernel,
                   const ocl_code **out) {
    if (p->status == CNR_OK)
        p->status = ocl_code_get(p->device, source, p->head[0] ? p->head : NULL, p->options, kernel,
                                 out, p->err);
}

cnr_status ocl_plan_end(ocl_plan *p, void **out) {
    if (p->status == CNR_OK) *out = p->state;
    else ocl_host->free(p->state);
    return p->status;
}
