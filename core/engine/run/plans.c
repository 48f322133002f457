/* The plans of a model by the shapes of its inputs: each is found or made once, however many
 * threads ask, and kept while it is used. The runtime's lock is held to look up and publish,
 * never to plan. */
#include "run/run.h"
#include <pthread.h>
#include <stdatomic.h>

enum { MAX_CACHED = 8 }; /* most plans that are kept without a user */

/* A plan in the model's cache. */
typedef struct cnri_kept_plan {
    cnr_model *model;
    cnr_plan *plan; /* NULL: it is being made */
    /* Input types while it is being made; the thread that makes it owns them. */
    const cnr_tensor *types;
    int32_t refs;     /* number of users; the cache is one of them */
    bool cached;      /* it can be found by its shapes */
    uint64_t used;    /* sequence number of its last use */
    uint64_t version; /* version of the options that it was made with */
} kept_plan;

/* The plans of a model, found by input types. */
struct cnri_plans {
    CNRI_VEC(kept_plan *) at;
    uint64_t clock;
    uint64_t version;    /* version of the model's current options */
    pthread_cond_t made; /* signalled when a plan is ready or failed */
    /* The warning that no kernel stores or computes as requested was given. */
    atomic_bool warned_of_types;
};

static void lock(const cnr_model *m) { pthread_mutex_lock(m->rt->lock); }
static void unlock(const cnr_model *m) { pthread_mutex_unlock(m->rt->lock); }

/* ---- by shape; the lock is held ---- */

/* True if a plan for type a serves input b. A plan made for an input's data serves only that
 * data, and not an input without data. */
