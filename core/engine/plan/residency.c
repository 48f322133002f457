/* Brings prepared weights when they are needed, and drops them. A blob that stays is read without
 * the lock once it is ready. The others are held while a step uses them; each session holds at most
 * one at a time, so waiting for memory always ends. */
#include "plan/residency.h"
#include <sys/mman.h>
#include <unistd.h>

/* ---- bringing and dropping; the lock is held ---- */

/* Uses a kept blob in place if the device can read it there. False: it failed. */
static bool map_kept(const cnr_device *device, cnri_blob *b) {
    const cnr_memory_class *m = &device->memory[b->mem.memory_class];
    if (!(m->flags & CNR_MEMORY_HOST) || (m->flags & CNR_MEMORY_IMAGE)) return false;
    if (m->alignment && (uintptr_t)b->kept->data % m->alignment) return false;
    b->mem.handle = (void *)b->kept->data; /* kernels only read blobs */
    b->mapped = true;
    return true;
}

/* Gives the pages of a mapped blob back to the system; a later read maps them again. */
static void unmap_kept(cnri_blob *b) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)b->kept->data;
    const uintptr_t first = (begin + page - 1) / page * page;
    const uintptr_t last = (begin + b->bytes) / page * page;
    if (last > first) (void)madvise((void *)first, last - first, MADV_DONTNEED);
    b->mapped = false;
}

/* Frees the spare block that is kept for the next blob; none: nothing. */
static void drop_spare(struct cnri_residency *r) {
    if (r->spare_of) r->spare_of->cls->free(r->spare_of, &r->spare);
    r->spare_of = NULL;
}

/* Memory for a blob of mem's size, in *mem: what was kept of the last one if it fits, else new. */
static cnr_status take_memory(struct cnri_residency *r, const cnr_device *device, cnr_mem *mem,
                              cnr_error *err) {
    const bool fits = r->spare_of == device && r->spare.bytes == mem->bytes &&
                      r->spare.memory_class == mem->memory_class;
    if (!fits) drop_spare(r);
    if (!fits) return cnri_device_alloc(device, mem, err);
    *mem = r->spare;
    r->spare_of = NULL;
    return CNR_OK;
}

/* Bytes that the blob takes while it is there. */
static uint64_t held_by(const cnr_plan *plan, const cnri_blob *b) {
    const struct cnri_residency *r = plan->residency;
    const cnri_step *s = &plan->steps.at[b->step];
    const bool slot = r->slot && !b->stays && !b->kept && b->bytes <= r->slot &&
                      cnri_in_host(plan->devices[s->device], s->blob_space.memory_class);
    return slot ? r->slot : b->bytes;
}

/* Frees a blob's memory, or keeps it as the spare block for the next, and counts it off; nothing if
 * it isn't resident. */
static void drop(cnr_plan *plan, cnri_blob *b) {
    struct cnri_residency *r = plan->residency;
    if (!atomic_load(&b->resident)) return;
    atomic_store(&b->resident, false);
    r->stats.now -= b->mapped ? b->bytes : b->mem.bytes;
    const cnr_device *device = plan->devices[plan->steps.at[b->step].device];
    if (b->mapped) unmap_kept(b);
    else {
        drop_spare(r);
        r->spare = b->mem;
        r->spare_of = device;
        if (!plan->memory_bound || !cnri_in_host(device, b->mem.memory_class)) drop_spare(r);
    }
}

/* Makes prepared weights resident: mapped from a stored plan, whose fingerprint is checked, or
 * prepared anew. */
