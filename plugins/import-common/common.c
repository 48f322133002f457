/* Memory, files, options and numbers as text. */
#include "import_common.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

const cnr_host *imp_host;

void *imp_library_alloc(void *context, size_t bytes) {
    (void)context;
    return imp_host->alloc(bytes);
}
void imp_library_free(void *context, void *block) {
    (void)context;
    imp_host->free(block);
}

cnr_status imp_read_file(const char *path, uint8_t **out, size_t *bytes, cnr_error *err) {
    void *data;
    uint64_t n;
    const cnr_status status = imp_host->file_read(path, SIZE_MAX / 4, &data, &n, err);
    *out = (uint8_t *)data;
    *bytes = (size_t)n;
    return status;
}

int imp_is_text(const uint8_t *head, size_t n) {
    for (size_t i = 0; i < n && i < 256; i++)
        if (head[i] < 9 || (head[i] > 13 && head[i] < 32)) return 0;
    return n > 0;
}

int imp_ends_with(const char *path, const char *tail) {
    const size_t n = strlen(path), k = strlen(tail);
    return n >= k && strcmp(path + n - k, tail) == 0;
}

const char *imp_option(const cnr_import_args *args, const char *name) {
    const size_t n = strlen(name);
    for (int32_t i = 0; i < args->n_options; i++)
        if (strncmp(args->options[i], name, n) == 0 && args->options[i][n] == '=')
            return args->options[i] + n + 1;
    return NULL;
}

double imp_number(const char *text, const char **end) {
    const char *at = text;
    double value = 0, scale = 1;
    while (isspace((unsigned char)*at)) at++;
    const double sign = *at == '-' ? -1 : 1;
    if (*at == '-' || *at == '+') at++;
    const char *digits = at;
    int n = 0;
    for (; isdigit((unsigned char)*at); at++, n++) value = value * 10 + (*at - '0');
    if (*at == '.')
        for (at++; isdigit((unsigned char)*at); at++, n++) {
            value = value * 10 + (*at - '0');
            scale *= 10;
        }
    if (n == 0) {
        const int inf = strncmp(digits, "inf", 3) == 0, nan = strncmp(digits, "nan", 3) == 0;
        if (end) *end = inf || nan ? digits + 3 : text;
        return inf ? sign * __builtin_inf() : nan ? __builtin_nan("") : 0;
    }
    value /= scale; /* one rounding, so that 0.1 is 0.1 */
    const char *sign_of = at + 1;
    if ((*at == 'e' || *at == 'E') &&
        (isdigit((unsigned char)*sign_of) ||
         ((*sign_of == '-' || *sign_of == '+') && isdigit((unsigned char)sign_of[1])))) {
        char *stop;
        long power = strtol(sign_of, &stop, 10);
        double factor = 1;
        const int down = power < 0;
        at = stop;
        if (power > 400 || power < -400) power = down ? -400 : 400;
        for (power = down ? -power : power; power > 0 && factor < 1e300; power--) factor *= 10;
        value = down ? value / factor : value * factor;
        for (; power > 0; power--) value = down ? value / 10 : value * 10;
    }
    if (end) *end = at;
    return sign * value;
}

void imp_print(char *out, size_t room, double value) {
    snprintf(out, room, "%.9g", value);
    for (; *out; out++)
        if (*out == ',') *out = '.';
}

int32_t imp_shape(const char *text, int64_t dim[CNR_MAX_RANK]) {
    int32_t rank = 0;
    if (!text) return 0;
    do {
        char *end;
        if (rank == CNR_MAX_RANK) return -1;
        dim[rank] = strtoll(text, &end, 10);
        if (end == text || (*end && *end != ',' && *end != 'x')) return -1;
        if (dim[rank] < 1 || dim[rank] > 1 << 24) return -1;
        rank++;
        text = *end ? end + 1 : NULL;
    } while (text);
    return rank;
}

int64_t imp_count(const int64_t *dim, int32_t rank) {
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++) {
        if (dim[i] < 0 || (dim[i] && n > INT64_MAX / dim[i])) return -1;
        n *= dim[i];
    }
    return n;
}

/* ---- sizes ---- */

void imp_fits_add(imp_fits *f, int64_t size, int exact) {
    static const int64_t usual[] = {28, 32, 64, 96, 112, 128, 224, 227, 256, 299};
    if (!f->low) f->low = size;
    f->high = size;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (usual[i] == size) f->usual = size, f->n_usual++;
    if (exact) f->exact = size, f->n_exact++;
}

int64_t imp_fits_best(const imp_fits *f) {
    if (f->low == f->high) return f->low;
    return f->n_usual == 1 ? f->usual : f->n_exact == 1 ? f->exact : 0;
}
