/* Energy of each domain between two points, and which of them may be added up. */
#include "watch/watch.h"
#include <math.h>
#include <string.h>

static const char still[] =
    "its counter does not move"; /* such a domain is off, so its energy is not missing */

/* ---- a domain ---- */

/* Marks a domain as not measured, and says why. */
static void unmeasured(cnr_energy_domain *out, int32_t status, const char *why) {
    out->status = status;
    snprintf(out->why, sizeof out->why, "%s", why);
    out->joules = out->joules_net = out->watts = out->edp = NAN;
}

/* True if readings cover nearly all of the time. */
static bool covers(const cnri_sampled_domain *d, double covered, double seconds) {
    const double missing = seconds - covered, interval = (double)d->interval_ns * 1e-9;
    return covered > 0 && missing <= fmax(0.05 * seconds, 2 * interval);
}

/* True if the domain could be read at the beginning, but its energy since is not known. */
static bool account(const cnri_sampled_domain *d, const cnri_domain_totals *a,
                    const cnri_domain_totals *b, double seconds, cnr_energy_domain *out) {
    const double covered = (double)(b->covered_ns - a->covered_ns) * 1e-9;
    const double joules = b->joules - a->joules;
    char why[sizeof out->why];
    out->samples = b->samples - a->samples;
    if (b->status) {
        unmeasured(out, b->status, b->why);
        return !a->status;
    } else if (!covers(d, covered, seconds)) {
        snprintf(why, sizeof why, "read for %.3g s of %.3g only%s%s", covered, seconds,
                 b->lapses > a->lapses ? ": " : "", b->lapses > a->lapses ? b->lapse : "");
        unmeasured(out, CNR_E_STATE, why);
        return true;
    } else if (d->desc->quantity == CNR_QUANTITY_ENERGY && joules <= 0) {
        unmeasured(out, CNR_E_STATE, still);
    } else {
        out->watts = joules / covered;
    }
    return false;
}

/* Fills name, meter, quantity and idle power of a domain. */
static void describe(const cnri_sampled_domain *d, cnr_energy_domain *out) {
    *out = (cnr_energy_domain){.size = sizeof *out,
                               .quantity = d->desc->quantity,
                               .meter = d->meter->meter->name,
                               /* joules of a simulated machine are estimates, whatever the meter
                                * says */
                               .estimated = d->desc->is_estimated || !cnri_clock_is_real(),
                               .period_ms = d->desc->period_ms,
                               .idle_watts = *d->idle.why ? NAN : d->idle.watts,
                               .idle_spread = *d->idle.why ? NAN : d->idle.spread};
    memcpy(out->why, d->idle.why, sizeof d->idle.why);
    memcpy(out->name, d->desc->name, sizeof out->name);
    memcpy(out->feeds, d->desc->device, sizeof out->feeds);
}

/* ---- all of them ---- */

/* True if a domain whose energy includes that of domain i was measured. */
static bool has_measured_parent(const cnr_energy *e, int32_t i) {
    for (int32_t n = 0; e->at[i].within && n < e->n; n++) {
        i = e->at[i].within - 1;
        if (!e->at[i].status) return true;
    }
    return false;
}

/* Chooses the domains to add up, so that nothing counts twice: one that covers the machine
 * replaces all others, and a part is left out if the domain it is part of is measured. Measured
 * domains are not mixed with estimates. */
static void choose(cnri_sampler *s, cnr_energy *e) {
    bool measured = false;
    int32_t whole = -1;
    for (int32_t i = 0; i < e->n; i++)
        measured = measured || (!e->at[i].status && !e->at[i].estimated);
    for (int32_t i = 0; i < e->n; i++) {
        cnr_energy_domain *d = &e->at[i];
        d->summed = !d->status && d->estimated == !measured && !has_measured_parent(e, i);
        if (d->summed && cnri_sampler_domain(s, i)->desc->is_whole_machine && whole < 0) whole = i;
    }
    for (int32_t i = 0; i < e->n && whole >= 0; i++) e->at[i].summed = i == whole;
    for (int32_t i = 0; i < e->n; i++)
        if (e->at[i].summed)
            e->source = !cnri_clock_is_real() ? CNR_ENERGY_SIMULATED
                        : e->at[i].estimated  ? CNR_ENERGY_ESTIMATED
                                              : CNR_ENERGY_MEASURED;
}

/* Clears the sums, because without domain `d` they are not the machine's. */
static void drop_sums(cnr_energy *e, const cnr_energy_domain *d) {
    e->source = CNR_ENERGY_UNMEASURED;
    snprintf(e->why, sizeof e->why, "%.30s failed meanwhile: %.30s", d->name, d->why);
    for (int32_t i = 0; i < e->n; i++) e->at[i].summed = 0;
}

/* Names in e->missing the domains that the sums lack, and clears the sums if one of these failed
 * meanwhile. */
