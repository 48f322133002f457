/* Homes of values: which elements each holds, and the copies and conversions between them. */
#include "plan/planner.h"

/* *width and *height in pixels of a tensor in an image class. */
void cnri_image_size(const cnr_tensor *type, int64_t *width, int64_t *height) {
    const int64_t block = type->block > 1 ? type->block : 1, count = cnr_count(type);
    *width = type->rank > 0 ? type->dim[type->rank - 1] : 1;
    if (type->block > 1 && type->rank == 2) *width = type->dim[1] / block;
    *height = *width > 0 && count > 0 ? count / block / *width : 0;
}

/* Adds a home for a value: a place in a device's memory class with a layout; hidden: nothing else
 * reads it. *home: its index. */
cnr_status cnri_plan_home(cnri_planner *p, cnr_value value, int32_t device, int32_t memory_class,
                          int32_t block, bool hidden, int32_t *home, cnr_error *err) {
    const cnri_value *v = &p->graph->values.at[value];
    if (v->type->encoding == 0 && cnr_dense_bytes(v->type) > INT64_MAX / 4)
        return cnri_fail(err, CNR_E_LIMIT, v->name, "is too large to be held in memory");
    cnri_home *h = cnri_push(&p->plan->homes);
    cnri_reach *r = h ? cnri_push(&p->reach) : NULL;
    if (!r) {
        if (h) p->plan->homes.n--;
        return cnri_no_memory(err);
    }
    *home = p->plan->homes.n - 1;
    h->value = value;
    h->device = device;
    h->memory_class = memory_class;
    h->block_of = block > 1 ? block : 0;
    h->storage = h->alias_of = -1;
    h->type = *v->type;
    h->type.block = h->block_of;
    h->type.mem = (cnr_mem){0};
    if (!cnri_is_weight(p->graph, value)) h->type.data = NULL;
    h->bytes = h->type.encoding ? h->type.bytes : cnr_dense_bytes(&h->type);
    h->type.bytes = h->bytes;
    h->flat = h->type;
    h->flat.block = 0;
    r->axis = -2;
    r->hidden = hidden;
    r->next = p->first_home[value];
    p->first_home[value] = *home;
    return CNR_OK;
}

/* ---- what is there ---- */

/* True if a home holds that range of its value already. */
static bool covers(const cnri_planner *p, int32_t home, cnr_input_range region) {
    const cnri_reach *r = &p->reach.at[home];
    if (r->axis == -1) return true;
    if (r->axis < 0 || region.axis != r->axis) return false;
    for (int32_t i = 0; i < r->n_spans; i++)
        if (r->spans[i].begin <= region.begin && region.end <= r->spans[i].end) return true;
    return region.begin >= region.end;
}

/* Records that a home now holds `region`, merging spans that touch. A home that holds the whole
 * axis counts as whole. */
cnr_status cnri_reach_add(cnri_planner *p, int32_t home, cnr_input_range region, cnr_error *err) {
    cnri_reach *r = &p->reach.at[home];
    const cnr_tensor *type = &p->plan->homes.at[home].type;
    if (r->axis == -1) return CNR_OK;
    if (region.axis < 0) {
        r->axis = -1;
        return CNR_OK;
    }
    if (region.begin >= region.end && r->axis >= 0) return CNR_OK;
    if (r->n_spans == r->capacity) {
        void *grown = cnri_resize(r->spans, (size_t)(r->capacity + 8) * sizeof *r->spans);
        if (!grown) return cnri_no_memory(err);
        r->spans = grown;
        r->capacity += 8;
    }
    r->axis = region.axis;
    int64_t begin = region.begin, end = region.end;
    int32_t kept = 0;
    for (int32_t i = 0; i < r->n_spans; i++) {
        if (r->spans[i].end < begin || r->spans[i].begin > end) {
            r->spans[kept++] = r->spans[i];
            continue;
        }
        if (r->spans[i].begin < begin) begin = r->spans[i].begin;
        if (r->spans[i].end > end) end = r->spans[i].end;
    }
    r->spans[kept].begin = begin;
    r->spans[kept].end = end;
    r->n_spans = kept + 1;
    if (begin <= 0 && end >= type->dim[region.axis]) r->axis = -1;
    return CNR_OK;
}

