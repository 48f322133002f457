/* Asks a kernel as the planner does: shows it the node, and takes the layouts that it answers. */
#include "judge/trial.h"

/* ---- the node as the kernel sees it ---- */

/* Removes the data of a tensor that is not constant, as it has none before a run, and its memory,
 * in place. */
static void hide(cnr_tensor *t) {
    if (!(t->flags & CNR_TENSOR_CONST)) t->data = NULL;
    t->mem = (cnr_mem){0};
}

/* Makes the kernel's own view of link i (from 0) of the chain: a copy of the link in t->behind[i],
 * without data that is not constant, and the epilogue t->epilogue[i] for it. If the link has
 * another operand, it is appended to the trial's inputs (t->n_in grows). */
static void view_link(cnri_trial *t, int32_t i) {
    const cnri_link *link = &t->c->chain[i];
    cnri_link *seen = &t->behind[i];
    *seen = *link;
    seen->node.inputs = seen->inputs;
    seen->node.outputs = seen->outputs;
    for (int32_t k = 0; k < CNRI_CHECK_PORTS; k++)
        if (link->inputs[k]) seen->inputs[k] = &seen->in[k == link->port ? 0 : 1];
    seen->outputs[0] = &seen->out;
    seen->in[0].data = seen->out.data = NULL;
    hide(&seen->in[1]);
    t->links_of[i] = (cnr_epilogue){.node = &seen->node, .chain_port = link->port, .operand = -1};
    t->epilogue[i] = &t->links_of[i];
    if (link->other < 0) return;
    t->host[t->n_in] = &link->in[1];
    t->in[t->n_in] = seen->in[1];
    t->inputs[t->n_in] = &t->in[t->n_in];
    t->links_of[i].operand = t->n_in++;
}

void cnri_trial_view(cnri_trial *t, int32_t links) {
    cnri_case *c = t->c;
    memset(t->inputs, 0, sizeof t->inputs);
    t->links = links;
    t->n_in = c->node.n_inputs;
    t->n_out = c->node.n_outputs;
    for (int32_t i = 0; i < t->n_in; i++) {
        if (!c->inputs[i]) continue;
        t->host[i] = c->encoded[i].data && !c->dense ? &c->encoded[i] : &c->in[i];
        t->in[i] = *t->host[i];
        hide(&t->in[i]);
        t->inputs[i] = &t->in[i];
    }
    for (int32_t i = 0; i < links; i++) view_link(t, i);
    for (int32_t i = 0; i < t->n_out; i++) {
        t->out[i] = *cnri_case_out(c, links, i);
        t->out[i].data = NULL;
        t->outputs[i] = &t->out[i];
    }
    t->node = c->node;
    t->node.n_inputs = t->n_in;
    t->node.n_epilogue = links;
    t->node.inputs = t->inputs;
    t->node.outputs = t->outputs;
    t->node.epilogue = links ? t->epilogue : NULL;
}

/* ---- asking ---- */

/* True if a tensor can have that block and memory class; block 1 becomes 0. */
static bool layout_fits(const cnr_device *device, const cnr_tensor *t, int32_t *block,
                        int32_t memory_class) {
    int64_t width, height;
    if (*block == 1) *block = 0;
    if (memory_class < 0 || memory_class >= device->n_memory || *block < 0) return false;
    if (*block > 1) {
        if (t->flags & CNR_TENSOR_CONST || t->rank < 2 || t->dim[1] % *block) return false;
        if (cnr_dtype_bits(t->dtype) < 8 || t->encoding || t->flags & CNR_TENSOR_DYNAMIC)
            return false;
    }
    const cnr_memory_class *m = &device->memory[memory_class];
    if (!(m->flags & CNR_MEMORY_IMAGE)) return true;
    cnri_trial_image(t, *block, &width, &height);
    return width <= m->max_width && height <= m->max_height && cnr_count(t) > 0;
}

/* True if all layouts of the kernel's answer are possible. */
static bool answer_holds(cnri_trial *t) {
    for (int32_t i = 0; i < t->n_in; i++) {
        if (!t->inputs[i]) continue;
        if (i < 32 && t->answer.prepared >> i & 1) {
            if (!(t->in[i].flags & CNR_TENSOR_CONST)) return false;
            t->in_block[i] = 0;
        } else if (!layout_fits(t->device, &t->in[i], &t->in_block[i], t->in_class[i]))
            return false;
    }
    for (int32_t i = 0; i < t->n_out; i++)
        if (!layout_fits(t->device, &t->out[i], &t->out_block[i], t->out_class[i])) return false;
    return true;
}

/* True if the neighbour of input 0 may offer blocks of this size. */
static bool may_offer(const cnri_trial *t, int32_t block) {
    const cnr_tensor *x = t->n_in > 0 ? t->inputs[0] : NULL;
    if (block == 0) return true;
    if (!x || x->rank < 2 || x->dim[1] % block) return false;
    return !(x->flags & CNR_TENSOR_CONST) && x->dim[1] > 0;
}

