/* Models run on given inputs, their outputs compared with given ones. A folder of files is a case:
 *
 *     FOLDER/MODEL  FOLDER/test_data_set_0/input_0.X, input_1.X ..., output_0.X ...   and so on from 1
 *     MODEL  MODEL'_output_0.X    (' without what stands behind its last dot): element i of an input of
 *                                 n is i / n
 *
 * The model is the file that some importer or loader knows best; X is whatever one of them reads.
 */
#include "work/work.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MAX_TENSORS = 64, MAX_DEPTH = 4 };

typedef CNRI_VEC(char *) names;

/* A comparison of models with given outputs. */
typedef struct job {
    cnr_runtime *rt;
    const cnri_compare_options *o;
    const cnr_observer *observer;
    cnri_comparison *out;
    cnri_compared now; /* of the case under way; owns its differences and error */
    CNRI_VEC(cnri_difference) differences;
    cnr_error err;
} job;

/* ---- files ---- */

/* True if there is a folder, or with `folder` false a file, of that path. */
static bool exists(const char *path, bool folder) {
    struct stat s;
    return stat(path, &s) == 0 && (S_ISDIR(s.st_mode) != 0) == folder;
}

/* Compares two names, for qsort. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Frees the names and the list. */
static void names_free(names *list) {
    for (int32_t i = 0; i < list->n; i++) cnri_free(list->at[i]);
    cnri_vec_free(list);
}

/* Lists the names in a folder in order, without hidden ones; a folder that can't be read has
 * none. */
static void names_in(const char *folder, names *out) {
    DIR *dir = opendir(folder);
    *out = (names){0};
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *copy = e->d_name[0] == '.' ? NULL : cnri_strdup(e->d_name);
        char **slot = copy ? cnri_push(out) : NULL;
        if (slot) *slot = copy;
        else cnri_free(copy);
    }
    if (dir) closedir(dir);
    if (out->n) qsort(out->at, (size_t)out->n, sizeof out->at[0], by_name);
}

/* Path of the file in `folder` whose name is `stem`, or begins with "stem.", for cnri_free; NULL:
 * none. */
static char *find_stem(const char *folder, const names *in, const char *stem) {
    const size_t n = strlen(stem);
    for (int32_t i = 0; i < in->n; i++)
        if (strncmp(in->at[i], stem, n) == 0 && (in->at[i][n] == '.' || !in->at[i][n]))
            return cnri_path_join(folder, in->at[i]);
    return NULL;
}

