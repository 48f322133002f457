/* The plugin: sparse weights and the kernels that read them. */
#include "csr.h"

const cnr_host *csr_host;

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_item items[] = {{CNR_KIND_ENCODING, &csr_encoding},
                                     {CNR_KIND_KERNEL, &csr_dense_f32}};
    (void)err;
    csr_host = host;
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("sparse-csr", "1.0", "pruned weights as compressed sparse rows", "MIT", init)
