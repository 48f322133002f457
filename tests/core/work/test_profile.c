/* Profiling through the public header: counts of runs, steps, their sums, and stopping. */
#include "../../guests/guests.h"
#include "work/work.h"
#include "people/people.h"

/* What a profile told. */
typedef struct heard {
    int64_t calls, total, stop_at;
} heard;

/* Keeps what is told; 1: stop. */
static int32_t hear(void *arg, const cnr_progress *p) {
    heard *h = arg;
    h->calls++;
    h->total = p->total;
    return h->stop_at && p->done >= h->stop_at;
}

/* Tests: times of the whole net. */
static void whole(cnr_model *m) {
    heard h = {0};
    const cnr_observer observer = {.size = sizeof observer, .arg = &h, .progress = hear};
    cnr_profile_options o = {.size = sizeof o, .batch = 4, .runs = 6, .warm = -1};
    cnr_timing t = {.size = sizeof t};
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(!cnr_profile(m, &o, &observer, &t, &err), "a profile: %s", err.text)) return;
    ok(t.runs == 6 && t.batch == 4 && h.calls == 6 && h.total == 6, "as many runs as asked for");
    ok(t.ms_min > 0 && t.ms_min <= t.ms_median && t.ms_median <= t.ms_max, "least, median, most");
    /* 2 * (20*24*24*25 + 50*8*8*500 + 800*500 + 500*10), four times, beside small things */
    ok(t.flops >= 4 * 4586000.0 && t.flops < 4 * 4700000.0, "work: %.0f", t.flops);
    ok(strcmp(t.device, "cpu") == 0 && t.threads == 2, "who runs it");
    ok(t.arena_bytes >= t.arena_bound_bytes && t.weight_bytes > 1000000 &&
           t.peak_rss_bytes > t.weight_bytes,
       "memory");
    ok(t.n_steps == 0 && !t.steps, "no steps unless asked for");
    cnr_timing_free(&t);
    ok(!cnr_profile(m, NULL, NULL, &t, &err) && t.runs == 20 && t.batch == 1, "without options");
    cnr_timing_free(&t);
}

/* Tests: times of steps. */
static void steps(cnr_model *m) {
    heard h = {0};
    const cnr_observer observer = {.size = sizeof observer, .arg = &h, .progress = hear};
    const cnr_profile_options o = {.size = sizeof o, .steps = 1, .runs = 3, .warm = 1};
    cnr_timing t = {.size = sizeof t};
    cnr_error err = CNR_ERROR_INIT;
    cnri_op_timing sums[64];
    double all = 0, flops = 0, by_op = 0;
    int32_t n_steps = 0;
    bool named = true, falling = true;
    if (!ok(!cnr_profile(m, &o, &observer, &t, &err), "steps: %s", err.text)) return;
    is_int(h.calls, 7, "they have runs of their own");
    for (int32_t i = 0; i < t.n_steps; i++) {
        all += t.steps[i].ms;
        flops += t.steps[i].flops;
        named = named && t.steps[i].step == i && *t.steps[i].node && *t.steps[i].kernel &&
                strcmp(t.steps[i].device, "cpu") == 0 && t.steps[i].ms_min <= t.steps[i].ms;
    }
    ok(t.n_steps >= 4 && named, "each with its names");
    ok(flops > 0 && flops <= t.flops, "and its part of the work");
    const int32_t n = cnri_sum_by_operator(t.steps, t.n_steps, sums);
    for (int32_t i = 0; i < n; i++) {
        by_op += sums[i].ms;
        n_steps += sums[i].steps;
        falling = falling && (i == 0 || sums[i].ms <= sums[i - 1].ms);
    }
    ok(n > 1 && n <= t.n_steps && n_steps == t.n_steps && falling,
       "sums by operator, longest first");
    ok(by_op > all * 0.999 && by_op < all * 1.001, "that are the whole");
    cnr_timing_free(&t);
    ok(!t.steps && t.n_steps == 0, "freed");
    cnr_timing_free(&t);
}

/* Tests: a profile is stopped. */
static void stopping(cnr_model *m) {
    heard h = {.stop_at = 2};
    volatile int32_t flag = 1;
    cnr_observer observer = {.size = sizeof observer, .arg = &h, .progress = hear};
    const cnr_profile_options o = {.size = sizeof o, .runs = 1000};
    cnr_timing t = {.size = sizeof t};
    cnr_error err = CNR_ERROR_INIT;
    ok(cnr_profile(m, &o, &observer, &t, &err) == CNR_E_CANCELLED && h.calls == 2, "stopped");
    h = (heard){0};
    observer.cancel = &flag;
    ok(cnr_profile(m, &o, &observer, &t, &err) == CNR_E_CANCELLED && h.calls == 0,
       "stopped within the first run");
    ok(cnr_profile(NULL, &o, NULL, &t, &err) == CNR_E_ARG, "no model");
    t.size = 0;
    ok(cnr_profile(m, &o, NULL, &t, &err) == CNR_E_ARG, "a result without its size");
}

/* Tests: medians. */
static void medians(void) {
    double odd[] = {5, 1, 3}, even[] = {4, 1, 2, 8};
    ok(cnri_median(odd, 3) == 3 && cnri_median(even, 4) == 3 && cnri_median(odd, 0) == 0,
       "medians");
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = guests_open(2, &err) ? NULL : guests_lenet(NULL);
    medians();
    if (!m) {
        ok(0, "a net: %s", err.text);
        return done();
    }
    whole(m);
    steps(m);
    stopping(m);
    cnr_close(guests_rt);
    return done();
}
