/* The worker: finds cases that a kernel or an operator accepts, runs them, and reports each. */
#include "judge/judge.h"
#include <unistd.h>

/* A search for nodes that a kernel takes. */
typedef struct search {
    const cnri_work *w;
    const cnr_device *device;
    cnri_dice dice;
    cnri_draft base, draft; /* base: the draft to continue from; draft: the one that is tried */
    cnri_case c;
    cnri_trial t;
    cnri_promises promises; /* promises judged in all cases so far */
    /* offers_ranges: in some case; ran_ranges: in some case, on the device with many threads. */
    bool offers_ranges, ran_ranges;
    bool any, alone; /* a kernel for any operator; there is one device, whatever the threads */
    int64_t failed;  /* number of failed cases */
    bool specials;   /* inputs of this case contain NaN, infinities, denormals and -0 */
    char why[256];   /* text of the last refusal */
} search;

/* Attempts to start from, and steps from each; an operator among many gets fewer. */
enum { BEGINNINGS = 60, STEPS = 250, FEW_BEGINNINGS = 8, FEW_STEPS = 60, CHAINS = 5 };
enum { SPECIAL_EVERY = 3 }; /* an odd number, because devices alternate */

/* Notes why a draft was refused, and its hints; returns false. */
static bool refused(search *s, const char *text, cnri_hints *hints) {
    snprintf(s->why, sizeof s->why, "%.200s", text && *text ? text : "the kernel declines");
    cnri_hints_read(hints, s->draft.op, s->why);
    return false;
}

/* Seed of the operators behind a node. If kernels are compiled at run time, each chain needs
 * another program, and compilers are slow, so the cases of a kernel share a few chains. */
static uint64_t chain_seed(const search *s) {
    const bool compiles = !(s->device->memory[0].flags & CNR_MEMORY_HOST);
    return compiles ? 1 + (s->w->seed + s->draft.chain_seed) % CHAINS : s->draft.chain_seed;
}

/* True if the operator accepts the draft, and the kernel the node. Most drafts are never run;
 * with `bare` they get no data. */
static bool fits(search *s, bool bare, cnri_hints *hints) {
    cnr_error err = CNR_ERROR_INIT;
    const char *why = NULL;
    cnri_case_free(&s->c);
    cnr_status status = cnri_case_build(&s->c, &s->draft, bare, &err);
    if (!status && !s->w->kernel) return true;
    if (!status) status = cnri_case_encode(&s->c, s->w->kernel, &err);
    if (status) return refused(s, err.text, hints);
    cnri_dice ask = {s->draft.data_seed};
    if (!cnri_trial_ask(&s->t, s->device, s->w->kernel, &s->c, &ask, &why)) {
        refused(s, why, hints);
        hints->taken = true;
        return false;
    }
    if (!s->draft.chain_seed) return true;
    cnri_case_chain(&s->c, chain_seed(s));
    ask.state = s->draft.data_seed;
    if (cnri_trial_ask(&s->t, s->device, s->w->kernel, &s->c, &ask, &why)) return true;
    return refused(s, why, hints);
}

/* Changes the draft, sometimes twice, because some changes only work together. True: only what
 * the last refusal named was changed. */
static bool change(search *s, const cnri_hints *hints) {
    if (cnri_draft_mutate(&s->draft, &s->dice, hints)) return true;
    while (cnri_dice_chance(&s->dice, 35)) cnri_draft_mutate(&s->draft, &s->dice, hints);
    return false;
}

/* Searches from a fresh draft by small changes. A change that removes a complaint and leads to
 * another one is progress; other changes that lead to a new complaint are probably wrong. False: it
 * failed. */
static bool climb(search *s, const cnr_op *op, int32_t steps) {
    cnri_hints hints, heard = {.input = -1, .attr = -1};
    bool aimed = true;
    cnri_draft_fresh(&s->draft, op, !s->w->kernel, &s->dice);
    for (int32_t step = 0; step < steps; step++) {
        if (fits(s, true, &hints)) return true;
        const int32_t chance = hints.text == heard.text || aimed     ? 100
                               : heard.input >= 0 || heard.attr >= 0 ? 8
                                                                     : 50;
        if (cnri_dice_chance(&s->dice, chance)) {
            s->base = s->draft;
            heard = hints;
        } else s->draft = s->base;
        aimed = change(s, &heard);
    }
    return false;
}

