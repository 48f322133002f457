/* Stores computed numbers as elements of any data type. */
#include "elem.h"

/* Converts n computed elements to dtype and writes them from element `first` of data. */
static void store(int32_t dtype, void *data, int64_t first, int64_t n, elem_domain domain,
                  const void *in) {
    int64_t whole[ELEM_RUN];
    if (domain == ELEM_F && !elem_in(dtype, OPS_FLOATS | ELEM_BOOL)) {
        const int32_t as = dtype == CNR_u64 ? CNR_u64 : CNR_i64;
        ops_host->elements_read(CNR_f64, in, 0, 1, n, as, whole);
        ops_host->elements_write(dtype, data, first, n, as, whole);
    } else {
        ops_host->elements_write(dtype, data, first, n, (int32_t)domain, in);
    }
}

void elem_store(int32_t dtype, void *data, int64_t first, int64_t n, elem_domain domain,
                const elem_run *in) {
    store(dtype, data, first, n, domain, in);
}

void elem_set_f64(const cnr_tensor *t, int64_t index, double value) {
    store(t->dtype, t->data, index, 1, ELEM_F, &value);
}
