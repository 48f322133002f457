/* Cross-layer equalisation: rewrites are told by metadata what channels were seen to hold, as they
 * are told ranges by metadata that are older than ABI 1.2: "channels.VALUE" = "largest,largest,..".
 */
#include "work/calibrate.h"
#include <math.h>

enum { PICTURES = 16 };
static const char prefix[] = "channels.";

/* The largest number of each channel of each value. */
typedef struct channels {
    cnri_calibration *c;
    float **largest; /* by value of the net, then channel; NULL: not seen */
} channels;

/* Tap: finds the largest numbers of a value's channels. */
static void tap_largest(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    const channels *all = arg;
    const cnr_value v = cnri_tapped_value(all->c->net, node, output);
    if (v < 0 || value->dtype != CNR_f32 || value->rank < 3) return;
    const int64_t n = cnr_count(value), inner = cnr_span(value, 2, value->rank);
    const int64_t width = value->dim[1];
    const cnr_tensor *type = all->c->net->values.at[v].type;
    if (type->rank != value->rank || type->dim[1] != width)
        return; /* the number of channels is not the same for all pictures */
    float **to = &all->largest[v];
    if (!*to) *to = cnri_alloc_zero(((size_t)width + 1) * sizeof **to);
    if (!*to) all->c->failed = CNR_E_MEMORY;
    for (int64_t i = 0; *to && i < n; i++) {
        const float size = fabsf(((const float *)value->data)[i]);
        float *most = *to + i / inner % width;
        if (isfinite(size) && size > *most) *most = size;
    }
}

/* Writes the largest numbers of a value's channels into the metadata, for the rewrite. */
static cnr_status tell(cnr_graph *net, cnr_value v, const float *largest) {
    cnri_text text = {0};
    char number[64];
    for (int64_t c = 0; c < net->values.at[v].type->dim[1]; c++) {
        cnri_print_double(number, sizeof number, (double)largest[c]);
        cnri_text_add(&text, "%s%s", c ? "," : "", number);
    }
    char *key = cnri_format("%s%s", prefix, net->values.at[v].name);
    cnr_status status = key && text.at && !text.failed ? CNR_OK : CNR_E_MEMORY;
    if (!status) status = cnri_graph_set_meta(net, key, text.at);
    cnri_free(key);
    cnri_text_free(&text);
    return status;
}

/* Removes the metadata of equalisation from the net, which no rewrite used. */
static void forget(cnr_graph *net) {
    for (int32_t i = net->meta.n - 1; i >= 0; i--) {
        if (strncmp(net->meta.keys[i], prefix, sizeof prefix - 1) != 0) continue;
        char *key = cnri_strdup(net->meta.keys[i]);
        if (key) cnri_graph_set_meta(net, key, NULL);
        cnri_free(key);
    }
}

cnr_status cnri_equalise(cnri_calibration *c, cnr_graph *net, cnr_error *err) {
    const int32_t n = net->values.n;
    channels all = {c, cnri_alloc_zero(((size_t)n + 1) * sizeof *all.largest)};
    cnr_status status = all.largest ? cnri_calibration_watch(c, PICTURES, tap_largest, &all, err)
                                    : cnri_out_of_memory(err, "quantize");
    for (cnr_value v = 0; v < n && !status; v++)
        if (all.largest[v] && tell(net, v, all.largest[v]) != CNR_OK)
            status = cnri_out_of_memory(err, "quantize");
    /* Equalising reads weights, so late ones are computed now. */
    for (cnr_value v = 0; v < n && !status; v++) cnri_late_keep(net, v);
    if (!status) status = cnri_graph_verify_weights(net, NULL, false, 0, err);
    if (!status) status = cnri_graph_rewrite(net, c->how.no_rewrite, NULL, 0, err);
    forget(net);
    for (cnr_value v = 0; all.largest && v < n; v++) cnri_free(all.largest[v]);
    cnri_free(all.largest);
    return status;
}
