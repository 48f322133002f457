/* Weights that kernels read as they are, under a memory bound: where they lie in a mapped file,
 * their pages are counted like blobs. Some stay; of the others a step's pages are released once it
 * has run, and a step whose weight is large runs piece by piece. */
#include "plan/planner.h"
#include <sys/mman.h>
#include <unistd.h>

/* Bytes read at a time: with more, the threads wait for each other less often. */
static uint64_t piece_bytes(const cnr_plan *plan) {
    const uint64_t bound = plan->memory_bound, used = plan->arena_bytes;
    const uint64_t room = bound > used ? bound - used : 0;
    return cnr_max((uint64_t)1 << 20, cnr_min((uint64_t)8 << 20, room / 4));
}

/* The unprepared weight that an input of a step reads; NULL: it reads none. */
static const cnri_raw *raw_of(const cnr_plan *plan, const cnri_step *s, int32_t input) {
    const cnr_value v = s->in[input] < 0 ? -1 : plan->homes.at[s->in[input]].value;
    if (v < 0 || (s->blob >= 0 && cnri_step_prepares(s, input))) return NULL;
    for (int32_t i = 0; i < plan->raw.n; i++)
        if (plan->raw.at[i].value == v) return &plan->raw.at[i];
    return NULL;
}

/* Rows of a weight are rows of the output, if there are as many: pieces of one are pieces of the
 * other. A wrong guess only reads pages twice. */
static void cut(cnri_step *s, const cnr_tensor *weight, uint64_t most) {
    const cnr_tensor *y = s->view.outputs[0];
    const int64_t rows = weight->rank > 1 ? weight->dim[0] : 0;
    const uint64_t bytes = cnr_dense_bytes(weight);
    if (!s->kernel || s->range_axis >= 0 || rows <= 0 || bytes <= most || s->view.n_outputs != 1)
        return;
    for (int32_t axis = y->rank - 1; axis >= 0 && !s->piece; axis--)
        if (s->ranges >> axis & 1 && y->dim[axis] == rows) {
            s->piece_axis = axis;
            s->piece = cnr_max(64, (int64_t)(most / (bytes / (uint64_t)rows + 1)) / 64 * 64);
        }
    if (s->piece >= rows) s->piece = 0;
}

/* Bytes of a weight for each row of the output; 0: it is not cut as the step is. */
static uint64_t row_bytes(const cnri_step *s, const cnr_tensor *t) {
    const bool cut = s->piece && t->rank > 0 && t->dim[0] > 0 &&
                     t->dim[0] == s->view.outputs[0]->dim[s->piece_axis];
    return cut ? t->bytes / (uint64_t)t->dim[0] : 0;
}

/* Notes that a step reads a weight unprepared, and in pieces of how many bytes that can be done. */
static cnr_status add(cnr_plan *plan, cnr_value v, cnri_step *s, cnr_error *err) {
    cnri_raw *raw = NULL;
    for (int32_t i = 0; i < plan->raw.n; i++)
        if (plan->raw.at[i].value == v) raw = &plan->raw.at[i];
    if (!raw) {
        if (!(raw = cnri_push(&plan->raw))) return cnri_no_memory(err);
        *raw = (cnri_raw){.value = v, .step = (int32_t)(s - plan->steps.at)};
        raw->bytes = plan->graph->values.at[v].type->bytes;
    }
    cut(s, plan->graph->values.at[v].type, piece_bytes(plan));
    const uint64_t row = row_bytes(s, plan->graph->values.at[v].type);
    const uint64_t one = row ? row * (uint64_t)s->piece : raw->bytes;
    if (one > raw->passing) raw->passing = one;
    return CNR_OK;
}

cnr_status cnri_raw_find(cnr_plan *plan, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (cnr_value v = 0; v < plan->graph->values.n; v++) {
        cnri_seal *seal = plan->graph->values.at[v].seal;
        if (seal && cnri_value_in_file(plan->graph, v)) atomic_store(&seal->releases, true);
    }
    for (int32_t i = 0; i < plan->steps.n && !status; i++) {
        cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL) continue;
        for (int32_t k = 0; k < s->n_in && !status; k++) {
            const cnr_value v = s->in[k] < 0 ? -1 : plan->homes.at[s->in[k]].value;
            if (v < 0 || (s->blob >= 0 && cnri_step_prepares(s, k))) continue;
            if (cnri_value_in_file(plan->graph, v)) status = add(plan, v, s, err);
        }
    }
    return status;
}

/* Advises the system on whole pages: the one at the end holds the begin of what is read next. What
 * is in the page cache need not be read ahead: asking for it again would take time, too. */
static void advise(const cnr_tensor *t, uint64_t from, uint64_t to, int advice) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)t->data + from) / page * page;
    const uintptr_t last = ((uintptr_t)t->data + to) / page * page;
    unsigned char here[2] = {0};
    if (last <= first) return;
    if (advice == MADV_WILLNEED) {
        (void)mincore((void *)first, page, &here[0]);
        (void)mincore((void *)(last - page), page, &here[1]);
    }
    if (!(here[0] & here[1] & 1)) (void)madvise((void *)first, last - first, advice);
}

void cnri_raw_release(const cnr_plan *plan, const cnri_step *s, int64_t begin, int64_t end) {
    for (int32_t k = 0; k < s->n_in && plan->raw.n; k++) {
        const cnri_raw *raw = raw_of(plan, s, k);
        if (!raw || raw->stays) continue;
        const cnr_tensor *t = plan->graph->values.at[raw->value].type;
        const uint64_t row = row_bytes(s, t);
        const uint64_t last = end > 0 && row ? (uint64_t)end * row : raw->bytes;
        advise(t, (uint64_t)begin * row, last, MADV_DONTNEED);
        if (last < raw->bytes)
            advise(t, last, cnr_min(raw->bytes, last + piece_bytes(plan)), MADV_WILLNEED);
    }
}
