/* What a domain draws at rest: a mean, how far readings stray from it, and whether it was at rest at all. */
#include "core/watch/watch.h"
#include <math.h>

/* Of two halves: apart by more than a tenth, and by more than their own readings explain. */
#define APART 0.1
#define ERRORS 4.0
#define FEWEST 3 /* readings of a half; counters may tell less */
#define NOISE 0.02 /* of sensors that tell no spread at all */

/* Watts of the readings between two points, and their variance. */
static double mean_of(const cnri_told_energy *a, const cnri_told_energy *b, double *variance) {
    const double n = b->n - a->n, mean = (b->sum - a->sum) / n, square = (b->squares - a->squares) / n;
    const double least = 1e-12 * square; /* below is what rounding left */
    *variance = square - mean * mean > least ? (square - mean * mean) * n / (n - 1) : 0;
    return mean;
}

bool cnri_rest_of(const cnri_told_energy *begin, const cnri_told_energy *middle,
                  const cnri_told_energy *end, cnri_rest *out) {
    const double passed = (double)(end->covered_ns - begin->covered_ns) * 1e-9;
    const double n = end->n - begin->n, n1 = middle->n - begin->n, n2 = end->n - middle->n;
    double variance, v1, v2;
    *out = (cnri_rest){.watts = NAN, .spread = NAN};
    if (end->status || passed <= 0) return true;
    out->watts = (end->joules - begin->joules) / passed;
    if (n < 2) return true;
    mean_of(begin, end, &variance);
    out->spread = sqrt(variance);
    if (n1 < FEWEST || n2 < FEWEST) return true;
    const double first = mean_of(begin, middle, &v1), second = mean_of(middle, end, &v2);
    const double apart = fabs(first - second);
    if (apart <= APART * fmax(fabs(first), fabs(second)) || apart <= ERRORS * sqrt(v1 / n1 + v2 / n2))
        return true;
    snprintf(out->why, sizeof out->why, "the baseline did not hold still: %.4g W, then %.4g", first, second);
    return false;
}

double cnri_rest_noise(double watts, double spread) {
    return fmax(spread, NOISE * fabs(watts));
}

bool cnri_rest_confirm(cnri_rest *before, const cnri_rest *behind) {
    if (!(behind->watts < before->watts - cnri_rest_noise(before->watts, before->spread))) return true;
    snprintf(before->why, sizeof before->why, "the baseline was under load: %.4g W before, %.4g behind",
             before->watts, behind->watts);
    return false;
}
