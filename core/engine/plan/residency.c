/* Prepared weights (blobs): made when first needed. Under a memory bound the largest stay, and
 * the others are made and dropped as needed. * A blob that stays is read without the lock once
 * it is ready. The others are held while a step uses them; each session holds at most one at a
 * time, so waiting for memory always ends. */
#include "plan/planner.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* The prepared weights of one step or of several that share them. */
typedef struct blob {
    int32_t step, slice; /* the step whose kernel prepares it, and which slice of that */
    int32_t holders;
    atomic_bool resident;
    bool stays, mapped; /* mapped: mem points into the kept blob */
    uint64_t bytes, used;
    cnr_mem mem;
    /* The blob that another process prepared; NULL: none, or it is out of date. */
    const cnri_kept_blob *kept;
} blob;

/* Prepared weights of a plan and what they may take. */
struct cnri_residency {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    CNRI_VEC(blob) blobs;
    cnri_kept_blob *kept; /* by blob; NULL without a memo */
    uint64_t clock, room; /* room: of blobs, under a bound */
    cnri_residency_stats stats;
    cnr_value late; /* the late weight of which rows are in `scratch` now; -1: none */
    /* Late_home: the data pointer that the graph's value has otherwise. */
    void *scratch, *late_home;
    uint64_t scratch_bytes;
    /* Under a bound: memory of the last blob that was dropped. */
    uint64_t slot; /* bytes for each blob that does not stay, so that the next takes its memory */
    cnr_mem spare;
    const cnr_device *spare_of; /* NULL: there is none */
};

/* ---- which steps share a blob ---- */

/* True if two tensors have the same type, shape and encoding. */
static bool same_type(const cnr_tensor *a, const cnr_tensor *b) {
    if (!a || !b) return a == b;
    return a->dtype == b->dtype && cnr_same_shape(a, b) && a->block == b->block &&
           a->encoding == b->encoding && a->quant == b->quant;
}

/* True if two attributes have the same value. */
static bool same_attr(const cnr_attr *a, const cnr_attr *b) {
    if (a->type != b->type || a->i != b->i || a->n != b->n || a->f != b->f) return false;
    if ((a->s || b->s) && (!a->s || !b->s || strcmp(a->s, b->s) != 0)) return false;
    const size_t n = a->n > 0 ? (size_t)a->n : 0;
    if (n && (!a->ints != !b->ints || !a->floats != !b->floats)) return false;
    if (n && a->ints && memcmp(a->ints, b->ints, n * sizeof *a->ints) != 0) return false;
    return !(n && a->floats) || memcmp(a->floats, b->floats, n * sizeof *a->floats) == 0;
}

/* True if two steps can share prepared weights: same kernel, attributes and weights. */
static bool same_blob(const cnr_plan *plan, const cnri_step *a, const cnri_step *b) {
    const cnr_node *x = &a->view, *y = &b->view;
    if (a->kernel != b->kernel || a->device != b->device || a->prepared != b->prepared)
        return false;
    if (x->op != y->op || a->slices != b->slices || x->n_attrs != y->n_attrs ||
        a->n_in != b->n_in || a->n_out != b->n_out)
        return false;
    if (cnri_n_taken(x) || cnri_n_taken(y) || x->subgraph) return a->node == b->node;
    for (int32_t i = 0; i < x->n_attrs; i++)
        if (!same_attr(x->attrs[i], y->attrs[i])) return false;
    for (int32_t i = 0; i < a->n_in; i++) {
        if (!same_type(x->inputs[i], y->inputs[i])) return false;
        const bool weight =
            a->in[i] >= 0 && cnri_is_weight(plan->graph, plan->homes.at[a->in[i]].value);
        if (weight && plan->homes.at[a->in[i]].value != plan->homes.at[b->in[i]].value)
            return false;
    }
    for (int32_t i = 0; i < a->n_out; i++)
        if (!same_type(x->outputs[i], y->outputs[i])) return false;
    return true;
}

