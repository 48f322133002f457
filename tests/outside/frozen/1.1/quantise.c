/* A rewrite by the headers of ABI 1.1 that quantises: it is asked, told ranges and answers by metadata.
 * What a node gives goes through whole numbers of 8 bits and back. */
#include <cnnrun/plugin.h>
#include <stdio.h>
#include <stdlib.h>

static const cnr_host *host;

static int is_listed(const char *text, const char *name) {
    const size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, name, n) == 0 && (line[n] == '\n' || line[n] == 0)) return 1;
    }
    return 0;
}

static cnr_value number(struct cnr_graph *g, int32_t dtype, void *data, uint64_t bytes) {
    const cnr_tensor t = {.size = sizeof t, .dtype = dtype, .data = data, .bytes = bytes};
    return host->graph_constant(g, NULL, &t);
}

/* -1: an error; 0: nothing is known of what it gives */
static int32_t quantise(struct cnr_graph *g, int32_t index) {
    const cnr_value *in, *out;
    const cnr_node *node = host->graph_node_at(g, index, &in, &out);
    const cnr_value y = out[0];
    char key[300], text[400];
    snprintf(key, sizeof key, "range.%.200s", host->graph_value_name(g, y));
    const char *range = host->graph_meta(g, key);
    if (!range) return 0;
    char *end;
    const double low = strtod(range, &end), high = *end == ',' ? strtod(end + 1, NULL) : low;
    float scale = (float)((high - low) / 255);
    uint8_t zero = (uint8_t)(-low / (double)scale + 0.5);
    const cnr_value s = number(g, CNR_f32, &scale, sizeof scale);
    const cnr_value z = number(g, CNR_u8, &zero, sizeof zero);
    cnr_value plain, whole, real;
    host->graph_insert_before(g, index);
    if (host->graph_node(g, node->desc->name, node->name, NULL, in, node->n_inputs, node->attrs,
                         node->n_attrs, &plain, 1))
        return -1;
    const cnr_value to[] = {plain, s, z};
    if (host->graph_node(g, "quantize_linear", NULL, NULL, to, 3, NULL, 0, &whole, 1)) return -1;
    const cnr_value back[] = {whole, s, z};
    if (host->graph_node(g, "dequantize_linear", NULL, NULL, back, 3, NULL, 0, &real, 1)) return -1;
    snprintf(key, sizeof key, "quantized.%.200s", host->graph_value_name(g, y));
    snprintf(text, sizeof text, "%.200s,%.9g,%d,%.9g", host->graph_value_name(g, whole),
             (double)scale, zero, -(double)zero * (double)scale);
    if (host->graph_set_meta(g, key, text) || host->graph_replace(g, y, real)) return -1;
    return host->graph_remove(g, index + 3) ? -1 : 1;
}

static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    const char *given = host->graph_meta(g, "quantize");
    int32_t changes = 0;
    if (!given) return 0;
    char *listed = malloc(strlen(given) + 1); /* metadata may move */
    if (!listed) return host->fail(err, CNR_E_MEMORY, "frozen", "out of memory");
    strcpy(listed, given);
    for (int32_t i = host->graph_node_count(g) - 1; i >= 0; i--) {
        if (!is_listed(listed, host->graph_node_at(g, i, NULL, NULL)->name)) continue;
        const int32_t one = quantise(g, i);
        if (one < 0) {
            free(listed);
            return host->fail(err, CNR_E_STATE, "frozen", "can't quantise");
        }
        changes += one;
    }
    free(listed);
    return host->graph_set_meta(g, "quantize", NULL) ? CNR_E_MEMORY : changes;
}

static const cnr_rewrite rewrite = {.size = sizeof rewrite, .order = 50, .name = "frozen-quantise",
                                    .summary = "whole numbers, by metadata", .apply = apply};

static cnr_status init(const cnr_host *table, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = table;
    return host->add(registrar, CNR_KIND_REWRITE, &rewrite);
}

static const cnr_plugin plugin = {.size = sizeof plugin, .magic = CNR_PLUGIN_MAGIC, .abi = CNR_ABI,
                                  .signature = CNR_SIGNATURE, .name = "frozen-quantise",
                                  .version = "1", .summary = "of 1.1", .licence = "MIT",
                                  .init = init};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