/* True if the text begins with `with`. */
static bool starts_with(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Path, for cnri_free, of the file in the folder that is most surely a model; NULL: none is. */
static char *find_model(const char *folder, const names *in) {
    char *best = NULL;
    int32_t maximum = 0;
    for (int32_t i = 0; i < in->n; i++) {
        if (starts_with(in->at[i], "input_") || starts_with(in->at[i], "output_"))
            continue; /* it belongs to a data set */
        char *path = cnri_path_join(folder, in->at[i]);
        const int32_t score = path && exists(path, false) ? cnri_load_score(path) : 0;
        if (score > maximum) {
            cnri_free(best);
            best = path;
            maximum = score;
        } else {
            cnri_free(path);
        }
    }
    return best;
}

/* ---- tensors from files ---- */

/* Reads a tensor file as a graph whose output is a constant. Release the graph after use. */
static cnr_status read_tensor(job *j, const char *path, cnr_graph **graph, const cnr_tensor **out) {
    const cnr_status status = cnri_load_graph(j->rt, path, NULL, graph, &j->err);
    if (status) return status;
    const cnr_tensor *t =
        (*graph)->outputs.n ? (*graph)->values.at[(*graph)->outputs.at[0]].type : NULL;
    if (t && t->flags & CNR_TENSOR_CONST) {
        *out = t;
        return CNR_OK;
    }
    cnri_graph_free(*graph);
    *graph = NULL;
    return cnri_fail(&j->err, CNR_E_FORMAT, path, "holds no tensor");
}

/* Reads STEM_0, STEM_1 ... of a data set; returns how many, or -1: one can't be read (all are
 * freed, j->err says why). */
static int32_t read_all(job *j, const char *folder, const names *in, const char *stem,
                        cnr_graph **graphs, const cnr_tensor **tensors) {
    int32_t n = 0;
    for (; n < MAX_TENSORS; n++) {
        char word[32];
        snprintf(word, sizeof word, "%s_%d", stem, (int)n);
        char *path = find_stem(folder, in, word);
        if (!path) break;
        const cnr_status status = read_tensor(j, path, &graphs[n], &tensors[n]);
        cnri_free(path);
        if (!status) continue;
        for (int32_t i = 0; i < n; i++) cnri_graph_free(graphs[i]);
        return -1;
    }
    return n;
}

/* ---- comparing ---- */

/* Makes a u16 tensor bf16, in place, with the same bits, if the model's type is bf16: test vectors
 * store it so. */
static void rename_bf16(cnr_tensor *t, int32_t wanted) {
    if (t->dtype == CNR_u16 && wanted == CNR_bf16) t->dtype = wanted;
}

/* Appends a difference to the job's list. */
static cnr_status differ(job *j, const cnri_difference *d) {
    cnri_difference *slot = cnri_push(&j->differences);
    if (!slot) return cnri_fail(&j->err, CNR_E_MEMORY, d->output, "out of memory");
    *slot = *d;
    return CNR_OK;
}

/* Compares an output with the given one by the job's tolerances; differences are noted in the
 * job. */
static cnr_status compare(job *j, const char *name, const cnr_tensor *got,
                          const cnr_tensor *given) {
    cnri_difference d = {.output = name, .got = *got, .want = *given, .worst = -1};
    cnr_tensor *want = &d.want;
    rename_bf16(want, got->dtype);
    d.type = got->dtype != want->dtype || !cnr_same_shape(got, want);
    if (d.type) return differ(j, &d);
    double largest = -1;
    d.n = cnr_count(want);
    for (int64_t i = 0; i < d.n; i++) {
        const double a = cnri_element(got->dtype, got->data, i);
        const double b = cnri_element(want->dtype, want->data, i);
        if ((isnan(a) && isnan(b)) || a == b) continue;
        const double off = fabs(a - b);
        /* The comparison is false for NaN and infinity. */
        if (off <= j->o->atol + j->o->rtol * fabs(b)) continue;
        d.wrong++;
        if (!isnan(off) && off <= largest) continue;
        largest = isnan(off) ? INFINITY : off;
        d.worst = i;
        d.got_value = a;
        d.want_value = b;
    }
    return d.wrong ? differ(j, &d) : CNR_OK;
}

/* Runs the model on `given` and compares its outputs with `want`. */
static cnr_status run_case(job *j, cnr_model *model, const cnr_tensor *const *given, int32_t n_in,
                           const cnr_tensor *const *want, int32_t n_want) {
    const cnr_tensor *out[MAX_TENSORS] = {0}, *in[MAX_TENSORS];
    cnr_tensor named[MAX_TENSORS];
    const int32_t n = cnr_output_count(model);
    for (int32_t i = 0; i < n_in; i++) {
        named[i] = *given[i];
        in[i] = &named[i];
        if (i < cnr_input_count(model)) rename_bf16(&named[i], cnr_input_type(model, i)->dtype);
    }
    if (n > MAX_TENSORS || n_want > n)
        return cnri_fail(&j->err, CNR_E_SHAPE, "", "the model has %d outputs, %d are given", (int)n,
                         (int)n_want);
    cnr_status status = cnr_run_tensors(model, in, n_in, out, n, &j->err);
    for (int32_t i = 0; i < n_want && !status; i++)
        status = compare(j, cnr_output_name(model, i), out[i], want[i]);
    return status;
}

/* Runs the set in one folder (input_0 ..., output_0 ...) and compares all outputs; differences are
 * noted. */
static cnr_status run_set(job *j, cnr_model *model, const char *folder) {
    cnr_graph *in_graphs[MAX_TENSORS], *out_graphs[MAX_TENSORS];
    const cnr_tensor *in[MAX_TENSORS], *want[MAX_TENSORS];
    names files;
    cnr_status status;
    names_in(folder, &files);
    const int32_t n_in = read_all(j, folder, &files, "input", in_graphs, in);
    const int32_t n_out = n_in < 0 ? -1 : read_all(j, folder, &files, "output", out_graphs, want);
    names_free(&files);
    if (n_out < 0) status = (cnr_status)j->err.code;
    else if (n_out > 0) status = run_case(j, model, in, n_in, want, n_out);
    else status = cnri_fail(&j->err, CNR_E_FORMAT, folder, "holds no outputs");
    for (int32_t i = 0; i < n_in; i++) cnri_graph_free(in_graphs[i]);
    for (int32_t i = 0; i < n_out; i++) cnri_graph_free(out_graphs[i]);
    return status;
}

/* Runs the sets test_data_set_0, _1 ... of a folder until one differs; CNR_E_UNSUPPORTED: there is
 * none. */
static cnr_status run_folder(job *j, cnr_model *model, const char *folder) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; !status && !j->differences.n; i++) {
        char *set = cnri_format("%s/test_data_set_%d", folder, (int)i);
        const bool there = set && exists(set, true);
        if (there) status = run_set(j, model, set);
        cnri_free(set);
        if (!there && i == 0)
            return cnri_fail(&j->err, CNR_E_UNSUPPORTED, "", "there is no test_data_set_0");
        if (!there) break;
    }
    return status;
}