/* ---- making and dropping; the lock is held ---- */

/* Rows of a late weight that threads compute. */
typedef struct late_job {
    const cnr_graph *g;
    cnr_value v;
    int64_t first, rows, tasks;
    float *to;
} late_job;

/* One task: computes its share of the rows. */
static void late_rows(void *arg, int64_t i, int32_t thread) {
    const late_job *j = arg;
    (void)thread;
    for (int64_t row = i * j->rows / j->tasks; row < (i + 1) * j->rows / j->tasks; row++)
        cnri_late_write(j->g, j->v, j->first + row, j->to);
}

/* Verifies a weight just before it is packed, when its data is in the caches anyway, so that no
 * more than one weight of a file is in memory. */
static cnr_status weight_sound(const cnr_plan *plan, const cnr_device *device, cnr_value v,
                               cnr_error *err) {
    const int32_t threads = (int32_t)cnr_max(1, device->concurrency);
    return cnri_value_verify(&plan->graph->values.at[v], false, threads, err);
}

/* Computes a late weight, or its rows of a slice, into the scratch memory, which late weights use
 * one after the other, on all threads. */
static cnr_status make_late(cnr_plan *plan, const blob *b, cnr_value v, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    const cnri_step *s = &plan->steps.at[b->step];
    const cnr_device *device = plan->devices[s->device];
    cnri_value *value = &plan->graph->values.at[v];
    cnr_stream stream = {.size = sizeof stream, .device = device};
    cnr_status status = weight_sound(plan, device, value->late->from, err);
    if (status) return status;
    if (r->late == v) return CNR_OK; /* it is in the scratch memory already */
    if (r->late >= 0) { /* another late weight of the same node holds the scratch memory */
        cnri_late_keep(plan->graph, v);
        return CNR_OK;
    }
    const int64_t rows = cnri_late_rows(plan->graph, v);
    const uint64_t row = value->type->bytes / (uint64_t)cnr_max(1, rows);
    const int64_t first = b->slice * s->slice, n = s->slices ? s->slice : rows;
    if (r->scratch_bytes < (uint64_t)n * row) {
        cnri_free(r->scratch);
        r->scratch_bytes = 0;
        r->scratch = cnri_alloc((size_t)((uint64_t)n * row) + 1);
        if (!r->scratch) return cnri_no_memory(err);
        r->scratch_bytes = (uint64_t)n * row;
    }
    if ((status = device->cls->stream_open(device, &stream, err))) return status;
    /* row 0's place */
    float *whole = (float *)((uintptr_t)r->scratch - (uintptr_t)((uint64_t)first * row));
    late_job job = {plan->graph, v, first, n, 1, whole};
    job.tasks = cnr_min(job.rows, 4 * (int64_t)cnr_max(1, device->concurrency));
    cnr_parallel(&stream, job.tasks, late_rows, &job);
    device->cls->stream_close(&stream);
    if (plan->memory_bound) cnri_value_release_pages(plan->graph, v);
    r->late = v;
    r->late_home = value->type->data;
    value->type->data = whole;
    return CNR_OK;
}

/* Ends the use of a late weight's data. */
static void end_late(cnr_plan *plan) {
    struct cnri_residency *r = plan->residency;
    if (r->late >= 0) plan->graph->values.at[r->late].type->data = r->late_home;
    r->late = -1;
}

/* Frees the memory in which late weights are computed. */
static void drop_scratch(struct cnri_residency *r) {
    cnri_free(r->scratch);
    r->scratch = NULL;
    r->scratch_bytes = 0;
}

