/* Measures time and memory of a net on made-up inputs, as a whole and by step. */
#include "watch/watch.h"
#include "profile/profile.h"
#include "work/work.h"
#include "people/people.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* A profile that is being taken. */
typedef struct job {
    cnr_profile_options o;
    const cnr_observer *observer;
    cnr_runtime *rt;
    cnr_session *session;
    const cnr_plan *plan; /* the session's plan, which may move to another device */
    cnri_profile *steps;
    cnr_energy energy;
    cnri_sampler *sampler; /* the runtime's; NULL: energy is not measured */
    double *joules, begun; /* joules of each step; NULL: shared out by time */
    const char *joules_by;
    CNRI_VEC(double) ms, queued; /* of each timed run; queued: ms until all of it was queued */
    int64_t done, total;
} job;

/* ---- getting ready ---- */

/* Allocates the data of input `index` of type *t, with made-up numbers, and sets it. */
static cnr_status put_input(job *j, int32_t index, cnr_tensor *t, cnr_error *err) {
    t->bytes = cnr_dense_bytes(t);
    t->data = t->bytes < SIZE_MAX ? cnri_alloc((size_t)t->bytes + 1) : NULL;
    if (!t->data) return cnri_out_of_memory(err, "profile");
    cnri_fill_made_up(t);
    const cnr_status status = cnr_session_set_input(j->session, index, t, err);
    cnri_free(t->data);
    return status;
}

cnr_status cnri_device_check_timed(const cnr_device *device, cnr_error *err) {
    if (cnri_device_is_timed(device)) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, device->name,
                     "a real device can't be timed by a simulated board's clock; leave --board "
                     "out, or name one of the board's devices (\"cnnrun devices --board NAME\")");
}

/* Fails if the clock in force does not measure the plan's devices, whose work would seem to take
 * no time. */
static cnr_status check_clock(const cnr_plan *plan, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < plan->steps.n && !status; i++)
        if (plan->steps.at[i].kind == CNRI_STEP_KERNEL)
            status = cnri_device_check_timed(plan->devices[plan->steps.at[i].device], err);
    return status;
}

/* Makes plan and session for the batch size, with inputs of made-up numbers. */
static cnr_status prepare(job *j, cnr_model *model, cnr_error *err) {
    cnri_shapes shapes;
    cnr_plan *plan = NULL;
    cnr_status status = cnri_input_shapes(model, j->o.batch, &shapes, err);
    if (!status) status = cnr_plan_for(model, shapes.list, shapes.n, &plan, err);
    if (!status) status = check_clock(plan, err);
    if (!status) status = cnri_residency_warm(plan, err);
    if (!status) status = cnr_session_open(plan, &j->session, err);
    cnr_plan_release(plan); /* the session keeps the plan */
    if (!status) j->plan = cnri_session_plan(j->session);
    if (!status && j->observer && CNRI_HAS(j->observer, cancel))
        cnri_session_cancel_by(j->session, j->observer->cancel);
    for (int32_t i = 0; i < shapes.n && !status; i++) status = put_input(j, i, &shapes.at[i], err);
    if (!status && shapes.n > 0 && shapes.at[0].rank > 1) j->o.batch = shapes.at[0].dim[0];
    cnri_shapes_free(&shapes);
    return status;
}

/* ---- measuring ---- */

/* Keeps the times of a run: in all, and until all was queued. */
static cnr_status keep_time(job *j, uint64_t begin, uint64_t queued, uint64_t end, cnr_error *err) {
    double *ms = cnri_push(&j->ms), *to_queue = cnri_push(&j->queued);
    if (!ms || !to_queue) return cnri_out_of_memory(err, "profile");
    *to_queue = (double)(queued - begin) * 1e-6;
    *ms = (double)(end - begin) * 1e-6;
    return CNR_OK;
}

/* Runs the session n times; `timed`: keeps the times in ns, and those until all was queued. */
static cnr_status runs(job *j, int64_t n, bool timed, cnr_error *err) {
    for (int64_t i = 0; i < n; i++) {
        const uint64_t begin = cnri_now_ns();
        cnr_status status = cnr_session_start(j->session, err);
        const uint64_t queued = cnri_now_ns();
        if (!status) status = cnr_session_wait(j->session, err);
        j->plan = cnri_session_plan(j->session);
        if (!status && timed) status = keep_time(j, begin, queued, cnri_now_ns(), err);
        if (!status)
            status = cnri_report_progress(j->observer, "profile", ++j->done, j->total, err);
        if (status) return status;
    }
    return CNR_OK;
}

