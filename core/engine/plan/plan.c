/* Makes a plan from a graph, phase by phase, and frees it. */
#include "plan/planner.h"

/* ---- what a library above adds ---- */

static const cnri_chooser *chooser;

void cnri_chooser_register(const cnri_chooser *own) {
    __atomic_store_n(&chooser, own, __ATOMIC_RELEASE);
}

static const cnri_chooser *above(void) { return __atomic_load_n(&chooser, __ATOMIC_ACQUIRE); }

cnri_policy *cnri_policy_retain(cnri_policy *policy) {
    if (policy) atomic_fetch_add(&policy->refs, 1);
    return policy;
}

void cnri_policy_release(cnri_policy *policy) {
    if (policy && atomic_fetch_sub(&policy->refs, 1) == 0) policy->free(policy);
}

void cnri_plan_unplace(cnr_plan *plan) {
    for (int32_t i = 0; i < plan->placed.n; i++) cnri_free(plan->placed.at[i].parts);
    cnri_vec_free(&plan->links);
    cnri_vec_free(&plan->placed);
    cnri_free(plan->placed_as);
    plan->placed_as = NULL;
}

/* Frees what planning needed, not the plan. */
static void free_planner(cnri_planner *p) {
    cnri_choices_drop(p);
    for (int32_t i = 0; i < p->reach.n; i++) cnri_free(p->reach.at[i].spans);
    cnri_vec_free(&p->reach);
    cnri_rows_free(&p->rows);
    cnri_free((void *)p->answers);
    cnri_free(p->wish);
    cnri_free(p->first_home);
    cnri_free(p->elided);
}

/* Frees the data of dense twins that no running kernel reads; prepare hooks decode them again. */
static void drop_twins(cnr_plan *plan) {
    for (int32_t i = 0; i < plan->twins.n; i++) {
        cnr_tensor *type = plan->graph->values.at[plan->twins.at[i].dense].type;
        if (plan->twins.at[i].kept) continue;
        cnri_free(type->data);
        type->data = NULL;
    }
}

/* Adds up the weights that kernels read unprepared, once for each device. */
static void count_weights(cnri_planner *p) {
    cnr_plan *plan = p->plan;
    for (int32_t i = 0; i < plan->homes.n; i++) {
        const cnri_home *h = &plan->homes.at[i];
        if (!p->reach.at[i].hidden && cnri_is_weight(plan->graph, h->value))
            plan->weight_bytes += h->bytes;
    }
}

/* Fails if a value has an unknown or impossible size. */
static cnr_status check_values(const cnr_graph *g, cnr_error *err) {
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnr_tensor *t = g->values.at[i].type;
        if (cnri_is_type_unknown(t)) continue; /* belongs to a node that a rewrite removed */
        if (cnr_count(t) < 0 || (!t->encoding && cnr_dense_bytes(t) == UINT64_MAX))
            return cnri_fail(err, cnr_count(t) < 0 ? CNR_E_SHAPE : CNR_E_LIMIT,
                             g->values.at[i].name,
                             "has no size that can be planned for: want all dimensions known and "
                             "their product to fit");
    }
    return CNR_OK;
}

/* Counts learned numbers before rewriting, which folds weights together. */
static cnr_status count_params(cnr_plan *plan, cnr_error *err) {
    bool *seen = cnri_alloc_zero((size_t)plan->graph->values.n + 1);
    if (!seen) return cnri_no_memory(err);
    for (int32_t i = 0; i < plan->graph->nodes.n; i++)
        plan->params += cnri_node_params(plan->graph, i, seen);
    cnri_free(seen);
    return CNR_OK;
}

/* Chooses rows by the rules, then again by the policy's answer if there is a policy for the
 * whole net. A stored plan contains the answer of its time. */
static cnr_status choose(cnri_planner *p, cnr_error *err) {
    const bool asks = p->options->policy && !p->options->memo;
    const bool looks = asks || p->options->candidates;
    cnr_status status = cnri_regions_find(p, err);
    cnri_memo_place(p);
    if (!status && p->options->memo) status = cnri_regions_follow_memo(p, err);
    if (!status) status = cnri_plan_choose(p, err);
    if (!status && looks && !above())
        status = cnri_fail(err, CNR_E_UNSUPPORTED, "plan",
                           "the engine alone has no candidates and no policies");
    if (!status && looks) status = above()->make(p, err);
    if (!status && !p->options->memo && cnri_regions_take(p)) {
        cnri_choices_drop(p);
        status = cnri_plan_choose(p, err);
    }
    if (status || !looks) return status;
    status = above()->choose(p, asks, err);
    if (!p->options->candidates) {
        above()->free(p->plan->table);
        p->plan->table = NULL;
    }
    return status;
}