static void judge_missing(const cnri_sampler *s, const bool *lost, cnr_energy *e) {
    const bool estimated = e->source == CNR_ENERGY_ESTIMATED || e->source == CNR_ENERGY_SIMULATED;
    const cnr_energy_domain *failed = NULL;
    for (int32_t i = 0; i < e->n; i++)
        if (e->at[i].summed && cnri_sampler_domain(s, i)->desc->is_whole_machine) return;
    for (int32_t i = 0; i < e->n && e->source; i++) {
        const cnr_energy_domain *d = &e->at[i];
        if (!d->status || d->estimated != estimated || has_measured_parent(e, i) ||
            strcmp(d->why, still) == 0)
            continue;
        const size_t n = strlen(e->missing);
        snprintf(e->missing + n, sizeof e->missing - n, "%s%.60s", n ? ", " : "", d->name);
        if (lost[i] && !failed) failed = d;
    }
    if (failed) drop_sums(e, failed);
}

/* Joules above idle power, at least 0; NaN if either power is NaN. */
static double net(double watts, double idle_watts, double seconds) {
    const double over = watts - idle_watts;
    /* Smaller differences come from rounding. */
    return over < 1e-9 * fabs(watts) ? 0 : over * seconds;
}

/* False if the domain drew less during the run than when idle; its idle power is then cleared. */
static bool baseline_holds(cnr_energy_domain *d) {
    const double noise = cnri_idle_baseline_noise(d->idle_watts, d->idle_spread);
    if (!(d->watts < d->idle_watts - noise)) return true;
    snprintf(d->why, sizeof d->why,
             "the baseline was taken under load: %.4g W before the run, %.4g W in it",
             d->idle_watts, d->watts);
    d->idle_watts = d->idle_spread = NAN;
    return false;
}

/* Uses the idle power that the caller gave, unless it is more than was drawn. */
static void apply_given_idle(cnr_energy *e, double idle_watts) {
    if (!e->source || idle_watts <= 0) return;
    e->idle_watts = idle_watts;
    e->why[0] = 0;
    if (e->watts >= idle_watts) return;
    snprintf(e->why, sizeof e->why, "idle power was given as %.4g W, but only %.4g W are drawn",
             idle_watts, e->watts);
    e->idle_watts = NAN;
}

/* Computes each measured domain's joules and EDP, and sums those that do not overlap; NaN without
 * any. */
static void sum_up(cnr_energy *e) {
    e->joules = e->watts = e->idle_watts = e->source ? 0 : NAN;
    for (int32_t i = 0; i < e->n; i++) {
        cnr_energy_domain *d = &e->at[i];
        e->unmeasured += d->status != 0;
        if (d->status) continue;
        d->joules = d->watts * e->seconds;
        d->joules_net = net(d->watts, d->idle_watts, e->seconds);
        d->edp = d->joules * e->seconds;
        if (!d->summed) continue;
        e->joules += d->joules;
        e->watts += d->watts;
        e->idle_watts += d->idle_watts;
        e->samples += d->samples;
        if (*d->why && !*e->why) snprintf(e->why, sizeof e->why, "%.79s", d->why);
    }
    e->edp = e->joules * e->seconds;
}

/* Index of the domain whose energy includes this one's; -1: none. */
static int32_t parent_of(cnri_sampler *s, const cnri_sampled_domain *d) {
    for (int32_t i = 0; d->desc->parent > 0 && i < cnri_sampler_count(s); i++) {
        const cnri_sampled_domain *other = cnri_sampler_domain(s, i);
        if (other->meter == d->meter && other->index == d->desc->parent - 1) return i + 1;
    }
    return 0;
}

cnr_status cnri_account(cnri_sampler *s, const cnri_reading_point *begin,
                        const cnri_reading_point *end, int64_t rounds, double idle_watts,
                        cnr_energy *out, cnr_error *err) {
    const double seconds = (double)(end->now_ns - begin->now_ns) * 1e-9;
    *out = (cnr_energy){.size = sizeof *out,
                        .n = cnri_sampler_count(s),
                        .rounds = rounds,
                        .seconds = seconds / (double)rounds};
    out->at = cnri_alloc_zero(((size_t)out->n + 1) * sizeof *out->at);
    bool *lost = cnri_alloc_zero((size_t)out->n + 1);
    if (!out->at || !lost) {
        cnri_free(lost);
        cnri_free(out->at);
        out->at = NULL;
        out->n = 0;
        return cnri_out_of_memory(err, "energy");
    }
    for (int32_t i = 0; i < out->n; i++) {
        const cnri_sampled_domain *d = cnri_sampler_domain(s, i);
        describe(d, &out->at[i]);
        out->at[i].within = parent_of(s, d);
        lost[i] = account(d, &begin->at[i], &end->at[i], seconds, &out->at[i]);
        if (!out->at[i].status && !baseline_holds(&out->at[i])) cnri_sampler_forget_idle(s);
    }
    if (seconds > 0)
        out->sampler_share = (double)(end->sampler_ns - begin->sampler_ns) * 1e-9 / seconds;
    choose(s, out);
    judge_missing(s, lost, out);
    cnri_free(lost);
    sum_up(out);
    apply_given_idle(out, idle_watts);
    out->joules_net = net(out->watts, out->idle_watts, out->seconds);
    return CNR_OK;
}
