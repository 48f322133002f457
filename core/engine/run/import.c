/* Importers: finds the one for a file, builds graphs with it, and reads weights for a net. */
#include "run/run.h"
#include "store/store.h"
#include <sys/stat.h>

/* ---- which ---- */

cnr_status cnri_file_head(const char *path, cnri_head *out, cnr_error *err) {
    struct stat info;
    out->n = 0;
    if (stat(path, &info) != 0) return cnri_fail(err, CNR_E_NOT_FOUND, path, "no such file");
    if (S_ISDIR(info.st_mode)) return CNR_OK;
    return cnri_read_head(path, out->at, sizeof out->at, &out->n, err);
}

const cnr_importer *cnri_importer_for(const char *path, const cnri_head *head, int32_t *score) {
    const cnr_importer *best = NULL;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *one = cnri_descriptor_at(CNR_KIND_IMPORTER, i);
        const int32_t s = one->accepts(path, head->at, head->n);
        if (s > *score) {
            *score = s;
            best = one;
        }
    }
    return best;
}

/* ---- options ---- */

const char *const *cnri_importer_options(const cnr_importer *importer) {
    return CNRI_HAS(importer, options) ? importer->options : NULL;
}

/* True if the row covers the option: it is the row's name up to '='. A name that ends in a star
 * covers all options that begin like it. */
static bool row_takes(const char *row, const char *name, size_t n) {
    const size_t k = strcspn(row, "=");
    if (k > 1 && row[k - 1] == '*') return n >= k && strncmp(row, name, k - 1) == 0;
    return n == k && strncmp(row, name, n) == 0;
}

bool cnri_importer_takes(const cnr_importer *importer, const char *name) {
    const char *const *rows = cnri_importer_options(importer);
    if (!rows) return true;
    for (; *rows; rows++)
        if (row_takes(*rows, name, strcspn(name, "="))) return true;
    return false;
}

/* Fails with the names of all options and the nearest one. */
static cnr_status no_such_option(const cnr_importer *importer, const char *option, cnr_error *err) {
    CNRI_VEC(const char *) names = {0};
    cnri_text known = {0};
    char name[128];
    for (const char *const *row = importer->options; *row; row++) {
        char *own = cnri_format("%.*s", (int)strcspn(*row, "="), *row);
        const char **slot = own ? cnri_push(&names) : NULL;
        if (slot) *slot = own;
        else cnri_free(own);
        cnri_text_add(&known, "%s%.*s", known.n ? ", " : "", (int)strcspn(*row, "="), *row);
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(option, "="), option);
    const char *near = cnri_nearest_word(name, names.at, names.n);
    const cnr_status status =
        cnri_fail(err, CNR_E_ARG, importer->name, "no option \"%s\"%s%s%s; it takes %s", name,
                  near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "",
                  known.at && known.n ? known.at : "none");
    for (int32_t i = 0; i < names.n; i++) cnri_free((void *)names.at[i]);
    cnri_vec_free(&names);
    cnri_text_free(&known);
    return status;
}

/* CNR_E_ARG unless each option is "name=value" and known to the importer. */
static cnr_status check_options(const cnr_importer *importer, const cnr_import_args *args,
                                cnr_error *err) {
    for (int32_t i = 0; i < args->n_options; i++) {
        if (!strchr(args->options[i], '='))
            return cnri_fail(err, CNR_E_ARG, importer->name, "option \"%s\": want name=value",
                             args->options[i]);
        if (!cnri_importer_takes(importer, args->options[i]))
            return no_such_option(importer, args->options[i], err);
    }
    return CNR_OK;
}

/* ---- graphs ---- */

cnr_status cnri_import(const cnr_importer *importer, const cnr_import_args *args, bool bounded,
                       cnr_graph **out, cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    const char *path = args->paths[0], *slash = strrchr(path, '/');
    cnr_graph *g = cnri_graph_new(slash ? slash + 1 : path);
    *out = NULL;
    if (!g) return cnri_out_of_memory(err, path);
    g->aside.wanted = bounded;
    cnr_status status = check_options(importer, args, err);
    if (!status) status = importer->import(args, g, err);
    /* Memory was out, whatever the importer returned. */
    if (cnri_alloc_verdict(before, CNR_OK, path, err)) status = CNR_E_MEMORY;
    else if (g->problems.n || g->out_of_memory)
        status = cnri_graph_status(g, false, err); /* reports all problems, not just the last */
    else status = cnri_plugin_status(err, status, path, importer->name);
    if (status) cnri_graph_free(g);
    else *out = g;
    return status;
}

/* ---- weights ---- */

bool cnri_is_native(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".cnr") == 0;
}

/* True if the weights are files, not "none", "random" or "random:SEED". */
bool cnri_weights_are_file(const char *weights) {
    return strcmp(weights, "none") != 0 &&
           (strncmp(weights, "random", 6) != 0 || (weights[6] && weights[6] != ':'));
}

int32_t cnri_count_options(const char *const *options) {
    int32_t n = 0;
    while (options && options[n]) n++;
    return n;
}

