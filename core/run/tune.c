/* Timing of kernels for the record that planning goes by, and where the record is kept. */
#include "core/run/run.h"
#include "core/store/store.h"
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 9, MOST_RECORD = 64 << 20 };
static const char record_name[] = "tuning.jsonl";

/* ---- the record's file ---- */

cnr_status cnri_tuning_load(const char *folder, cnri_tuning *out, uint8_t print[16],
                            cnr_error *err) {
    char *path = cnri_path_join(folder, record_name), *text = NULL;
    size_t bytes = 0;
    memset(print, 0, 16);
    if (!path) return cnri_fail(err, CNR_E_MEMORY, folder, "out of memory");
    cnr_status status = CNR_OK;
    if (access(path, F_OK) == 0) status = cnri_read_file(path, MOST_RECORD, &text, &bytes, err);
    if (!status && text) status = cnri_tuning_parse(out, text, err);
    if (!status && text) cnri_fingerprint(text, bytes, print);
    cnri_free(text);
    cnri_free(path);
    return status;
}

cnr_status cnri_tuning_save(const char *folder, const cnri_tuning *t, cnr_error *err) {
    char *path = cnri_path_join(folder, record_name);
    cnri_text text = {0};
    cnri_writer w;
    cnri_text_add(&text, "%s", "");
    cnri_tuning_print(t, &text);
    cnr_status status = path && !text.failed
                            ? cnri_cache_folder(folder, err)
                            : cnri_fail(err, CNR_E_MEMORY, folder, "out of memory");
    if (!status) status = cnri_write_begin(&w, path, err);
    if (!status && (status = cnri_write(&w, text.at, text.n, err)) != CNR_OK)
        cnri_write_abandon(&w);
    else if (!status) status = cnri_write_commit(&w, err);
    cnri_text_free(&text);
    cnri_free(path);
    return status;
}

/* ---- one kernel on the segment ---- */

typedef struct trial {
    cnr_plan *plan;
    cnr_session *session;
    uint64_t begun, ns[ROUNDS], sum; /* sum: of the run under way */
    int32_t rounds;
} trial;

/* Only what computes counts: what layouts cost depends on the neighbours, whom planning knows. */
static void hear(void *arg, const cnri_event *e) {
    trial *t = arg;
    if (e->kind == CNRI_EVENT_STEP_BEGIN) t->begun = e->now_ns;
    if (e->kind == CNRI_EVENT_STEP_END && e->plan->steps.at[e->step].kind == CNRI_STEP_KERNEL)
        t->sum += e->now_ns - t->begun;
}

static cnr_status put_inputs(trial *t, const cnr_graph *g, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < g->inputs.n && !status; i++) {
        cnr_tensor in = *g->values.at[g->inputs.at[i]].type;
        in.bytes = cnr_dense_bytes(&in);
        in.data = cnri_alloc_zero((size_t)in.bytes + 1);
        if (!in.data) return cnri_fail(err, CNR_E_MEMORY, "tune", "out of memory");
        for (int64_t k = 0; in.dtype == CNR_f32 && k < cnr_count(&in); k++)
            ((float *)in.data)[k] = (float)(k * 37 % 101) * 0.01f;
        status = cnr_session_set_input(t->session, i, &in, err);
        cnri_free(in.data);
    }
    return status;
}

/* *takes: whether the kernel would have the node at all. */
static cnr_status begin(trial *t, cnri_devices *set, const cnr_graph *g, const char *device,
                        const cnr_kernel *kernel, bool *takes, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    char *word = cnri_format("%s=%s", g->nodes.at[0]->view.desc->name, kernel->name);
    const char *const words[] = {word, NULL};
    const cnri_plan_options options = {.device = device, .kernels = words};
    const cnr_tensor **types = cnri_alloc((size_t)(g->inputs.n + 1) * sizeof *types);
    cnr_status status =
        word && types ? CNR_OK : cnri_fail(err, CNR_E_MEMORY, "tune", "out of memory");
    *takes = false;
    for (int32_t i = 0; i < g->inputs.n && types; i++)
        types[i] = g->values.at[g->inputs.at[i]].type;
    if (!status) {
        *takes = !cnri_plan_make(g, set, &options, types, g->inputs.n, &t->plan, &why);
        if (why.code == CNR_E_MEMORY)
            status = cnri_fail(err, CNR_E_MEMORY, "tune", "out of memory");
    }
    if (*takes) status = cnr_session_open(t->plan, &t->session, err);
    if (*takes && !status) status = put_inputs(t, g, err);
    if (*takes && !status) status = cnr_session_run(t->session, err); /* the first warms up */
    if (*takes && !status) cnri_session_listen(t->session, hear, t, true);
    cnri_free(word);
    cnri_free(types);
    return status;
}

static void end(trial *t) {
    cnr_session_close(t->session);
    cnri_plan_free(t->plan);
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double median(trial *t) {
    qsort(t->ns, (size_t)t->rounds, sizeof *t->ns, by_size);
    const double upper = (double)t->ns[t->rounds / 2];
    return t->rounds % 2 ? upper : (upper + (double)t->ns[t->rounds / 2 - 1]) / 2;
}

/* In turns, so that what disturbs the machine disturbs all alike; those that are three times as
 * slow as the best in the first round are not asked again. */
static cnr_status measure(void *arg, const cnr_graph *segment, const char *device,
                          const cnr_kernel *const *kernels, int32_t n, double *ns,
                          cnr_error *err) {
    trial *trials = cnri_alloc_zero((size_t)n * sizeof *trials);
    bool *in = cnri_alloc_zero((size_t)n);
    cnr_status status =
        trials && in ? CNR_OK : cnri_fail(err, CNR_E_MEMORY, "tune", "out of memory");
    int32_t left = 0;
    for (int32_t i = 0; i < n && !status; i++) {
        status = begin(&trials[i], arg, segment, device, kernels[i], &in[i], err);
        left += in[i];
    }
    for (int32_t round = 0; round < ROUNDS && !status && left > 1; round++) {
        uint64_t least = UINT64_MAX;
        for (int32_t i = 0; i < n && !status; i++) {
            trial *t = &trials[i];
            if (!in[i]) continue;
            t->sum = 0;
            status = cnr_session_run(t->session, err);
            t->ns[t->rounds++] = t->sum ? t->sum : 1;
            if (t->sum < least) least = t->sum;
        }
        for (int32_t i = 0; i < n && round == 0 && !status; i++)
            if (in[i] && trials[i].ns[0] / 3 > least) in[i] = false;
    }
    for (int32_t i = 0; i < n && !status; i++) ns[i] = trials[i].rounds ? median(&trials[i]) : 0;
    for (int32_t i = 0; trials && i < n; i++) end(&trials[i]);
    cnri_free(trials);
    cnri_free(in);
    return status;
}

cnr_status cnri_tune(cnr_model *m, const cnr_tensor *const *types, int32_t n, cnri_tuning *t,
                     cnr_plan **out, cnr_error *err) {
    cnri_plan_options options = m->plan_options;
    t->measure = measure;
    t->arg = &m->rt->devices;
    options.tuning = t;
    const cnr_status status =
        cnri_plan_make(m->graph, &m->rt->devices, &options, types, n, out, err);
    t->measure = NULL;
    return status;
}