static cnr_status bring(cnr_plan *plan, cnri_blob *b, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    const cnri_step *s = &plan->steps.at[b->step];
    const cnr_device *device = plan->devices[s->device];
    b->mem = (cnr_mem){.bytes = held_by(plan, b),
                       .width = s->blob_space.width,
                       .height = s->blob_space.height,
                       .memory_class = s->blob_space.memory_class};
    if (b->kept && !b->kept->sound &&
        !cnri_same_fingerprint(b->kept->data, b->kept->bytes, b->kept->print)) {
        if (b->kept->file)
            return cnri_fail(err, CNR_E_FORMAT, b->kept->file,
                             "damaged: %s does not have the fingerprint that was written with it",
                             b->kept->name);
        cnri_log(CNR_LOG_WARN, "plan", "the stored blob of %s is damaged: prepared again",
                 b->kept->name);
        b->kept = NULL;
    }
    if (!b->kept || !map_kept(device, b)) {
        cnr_status status = take_memory(r, device, &b->mem, err);
        if (status) return status;
        status = b->kept ? cnri_device_upload(device, &b->mem, b->kept->data, b->mem.bytes, err)
                         : cnri_blob_prepare(plan, b, &b->mem, err);
        if (status) {
            device->cls->free(device, &b->mem);
            if (err && !err->where[0])
                snprintf(err->where, sizeof err->where, "%s", s->view.name ? s->view.name : "");
            return status;
        }
    }
    r->stats.now += b->mapped ? b->bytes : b->mem.bytes;
    if (b->kept) r->stats.kept++;
    else r->stats.prepared++;
    if (!b->kept && (b->stays || plan->memory_bound)) cnri_blob_release_inputs(plan, s);
    if (r->stats.now > r->stats.peak) r->stats.peak = r->stats.now;
    atomic_store(&b->resident, true);
    return CNR_OK;
}

/* Drops blobs until `bytes` fit, the last used first: steps run in a cycle. */
static cnr_status make_room(cnr_plan *plan, uint64_t bytes, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    while (plan->memory_bound && r->stats.now + bytes > r->room) {
        cnri_blob *victim = NULL;
        bool held = false;
        for (int32_t i = 0; i < r->blobs.n; i++) {
            cnri_blob *b = &r->blobs.at[i];
            if (b->stays || !atomic_load(&b->resident)) continue;
            if (b->holders > 0) held = true;
            else if (!victim || b->used > victim->used) victim = b;
        }
        if (victim) {
            drop(plan, victim);
            r->stats.evicted++;
        } else if (held) {
            pthread_cond_wait(&r->freed, &r->lock);
        } else {
            return cnri_fail(err, CNR_E_LIMIT, "plan", "%llu bytes do not fit the memory bound",
                             (unsigned long long)bytes);
        }
    }
    return CNR_OK;
}

/* ---- what others call ---- */