/* Runs the model on inputs whose element i of n is i / n, and compares with the file `expected`. */
static cnr_status run_ramp(job *j, cnr_model *model, const char *expected) {
    cnr_tensor in[MAX_TENSORS];
    const cnr_tensor *list[MAX_TENSORS], *want = NULL;
    cnr_graph *graph = NULL;
    const int32_t n = cnr_input_count(model);
    cnr_status status = read_tensor(j, expected, &graph, &want);
    if (status) return status;
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
    status = made == n ? run_case(j, model, list, n, &want, 1)
                       : cnri_fail(&j->err, CNR_E_SHAPE, "", "f32 inputs of known size are wanted");
    for (int32_t i = 0; i < made; i++) cnri_free(in[i].data);
    cnri_graph_free(graph);
    return status;
}

/* ---- one case, and all ---- */

/* What became of a case: right, wrong, or skipped because it is unsupported. */
static cnri_outcome outcome_of(const job *j, cnr_status status) {
    if (!status) return j->differences.n ? CNRI_CASE_WRONG : CNRI_CASE_RIGHT;
    /* an importer lists several layers, some of which are only unsupported */
    return status == CNR_E_UNSUPPORTED || strstr(j->err.text, "not supported") ? CNRI_CASE_SKIPPED
                                                                               : CNRI_CASE_WRONG;
}

/* The part of a path behind its last '/', inside that path. */
static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Runs one model on its cases. False: stop. */
static bool run_model(job *j, const char *name, const char *path, const char *folder,
                      const char *expected) {
    cnr_model *model = NULL;
    j->err = (cnr_error)CNR_ERROR_INIT;
    cnr_status status = cnr_load(j->rt, path, j->o->how, &model, &j->err);
    if (!status) status = folder ? run_folder(j, model, folder) : run_ramp(j, model, expected);
    cnri_compared c = {.name = name,
                       .outcome = outcome_of(j, status),
                       .err = status ? &j->err : NULL,
                       .differences = j->differences.at,
                       .n_differences = j->differences.n};
    j->out->n[c.outcome]++;
    const bool go_on = cnri_notify_event(j->observer, CNRI_EVENT_CASE, &c);
    cnri_vec_free(&j->differences);
    cnr_release(model);
    return go_on;
}

/* Path, for cnri_free, of the file STEM_output_0 beside `path`; NULL: there is none. */
static char *expected_of(const char *path) {
    const char *name = base_name(path), *dot = strrchr(name, '.');
    char *folder = name > path ? cnri_format("%.*s", (int)(name - path), path) : cnri_strdup(".");
    char *stem = dot ? cnri_format("%.*s_output_0", (int)(dot - name), name) : NULL, *found = NULL;
    names files = {0};
    if (folder && stem) names_in(folder, &files);
    if (folder && stem) found = find_stem(folder, &files, stem);
    names_free(&files);
    cnri_free(folder);
    cnri_free(stem);
    return found;
}

/* Number of cases that were right, wrong or skipped so far. */
static int32_t cases(const job *j) {
    return j->out->n[CNRI_CASE_RIGHT] + j->out->n[CNRI_CASE_WRONG] + j->out->n[CNRI_CASE_SKIPPED];
}

/* Visits a case, a folder of cases, or a model with its output beside it. False: stop. */
static bool visit(job *j, const char *path, int depth) {
    bool go_on = !cnri_stopped(j->observer);
    if (depth > MAX_DEPTH || !go_on) return go_on;
    if (!exists(path, true)) {
        char *expected = expected_of(path);
        if (expected) go_on = run_model(j, base_name(path), path, NULL, expected);
        cnri_free(expected);
        return go_on;
    }
    names in;
    names_in(path, &in);
    const int32_t before = cases(j);
    char *set = cnri_path_join(path, "test_data_set_0");
    char *model = set && exists(set, true) ? find_model(path, &in) : NULL;
    bool folders = false;
    for (int32_t i = 0; i < in.n && !model && go_on; i++) {
        char *child = cnri_path_join(path, in.at[i]);
        folders = folders || (child && exists(child, true));
        if (child) go_on = visit(j, child, depth + 1);
        cnri_free(child);
    }
    if (!model && !folders && cases(j) == before)
        model = find_model(path, &in); /* without a data set it is no case */
    if (model && go_on) go_on = run_model(j, base_name(path), model, path, NULL);
    cnri_free(set);
    cnri_free(model);
    names_free(&in);
    return go_on;
}

cnr_status cnri_compare_models(cnr_runtime *rt, const char *path,
                               const cnri_compare_options *options, const cnr_observer *observer,
                               cnri_comparison *out, cnr_error *err) {
    job j = {.rt = rt, .o = options, .observer = observer, .out = out};
    *out = (cnri_comparison){{0}};
    if (!visit(&j, path, 0)) return cnri_fail(err, CNR_E_CANCELLED, path, "stopped");
    if (cases(&j)) return CNR_OK;
    return cnri_fail(err, CNR_E_NOT_FOUND, path, "no model with given outputs is there");
}
