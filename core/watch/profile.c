/* Time of each step and of each operator over many runs. */
#include "core/watch/watch.h"

typedef struct timer {
    cnri_step_time time;
    uint64_t begun;
} timer;

struct cnri_profile {
    const cnr_plan *plan;
    timer run;
    timer steps[]; /* one a step of the plan */
};

cnri_profile *cnri_profile_new(const cnr_plan *plan) {
    cnri_profile *p =
        cnri_alloc_zero(sizeof *p + ((size_t)plan->steps.n + 1) * sizeof p->steps[0]);
    if (p) p->plan = plan;
    return p;
}

void cnri_profile_free(cnri_profile *p) {
    cnri_free(p);
}

void cnri_profile_reset(cnri_profile *p) {
    memset(&p->run, 0, sizeof p->run);
    memset(p->steps, 0, (size_t)p->plan->steps.n * sizeof p->steps[0]);
}

static void stop(timer *t, uint64_t now) {
    const uint64_t ns = now > t->begun ? now - t->begun : 0;
    if (t->time.runs == 0 || ns < t->time.least_ns) t->time.least_ns = ns;
    t->time.total_ns += ns;
    t->time.runs++;
}

void cnri_profile_hear(void *profile, const cnri_event *event) {
    cnri_profile *p = profile;
    switch (event->kind) {
    case CNRI_EVENT_RUN_BEGIN: p->run.begun = event->now_ns; break;
    case CNRI_EVENT_RUN_END: stop(&p->run, event->now_ns); break;
    case CNRI_EVENT_STEP_BEGIN: p->steps[event->step].begun = event->now_ns; break;
    case CNRI_EVENT_STEP_END: stop(&p->steps[event->step], event->now_ns); break;
    }
}

cnri_step_time cnri_profile_of(const cnri_profile *p, int32_t step) {
    return step < 0 ? p->run.time : p->steps[step].time;
}

/* ---- report ---- */

static double mean_ms(const timer *t) {
    return t->time.runs ? (double)t->time.total_ns * 1e-6 / (double)t->time.runs : 0;
}

static void add_number(cnri_text *out, double value) {
    char number[32];
    /* six places are more than a clock is worth */
    cnri_print_double(number, sizeof number, (double)(int64_t)(value * 1e6 + 0.5) / 1e6);
    cnri_text_add(out, "%s", number);
}

/* What a row of the second table is of: the operator, or what the core does between operators. */
static const char *group_of(const cnr_plan *plan, int32_t step) {
    const cnri_step *s = &plan->steps.at[step];
    switch (s->kind) {
    case CNRI_STEP_COPY: return "(copy)";
    case CNRI_STEP_LAYOUT: return "(layout)";
    case CNRI_STEP_KERNEL: break;
    }
    return s->view.desc->name;
}

static const char *label_of(const cnr_plan *plan, int32_t step) {
    const cnri_step *s = &plan->steps.at[step];
    const int32_t home = s->from >= 0 ? s->from : s->n_out > 0 ? s->out[0] : -1;
    if (s->kind == CNRI_STEP_KERNEL && s->view.name) return s->view.name;
    const char *name = home >= 0 ? plan->graph->values.at[plan->homes.at[home].value].name : NULL;
    return name ? name : "";
}

static const char *kernel_of(const cnri_step *s) {
    if (s->kind != CNRI_STEP_KERNEL) return "";
    return s->kernel ? s->kernel->name : "(reference)";
}

/* Twice the multiply-accumulates a nanosecond: of the node alone, whatever is fused behind it. */
static double gflops_of(const cnri_profile *p, int32_t step, double ms) {
    const cnri_step *s = &p->plan->steps.at[step];
    cnr_cost cost = {0, 0};
    if (s->kind == CNRI_STEP_KERNEL && CNRI_HAS(s->view.desc, cost)) {
        s->view.desc->cost(&p->plan->graph->nodes.at[s->node]->view, &cost);
        if (s->range_axis >= 0 && s->view.outputs[0]->dim[s->range_axis] > 0)
            cost.macs = (uint64_t)((double)cost.macs * (double)(s->range_end - s->range_begin) /
                                   (double)s->view.outputs[0]->dim[s->range_axis]);
    }
    return ms > 0 ? 2e-6 * (double)cost.macs / ms : 0;
}

