/* Late weights: computed from other weights, channel by channel, when they are read, so that a
 * plan that packs them never holds all of them. Also releases pages of weights in mapped files. */
#include "graph/parts.h"

void cnri_late_free(cnri_late *late) {
    if (!late) return;
    cnri_free(late->scales);
    cnri_free(late);
}

bool cnri_late_add(cnr_graph *g, cnr_value value, cnr_value from, int32_t axis, const float *scales,
                   int64_t channels) {
    /* Then both scales apply, one after the other. */
    const cnri_late *before = g->values.at[from].late;
    const int32_t n = before ? before->n : 0;
    const size_t row = (size_t)channels;
    cnri_late *late = cnri_alloc_zero(sizeof *late);
    float *all = late ? cnri_alloc(((size_t)n + 1) * row * sizeof *all) : NULL;
    if (!all) {
        cnri_free(late);
        return false;
    }
    if (before) memcpy(all, before->scales, (size_t)n * row * sizeof *all);
    memcpy(all + (size_t)n * row, scales, row * sizeof *all);
    *late = (cnri_late){.from = before ? before->from : from,
                        .axis = axis,
                        .n = n + 1,
                        .channels = channels,
                        .scales = all};
    g->values.at[value].late = late;
    return true;
}

/* Writes n elements times the factor `by` to `to`. */
static void scaled(const float *from, float by, int64_t n, float *to) {
    int64_t i = 0;
    /* A fixed length, which the compiler turns into vector instructions. */
    for (; i + 8 <= n; i += 8) {
        float part[8];
        for (int j = 0; j < 8; j++) part[j] = from[i + j] * by;
        memcpy(to + i, part, sizeof part);
    }
    for (; i < n; i++) to[i] = from[i] * by;
}

int64_t cnri_late_rows(const cnr_graph *g, cnr_value value) {
    const cnri_late *late = g->values.at[value].late;
    return cnr_span(g->values.at[value].type, 0, late->axis + 1);
}

void cnri_late_write(const cnr_graph *g, cnr_value value, int64_t row, float *to) {
    const cnri_late *late = g->values.at[value].late;
    const cnr_tensor *t = g->values.at[value].type;
    const int64_t n = cnr_span(t, late->axis + 1, t->rank), channel = row % late->channels;
    const float *from = (const float *)g->values.at[late->from].type->data + row * n;
    for (int32_t k = 0; k < late->n; k++, from = to + row * n)
        scaled(from, late->scales[k * late->channels + channel], n, to + row * n);
}

void cnri_late_keep(cnr_graph *g, cnr_value value) {
    cnri_value *v = value >= 0 ? &g->values.at[value] : NULL;
    if (!v || !v->late) return;
    const int64_t rows = cnri_late_rows(g, value);
    for (int64_t row = 0; row < rows; row++) cnri_late_write(g, value, row, v->type->data);
    cnri_late_free(v->late);
    v->late = NULL;
    v->was_late = true;
}

bool cnri_value_in_file(const cnr_graph *g, cnr_value value) {
    const cnri_value *v = &g->values.at[value];
    const cnri_mapping *file = g->backing;
    if (v->is_aside) return true;
    const uintptr_t begin = (uintptr_t)v->type->data;
    return file && !file->copied && v->borrowed && begin >= (uintptr_t)file->at &&
           begin - (uintptr_t)file->at <= file->bytes &&
           v->type->bytes <= file->bytes - (begin - (uintptr_t)file->at);
}

/* Gives the memory pages of a weight in a mapped file back to the system until they are read again.
 * A mapped file's pages are read again when they are wanted; whatever else holds data keeps it. */
void cnri_value_release_pages(const cnr_graph *g, cnr_value value) {
    const cnri_late *late = g->values.at[value].late;
    const cnr_value from = late ? late->from : value;
    const cnr_tensor *t = g->values.at[from].type;
    if (cnri_value_in_file(g, from)) cnri_release_pages(t->data, t->bytes);
}
