/* Training on several processes: each computes a part of the batch, and they sum their
 * gradients. */
#include "train/train.h"
#include <stdlib.h>

/* Bytes of a bucket of gradients that is sent as one message. Starting a message takes about 20
 * us between processes of one machine and 50 us between machines; a bucket of 1 MiB takes 100 us
 * and more. So it can be sent while further layers are computed, and the start costs little. */
enum { BUCKET_BYTES = 1 << 20, BUCKET_INPUTS = 64 };

/* A gradient, and the node after which it is ready. */
typedef struct ready {
    int32_t producer, index; /* index: in cnri_backward.weights */
} ready;

/* Compares the producing nodes of two gradients, then their order, for qsort. */
static int by_producer(const void *a, const void *b) {
    const ready *x = a, *y = b;
    return x->producer != y->producer ? (x->producer > y->producer) - (x->producer < y->producer)
                                      : (x->index > y->index) - (x->index < y->index);
}

/* Number of elements of a gradient. */
static int64_t elements(const cnr_graph *g, const cnri_backward *b, const ready *r) {
    return cnr_count(cnri_graph_type(g, b->weights.at[r->index].gradient));
}

/* The number of gradients, counted back from the last of the first n, that form the last bucket.
 * A large one is sent alone and waits for no other. */
static int32_t last_bucket(const cnr_graph *g, const cnri_backward *b, const ready *all,
                           int32_t n) {
    int64_t bytes = 0;
    int32_t taken = 0;
    while (taken < n && taken < BUCKET_INPUTS) {
        bytes += elements(g, b, &all[n - taken - 1]) * (int64_t)sizeof(float);
        if (taken > 0 && bytes > BUCKET_BYTES) break;
        taken++;
    }
    return taken;
}

/* Replaces the gradient by its part of the bucket's sum. */
static cnr_status take(cnr_graph *g, cnri_gradient *at, cnr_value sum, int64_t offset) {
    const cnr_tensor *type = cnri_graph_type(g, at->gradient);
    const cnr_attr attrs[] =
        {{.name = "offset", .type = CNR_ATTR_INT, .set = 1, .i = offset},
         {.name = "dims", .type = CNR_ATTR_INTS, .set = 1, .n = type->rank, .ints = type->dim}};
    const cnr_attr *const list[] = {&attrs[0], &attrs[1]};
    return cnri_graph_node(g, cnri_group_descriptor()->sum_wait_op, NULL, NULL, &sum, 1, list, 2,
                           &at->gradient, 1);
}

/* Adds a node, right behind that of the bucket's last gradient, which sums n gradients over the
 * ranks; *sum: its output, one list. */
static cnr_status begin(const cnri_trainer *t, cnr_graph *g, const cnri_backward *b,
                        const ready *bucket, int32_t n, cnr_value *sum) {
    const cnr_attr scale = {.name = "multiplier",
                            .type = CNR_ATTR_FLOAT,
                            .set = 1,
                            .f = (double)t->options.batch / (double)t->batch};
    const cnr_attr *const list[] = {&scale};
    cnr_value in[BUCKET_INPUTS];
    for (int32_t i = 0; i < n; i++) in[i] = b->weights.at[bucket[i].index].gradient;
    cnri_graph_insert_before(g, bucket[n - 1].producer + 1);
    const cnr_status status = cnri_graph_node(g, cnri_group_descriptor()->sum_begin_op, NULL, NULL,
                                              in, n, list, 1, sum, 1);
    cnri_graph_insert_before(g, -1);
    return status;
}

/* Sums a group of gradients over all ranks with one message. */
static cnr_status share_bucket(const cnri_trainer *t, cnr_graph *g, cnri_backward *b,
                               const ready *bucket, int32_t n) {
    cnr_value sum = -1;
    int64_t offset = 0;
    cnr_status status = begin(t, g, b, bucket, n, &sum);
    for (int32_t i = 0; i < n && status == CNR_OK; i++) {
        const int64_t count = elements(g, b, &bucket[i]);
        status = take(g, &b->weights.at[bucket[i].index], sum, offset);
        offset += count;
    }
    return status;
}

cnr_status cnri_train_share(cnri_trainer *t, cnr_graph *g, cnri_backward *b, cnr_error *err) {
    int32_t n = b->weights.n;
    if (t->batch == t->options.batch || n == 0) return CNR_OK;
    ready *all = cnri_alloc((size_t)n * sizeof *all);
    cnr_status status = all ? CNR_OK : cnri_out_of_memory(err, g->name);
    for (int32_t i = 0; all && i < n; i++)
        all[i] = (ready){g->values.at[b->weights.at[i].gradient].producer, i};
    if (all) qsort(all, (size_t)n, sizeof *all, by_producer);
    /* goes from the last one back, so that the numbers of earlier nodes stay */
    while (status == CNR_OK && n > 0) {
        const int32_t taken = last_bucket(g, b, all, n);
        n -= taken;
        status = share_bucket(t, g, b, all + n, taken);
    }
    cnri_free(all);
    return g->problems.n > 0 || g->out_of_memory ? cnri_graph_status(g, false, err) : status;
}

cnr_status cnri_train_share_statistics(cnri_trainer *t, cnr_error *err) {
    const float part = 1.0f / (float)cnri_group_ranks();
    if (t->batch == t->options.batch) return CNR_OK;
    cnr_status status = cnri_trainer_fetch(t, err);
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++) {
        const cnri_trained *w = &t->weights.at[i];
        if (w->learned) continue;
        for (int64_t k = 0; k < w->n; k++) w->data[k] *= part;
        status = cnri_group_sum_floats(w->data, w->n, err);
        if (status == CNR_OK) status = cnri_residency_renew(t->plan, w->value, err);
        t->stale = true;
    }
    return status;
}

cnr_status cnri_train_share_check(const uint8_t key[32], cnr_error *err) {
    uint8_t first[32];
    memcpy(first, key, sizeof first);
    const cnr_status status = cnri_group_broadcast(first, sizeof first, err);
    if (status || memcmp(first, key, sizeof first) == 0) return status;
    return cnri_fail(err, CNR_E_STATE, "group",
                     "process %d has another net, data or options than process 0",
                     (int)cnri_group_rank());
}