/* Decodes weights that only prepare reads, for one call (`begin`), and frees them after it. */
static cnr_status decode_inputs(cnr_plan *plan, const blob *b, bool begin, cnr_error *err) {
    const cnri_step *s = &plan->steps.at[b->step];
    const cnr_device *device = plan->devices[s->device];
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < s->n_in && !status; i++) {
        if (s->in[i] < 0) continue;
        const cnr_value v = plan->homes.at[s->in[i]].value;
        cnr_tensor *type = plan->graph->values.at[v].type;
        if (begin) status = weight_sound(plan, device, v, err);
        if (begin && !status && plan->graph->values.at[v].late) status = make_late(plan, b, v, err);
        for (int32_t t = 0; t < plan->twins.n && !status; t++) {
            const cnri_twin *twin = &plan->twins.at[t];
            if (twin->dense != v || twin->kept) continue;
            if (begin) status = weight_sound(plan, device, twin->encoded, err);
            if (status) break;
            if (!begin) {
                cnri_free(type->data);
                type->data = NULL;
            } else if (!type->data) {
                const cnr_tensor *from = plan->graph->values.at[twin->encoded].type;
                const cnr_encoding *how =
                    cnri_descriptor_find(CNR_KIND_ENCODING, cnri_name(from->encoding));
                if (!(type->data = cnri_alloc((size_t)type->bytes + 1)))
                    status = cnri_no_memory(err);
                else status = how->decode(from, type->data, err);
            }
        }
        if (begin && !status && cnri_is_weight(plan->graph, v) && !type->data)
            status = cnri_fail(err, CNR_E_STATE, plan->graph->values.at[v].name,
                               "has no data yet: want the net's weights filled before it runs");
    }
    if (!begin) end_late(plan);
    return status;
}

/* True if some step reads the weight unprepared. */
static bool is_read(const cnr_plan *plan, cnr_value v) {
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        for (int32_t k = 0; k < s->n_in; k++)
            if (s->in[k] >= 0 && plan->homes.at[s->in[k]].value == v &&
                !(s->blob >= 0 && cnri_step_prepares(s, k)))
                return true;
    }
    return false;
}

/* Releases the pages of weights that were packed into a blob that stays: no one reads them. */
static void release_inputs(const cnr_plan *plan, const cnri_step *s) {
    for (int32_t k = 0; k < s->n_in; k++) {
        const cnr_value v = s->in[k] < 0 ? -1 : plan->homes.at[s->in[k]].value;
        if (v >= 0 && cnri_step_prepares(s, k) && !is_read(plan, v))
            cnri_value_release_pages(plan->graph, v);
    }
}

/* Prepares the weights of a blob into its memory `mem`, which the device allocated. */
static cnr_status prepare_into(cnr_plan *plan, const blob *b, const cnr_mem *mem, cnr_error *err) {
    const cnri_step *s = &plan->steps.at[b->step];
    const cnr_node *view = &s->view;
    cnri_slice part;
    const cnr_device *device = plan->devices[s->device];
    const bool host = cnri_in_host(device, mem->memory_class);
    void *data = host ? (char *)mem->handle + mem->offset : cnri_alloc((size_t)mem->bytes + 1);
    if (!data) return cnri_no_memory(err);
    const int64_t before = cnri_alloc_failures();
    cnr_status status = decode_inputs(plan, b, true, err);
    if (s->slices && cnri_slice_make(plan, s, view, b->slice, &part)) view = &part.node;
    if (!status) {
        CNRI_DURING(status, s->kernel->prepare(device, view, data, err),
                    .verb = "preparing weights of kernel", .descriptor = s->kernel,
                    .name = s->kernel->name, .node = s->view.name, .device = device->name);
        status = cnri_plugin_status(err, status, s->view.name, s->kernel->name);
    }
    status = cnri_alloc_verdict(before, status, s->view.name, err);
    decode_inputs(plan, b, false, NULL);
    if (!host) {
        if (!status) status = cnri_device_upload(device, mem, data, mem->bytes, err);
        cnri_free(data);
    }
    return status;
}

/* Uses a kept blob in place if the device can read it there. False: it failed. */
static bool map_kept(const cnr_device *device, blob *b) {
    const cnr_memory_class *m = &device->memory[b->mem.memory_class];
    if (!(m->flags & CNR_MEMORY_HOST) || (m->flags & CNR_MEMORY_IMAGE)) return false;
    if (m->alignment && (uintptr_t)b->kept->data % m->alignment) return false;
    b->mem.handle = (void *)b->kept->data; /* kernels only read blobs */
    b->mapped = true;
    return true;
}

