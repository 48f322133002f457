/* Compares the quality of tracking with its own average for this object: occlusion shows there
 * first. Blurred or fast objects are always tracked badly, so no fixed bound would fit. */
#include "tld.h"
#include <math.h>

enum { KNOWN = 10, MEMORY = 30 }; /* frames until the average is known; frames that it covers */

/* The signs, at least as large as noise gives in a still picture. */
static void signs_of(const tld_quality *q, double confidence, double *out) {
    const double c = fmin(fmax(confidence, 0.02), 0.98);
    out[0] = log(fmax(1 - (double)q->likeness, 0.003));
    out[1] = log(fmax((double)q->error, 0.01));
    out[2] = log(fmax((double)q->spread, 0.03));
    out[3] = 0.5 * log((1 - c) / c);
}

/* How much worse than average recent frames were, in deviations: 0 to `most`. Cumulative sum of the
 * excess over the average (CUSUM): tolerates a single bad frame, but not several in succession.
 * While the object is hidden, the average does not change. */
double tld_unusual(tld_usual *u, const tld_quality *q, double confidence, bool hidden,
                   double most) {
    static const double least[TLD_SIGNS] = {0.35, 0.35, 0.35,
                                            0.12}; /* deviations of stable paths */
    static const double allowed = 1.2, worst = 4;
    double now[TLD_SIGNS], z[TLD_SIGNS];
    signs_of(q, confidence, now);
    if (isnan(confidence)) now[3] = u->frames ? u->mean[3] : 0;
    for (int32_t i = 0; i < TLD_SIGNS && !u->frames; i++) {
        u->mean[i] = now[i];
        u->variance[i] = i < 3 ? 0.36 : 0.04;
    }
    const double rate = fmax(1.0 / MEMORY, 1.0 / (u->frames + 2));
    for (int32_t i = 0; i < TLD_SIGNS; i++) {
        const double deviation = fmax(sqrt(u->variance[i]), least[i]);
        z[i] = (now[i] - u->mean[i]) / deviation;
        if (i == 3 && hidden) continue;
        const double step = fmax(-3, fmin(3, z[i])) * deviation;
        u->mean[i] += rate * step;
        u->variance[i] += rate * (step * step - u->variance[i]);
    }
    const double flow = (fmax(z[0], 0) + fmax(z[1], 0) + fmax(z[2], 0)) / 3;
    if (u->frames < KNOWN) u->frames++;
    else u->sum = fmax(0, fmin(most, u->sum + fmin(worst, fmax(flow, 0.6 * z[3])) - allowed));
    return u->sum;
}