/* Length of the run of elements from `at` that the home holds, at most up to `end`; 0 if it
 * lacks `at`, and then *missing is where its next span begins. */
static int64_t run_from(const cnri_reach *r, int32_t axis, int64_t at, int64_t end,
                        int64_t *missing) {
    *missing = end;
    if (r->axis == -1) return end - at;
    if (r->axis != axis) return 0;
    for (int32_t i = 0; i < r->n_spans; i++) {
        if (r->spans[i].begin <= at && at < r->spans[i].end)
            return (r->spans[i].end < end ? r->spans[i].end : end) - at;
        if (r->spans[i].begin > at && r->spans[i].begin < *missing) *missing = r->spans[i].begin;
    }
    return 0;
}

/* ---- moving ---- */

/* Emits a copy or conversion of a range from one home to another. */
static cnr_status transfer(cnri_planner *p, cnri_step_kind kind, int32_t from, int32_t to,
                           cnr_input_range region, cnr_error *err) {
    const cnri_home *a = &p->plan->homes.at[from], *b = &p->plan->homes.at[to];
    cnri_step *s = cnri_push(&p->plan->steps);
    if (!s) return cnri_no_memory(err);
    const bool a_async = cnri_is_async(p->plan->devices[a->device]);
    const bool a_host = cnri_in_host(p->plan->devices[a->device], a->memory_class);
    s->kind = kind;
    /* the transfer is queued on a stream of the side that is not plain host memory */
    s->device = a_async && !a_host ? a->device : b->device;
    s->node = s->range_axis = s->blob = s->workspace = -1;
    s->from = from;
    s->to = to;
    s->region = region;
    return cnri_reach_add(p, to, region, err);
}

cnr_status cnri_plan_copy(cnri_planner *p, int32_t from, int32_t to, cnr_input_range region,
                          cnr_error *err) {
    return transfer(p, CNRI_STEP_COPY, from, to, region, err);
}

static const cnr_input_range whole = {-1, 0, 0};

/* True if `to` can be copied from home h: another home with the same channel block, and no
 * scratch result. */
static bool is_source(const cnri_planner *p, int32_t h, int32_t to) {
    return h != to && !p->reach.at[h].hidden &&
           p->plan->homes.at[h].block_of == p->plan->homes.at[to].block_of;
}

/* True if a copy between the homes is possible directly: one of them is in host memory. */
static bool is_near(const cnri_planner *p, int32_t a, int32_t b) {
    const cnri_home *homes = p->plan->homes.at;
    return cnri_is_host(p->plan->devices[homes[a].device]) ||
           cnri_is_host(p->plan->devices[homes[b].device]);
}

/* The axis along which homes hold parts of the value; the argument `axis` if one holds all of
 * it, or none holds any. */
static int32_t held_along(const cnri_planner *p, int32_t to, int32_t axis) {
    bool complete = false;
    if (p->reach.at[to].axis >= 0) return p->reach.at[to].axis;
    for (int32_t h = p->first_home[p->plan->homes.at[to].value]; h >= 0; h = p->reach.at[h].next) {
        const cnri_reach *r = &p->reach.at[h];
        if (!is_source(p, h, to)) continue;
        if (r->axis == -1) complete = true;
        else if (r->axis >= 0 && !complete) axis = r->axis;
    }
    return axis;
}

/* A home that holds all of the value, to copy `to` from; -1: there is none. */
static int32_t whole_source(const cnri_planner *p, int32_t to) {
    for (int32_t h = p->first_home[p->plan->homes.at[to].value]; h >= 0; h = p->reach.at[h].next)
        if (is_source(p, h, to) && p->reach.at[h].axis == -1 && is_near(p, h, to)) return h;
    return -1;
}

/* *source: the home that holds the longest run of `part` from its beginning, to which `part` is
 * cut. If neither side is in host memory, the run is copied to the host first. */
