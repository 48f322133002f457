/* Values that share memory: views of others, parts of a joined one, results in place of operands.
 *
 * Homes that share bytes form a tree by alias_of; its root owns the bytes. A view or a join that
 * holds for all of a step makes the step needless. Bytes are overwritten in place only when no
 * home of their tree is read later, so later steps never see it. */
#include "plan/planner.h"

#define MAX_ALIASES 64

/* What aliasing knows of each home. */
typedef struct alias_work {
    cnri_planner *p;
    int32_t *last; /* by home: index of the last step that reads it; n_steps: it is an output */
} alias_work;

/* The home whose memory this one shares in the end; *offset: bytes from its start. */
static int32_t root_of(const cnr_plan *plan, int32_t home, uint64_t *offset) {
    *offset = 0;
    while (plan->homes.at[home].alias_of >= 0) {
        *offset += plan->homes.at[home].alias_offset;
        home = plan->homes.at[home].alias_of;
    }
    return home;
}

/* Notes in w->last the last step that reads each home; -1: none, n steps: it is an output. */
static void note_uses(alias_work *w) {
    const cnr_plan *plan = w->p->plan;
    for (int32_t h = 0; h < plan->homes.n; h++) w->last[h] = -1;
    for (int32_t s = 0; s < plan->steps.n; s++) {
        const cnri_step *step = &plan->steps.at[s];
        for (int32_t i = 0; i < step->n_in; i++)
            if (step->in[i] >= 0) w->last[step->in[i]] = s;
        if (step->from >= 0) w->last[step->from] = s;
    }
    for (int32_t i = 0; i < plan->graph->outputs.n; i++)
        if (plan->output_homes[i] >= 0) w->last[plan->output_homes[i]] = plan->steps.n;
}

/* True if the plan may let other values share the bytes of this home: its memory can be divided,
 * and it is no weight. */
static bool shareable(const cnr_plan *plan, int32_t home) {
    if (home < 0) return false;
    const cnri_home *h = &plan->homes.at[home];
    const cnr_memory_class *m = &plan->devices[h->device]->memory[h->memory_class];
    return (m->flags & CNR_MEMORY_PARTS) && !(m->flags & CNR_MEMORY_IMAGE) &&
           !cnri_is_weight(plan->graph, h->value) && !(h->type.flags & CNR_TENSOR_DYNAMIC);
}

/* Converts an offset in elements to bytes; false if no part may begin there. */
static bool byte_offset(const cnr_plan *plan, const cnri_home *h, uint64_t elements,
                        uint64_t *bytes) {
    const uint64_t bits = cnr_dtype_bits(h->type.dtype);
    uint32_t alignment = plan->devices[h->device]->memory[h->memory_class].alignment;
    if (alignment == 0) alignment = 1;
    if (elements > UINT64_MAX / 64 || elements * bits % 8) return false;
    *bytes = elements * bits / 8;
    return *bytes % alignment == 0;
}

/* The alias of that kind and output that an operator allows; input -1: any. NULL: none. */
static const cnr_alias *find_alias(const cnr_alias *a, int32_t n, int32_t kind, int32_t input,
                                   int32_t output) {
    for (int32_t i = 0; i < n; i++)
        if (a[i].kind == kind && (input < 0 || a[i].input == input) && a[i].output == output)
            return &a[i];
    return NULL;
}

/* True if the channel blocks of the part are where they would be in the whole: the part has all
 * its elements, or whole blocks of the only sample. */
static bool blocks_agree(const cnri_home *part, const cnri_home *whole, uint64_t elements) {
    const cnr_tensor *a = &part->type, *b = &whole->type;
    if (part->block_of != whole->block_of) return false;
    if (!part->block_of || (elements == 0 && cnr_same_shape(a, b))) return true;
    if (a->rank != b->rank || b->dim[0] != 1) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (i != 1 && a->dim[i] != b->dim[i]) return false;
    return elements % (uint64_t)(part->block_of * cnr_span(a, 2, a->rank)) == 0;
}

