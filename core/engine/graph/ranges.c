/* Ranges of symbols: which sizes a named dimension may have. */
#include "graph/parts.h"
#include <stdlib.h>

/* Key of the metadata that holds the range of a symbol. */
static void range_key(char key[300], const char *symbol) {
    snprintf(key, 300, "symbol.%.200s.range", symbol);
}

bool cnri_symbol_range(const cnr_graph *g, int32_t symbol, int64_t range[2]) {
    char key[300], *end;
    range_key(key, g->symbols.at[symbol]);
    const char *text = cnri_graph_meta(g, key);
    if (!text) return false;
    range[0] = strtoll(text, &end, 10);
    if (*end != ',') return false;
    range[1] = strtoll(end + 1, &end, 10);
    return *end == 0 && range[0] >= 1 && range[0] <= range[1];
}

cnr_status cnri_graph_add_range(cnr_graph *g, const char *text, cnr_error *err) {
    const char *equals = strchr(text, '='), *dots = equals ? strstr(equals, "..") : NULL;
    char name[200], key[300], pair[64];
    int64_t range[2];
    int32_t k = 0;
    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - text : 0), text);
    while (k < g->symbols.n && strcmp(g->symbols.at[k], name) != 0) k++;
    if (equals && k == g->symbols.n)
        return cnri_fail(err, CNR_E_ARG, name, "no such dimension in this net");
    snprintf(pair, sizeof pair, "%.*s,%s", (int)(dots ? dots - equals - 1 : 0),
             equals ? equals + 1 : "", dots ? dots + 2 : "");
    range_key(key, name);
    if (!dots || cnri_graph_set_meta(g, key, pair) || !cnri_symbol_range(g, k, range))
        return cnri_fail(err, CNR_E_ARG, text, "want NAME=LEAST..LARGEST, such as batch=1..16");
    return CNR_OK;
}

/* Checks sizes, one a symbol, against the symbols' ranges; a size below 0 becomes the least.
 * CNR_E_SHAPE: outside. */
cnr_status cnri_ranges_check(const cnr_graph *g, int64_t *sizes, cnr_error *err) {
    int64_t range[2];
    for (int32_t i = 0; i < g->symbols.n; i++) {
        if (!cnri_symbol_range(g, i, range)) continue;
        if (sizes[i] < 0) sizes[i] = range[0];
        if (sizes[i] < range[0] || sizes[i] > range[1])
            return cnri_fail(err, CNR_E_SHAPE, g->symbols.at[i],
                             "size %lld is not in its range, %lld to %lld", (long long)sizes[i],
                             (long long)range[0], (long long)range[1]);
    }
    return CNR_OK;
}