/* Notes the devices of the set in the plan. */
static cnr_status take_devices(cnri_planner *p, cnr_error *err) {
    cnr_plan *plan = p->plan;
    plan->devices = cnri_alloc((size_t)p->set->n * sizeof *plan->devices);
    if (!plan->devices) return cnri_no_memory(err);
    for (int32_t i = 0; i < p->set->n; i++) {
        plan->devices[i] = &p->set->at[i]->device;
        cnri_device_set_hang_ms(plan->devices[i], plan->hang_ms, plan->gives_up);
    }
    plan->n_devices = p->set->n;
    return CNR_OK;
}

/* Sums the floating-point operations of the net. */
static void count_work(cnr_plan *plan) {
    for (int32_t i = 0; i < plan->graph->nodes.n; i++)
        plan->flops += 2 * (double)cnri_node_macs(&plan->graph->nodes.at[i]->view);
}

const char *const cnri_plan_steps[] = {"fuse", "alias", "layout", "inplace", "share", NULL};

/* Makes a plan: binds sizes, rewrites, chooses kernels, asks the policy, emits steps and lays out
 * memory. */
static cnr_status make(cnri_planner *p, const cnr_graph *net, const cnr_tensor *const *types,
                       int32_t n_types, cnr_error *err) {
    cnr_plan *plan = p->plan;
    const char *const *off = p->options->no_rewrite;
    cnr_status status = cnri_graph_bind(p->graph, types, n_types, err);
    if (!status) status = take_devices(p, err);
    if (!status) status = count_params(plan, err);
    if (!status) status = cnri_graph_rewrite(p->graph, off, plan->devices, plan->n_devices, err);
    if (!status) status = check_values(p->graph, err);
    if (!status)
        cnri_plan_find_ranges(p->graph,
                              &(cnri_ranges_request){net, off, plan->devices, plan->n_devices});
    p->fuse = !cnri_is_listed(off, cnri_plan_steps[0]);
    p->alias = !cnri_is_listed(off, cnri_plan_steps[1]);
    p->layout = !cnri_is_listed(off, cnri_plan_steps[2]);
    p->in_place = !cnri_is_listed(off, cnri_plan_steps[3]);
    p->share = !cnri_is_listed(off, cnri_plan_steps[4]);
    if (!status) count_work(plan);
    if (!status) status = cnri_plan_place(p, err);
    if (!status) status = choose(p, err);
    if (!status) status = cnri_plan_emit(p, err);
    if (!status && above()) status = above()->links(p, err);
    if (!status) status = cnri_plan_alias(p, err);
    if (!status) status = cnri_plan_views(p, err);
    if (!status) status = cnri_plan_lay(p, err);
    if (!status) status = cnri_plan_waits(p, err);
    if (!status) status = cnri_residency_make(plan, p->options->memo, err);
    if (!status) status = cnri_plan_constants(plan, -1, err);
    if (status) return status;
    count_weights(p);
    drop_twins(plan);
    return CNR_OK;
}

/* Waits until the kernels that devices build for the plan are ready. */
static cnr_status await_kernels(const cnr_plan *plan, cnr_status status, cnr_error *err) {
    for (int32_t i = 0; i < plan->n_devices; i++) {
        const cnr_device *d = plan->devices[i];
        const cnr_status one =
            CNRI_HAS(d->cls, plan_finish) ? d->cls->plan_finish(d, status ? NULL : err) : CNR_OK;
        if (!status) status = one;
    }
    return status;
}

/* Takes over the list of weights that nothing is folded into. */
static cnr_status take_unfolded(cnr_plan *plan, const cnr_value *list, int32_t n, cnr_error *err) {
    for (int32_t i = 0; i < n; i++) {
        cnr_value *slot = list[i] < plan->graph->values.n ? cnri_push(&plan->unfolded) : NULL;
        if (!slot) return cnri_no_memory(err);
        *slot = list[i];
        plan->graph->values.at[list[i]].unfolded = true;
    }
    return CNR_OK;
}

/* Makes a plan that folds nothing into the n weights of the list. It is in p->plan after a failure,
 * too; NULL: memory ran out. */
static cnr_status make_unfolded(cnri_planner *p, const cnr_graph *graph,
                                const cnr_tensor *const *types, int32_t n_types,
                                const cnr_value *list, int32_t n, cnr_error *err) {
    const cnri_plan_options *options = p->options;
    const int64_t before = cnri_alloc_failures();
    cnr_plan *plan = p->plan = cnri_alloc_zero(sizeof *plan);
    if (!plan) return cnri_no_memory(err);
    plan->memory_bound = options->memory_bound;
    plan->memory_limit = options->memory_limit;
    plan->hang_ms = options->hang_ms;
    plan->gives_up = plan->hang_ms || (options->fallback && *options->fallback);
    p->graph = plan->graph = cnri_graph_copy(graph);
    if (plan->graph) plan->graph->late_folds = true;
    if (plan->graph) plan->graph->releases = plan->memory_bound > 0;
    cnr_status status = plan->graph ? take_unfolded(plan, list, n, err) : cnri_no_memory(err);
    if (!status) status = make(p, graph, types, n_types, err);
    status = await_kernels(plan, status, err);
    free_planner(p);
    return cnri_alloc_verdict(before, status, "plan", err);
}

