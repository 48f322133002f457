/* cnnrun tune: times the kernels that would take each layer, tells how surely the times choose, and
 * keeps the record that planning goes by. */
#include "core/cli/cli.h"
#include <stdlib.h>

typedef struct tune { int64_t batch, repeat; bool again; } tune;

static const cnri_option options[] = {
    {"--batch", "N", CNRI_OPT_INT, offsetof(tune, batch), "pictures at a time (1)", 1, 65536, NULL,
     0},
    {"--repeat", "N", CNRI_OPT_INT, offsetof(tune, repeat),
     "measure all of it so often; the medians are kept (1)", 1, 1000, NULL, 0},
    {"--again", NULL, CNRI_OPT_FLAG, offsetof(tune, again), "measure what is on record too", 0, 0,
     NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "tune",
    .operands = "NET --cache DIR",
    .summary = "Times each kernel that takes a layer, in turns, and keeps the medians in the\n"
               "cache folder, where planning finds them. Nothing else ever measures.",
    .details = "JSON: {\"net\", \"repeats\", \"rows\", \"choices\", \"agreement\", \"spread\"}; "
               "choices counts the layers\nthat several kernels take, agreement is the part of "
               "all choices that were the usual one,\nspread how far the sums of the chosen times "
               "lie apart, of their median.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

typedef struct found { /* of all repeats */
    CNRI_VEC(cnri_tuning) times;
    int64_t choices;
    double agreement, spread;
} found;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int32_t n) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2] + values[n / 2 - 1]) / 2;
}

static bool first_of_key(const cnri_tuning *t, int32_t row) {
    for (int32_t i = 0; i < row; i++)
        if (strcmp(t->rows.at[i].key, t->rows.at[row].key) == 0) return false;
    return true;
}

/* The kernel with the least time; *several: there was a choice. */
static const cnri_timed *fastest(const cnri_tuning *t, const char *key, bool *several) {
    const cnri_timed *best = NULL;
    *several = false;
    for (int32_t i = 0; i < t->rows.n; i++) {
        const cnri_timed *row = &t->rows.at[i];
        if (strcmp(row->key, key) != 0) continue;
        *several = *several || best;
        if (!best || row->ns < best->ns) best = row;
    }
    return best;
}

/* How often each repeat chose what most did, and how far the chosen times' sums lie apart. */
static cnr_status compare(found *f, cnr_error *err) {
    const int32_t n = f->times.n;
    const cnri_tuning *first = &f->times.at[0];
    int64_t asked = 0, agreed = 0;
    double *sums = cnri_alloc_zero((size_t)n * sizeof *sums);
    if (!sums) return cnri_fail(err, CNR_E_MEMORY, "tune", "out of memory");
    for (int32_t row = 0; row < first->rows.n; row++) {
        const char *key = first->rows.at[row].key;
        int32_t usual = 0;
        bool several;
        if (!first_of_key(first, row) || !fastest(first, key, &several) || !several) continue;
        f->choices++;
        for (int32_t a = 0; a < n; a++) {
            const cnri_timed *mine = fastest(&f->times.at[a], key, &several);
            int32_t alike = 0;
            for (int32_t b = 0; mine && b < n; b++) {
                const cnri_timed *other = fastest(&f->times.at[b], key, &several);
                alike += other && strcmp(mine->kernel, other->kernel) == 0;
            }
            if (mine) sums[a] += mine->ns;
            if (alike > usual) usual = alike;
        }
        asked += n;
        agreed += usual;
    }
    f->agreement = asked ? (double)agreed / (double)asked : 1;
    const double middle = median(sums, n); /* sorts them */
    f->spread = middle > 0 ? (sums[n - 1] - sums[0]) / middle : 0;
    cnri_free(sums);
    return CNR_OK;
}

