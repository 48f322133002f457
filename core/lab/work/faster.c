/* Which layers are faster quantised, on this machine: both nets run in turns, each step is timed as
 * tuning times it, and a minimum cut weighs the layers against the conversions between them. */
#include "work/calibrate.h"
#include <math.h>

/* Rounds are added, ROUNDS at a time, while other work disturbs them. */
enum { ROUNDS = 9, MOST_ROUNDS = 6 * ROUNDS, LEAST = 3, TRIES = 3, NOBODY = -1 };
/* Largest part of the float net's time that counts as faster; a smaller gain may be chance. */
static const double WORTH = 0.98;
/* Times are undisturbed if the LEAST shortest differ by less; ns after which no round is added. */
static const double CALM = 1.05, LONGEST = 3e9;

/* ---- two nets in turns ---- */

/* One of the two nets that race, float or quantised, with its times in ns by round and node. */
typedef struct contender {
    cnr_model *model;
    cnri_runner runner;
    int32_t heard, n_steps;
    uint64_t run_begun, step_begun;
    double run[MOST_ROUNDS];
    /* Nanoseconds of each step in each round: [step][MOST_ROUNDS]. */
    double *ns;
    int32_t round;
} contender;

/* Takes the times of a contender's run and steps. */
static void hear(void *arg, const cnri_event *e) {
    contender *n = arg;
    if (e->kind == CNRI_EVENT_RUN_BEGIN) n->run_begun = e->now_ns;
    if (e->kind == CNRI_EVENT_STEP_BEGIN) n->step_begun = e->now_ns;
    if (n->round < 0) return; /* the first run warms up */
    if (e->kind == CNRI_EVENT_RUN_END) n->run[n->round] = (double)(e->now_ns - n->run_begun);
    if (e->kind == CNRI_EVENT_STEP_END)
        n->ns[e->step * MOST_ROUNDS + n->round] =
            (double)(e->took_ns ? e->took_ns : e->now_ns - n->step_begun);
}

/* Opens a contender with a picture as input. */
static cnr_status enter(contender *n, const cnri_calibration *c, const cnr_graph *net,
                        const cnr_tensor *picture, cnr_error *err) {
    cnr_status status = cnri_calibration_model(c, net, true, &n->model, err);
    if (!status) status = cnri_runner_open(&n->runner, n->model, c->observer, err);
    if (!status) status = cnri_runner_shape(&n->runner, 1, picture, err);
    if (!status) status = cnri_runner_put(&n->runner, 0, picture, err);
    if (status) return status;
    n->n_steps = n->runner.plan->steps.n;
    n->ns = cnri_alloc_zero(((size_t)n->n_steps + 1) * MOST_ROUNDS * sizeof *n->ns);
    if (!n->ns) return cnri_out_of_memory(err, "quantize");
    return cnri_session_listen(n->runner.session, hear, n, true, &n->heard, err);
}

/* Closes a contender's runner, releases its model and frees its times. */
static void leave(contender *n) {
    cnri_runner_close(&n->runner);
    cnr_release(n->model);
    cnri_free(n->ns);
}

/* The LEAST smallest of n times, in order. Other work on the machine only adds to a time. */
static void find_least(const double *times, int32_t n, double least[LEAST]) {
    for (int32_t i = 0; i < LEAST; i++) least[i] = INFINITY;
    for (int32_t i = 0; i < n; i++) {
        double t = times[i];
        for (int32_t k = 0; k < LEAST; k++) {
            const double larger = fmax(t, least[k]);
            least[k] = fmin(t, least[k]);
            t = larger;
        }
    }
}

/* Mean of the LEAST smallest of n times. */
static double least_of(const double *times, int32_t n) {
    double least[LEAST], sum = 0;
    find_least(times, n, least);
    for (int32_t k = 0; k < LEAST; k++) sum += least[k] / LEAST;
    return sum;
}

/* True if n rounds have enough undisturbed ones, or took too long. */
static bool is_enough(const contender both[2], int32_t n) {
    double sum = 0, least[LEAST];
    bool calm = true;
    for (int i = 0; i < 2; i++) {
        find_least(both[i].run, n, least);
        calm &= least[LEAST - 1] <= CALM * least[0];
        for (int32_t k = 0; k < n; k++) sum += both[i].run[k];
    }
    return calm || sum > LONGEST || n >= MOST_ROUNDS;
}

