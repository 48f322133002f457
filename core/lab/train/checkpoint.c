/* Training on file, so that whoever was killed goes on where it was, to the same end bit for bit.
 *
 *   mark  key  state  epochs' rows  { data  best  memory } of each weight  sha256 of all that
 *
 * The order of samples and their variations are not in it: they follow from the options' seeds. The
 * key is made of all that the end depends on, so that no training goes on from another's file. */
#include "train/train.h"
#include <unistd.h>

static const char mark[8] = "CNRTRN2\n";

/* One function walks the fields for reading and for writing. */
typedef struct stream {
    cnri_writer *to; /* where to write; NULL: the checkpoint is read */
    const char *at, *end;
    cnri_sha256 sum;
    cnr_status status;
    cnr_error *err;
} stream;

/* Writes data to the checkpoint, or reads it from there; s->status is the first error. */
static void pass(stream *s, void *data, uint64_t bytes) {
    if (s->status) return;
    if (s->to) {
        cnri_sha256_add(&s->sum, data, bytes);
        s->status = cnri_write(s->to, data, bytes, s->err);
    } else if ((uint64_t)(s->end - s->at) < bytes) {
        s->status = CNR_E_FORMAT;
    } else {
        memcpy(data, s->at, (size_t)bytes);
        s->at += bytes;
    }
}

/* Writes or reads the rows of the curves. */
static void pass_rows(stream *s, cnri_train_rows *rows) {
    int64_t n = rows->n;
    pass(s, &n, sizeof n);
    for (int64_t i = 0; i < n && !s->status; i++) {
        cnri_train_row *row = s->to ? &rows->at[i] : cnri_push(rows);
        if (!row) s->status = cnri_fail(s->err, CNR_E_MEMORY, "checkpoint", "out of memory");
        else pass(s, row, sizeof *row);
    }
}

/* Writes or reads all weights, the best ones and the optimiser's memories. */
static void pass_weights(stream *s, cnri_trainer *t) {
    for (int32_t i = 0; i < t->weights.n; i++) {
        cnri_trained *w = &t->weights.at[i];
        const uint64_t bytes = (uint64_t)w->n * sizeof(float);
        pass(s, w->data, bytes);
        pass(s, w->best, bytes);
        for (int32_t k = 0; k < w->n_memories; k++) pass(s, w->memory[k], bytes);
    }
}

/* ---- the key ---- */