/* The medians of all repeats into the record. */
static cnr_status settle(const found *f, cnri_tuning *record, cnr_error *err) {
    const cnri_tuning *first = &f->times.at[0];
    double *values = cnri_alloc((size_t)f->times.n * sizeof *values);
    cnr_status status = values ? CNR_OK : cnri_fail(err, CNR_E_MEMORY, "tune", "out of memory");
    for (int32_t row = 0; row < first->rows.n && !status; row++) {
        const cnri_timed *r = &first->rows.at[row];
        int32_t n = 0;
        for (int32_t i = 0; i < f->times.n; i++) {
            const double ns = cnri_tuning_ns(&f->times.at[i], r->key, r->kernel);
            if (ns > 0) values[n++] = ns;
        }
        status = cnri_tuning_set(record, r->key, r->kernel, median(values, n), err);
    }
    cnri_free(values);
    return status;
}

static cnr_status measure(const tune *t, cnr_model *model, found *f,
                          cnri_tuning *record, cnr_error *err) {
    cnri_shapes shapes;
    cnr_status status = cnri_input_shapes(model, t->batch, &shapes, err);
    for (int64_t i = 0; i < t->repeat && !status && !cnri_cancelled(); i++) {
        cnri_tuning *one = cnri_push(&f->times);
        cnr_plan *plan = NULL;
        if (!one) status = cnri_fail(err, CNR_E_MEMORY, "tune", "out of memory");
        for (int32_t k = 0; !status && !t->again && t->repeat == 1 && k < record->rows.n; k++)
            status = cnri_tuning_set(one, record->rows.at[k].key, record->rows.at[k].kernel,
                                     record->rows.at[k].ns, err);
        if (!status) status = cnri_tune(model, shapes.list, shapes.n, one, &plan, err);
        cnri_plan_free(plan);
    }
    if (!status && cnri_cancelled()) status = cnri_fail(err, CNR_E_CANCELLED, "tune", "cancelled");
    if (!status) status = compare(f, err);
    if (!status) status = settle(f, record, err);
    cnri_shapes_free(&shapes);
    return status;
}

static cnr_status report(const cnri_args *args, const found *f, const cnri_tuning *record,
                         cnr_error *err) {
    const char *net = args->operands.at[0];
    if (!args->common.json) {
        cnri_say(
            stdout,
            "%s: %lld layers with a choice, measured %d times: %.1f%% agreement, spread %.1f%%; "
            "%d times on record\n",
            net, (long long)f->choices, (int)f->times.n, f->agreement * 100, f->spread * 100,
            (int)record->rows.n);
        return CNR_OK;
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "net", net);
    cnri_json_int(&j, "repeats", f->times.n);
    cnri_json_int(&j, "rows", record->rows.n);
    cnri_json_int(&j, "choices", f->choices);
    cnri_json_real(&j, "agreement", f->agreement);
    cnri_json_real(&j, "spread", f->spread);
    return cnri_json_print(&j, err);
}

int cnri_cmd_tune(int argc, char **argv) {
    tune t = {.batch = 1, .repeat = 1};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_model *model = NULL;
    cnri_tuning record = {0};
    found f = {0};
    uint8_t print[16];
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &t, &code)) return code;
    const char *folder = cnri_args_cache(&args);
    cnr_status status = CNR_OK;
    if (!folder)
        code = cnri_usage_error(&args, "where to? want --cache DIR, or CNNRUN_CACHE set");
    else if (args.common.deterministic)
        code = cnri_usage_error(&args, "--deterministic never asks a clock: nothing to tune");
    if (code == 0) {
        status = cnri_args_open(&args, &rt, &err);
        if (!status) status = cnri_args_load(&args, rt, args.operands.at[0], &model, &err);
        if (!status) status = cnri_tuning_load(folder, &record, print, &err);
        if (!status) status = measure(&t, model, &f, &record, &err);
        if (!status) status = cnri_tuning_save(folder, &record, &err);
        if (!status) status = report(&args, &f, &record, &err);
        if (status) code = cnri_complain(&args, &err);
        cnr_close(rt);
    }
    for (int32_t i = 0; i < f.times.n; i++) cnri_vec_free(&f.times.at[i].rows);
    cnri_vec_free(&f.times);
    cnri_vec_free(&record.rows);
    cnri_args_free(&args);
    return code;
}