/* Runs both contenders in turn for all rounds; *rounds: how many. */
static cnr_status race(const cnri_calibration *c, contender both[2], int32_t *rounds,
                       cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t n = -1; !status && (n <= 0 || n % ROUNDS != 0 || !is_enough(both, n)); n++) {
        *rounds = n + 1;
        for (int i = 0; i < 2 && !status; i++) {
            both[i].round = n;
            status = cnri_runner_run(&both[i].runner, NULL, err);
            if (!status && cnri_stopped(c->observer))
                status = cnri_fail(err, CNR_E_CANCELLED, "quantize", "stopped");
        }
    }
    return status;
}

/* ---- which layer a step belongs to ---- */

/* The layers that a cut decides on, and their times. */
typedef struct layers {
    const cnri_calibration *c;
    const cnr_graph *quantized;
    const cnri_answers *answers;
    int32_t n, *answer; /* answer: of each layer, its index in the answers */
    /* Ns, [layer][0: float, 1: quantised], with the steps behind it up to the next layer. */
    double *ns;
    double per_element; /* ns of converting one element */
} layers;

/* Number of the node, in the float net, that computes a layer's output. */
static int32_t node_of(const layers *l, int32_t layer) {
    return cnri_answer_node(l->c->net, &l->answers->at[l->answer[layer]]);
}

/* Name of a layer's node in the float net or, with `quantised`, in the quantised one. */
static const char *name_of(const layers *l, int32_t layer, bool quantised) {
    if (!quantised) return l->c->net->nodes.at[node_of(l, layer)]->name;
    const cnr_value v = l->answers->at[l->answer[layer]].as.stored;
    return l->quantized->nodes.at[l->quantized->values.at[v].producer]->name;
}

/* By node of g (the float net or the quantised one): number of its own layer, or else of the last
 * layer before it; NOBODY: none. The caller frees the list with cnri_free; NULL: out of memory. */
static int32_t *owners(const layers *l, const cnr_graph *g, bool quantised) {
    int32_t *owner = cnri_alloc(((size_t)g->nodes.n + 1) * sizeof *owner);
    for (int32_t i = 0; owner && i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        owner[i] = NOBODY;
        for (int32_t k = 0; k < l->n; k++)
            if (strcmp(node->name, name_of(l, k, quantised)) == 0) owner[i] = k;
        for (int32_t k = 0; k < node->view.n_inputs && owner[i] == NOBODY; k++) {
            const cnr_value v = node->in[k];
            if (v >= 0 && g->values.at[v].producer >= 0)
                owner[i] = (int32_t)cnr_max(owner[i], owner[g->values.at[v].producer]);
        }
    }
    return owner;
}

/* Number of the node that a step belongs to; of a copy, the producer of its value. */
static int32_t node_of_step(const cnr_plan *plan, const cnri_step *s) {
    if (s->node >= 0) return s->node;
    return plan->graph->values.at[plan->homes.at[s->from].value].producer;
}

/* Distributes the steps' least times over the layers. False: out of memory. */
static bool share_out(layers *l, const contender *net, bool quantised, int32_t rounds,
                      double *converted, double *elements) {
    const cnr_plan *plan = net->runner.plan;
    int32_t *owner = owners(l, plan->graph, quantised);
    for (int32_t i = 0; owner && i < net->n_steps; i++) {
        const int32_t node = node_of_step(plan, &plan->steps.at[i]);
        const double ns = least_of(net->ns + (size_t)i * MOST_ROUNDS, rounds);
        if (node < 0) continue;
        if (cnri_converts(plan->graph->nodes.at[node])) {
            *converted += ns;
            *elements += (double)cnr_count(plan->graph->nodes.at[node]->view.outputs[0]);
        } else if (owner[node] != NOBODY) {
            l->ns[owner[node] * 2 + quantised] += ns;
        }
    }
    cnri_free(owner);
    return owner != NULL;
}

/* ---- the cut: layers on the float side reach the sink at their float time, and so on ---- */

