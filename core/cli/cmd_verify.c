/* cnnrun verify PATH...: models with given inputs and outputs, in the layout of ONNX's own tests. */
#include "core/cli/cli.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct options {
    double rtol, atol;
} options;

static const cnri_option option_rows[] = {
    {"--tolerance", "R", CNRI_OPT_REAL, offsetof(options, rtol),
     "relative tolerance of an element (1e-3)", .min = 0, .max = 1},
    {"--atol", "A", CNRI_OPT_REAL, offsetof(options, atol), "absolute tolerance (1e-7)", .min = 0,
     .max = 1e9},
};
static const cnri_syntax syntax = {
    "verify", "PATH...", "Runs models on given inputs and compares with given outputs; prints TAP.",
    "PATH is a folder with model.onnx and test_data_set_*/input_*.pb, output_*.pb; a folder of such\n"
    "folders; or a model X.onnx with X_output_0.pb beside it, whose input's element i is i / n.\n"
    "Shape and type must be equal, NaN only where it is expected. JSON, a line a case: {\"case\",\n"
    "\"outcome\", \"why\"}, outcome ok, failed or skipped; and {\"passed\", \"failed\", \"skipped\"}.",
    option_rows, CNRI_COUNT(option_rows), true, 1, -1, NULL};

enum { MAX_TENSORS = 64 };

/* One case under way. */
typedef struct job {
    const cnri_args *args;
    const options *opt;
    cnr_runtime *rt;
    int32_t count, failed, skipped;
    cnri_text why; /* diagnostics of this case */
} job;

typedef enum outcome { OUTCOME_OK, OUTCOME_BAD, OUTCOME_SKIP } outcome;

/* ---- tensors from files ---- */

/* A tensor file is read as a graph whose output is a constant; release the graph after use. */
static cnr_status read_tensor(job *j, const char *path, cnr_graph **graph, const cnr_tensor **out,
                              cnr_error *err) {
    const cnr_status status = cnri_load_graph(j->rt, path, NULL, graph, err);
    if (status) return status;
    const cnr_tensor *t = (*graph)->outputs.n
                              ? (*graph)->values.at[(*graph)->outputs.at[0]].type
                              : NULL;
    if (t && t->flags & CNR_TENSOR_CONST) {
        *out = t;
        return CNR_OK;
    }
    cnri_graph_free(*graph);
    *graph = NULL;
    return cnri_fail(err, CNR_E_FORMAT, path, "holds no tensor");
}

static bool exists(const char *path) {
    struct stat s;
    return stat(path, &s) == 0;
}

/* ---- comparing ---- */

