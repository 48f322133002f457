/* Lifetimes of homes and workspaces, and where each lies in a session's memory. */
#include "plan/planner.h"

/* Something that needs memory: a home or the workspace of a step. */
typedef struct lay_item {
    int32_t home, step; /* a root home, or the step that a workspace belongs to */
    int32_t device, memory_class;
    uint64_t bytes;
    uint32_t alignment;
    int64_t width, height;
    int32_t first, last;
    bool done;
} lay_item;

/* Extends the lifetime of a home to a step. */
static void use(cnri_home *h, int32_t step) {
    if (step < h->first) h->first = step;
    if (step > h->last) h->last = step;
}

/* Finds the first and last step that uses each home; if none does: first n + 1, last -2. */
static void lifetimes(cnr_plan *plan) {
    const int32_t n = plan->steps.n;
    for (int32_t h = 0; h < plan->homes.n; h++) {
        plan->homes.at[h].first = n + 1;
        plan->homes.at[h].last = -2;
    }
    for (int32_t s = 0; s < n; s++) {
        const cnri_step *step = &plan->steps.at[s];
        for (int32_t i = 0; i < step->n_in; i++)
            if (step->in[i] >= 0) use(&plan->homes.at[step->in[i]], s);
        for (int32_t i = 0; i < step->n_out; i++) use(&plan->homes.at[step->out[i]], s);
        if (step->from >= 0) use(&plan->homes.at[step->from], s);
        if (step->to >= 0) use(&plan->homes.at[step->to], s);
    }
    for (int32_t i = 0; i < plan->graph->inputs.n; i++)
        if (plan->input_homes[i] >= 0) use(&plan->homes.at[plan->input_homes[i]], -1);
    for (int32_t i = 0; i < plan->graph->outputs.n; i++)
        if (plan->output_homes[i] >= 0) use(&plan->homes.at[plan->output_homes[i]], n);
    /* A root home is alive as long as any home that shares its bytes. */
    for (int32_t h = 0; h < plan->homes.n; h++) {
        const cnri_home *home = &plan->homes.at[h];
        if (home->last < -1) continue;
        for (int32_t r = home->alias_of; r >= 0; r = plan->homes.at[r].alias_of) {
            use(&plan->homes.at[r], home->first);
            use(&plan->homes.at[r], home->last);
        }
    }
}

/* True if two items can share an arena. */
static bool same_memory(const lay_item *a, const lay_item *b) {
    return a->device == b->device && a->memory_class == b->memory_class;
}

/* Notes where an item lies: in which storage, at which offset. */
static void assign(cnr_plan *plan, const lay_item *item, int32_t storage, uint64_t offset) {
    if (item->home >= 0) {
        plan->homes.at[item->home].storage = storage;
        plan->homes.at[item->home].offset = offset;
    } else {
        plan->steps.at[item->step].workspace = storage;
        plan->steps.at[item->step].workspace_offset = offset;
    }
}

/* Adds a storage of the item's memory class; returns its index, or -1 when out of memory. */
static int32_t add_storage(cnr_plan *plan, const lay_item *like, uint64_t bytes) {
    cnri_storage *s = cnri_push(&plan->storages);
    if (!s) return -1;
    s->device = like->device;
    s->memory_class = like->memory_class;
    s->bytes = bytes;
    s->width = like->width;
    s->height = like->height;
    plan->arena_bytes += bytes;
    return plan->storages.n - 1;
}

/* Lays items in memory that can't be divided: each gets a storage, which is reused after its
 * last use. Large items go first, so that small ones fit in their storages. */
static cnr_status lay_whole(cnr_plan *plan, lay_item *items, int32_t n, const lay_item *like,
                            cnr_error *err) {
    for (;;) {
        int32_t k = -1;
        for (int32_t i = 0; i < n; i++)
            if (!items[i].done && same_memory(&items[i], like) &&
                (k < 0 || items[i].bytes > items[k].bytes))
                k = i;
        if (k < 0) return CNR_OK;
        lay_item *item = &items[k];
        int32_t best = -1;
        for (int32_t s = 0; s < plan->storages.n; s++) {
            const cnri_storage *at = &plan->storages.at[s];
            if (at->constant || at->device != item->device ||
                at->memory_class != item->memory_class)
                continue;
            if (at->bytes < item->bytes || at->width < item->width || at->height < item->height)
                continue;
            bool taken = false;
            for (int32_t i = 0; i < n && !taken; i++) {
                if (!items[i].done || !same_memory(&items[i], like)) continue;
                const int32_t in = items[i].home >= 0 ? plan->homes.at[items[i].home].storage
                                                      : plan->steps.at[items[i].step].workspace;
                taken = in == s && items[i].first <= item->last && item->first <= items[i].last;
            }
            if (!taken && (best < 0 || at->bytes < plan->storages.at[best].bytes)) best = s;
        }
        if (best < 0) best = add_storage(plan, item, item->bytes);
        if (best < 0) return cnri_no_memory(err);
        assign(plan, item, best, 0);
        item->done = true;
    }
}