/* A flow network whose smallest cut divides layers into float and quantised ones. */
typedef struct cut {
    int32_t n; /* nodes: 0: float, 1: quantised, then the layers */
    double *capacity;
    int32_t *from, *queue; /* from: previous node on a path from node 0; -1: not reached */
} cut;

static double *between(const cut *c, int32_t a, int32_t b) { return &c->capacity[a * c->n + b]; }

/* Finds a shortest path from node 0 to node 1 with capacity left; false: there is none. c->from
 * marks all that node 0 reaches. */
static bool reach(cut *c) {
    int32_t first = 0, last = 1;
    for (int32_t i = 0; i < c->n; i++) c->from[i] = NOBODY;
    c->from[0] = 0;
    c->queue[0] = 0;
    for (; first < last; first++)
        for (int32_t to = 0; to < c->n; to++)
            if (c->from[to] == NOBODY && *between(c, c->queue[first], to) > 0) {
                c->from[to] = c->queue[first];
                c->queue[last++] = to;
            }
    return c->from[1] != NOBODY;
}

/* Sends all flow from node 0 to node 1 that fits (Edmonds and Karp); what is left in the cut's
 * matrix is the rest. */
static void saturate(cut *c) {
    while (reach(c)) {
        double least = INFINITY;
        for (int32_t i = 1; i != 0; i = c->from[i]) least = fmin(least, *between(c, c->from[i], i));
        for (int32_t i = 1; i != 0; i = c->from[i]) {
            double *way = between(c, c->from[i], i);
            *way = *way > least ? *way - least : 0;
            *between(c, i, c->from[i]) += least;
        }
    }
}

/* Adds the cost of converting the value if a and b end on different sides. */
static void join(cut *c, const layers *l, int32_t a, int32_t b, const cnr_tensor *value) {
    const double ns = l->per_element * (double)cnr_count(value);
    if (a == b) return;
    *between(c, a == NOBODY ? 0 : a + 2, b == NOBODY ? 0 : b + 2) += ns;
    *between(c, b == NOBODY ? 0 : b + 2, a == NOBODY ? 0 : a + 2) += ns;
}

/* Sets capacities: each layer's time either way, and conversions between. */
static void fill(cut *c, const layers *l, const cnr_graph *g, const int32_t *owner) {
    for (int32_t k = 0; k < l->n; k++) {
        *between(c, 0, k + 2) += l->ns[k * 2 + 1];
        *between(c, k + 2, 1) += l->ns[k * 2];
    }
    for (int32_t i = 0; i < g->nodes.n; i++)
        for (int32_t k = 0; k < g->nodes.at[i]->view.n_inputs; k++) {
            const cnr_value v = g->nodes.at[i]->in[k];
            if (v < 0 || g->values.at[v].type->flags & CNR_TENSOR_CONST) continue;
            const int32_t producer = g->values.at[v].producer;
            join(c, l, producer < 0 ? NOBODY : owner[producer], owner[i], g->values.at[v].type);
        }
    for (int32_t i = 0; i < g->outputs.n; i++) {
        const int32_t producer = g->values.at[g->outputs.at[i]].producer;
        if (producer >= 0) join(c, l, owner[producer], NOBODY, g->values.at[g->outputs.at[i]].type);
    }
}

/* Takes layers out of `wanted` that cost more time than they save. `shaped`: the float net with
 * its sizes. */
static cnr_status decide(const layers *l, const cnr_graph *shaped, bool *wanted, cnr_error *err) {
    const size_t n = (size_t)l->n + 2;
    cut c = {.n = (int32_t)n,
             .capacity = cnri_alloc_zero(n * n * sizeof *c.capacity),
             .from = cnri_alloc(n * sizeof *c.from),
             .queue = cnri_alloc(n * sizeof *c.queue)};
    int32_t *owner = owners(l, shaped, false);
    const bool good = c.capacity && c.from && c.queue && owner;
    if (good) {
        fill(&c, l, shaped, owner);
        saturate(&c);
        for (int32_t k = 0; k < l->n; k++)
            if (c.from[k + 2] != NOBODY) wanted[node_of(l, k)] = false;
    }
    cnri_free(c.capacity);
    cnri_free(c.from);
    cnri_free(c.queue);
    cnri_free(owner);
    return good ? CNR_OK : cnri_out_of_memory(err, "quantize");
}

