/* Metrics of the caller and in files: named numbers of all scores that are judged together. */
#include "train/train.h"
#include <math.h>

/* Index of the metric of that name; -1: none. */
static int32_t find(const cnri_metrics *m, const char *name) {
    for (int32_t i = 0; i < m->n; i++)
        if (strcmp(m->at[i]->name, name) == 0) return i;
    return -1;
}

/* Columns of curves. */
static const char *const taken[] = {"epoch",    "loss", "train_accuracy",
                                    "accuracy", "rate", "seconds"};

cnr_status cnri_metrics_add(cnri_metrics *m, const cnr_metric *metric, cnr_error *err) {
    if (!metric || !metric->name || !*metric->name || !metric->compute ||
        strlen(metric->name) >= sizeof((cnr_metric_value *)0)->name)
        return cnri_fail(err, CNR_E_ARG, "metrics",
                         "want a name of 1 to 63 characters and a function for each");
    for (size_t i = 0; i < CNRI_COUNT(taken); i++)
        if (strcmp(metric->name, taken[i]) == 0)
            return cnri_fail(err, CNR_E_ARG, "metrics",
                             "\"%s\" is the name of another result; want another one",
                             metric->name);
    if (find(m, metric->name) >= 0)
        return cnri_fail(err, CNR_E_ARG, "metrics", "there are two called \"%s\"", metric->name);
    if (m->n == CNR_MAX_METRICS)
        return cnri_fail(err, CNR_E_ARG, "metrics", "there are more than %d", CNR_MAX_METRICS);
    m->at[m->n++] = metric;
    return CNR_OK;
}

/* Opens the script files of metrics in a list with commas (NULL: none), CNR_MAX_METRICS at most. */
static cnr_status open_files(const char *names, cnri_metrics *out, cnr_error *err) {
    char name[1024];
    if (names && !*names) return cnri_fail(err, CNR_E_ARG, "metric", "the list is empty");
    for (const char *at = names; at && *at; at += strspn(at, ",")) {
        const size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (out->n_files == CNR_MAX_METRICS)
            return cnri_fail(err, CNR_E_ARG, "metrics", "there are more than %d", CNR_MAX_METRICS);
        CNR_TRY(cnri_metric_file_open(name, out, err));
        at += n;
    }
    return CNR_OK;
}

cnr_status cnri_metrics_open(const char *files, const cnr_metric *const *own, int64_t n_own,
                             cnri_metrics *out, cnr_error *err) {
    *out = (cnri_metrics){0};
    cnr_status status = CNR_OK;
    for (int64_t i = 0; own && i < n_own && !status; i++)
        status = cnri_metrics_add(out, own[i], err);
    return status ? status : open_files(files, out, err);
}

cnr_status cnri_metrics_best(const cnri_metrics *m, const char *best_by, int32_t *index,
                             bool *least, cnr_error *err) {
    const char *name = best_by && *best_by == '-' ? best_by + 1 : best_by;
    cnri_text known = {0};
    *index = -1;
    *least = name != best_by;
    if (!name || (*index = find(m, name)) >= 0) return CNR_OK;
    for (int32_t i = 0; i < m->n; i++)
        cnri_text_add(&known, "%s%s", known.n ? ", " : "", m->at[i]->name);
    cnri_fail(err, CNR_E_NOT_FOUND, "best_by", "there is no metric \"%s\"; there are: %s", name,
              known.n ? known.at : "none");
    cnri_text_free(&known);
    return CNR_E_NOT_FOUND;
}

cnr_status cnri_metrics_compute(const cnri_metrics *m, float *scores, int64_t n, int64_t classes,
                                const int32_t *labels, double *values, cnr_error *err) {
    const cnr_tensor all = {.size = sizeof all,
                            .dtype = CNR_f32,
                            .rank = 2,
                            .dim = {n, classes},
                            .bytes = (uint64_t)(n * classes) * sizeof(float),
                            .data = scores};
    for (int32_t i = 0; i < m->n; i++) {
        values[i] = NAN;
        const cnr_status status = m->at[i]->compute(m->at[i]->arg, &all, labels, &values[i], err);
        if (status) return status;
        if (!isfinite(values[i])) values[i] = NAN;
    }
    return CNR_OK;
}

void cnri_metrics_tell(const cnri_metrics *m, const double *values, cnr_metric_value *out) {
    for (int32_t i = 0; i < m->n; i++) {
        snprintf(out[i].name, sizeof out[i].name, "%s", m->at[i]->name);
        out[i].value = values ? values[i] : (double)NAN;
    }
}
