/* Inputs and outputs that lie in memory of the application's own: the homes that share their bytes
 * are moved there, so that steps read and write it themselves. */
#include "run/session.h"

/* The home whose memory this one shares in the end; *offset: bytes from its start. */
static int32_t root_of(const cnr_plan *plan, int32_t home, uint64_t *offset) {
    *offset = 0;
    for (; plan->homes.at[home].alias_of >= 0; home = plan->homes.at[home].alias_of)
        *offset += plan->homes.at[home].alias_offset;
    return home;
}

/* True if the home is in host memory. */
static bool in_host(const cnr_plan *plan, const cnri_home *h) {
    return plan->devices[h->device]->memory[h->memory_class].flags & CNR_MEMORY_HOST;
}

/* Whether a step writes to bytes that `root` owns. */
static bool is_written(const cnr_plan *plan, int32_t root) {
    uint64_t offset;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *step = &plan->steps.at[i];
        for (int32_t k = 0; k < step->n_out; k++)
            if (root_of(plan, step->out[k], &offset) == root) return true;
        if (step->to >= 0 && step->kind != CNRI_STEP_KERNEL &&
            root_of(plan, step->to, &offset) == root)
            return true;
    }
    return false;
}

/* Why memory of the caller's can't stand for the home of an input or (is_output) output; NULL: it
 * can. *root: the home whose memory it shares. */
static const char *obstacle(const cnr_session *s, bool is_output, int32_t home, int32_t *root) {
    const cnr_plan *plan = s->plan;
    uint64_t offset;
    if (home < 0) return is_output ? "it is a constant" : "nothing reads it";
    *root = root_of(plan, home, &offset);
    const cnri_home *h = &plan->homes.at[home], *whole = &plan->homes.at[*root];
    if (whole->storage < 0 || plan->storages.at[whole->storage].constant)
        return "it is kept with the weights";
    if (h->block_of) return "its channels are kept in blocks";
    if (plan->devices[h->device]->memory[h->memory_class].flags & CNR_MEMORY_IMAGE)
        return "it is kept in an image";
    if (offset != 0 || whole->bytes != h->bytes) return "it is a part of another value";
    if (!is_output && is_written(plan, *root)) return "a layer overwrites it in place";
    return NULL;
}

/* Moves all that share the bytes of `root`; whole NULL: back to their storage. */
static cnr_status move(cnr_session *s, int32_t root, const cnr_mem *whole, cnr_error *err) {
    const cnr_plan *plan = s->plan;
    uint64_t offset;
    for (int32_t h = 0; h < plan->homes.n; h++)
        if (root_of(plan, h, &offset) == root)
            CNR_TRY(
                cnri_session_place(s, h, whole, whole ? offset : plan->homes.at[h].offset, err));
    for (int32_t i = 0; i < plan->graph->outputs.n; i++) {
        const int32_t home = plan->output_homes[i];
        if (home >= 0 && in_host(plan, &plan->homes.at[home]))
            s->outputs[i].data = s->tensors[home].data;
    }
    return CNR_OK;
}

/* *out: memory of a value that the caller wants to bind to an input or output; fails where the
 * device can't use it. */
static cnr_status memory_of(const cnr_session *s, int32_t home, const cnr_tensor *value,
                            const char *name, cnr_mem *out, cnr_error *err) {
    const cnri_home *h = &s->plan->homes.at[home];
    const cnr_device *device = s->plan->devices[h->device];
    const uint32_t alignment = device->memory[h->memory_class].alignment;
    *out = (cnr_mem){.handle = value->data, .bytes = h->bytes, .memory_class = h->memory_class};
    if (!in_host(s->plan, h)) *out = value->mem;
    if (!out->handle)
        return cnri_fail(err, CNR_E_UNSUPPORTED, name, "lies %s %s: want memory there",
                         in_host(s->plan, h) ? "on the host for" : "on", device->name);
    if (out->memory_class != h->memory_class || out->bytes < h->bytes ||
        ((uintptr_t)(in_host(s->plan, h) ? out->handle : NULL) + out->offset) %
            (alignment ? alignment : 1))
        return cnri_fail(err, CNR_E_ARG, name,
                         "want %llu bytes of memory class %d, aligned to %u bytes",
                         (unsigned long long)h->bytes, (int)h->memory_class, (unsigned)alignment);
    return CNR_OK;
}

/* Binds a caller's memory to an input or (is_output) output, so that runs need no copy. Fails while
 * a run is under way, or with what stands against it. */
static cnr_status bind(cnr_session *s, bool is_output, int32_t index, const cnr_tensor *value,
                       cnr_error *err) {
    const cnri_value *v;
    const int32_t owner = is_output ? -1 - index : 1 + index;
    int32_t root = -1;
    cnr_mem memory;
    CNR_TRY(cnri_require_arguments(err, "session", s, NULL));
    CNR_TRY(cnri_session_end(s, is_output, index, value, &v, err));
    if (s->running) return cnri_fail(err, CNR_E_STATE, v->name, "a run is under way");
    const int32_t home = is_output ? s->plan->output_homes[index] : s->plan->input_homes[index];
    const char *why =
        v->type->data ? "its data decides shapes" : obstacle(s, is_output, home, &root);
    if (!why && s->bound[root] && s->bound[root] != owner) why = "it shares memory with another";
    if (why && !value) return CNR_OK; /* it never was bound */
    if (why)
        return cnri_fail(err, CNR_E_UNSUPPORTED, v->name, "can't lie in the caller's memory: %s",
                         why);
    if (value) CNR_TRY(memory_of(s, home, value, v->name, &memory, err));
    CNR_TRY(move(s, root, value ? &memory : NULL, err));
    s->n_bound += (value != NULL) - (s->bound[root] != 0);
    s->bound[root] = value ? owner : 0;
    if (!is_output) s->given[index] = value ? CNRI_BOUND : 0;
    return CNR_OK;
}

cnr_status cnr_session_bind_input(cnr_session *s, int32_t index, const cnr_tensor *value,
                                  cnr_error *err) {
    return bind(s, false, index, value, err);
}

cnr_status cnr_session_bind_output(cnr_session *s, int32_t index, const cnr_tensor *value,
                                   cnr_error *err) {
    return bind(s, true, index, value, err);
}
