/* Numbers for measurements: made-up inputs, and the median of what is measured. */
#define _GNU_SOURCE /* secure_getenv */
#include "people/people.h"
#include <stdlib.h>
#include <string.h>

/* Parses a size such as "16", "64K" or "1.5G". */
bool cnri_parse_bytes(const char *text, uint64_t *out) {
    static const char units[] = "KMG";
    const char *end;
    double value;
    if (!cnri_parse_double(text, &end, &value) || !(value >= 0)) return false;
    const char *unit = memchr(units, *end & ~0x20, sizeof units - 1);
    for (int64_t i = 0; unit && i <= unit - units; i++) value *= 1024;
    end += unit != NULL;
    end += *end == 'i';
    end += *end == 'B';
    if (*end || !(value < 9e18)) return false;
    *out = (uint64_t)value;
    return true;
}

/* Compares two doubles, the smaller first, for qsort. */
static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double cnri_median(double *values, int64_t n) {
    if (n < 1) return 0;
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2] + values[n / 2 - 1]) / 2;
}

cnr_status cnri_cache_limit(uint64_t given, uint64_t *out, cnr_error *err) {
    const char *text = given ? NULL : secure_getenv("MODEL_CACHE_MAXSIZE");
    *out = given ? given : (uint64_t)4 << 30;
    if (!text || !*text || cnri_parse_bytes(text, out)) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, "MODEL_CACHE_MAXSIZE", "\"%s\": want bytes, such as 300M",
                     text);
}

void cnri_fill_made_up(cnr_tensor *t) {
    uint64_t state = 1;
    const int64_t n = t->dtype == CNR_f32 ? cnr_count(t) : 0;
    memset(t->data, 0, (size_t)t->bytes);
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((float *)t->data)[i] = (float)(state >> 40) * 0x1p-24f;
    }
}