/* Makes the requested runs, and more until the slowest meter has measured enough. All runs are
 * timed, so that times, frames a second and joules refer to the same runs. */
static cnr_status runs_with_energy(job *j, cnr_error *err) {
    cnr_energy_region *region;
    cnr_status status = cnr_energy_begin(j->rt, NULL, j->observer, &region, err);
    if (status) return status;
    status = runs(j, j->o.runs, true, err);
    while (!status && !cnr_energy_long_enough(region)) {
        j->total++;
        status = runs(j, 1, true, err);
    }
    const cnr_status ended =
        cnr_energy_end(region, j->ms.n, status ? NULL : &j->energy, status ? NULL : err);
    if (!status && !ended) cnri_energy_check_plan(&j->energy, j->plan);
    return status ? status : ended;
}

/* Reads the meters, and returns the joules so far of the domains that the total is summed from. */
static double joules_so_far(const job *j) {
    double all = 0;
    cnri_sampler_read(j->sampler, true);
    for (int32_t i = 0; i < j->energy.n; i++)
        if (j->energy.at[i].summed) all += cnri_sampler_domain(j->sampler, i)->totals.joules;
    return all;
}

/* Event function of the session: adds up times of steps and, if wanted, joules per run. */
static void hear(void *arg, const cnri_event *event) {
    job *j = arg;
    if (j->joules && event->kind == CNRI_EVENT_STEP_BEGIN) j->begun = joules_so_far(j);
    cnri_profile_hear(j->steps, event);
    if (j->joules && event->kind == CNRI_EVENT_STEP_END)
        j->joules[event->step] += (joules_so_far(j) - j->begun) / (double)j->o.runs;
}

/* Runs again, with a listener that times each step. */
static cnr_status time_steps(job *j, cnr_error *err) {
    int32_t id = 0;
    cnr_status status = cnri_session_listen(j->session, hear, j, true, &id, err);
    if (!status) status = runs(j, j->o.runs, false, err);
    cnr_session_unlisten(j->session, id);
    return status;
}

/* Repeats a step in growing rounds, so that reading the clock does not count. */
static cnr_status repeat_step(job *j, int32_t step, cnr_error *err) {
    enum { AT_ONCE_NS = 5000000 };
    cnr_energy_region *region;
    cnr_energy e = {.size = sizeof e};
    int64_t rounds = 0, at_once = 1;
    cnr_status status = cnr_energy_begin(j->rt, NULL, j->observer, &region, err);
    if (status) return status;
    do {
        const uint64_t begin = cnri_now_ns();
        status = cnri_session_repeat(j->session, step, at_once, err);
        rounds += at_once;
        if (cnri_now_ns() - begin < AT_ONCE_NS) at_once *= 2;
        if (!status) status = cnri_report_progress(j->observer, "profile", j->done, j->total, err);
    } while (!status && !cnr_energy_long_enough(region));
    const cnr_status ended =
        cnr_energy_end(region, rounds, status ? NULL : &e, status ? NULL : err);
    if (!status && !ended) j->joules[step] = e.joules;
    cnr_energy_free(&e);
    return status ? status : ended;
}

/* Repeats each step until its energy can be measured. */
static cnr_status repeat_steps(job *j, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < j->plan->steps.n && !status; i++) status = repeat_step(j, i, err);
    return status;
}

/* Measures the joules of each step. A simulated machine counts exactly at any time; real meters
 * are far slower than a step. */
static cnr_status measure_steps(job *j, cnr_error *err) {
    const bool counts = !cnri_clock_is_real();
    if (!(j->steps = cnri_profile_new(j->plan))) return cnri_out_of_memory(err, "profile");
    if (!j->energy.source || (!counts && !j->o.repeat)) return time_steps(j, err);
    double *joules = cnri_alloc_zero(((size_t)j->plan->steps.n + 1) * sizeof *joules);
    if (!joules) return cnri_out_of_memory(err, "profile");
    j->joules_by = counts ? "counted" : "repeated";
    cnr_status status = CNR_OK;
    if (counts) j->joules = joules;
    if (counts) status = cnri_sampler_start(j->sampler, err);
    if (!status) status = time_steps(j, err);
    if (counts) cnri_sampler_stop(j->sampler);
    j->joules = joules;
    return status || counts ? status : repeat_steps(j, err);
}