/* Ways of fitting a memory bound, the fastest plans first. What the last one needs does not depend
 * on the bound, so an error that names it names what is enough. */
static const struct {
    int32_t left, slice_share;
} tightness[] = {{CNRI_FITS_SLICED, 10}, {CNRI_FITS_SLICED, 5}, {CNRI_FITS_SLICED, 2},
                 {CNRI_FITS_SLICED, 0},  {CNRI_FITS_WHOLE, 10}, {CNRI_IS_SMALLEST, 0}};

cnr_status cnri_plan_make_on(const cnr_graph *graph, const cnri_device_set *set,
                             const cnri_plan_options *options, const cnr_tensor *const *input_types,
                             int32_t n_inputs, cnr_plan **out, cnr_error *err) {
    const cnri_memo *memo = options->memo;
    cnr_plan *last = NULL;
    cnr_status status;
    bool again;
    int64_t tight = memo ? cnr_min(memo->tightness, (int64_t)CNRI_COUNT(tightness) - 1) : 0;
    do { /* each turn leaves more weights as they are, or is tighter */
        const cnr_value *list = last ? last->unfolded.at : memo ? memo->unfolded.at : NULL;
        const int32_t n = last ? last->unfolded.n : memo ? memo->unfolded.n : 0;
        cnri_planner p = {.set = set,
                          .options = options,
                          .n_given = graph->values.n,
                          .left = tightness[tight].left,
                          .slice_share = tightness[tight].slice_share};
        cnr_error why = CNR_ERROR_INIT;
        status = make_unfolded(&p, graph, input_types, n_inputs, list, n, &why);
        *out = p.plan;
        if (*out) (*out)->tightness = (int32_t)tight;
        again = status == CNR_E_LIMIT && options->memory_bound && !memo;
        if (again && (*out)->unfolded.n == n) again = ++tight < (int64_t)CNRI_COUNT(tightness);
        if (status && !again) cnri_fail(err, status, why.where, "%s", why.text);
        cnri_plan_free(last);
        last = *out;
    } while (again);
    if (status) cnri_plan_free(last);
    if (status) *out = NULL;
    return status;
}

cnr_status cnri_plan_make(const cnr_graph *graph, cnri_devices *devices,
                          const cnri_plan_options *options, const cnr_tensor *const *input_types,
                          int32_t n_inputs, cnr_plan **out, cnr_error *err) {
    static const cnri_plan_options defaults;
    const cnri_plan_options *o = options ? options : &defaults;
    cnri_device_set set;
    *out = NULL;
    cnr_status status = cnri_device_set_make(&set, devices, graph, o, err);
    if (status) return status;
    status = cnri_plan_make_on(graph, &set, o, input_types, n_inputs, out, err);
    cnri_device_set_free(&set);
    return status;
}

/* Frees what a step's kernel and the plan hold of it. */
static void free_step(cnr_plan *plan, cnri_step *s) {
    if (s->state && s->kernel && CNRI_HAS(s->kernel, plan_free))
        s->kernel->plan_free(plan->devices[s->device], s->state);
    cnri_free(s->in);
    cnri_free(s->waits);
    cnri_free(s->view_memory);
}

/* True if a device of the plan hangs. */
static bool any_lost(const cnr_plan *plan) {
    for (int32_t i = 0; i < plan->n_devices; i++)
        if (cnri_device_is_lost(plan->devices[i])) return true;
    return false;
}

/* Frees the plan, except for memory that a hanging device may still use. */
void cnri_plan_free(cnr_plan *plan) {
    if (!plan || any_lost(plan)) return;
    cnri_residency_free(plan);
    for (int32_t i = 0; i < plan->steps.n; i++) free_step(plan, &plan->steps.at[i]);
    for (int32_t i = 0; plan->constants && i < plan->storages.n; i++)
        if (plan->constants[i].handle) {
            const cnr_device *device = plan->devices[plan->storages.at[i].device];
            device->cls->free(device, &plan->constants[i]);
        }
    for (int32_t i = 0; i < plan->twins.n; i++)
        cnri_free(plan->graph->values.at[plan->twins.at[i].dense].type->data);
    cnri_vec_free(&plan->raw);
    cnri_vec_free(&plan->unfolded);
    cnri_vec_free(&plan->steps);
    cnri_vec_free(&plan->homes);
    cnri_vec_free(&plan->storages);
    cnri_vec_free(&plan->twins);
    cnri_vec_free(&plan->decisions);
    cnri_regions_free(plan->regions);
    cnri_unmap_file(&plan->kept);
    if (plan->table) above()->free(plan->table);
    cnri_plan_unplace(plan);
    cnri_free(plan->origin);
    cnri_free(plan->constants);
    cnri_free(plan->input_homes);
    cnri_free(plan->output_homes);
    cnri_free(plan->devices);
    cnri_graph_free(plan->graph);
    cnri_free(plan);
}