static void print_step(const cnri_profile *p, int32_t step, double all, bool json,
                       cnri_text *out) {
    const cnr_plan *plan = p->plan;
    const cnri_step *s = &plan->steps.at[step];
    const double ms = mean_ms(&p->steps[step]), gflops = gflops_of(p, step, ms);
    if (!json) {
        cnri_text_say(out, "%5d  %-24s %-20s %-24s %-10s %10.4f %5.1f%%", (int)step,
                      label_of(plan, step), group_of(plan, step), kernel_of(s),
                      plan->devices[s->device]->name, ms, all > 0 ? 100 * ms / all : 0.0);
        if (gflops > 0) cnri_text_add(out, " %8.2f", gflops);
        cnri_text_add(out, "\n");
        return;
    }
    cnri_text_add(out, "{\"step\":%d,\"node\":", (int)step);
    cnri_text_json(out, label_of(plan, step));
    cnri_text_add(out, ",\"op\":");
    cnri_text_json(out, group_of(plan, step));
    cnri_text_add(out, ",\"kernel\":");
    cnri_text_json(out, kernel_of(s));
    cnri_text_add(out, ",\"device\":");
    cnri_text_json(out, plan->devices[s->device]->name);
    cnri_text_add(out, ",\"ms\":");
    add_number(out, ms);
    cnri_text_add(out, ",\"ms_min\":");
    add_number(out, (double)p->steps[step].time.least_ns * 1e-6);
    cnri_text_add(out, ",\"gflops\":");
    add_number(out, gflops);
    cnri_text_add(out, "}\n");
}

typedef struct group {
    const char *name;
    double ms;
    int32_t steps;
} group;

/* Sums by operator, longest first. */
static int32_t sum_groups(const cnri_profile *p, group *groups) {
    int32_t n = 0;
    for (int32_t s = 0; s < p->plan->steps.n; s++) {
        const char *name = group_of(p->plan, s);
        int32_t k = 0;
        while (k < n && strcmp(groups[k].name, name) != 0) k++;
        if (k == n) groups[n++] = (group){name, 0, 0};
        groups[k].ms += mean_ms(&p->steps[s]);
        groups[k].steps++;
    }
    for (int32_t i = 1; i < n; i++)
        for (int32_t k = i; k > 0 && groups[k].ms > groups[k - 1].ms; k--) {
            const group swap = groups[k];
            groups[k] = groups[k - 1];
            groups[k - 1] = swap;
        }
    return n;
}

static void print_groups(const group *groups, int32_t n, double all, bool json, cnri_text *out) {
    if (!json) cnri_text_add(out, "\n%-20s %6s %10s\n", "operator", "steps", "ms");
    for (int32_t i = 0; i < n; i++) {
        if (!json) {
            cnri_text_say(out, "%-20s %6d %10.4f %5.1f%%\n", groups[i].name, (int)groups[i].steps,
                          groups[i].ms, all > 0 ? 100 * groups[i].ms / all : 0.0);
            continue;
        }
        cnri_text_add(out, "{\"op\":");
        cnri_text_json(out, groups[i].name);
        cnri_text_add(out, ",\"steps\":%d,\"ms\":", (int)groups[i].steps);
        add_number(out, groups[i].ms);
        cnri_text_add(out, "}\n");
    }
}

void cnri_profile_print(const cnri_profile *p, bool json, cnri_text *out) {
    const int32_t n = p->plan->steps.n;
    group *groups = cnri_alloc(((size_t)n + 1) * sizeof *groups);
    double all = 0;
    if (!groups) {
        out->failed = true;
        return;
    }
    for (int32_t s = 0; s < n; s++) all += mean_ms(&p->steps[s]);
    if (!json)
        cnri_text_add(out, "%5s  %-24s %-20s %-24s %-10s %10s %6s %8s\n", "step", "node",
                      "operator", "kernel", "device", "ms", "share", "GFLOPS");
    for (int32_t s = 0; s < n; s++) print_step(p, s, all, json, out);
    print_groups(groups, sum_groups(p, groups), all, json, out);
    cnri_free(groups);
}
