/* Layers that other plugins import (cnr_import_row): their inputs are the bottoms, then the blobs.
 * The schema does not have such a layer's parameters, so it gets no attributes. */
#include "layer.h"

#include <stdio.h>

/* Converts a layer, its blobs as further inputs, by another plugin's import row; what does not fit
 * is noted as a problem. */
void caffe_theirs(caffe_job *j) {
    enum { MOST = 16 };
    cnr_value in[CAFFE_MAX_NAMES + MOST], out[CAFFE_MAX_NAMES];
    cnr_error err = CNR_ERROR_INIT;
    int32_t n = 0;
    if (j->n_blobs > MOST) return caffe_problem(j, "it has more than 16 blobs");
    for (; n < j->n_in; n++) in[n] = j->in[n];
    for (size_t i = 0; i < j->n_blobs; i++) {
        char suffix[16];
        snprintf(suffix, sizeof suffix, ".blob%d", (int)i);
        in[n++] = caffe_blob(j, i, suffix, NULL, -1, 1);
    }
    if (j->failed) return;
    const int32_t n_out = (int32_t)j->layer->n_top;
    for (int32_t i = 0; i < n_out && i < CAFFE_MAX_NAMES; i++) out[i] = -1;
    const cnr_import_node node = {.size = sizeof node,
                                  .format = "caffe",
                                  .type = j->layer->type,
                                  .name = j->name,
                                  .where = j->net->b.path,
                                  .n_inputs = n,
                                  .n_outputs = n_out,
                                  .inputs = in};
    const cnr_status status = n_out > CAFFE_MAX_NAMES
                                  ? CNR_E_LIMIT
                                  : imp_host->import_node(j->net->b.graph, &node, out, &err);
    if (status) return caffe_problem(j, err.text);
    for (int32_t i = 0; i < n_out; i++) caffe_give(j, (size_t)i, out[i]);
}