cnr_status cnri_paths_add(cnri_paths *paths, const char *word, cnr_error *err) {
    struct stat info;
    const bool one = stat(word, &info) == 0;
    for (const char *at = word; at; at = *at ? at + 1 : NULL) {
        const size_t n = one ? strlen(at) : strcspn(at, ",");
        char **slot = cnri_push(paths);
        if (slot) *slot = cnri_format("%.*s", (int)n, at);
        if (!slot || !*slot) return cnri_out_of_memory(err, word);
        at += n;
    }
    return CNR_OK;
}

void cnri_paths_free(cnri_paths *paths) {
    for (int32_t i = 0; i < paths->n; i++) cnri_free(paths->at[i]);
    cnri_vec_free(paths);
}

/* CNR_E_ARG if there are options, as no importer reads this file. */
static cnr_status refuse_options(const char *path, const char *const *options, int32_t n,
                                 cnr_error *err) {
    if (n == 0) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, path, "takes no option \"%s\": no importer reads it",
                     options[0]);
}

/* Fills weights from the files that `word` lists with commas, with the importer's options. */
static cnr_status fill_from(cnr_graph *net, const char *word, const char *const *options,
                            cnr_error *err) {
    cnri_paths files = {0};
    cnr_status status = cnri_paths_add(&files, word, err);
    const cnr_import_args args = {.size = sizeof args,
                                  .n_paths = files.n,
                                  .options = options,
                                  .paths = (const char *const *)files.at,
                                  .n_options = cnri_count_options(options)};
    if (!status) status = cnri_weights_import(net, &args, err);
    cnri_paths_free(&files);
    return status;
}

static cnri_random_fill random_fill;

void cnri_random_fill_register(cnri_random_fill own) {
    __atomic_store_n(&random_fill, own, __ATOMIC_RELEASE);
}

/* Fills weights from files, or by "random:SEED" ("random": seed 0); "none" leaves them out; NULL:
 * nothing to do. Options are only for files. */
cnr_status cnri_weights_fill(cnr_graph *net, const char *weights, const char *const *options,
                             cnr_error *err) {
    uint64_t seed = 0;
    if (weights && cnri_weights_are_file(weights)) return fill_from(net, weights, options, err);
    if (weights && strcmp(weights, "none") == 0) return CNR_OK; /* the net is only looked at */
    const cnr_status status = refuse_options(net->name, options, cnri_count_options(options), err);
    if (status || !weights) return status;
    if (weights[6] && !cnri_parse_seed(weights + 7, &seed))
        return cnri_fail(err, CNR_E_ARG, weights,
                         "want random:SEED with a whole number from 0 on as seed");
    const cnri_random_fill fill = __atomic_load_n(&random_fill, __ATOMIC_ACQUIRE);
    return fill ? fill(net, seed, err)
                : cnri_fail(err, CNR_E_UNSUPPORTED, weights, "open a runtime by cnr_open first");
}

/* Moves the weights of `from` one by one into those of `net`, freeing each at once, so that both
 * hold a large net's only for a moment. */
static cnr_status take_constants(cnr_graph *net, cnr_graph *from, const char *path,
                                 cnr_error *err) {
    cnri_filling filling = {.graph = net};
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < from->values.n && status == CNR_OK; i++) {
        cnri_value *v = &from->values.at[i];
        if (v->producer >= 0 || v->is_input || !v->type->data) continue;
        status = cnri_filling_add(&filling, v->name, v->type, err);
        cnri_value_drop(v);
    }
    return cnri_filling_end(&filling, status, path, err);
}

cnr_status cnri_weights_import(cnr_graph *net, const cnr_import_args *files, cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    cnri_head head;
    cnr_graph *from = NULL;
    int32_t score = 0;
    const char *path = files->paths[0];
    cnr_import_args args = *files;
    args.net = net;
    cnr_status status = cnri_file_head(path, &head, err);
    if (status) return status;
    const bool native = cnri_is_native(path) || cnri_store_begins(head.at, head.n);
    const cnr_importer *importer = native ? NULL : cnri_importer_for(path, &head, &score);
    if (!importer && !native)
        return cnri_fail(err, CNR_E_UNSUPPORTED, path,
                         "no weights in a format that is known here: "
                         "want a .cnr file, or one of an importer's (see \"cnnrun plugins\")");
    if (!importer && files->n_paths > 1)
        return cnri_fail(err, CNR_E_ARG, files->paths[1],
                         "is one file too many beside %s, which holds all weights of a net", path);
    if (!importer) {
        status = refuse_options(path, files->options, files->n_options, err);
        if (!status) status = cnri_store_fill(net, path, err);
        return cnri_alloc_verdict(before, status, path, err);
    }
    status = cnri_import(importer, &args, net->aside.wanted, &from, err);
    if (!status) status = take_constants(net, from, path, err);
    cnri_graph_free(from);
    return cnri_alloc_verdict(before, status, path, err);
}
