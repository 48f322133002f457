/* What a plan will take: its steps run on queues, one a device, by times that were measured.
 *
 *   H   the thread that queues; it waits only where queues of two kinds meet
 *   R   when each device's queue is done
 *
 * A kernel begins when its queue is done, what it reads is there, and `latency` has passed since it
 * was queued. Kernels were timed one by one, so that each time holds the latency once. The latency
 * of a device is the one by which the net on that device alone takes what it was measured to take.
 * What a wait between devices costs is found in the same way, of the divided net. */
#include "work/place.h"
#include <math.h>

typedef cnri_place_job job;

/* The course of one plan on its queues. */
typedef struct course {
    const job *j;
    const cnr_plan *plan;
    /* Index of each plan device among the job's devices; -1: none. */
    int32_t at[CNRI_PLACE_DEVICES + 1];
    double done[CNRI_PLACE_DEVICES + 1], host;
    double *end; /* ns at which each step ends */
} course;

static bool is_async(const cnr_device *device) { return CNRI_HAS(device->cls, event_record); }

/* True if the home is in host memory. */
static bool in_host(const cnr_plan *plan, const cnri_home *h) {
    return (plan->devices[h->device]->memory[h->memory_class].flags & CNR_MEMORY_HOST) != 0;
}

/* ---- what a step takes ---- */

const cnr_step_timing *cnri_place_step_of(const cnr_timing *t, const char *node,
                                          const char *device) {
    for (int32_t i = 0; i < t->n_steps; i++)
        if (!t->steps[i].from && strcmp(t->steps[i].node, node) == 0 &&
            strcmp(t->steps[i].device, device) == 0)
            return &t->steps[i];
    return NULL;
}

double cnri_place_raw_ns(const job *j, int32_t device, const char *node) {
    const cnr_step_timing *s = cnri_place_step_of(&j->alone[device], node, j->names[device]);
    return s ? j->raw_ns[device][s - j->alone[device].steps] : NAN;
}

/* Nanoseconds of a transfer of so many bytes between two devices; 0 on one device, or if one is
 * unknown (-1). */
static double link_ns(const job *j, int32_t from, int32_t to, double bytes) {
    if (from < 0 || to < 0 || from == to) return 0;
    return j->links[from][to].fixed_ns + j->links[from][to].byte_ns * bytes;
}

/* Ns of a copy. A range on an inner axis is one piece for each index of the axes before it. */
static double copy_ns(const course *c, const cnri_step *s) {
    const cnri_home *from = &c->plan->homes.at[s->from], *to = &c->plan->homes.at[s->to];
    const int32_t a = c->at[from->device], b = c->at[to->device];
    double pieces = 1, bytes = (double)to->bytes;
    if (s->region.axis >= 0) {
        const int64_t all = to->type.dim[s->region.axis];
        pieces = (double)cnr_span(&to->type, 0, s->region.axis);
        if (all > 0) bytes *= (double)(s->region.end - s->region.begin) / (double)all;
    }
    return pieces * link_ns(c->j, a, b, bytes / pieces);
}

/* Ns of a node on device `d` alone, with the operators of its chain that it left to other steps;
 * NaN: not timed. */
static double whole_ns(const job *j, int32_t d, const cnri_step *s, const char *name) {
    double ns = cnri_place_raw_ns(j, d, name);
    for (int32_t i = 0; i < cnri_n_taken(&s->view); i++) {
        const char *node = cnri_taken(&s->view, i)->name;
        const double more = node ? cnri_place_raw_ns(j, d, node) : NAN;
        if (more >= 0) ns += fmax(0, more - fmax(0, j->latency_ns[d]));
    }
    return ns;
}

/* The part, from 0 to 1, of its node that a step computes. */
static double part_of(const cnri_step *s) {
    /* Share of the output that a step computes, 0 to 1. */
    const int64_t all = s->range_axis >= 0 ? s->view.outputs[0]->dim[s->range_axis] : 0;
    return all > 0 ? (double)(s->range_end - s->range_begin) / (double)all : 1;
}

/* Bytes that a step's kernel reads and writes, of dense tensors. */
static double bytes_of(const cnri_step *s) {
    double bytes = 0;
    for (int32_t i = 0; i < s->view.n_inputs; i++)
        if (s->view.inputs[i]) bytes += (double)cnr_dense_bytes(s->view.inputs[i]);
    for (int32_t i = 0; i < s->view.n_outputs; i++)
        if (s->view.outputs[i]) bytes += (double)cnr_dense_bytes(s->view.outputs[i]);
    return bytes;
}

