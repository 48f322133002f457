/* Spellings of parameter names in other frameworks. Here a parameter is LAYER.PORT, as
 * conv1.weight. */
#include "weights.h"

#include <ctype.h>
#include <strings.h>

/* The first word is the port's name; the others are synonyms of it. */
static const char *const rows[] = {
    "weight w kernel weights filter depthwise_kernel",
    "bias b biases beta",
    "scale gamma weight",
    "mean moving_mean running_mean",
    "var variance moving_variance moving_var running_var inv_std",
    "slope alpha weight",
};

static int is_separator(char c) { return c == '.' || c == '/' || c == '_'; }

/* 1 if n letters are equal; all separators count as one. */
static int alike(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && !(is_separator(a[i]) && is_separator(b[i]))) return 0;
    return 1;
}

/* 2: the n characters equal `name`; 1: they end with it after a scope's name; 0: neither. */
static int is_named(const char *text, size_t n, const char *name) {
    const size_t k = strlen(name);
    if (n < k || !alike(text + n - k, name, k)) return 0;
    return n == k ? 2 : is_separator(text[n - k - 1]);
}

/* Length of the next word of a row, *at moved to it; 0: no more. */
static size_t next_word(const char **at, size_t n) {
    *at += n;
    while (**at == ' ' || **at == ',') ++*at;
    return strcspn(*at, " ,");
}

/* 1 if a row of synonyms has the word of k letters, in any case. */
static int has_word(const char *row, const char *word, size_t k) {
    size_t n = 0;
    while ((n = next_word(&row, n)) > 0)
        if (n == k && strncasecmp(row, word, k) == 0) return 1;
    return 0;
}

/* The row of synonyms of an input's name, separated by blanks; the name itself if it has none. */
static const char *row_of(const char *port) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (has_word(rows[i], port, strlen(port))) return rows[i];
    return port;
}

int imp_is_port_word(const char *port, const char *word, size_t n) {
    return has_word(row_of(port), word, n);
}

/* 1 for "inv_std", in any case. */
int imp_is_inverse(const char *word, size_t n) {
    return n == 7 && strncasecmp(word, "inv_std", n) == 0;
}

/* The length of the name without the ":0" of a variable's first output. */
static size_t clean_length(const char *name) {
    size_t n = strlen(name), k = n;
    while (k > 0 && isdigit((unsigned char)name[k - 1])) k--;
    return k > 1 && k < n && name[k - 1] == ':' ? k - 1 : n;
}

int imp_name_level(const char *array, const imp_parameter *p, int *inverse) {
    const size_t n = clean_length(array);
    int best = is_named(array, n, p->name);
    const char *word = row_of(p->port);
    *inverse = 0;
    for (size_t k = 0; best < 2 && (k = next_word(&word, k)) > 0;) {
        if (n < k + 2 || strncasecmp(array + n - k, word, k) != 0) continue;
        const int level = is_separator(array[n - k - 1]) ? is_named(array, n - k - 1, p->layer) : 0;
        if (level <= best) continue;
        best = level;
        *inverse = imp_is_inverse(word, k);
    }
    return best;
}

int imp_name_is_idle(const char *array) { return imp_ends_with(array, "num_batches_tracked"); }

int imp_names_are_numbered(const imp_arrays *arrays) {
    size_t stem = 0;
    for (int32_t i = 0; i < arrays->n; i++) {
        const char *name = arrays->at[i].name;
        size_t n = strlen(name), k = n;
        while (k > 0 && isdigit((unsigned char)name[k - 1])) k--;
        if (k == n || (i > 0 && (k != stem || memcmp(name, arrays->at[0].name, k) != 0))) return 0;
        stem = k;
    }
    return arrays->n > 0;
}