/* Moves on from the first draft that was accepted, which is often a simple one. */
static void wander(search *s) {
    cnri_hints hints = {.input = -1, .attr = -1};
    s->base = s->draft;
    for (int64_t steps = 8 * cnri_dice_below(&s->dice, 8); steps > 0; steps--) {
        change(s, &hints);
        if (fits(s, true, &hints)) s->base = s->draft;
        else s->draft = s->base;
    }
    s->draft = s->base;
}

/* Finds a case that the kernel takes, looking longer if the operator is `alone`, and runs its
 * reference; false: none was found. */
static bool find(search *s, const cnr_op *op, bool alone) {
    cnri_hints hints = {.input = -1, .attr = -1};
    cnr_error err = CNR_ERROR_INIT;
    for (int32_t k = 0; k < (alone ? BEGINNINGS : FEW_BEGINNINGS); k++) {
        if (!climb(s, op, alone ? STEPS : FEW_STEPS)) continue;
        wander(s);
        for (int32_t i = 0; i < s->draft.n_in && k % 3 == 2; i++) /* where logarithms are numbers */
            if (s->draft.in[i].values == CNRI_VALUES_SIGNED)
                s->draft.in[i].values = CNRI_VALUES_POSITIVE;
        if (!s->w->kernel) s->draft.chain_seed = 0;
        s->draft.specials = s->specials;
        if (s->specials && s->w->kernel && CNRI_HAS(s->w->kernel, flags) &&
            s->w->kernel->flags & CNR_KERNEL_SKIPS_ZEROS)
            s->draft.chain_seed = 0; /* what is left out is told by the node's own results */
        for (int32_t chains = 4; chains >= 0; chains--) { /* one that leaves numbers to compare */
            if (!fits(s, false, &hints)) break;
            const bool good =
                cnri_judge_reference(&s->c, s->t.links, s->draft.data_seed, &err) == CNR_OK;
            if (good && !cnri_judge_is_chaotic(&s->c)) return true;
            snprintf(s->why, sizeof s->why, "the reference: %.200s",
                     good ? "the node is ill-conditioned" : err.text);
            if (good || !s->draft.chain_seed) break;
            s->draft.chain_seed = chains > 1 ? cnri_dice_next(&s->dice) | 1 : 0;
        }
    }
    return false;
}

/* ---- telling ---- */

void cnri_work_tell(const char *what, int64_t number, const char *text) {
    printf("%s %lld%s", what, (long long)number, text && *text ? " " : "");
    for (; text && *text; text++) putchar(*text == '\n' ? ' ' : *text);
    putchar('\n');
    fflush(stdout);
}

/* Times the kernel on the case and tells it. */
static void time_case(search *s, int64_t number, cnri_text *why) {
    cnr_cost cost = {0};
    char text[80], ms_text[32], rate_text[32];
    const double ms = cnri_trial_bench(&s->t, why);
    if (ms < 0) return;
    if (CNRI_HAS(s->c.node.desc, cost)) s->c.node.desc->cost(&s->c.node, &cost);
    const double flops = 2 * (double)cost.macs + (double)cost.flops;
    cnri_print_double(ms_text, sizeof ms_text, ms);
    cnri_print_double(rate_text, sizeof rate_text, ms > 0 ? flops / (ms * 1e6) : 0);
    snprintf(text, sizeof text, "%s %s", ms_text, rate_text);
    cnri_work_tell("time", number, text);
}

/* Runs the case; false: a result was wrong. */
static bool run_case(search *s, int64_t number, cnri_promises *promises, cnri_text *why) {
    if (!s->w->kernel) return cnri_promises_run(&s->c, &s->draft, promises, why);
    if (s->c.encoding_fault[0]) {
        cnri_text_add(why, "%s", s->c.encoding_fault);
        return false;
    }
    cnri_dice places = {s->draft.data_seed};
    cnri_trial_scatter(&s->t, &places);
    const bool good = cnri_trial_run(&s->t, true, why);
    s->offers_ranges |= s->t.offers_ranges;
    s->ran_ranges |= s->t.ran_ranges && (number % 2 || s->alone);
    if (!good || !s->w->bench) return good;
    time_case(s, number, why);
    return why->n == 0;
}