/* ---- measuring a choice of layers ---- */

/* Measures a choice of layers. ratio: time of the quantised net over the float net's. `next`:
 * the choice to try next. */
static cnr_status try_choice(cnri_calibration *c, const bool *wanted, const cnr_tensor *picture,
                             bool *next, cnri_layer_ns *report, double *ratio, cnr_error *err) {
    cnri_answers answers = {0};
    cnr_graph *quantized = NULL;
    contender both[2] = {{0}, {0}};
    double converted = 0, elements = 0;
    int32_t rounds = 0;
    cnr_status status = cnri_quantized(c, wanted, &quantized, &answers, err);
    layers l = {.c = c, .quantized = quantized, .answers = &answers, .n = answers.n};
    l.answer = cnri_alloc(((size_t)l.n + 1) * sizeof *l.answer);
    l.ns = cnri_alloc_zero(((size_t)l.n + 1) * 2 * sizeof *l.ns);
    if (!status && (!l.answer || !l.ns)) status = cnri_out_of_memory(err, "quantize");
    for (int32_t i = 0; l.answer && i < l.n; i++) l.answer[i] = i;
    for (int i = 0; i < 2 && !status; i++)
        status = enter(&both[i], c, i ? quantized : c->net, picture, err);
    if (!status) status = race(c, both, &rounds, err);
    for (int i = 0; i < 2 && !status; i++)
        if (!share_out(&l, &both[i], i, rounds, &converted, &elements))
            status = cnri_out_of_memory(err, "quantize");
    if (!status) {
        l.per_element = elements > 0 ? converted / elements : 0;
        *ratio = least_of(both[1].run, rounds) / fmax(least_of(both[0].run, rounds), 1);
        cnri_log(CNR_LOG_INFO, "quantize",
                 "%d layers of 8 bits: %.3f times the float net's time here (%d rounds); a "
                 "conversion takes "
                 "%.3g ns an element",
                 (int)l.n, *ratio, (int)rounds, l.per_element);
        for (int32_t k = 0; k < l.n && report; k++)
            report[node_of(&l, k)] = (cnri_layer_ns){{l.ns[k * 2], l.ns[k * 2 + 1]}};
        status = decide(&l, both[0].runner.plan->graph, next, err);
    }
    for (int i = 0; i < 2; i++) leave(&both[i]);
    cnri_free(l.answer);
    cnri_free(l.ns);
    cnri_answers_free(&answers);
    cnri_graph_free(quantized);
    return status;
}

/* Chooses the layers that are faster quantised, by measuring several times. */
static cnr_status choose(cnri_calibration *c, const cnr_tensor *picture, bool *wanted, bool *next,
                         cnri_layer_ns *report, cnr_error *err) {
    const size_t n = (size_t)c->net->nodes.n;
    double best = INFINITY;
    bool *now = cnri_alloc_zero(n + 1);
    cnr_status status = now ? CNR_OK : cnri_out_of_memory(err, "quantize");
    if (now) memcpy(now, wanted, n);
    for (int32_t i = 0; i < TRIES && !status; i++) {
        double ratio = 1;
        memcpy(next, now, n);
        status = try_choice(c, now, picture, next, i == 0 ? report : NULL, &ratio, err);
        if (!status) status = cnri_report_progress(c->observer, "timing layers", i + 1, TRIES, err);
        if (status || !(ratio < best)) break;
        best = ratio;
        memcpy(wanted, now, n);
        if (memcmp(next, now, n) == 0) break;
        memcpy(now, next, n);
    }
    if (!status && best > WORTH) memset(wanted, 0, n); /* the float net is the fastest */
    cnri_free(now);
    return status;
}

cnr_status cnri_drop_slower(cnri_calibration *c, bool *wanted, cnri_layer_ns *report,
                            cnr_error *err) {
    cnr_sample sample;
    bool *next = cnri_alloc_zero((size_t)c->net->nodes.n + 1);
    if (!next) return cnri_out_of_memory(err, "quantize");
    cnr_status status = cnri_samples_read(c->samples, 0, &sample, err);
    if (!status) {
        status = choose(c, &sample.picture, wanted, next, report, err);
        cnri_free(sample.picture.data);
    }
    cnri_free(next);
    return status;
}