static void print_shape(const cnr_tensor *t, cnri_text *out) {
    cnri_text_add(out, "%s[", cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++) cnri_text_add(out, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    cnri_text_add(out, "]");
}

static void print_place(const cnr_tensor *t, int64_t i, cnri_text *out) {
    int64_t at[CNR_MAX_RANK];
    for (int32_t a = t->rank - 1; a >= 0; a--) {
        at[a] = i % t->dim[a];
        i /= t->dim[a];
    }
    cnri_text_add(out, "[");
    for (int32_t a = 0; a < t->rank; a++) cnri_text_add(out, "%s%lld", a ? "," : "", (long long)at[a]);
    cnri_text_add(out, "]");
}

/* Test vectors keep bf16 in u16 tensors: the same bits under the name that the model wants. */
static void rename_bf16(cnr_tensor *t, int32_t wanted) {
    if (t->dtype == CNR_u16 && wanted == CNR_bf16) t->dtype = wanted;
}

static bool same(job *j, const char *name, const cnr_tensor *got, const cnr_tensor *given) {
    cnr_tensor named = *given;
    const cnr_tensor *want = &named;
    rename_bf16(&named, got->dtype);
    if (got->dtype != want->dtype || !cnr_same_shape(got, want)) {
        cnri_text_add(&j->why, "# %s is ", name);
        print_shape(got, &j->why);
        cnri_text_add(&j->why, ", ");
        print_shape(want, &j->why);
        cnri_text_add(&j->why, " is wanted\n");
        return false;
    }
    const int64_t n = cnr_count(want);
    int64_t wrong = 0, worst = -1;
    double largest = -1;
    for (int64_t i = 0; i < n; i++) {
        const double a = cnri_element(got->dtype, got->data, i);
        const double b = cnri_element(want->dtype, want->data, i);
        if ((isnan(a) && isnan(b)) || a == b) continue;
        const double diff = fabs(a - b);
        if (diff <= j->opt->atol + j->opt->rtol * fabs(b)) continue; /* false for NaN and infinity */
        wrong++;
        if (isnan(diff) || diff > largest) {
            largest = isnan(diff) ? INFINITY : diff;
            worst = i;
        }
    }
    if (wrong == 0) return true;
    cnri_text_add(&j->why, "# %s: %lld of %lld elements differ, the most at ", name,
                  (long long)wrong, (long long)n);
    print_place(want, worst, &j->why);
    cnri_text_add(&j->why, ": got %.9g, want %.9g\n", cnri_element(got->dtype, got->data, worst),
                      cnri_element(want->dtype, want->data, worst));
    return false;
}

/* ---- running ---- */

static outcome error_outcome(job *j, const cnr_error *err) {
    const bool skip = err->code == CNR_E_UNSUPPORTED || strstr(err->text, "not supported") != NULL;
    cnri_text_add(&j->why, "%s%s%s\n", err->where, *err->where ? ": " : "", err->text);
    return skip ? OUTCOME_SKIP : OUTCOME_BAD;
}

/* Runs the model on `in` and compares its outputs with `want` (NULL: not given). */
static outcome run_case(job *j, cnr_model *model, const cnr_tensor *const *given, int32_t n_in,
                        const cnr_tensor *const *want, int32_t n_want) {
    const cnr_tensor *out[MAX_TENSORS] = {0}, *in[MAX_TENSORS];
    cnr_tensor named[MAX_TENSORS];
    for (int32_t i = 0; i < n_in; i++) {
        named[i] = *given[i];
        in[i] = &named[i];
        if (i < cnr_input_count(model)) rename_bf16(&named[i], cnr_input_type(model, i)->dtype);
    }
    cnr_error err = CNR_ERROR_INIT;
    const int32_t n = cnr_output_count(model);
    if (n > MAX_TENSORS || n_want > n) {
        cnri_text_add(&j->why, "# the model has %d outputs, %d are given\n", n, n_want);
        return OUTCOME_BAD;
    }
    if (cnr_run_tensors(model, in, n_in, out, n, &err)) return error_outcome(j, &err);
    bool good = true;
    for (int32_t i = 0; i < n_want; i++)
        if (want[i] && !same(j, cnr_output_name(model, i), out[i], want[i])) good = false;
    return good ? OUTCOME_OK : OUTCOME_BAD;
}

/* Reads input_0.pb, input_1.pb ... of a data set; -1 with `o` set when one cannot be read. */
static int32_t read_all(job *j, const char *folder, const char *stem, cnr_graph **graphs,
                        const cnr_tensor **tensors, outcome *o) {
    int32_t n = 0;
    for (; n < MAX_TENSORS; n++) {
        char *path = cnri_format("%s/%s_%d.pb", folder, stem, n);
        if (!path || !exists(path)) {
            cnri_free(path);
            break;
        }
        cnr_error err = CNR_ERROR_INIT;
        const cnr_status status = read_tensor(j, path, &graphs[n], &tensors[n], &err);
        cnri_free(path);
        if (status) {
            *o = error_outcome(j, &err);
            for (int32_t i = 0; i < n; i++) cnri_graph_free(graphs[i]);
            return -1;
        }
    }
    return n;
}

static outcome run_set(job *j, cnr_model *model, const char *folder) {
    cnr_graph *in_graphs[MAX_TENSORS], *out_graphs[MAX_TENSORS];
    const cnr_tensor *in[MAX_TENSORS], *want[MAX_TENSORS];
    outcome o = OUTCOME_OK;
    const int32_t n_in = read_all(j, folder, "input", in_graphs, in, &o);
    if (n_in < 0) return o;
    const int32_t n_out = read_all(j, folder, "output", out_graphs, want, &o);
    if (n_out == 0) {
        cnri_text_add(&j->why, "# %s holds no outputs\n", folder);
        o = OUTCOME_BAD;
    }
    if (n_out > 0) o = run_case(j, model, in, n_in, want, n_out);
    for (int32_t i = 0; i < n_in; i++) cnri_graph_free(in_graphs[i]);
    for (int32_t i = 0; i < n_out; i++) cnri_graph_free(out_graphs[i]);
    return o;
}

static outcome run_folder(job *j, cnr_model *model, const char *folder) {
    outcome o = OUTCOME_OK;
    int32_t sets = 0;
    for (;; sets++) {
        char *set = cnri_format("%s/test_data_set_%d", folder, sets);
        const bool there = set && exists(set);
        if (there) {
            const outcome one = run_set(j, model, set);
            if (one != OUTCOME_OK) o = one;
        }
        cnri_free(set);
        if (!there || o != OUTCOME_OK) break;
    }
    if (sets == 0 && o == OUTCOME_OK) {
        cnri_text_add(&j->why, "there is no test_data_set_0\n");
        return OUTCOME_SKIP;
    }
    return o;
}

/* Element i of each input is i / n. */
static outcome run_ramp(job *j, cnr_model *model, const char *expected) {
    cnr_tensor in[MAX_TENSORS];
    const cnr_tensor *list[MAX_TENSORS], *want = NULL;
    cnr_graph *graph = NULL;
    cnr_error err = CNR_ERROR_INIT;
    const int32_t n = cnr_input_count(model);
    outcome o = OUTCOME_BAD;
    if (read_tensor(j, expected, &graph, &want, &err)) return error_outcome(j, &err);
    int32_t made = 0;
    for (; made < n && made < MAX_TENSORS; made++) {
        cnr_tensor *t = &in[made];
        *t = *cnr_input_type(model, made);
        for (int32_t a = 0; a < t->rank; a++)
            if (t->dim[a] < 0) t->dim[a] = 1;
        const int64_t count = cnr_count(t);
        t->bytes = cnr_dense_bytes(t);
        t->data = t->dtype == CNR_f32 && count >= 0 ? cnri_alloc((size_t)t->bytes) : NULL;
        list[made] = t;
        if (!t->data) break;
        for (int64_t i = 0; i < count; i++)
            ((float *)t->data)[i] = (float)((double)i / (double)count);
    }
    if (made == n) o = run_case(j, model, list, n, &want, 1);
    else cnri_text_add(&j->why, "# f32 inputs of known size are wanted\n");
    for (int32_t i = 0; i < made; i++) cnri_free(in[i].data);
    cnri_graph_free(graph);
    return o;
}

/* ---- finding cases ---- */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void report_tap(const job *j, const char *name, outcome o) {
    char *why = j->why.at;
    if (o == OUTCOME_SKIP) {
        for (char *c = why; c && *c; c++)
            if (*c == '\n') *c = c[1] ? ';' : 0;
        cnri_say(stdout, "ok %d - %s # SKIP %s\n", j->count, name, why ? why : "");
        return;
    }
    cnri_say(stdout, "%sok %d - %s\n", o == OUTCOME_OK ? "" : "not ", j->count, name);
    for (char *line = o == OUTCOME_BAD ? why : NULL; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        cnri_say(stdout, "%s%s\n", line[0] == '#' ? "" : "# ", line);
        line = end ? end + 1 : NULL;
    }
}

static void report_json(const job *j, const char *name, outcome o) {
    static const char *const words[] = {[OUTCOME_OK] = "ok", [OUTCOME_BAD] = "failed",
                                        [OUTCOME_SKIP] = "skipped"};
    char *why = o == OUTCOME_OK ? NULL : j->why.at;
    const size_t n = why ? strlen(why) : 0;
    cnri_json json;
    if (n && why[n - 1] == '\n') why[n - 1] = 0;
    cnri_json_begin(&json);
    cnri_json_text(&json, "case", name);
    cnri_json_text(&json, "outcome", words[o]);
    cnri_json_text(&json, "why", why);
    (void)cnri_json_print(&json, NULL); /* main looks at what became of stdout */
}

static void report(job *j, const char *name, outcome o) {
    j->count++;
    j->failed += o == OUTCOME_BAD;
    j->skipped += o == OUTCOME_SKIP;
    (j->args->common.json ? report_json : report_tap)(j, name, o);
    fflush(stdout);
    cnri_text_free(&j->why);
}

static void report_all(const job *j) {
    const int32_t passed = j->count - j->failed - j->skipped;
    if (!j->args->common.json) {
        cnri_say(stdout, "1..%d\n", j->count);
        cnri_say(stderr, "%d passed, %d failed, %d skipped\n", passed, j->failed, j->skipped);
        return;
    }
    cnri_json json;
    cnri_json_begin(&json);
    cnri_json_int(&json, "passed", passed);
    cnri_json_int(&json, "failed", j->failed);
    cnri_json_int(&json, "skipped", j->skipped);
    (void)cnri_json_print(&json, NULL);
}

static void run_model(job *j, const char *name, const char *model_path, const char *folder,
                      const char *expected) {
    cnr_model *model = NULL;
    cnr_error err = CNR_ERROR_INIT;
    outcome o;
    if (cnri_args_load(j->args, j->rt, model_path, &model, &err)) o = error_outcome(j, &err);
    else o = folder ? run_folder(j, model, folder) : run_ramp(j, model, expected);
    cnr_release(model);
    report(j, name, o);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A case, a folder of cases, or a model with its output beside it. False: nothing there. */
static bool visit(job *j, const char *path, int depth) {
    struct stat s;
    if (stat(path, &s) != 0 || depth > 4 || cnri_cancelled()) return false;
    if (!S_ISDIR(s.st_mode)) {
        const char *dot = strrchr(base_name(path), '.');
        char *expected = dot && strcmp(dot, ".pb") != 0
                             ? cnri_format("%.*s_output_0.pb", (int)(dot - path), path)
                             : NULL;
        const bool found = expected && exists(expected);
        if (found) run_model(j, base_name(path), path, NULL, expected);
        cnri_free(expected);
        return found;
    }
    char *model = cnri_path_join(path, "model.onnx");
    bool found = model && exists(model);
    if (found) run_model(j, base_name(path), model, path, NULL);
    cnri_free(model);
    if (found) return true;
    CNRI_VEC(char *) names = {0};
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *child = e->d_name[0] == '.' ? NULL : cnri_path_join(path, e->d_name);
        char **slot = child ? cnri_push(&names) : NULL;
        if (slot) *slot = child;
        else cnri_free(child);
    }
    if (dir) closedir(dir);
    if (names.n) qsort(names.at, (size_t)names.n, sizeof names.at[0], by_name);
    for (int32_t i = 0; i < names.n; i++) {
        if (visit(j, names.at[i], depth + 1)) found = true;
        cnri_free(names.at[i]);
    }
    cnri_vec_free(&names);
    return found;
}

static void quiet_log(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text; /* what is wrong is told in the TAP */
}

int cnri_cmd_verify(int argc, char **argv) {
    options opt = {.rtol = 1e-3, .atol = 1e-7};
    cnri_args args;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &opt, &code)) return code;
    job j = {.args = &args, .opt = &opt};
    cnr_error err = CNR_ERROR_INIT;
    if (cnri_args_open(&args, &j.rt, &err)) {
        code = cnri_complain(&args, &err);
        cnri_args_free(&args);
        return code;
    }
    if (args.common.verbose == 0) cnri_log_to(quiet_log, NULL, CNR_LOG_ERROR);
    code = 0;
    for (int32_t i = 0; i < args.operands.n; i++)
        if (!visit(&j, args.operands.at[i], 0) && !cnri_cancelled())
            code = cnri_usage_error(&args, "%s: no model with given outputs is there",
                                    args.operands.at[i]);
    report_all(&j);
    cnr_close(j.rt);
    cnri_args_free(&args);
    if (cnri_cancelled()) return cnri_exit_code(CNR_E_CANCELLED);
    return code ? code : j.failed ? 1 : 0;
}