/* Empties the answer and offers the block of input 0. */
static void preset(cnri_trial *t, int32_t offer) {
    memset(t->in_block, 0, sizeof t->in_block);
    memset(t->in_class, 0, sizeof t->in_class);
    memset(t->out_block, 0, sizeof t->out_block);
    memset(t->out_class, 0, sizeof t->out_class);
    t->in_block[0] = offer;
    t->answer = (cnr_accept){.size = sizeof t->answer,
                             .in_block = t->in_block,
                             .out_block = t->out_block,
                             .in_class = t->in_class,
                             .out_class = t->out_class};
}

/* Asks for as many chained operators as the kernel accepts, with a neighbour that offers such
 * blocks. False: it failed. */
static bool ask_offering(cnri_trial *t, int32_t offer, const char **why) {
    for (int32_t take = t->c->n_chain; take >= 0;) {
        cnri_trial_view(t, take);
        preset(t, offer);
        const cnr_status status = t->kernel->accepts(t->device, &t->node, &t->answer);
        *why = t->answer.why;
        if (status || t->answer.score <= 0) {
            if (take == 0) return false;
            take = 0; /* as it would be without them */
            continue;
        }
        if (t->answer.epilogue < take) { /* again for exactly what it would take */
            take = t->answer.epilogue < 0 ? 0 : t->answer.epilogue;
            continue;
        }
        *why = "its answer asks for a layout that cannot be";
        if (!answer_holds(t)) return false;
        for (int32_t i = 0; i < t->n_in; i++) t->in[i].block = t->in_block[i];
        for (int32_t i = 0; i < t->n_out; i++) t->out[i].block = t->out_block[i];
        return true;
    }
    return false;
}

/* Begins a trial of a kernel on a case. */
static void begin(cnri_trial *t, const cnr_device *device, const cnr_kernel *kernel, cnri_case *c) {
    memset(t, 0, sizeof *t);
    t->device = device;
    t->kernel = kernel;
    t->c = c;
    cnri_trial_view(t, c->n_chain);
}

bool cnri_trial_ask_for(cnri_trial *t, const cnr_device *device, const cnr_kernel *kernel,
                        cnri_case *c, int32_t offer, const char **why) {
    begin(t, device, kernel, c);
    return may_offer(t, offer) && ask_offering(t, offer, why);
}

void cnri_trial_scatter(cnri_trial *t, cnri_dice *dice) {
    for (int32_t i = 0; i < t->n_in; i++) t->in_at[i] = (uint64_t)cnri_dice_below(dice, 4096);
    for (int32_t i = 0; i < t->n_out; i++) t->out_at[i] = (uint64_t)cnri_dice_below(dice, 4096);
    t->work_at = (uint64_t)cnri_dice_below(dice, 4096);
}

/* Asks the kernel as a planner does; false: it refuses, *why: its reason. Plain layouts are usually
 * offered first; a kernel that refuses one offer may accept another. */
bool cnri_trial_ask(cnri_trial *t, const cnr_device *device, const cnr_kernel *kernel, cnri_case *c,
                    cnri_dice *dice, const char **why) {
    static const int8_t blocks[] = {0, 4, 8, 16};
    const int64_t n = CNRI_COUNT(blocks), from = 1 + cnri_dice_below(dice, n - 1);
    const bool plain = cnri_dice_chance(dice, 70);
    begin(t, device, kernel, c);
    if (plain && ask_offering(t, 0, why)) return true;
    for (int64_t i = 0; i < n; i++) {
        const int32_t block = blocks[(from + i) % n];
        if (!(plain && block == 0) && may_offer(t, block) && ask_offering(t, block, why))
            return true;
    }
    return false;
}

/* ---- the layouts in words ---- */

/* Appends the layout of an input or output, unless it is plain. */
static void layout_text(const cnri_trial *t, const char *what, int32_t i, int32_t block,
                        int32_t memory_class, bool *begun, cnri_text *out) {
    if (block <= 1 && memory_class == 0) return;
    cnri_text_add(out, "%s%s %d:", *begun ? ", " : " {", what, (int)i);
    *begun = true;
    if (block > 1) cnri_text_add(out, " blocks of %d channels", (int)block);
    if (memory_class != 0)
        cnri_text_add(out, "%s %s", block > 1 ? " in" : "", t->device->memory[memory_class].name);
}

void cnri_trial_text(const cnri_trial *t, cnri_text *out) {
    bool begun = false;
    for (int32_t i = 0; i < t->n_in; i++)
        if (t->inputs[i] && !cnri_trial_prepared(t, i))
            layout_text(t, "input", i, t->in_block[i], t->in_class[i], &begun, out);
    for (int32_t i = 0; i < t->n_out; i++)
        layout_text(t, "output", i, t->out_block[i], t->out_class[i], &begun, out);
    if (begun) cnri_text_add(out, "}");
    if (t->c->n_chain > t->links)
        cnri_text_add(out, " (the kernel takes %d of what follows)", (int)t->links);
}