/* Gives the pages of a mapped blob back to the system; a later read maps them again. */
static void unmap_kept(blob *b) {
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
static uint64_t held_by(const cnr_plan *plan, const blob *b) {
    const struct cnri_residency *r = plan->residency;
    const cnri_step *s = &plan->steps.at[b->step];
    const bool slot = r->slot && !b->stays && !b->kept && b->bytes <= r->slot &&
                      cnri_in_host(plan->devices[s->device], s->blob_space.memory_class);
    return slot ? r->slot : b->bytes;
}

/* Frees a blob's memory, or keeps it as the spare block for the next, and counts it off; nothing if
 * it isn't resident. */
static void drop(cnr_plan *plan, blob *b) {
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
static cnr_status bring(cnr_plan *plan, blob *b, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    const cnri_step *s = &plan->steps.at[b->step];
    const cnr_device *device = plan->devices[s->device];
    b->mem = (cnr_mem){.bytes = held_by(plan, b),
                       .width = s->blob_space.width,
                       .height = s->blob_space.height,
                       .memory_class = s->blob_space.memory_class};
    if (b->kept && !cnri_same_fingerprint(b->kept->data, b->kept->bytes, b->kept->print)) {
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
                         : prepare_into(plan, b, &b->mem, err);
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
    if (!b->kept && (b->stays || plan->memory_bound)) release_inputs(plan, s);
    if (r->stats.now > r->stats.peak) r->stats.peak = r->stats.now;
    atomic_store(&b->resident, true);
    return CNR_OK;
}

/* Drops blobs until `bytes` fit, the last used first: steps run in a cycle. */
static cnr_status make_room(cnr_plan *plan, uint64_t bytes, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    while (plan->memory_bound && r->stats.now + bytes > r->room) {
        blob *victim = NULL;
        bool held = false;
        for (int32_t i = 0; i < r->blobs.n; i++) {
            blob *b = &r->blobs.at[i];
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

/* ---- which stay ---- */

/* What takes room under a bound: a blob, or a weight that is read as it is. */
typedef struct item {
    uint64_t bytes, passing,
        making; /* passing: if it does not stay; making: besides, for a while */
    bool *stays, seen;
    int32_t step;
} item;

/* Bytes that are needed beside a blob while it is prepared: pages of the file, and what is computed
 * of them. 0: a stored copy is used. */
static uint64_t making_of(const cnr_plan *plan, const blob *b) {
    const cnri_step *s = &plan->steps.at[b->step];
    uint64_t bytes = 0;
    if (b->kept) return 0;
    for (int32_t k = 0; k < s->n_in; k++) {
        const cnr_value v = s->in[k] < 0 ? -1 : plan->homes.at[s->in[k]].value;
        if (v < 0 || !cnri_step_prepares(s, k) || !cnri_is_weight(plan->graph, v)) continue;
        const cnri_late *late = plan->graph->values.at[v].late;
        const cnr_value from = late ? late->from : v;
        const uint64_t parts = s->slices ? (uint64_t)s->slices : 1;
        const uint64_t own = plan->graph->values.at[v].type->bytes / parts;
        const uint64_t read = plan->graph->values.at[from].type->bytes / parts;
        if (late) bytes += own;
        if (late || cnri_value_in_file(plan->graph, from)) bytes += read;
    }
    return bytes;
}

/* Lists prepared and unprepared weights with their bytes and the time to make them; NULL: out of
 * memory. */
static item *list_items(cnr_plan *plan) {
    struct cnri_residency *r = plan->residency;
    item *list = cnri_alloc_zero(((size_t)r->blobs.n + (size_t)plan->raw.n + 1) * sizeof *list);
    for (int32_t i = 0; list && i < r->blobs.n; i++) {
        blob *b = &r->blobs.at[i];
        list[i] = (item){b->bytes, b->bytes, making_of(plan, b), &b->stays, false, b->step};
    }
    for (int32_t i = 0; list && i < plan->raw.n; i++) {
        cnri_raw *raw = &plan->raw.at[i];
        list[r->blobs.n + i] = (item){raw->bytes, raw->passing, 0, &raw->stays, false, raw->step};
    }
    return list;
}

/* The item that needs the most bytes while it is made and used, beside those that stay, if `but`
 * stays, too; *bytes: how many. NULL: n is 0. */
static const item *most_passing(const item *list, int32_t n, const item *but, uint64_t *bytes) {
    const item *most = NULL;
    *bytes = 0;
    for (int32_t i = 0; i < n; i++) {
        const bool stays = &list[i] == but || *list[i].stays;
        const uint64_t own = list[i].making + (stays ? 0 : list[i].passing);
        if (most && own <= *bytes) continue;
        most = &list[i];
        *bytes = own;
    }
    return most;
}

/* Each stays if the most of what comes and goes still fits beside: blobs first, since packing takes
 * longer than reading; of these and of the others from the largest down. */
static void take_costly(item *list, int32_t n, int32_t n_blobs, uint64_t room) {
    uint64_t sum = 0, rest;
    for (int32_t turn = 0; turn < n; turn++) {
        const int32_t first = turn < n_blobs ? 0 : n_blobs, end = turn < n_blobs ? n_blobs : n;
        item *b = NULL;
        for (int32_t i = first; i < end; i++)
            if (!list[i].seen && (!b || list[i].bytes > b->bytes)) b = &list[i];
        b->seen = true;
        (void)most_passing(list, n, b, &rest);
        if (sum + b->bytes + rest > room) continue;
        *b->stays = true;
        sum += b->bytes;
    }
}

/* Bytes that stay in memory whatever the bound: values between steps, and weights that others were
 * folded into, so that they lie in no file, and that a step reads as they are. */
static uint64_t always(const cnr_plan *plan) {
    uint64_t bytes = plan->arena_bytes;
    for (cnr_value v = 0; v < plan->graph->values.n; v++)
        if (plan->graph->values.at[v].was_late && is_read(plan, v))
            bytes += plan->graph->values.at[v].type->bytes;
    return bytes;
}

/* plan->residency->room becomes what blobs may take beside weights that are read as they are. */
static cnr_status fit(cnr_plan *plan, item *list, int32_t n, cnr_error *err) {
    const uint64_t held = always(plan);
    uint64_t needed, room = plan->memory_bound;
    const item *most = most_passing(list, n, NULL, &needed);
    if (plan->memory_bound < held + needed)
        return cnri_fail(err, CNR_E_LIMIT, most ? plan->steps.at[most->step].view.name : "plan",
                         "a memory bound of %llu bytes is too small: values between steps take "
                         "%llu bytes, folded weights %llu, and the weights of this node %llu, so "
                         "want at least %llu",
                         (unsigned long long)plan->memory_bound,
                         (unsigned long long)plan->arena_bytes,
                         (unsigned long long)(held - plan->arena_bytes), (unsigned long long)needed,
                         (unsigned long long)(held + needed));
    room -= held;
    /* Where weights come and go, the system maps more of a file than is read. */
    const int32_t n_blobs = plan->residency->blobs.n;
    uint64_t all = 0, around = 0;
    for (int32_t i = 0; i < n; i++) {
        all += list[i].bytes;
        if (i >= n_blobs || list[i].making)
            around = cnr_min(plan->memory_bound / 8, (uint64_t)2 << 20);
    }
    if (all > room && around) room = room - needed > around ? room - around : needed;
    uint64_t raw = 0, most_raw = 0, blobs = 0, most_blob = 0, making = 0, passing = 0;
    take_costly(list, n, n_blobs, room);
    for (int32_t i = 0; i < n; i++) {
        uint64_t *sum = i < n_blobs ? &blobs : &raw,
                 *largest = i < n_blobs ? &most_blob : &most_raw;
        const uint64_t own = list[i].making + (*list[i].stays ? 0 : list[i].passing);
        if (*list[i].stays) *sum += list[i].bytes;
        if (own > *largest) *largest = own;
        if (i < n_blobs && list[i].making > making) making = list[i].making;
        if (i < n_blobs && !*list[i].stays && list[i].passing > passing) passing = list[i].passing;
    }
    /* beside pieces of weights that come and go, but for the blob that needs all */
    const uint64_t beside = room - raw > most_raw ? room - raw - most_raw : 0;
    plan->residency->room = beside > blobs + most_blob ? beside : blobs + most_blob;
    plan->residency->slot = blobs + making + passing <= plan->residency->room ? passing : 0;
    return CNR_OK;
}

/* Chooses which weights stay in memory under the bound; without one all do. */
static cnr_status choose_stays(cnr_plan *plan, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    for (int32_t i = 0; i < r->blobs.n; i++) r->blobs.at[i].stays = !plan->memory_bound;
    if (!plan->memory_bound) return CNR_OK;
    item *list = list_items(plan);
    if (!list) return cnri_no_memory(err);
    for (int32_t i = 0; i < plan->raw.n; i++) plan->raw.at[i].stays = false;
    const cnr_status status = fit(plan, list, r->blobs.n + plan->raw.n, err);
    cnri_free(list);
    return status;
}

int32_t cnri_residency_list(const cnr_plan *plan, cnri_resident **out) {
    item *list = plan->memory_bound ? list_items((cnr_plan *)(uintptr_t)plan) : NULL;
    const int32_t blobs = list ? plan->residency->blobs.n : 0, n = list ? blobs + plan->raw.n : 0;
    *out = list ? cnri_alloc_zero(((size_t)n + 1) * sizeof **out) : NULL;
    for (int32_t i = 0; *out && i < n; i++) {
        const item *x = &list[i];
        const char *how = *x->stays               ? "stay"
                          : x->passing < x->bytes ? "come in pieces"
                          : i < blobs             ? "come and go"
                                                  : "are read and released";
        (*out)[i] = (cnri_resident){plan->steps.at[x->step].view.name, how, x->bytes, x->passing};
    }
    cnri_free(list);
    return *out ? n : 0;
}

/* Sets s->blob_space to what the kernel's prepared weights take; fails for impossible sizes. */
static cnr_status size_blob(cnr_plan *plan, cnri_step *s, cnr_error *err) {
    const cnr_device *device = plan->devices[s->device];
    const cnr_node *view = &s->view;
    cnri_slice part;
    if (s->slices && cnri_slice_make(plan, s, view, 0, &part)) view = &part.node;
    s->blob_space = (cnr_space){.size = sizeof(cnr_space)};
    cnr_status status =
        cnri_plugin_status(err, s->kernel->prepare_size(device, view, &s->blob_space, err),
                           s->view.name, s->kernel->name);
    if (!status && (s->blob_space.bytes > INT64_MAX / 4 || s->blob_space.memory_class < 0 ||
                    s->blob_space.memory_class >= device->n_memory))
        status = cnri_fail(err, CNR_E_LIMIT, s->view.name,
                           "kernel \"%s\" wants a blob that cannot be had", s->kernel->name);
    return status;
}

bool cnri_residency_blob(const cnr_plan *plan, int32_t index, const char **name, uint64_t *bytes) {
    const struct cnri_residency *r = plan->residency;
    if (index < 0 || index >= r->blobs.n) return false;
    const char *node = plan->steps.at[r->blobs.at[index].step].view.name;
    *name = node ? node : "";
    *bytes = r->blobs.at[index].bytes;
    return true;
}

bool cnri_residency_kept(const cnr_plan *plan, int32_t index) {
    return plan->residency->blobs.at[index].kept != NULL;
}

/* Fingerprint of a constant, or of known sources it was rewritten from. False: it failed. */
static bool print_of(const cnr_graph *g, cnr_value value, uint8_t out[16]) {
    const cnri_value *v = &g->values.at[value];
    const cnr_tensor *t = v->type;
    uint8_t parts[4][16] = {{0}};
    if (v->late) {
        if (!print_of(g, v->late->from, parts[0])) return false;
        cnri_fingerprint(v->late->scales,
                         (uint64_t)(v->late->n * v->late->channels) * sizeof *v->late->scales,
                         parts[1]);
    } else if (v->seal) cnri_fingerprint(v->seal->digest, 32, parts[0]);
    else if (t->data) {
        cnri_fingerprint(t->data, t->encoding ? t->bytes : cnr_dense_bytes(t), parts[0]);
        if (g->releases) cnri_value_release_pages(g, value);
    } else return false;
    if (t->quant)
        cnri_fingerprint(t->quant->scale, (uint64_t)t->quant->count * sizeof *t->quant->scale,
                         parts[2]);
    if (t->quant && t->quant->zero_point)
        cnri_fingerprint(t->quant->zero_point,
                         (uint64_t)t->quant->count * sizeof *t->quant->zero_point, parts[3]);
    cnri_fingerprint(parts, sizeof parts, out);
    return true;
}

bool cnri_residency_sources(const cnr_plan *plan, int32_t index, uint8_t print[16]) {
    const struct cnri_residency *r = plan->residency;
    uint8_t prints[2][16] = {{0}}; /* of all constants so far, and of the next one */
    if (index < 0 || index >= r->blobs.n) return false;
    const cnri_step *s = &plan->steps.at[r->blobs.at[index].step];
    bool known = true;
    /* Prepare sees the weights that run reads too. */
    for (int32_t k = 0; k < s->n_in && known; k++) {
        const cnr_value v = s->in[k] < 0 ? -1 : plan->homes.at[s->in[k]].value;
        if (v < 0 || !cnri_is_weight(plan->graph, v)) continue;
        known = print_of(plan->graph, v, prints[1]);
        cnri_fingerprint(prints, sizeof prints, prints[0]);
    }
    memset(print, 0, 16);
    if (known) memcpy(print, prints[0], 16);
    return true;
}

/* True if the kept blob was made of the constants that this plan has. */
static bool same_sources(const cnr_plan *plan, int32_t index, const cnri_kept_blob *kept) {
    static const uint8_t unknown[16];
    uint8_t now[16];
    return cnri_residency_sources(plan, index, now) && memcmp(now, unknown, sizeof now) != 0 &&
           memcmp(now, kept->from, sizeof now) == 0;
}

/* Takes over the memo's blobs if they are exactly those of this plan; else none. */
static cnr_status take_kept(cnr_plan *plan, const cnri_memo *memo, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    if (!memo) return CNR_OK;
    if (memo->blobs.n != r->blobs.n)
        return cnri_fail(err, CNR_E_VERSION, "blobs", "%d are stored, %d are wanted",
                         (int)memo->blobs.n, (int)r->blobs.n);
    r->kept = cnri_alloc((size_t)(r->blobs.n + 1) * sizeof *r->kept);
    if (!r->kept) return cnri_no_memory(err);
    for (int32_t i = 0; i < r->blobs.n; i++) {
        const char *name = "";
        uint64_t bytes = 0;
        cnri_residency_blob(plan, i, &name, &bytes);
        r->kept[i] = memo->blobs.at[i];
        if (memo->replaces && !same_sources(plan, i, &r->kept[i])) continue;
        if (r->kept[i].bytes != bytes || strcmp(r->kept[i].name, name) != 0)
            return cnri_fail(err, CNR_E_VERSION, name,
                             "its blob takes %llu bytes, stored are %llu "
                             "of \"%s\"",
                             (unsigned long long)bytes, (unsigned long long)r->kept[i].bytes,
                             r->kept[i].name);
        r->blobs.at[i].kept = &r->kept[i];
    }
    return CNR_OK;
}

cnr_status cnri_residency_make(cnr_plan *plan, const cnri_memo *memo, cnr_error *err) {
    struct cnri_residency *r = cnri_alloc_zero(sizeof *r);
    if (!r) return cnri_no_memory(err);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->freed, NULL);
    plan->residency = r;
    r->late = -1;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL || !s->kernel) continue;
        if (!CNRI_HAS(s->kernel, prepare_size) || !CNRI_HAS(s->kernel, prepare)) continue;
        const cnr_status status = size_blob(plan, s, err);
        if (status) return status;
        if (s->blob_space.bytes == 0) continue;
        for (int32_t k = 0; k < r->blobs.n && s->blob < 0; k++)
            if (same_blob(plan, s, &plan->steps.at[r->blobs.at[k].step])) s->blob = k;
        if (s->blob >= 0) continue;
        s->blob = r->blobs.n;
        for (int32_t k = 0; k < cnr_max(1, s->slices); k++) {
            blob *b = cnri_push(&r->blobs);
            if (!b) return cnri_no_memory(err);
            b->step = i;
            b->slice = k;
            b->bytes = s->blob_space.bytes;
            plan->weight_bytes += b->bytes;
        }
    }
    for (cnr_value v = 0; v < plan->graph->values.n; v++)
        if (plan->graph->values.at[v].late && is_read(plan, v)) cnri_late_keep(plan->graph, v);
    cnr_status status = take_kept(plan, memo, err);
    if (!status && plan->memory_bound) status = cnri_raw_find(plan, err);
    return status ? status : choose_stays(plan, err);
}

cnr_status cnri_residency_read(cnr_plan *plan, int32_t index, void **buffer, const void **data,
                               cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    blob *b = &r->blobs.at[index];
    const cnr_device *device = plan->devices[plan->steps.at[b->step].device];
    pthread_mutex_lock(&r->lock);
    cnr_status status = CNR_OK;
    if (!atomic_load(&b->resident)) {
        status = make_room(plan, held_by(plan, b) + making_of(plan, b), err);
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
    drop_scratch(r);
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
    blob *b = &r->blobs.at[index + slice];
    *out = &b->mem;
    if (b->stays && atomic_load_explicit(&b->resident, memory_order_acquire)) return CNR_OK;
    cnr_status status = CNR_OK;
    pthread_mutex_lock(&r->lock);
    while (!status && !atomic_load(&b->resident)) {
        /* may wait: another may bring it meanwhile */
        status = make_room(plan, held_by(plan, b) + making_of(plan, b), err);
        if (!status && !atomic_load(&b->resident)) status = bring(plan, b, err);
        if (plan->memory_bound && !r->slot) drop_scratch(r);
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
        blob *b = &r->blobs.at[i];
        if (!b->stays || atomic_load(&b->resident)) continue;
        status = make_room(plan, held_by(plan, b) + making_of(plan, b), err);
        if (!status && !atomic_load(&b->resident)) status = bring(plan, b, err);
    }
    drop_scratch(r);
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
        blob *b = &r->blobs.at[i];
        cnri_step *s = &plan->steps.at[b->step];
        if (!made_of(plan, s, value)) continue;
        /* The file has the old weights: prepare the blob again when needed. */
        if (b->mapped) drop(plan, b);
        b->kept = NULL;
        status = size_blob(plan, s, err);
        /* The size of a blob may depend on the data. */
        if (status || s->blob_space.bytes != b->bytes) {
            drop(plan, b);
            plan->weight_bytes += s->blob_space.bytes - b->bytes;
            b->bytes = s->blob_space.bytes;
            resized = true;
        }
        if (!status && atomic_load(&b->resident)) {
            status = prepare_into(plan, b, &b->mem, err);
            if (status) drop(plan, b);
            else r->stats.prepared++;
        }
    }
    if (resized && !status) {
        status = choose_stays(plan, err);
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