/* True if `part` can lie inside `whole`, `elements` from its start; *bytes: the offset. */
static bool fits_inside(const cnr_plan *plan, int32_t part, int32_t whole, uint64_t elements,
                        uint64_t *bytes) {
    if (!shareable(plan, part) || !shareable(plan, whole)) return false;
    const cnri_home *a = &plan->homes.at[part], *b = &plan->homes.at[whole];
    return a->memory_class == b->memory_class && blocks_agree(a, b, elements) &&
           a->type.dtype == b->type.dtype && byte_offset(plan, a, elements, bytes) &&
           *bytes <= b->bytes && a->bytes <= b->bytes - *bytes;
}

/* Makes outputs views of an input's bytes, so that the step does nothing. False: impossible. */
static bool try_views(alias_work *w, int32_t s, const cnr_alias *a, int32_t n) {
    cnr_plan *plan = w->p->plan;
    const cnri_step *step = &plan->steps.at[s];
    uint64_t bytes;
    for (int32_t o = 0; o < step->n_out; o++) {
        const cnr_alias *v = find_alias(a, n, CNR_ALIAS_VIEW, -1, o);
        if (!v || v->input < 0 || v->input >= step->n_in) return false;
        if (!fits_inside(plan, step->out[o], step->in[v->input], v->offset, &bytes)) return false;
    }
    for (int32_t o = 0; o < step->n_out; o++) {
        const cnr_alias *v = find_alias(a, n, CNR_ALIAS_VIEW, -1, o);
        cnri_home *out = &plan->homes.at[step->out[o]];
        fits_inside(plan, step->out[o], step->in[v->input], v->offset, &bytes);
        out->alias_of = step->in[v->input];
        out->alias_offset = bytes;
    }
    return step->n_out > 0;
}

/* Places every input inside the output, so that the step does nothing. False: not possible. */
static bool try_joins(alias_work *w, int32_t s, const cnr_alias *a, int32_t n) {
    cnr_plan *plan = w->p->plan;
    const cnri_step *step = &plan->steps.at[s];
    uint64_t bytes, at;
    if (step->n_out != 1 || step->n_in == 0) return false;
    for (int32_t i = 0; i < step->n_in; i++) {
        const cnr_alias *j = find_alias(a, n, CNR_ALIAS_JOIN, i, 0);
        if (!j || !fits_inside(plan, step->in[i], step->out[0], j->offset, &bytes)) return false;
        const int32_t root = root_of(plan, step->in[i], &at);
        if (at != 0 || plan->homes.at[root].bytes != plan->homes.at[step->in[i]].bytes)
            return false; /* it is a part of something else already */
        for (int32_t k = 0; k < i; k++)
            if (root_of(plan, step->in[k], &at) == root) return false;
    }
    for (int32_t i = 0; i < step->n_in; i++) {
        const cnr_alias *j = find_alias(a, n, CNR_ALIAS_JOIN, i, 0);
        fits_inside(plan, step->in[i], step->out[0], j->offset, &bytes);
        cnri_home *root = &plan->homes.at[root_of(plan, step->in[i], &at)];
        root->alias_of = step->out[0];
        root->alias_offset = bytes;
    }
    return true;
}

/* True if no home that shares this operand's bytes is read after step s: s may overwrite it. */
static bool dies_here(const alias_work *w, int32_t s, int32_t home) {
    const cnr_plan *plan = w->p->plan;
    uint64_t at, own_begin, begin, end;
    const int32_t root = root_of(plan, home, &own_begin);
    begin = own_begin;
    end = own_begin + plan->homes.at[home].bytes;
    for (int32_t h = 0; h < plan->homes.n; h++)
        if (w->last[h] > s && root_of(plan, h, &at) == root && at < end &&
            at + plan->homes.at[h].bytes > begin)
            return false;
    return true;
}

/* True if no other operand of the step shares bytes with operand i, except for one that is the
 * very same elements, read at the same places (`each`). */
static bool has_own_bytes(const cnr_plan *plan, const cnri_step *step, int32_t i, int32_t own,
                          bool each) {
    uint64_t own_begin, at;
    const int32_t root = root_of(plan, step->in[i], &own_begin);
    const uint64_t end = own_begin + plan->homes.at[step->in[i]].bytes;
    for (int32_t k = 0; k < step->n_in; k++) {
        if (k == i || step->in[k] < 0 || root_of(plan, step->in[k], &at) != root) continue;
        const uint64_t bytes = plan->homes.at[step->in[k]].bytes;
        if (at >= end || at + bytes <= own_begin) continue;
        if (!each || k >= own || at != own_begin || at + bytes != end) return false;
    }
    return true;
}

