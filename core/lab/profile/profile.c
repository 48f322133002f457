/* Measures the time of each step and of each operator over many runs. */
#include "profile/profile.h"
#include <math.h>

/* Times of a step, and when its current run began (ns) */
typedef struct timer {
    cnri_step_time time;
    uint64_t begun;
    char counters[256]; /* of the last run */
} timer;

/* Times of a plan's runs and steps. */
struct cnri_profile {
    const cnr_plan *plan;
    timer run;
    timer steps[]; /* one for each step of the plan */
};

cnri_profile *cnri_profile_new(const cnr_plan *plan) {
    cnri_profile *p = cnri_alloc_zero(sizeof *p + ((size_t)plan->steps.n + 1) * sizeof p->steps[0]);
    if (p) p->plan = plan;
    return p;
}

void cnri_profile_free(cnri_profile *p) { cnri_free(p); }

void cnri_profile_reset(cnri_profile *p) {
    memset(&p->run, 0, sizeof p->run);
    memset(p->steps, 0, (size_t)p->plan->steps.n * sizeof p->steps[0]);
}

/* Adds the time of a step: the device's own figure if the event has one, else the clock's. */
static void stop(timer *t, const cnri_event *event) {
    const uint64_t now = event->now_ns, clock = now > t->begun ? now - t->begun : 0;
    const uint64_t ns = event->took_ns ? event->took_ns : clock;
    if (t->time.runs == 0 || ns < t->time.least_ns) t->time.least_ns = ns;
    if (event->counters) snprintf(t->counters, sizeof t->counters, "%s", event->counters);
    t->time.total_ns += ns;
    t->time.runs++;
}

void cnri_profile_hear(void *profile, const cnri_event *event) {
    cnri_profile *p = profile;
    switch (event->kind) {
    case CNRI_EVENT_RUN_BEGIN: p->run.begun = event->now_ns; break;
    case CNRI_EVENT_RUN_END: stop(&p->run, event); break;
    case CNRI_EVENT_STEP_BEGIN: p->steps[event->step].begun = event->now_ns; break;
    case CNRI_EVENT_STEP_END: stop(&p->steps[event->step], event); break;
    }
}

cnri_step_time cnri_profile_of(const cnri_profile *p, int32_t step) {
    return step < 0 ? p->run.time : p->steps[step].time;
}

void cnri_profile_put(cnri_profile *p, int32_t step, const cnri_step_time *time) {
    *(step < 0 ? &p->run.time : &p->steps[step].time) = *time;
}

/* ---- rows ---- */

/* Bytes of a tensor as stored; 0: NULL. */
static double stored(const cnr_tensor *t) {
    return !t ? 0 : (double)(t->encoding ? t->bytes : cnr_dense_bytes(t));
}

/* The part of the node that the step computes, 1 if it is not split. */
static double part_of(const cnri_step *s) {
    const int64_t whole = s->range_axis >= 0 ? s->view.outputs[0]->dim[s->range_axis] : 0;
    return whole > 0 ? (double)(s->range_end - s->range_begin) / (double)whole : 1;
}

/* Bytes that a kernel reads and writes; for a split node those of its part. */
static uint64_t bytes_of(const cnri_step *s) {
    double bytes = 0;
    if (s->kind != CNRI_STEP_KERNEL) return 0;
    for (int32_t i = 0; i < s->view.n_inputs; i++) bytes += stored(s->view.inputs[i]);
    for (int32_t i = 0; i < s->view.n_outputs; i++) bytes += stored(s->view.outputs[i]);
    return (uint64_t)(bytes * part_of(s));
}

/* Name of the type in which the kernel multiplies, such as "f16"; NULL: the step runs no kernel. */
static const char *arithmetic_of(const cnri_step *s) {
    if (s->kind != CNRI_STEP_KERNEL) return NULL;
    if (s->kernel && CNRI_HAS(s->kernel, flags) && s->kernel->flags & CNR_KERNEL_F16_MATH)
        return cnr_dtype_name(CNR_f16);
    if (s->kernel && CNRI_HAS(s->kernel, flags) && s->kernel->flags & CNR_KERNEL_BF16_MATH)
        return cnr_dtype_name(CNR_bf16);
    const cnr_tensor *x = s->view.n_inputs > 0 ? s->view.inputs[0] : NULL;
    return cnr_dtype_name(x ? x->dtype : s->view.outputs[0]->dtype);
}

/* Floating-point operations of the step; for a split node those of its part. */
static double kernel_flops(const cnr_plan *plan, const cnri_step *s) {
    const double flops = 2 * cnri_step_macs(plan, s, true);
    if (s->kind != CNRI_STEP_KERNEL || !s->kernel || !CNRI_HAS(s->kernel, flops)) return flops;
    return s->kernel->flops(plan->devices[s->device], &s->view) * part_of(s);
}

void cnri_profile_row(const cnri_profile *p, int32_t step, cnr_step_timing *out) {
    const cnri_step *s = &p->plan->steps.at[step];
    const cnri_step_time *t = &p->steps[step].time;
    const cnri_step_names names = cnri_step_names_of(p->plan, step);
    *out = (cnr_step_timing){.size = sizeof *out,
                             .step = step,
                             .node = names.node,
                             .op = names.op,
                             .kernel = names.kernel,
                             .device = names.device,
                             .ms_min = (double)t->least_ns * 1e-6,
                             .joules = NAN,
                             .flops = 2 * cnri_step_macs(p->plan, s, true),
                             .kernel_flops = kernel_flops(p->plan, s),
                             .arithmetic = arithmetic_of(s),
                             .extrapolated = s->extrapolated};
    /* The text is interned, because the row outlives the profile. */
    const char *counters = p->steps[step].counters;
    if (*counters) out->counters = cnri_name(cnri_intern(counters));
    if (t->runs) out->ms = (double)t->total_ns * 1e-6 / (double)t->runs;
    cnri_transfer_row moved;
    if (!cnri_step_transfer(p->plan, step, &moved)) {
        out->bytes = bytes_of(s);
        return;
    }
    out->from = moved.from;
    out->to = moved.to;
    out->bytes = moved.bytes;
}