/* Warms up, times the runs, then the steps in further runs. */
static cnr_status measure(job *j, cnr_error *err) {
    cnr_status status = CNR_OK;
    j->total = j->o.warm + j->o.runs * (j->o.steps ? 2 : 1);
    if (j->o.energy) status = cnri_energy_sampler(j->rt, &j->sampler, err);
    if (!status && j->sampler) /* before warming up, while the machine is cool */
        status = cnri_sampler_idle(j->sampler, cnri_cancel_of(j->observer), err);
    if (!status) status = runs(j, j->o.warm, false, err);
    if (!status) status = j->sampler ? runs_with_energy(j, err) : runs(j, j->o.runs, true, err);
    return status || !j->o.steps ? status : measure_steps(j, err);
}

/* ---- the result ---- */

/* Floating-point operations of one run: twice the multiply-accumulates, without those that encoded
 * weights spare. */
static double flops_of(const cnr_plan *plan) {
    double macs = 0;
    for (int32_t i = 0; i < plan->graph->nodes.n; i++)
        macs += (double)cnri_node_macs(&plan->graph->nodes.at[i]->view);
    for (int32_t i = 0; i < plan->steps.n; i++)
        macs -= cnri_step_macs(plan, &plan->steps.at[i], false) -
                cnri_step_macs(plan, &plan->steps.at[i], true);
    return 2 * macs;
}

/* Distributes a run's joules over its steps, by measured joules or else by their times. */
static void share_joules(const job *j, cnr_timing *out) {
    double all = 0;
    if (!j->energy.source) return;
    for (int32_t i = 0; i < out->n_steps; i++) all += out->steps[i].ms;
    out->joules_by = j->joules ? j->joules_by : "time";
    for (int32_t i = 0; i < out->n_steps; i++) {
        cnr_step_timing *s = &out->steps[i];
        s->joules = j->joules ? j->joules[i] : all > 0 ? j->energy.joules * s->ms / all : NAN;
    }
}

/* Gives the result its energy, which it owns; nothing if energy wasn't wanted. */
static cnr_status take_energy(job *j, cnr_timing *out, cnr_error *err) {
    if (!j->o.energy) return CNR_OK;
    out->energy = cnri_alloc(sizeof *out->energy);
    if (!out->energy) return cnri_out_of_memory(err, "profile");
    *out->energy = j->energy;
    share_joules(j, out);
    j->energy = (cnr_energy){0}; /* the result owns it now */
    return CNR_OK;
}

/* out[device]: bytes of the largest cache that it reports. */
static cnr_status caches_of(const job *j, double *out, cnr_error *err) {
    static const char prefix[] = "caches.";
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < j->plan->n_devices && !status; i++) {
        cnri_fact_list list = {0};
        status = cnri_device_facts(j->rt, j->plan->devices[i]->name, 0, &list, err);
        for (int32_t k = 0; k < list.n && !status; k++)
            if (strncmp(list.at[k].name, prefix, sizeof prefix - 1) == 0)
                out[i] = fmax(out[i], list.at[k].value);
        cnri_facts_free(&list);
    }
    return status;
}

/* Fills how many bytes each step reads from memory. */
static cnr_status take_reads(const job *j, cnr_timing *out, cnr_error *err) {
    double *caches = cnri_alloc_zero(((size_t)j->plan->n_devices + 1) * sizeof *caches);
    double *reads = cnri_alloc_zero(((size_t)out->n_steps + 1) * sizeof *reads);
    cnr_status status =
        caches && reads ? caches_of(j, caches, err) : cnri_out_of_memory(err, "profile");
    if (!status && !cnri_profile_reads(j->plan, caches, reads))
        status = cnri_out_of_memory(err, "profile");
    for (int32_t i = 0; i < out->n_steps && !status; i++) out->steps[i].memory_bytes = reads[i];
    cnri_free(caches);
    cnri_free(reads);
    return status;
}

/* Copies the names of nodes, because they belong to the plan, which may be freed before the
 * result. */
static cnr_status take_steps(const job *j, cnr_timing *out, cnr_error *err) {
    const int32_t n = j->plan->steps.n;
    out->steps = cnri_alloc_zero((size_t)(n + 1) * sizeof *out->steps);
    for (int32_t i = 0; out->steps && i < n; i++) {
        cnr_step_timing *row = &out->steps[i];
        cnri_profile_row(j->steps, i, row);
        if (!(row->node = cnri_strdup(row->node))) break;
        out->n_steps++;
    }
    return out->n_steps == n ? take_reads(j, out, err) : cnri_out_of_memory(err, "profile");
}