/* Draws case `number` and judges it; alone: its search takes longer. False: none was found. */
static bool one_case(search *s, const cnr_op *op, int64_t number, bool alone) {
    cnri_text text = {0}, why = {0};
    cnri_promises promises = {0};
    char bits[32];
    cnri_work_tell("draw", number, NULL);
    s->dice = cnri_dice_of(s->w->seed, s->w->kernel ? s->w->kernel->name : op->name, number);
    s->specials = number % SPECIAL_EVERY == SPECIAL_EVERY - 1;
    const bool found = find(s, op, alone);
    if (found) {
        cnri_case_text(&s->c, &text);
        if (s->w->kernel) cnri_trial_text(&s->t, &text);
        cnri_work_tell("case", number, text.at);
        const bool good = run_case(s, number, &promises, &why);
        s->promises.made |= promises.made;
        s->promises.judged |= promises.judged;
        snprintf(bits, sizeof bits, "%x %x", (unsigned)promises.made, (unsigned)promises.judged);
        s->failed += !good;
        cnri_work_tell(good ? "pass" : "fail", number, good ? bits : why.at);
    }
    cnri_case_free(&s->c);
    cnri_text_free(&text);
    cnri_text_free(&why);
    return found;
}

/* ---- all cases ---- */

/* True if nodes can be drawn for the operator. */
static bool drawable(const cnri_work *w, const cnr_op *op) {
    return CNRI_HAS(op, reference) && CNRI_HAS(op, infer) && (!w->op || w->op == op);
}

int32_t cnri_check_threads(void) {
    enum { FEWEST = 3, MOST = 33 };
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < FEWEST ? FEWEST : cores >= MOST ? MOST : (int32_t)cores + 1;
}

/* Opens devices with one and with several threads, because results must not depend on the
 * number. */
static cnr_status open_devices(const cnri_work *w, cnri_devices sets[2],
                               const cnr_device *devices[2], cnr_error *err) {
    cnri_devices_init(&sets[0], w->threads ? w->threads : 1);
    const cnr_status status = cnri_device_open(&sets[0], w->device, &devices[0], err);
    if (status) return status;
    devices[1] = devices[0];
    if (w->threads || !(devices[0]->memory[0].flags & CNR_MEMORY_HOST)) return CNR_OK;
    cnri_devices_init(&sets[1], cnri_check_threads());
    return cnri_device_open(&sets[1], w->device, &devices[1], err);
}

/* True if more cases are to run: for an operator while some promise was not judged; for a kernel of
 * one operator while no proper range was run on many threads, although it takes ranges; for a
 * kernel for any operator while it accepted nothing. */
static bool goes_on(const search *s, int64_t k, int64_t cases, int64_t found) {
    if (s->w->only >= 0) return k <= s->w->only;
    if (k < cases) return true;
    if (s->w->kernel && found == 0) return k < 3 * cases;
    if (s->w->kernel) return !s->any && s->offers_ranges && !s->ran_ranges && k < 4 * cases;
    return s->promises.made & ~s->promises.judged && k < 4 * cases;
}

cnr_status cnri_work_run(const cnri_work *w, cnr_error *err) {
    static search s; /* state of the search; static, because it is large */
    cnri_devices sets[2] = {{0}, {0}};
    const cnr_device *devices[2] = {NULL, NULL};
    const bool any = w->kernel && strcmp(w->kernel->op, CNR_ANY_OP) == 0;
    const cnr_op *own = !w->kernel ? w->op : any ? NULL : cnri_op_find(w->kernel->op);
    const int32_t n_ops = any ? cnri_descriptor_count(CNR_KIND_OPERATOR) : 1;
    const int64_t each = any && !w->op ? (w->cases + 9) / 10 : w->cases;
    int64_t found = 0, drawn = 0;
    memset(&s, 0, sizeof s);
    s.w = w;
    s.any = any;
    cnr_status status = w->kernel ? open_devices(w, sets, devices, err) : CNR_OK;
    s.alone = devices[0] == devices[1];
    for (int64_t k = w->first; goes_on(&s, k, n_ops * each, found) && !status; k++) {
        const cnr_op *op =
            any ? cnri_descriptor_at(CNR_KIND_OPERATOR, (int32_t)(k / each % n_ops)) : own;
        if (!op || !drawable(w, op) || (w->only >= 0 && k != w->only)) continue;
        s.device = devices[k % 2];
        found += one_case(&s, op, k, !any || w->op);
        if (found == 0 && (!any || w->op) && ++drawn >= 8) break; /* nor will the others be */
        if (w->enough && s.failed >= w->enough) break;
    }
    if (!own && !any && strcmp(w->kernel->op, CNR_REGION) == 0)
        snprintf(s.why, sizeof s.why,
                 "regions are judged on nets: conform, or kernelcheck --net FILE");
    else if (!own && !any) snprintf(s.why, sizeof s.why, "no operator \"%s\"", w->kernel->op);
    if (!status) cnri_work_tell("end", found, s.why);
    cnri_devices_close(&sets[0]);
    cnri_devices_close(&sets[1]);
    return status;
}
