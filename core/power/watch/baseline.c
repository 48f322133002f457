/* Idle baseline of a power domain: mean, standard deviation, and whether both halves of the
 * measurement agree. */
#include "watch/watch.h"
#include <math.h>

/* Two halves disagree if they differ by more than a tenth and by more than 4 standard errors. */
#define APART 0.1
#define ERRORS 4.0
#define FEWEST 3   /* readings of each half; with fewer, halves are not compared */
#define NOISE 0.02 /* relative, for sensors whose readings do not vary */

/* Mean watts of the readings between two points; *variance: theirs. At least two readings are
 * wanted. */
static double mean_of(const cnri_domain_totals *a, const cnri_domain_totals *b, double *variance) {
    const double n = b->n - a->n, mean = (b->sum - a->sum) / n,
                 square = (b->squares - a->squares) / n;
    const double minimum = 1e-12 * square; /* a smaller variance comes from rounding */
    *variance = square - mean * mean > minimum ? (square - mean * mean) * n / (n - 1) : 0;
    return mean;
}

bool cnri_idle_baseline_of(const cnri_domain_totals *begin, const cnri_domain_totals *middle,
                           const cnri_domain_totals *end, cnri_idle_baseline *out) {
    const double passed = (double)(end->covered_ns - begin->covered_ns) * 1e-9;
    const double n = end->n - begin->n, n1 = middle->n - begin->n, n2 = end->n - middle->n;
    double variance, v1, v2;
    *out = (cnri_idle_baseline){.watts = NAN, .spread = NAN};
    if (end->status || passed <= 0) return true;
    out->watts = (end->joules - begin->joules) / passed;
    if (n < 2) return true;
    mean_of(begin, end, &variance);
    out->spread = sqrt(variance);
    if (n1 < FEWEST || n2 < FEWEST) return true;
    const double first = mean_of(begin, middle, &v1), second = mean_of(middle, end, &v2);
    const double apart = fabs(first - second);
    if (apart <= APART * fmax(fabs(first), fabs(second)) ||
        apart <= ERRORS * sqrt(v1 / n1 + v2 / n2))
        return true;
    snprintf(out->why, sizeof out->why,
             "idle power drifted while the baseline was measured (%.4g W, then %.4g W)", first,
             second);
    return false;
}

double cnri_idle_baseline_noise(double watts, double spread) {
    return fmax(spread, NOISE * fabs(watts));
}

bool cnri_idle_baseline_recheck(cnri_idle_baseline *before, const cnri_idle_baseline *after) {
    if (!(after->watts < before->watts - cnri_idle_baseline_noise(before->watts, before->spread)))
        return true;
    snprintf(before->why, sizeof before->why,
             "the baseline was taken under load: %.4g W before the run, %.4g W after it",
             before->watts, after->watts);
    return false;
}
