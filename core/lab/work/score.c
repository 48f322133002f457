/* What an answer says: scores of classes, shares, the best class; the range of other outputs. */
#include "work/work.h"
#include <math.h>

bool cnri_is_classes(const cnr_tensor *sample) {
    int32_t wide = 0;
    for (int32_t i = 0; i < sample->rank; i++) wide += sample->dim[i] != 1;
    return wide == 1;
}

bool cnri_are_shares(const cnr_tensor *sample) {
    const int64_t n = cnr_count(sample);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double s = cnri_element(sample->dtype, sample->data, i);
        if (!(s >= 0 && s <= 1.0001)) return false;
        sum += s;
    }
    return fabs(sum - 1) < 2e-3;
}

int64_t cnri_best_class(const cnr_tensor *sample) {
    cnr_top top;
    return cnri_is_classes(sample) && cnr_topk(sample, 1, &top) == 1 ? top.index : -1;
}

cnri_extent cnri_extent_of(const cnr_tensor *t) {
    cnri_extent r = {NAN, NAN, NAN};
    double sum = 0;
    const int64_t n = cnr_count(t);
    for (int64_t i = 0; i < n; i++) {
        const double v = cnri_element(t->dtype, t->data, i);
        r.low = fmin(r.low, v); /* fmin and fmax ignore a NaN */
        r.high = fmax(r.high, v);
        sum += v;
    }
    if (n > 0) r.mean = sum / (double)n;
    return r;
}