/* Lets a step write its output over an input that nobody reads later, if it can. */
static void try_in_place(alias_work *w, int32_t s, const cnr_alias *a, int32_t n) {
    cnr_plan *plan = w->p->plan;
    const cnri_step *step = &plan->steps.at[s];
    const cnri_pick *pick = &w->p->picks[step->node];
    bool elementwise = (pick->view.node.desc->flags & CNR_OP_ELEMENTWISE) && step->n_out == 1;
    for (int32_t i = 0; i < pick->view.n_chain; i++)
        if (!(pick->chain.epilogues[i].node->desc->flags & CNR_OP_ELEMENTWISE)) elementwise = false;
    if (pick->view.n_chain && !elementwise) return;
    const int32_t own = plan->graph->nodes.at[step->node]->view.n_inputs;
    for (int32_t o = 0; o < step->n_out; o++) {
        cnri_home *out = &plan->homes.at[step->out[o]];
        if (!shareable(plan, step->out[o]) || out->alias_of >= 0) continue;
        for (int32_t i = 0; i < own; i++) {
            const int32_t home = step->in[i];
            if (!shareable(plan, home)) continue;
            const cnri_home *in = &plan->homes.at[home];
            /* with many operands a kernel may take several passes: only the first is safe then */
            const bool each =
                elementwise && cnr_same_shape(&in->type, &out->type) && (i == 0 || own <= 2);
            if (!each && (pick->view.n_chain || !find_alias(a, n, CNR_ALIAS_INPLACE, i, o)))
                continue;
            if (in->bytes != out->bytes || in->block_of != out->block_of ||
                in->memory_class != out->memory_class || !dies_here(w, s, home) ||
                !has_own_bytes(plan, step, i, own, each))
                continue;
            out->alias_of = home;
            out->alias_offset = 0;
            break;
        }
    }
}

/* Shares memory between inputs and outputs of one step, where its operator allows it. */
static void alias_step(alias_work *w, int32_t s) {
    const cnri_planner *p = w->p;
    const cnri_step *step = &p->plan->steps.at[s];
    if (step->kind != CNRI_STEP_KERNEL || p->picks[step->node].axis >= 0) return;
    if (p->picks[step->node].chain.region) return;
    const cnri_node *node = p->graph->nodes.at[step->node];
    cnr_alias found[MAX_ALIASES];
    int32_t n = 0;
    if (CNRI_HAS(node->view.desc, buffer_aliases))
        n = node->view.desc->buffer_aliases(&node->view, found, MAX_ALIASES);
    if (n > MAX_ALIASES) n = MAX_ALIASES;
    if (p->picks[step->node].view.n_chain == 0 && !step->passes &&
        (try_views(w, s, found, n) || try_joins(w, s, found, n))) {
        p->elided[s] = true;
        return;
    }
    if (p->in_place) try_in_place(w, s, found, n);
}

/* Lets values lie in the memory of others where that is safe, and removes steps that then move
 * nothing. Nothing unless p->alias. */
cnr_status cnri_plan_alias(cnri_planner *p, cnr_error *err) {
    cnr_plan *plan = p->plan;
    if (!p->alias) return CNR_OK;
    alias_work w = {p, cnri_alloc((size_t)(plan->homes.n + 1) * sizeof(int32_t))};
    p->elided = cnri_alloc_zero((size_t)plan->steps.n + 1);
    if (!w.last || !p->elided) {
        cnri_free(w.last);
        return cnri_no_memory(err);
    }
    note_uses(&w);
    for (int32_t s = 0; s < plan->steps.n; s++) alias_step(&w, s);
    cnri_free(w.last);
    int32_t kept = 0;
    for (int32_t s = 0; s < plan->steps.n; s++) {
        if (p->elided[s]) cnri_free(plan->steps.at[s].in);
        else plan->steps.at[kept++] = plan->steps.at[s];
    }
    plan->steps.n = kept;
    return CNR_OK;
}
