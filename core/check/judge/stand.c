/* A stand: runs an operator's reference on guarded memory in one way, and compares with the
 * whole node's results bit for bit. */
#include "judge/stand.h"
#include <cnnrun/cnnrun.h>
#include <math.h>

/* Adds: out of memory; returns false. */
static bool no_memory(cnri_text *why) {
    cnri_text_add(why, "out of memory");
    return false;
}

/* ---- the stand ---- */

/* Bytes of an element, at least 1. */
static uint32_t element_bytes(const cnr_tensor *t) {
    const uint32_t bits = cnr_dtype_bits(t->dtype);
    return bits > 8 ? bits / 8 : 1;
}

/* Frees the memories of all inputs, outputs and the workspace. */
void cnri_stand_close(cnri_stand *s) {
    for (int32_t i = 0; i < CNRI_CHECK_PORTS; i++) {
        cnri_fence_free(&s->in_at[i]);
        cnri_fence_free(&s->out_at[i]);
    }
    cnri_fence_free(&s->work);
}

/* Gives the outputs their types and largest shapes again. */
static void restore_types(cnri_stand *s) {
    for (int32_t i = 0; i < s->node.n_outputs; i++) {
        s->out[i] = s->c->out[i];
        memcpy(s->out[i].dim, s->c->most[i], sizeof s->c->most[i]);
    }
}

bool cnri_stand_open(cnri_stand *s, cnri_case *c, cnri_text *why) {
    bool good = true;
    memset(s, 0, sizeof *s);
    s->c = c;
    s->node = c->node;
    s->node.inputs = s->inputs;
    s->node.outputs = s->outputs;
    restore_types(s);
    for (int32_t i = 0; i < s->node.n_inputs && good; i++) {
        if (!c->inputs[i]) continue;
        s->in[i] = c->in[i];
        s->inputs[i] = &s->in[i];
        good = cnri_fence_make(&s->in_at[i], cnr_dense_bytes(&s->in[i]), element_bytes(&s->in[i]));
        s->in[i].data = s->in_at[i].data;
    }
    for (int32_t i = 0; i < s->node.n_outputs && good; i++) {
        s->outputs[i] = s->writable[i] = &s->out[i];
        good =
            cnri_fence_make(&s->out_at[i], cnr_dense_bytes(&s->out[i]), element_bytes(&s->out[i]));
        s->out[i].data = s->out_at[i].data;
    }
    const cnr_op *op = s->node.desc;
    const uint64_t work = CNRI_HAS(op, reference_workspace) ? op->reference_workspace(&c->node) : 0;
    s->works = work > 0;
    if (good && s->works) good = cnri_fence_make(&s->work, work, 64);
    return good ? true : no_memory(why);
}

/* Spoils the input outside the region, so that a reference that reads there gives other results. */
static void spoil(cnr_tensor *t, const cnr_tensor *from, const cnri_ask *a,
                  const cnr_input_range *r) {
    if (r->axis < 0 || r->axis >= t->rank) return;
    const int64_t n = cnr_count(t), inner = cnr_span(t, r->axis + 1, t->rank);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i / inner % t->dim[r->axis];
        if (at >= r->begin && at < r->end) continue;
        const double other = cnri_element(from->dtype, from->data, (i * 7 + 3) % n);
        const bool nan = a->spoil_with_nan && cnri_dtype_floats(t->dtype);
        cnri_element_set(t->dtype, t->data, i, nan ? NAN : other);
    }
}

void cnri_stand_fill(cnri_stand *s, const cnri_ask *a) {
    restore_types(s);
    for (int32_t i = 0; i < s->node.n_inputs; i++) {
        if (!s->inputs[i]) continue;
        cnri_fence_fill(&s->in_at[i], s->c->in[i].data, 0);
        if (!a->regions) continue;
        spoil(&s->in[i], &s->c->in[i], a, &a->regions[i]);
        memcpy(s->in_at[i].before, s->in_at[i].data, (size_t)s->in_at[i].bytes);
    }
    for (int32_t i = 0; i < s->node.n_outputs; i++) {
        cnri_fence_fill(&s->out_at[i], NULL, a->poison);
        s->out[i].data =
            a->in_place >= 0 && i == a->output ? s->in_at[a->in_place].data : s->out_at[i].data;
        s->out[i].bytes = s->out_at[i].bytes;
    }
    if (s->works) cnri_fence_fill(&s->work, NULL, a->poison);
}