static bool same_type(const cnr_tensor *a, const cnr_tensor *b) {
    if (!cnr_same_shape(a, b) || !a->data != !b->data) return false;
    return !a->data || memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

/* True if a plan was made for these input types. */
static bool made_for(const kept_plan *k, const cnr_tensor *types, int32_t n) {
    const cnr_graph *g = k->plan ? k->plan->graph : NULL;
    for (int32_t i = 0; i < n; i++)
        if (!same_type(&types[i], g ? g->values.at[g->inputs.at[i]].type : &k->types[i]))
            return false;
    return true;
}

/* The plan for these input types, also one being made; NULL: none. */
static kept_plan *find(cnr_model *m, const cnr_tensor *types, int32_t n) {
    for (int32_t i = 0; i < m->plans->at.n; i++) {
        kept_plan *k = m->plans->at.at[i];
        if (k->cached && made_for(k, types, n)) return k;
    }
    return NULL;
}

/* Takes one user away. Returns the plan if it has none left, for the caller to free; else NULL. */
static kept_plan *let_go(kept_plan *k) {
    struct cnri_plans *plans = k->model->plans;
    if (--k->refs > 0) return NULL;
    for (int32_t i = 0; i < plans->at.n; i++)
        if (plans->at.at[i] == k) {
            plans->at.at[i] = plans->at.at[--plans->at.n];
            break;
        }
    return k;
}

/* Takes the plan used longest ago out of a full cache. Returns it as let_go does, NULL if the cache
 * isn't full. */
static kept_plan *trim(struct cnri_plans *plans) {
    int32_t cached = 0;
    kept_plan *oldest = NULL;
    for (int32_t i = 0; i < plans->at.n; i++) {
        kept_plan *k = plans->at.at[i];
        if (!k->cached || !k->plan) continue;
        cached++;
        if (!oldest || k->used < oldest->used) oldest = k;
    }
    if (cached <= MAX_CACHED) return NULL;
    oldest->cached = false;
    return let_go(oldest);
}

/* Frees a plan and its entry. */
static void free_kept(kept_plan *k) {
    if (!k) return;
    cnri_plan_free(k->plan);
    cnri_free(k);
}

/* ---- making ---- */

/* Adds the entry that other threads find and wait for while the plan is made, with one user. NULL:
 * out of memory. */
static kept_plan *begin(cnr_model *m, const cnr_tensor *types) {
    kept_plan *k = cnri_alloc_zero(sizeof *k), **slot = k ? cnri_push(&m->plans->at) : NULL;
    if (!slot) {
        cnri_free(k);
        return NULL;
    }
    *k = (kept_plan){.model = m,
                     .types = types,
                     .refs = 1,
                     .cached = true,
                     .used = ++m->plans->clock,
                     .version = m->plans->version};
    return *slot = k;
}

/* Makes a plan anew: nobody is registered who stores plans. */
static cnr_status plan_anew(const cnri_plan_request *r, cnr_plan **out, cnr_error *err) {
    return cnri_plan_make_on(r->model->graph, r->set, r->options, r->types, r->n, out, err);
}

static cnri_plan_keeper keeper = plan_anew;

void cnri_plan_keeper_register(cnri_plan_keeper own) {
    __atomic_store_n(&keeper, own, __ATOMIC_RELEASE);
}

/* Makes a plan of the model for these input types; *out: for cnri_plan_free. */
static cnr_status make(cnr_model *m, const cnri_plan_options *options, const cnr_tensor *types,
                       int32_t n, cnr_plan **out, cnr_error *err) {
    cnri_device_set set;
    const cnr_tensor **list = cnri_alloc(((size_t)n + 1) * sizeof *list);
    if (!list) return cnri_out_of_memory(err, "model");
    for (int32_t i = 0; i < n; i++) list[i] = &types[i];
    const int64_t before = cnri_alloc_failures();
    cnr_status status = cnri_device_set_make(&set, &m->rt->devices, m->graph, options, err);
    if (!status && (status = cnri_alloc_verdict(before, CNR_OK, "devices", err)) != CNR_OK)
        cnri_device_set_free(&set); /* a device may be left out */
    if (!status) {
        const cnri_plan_request request = {m, options, &set, list, n, false};
        status = __atomic_load_n(&keeper, __ATOMIC_ACQUIRE)(&request, out, err);
        /* Prepares weights now, so that a failure shows here. */
        if (!status && options->fallback) status = cnri_residency_warm(*out, err);
        cnri_device_set_free(&set);
    }
    cnri_free(list);
    status = cnri_alloc_verdict(before, status, m->path ? m->path : "model", err);
    if (!status) return CNR_OK;
    m->lost = m->lost || cnri_devices_any_lost();
    cnri_plan_free(*out);
    *out = NULL;
    return status;
}

void cnri_plans_check_stores(const cnr_model *m, const cnri_plan_options *o, const cnr_plan *plan) {
    uint32_t left = o->stores;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnr_kernel *k = plan->steps.at[i].kernel;
        if (k && CNRI_HAS(k, flags)) left &= ~k->flags;
        if (k && CNRI_HAS(k, flags) && k->flags & CNR_KERNEL_F16_MATH)
            left &= ~(uint32_t)CNR_KERNEL_F16;
    }
    /* --arithmetic bf16 asks for both, and either will do */
    const uint32_t both = CNR_KERNEL_BF16_MATH | CNR_KERNEL_BF16;
    if (o->stores & CNR_KERNEL_BF16_MATH && (left & both) != both) left &= ~both;
    if (o->stores & CNR_KERNEL_BF16_MATH) left &= ~(uint32_t)CNR_KERNEL_BF16;
    if (!left || atomic_exchange(&m->plans->warned_of_types, true)) return;
    if (left & (CNR_KERNEL_F16_MATH | CNR_KERNEL_BF16_MATH))
        cnri_graph_warn(m->graph, m->graph->name,
                        "no device there multiplies for this net in %s: it is in f32",
                        left & CNR_KERNEL_F16_MATH ? "fp16" : "bf16");
    if (left & (CNR_KERNEL_F16 | CNR_KERNEL_BF16))
        cnri_graph_warn(m->graph, m->graph->name,
                        "no kernel there stores weights of this net as %s: they stay as they are",
                        left & CNR_KERNEL_F16 ? "fp16" : "bf16");
}

/* Publishes a finished plan. If the options changed meanwhile, only its caller uses it. */
static void publish(kept_plan *k, cnr_plan *plan, uint64_t version) {
    struct cnri_plans *plans = k->model->plans;
    kept_plan *left = NULL;
    lock(k->model);
    k->types = NULL;
    k->plan = plan;
    k->cached = plan && k->cached && plans->version == version;
    if (k->cached) k->refs++;
    if (plan) plan->keeper = k;
    left = plan ? trim(plans) : let_go(k);
    pthread_cond_broadcast(&plans->made);
    unlock(k->model);
    free_kept(left);
}

/* *out: a plan that is found or made, with a reference taken; waits if another thread makes it. */
static cnr_status find_or_make(cnr_model *m, const cnr_tensor *types, int32_t n, cnr_plan **out,
                               cnr_error *err) {
    cnri_plan_options options = {0};
    cnr_status status = CNR_OK;
    kept_plan *k;
    lock(m);
    while ((k = find(m, types, n)) != NULL && !k->plan)
        pthread_cond_wait(&m->plans->made, m->rt->lock);
    const bool found = k != NULL;
    const uint64_t version = m->plans->version;
    if (found) {
        k->refs++;
        k->used = ++m->plans->clock;
        *out = k->plan;
    } else if (!cnri_plan_options_copy(&m->plan_options, &options) || !(k = begin(m, types))) {
        status = cnri_out_of_memory(err, "model");
    }
    unlock(m);
    if (!found && !status) {
        status = make(m, &options, types, n, out, err);
        if (!status) cnri_plans_check_stores(m, &options, *out);
        publish(k, status ? NULL : *out, version);
    }
    cnri_plan_options_free(&options);
    return status;
}