cnr_status cnri_residency_read(cnr_plan *plan, int32_t index, void **buffer, const void **data,
                               cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    cnri_blob *b = &r->blobs.at[index];
    const cnr_device *device = plan->devices[plan->steps.at[b->step].device];
    pthread_mutex_lock(&r->lock);
    cnr_status status = CNR_OK;
    if (!atomic_load(&b->resident)) {
        status = make_room(plan, held_by(plan, b) + cnri_blob_making(plan, b), err);
        if (!status) status = bring(plan, b, err);
        b->used = ++r->clock;
    }
    if (!status && cnri_in_host(device, b->mem.memory_class)) {
        *data = (const char *)b->mem.handle + b->mem.offset;
    } else if (!status) {
        void *at = cnri_resize(*buffer, (size_t)b->bytes + 1);
        if (!at) status = cnri_no_memory(err);
        else *data = *buffer = at;
        if (!status) status = cnri_device_download(device, &b->mem, at, b->bytes, err);
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

void cnri_residency_free(cnr_plan *plan) {
    struct cnri_residency *r = plan->residency;
    if (!r) return;
    for (int32_t i = 0; i < r->blobs.n; i++) drop(plan, &r->blobs.at[i]);
    cnri_vec_free(&r->blobs);
    drop_spare(r);
    cnri_residency_drop_scratch(r);
    cnri_free(r->kept);
    pthread_cond_destroy(&r->freed);
    pthread_mutex_destroy(&r->lock);
    cnri_free(r);
    plan->residency = NULL;
}

cnr_status cnri_residency_acquire(cnr_plan *plan, int32_t step, int32_t slice, cnr_mem **out,
                                  cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    const int32_t index = plan->steps.at[step].blob;
    *out = NULL;
    if (index < 0) return CNR_OK;
    cnri_blob *b = &r->blobs.at[index + slice];
    *out = &b->mem;
    if (b->stays && atomic_load_explicit(&b->resident, memory_order_acquire)) return CNR_OK;
    cnr_status status = CNR_OK;
    pthread_mutex_lock(&r->lock);
    while (!status && !atomic_load(&b->resident)) {
        /* may wait: another may bring it meanwhile */
        status = make_room(plan, held_by(plan, b) + cnri_blob_making(plan, b), err);
        if (!status && !atomic_load(&b->resident)) status = bring(plan, b, err);
        if (plan->memory_bound && !r->slot) cnri_residency_drop_scratch(r);
    }
    if (!status) {
        b->holders++;
        b->used = ++r->clock;
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

void cnri_residency_release(cnr_plan *plan, int32_t step, int32_t slice) {
    struct cnri_residency *r = plan->residency;
    const int32_t index = plan->steps.at[step].blob + slice;
    if (index < 0 || r->blobs.at[index].stays) return;
    pthread_mutex_lock(&r->lock);
    r->blobs.at[index].holders--;
    pthread_cond_broadcast(&r->freed);
    pthread_mutex_unlock(&r->lock);
}

bool cnri_residency_stays(const cnr_plan *plan, int32_t step) {
    const int32_t index = plan->steps.at[step].blob;
    return index < 0 || plan->residency->blobs.at[index].stays;
}

cnr_status cnri_residency_warm(cnr_plan *plan, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    cnr_status status = CNR_OK;
    pthread_mutex_lock(&r->lock);
    for (int32_t i = 0; i < r->blobs.n && !status; i++) {
        cnri_blob *b = &r->blobs.at[i];
        if (!b->stays || atomic_load(&b->resident)) continue;
        status = make_room(plan, held_by(plan, b) + cnri_blob_making(plan, b), err);
        if (!status && !atomic_load(&b->resident)) status = bring(plan, b, err);
    }
    cnri_residency_drop_scratch(r);
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* True if the step reads that value. */
static bool made_of(const cnr_plan *plan, const cnri_step *s, cnr_value value) {
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && plan->homes.at[s->in[i]].value == value) return true;
    return false;
}

bool cnri_residency_uses(const cnr_plan *plan, cnr_value value) {
    const struct cnri_residency *r = plan->residency;
    for (int32_t i = 0; i < r->blobs.n; i++)
        if (made_of(plan, &plan->steps.at[r->blobs.at[i].step], value)) return true;
    return false;
}

/* After a weight's value has changed, frees or prepares again all prepared weights made of it. */
static cnr_status renew_blobs(cnr_plan *plan, cnr_value value, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    cnr_status status = CNR_OK;
    bool resized = false;
    for (int32_t i = 0; i < r->blobs.n && !status; i++) {
        cnri_blob *b = &r->blobs.at[i];
        cnri_step *s = &plan->steps.at[b->step];
        if (!made_of(plan, s, value)) continue;
        /* The file has the old weights: prepare the blob again when needed. */
        if (b->mapped) drop(plan, b);
        b->kept = NULL;
        status = cnri_blob_size(plan, s, err);
        /* The size of a blob may depend on the data. */
        if (status || s->blob_space.bytes != b->bytes) {
            drop(plan, b);
            plan->weight_bytes += s->blob_space.bytes - b->bytes;
            b->bytes = s->blob_space.bytes;
            resized = true;
        }
        if (!status && atomic_load(&b->resident)) {
            status = cnri_blob_prepare(plan, b, &b->mem, err);
            if (status) drop(plan, b);
            else r->stats.prepared++;
        }
    }
    if (resized && !status) {
        status = cnri_residency_choose(plan, err);
        for (int32_t i = 0; i < r->blobs.n; i++)
            if (!r->blobs.at[i].stays && plan->memory_bound) drop(plan, &r->blobs.at[i]);
    }
    return status;
}

cnr_status cnri_residency_renew(cnr_plan *plan, cnr_value value, cnr_error *err) {
    pthread_mutex_lock(&plan->residency->lock);
    cnr_status status = renew_blobs(plan, value, err);
    pthread_mutex_unlock(&plan->residency->lock);
    if (!status) status = cnri_plan_constants(plan, value, err);
    for (int32_t i = 0; i < plan->twins.n && !status; i++) {
        const cnri_twin *twin = &plan->twins.at[i];
        if (twin->encoded != value) continue;
        const cnr_tensor *from = plan->graph->values.at[value].type;
        const cnr_encoding *how =
            cnri_descriptor_find(CNR_KIND_ENCODING, cnri_name(from->encoding));
        cnr_tensor *to = plan->graph->values.at[twin->dense].type;
        if (twin->kept) status = how->decode(from, to->data, err);
        if (!status) status = cnri_residency_renew(plan, twin->dense, err);
    }
    return status;
}

void cnri_residency_stats_of(const cnr_plan *plan, cnri_residency_stats *out) {
    pthread_mutex_lock(&plan->residency->lock);
    *out = plan->residency->stats;
    pthread_mutex_unlock(&plan->residency->lock);
}