/* Gives each item in the same memory as `like` its place in a new storage, or storages of their own
 * where one can't be shared; CNR_E_LIMIT: an item is larger than one allocation may be. */
static cnr_status lay_class(cnr_plan *plan, lay_item *items, int32_t n, const lay_item like,
                            cnri_block *blocks, cnr_error *err) {
    const cnr_memory_class *m = &plan->devices[like.device]->memory[like.memory_class];
    uint32_t alignment = m->alignment > 0 ? m->alignment : 1;
    int32_t count = 0;
    uint64_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!same_memory(&items[i], &like)) continue;
        if (m->max_bytes && items[i].bytes > m->max_bytes)
            return cnri_fail(err, CNR_E_LIMIT, plan->devices[like.device]->name,
                             "a block of %llu bytes is wanted; one allocation holds at most %llu",
                             (unsigned long long)items[i].bytes, (unsigned long long)m->max_bytes);
        if (items[i].alignment > alignment) alignment = items[i].alignment;
        if (__builtin_add_overflow(sum, items[i].bytes + alignment, &sum) || sum > INT64_MAX / 2)
            return cnri_fail(err, CNR_E_LIMIT, "plan", "values are too large to be held in memory");
        blocks[count++] = (cnri_block){items[i].bytes, items[i].first, items[i].last, 0};
    }
    const bool parts = (m->flags & CNR_MEMORY_PARTS) && !(m->flags & CNR_MEMORY_IMAGE);
    plan->bound_bytes += cnri_arena_bound(blocks, count, parts ? alignment : 1);
    const uint64_t total = parts ? cnri_arena_place(blocks, count, alignment) : 0;
    if (!parts || (m->max_bytes && total > m->max_bytes))
        return lay_whole(plan, items, n, &like, err);
    lay_item shape = like;
    shape.width = shape.height = 0;
    const int32_t storage = add_storage(plan, &shape, total);
    if (storage < 0) return cnri_no_memory(err);
    count = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!same_memory(&items[i], &like)) continue;
        assign(plan, &items[i], storage, blocks[count++].offset);
        items[i].done = true;
    }
    return CNR_OK;
}

/* Lists all homes and workspaces that need memory; returns how many. */
static int32_t gather_items(const cnr_plan *plan, lay_item *items) {
    int32_t n = 0;
    for (int32_t i = 0; i < plan->homes.n; i++) {
        const cnri_home *h = &plan->homes.at[i];
        if (h->alias_of >= 0 || cnri_is_weight(plan->graph, h->value) || h->last < -1) continue;
        lay_item *item = &items[n++];
        *item = (lay_item){.home = i,
                           .step = -1,
                           .device = h->device,
                           .bytes = h->bytes,
                           .memory_class = h->memory_class,
                           .first = h->first,
                           .last = h->last};
        if (plan->devices[h->device]->memory[h->memory_class].flags & CNR_MEMORY_IMAGE)
            cnri_image_size(&h->type, &item->width, &item->height);
    }
    for (int32_t s = 0; s < plan->steps.n; s++) {
        const cnri_step *step = &plan->steps.at[s];
        const cnr_space *w = &step->workspace_space;
        if (step->kind != CNRI_STEP_KERNEL || w->bytes == 0) continue;
        items[n++] = (lay_item){.home = -1,
                                .step = s,
                                .device = step->device,
                                .bytes = w->bytes,
                                .memory_class = w->memory_class,
                                .alignment = w->alignment,
                                .width = w->width,
                                .height = w->height,
                                .first = s,
                                .last = s};
    }
    return n;
}

cnr_status cnri_plan_lay(cnri_planner *p, cnr_error *err) {
    cnr_plan *plan = p->plan;
    const size_t maximum = (size_t)plan->homes.n + (size_t)plan->steps.n + 1;
    lay_item *items = cnri_alloc(maximum * sizeof *items);
    cnri_block *blocks = cnri_alloc(maximum * sizeof *blocks);
    cnr_status status = CNR_OK;
    if (!items || !blocks) status = cnri_no_memory(err);
    if (!status) {
        lifetimes(plan);
        const int32_t n = gather_items(plan, items);
        for (int32_t i = 0; i < n && !p->share; i++) { /* all are alive all the time */
            items[i].first = -1;
            items[i].last = plan->steps.n;
        }
        for (int32_t i = 0; i < n && !status; i++)
            if (!items[i].done) status = lay_class(plan, items, n, items[i], blocks, err);
        for (int32_t h = 0; h < plan->homes.n; h++) { /* homes that share the bytes of a root */
            cnri_home *home = &plan->homes.at[h];
            if (home->alias_of < 0) continue;
            int32_t root = h;
            uint64_t offset = 0;
            for (; plan->homes.at[root].alias_of >= 0; root = plan->homes.at[root].alias_of)
                offset += plan->homes.at[root].alias_offset;
            home->storage = plan->homes.at[root].storage;
            home->offset = plan->homes.at[root].offset + offset;
        }
    }
    cnri_free(items);
    cnri_free(blocks);
    return status;
}