/* Adds a text with its end to a digest. */
static void add_text(cnri_sha256 *sum, const char *text) {
    cnri_sha256_add(sum, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* Adds all options that change the course of a training, and its batch, to a digest. */
static void add_options(cnri_sha256 *sum, const cnri_train_options *o, int64_t batch) {
    const double numbers[] = {o->rate,  o->momentum, o->nesterov, o->decay, o->beta1,
                              o->beta2, o->epsilon,  o->gamma,    o->power, o->validation};
    const int64_t whole[] = {batch,
                             o->epochs,
                             o->limit,
                             o->policy,
                             (int64_t)o->validation_seed,
                             (int64_t)o->seed,
                             o->schedule != NULL,
                             o->hook != NULL,
                             o->wrap != NULL};
    cnri_sha256_add(sum, numbers, sizeof numbers);
    cnri_sha256_add(sum, whole, sizeof whole);
    add_text(sum, o->rate_epochs);
    add_text(sum, o->loss);
    add_text(sum, o->keep_zeros);
    add_text(sum, o->best_by);
    if (o->local_statistics) add_text(sum, "local statistics");
    for (int32_t i = 0; o->metrics && i < o->metrics->n; i++)
        add_text(sum, o->metrics->at[i]->name);
    for (int32_t i = 0; i < o->n_masked; i++) add_text(sum, o->masked[i]);
}

void cnri_checkpoint_key(const cnri_trainer *t, const cnri_samples *samples, uint8_t key[32]) {
    const cnri_augment *a = &samples->augment;
    const double varied[] = {a->shift, a->flip, a->crop, a->turn, a->colour};
    cnri_sha256 sum;
    cnri_sha256_begin(&sum);
    add_options(&sum, &t->options, t->batch);
    cnri_sha256_add(&sum, t->loss_digest, sizeof t->loss_digest);
    add_text(&sum, t->optimizer ? t->optimizer->name : NULL);
    cnri_sha256_add(&sum, t->own_digest, sizeof t->own_digest);
    add_text(&sum, samples->source->name);
    cnri_sha256_add(&sum, &samples->info.count, sizeof samples->info.count);
    cnri_sha256_add(&sum, varied, sizeof varied);
    for (int32_t i = 0; i < t->net->nodes.n; i++)
        add_text(&sum, t->net->nodes.at[i]->view.desc->name);
    /* The weights that stay also decide the result. */
    for (cnr_value v = 0; v < t->net->values.n; v++) {
        const cnri_value *value = &t->net->values.at[v];
        if (value->producer >= 0 || value->is_input || !value->uses || !value->type->data) continue;
        add_text(&sum, value->name);
        cnri_sha256_add(&sum, value->type->data, value->type->bytes);
    }
    for (int32_t i = 0; i < t->weights.n; i++) {
        add_text(&sum, t->weights.at[i].name);
        cnri_sha256_add(&sum, t->weights.at[i].data, (uint64_t)t->weights.at[i].n * sizeof(float));
    }
    cnri_sha256_end(&sum, key);
}

/* ---- writing ---- */

/* Brings weights and memories from the device to the host. */
static cnr_status fetch(cnri_trainer *t, cnr_error *err) {
    cnr_status status = cnri_trainer_fetch(t, err);
    for (int32_t i = 0; i < t->weights.n && !status; i++)
        for (int32_t k = 0; k < t->weights.at[i].n_memories && !status; k++)
            status = cnri_plan_fetch(t->plan, t->weights.at[i].memories[k], err);
    return status;
}

cnr_status cnri_checkpoint_save(cnri_trainer *t, const char *path, uint8_t key[32],
                                cnri_train_state *state, cnri_train_rows *rows, cnr_error *err) {
    cnri_writer w;
    uint8_t digest[32];
    char own[sizeof mark];
    cnr_status status = fetch(t, err);
    if (!status) status = cnri_write_begin(&w, path, 0, err);
    if (status) return status;
    stream s = {.to = &w, .err = err};
    cnri_sha256_begin(&s.sum);
    memcpy(own, mark, sizeof own);
    pass(&s, own, sizeof own);
    pass(&s, key, 32);
    pass(&s, state, sizeof *state);
    pass_rows(&s, rows);
    pass_weights(&s, t);
    cnri_sha256_end(&s.sum, digest);
    if (!s.status) s.status = cnri_write(&w, digest, sizeof digest, err);
    if (!s.status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return s.status;
}

/* ---- reading ---- */

/* Prepares weights and optimiser memories, changed on the host, for the device again. */
static cnr_status give_back(cnri_trainer *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < t->weights.n && !status; i++) {
        const cnri_trained *w = &t->weights.at[i];
        status = cnri_residency_renew(t->plan, w->value, err);
        for (int32_t k = 0; k < w->n_memories && !status; k++)
            status = cnri_residency_renew(t->plan, w->memories[k], err);
    }
    t->away = false;
    t->stale = true;
    return status;
}

/* True if the checkpoint has its mark and its digest is right. */
static bool is_whole(const char *data, size_t n) {
    uint8_t digest[32];
    if (n < sizeof mark + 64 || memcmp(data, mark, sizeof mark) != 0) return false;
    cnri_sha256_of(data, n - 32, digest);
    return memcmp(digest, data + n - 32, 32) == 0;
}

/* Reads a checkpoint into weights, *state and rows: CNR_E_FORMAT if it is not whole or has other
 * weights, CNR_E_STATE if its key is another training's. */
static cnr_status read_whole(cnri_trainer *t, const char *path, const uint8_t key[32],
                             cnri_train_state *state, cnri_train_rows *rows, cnr_error *err) {
    char *data;
    size_t n;
    cnr_status status = cnri_read_file(path, UINT64_C(1) << 40, &data, &n, err);
    if (status) return status;
    const bool whole = is_whole(data, n), ours = whole && memcmp(data + sizeof mark, key, 32) == 0;
    if (!whole) status = cnri_fail(err, CNR_E_FORMAT, path, "is no whole checkpoint of a training");
    else if (!ours)
        status = cnri_fail(err, CNR_E_STATE, path,
                           "is the checkpoint of another training (its options, "
                           "data or first weights differ); remove it, or name another file");
    if (!status) {
        stream s = {.at = data + sizeof mark + 32, .end = data + n - 32, .err = err};
        pass(&s, state, sizeof *state);
        pass_rows(&s, rows);
        pass_weights(&s, t);
        status = s.status || s.at == s.end ? s.status : CNR_E_FORMAT;
        if (status == CNR_E_FORMAT)
            cnri_fail(err, status, path, "holds other weights than the net has");
    }
    cnri_free(data);
    return status;
}

/* Sends state, rows and weights that rank 0 read to all ranks. */
static cnr_status share(cnri_trainer *t, cnri_train_state *state, cnri_train_rows *rows,
                        cnr_error *err) {
    int64_t n = rows->n;
    cnr_status status = cnri_group_broadcast(state, sizeof *state, err);
    if (!status) status = cnri_group_broadcast(&n, sizeof n, err);
    while (!status && rows->n < n)
        if (!cnri_push(rows)) status = cnri_out_of_memory(err, "checkpoint");
    if (!status) status = cnri_group_broadcast(rows->at, (uint64_t)n * sizeof *rows->at, err);
    for (int32_t i = 0; i < t->weights.n && !status; i++) {
        const cnri_trained *w = &t->weights.at[i];
        const uint64_t bytes = (uint64_t)w->n * sizeof(float);
        status = cnri_group_broadcast(w->data, bytes, err);
        if (!status) status = cnri_group_broadcast(w->best, bytes, err);
        for (int32_t k = 0; k < w->n_memories && !status; k++)
            status = cnri_group_broadcast(w->memory[k], bytes, err);
    }
    return status;
}

cnr_status cnri_checkpoint_load(cnri_trainer *t, const char *path, const uint8_t key[32],
                                cnri_train_state *state, cnri_train_rows *rows, cnr_error *err) {
    int32_t there = cnri_group_rank() == 0 && access(path, F_OK) == 0;
    cnr_status status = there ? read_whole(t, path, key, state, rows, err) : CNR_OK;
    if (!status) status = cnri_group_broadcast(&there, sizeof there, err);
    if (!status && there) status = share(t, state, rows, err);
    return status || !there ? status : give_back(t, err);
}

void cnri_checkpoint_drop(const char *path) { (void)unlink(path); }