static cnr_status part_source(cnri_planner *p, int32_t to, cnr_input_range *part, int32_t *source,
                              cnr_error *err) {
    const cnri_home home = p->plan->homes.at[to];
    int32_t away = -1;
    int64_t maximum = 0, ignored;
    *source = -1;
    for (int32_t h = p->first_home[home.value]; h >= 0; h = p->reach.at[h].next) {
        if (!is_source(p, h, to)) continue;
        const int64_t n = run_from(&p->reach.at[h], part->axis, part->begin, part->end, &ignored);
        if (n <= 0) continue;
        if (!is_near(p, h, to)) away = h;
        else if (n > maximum) {
            maximum = n;
            *source = h;
        }
    }
    if (*source < 0 && away < 0)
        return cnri_fail(err, CNR_E_STATE, p->graph->values.at[home.value].name,
                         "is needed on \"%s\" before it was computed",
                         p->plan->devices[home.device]->name);
    if (*source < 0)
        maximum = run_from(&p->reach.at[away], part->axis, part->begin, part->end, &ignored);
    part->end = part->begin + maximum;
    if (*source >= 0) return CNR_OK;
    int32_t host;
    const cnr_status status = cnri_plan_host(p, &host, err);
    if (status) return status;
    return cnri_plan_ensure(p, home.value, host, 0, home.block_of, *part, source, err);
}

/* Copies the missing parts of `to` (memory class 0) within `region` from homes on other devices. */
static cnr_status gather(cnri_planner *p, int32_t to, cnr_input_range region, cnr_error *err) {
    const cnr_tensor type = p->plan->homes.at[to].type;
    int32_t axis = held_along(p, to, region.axis), source = -1;
    if (axis < 0 || type.rank == 0) source = whole_source(p, to);
    if (source >= 0) return cnri_plan_copy(p, source, to, whole, err);
    if (axis < 0) axis = 0;
    int64_t at = region.axis == axis ? region.begin : 0;
    const int64_t end = region.axis == axis ? region.end : type.dim[axis];
    if (at < 0) at = 0;
    while (at < end) {
        cnr_input_range part = {axis, at, end};
        const int64_t have = run_from(&p->reach.at[to], axis, at, end, &part.end);
        if (have > 0) {
            at += have;
            continue;
        }
        cnr_status status = part_source(p, to, &part, &source, err);
        if (!status) status = cnri_plan_copy(p, source, to, part, err);
        if (status) return status;
        at = part.end;
    }
    return cnri_reach_add(p, to, (cnr_input_range){axis, at, at}, err);
}

cnr_status cnri_plan_ensure(cnri_planner *p, cnr_value value, int32_t device, int32_t memory_class,
                            int32_t block, cnr_input_range region, int32_t *home, cnr_error *err) {
    int32_t exact = -1, near = -1, far_block = 0;
    bool far = false;
    for (int32_t h = p->first_home[value]; h >= 0; h = p->reach.at[h].next) {
        const cnri_home *at = &p->plan->homes.at[h];
        if (p->reach.at[h].hidden) continue;
        if (at->device == device && at->memory_class == memory_class && at->block_of == block)
            exact = h;
        else if (at->device == device && p->reach.at[h].axis == -1) near = h;
        else if (at->device != device && p->reach.at[h].axis == -1 &&
                 (!far || cnri_is_host(p->plan->devices[at->device]))) {
            far = true;
            far_block = at->block_of;
        }
    }
    if (exact >= 0 && covers(p, exact, region)) {
        *home = exact;
        return CNR_OK;
    }
    cnr_status status = CNR_OK;
    if (near < 0 && (memory_class != 0 || block != far_block)) {
        /* copy it here in its layout, then convert */
        status = cnri_plan_ensure(p, value, device, 0, far_block, whole, &near, err);
        if (status) return status;
    }
    if (exact < 0)
        status = cnri_plan_home(p, value, device, memory_class, block, false, &exact, err);
    if (status) return status;
    *home = exact;
    if (near >= 0) return transfer(p, CNRI_STEP_LAYOUT, near, exact, whole, err);
    return gather(p, exact, region, err);
}
