/* Parses the attributes of a symbol's nodes, which MXNet writes as text. */
#include "mxnet.h"

const char *mx_text(const mx_node *n, const char *key) {
    for (int i = 0; i < 3; i++) {
        const char *text = json_string_value(json_object_get(n->attrs[i], key));
        if (text) return strcmp(text, "None") == 0 ? NULL : text;
    }
    return NULL;
}

double mx_float(const mx_node *n, const char *key, double fallback) {
    const char *text = mx_text(n, key), *end;
    if (!text) return fallback;
    const double value = imp_number(text, &end);
    return end == text ? fallback : value;
}

int64_t mx_int(const mx_node *n, const char *key, int64_t fallback) {
    const double value = mx_float(n, key, (double)fallback);
    return value > -1e9 && value < 1e9 ? (int64_t)value : fallback;
}

int mx_bool(const mx_node *n, const char *key, int fallback) {
    const char *text = mx_text(n, key);
    if (!text) return fallback;
    return strcmp(text, "True") == 0 || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

/* Parses numbers, "(1, 2)" or "1", into out, at most max; returns how many, -1: malformed, 0: not
 * set. None counts as `none`. */
int32_t mx_floats(const mx_node *n, const char *key, double *out, int32_t max, double none) {
    const char *at = mx_text(n, key), *end;
    int32_t k = 0;
    if (!at) return 0;
    const int list = *at == '(' || *at == '[';
    for (at += list;;) {
        while (*at == ' ' || *at == ',') at++;
        if (!*at || *at == ')' || *at == ']') return k;
        if (k == max) return -1;
        if (strncmp(at, "None", 4) == 0) {
            out[k++] = none;
            at += 4;
            continue;
        }
        out[k] = imp_number(at, &end);
        if (end == at || !(out[k] > -1e9 && out[k] < 1e9)) return -1;
        k++;
        at = *end == 'L' ? end + 1 : end;
    }
}

/* Parses whole numbers, "(3, 3)" or "3", into out, at most max; returns how many, -1: malformed, 0:
 * not set. None counts as `none`. */
int32_t mx_ints(const mx_node *n, const char *key, int64_t *out, int32_t max, int64_t none) {
    double list[64];
    const int32_t k = max > 64 || !mx_text(n, key) ? 0 : mx_floats(n, key, list, max, (double)none);
    for (int32_t i = 0; i < k; i++) out[i] = (int64_t)list[i];
    return k;
}

/* *from and *output: node and output that input i of a node reads, with 1; 0: there is none. */
int mx_input(const mx_node *n, int32_t i, int64_t *from, int64_t *output) {
    const json_t *pair = json_array_get(n->inputs, (size_t)i);
    if (!json_is_array(pair) || json_array_size(pair) < 1) return 0;
    *from = json_integer_value(json_array_get(pair, 0));
    *output = json_integer_value(json_array_get(pair, 1));
    return 1;
}