/* Ns of a step that no single device had, such as joining values that lie side by side there: its
 * bytes move as fast as those of steps that multiply nothing, if there are any. */
static double moving_ns(const job *j, int32_t d, const cnri_step *s) {
    const cnr_timing *t = &j->alone[d];
    const double before = fmax(0, j->latency_ns[d]) + j->division[d].launch_ns;
    double best[2] = {INFINITY, INFINITY}; /* ns a byte: of those steps, and of all steps */
    for (int32_t i = 0; i < t->n_steps; i++) {
        const cnr_step_timing *one = &t->steps[i];
        if (one->from || !one->bytes) continue;
        const double rate = fmax(0, j->raw_ns[d][i] - before) / (double)one->bytes;
        best[1] = fmin(best[1], rate);
        if (one->flops <= 0) best[0] = fmin(best[0], rate);
    }
    const double rate = isfinite(best[0]) ? best[0] : best[1];
    return before + (isfinite(rate) ? rate * bytes_of(s) : 0);
}

/* Ns of a kernel step on its device, launch and latency included; 0: a device that wasn't
 * measured. */
static double kernel_ns(const course *c, int32_t step) {
    const job *j = c->j;
    const cnri_step *s = &c->plan->steps.at[step];
    const int32_t d = c->at[s->device];
    if (d < 0) return 0;
    const double part = part_of(s),
                 timed = whole_ns(j, d, s, cnri_step_names_of(c->plan, step).node);
    const double ns = timed >= 0 ? timed : moving_ns(j, d, s);
    if (s->range_axis < 0) return ns;
    const double launch = fmin(j->division[d].launch_ns, ns);
    return part * ns + (1 - part) * launch + j->division[d].split_ns;
}

/* ---- on queues ---- */

/* Moves *begin, in ns, behind the steps that a step depends on. */
static void wait_for(course *c, const cnri_step *s, double *begin) {
    const cnr_device *here = c->plan->devices[s->device];
    for (int32_t i = 0; i < s->n_waits; i++) {
        const cnr_device *there = c->plan->devices[c->plan->steps.at[s->waits[i]].device];
        const double end = c->end[s->waits[i]] + c->j->wait_ns;
        const bool queued =
            is_async(here) && here->cls == there->cls && CNRI_HAS(here->cls, event_wait);
        if (!queued) c->host = fmax(c->host, end);
        *begin = fmax(*begin, end);
    }
}

/* Adds one step to the course of a run: when it begins and ends, on its device's or the host's
 * clock (ns). */
static void run_step(course *c, int32_t step) {
    const cnri_step *s = &c->plan->steps.at[step];
    const int32_t d = c->at[s->device];
    const bool kernel = s->kind == CNRI_STEP_KERNEL, queue = is_async(c->plan->devices[s->device]);
    const double latency = d >= 0 && kernel ? c->j->latency_ns[d] : 0;
    double ns = kernel ? kernel_ns(c, step) : copy_ns(c, s),
           begin = queue ? c->done[s->device] : c->host;
    wait_for(c, s, &begin);
    if (latency > 0) ns = fmax(ns - latency, ns * c->j->least_share[d]);
    else ns -= latency; /* calls that take longer than their kernels */
    begin = fmax(begin, c->host + fmax(0, latency));
    c->end[step] = c->done[s->device] = begin + ns;
    if (!queue) c->host = c->end[step];
}

/* Adds the time (ns) of copying inputs into devices' own memory to the course. */
static void put_inputs(course *c) {
    const cnr_plan *plan = c->plan;
    for (int32_t i = 0; i < plan->graph->inputs.n; i++) {
        const int32_t home = plan->input_homes[i];
        if (home < 0 || in_host(plan, &plan->homes.at[home])) continue;
        const cnri_home *h = &plan->homes.at[home];
        const int32_t to = c->at[h->device];
        double ns = 0;
        for (int32_t d = 0; d < c->j->n && to >= 0; d++)
            if (c->j->in_host[d] && d != to) ns = link_ns(c->j, d, to, (double)h->bytes);
        c->done[h->device] += ns;
    }
}

