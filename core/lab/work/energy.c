/* Energy regions: begun, ended, and repeated until they are long enough to measure. */
#include "watch/watch.h"
#include "work/work.h"
#include <math.h>
#include <pthread.h>

/* A region whose energy is measured. */
struct cnr_energy_region {
    cnri_sampler *sampler;
    cnri_reading_point begin;
    cnr_energy_options options;
};

/* *out: the runtime's sampler of meters, opened at first use; the runtime closes it. */
cnr_status cnri_energy_sampler(cnr_runtime *rt, cnri_sampler **out, cnr_error *err) {
    const cnr_gauge_options options = {.size = sizeof options,
                                       .root = rt->sysfs_root,
                                       .address = rt->meter_address};
    cnri_sampler *sampler = NULL;
    cnr_status status = CNR_OK;
    pthread_mutex_lock(rt->lock);
    if (!rt->sampler.at) status = cnri_sampler_open(&options, &sampler, err);
    if (sampler) {
        rt->sampler.at = sampler;
        rt->sampler.close = cnri_sampler_close;
    }
    *out = rt->sampler.at;
    pthread_mutex_unlock(rt->lock);
    return status;
}

const volatile int32_t *cnri_cancel_of(const cnr_observer *o) {
    return o && CNRI_HAS(o, cancel) ? o->cancel : NULL;
}

cnr_status cnr_energy_begin(cnr_runtime *rt, const cnr_energy_options *options,
                            const struct cnr_observer *observer, cnr_energy_region **out,
                            cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "out", out, NULL);
    if (status) return status;
    *out = NULL;
    cnr_energy_region *r = cnri_alloc_zero(sizeof *r);
    if (!r) return cnri_out_of_memory(err, "energy");
    CNRI_COPY_OPTIONS(r->options, options);
    status = cnri_energy_sampler(rt, &r->sampler, err);
    if (!status && !r->options.no_idle && r->options.idle_watts <= 0)
        status = cnri_sampler_idle(r->sampler, cnri_cancel_of(observer), err);
    if (!status) status = cnri_sampler_start(r->sampler, err);
    if (status) {
        cnri_free(r);
        return status;
    }
    status = cnri_sampler_point(r->sampler, true, &r->begin, err);
    if (!status) *out = r;
    else cnr_energy_end(r, 1, NULL, NULL);
    return status;
}

/* Returns 1 if the region has lasted at least 20 periods of the slowest sensor; shorter ones are
 * inaccurate. Under a plugin's clock no thread reads the meters, so they are read here, between
 * rounds. */
int32_t cnr_energy_long_enough(cnr_energy_region *r) {
    if (!r) return 0;
    if (!cnri_clock_is_real()) cnri_sampler_read(r->sampler, false);
    return cnri_now_ns() - r->begin.now_ns >= cnri_sampler_shortest_ns(r->sampler);
}

cnr_status cnr_energy_end(cnr_energy_region *r, int64_t rounds, cnr_energy *out, cnr_error *err) {
    cnri_reading_point end = {0};
    cnr_energy got = {.size = sizeof got};
    cnr_status status = cnri_require_arguments(err, "the region", r, NULL);
    if (status) return status;
    if (out && out->size < offsetof(cnr_energy, missing)) /* size of the struct in version 1.2 */
        status = cnri_fail(err, CNR_E_ARG, "out", "its size is to be set before the call");
    if (out && !status) status = cnri_sampler_point(r->sampler, true, &end, err);
    if (out && !status && r->options.idle_behind && !r->options.no_idle &&
        r->options.idle_watts <= 0)
        status = cnri_sampler_idle_recheck(r->sampler, err);
    if (out && !status)
        status = cnri_account(r->sampler, &r->begin, &end, rounds > 0 ? rounds : 1,
                              r->options.idle_watts, &got, err);
    if (out && !status) CNRI_COPY_RESULT(out, got);
    cnri_sampler_stop(r->sampler);
    cnri_free(end.at);
    cnri_free(r->begin.at);
    cnri_free(r);
    return status;
}

void cnr_energy_free(cnr_energy *e) {
    if (!e) return;
    cnri_free(e->at);
    e->at = NULL;
    e->n = 0;
}

/* ---- for other work ---- */

/* True if the domain feeds the device, by family: "cpu" is fed by a domain that feeds "cpu:big".
 * A domain that names no device feeds all. */
static bool feeds(const cnr_energy_domain *d, const char *device) {
    const size_t n = strcspn(d->feeds, ":");
    return d->summed &&
           (n == 0 || (n == strcspn(device, ":") && strncmp(d->feeds, device, n) == 0));
}

/* True if a meter feeds that device. */
static bool is_fed(const cnr_energy *e, const char *device) {
    for (int32_t i = 0; i < e->n; i++)
        if (feeds(&e->at[i], device)) return true;
    return false;
}

void cnri_energy_check_plan(cnr_energy *e, const cnr_plan *plan) {
    for (int32_t i = 0; e && e->source && plan && i < plan->steps.n; i++) {
        const cnri_step *step = &plan->steps.at[i];
        const char *device = plan->devices[step->device]->name;
        if (step->kind != CNRI_STEP_KERNEL || is_fed(e, device)) continue;
        e->source = CNR_ENERGY_UNMEASURED;
        e->joules = e->joules_net = e->watts = e->idle_watts = e->edp = NAN;
        snprintf(e->why, sizeof e->why, "no meter feeds %.60s", device);
        for (int32_t k = 0; k < e->n; k++) e->at[k].summed = 0;
    }
}

cnr_status cnri_energy_begin_if(cnr_runtime *rt, int32_t wanted, const cnr_observer *observer,
                                cnr_energy_region **region, cnr_error *err) {
    *region = NULL;
    return wanted ? cnr_energy_begin(rt, NULL, observer, region, err) : CNR_OK;
}

cnr_status cnri_energy_close(cnr_energy_region *region, cnr_status status, int64_t rounds,
                             cnr_energy **out, cnr_error *err) {
    if (!region) return status;
    cnr_energy *made = status ? NULL : cnri_alloc_zero(sizeof *made);
    if (made) made->size = sizeof *made;
    else if (!status) status = cnri_out_of_memory(err, "energy");
    const cnr_status ended = cnr_energy_end(region, rounds, made, status ? NULL : err);
    if (ended || status) cnri_free(made);
    else *out = made;
    return status ? status : ended;
}

void cnri_energy_drop(cnr_energy **energy) {
    cnr_energy_free(*energy);
    cnri_free(*energy);
    *energy = NULL;
}

cnr_status cnr_energy_of(cnr_runtime *rt, cnr_status (*work)(void *arg, cnr_error *err), void *arg,
                         const cnr_energy_options *options, const struct cnr_observer *observer,
                         cnr_energy *out, cnr_error *err) {
    cnr_energy_options o;
    cnr_energy_region *region;
    int64_t rounds = 0;
    CNRI_COPY_OPTIONS(o, options);
    cnr_status status =
        cnri_require_arguments(err, "work", (const void *)(uintptr_t)work, "out", out, NULL);
    if (!status) status = cnr_energy_begin(rt, &o, observer, &region, err);
    if (status) return status;
    do {
        status = work(arg, err);
        rounds++;
        if (!status && cnri_stopped(observer))
            status = cnri_fail(err, CNR_E_CANCELLED, "energy", "stopped");
    } while (!status && (rounds < o.rounds || !cnr_energy_long_enough(region)));
    const cnr_status ended =
        cnr_energy_end(region, rounds, status ? NULL : out, status ? NULL : err);
    return status ? status : ended;
}