bool cnri_stand_call(cnri_stand *s, const cnri_ask *a, cnri_text *why) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_mem mem = {.handle = s->work.data, .bytes = s->work.bytes};
    const cnr_run run = {.size = sizeof run,
                         .range_axis = a->axis,
                         .range_begin = a->begin,
                         .range_end = a->end,
                         .node = &s->node,
                         .outputs = s->writable,
                         .workspace = s->works ? &mem : NULL,
                         .workspace_data = s->works ? s->work.data : NULL};
    const cnr_status status = s->node.desc->reference(&run, &err);
    if (status)
        cnri_text_add(why, "the reference fails: %s",
                      err.text[0] ? err.text : cnr_status_text(status));
    return status == CNR_OK;
}

/* True if nothing but outputs and workspace was written. */
bool cnri_stand_untouched(const cnri_stand *s, const cnri_ask *a, cnri_text *why) {
    char name[32];
    for (int32_t i = 0; i < s->node.n_inputs; i++) {
        snprintf(name, sizeof name, "input %d", (int)i);
        if (s->inputs[i] && !cnri_fence_check(&s->in_at[i], i != a->in_place, name, why))
            return false;
    }
    for (int32_t i = 0; i < s->node.n_outputs; i++) {
        snprintf(name, sizeof name, "output %d", (int)i);
        if (!cnri_fence_check(&s->out_at[i], a->in_place >= 0 && i == a->output, name, why))
            return false;
    }
    return !s->works || cnri_fence_check(&s->work, false, "the workspace", why);
}

/* ---- the very same numbers ---- */

/* Appends the position of element i, such as "[0,3,1]", or "the scalar". */
static void element_text(const cnr_tensor *t, int64_t i, cnri_text *out) {
    int64_t at[CNR_MAX_RANK];
    for (int32_t a = t->rank - 1; a >= 0; a--) {
        at[a] = i % t->dim[a];
        i /= t->dim[a];
    }
    for (int32_t a = 0; a < t->rank; a++)
        cnri_text_add(out, "%s%lld", a ? "," : "[", (long long)at[a]);
    cnri_text_add(out, t->rank ? "]" : "the scalar");
}

/* True if an output equals the whole node's within its range and, with `keeps`, its old contents
 * outside. */
bool cnri_stand_same(const cnri_stand *s, int32_t output, const cnri_ask *a, bool keeps,
                     cnri_text *why) {
    const cnr_tensor *want = &s->c->out[output], *got = &s->out[output];
    if (!cnr_same_shape(want, got)) {
        cnri_text_add(why, "output %d has another shape than before", (int)output);
        return false;
    }
    const int64_t n = cnr_count(want);
    const int64_t inner = a->axis < 0 ? 1 : cnr_span(want, a->axis + 1, want->rank);
    const size_t size = element_bytes(want);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = a->axis < 0 ? 0 : i / inner % want->dim[a->axis];
        if (a->axis >= 0 && (at < a->begin || at >= a->end)) {
            for (size_t k = 0; keeps && k < size; k++)
                if (((const uint8_t *)got->data)[(size_t)i * size + k] != a->poison) {
                    cnri_text_add(why, "output %d at ", (int)output);
                    element_text(want, i, why);
                    cnri_text_add(why, " was written, which is outside the range");
                    return false;
                }
            continue;
        }
        const double w = cnri_element(want->dtype, want->data, i);
        const double g = cnri_element(got->dtype, got->data, i);
        if (w == g || (isnan(w) && isnan(g))) continue;
        cnri_text_add(why, "output %d at ", (int)output);
        element_text(want, i, why);
        cnri_text_add(why, ": got %.9g, the whole gave %.9g", g, w);
        return false;
    }
    return true;
}