/* *ns: nanoseconds of one run of a plan, as devices and transfers overlap. */
static cnr_status course_ns(const job *j, const cnr_plan *plan, double *ns, cnr_error *err) {
    course c = {.j = j,
                .plan = plan,
                .end = cnri_alloc_zero(((size_t)plan->steps.n + 1) * sizeof *c.end)};
    if (!c.end) return cnri_out_of_memory(err, "place");
    for (int32_t i = 0; i < plan->n_devices && i <= CNRI_PLACE_DEVICES; i++)
        c.at[i] = CNRI_INDEX_OF(j->names, j->n, plan->devices[i]->name);
    put_inputs(&c);
    for (int32_t i = 0; i < plan->steps.n; i++) run_step(&c, i);
    *ns = c.host;
    for (int32_t i = 0; i < plan->n_devices && i <= CNRI_PLACE_DEVICES; i++)
        *ns = fmax(*ns, c.done[i]);
    cnri_free(c.end);
    return CNR_OK;
}

/* ---- what was measured of whole nets settles what single steps don't tell ---- */

/* Finds *value between low and high with which the plan takes `want` ns. rising: time grows with
 * the value. */
static cnr_status settle_by(job *j, const cnr_plan *plan, double want, double low, double high,
                            bool rising, double *value, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < 50 && !status; i++) {
        double ns;
        *value = (low + high) / 2;
        status = course_ns(j, plan, &ns, err);
        if ((ns > want) == rising) high = *value;
        else low = *value;
    }
    return status;
}

cnr_status cnri_place_settle(job *j, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t d = 0; d < j->n && !status; d++) {
        double sum = 0, maximum = 0;
        const double want = j->alone[d].ms_median * 1e6;
        for (int32_t i = 0; i < j->alone[d].n_steps; i++) {
            sum += j->raw_ns[d][i];
            maximum = fmax(maximum, j->raw_ns[d][i]);
        }
        j->least_share[d] = sum > 0 ? 0.5 * fmin(1, want / sum) : 1;
        if (sum > 0)
            status =
                settle_by(j, j->plan_alone[d], want, -want, maximum, false, &j->latency_ns[d], err);
    }
    if (!status && j->plan_divided) {
        double ns;
        const double want = j->divided.ms_median * 1e6;
        status = course_ns(j, j->plan_divided, &ns, err);
        if (!status && ns < want)
            status = settle_by(j, j->plan_divided, want, 0, want, true, &j->wait_ns, err);
    }
    return status;
}

/* ---- joules ---- */

/* Joules above idle of a step on device d, its part of those measured for the whole node; idle in
 * watts. 0: not measured. */
static double kernel_joules(const job *j, int32_t d, const char *node, const cnri_step *step,
                            double idle) {
    const cnr_step_timing *s = cnri_place_step_of(&j->alone[d], node, j->names[d]);
    if (!s) return 0;
    const double joules = s->joules - idle * s->ms * 1e-3, part = part_of(step);
    if (step->range_axis < 0) return joules;
    const double launch = s->ms > 0 ? fmin(1, j->division[d].launch_ns / (s->ms * 1e6)) : 0;
    return joules * (part + (1 - part) * launch) + j->division[d].split_joules;
}

/* Joules above idle of one run of a plan; idle: watts of the idle machine. */
static double plan_joules(const job *j, const cnr_plan *plan, double idle) {
    double all = 0;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        const cnri_step_names names = cnri_step_names_of(plan, i);
        const int32_t d = CNRI_INDEX_OF(j->names, j->n, names.device);
        cnri_transfer_row moved;
        if (cnri_step_transfer(plan, i, &moved)) all += j->byte_joules * (double)moved.bytes;
        else if (s->kind == CNRI_STEP_KERNEL && d >= 0)
            all += kernel_joules(j, d, names.node, s, idle);
    }
    return all;
}

cnr_status cnri_place_predict(const job *j, const cnr_plan *plan, cnri_place_row *out,
                              cnr_error *err) {
    const cnr_energy *e = j->alone[0].energy;
    const double idle = e && e->source && e->idle_watts > 0 ? e->idle_watts : 0;
    double ns = 0;
    const cnr_status status = course_ns(j, plan, &ns, err);
    const double seconds = ns * 1e-9, joules = plan_joules(j, plan, idle) + idle * seconds;
    *out = (cnri_place_row){"predicted", seconds, joules, joules / seconds, joules * seconds};
    return status;
}
