/* Presets: the steps by which pictures are prepared for nets of other programs, as importers
 * give them; also finds settings that can't belong to pixels. */
#include "data/data.h"
#include <math.h>

static const char *const *presets_of(int32_t i) {
    const cnr_importer *importer = cnri_descriptor_at(CNR_KIND_IMPORTER, i);
    return CNRI_HAS(importer, presets) ? importer->presets : NULL;
}

/* The text of a preset, "NAME key=text ...", of any importer; NULL: there is none. */
static const char *find(const char *name) {
    const size_t n = strlen(name);
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++)
        for (const char *const *row = presets_of(i); row && *row; row++)
            if (strcspn(*row, " ") == n && strncmp(*row, name, n) == 0) return *row;
    return NULL;
}

/* Appends the names of all presets, with commas between. */
static void preset_names(cnri_text *out) {
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++)
        for (const char *const *row = presets_of(i); row && *row; row++)
            cnri_text_add(out, "%s%.*s", out->n ? ", " : "", (int)strcspn(*row, " "), *row);
}

cnr_status cnri_preset_each(const char *name, cnri_step_fn fn, void *arg, cnr_error *err) {
    const char *row = find(name);
    cnr_status status = CNR_OK;
    if (!row) {
        cnri_text known = {0};
        preset_names(&known);
        status =
            cnri_fail(err, CNR_E_ARG, "preset", "none is called \"%.80s\"; there are: %s", name,
                      known.at ? known.at : "none (importers bring them, and none was found)");
        cnri_text_free(&known);
        return status;
    }
    for (row += strcspn(row, " "); *row && !status; row += strcspn(row, " ")) {
        char step[256];
        row += strspn(row, " ");
        snprintf(step, sizeof step, "%.*s", (int)strcspn(row, " "), row);
        char *equals = strchr(step, '=');
        if (!equals) continue;
        *equals = 0;
        status = fn(arg, step, equals + 1, err);
    }
    return status;
}

/* ---- units ---- */

/* True if all values lie between -1 and 1 and not all are 0. Such settings are meant for pixels
 * from 0 to 1, not from 0 to 255. */
static bool fractions(const double *values, int32_t n) {
    bool some = false;
    for (int32_t i = 0; i < n; i++) {
        if (fabs(values[i]) >= 1) return false;
        some = some || values[i] != 0;
    }
    return some;
}

/* CNR_E_ARG if mean and std can only be of pixels from 0 to 1, as pixels here are 0 to 255; the
 * message has the right numbers. */
cnr_status cnri_preprocess_units(const cnri_preprocess *p, const char *where, cnr_error *err) {
    if (!fractions(p->mean, p->n_mean) || !fractions(p->std, p->n_std)) return CNR_OK;
    cnri_text known = {0};
    preset_names(&known);
    const cnr_status status =
        cnri_fail(err, CNR_E_ARG, where,
                  "mean %.4g and std %.4g are of pixels from 0 to 1, and pixels here are 0 "
                  "to 255: want them times 255 (%.6g and %.6g), or a preset: %s",
                  p->mean[0], p->std[0], p->mean[0] * 255, p->std[0] * 255,
                  known.at ? known.at : "");
    cnri_text_free(&known);
    return status;
}

/* ---- labels ---- */

/* The number of classes that a net with one output distinguishes; -1: it is no classifier, or
 * its size is open. */
static int64_t output_classes(const cnr_graph *g) {
    const cnr_tensor *t = g->outputs.n == 1 ? g->values.at[g->outputs.at[0]].type : NULL;
    int64_t classes = -1;
    if (!t || t->rank < 1) return -1;
    for (int32_t i = t->rank > 1; i < t->rank; i++) {
        const int64_t size = t->dim[i] < 0 ? cnri_dim_default(g, t->dim[i]) : t->dim[i];
        if (size == 1) continue;
        if (size < 1 || classes >= 0) return -1;
        classes = size;
    }
    return classes;
}

/* CNR_E_ARG if the net has a known number of classes other than `labels` (below 1: unknown). */
cnr_status cnri_labels_check(const cnr_graph *g, int64_t labels, const char *where,
                             cnr_error *err) {
    const int64_t classes = output_classes(g);
    if (labels < 1 || classes < 0 || labels == classes) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, where,
                     "%lld labels, and the net tells %lld classes apart: want a "
                     "line for each, in the net's order%s",
                     (long long)labels, (long long)classes,
                     labels == classes - 1
                         ? "; where its first class is none of them, a line for that "
                           "in front"
                         : "");
}
