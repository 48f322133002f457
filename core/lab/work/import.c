/* Imports models of other programs: chooses the importer, and reads weights and mean images of
 * its format. */
#include "work/work.h"
#include "samples/samples.h"

/* ---- which importer ---- */

/* Fails with CNR_E_UNSUPPORTED, `what` as text, and the names of all importers. */
static cnr_status none_fits(const char *where, const char *what, cnr_error *err) {
    cnri_text known = {0};
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *importer = cnri_descriptor_at(CNR_KIND_IMPORTER, i);
        cnri_text_add(&known, "%s%s", i ? ", " : "", importer->name);
    }
    const cnr_status status =
        cnri_fail(err, CNR_E_UNSUPPORTED, where, "%s; there are: %s", what,
                  known.at && *known.at ? known.at : "none (no importer plugin was found)");
    cnri_text_free(&known);
    return status;
}

/* Finds an importer by name, or with NULL by the file. */
static cnr_status find(const char *name, const char *path, const cnr_importer **out,
                       cnr_error *err) {
    cnri_head head;
    int32_t score = 0;
    *out = name ? cnri_descriptor_find(CNR_KIND_IMPORTER, name) : NULL;
    if (*out) return CNR_OK;
    if (name) return none_fits(name, "no importer has this name", err);
    const cnr_status status = cnri_file_head(path, &head, err);
    if (status) return status;
    *out = cnri_importer_for(path, &head, &score);
    return *out ? CNR_OK : none_fits(path, "no importer knows this file", err);
}

/* ---- mean images in a format of the importer's ---- */

/* *is: true if some source reads the file as a picture. */
static cnr_status is_picture(const char *path, bool *is, cnr_error *err) {
    cnri_samples samples;
    cnr_error why = CNR_ERROR_INIT;
    *is = cnri_augment_open(path, NULL, &samples, &why) == CNR_OK;
    if (*is) cnri_samples_close(&samples);
    if (*is || why.code == CNR_E_UNSUPPORTED) return CNR_OK;
    return cnri_fail(err, why.code, why.where, "%s", why.text);
}

/* True if an input of the net has a mean. */
static bool has_mean(const cnr_graph *g) {
    for (int32_t i = 0; i < g->inputs.n; i++) {
        char key[300];
        snprintf(key, sizeof key, "input.%.200s.mean", g->values.at[g->inputs.at[i]].name);
        if (cnri_graph_meta(g, key)) return true;
    }
    return false;
}

/* Fills err: the mean is neither a picture nor in this importer's format. */
static cnr_status no_mean(const char *path, cnr_error *err) {
    return cnri_fail(err, CNR_E_UNSUPPORTED, path,
                     "neither a picture nor a mean image of this importer");
}

/* ---- the whole ---- */

/* Runs the importer with the options' settings into *graph. `mean`: one more setting, or NULL. */
static cnr_status run_importer(const cnri_import_options *o, const cnr_importer *importer,
                               const char *mean, cnr_graph **graph, cnr_error *err) {
    const int32_t n = o->n_settings;
    const char **settings = cnri_alloc_zero((size_t)(n + 2) * sizeof *settings);
    if (!settings) return cnri_out_of_memory(err, o->paths[0]);
    for (int32_t i = 0; i < n; i++) settings[i] = o->settings[i];
    settings[n] = mean;
    const cnr_import_args how = {.size = sizeof how,
                                 .n_paths = o->n_paths,
                                 .paths = o->paths,
                                 .n_options = n + (mean != NULL),
                                 .options = settings};
    cnr_status status = cnri_import(importer, &how, false, graph, err);
    cnri_free(settings);
    if (!status) (*graph)->no_verify = o->no_verify;
    return status ? status : cnri_weights_fill(*graph, o->weights, NULL, err);
}

/* Imports a net, with `mean` telling the importer of the mean image. */
static cnr_status import_with(const cnri_import_options *o, const cnr_importer *importer, bool mean,
                              cnr_graph **graph, cnr_error *err) {
    char *setting = mean ? cnri_format("mean_file=%s", o->mean) : NULL;
    if (mean && !setting) return cnri_out_of_memory(err, o->mean);
    if (mean && !cnri_importer_takes(importer, "mean_file")) {
        cnri_free(setting);
        return no_mean(o->mean, err);
    }
    cnr_status status = run_importer(o, importer, setting, graph, err);
    cnri_free(setting);
    if (!status && mean && !has_mean(*graph)) status = no_mean(o->mean, err);
    if (!status) status = cnri_graph_status(*graph, true, err);
    if (!status && o->labels) status = cnri_labels_read(*graph, o->labels, err);
    return status;
}

int64_t cnri_parameters_of(const cnr_graph *g) {
    int64_t n = 0;
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnri_value *v = &g->values.at[i];
        if (v->producer < 0 && !v->is_input && v->type->data) n += cnr_count(v->type);
    }
    return n;
}

/* Lists the files of the model and (more) of its weights, without native weight files. */
static cnr_status list_paths(const cnri_import_options *o, bool more, cnri_paths *out,
                             cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < o->n_paths && !status; i++)
        status = cnri_paths_add(out, o->paths[i], err);
    return !status && more ? cnri_paths_add(out, o->weights, err) : status;
}

/* Imports a net with all its weights into *out. *mean_taken: the mean image was in the importer's
 * format and is set; else it is a picture that the caller still has to use. */
cnr_status cnri_import_model(const cnri_import_options *options, cnr_graph **out, bool *mean_taken,
                             cnr_error *err) {
    const cnr_importer *importer;
    cnri_import_options o = *options;
    cnri_paths paths = {0};
    bool picture = true;
    *out = NULL;
    *mean_taken = false;
    const bool more = o.weights && cnri_weights_are_file(o.weights) && !cnri_is_native(o.weights);
    cnr_status status = list_paths(&o, more, &paths, err);
    o.paths = (const char *const *)paths.at;
    o.n_paths = paths.n;
    if (more) o.weights = NULL;
    if (!status) status = find(o.format, o.paths[0], &importer, err);
    if (!status && o.mean) status = is_picture(o.mean, &picture, err);
    if (!status) {
        *mean_taken = !picture;
        status = import_with(&o, importer, !picture, out, err);
    }
    if (status) {
        cnri_graph_free(*out);
        *out = NULL;
    }
    cnri_paths_free(&paths);
    return status;
}