/* Name of input i, owned by the model's graph. */
static const char *input_name(const cnr_model *m, int32_t i) {
    return cnri_graph_value_name(m->graph, m->graph->inputs.at[i]);
}

/* Copies rank and sizes of a given shape into *type, and the data where it decides shapes;
 * CNR_E_INVALID: an impossible rank. */
static cnr_status take_shape(const cnr_model *m, int32_t input, const cnr_tensor *from,
                             cnr_tensor *type, cnr_error *err) {
    if (from->rank < 0 || from->rank > CNR_MAX_RANK)
        return cnri_fail(err, CNR_E_ARG, input_name(m, input), "a shape of rank %d; want 0 to %d",
                         (int)from->rank, CNR_MAX_RANK);
    type->rank = from->rank;
    memcpy(type->dim, from->dim, sizeof type->dim);
    type->bytes = cnr_dense_bytes(type);
    if (!from->data || from->dtype != type->dtype ||
        !cnri_value_decides_shapes(m->graph, m->graph->inputs.at[input]))
        return CNR_OK;
    type->data = from->data;
    return cnri_tensor_check(from, input_name(m, input), err);
}

cnr_status cnri_plan_types(const cnr_model *m, const cnr_tensor *const *shapes, int32_t n_shapes,
                           cnr_tensor *types, cnr_error *err) {
    const int32_t n = m->graph->inputs.n;
    cnr_status status = CNR_OK;
    if (shapes && n_shapes != n)
        return cnri_fail(err, CNR_E_ARG, m->path ? m->path : "model",
                         "want the shapes of %d inputs, got %d", (int)n, (int)n_shapes);
    for (int32_t i = 0; i < n && !status; i++) {
        types[i] = m->input_types.at[i];
        types[i].data = NULL;
        if (shapes && shapes[i]) status = take_shape(m, i, shapes[i], &types[i], err);
    }
    return status;
}

/* Finds or makes a plan; if the device fails, on the next allowed one. */
static cnr_status find_or_fall_back(cnr_model *m, const cnr_tensor *types, int32_t n,
                                    cnr_plan **out, cnr_error *err) {
    for (;;) {
        cnr_error why = CNR_ERROR_INIT;
        lock(m);
        char *device = m->plan_options.fallback || m->plan_options.on_fallback
                           ? cnri_strdup(m->plan_options.device ? m->plan_options.device : "")
                           : NULL;
        const uint64_t version = m->plans->version;
        unlock(m);
        const cnr_status status = find_or_make(m, types, n, out, device ? &why : err);
        const bool again = status && device && cnri_fall_back(m, device, version, status, &why);
        if (status && device && !again && err) cnri_fail(err, status, why.where, "%s", why.text);
        cnri_free(device);
        if (!again) return status;
    }
}

cnr_status cnr_plan_for(cnr_model *m, const cnr_tensor *const *shapes, int32_t n_shapes,
                        cnr_plan **out, cnr_error *err) {
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "model", m, "out", out, NULL);
    if (!status) status = cnri_check_process(m->rt, err);
    if (status) return status;
    const int32_t n = m->graph->inputs.n;
    cnr_tensor *types = cnri_alloc(((size_t)n + 1) * sizeof *types);
    if (!types) return cnri_out_of_memory(err, "model");
    status = cnri_plan_types(m, shapes, n_shapes, types, err);
    if (!status) status = find_or_fall_back(m, types, n, out, err);
    cnri_free(types);
    return status;
}

/* ---- holders ---- */

cnr_model *cnri_plan_model(const cnr_plan *plan) {
    return plan->keeper ? plan->keeper->model : NULL;
}

uint64_t cnri_plans_version(const cnr_model *m) { return m->plans->version; }

uint64_t cnri_plan_version(const cnr_plan *plan) {
    return plan->keeper ? plan->keeper->version : 0;
}

void cnri_plan_retain(cnr_plan *plan) {
    if (plan->keeper) plan->keeper->refs++;
}

void cnr_plan_release(cnr_plan *plan) {
    if (!plan) return;
    kept_plan *k = plan->keeper;
    if (!k) {
        cnri_plan_free(plan);
        return;
    }
    const cnr_model *m = k->model;
    lock(m);
    k = let_go(k);
    unlock(m);
    free_kept(k);
}

/* ---- of a model ---- */

cnr_status cnri_plans_open(cnr_model *m, cnr_error *err) {
    m->plans = cnri_alloc_zero(sizeof *m->plans);
    if (!m->plans) return cnri_out_of_memory(err, "model");
    pthread_cond_init(&m->plans->made, NULL);
    return CNR_OK;
}