/* Peak memory of this process in bytes. (ru_maxrss, used without /proc, starts with the parent's
 * memory.) */
static uint64_t high_water(void) {
    char line[128];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtoull(line + 6, NULL, 10);
    if (file) fclose(file);
    struct rusage usage = {0};
    if (!kib && getrusage(RUSAGE_SELF, &usage) == 0) kib = (uint64_t)usage.ru_maxrss;
    return kib * 1024;
}

/* False if all devices finish their work before a call returns. */
static bool queues(const cnr_plan *plan) {
    for (int32_t i = 0; i < plan->n_devices; i++)
        if (CNRI_HAS(plan->devices[i]->cls, event_record)) return true;
    return false;
}

/* Fills the result from the plan and the times that were kept. */
static cnr_status take(job *j, cnr_timing *out, cnr_error *err) {
    const cnr_plan *plan = j->plan;
    const cnr_device *device = plan->n_devices ? plan->devices[0] : NULL;
    out->device = device ? device->name : "";
    out->threads = device ? device->concurrency : 0;
    out->batch = j->o.batch;
    out->runs = j->ms.n;
    out->ms_median = cnri_median(j->ms.at, j->ms.n); /* sorts the times */
    out->ms_min = j->ms.at[0];
    out->ms_max = j->ms.at[j->ms.n - 1];
    out->enqueue_ms = queues(plan) ? cnri_median(j->queued.at, j->queued.n) : (double)NAN;
    out->flops = flops_of(plan);
    out->arena_bytes = plan->arena_bytes;
    out->arena_bound_bytes = plan->bound_bytes;
    out->weight_bytes = plan->weight_bytes;
    out->peak_rss_bytes = high_water();
    for (int32_t i = 0; i < plan->steps.n; i++) out->extrapolated |= plan->steps.at[i].extrapolated;
    return j->steps ? take_steps(j, out, err) : CNR_OK;
}

cnr_status cnr_profile(cnr_model *model, const cnr_profile_options *options,
                       const cnr_observer *observer, cnr_timing *out, cnr_error *err) {
    cnr_timing got = {.size = sizeof got};
    job j = {.observer = observer,
             .rt = model ? model->rt : NULL,
             .energy = {.size = sizeof j.energy}};
    CNRI_COPY_OPTIONS(j.o, options);
    cnr_status status = cnri_require_arguments(err, "model", model, "out", out, NULL);
    if (!status) status = CNRI_CHECK_RESULT_SIZE(out, got, err);
    if (status) return status;
    if (j.o.batch <= 0) j.o.batch = 1;
    if (j.o.runs <= 0) j.o.runs = 20;
    j.o.warm = j.o.warm < 0 ? 0 : j.o.warm ? j.o.warm : 2;
    status = prepare(&j, model, err);
    if (!status) status = measure(&j, err);
    if (!status && j.o.trace) status = cnri_trace_run(j.session, j.o.trace, err);
    if (!status) status = take(&j, &got, err);
    if (!status) status = take_energy(&j, &got, err);
    cnr_session_close(j.session);
    cnri_profile_free(j.steps);
    cnr_energy_free(&j.energy);
    cnri_free(j.joules);
    cnri_vec_free(&j.ms);
    cnri_vec_free(&j.queued);
    if (status) cnr_timing_free(&got);
    else *out = got;
    return status;
}

void cnr_timing_free(cnr_timing *t) {
    if (!t) return;
    for (int32_t i = 0; i < t->n_steps; i++) cnri_free((void *)t->steps[i].node);
    cnri_energy_drop(&t->energy);
    cnri_free(t->steps);
    t->steps = NULL;
    t->n_steps = 0;
}

int32_t cnri_sum_by_operator(const cnr_step_timing *steps, int32_t n, cnri_op_timing *out) {
    int32_t found = 0;
    for (int32_t s = 0; s < n; s++) {
        int32_t k = 0;
        while (k < found && strcmp(out[k].op, steps[s].op) != 0) k++;
        if (k == found) out[found++] = (cnri_op_timing){steps[s].op, 0, 0};
        out[k].ms += steps[s].ms;
        out[k].steps++;
    }
    for (int32_t i = 1; i < found; i++)
        for (int32_t k = i; k > 0 && out[k].ms > out[k - 1].ms; k--) {
            const cnri_op_timing swap = out[k];
            out[k] = out[k - 1];
            out[k - 1] = swap;
        }
    return found;
}
