/* Prints a plan as a table, or as JSON with one object per line. */
#include "show/show.h"
#include "people/people.h"
#include <stdlib.h>

/* A node's row: first step (NULL: none), parameters, multiply-accumulates, memory in bytes. */
typedef struct print_row {
    const cnri_step *step;
    uint64_t params, macs, memory;
} print_row;

/* Writes dims such as "1x3x224x224", or "scalar", to `text`, cut to `capacity` bytes. */
static void shape_text(const cnr_tensor *t, char *text, size_t capacity) {
    size_t at = 0;
    text[0] = 0;
    for (int32_t i = 0; i < t->rank && at < capacity; i++) {
        const int n =
            snprintf(text + at, capacity - at, "%s%lld", i ? "x" : "", (long long)t->dim[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    if (t->rank == 0) snprintf(text, capacity, "scalar");
}

double cnri_step_macs(const cnr_plan *plan, const cnri_step *s, bool as_stored) {
    if (s->kind != CNRI_STEP_KERNEL) return 0;
    double macs = (double)cnri_node_macs(&plan->graph->nodes.at[s->node]->view);
    for (int32_t i = 0; s->view.subgraph && i < cnri_n_taken(&s->view); i++)
        macs += (double)cnri_node_macs(cnri_taken(&s->view, i));
    if (as_stored) macs *= cnri_stored_share(&s->view);
    if (s->range_axis < 0 || s->view.outputs[0]->dim[s->range_axis] <= 0) return macs;
    return macs * (double)(s->range_end - s->range_begin) /
           (double)s->view.outputs[0]->dim[s->range_axis];
}

/* Index of a plan: the steps of each node, and the nodes that are fused into other nodes' steps. */
typedef struct finder {
    /* by node: its first step, and the next step of the same node by step; -1: none */
    int32_t *first, *next;
    const cnr_node **chained; /* fused nodes, sorted by address */
    int32_t n_chained;
} finder;

/* Compares the addresses of two nodes. */
static int by_address(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t) * (const cnr_node *const *)a;
    const uintptr_t y = (uintptr_t) * (const cnr_node *const *)b;
    return (x > y) - (x < y);
}

/* Builds the lists by which steps of a node are found. False: out of memory. */
static bool finder_make(finder *f, const cnr_plan *plan) {
    const int32_t nodes = plan->graph->nodes.n, steps = plan->steps.n;
    size_t chained = 1;
    for (int32_t s = 0; s < steps; s++) chained += (size_t)cnri_n_taken(&plan->steps.at[s].view);
    f->first = cnri_alloc(((size_t)nodes + (size_t)steps + 1) * sizeof *f->first);
    f->chained = cnri_alloc(chained * sizeof *f->chained);
    f->n_chained = 0;
    if (!f->first || !f->chained) return false;
    f->next = f->first + nodes;
    for (int32_t i = 0; i < nodes; i++) f->first[i] = -1;
    for (int32_t s = steps - 1; s >= 0; s--) {
        const cnri_step *step = &plan->steps.at[s];
        for (int32_t e = 0; e < cnri_n_taken(&step->view); e++)
            f->chained[f->n_chained++] = cnri_taken(&step->view, e);
        if (step->kind != CNRI_STEP_KERNEL || step->node < 0) continue;
        f->next[s] = f->first[step->node];
        f->first[step->node] = s;
    }
    qsort(f->chained, (size_t)f->n_chained, sizeof *f->chained, by_address);
    return true;
}

/* Frees the lists of a finder. */
static void finder_free(finder *f) {
    cnri_free(f->first);
    cnri_free(f->chained);
}

/* Whether the node is fused into another node's step. */
static bool is_chained(const finder *f, const cnr_node *view) {
    return bsearch(&view, f->chained, (size_t)f->n_chained, sizeof *f->chained, by_address) != NULL;
}

/* Formats the kernel and the operators fused into it, "conv_f32+relu"; "(fused)" or "(view)" where
 * the node has no step of its own. */
static void kernel_text(const cnr_plan *plan, const finder *f, int32_t node, const cnri_step *s,
                        char *text, size_t capacity) {
    const cnr_node *view = &plan->graph->nodes.at[node]->view;
    if (!s) {
        snprintf(text, capacity, is_chained(f, view) ? "(fused)" : "(view)");
        return;
    }
    size_t at = (size_t)snprintf(text, capacity, "%s", s->kernel ? s->kernel->name : "reference");
    for (int32_t e = 0; e < cnri_n_taken(&s->view) && at < capacity; e++)
        at +=
            (size_t)snprintf(text + at, capacity - at, "+%s", cnri_taken(&s->view, e)->desc->name);
}

/* Writes the devices of the node's steps, "cpu+opencl:0", to `text`, cut to `capacity` bytes. */
static void device_text(const cnr_plan *plan, const finder *f, int32_t node, char *text,
                        size_t capacity) {
    size_t at = 0;
    text[0] = 0;
    for (int32_t s = f->first[node]; s >= 0 && at < capacity; s = f->next[s])
        at += (size_t)snprintf(text + at, capacity - at, "%s%s", at ? "+" : "",
                               plan->devices[plan->steps.at[s].device]->name);
}

/* Bytes of the outputs and workspace of the node's step. */
static uint64_t memory_of(const cnr_plan *plan, const cnri_step *s) {
    uint64_t sum = s ? s->workspace_space.bytes : 0;
    for (int32_t i = 0; s && i < s->n_out; i++) sum += plan->homes.at[s->out[i]].bytes;
    return sum;
}

/* Whether the step's kernel was never tested on the hardware that it is for. */
static bool untried(const cnri_step *s) {
    return s && s->kernel && CNRI_HAS(s->kernel, flags) && s->kernel->flags & CNR_KERNEL_UNTESTED;
}

/* Lists each untested kernel of the plan once. */
static void print_untried(const cnr_plan *plan, cnri_text *out) {
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnr_kernel *k = plan->steps.at[i].kernel;
        int32_t before = 0;
        while (before < i && plan->steps.at[before].kernel != k) before++;
        if (before == i && untried(&plan->steps.at[i]))
            cnri_text_say(out, "never run on the hardware that it is for: %s\n", k->name);
    }
}

/* Appends one node of a plan to the text, as a line or as JSON. */
static void print_node(const cnr_plan *plan, const finder *f, int32_t node, const print_row *row,
                       bool json, cnri_text *out) {
    const cnri_node *n = plan->graph->nodes.at[node];
    char shape[128], kernel[160], device[128];
    const cnr_tensor *type = n->view.n_outputs ? n->view.outputs[0] : NULL;
    if (type) shape_text(type, shape, sizeof shape);
    else shape[0] = 0;
    kernel_text(plan, f, node, row->step, kernel, sizeof kernel);
    device_text(plan, f, node, device, sizeof device);
    if (!json) {
        cnri_text_say(out, "%-20s %-16s %-18s %12llu %14llu  %-24s %-10s %12llu\n",
                      n->name ? n->name : "", n->view.desc->name, shape,
                      (unsigned long long)row->params, (unsigned long long)row->macs, kernel,
                      device, (unsigned long long)row->memory);
        return;
    }
    cnri_text_add(out, "{\"node\":");
    cnri_text_json(out, n->name ? n->name : "");
    cnri_text_add(out, ",\"op\":");
    cnri_text_json(out, n->view.desc->name);
    cnri_text_add(out, ",\"dims\":[");
    for (int32_t i = 0; type && i < type->rank; i++)
        cnri_text_add(out, "%s%lld", i ? "," : "", (long long)type->dim[i]);
    cnri_text_add(out, "],\"dtype\":");
    cnri_text_json(out, type ? cnr_dtype_name(type->dtype) : "none");
    cnri_text_add(out,
                  ",\"params\":%llu,\"macs\":%llu,\"kernel\":", (unsigned long long)row->params,
                  (unsigned long long)row->macs);
    cnri_text_json(out, kernel);
    cnri_text_add(out, ",\"device\":");
    cnri_text_json(out, device);
    if (untried(row->step)) cnri_text_add(out, ",\"untried\":true");
    cnri_text_add(out, ",\"memory_bytes\":%llu", (unsigned long long)row->memory);
    cnri_text_simulated(out);
    cnri_text_add(out, "}\n");
}

/* Appends a transfer between devices, with bytes and milliseconds, as a line or as JSON. */
static void print_transfer(const cnri_transfer_row *row, bool json, cnri_text *out) {
    if (!json) {
        cnri_text_say(out, "  %-20s %-12s -> %-12s %12llu bytes %10.3f ms (%s)\n", row->value,
                      row->from, row->to, (unsigned long long)row->bytes, row->ns * 1e-6,
                      cnri_source_name(row->source));
        return;
    }
    char ms[40];
    cnri_print_double(ms, sizeof ms, row->ns * 1e-6);
    cnri_text_add(out, "{\"transfer\":");
    cnri_text_json(out, row->value);
    cnri_text_add(out, ",\"from\":");
    cnri_text_json(out, row->from);
    cnri_text_add(out, ",\"to\":");
    cnri_text_json(out, row->to);
    cnri_text_add(out, ",\"bytes\":%llu,\"ms\":%s,\"ms_from\":\"%s\"",
                  (unsigned long long)row->bytes, ms, cnri_source_name(row->source));
    cnri_text_simulated(out);
    cnri_text_add(out, "}\n");
}

/* Prints the copies between devices and the number of layout conversions, as text or JSON. */
static void print_moves(const cnr_plan *plan, bool json, cnri_text *out) {
    cnri_transfer_row row;
    int32_t copies = 0, layouts = 0;
    uint64_t bytes = 0;
    double ns = 0;
    for (int32_t s = 0; s < plan->steps.n; s++) {
        layouts += plan->steps.at[s].kind == CNRI_STEP_LAYOUT;
        if (!cnri_step_transfer(plan, s, &row)) continue;
        copies++;
        bytes += row.bytes;
        ns += row.ns;
    }
    if (!json && (copies || layouts))
        cnri_text_say(out,
                      "copies between devices %d (%llu bytes, %.3f ms expected), layout "
                      "conversions %d\n",
                      (int)copies, (unsigned long long)bytes, ns * 1e-6, (int)layouts);
    for (int32_t s = 0; s < plan->steps.n; s++)
        if (cnri_step_transfer(plan, s, &row)) print_transfer(&row, json, out);
}

/* Under a memory bound, prints which weights stay, and how the others come, as text or JSON. */
static void print_resident(const cnr_plan *plan, bool json, cnri_text *out) {
    cnri_resident *list = NULL;
    const int32_t n = cnri_residency_list(plan, &list);
    if (n && !json)
        cnri_text_say(out, "within %llu bytes of memory, behind %llu of arena:\n",
                      (unsigned long long)plan->memory_bound,
                      (unsigned long long)plan->arena_bytes);
    for (int32_t i = 0; i < n; i++) {
        const char *name = list[i].node ? list[i].node : "";
        const unsigned long long bytes = list[i].bytes, at_once = list[i].at_once;
        if (!json) {
            cnri_text_say(out, "  %-18s %12llu bytes %s\n", name, bytes, list[i].how);
            continue;
        }
        cnri_text_add(out, "{\"memory_of\":");
        cnri_text_json(out, name);
        cnri_text_add(out, ",\"bytes\":%llu,\"at_once\":%llu,\"how\":\"%s\"}\n", bytes, at_once,
                      list[i].how);
    }
    cnri_free(list);
}

void cnri_plan_print(const cnr_plan *plan, bool json, cnri_text *out) {
    uint64_t macs = 0;
    finder f;
    bool *seen = cnri_alloc_zero((size_t)plan->graph->values.n + 1);
    if (!finder_make(&f, plan) || !seen) {
        finder_free(&f);
        cnri_free(seen);
        out->failed = true;
        return;
    }
    if (!json)
        cnri_text_add(out, "%-20s %-16s %-18s %12s %14s  %-24s %-10s %12s\n", "node", "op",
                      "shape of output", "params", "macs", "kernel", "device", "memory");
    for (int32_t i = 0; i < plan->graph->nodes.n; i++) {
        const cnri_step *step = f.first[i] < 0 ? NULL : &plan->steps.at[f.first[i]];
        print_row row = {.step = step,
                         .params = cnri_node_params(plan->graph, i, seen),
                         .macs = cnri_node_macs(&plan->graph->nodes.at[i]->view)};
        row.memory = memory_of(plan, row.step);
        macs += row.macs;
        print_node(plan, &f, i, &row, json, out);
    }
    finder_free(&f);
    cnri_free(seen);
    const char *name = plan->graph->name ? plan->graph->name : "";
    if (json) {
        print_moves(plan, true, out);
        print_resident(plan, true, out);
        cnri_text_add(out, "{\"net\":");
        cnri_text_json(out, name);
        cnri_text_add(out,
                      ",\"params\":%llu,\"macs\":%llu,\"arena_bytes\":%llu,"
                      "\"arena_bound_bytes\":%llu,\"weights_bytes\":%llu",
                      (unsigned long long)plan->params, (unsigned long long)macs,
                      (unsigned long long)plan->arena_bytes, (unsigned long long)plan->bound_bytes,
                      (unsigned long long)plan->weight_bytes);
        cnri_text_simulated(out);
        cnri_text_add(out, "}\n");
        return;
    }
    cnri_text_say(out,
                  "net %s: parameters %llu, MACs %llu, arena %llu bytes (bound %llu), "
                  "weights %llu bytes\n",
                  name, (unsigned long long)plan->params, (unsigned long long)macs,
                  (unsigned long long)plan->arena_bytes, (unsigned long long)plan->bound_bytes,
                  (unsigned long long)plan->weight_bytes);
    print_moves(plan, false, out);
    print_resident(plan, false, out);
    print_untried(plan, out);
}

/* ---- copies between devices ---- */

bool cnri_step_transfer(const cnr_plan *plan, int32_t step, cnri_transfer_row *out) {
    const cnri_step *s = &plan->steps.at[step];
    if (s->kind != CNRI_STEP_COPY) return false;
    const cnri_home *from = &plan->homes.at[s->from], *to = &plan->homes.at[s->to];
    *out = (cnri_transfer_row){cnri_step_names_of(plan, step).node,
                               plan->devices[from->device]->name,
                               plan->devices[to->device]->name,
                               to->bytes,
                               0,
                               CNRI_GUESSED};
    const int64_t all = s->region.axis >= 0 ? to->type.dim[s->region.axis] : 0;
    if (all > 0)
        out->bytes = to->bytes / (uint64_t)all * (uint64_t)(s->region.end - s->region.begin);
    for (int32_t i = 0; i < plan->links.n; i++) {
        const cnri_table_link *link = &plan->links.at[i];
        if (link->from != from->device || link->to != to->device) continue;
        out->ns = link->ns_fixed + link->ns_per_byte * (double)out->bytes;
        out->source = link->source;
    }
    return true;
}