void cnri_plans_close(cnr_model *m) {
    if (!m->plans) return;
    for (int32_t i = 0; i < m->plans->at.n; i++) free_kept(m->plans->at.at[i]);
    cnri_vec_free(&m->plans->at);
    pthread_cond_destroy(&m->plans->made);
    cnri_free(m->plans);
    m->plans = NULL;
}

void cnri_plans_invalidate(cnr_model *m) {
    struct cnri_plans *plans = m->plans;
    plans->version++;
    for (int32_t i = plans->at.n - 1; i >= 0; i--) {
        kept_plan *k = plans->at.at[i];
        if (!k->cached) continue;
        k->cached = false;
        if (k->plan) free_kept(let_go(k)); /* its options are gone, and the plan with them */
    }
}

int32_t cnri_plans_count(const cnr_model *m) { return m->plans->at.n; }

/* ---- the options that they are made by, owned by the model ---- */

void cnri_plan_options_free(cnri_plan_options *o) {
    for (int32_t i = 0; o->placements && i < o->n_placements; i++) {
        cnri_free(o->placements[i].node);
        cnri_free(o->placements[i].parts);
    }
    cnri_free((void *)o->placements);
    cnri_load_drop(o);
    cnri_policy_release(o->policy);
    memset(o, 0, sizeof *o);
}

bool cnri_plan_options_copy(const cnri_plan_options *from, cnri_plan_options *to) {
    *to = *from;
    to->placements = NULL;
    cnri_policy_retain(to->policy);
    if (!cnri_load_own(to)) return false;
    if (from->n_placements <= 0) return true;
    cnri_placement *all = cnri_alloc_zero((size_t)from->n_placements * sizeof *all);
    to->placements = all;
    for (int32_t i = 0; all && i < from->n_placements; i++) {
        const cnri_placement *p = &from->placements[i];
        const size_t bytes = (size_t)p->n_parts * sizeof *p->parts;
        all[i] = *p;
        all[i].node = cnri_strdup(p->node);
        all[i].parts = cnri_alloc(bytes + 1);
        if (!all[i].node || !all[i].parts) return false;
        memcpy(all[i].parts, p->parts, bytes);
    }
    return all != NULL;
}

/* Makes the model's options these, owned by it now, and drops outdated plans. The lock is held. */
static void take_over(cnr_model *m, const cnri_plan_options *options) {
    cnri_plan_options_free(&m->plan_options);
    m->plan_options = *options;
    cnri_plans_invalidate(m);
}

cnr_status cnri_model_set_options(cnr_model *m, const cnri_plan_options *options, cnr_error *err) {
    cnri_plan_options copy;
    if (!cnri_plan_options_copy(options, &copy)) {
        cnri_plan_options_free(&copy);
        return cnri_fail(err, CNR_E_MEMORY, "model", "out of memory");
    }
    pthread_mutex_lock(m->rt->lock);
    take_over(m, &copy);
    pthread_mutex_unlock(m->rt->lock);
    return CNR_OK;
}

/* What is left of the options on the next device: what is for others is void. False: it failed. */
static bool options_after(const cnri_plan_options *o, cnri_plan_options *copy) {
    cnri_plan_options next = *o;
    next.device = o->fallback[0];
    next.fallback = o->fallback + 1;
    next.on_fallback = true;
    next.placements = NULL;
    next.n_placements = 0;
    next.kernels = next.devices = NULL;
    next.policy = NULL;
    const bool good = cnri_plan_options_copy(&next, copy);
    if (!good) cnri_plan_options_free(copy);
    return good;
}

bool cnri_fall_back(cnr_model *m, const char *device, uint64_t version, cnr_status status,
                    const cnr_error *why) {
    const bool fails = status == CNR_E_DEVICE || status == CNR_E_MEMORY || status == CNR_E_LIMIT ||
                       status == CNR_E_NOT_FOUND;
    cnri_plan_options copy;
    char to[sizeof((cnr_device_info *)0)->name] = "";
    if (!m || !fails) return false;
    pthread_mutex_lock(m->rt->lock);
    const cnri_plan_options *o = &m->plan_options;
    const bool gone = o->on_fallback && version != cnri_plans_version(m); /* another was first */
    const bool falls =
        !gone && !o->training && o->fallback && *o->fallback && options_after(o, &copy);
    if (falls) snprintf(to, sizeof to, "%s", copy.device);
    if (falls) take_over(m, &copy);
    pthread_mutex_unlock(m->rt->lock);
    if (falls)
        cnri_log(CNR_LOG_WARN, device, "%s: %s; from here on %s runs on %s", why->where, why->text,
                 m->graph->name && *m->graph->name ? m->graph->name : "the net", to);
    return falls || gone;
}
