/* Learning rates: how they fall during training, by policies with the names that other trainers
 * use. */
#include "train/train.h"
#include <math.h>

const char *const cnri_rate_policies[] = {"fixed", "inverse",   "step", "cosine",
                                          "poly",  "multistep", "inv",  NULL};

cnr_status cnri_rate_policy_of(const char *name, cnri_rate_policy *out, cnr_error *err) {
    enum { OWN = CNRI_RATE_MULTISTEP + 1 }; /* behind them: a word of Caffe's */
    const char *const *names = cnri_rate_policies;
    *out = CNRI_RATE_FIXED;
    if (!name) return CNR_OK;
    for (int32_t i = 0; names[i]; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = i < OWN ? (cnri_rate_policy)i : CNRI_RATE_INVERSE;
            return CNR_OK;
        }
    const char *near = cnri_nearest_word(name, names, OWN);
    return cnri_fail(err, CNR_E_ARG, "policy",
                     "there is no '%s'%s%s%s: fixed, inverse, step, cosine, poly or multistep",
                     name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* Reads the next number of a list such as "10,15". False: there is none, or it is malformed
 * (*wrong). */
static bool next_epoch(const char **text, double *epoch, bool *wrong) {
    const char *end = *text;
    if (!**text) return false;
    *wrong = !cnri_parse_double(*text, &end, epoch) || (*end && *end != ',') ||
             !(*epoch > 0 && isfinite(*epoch));
    *text = *end ? end + 1 : end;
    return !*wrong;
}

cnr_status cnri_rate_check(const cnri_train_options *o, cnr_error *err) {
    const char *text = o->rate_epochs ? o->rate_epochs : "";
    double epoch, last = 0;
    bool wrong = o->rate_epochs && !*text;
    int32_t n = 0;
    for (; !wrong && next_epoch(&text, &epoch, &wrong); last = epoch, n++)
        if (epoch <= last) wrong = true;
    if (wrong || (n > 1 && o->policy == CNRI_RATE_STEP))
        return cnri_fail(err, CNR_E_ARG, "rate-epochs", "\"%s\": want %s", o->rate_epochs,
                         o->policy == CNRI_RATE_STEP ? "one number of epochs"
                                                     : "rising numbers of epochs, as in 10,15");
    if (!(o->gamma >= 0 && isfinite(o->gamma)) || !(o->power >= 0 && isfinite(o->power)))
        return cnri_fail(err, CNR_E_ARG, "rate", "gamma and power must be 0 or more");
    return CNR_OK;
}

/* The number of epochs in the comma-separated list that are at or before `epoch`. */
static double passed(const char *list, double epoch) {
    double at, n = 0;
    bool wrong = false;
    while (next_epoch(&list, &at, &wrong)) n += epoch >= at;
    return n;
}

/* How many times the rate has fallen at this epoch, which may have a fraction; part: epoch over all
 * epochs. */
static double falls(const cnri_train_options *o, double epoch, double part) {
    double every = (double)o->epochs / 3;
    bool wrong = false;
    const char *list = o->rate_epochs ? o->rate_epochs : "";
    if (o->policy == CNRI_RATE_MULTISTEP)
        return *list ? passed(list, epoch) : (double)((part >= 0.5) + (part >= 0.75));
    (void)next_epoch(&list, &every, &wrong);
    return o->rate_epochs ? floor(epoch / every) : floor(3 * part);
}

double cnri_rate_at(const cnri_train_options *o, int64_t step, int64_t steps) {
    const double part = steps > 0 ? fmin((double)step / (double)steps, 1) : 0;
    const double epoch = part * (double)o->epochs;
    const double gamma = o->gamma > 0 ? o->gamma : o->policy == CNRI_RATE_INVERSE ? 1e-4 : 0.1;
    const double power = o->power > 0 ? o->power : o->policy == CNRI_RATE_INVERSE ? 0.75 : 1;
    switch (o->policy) {
    case CNRI_RATE_INVERSE: return o->rate * pow(1 + gamma * (double)step, -power);
    case CNRI_RATE_COSINE: return o->rate * 0.5 * (1 + cos(3.14159265358979323846 * part));
    case CNRI_RATE_POLY: return o->rate * pow(1 - part, power);
    case CNRI_RATE_STEP:
    case CNRI_RATE_MULTISTEP: return o->rate * pow(gamma, falls(o, epoch, part));
    default: return o->rate;
    }
}
