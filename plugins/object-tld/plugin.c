/* The plugin: the object "tld", and its stages as operators with kernels for the processor. */
#include "ops.h"

const cnr_host *tld_host;

static const cnr_item items[] = {{CNR_KIND_OBJECT, &tld_object},
                                 {CNR_KIND_OPERATOR, &tld_op_window_variance},
                                 {CNR_KIND_KERNEL, &tld_cpu_window_variance},
                                 {CNR_KIND_OPERATOR, &tld_op_random_ferns},
                                 {CNR_KIND_KERNEL, &tld_cpu_random_ferns},
                                 {CNR_KIND_OPERATOR, &tld_op_correlation},
                                 {CNR_KIND_KERNEL, &tld_cpu_correlation}};

/* Chooses the vector functions of this processor, and registers object, operators and kernels. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    tld_host = host;
    tld_vectors_choose();
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("object-tld", "0.1", "A tracker of one object that learns while it tracks: TLD.", "MIT",
           init, CNR_TOUCHES_NOTHING)
