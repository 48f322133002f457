/* cnnrun show: prints a net node by node, before anything runs. */
#include "cli/draw_net.h"

/* Gives unfilled weights memory of any content, for a net that is shown but never run. Large
 * memory is not touched, so it costs nothing. Weights that find no memory stay unfilled. */
static void fill_blank(cnr_graph *g) {
    enum { ZEROED = 1 << 20 };
    for (int32_t k = 0; k < g->values.n; k++) {
        cnri_value *v = &g->values.at[k];
        const uint64_t bytes = v->unfilled ? cnr_dense_bytes(v->type) : UINT64_MAX;
        void *own = bytes <= SIZE_MAX / 2 ? cnri_alloc_optional((size_t)bytes + 1) : NULL;
        if (!own) continue;
        if (bytes <= ZEROED) memset(own, 0, (size_t)bytes);
        v->type->data = own;
        v->type->bytes = bytes;
        v->type->flags |= CNR_TENSOR_CONST;
        v->unfilled = v->borrowed = false;
    }
}

/* Options of show. */
typedef struct show {
    bool dot, graph_json, candidates, profile;
    int64_t batch;
    const char *output;
} show;

static const cnri_option options[] =
    {CNRI_OPTION(show, dot, "--dot", NULL, "the graph as text for Graphviz"),
     CNRI_OPTION(show, graph_json, "--graph-json", NULL,
                 "the net as one object of JSON: environment, structure, digests of weights"),
     CNRI_OPTION(show, candidates, "--candidates", NULL,
                 "what each node, or NODE (conv*), could be run by: what was taken, by whom and "
                 "why"),
     CNRI_OPTION(show, output, "--output", "FILE",
                 "draw the plan: .svg, .png or .html, and a .dot beside it; .dot: that alone",
                 .letter = 'o', .writes = true, .beside = ".dot"),
     CNRI_OPTION(show, profile, "--profile", NULL, "with -o: time the layers, which are as wide"),
     CNRI_OPTION(show, batch, "--batch", "N", "pictures at a time (1)", .min = 1, .max = 65536)};

/* Loads the net; weights may be missing unless `runs`, so that an untrained net can be shown. */
static cnr_status load(cnri_call *call, bool runs, cnr_error *err) {
    const char *weights = call->common.load.weights;
    uint64_t seed;
    const bool made_up = weights && !runs &&
                         (strcmp(weights, "random") == 0 || (strncmp(weights, "random:", 7) == 0 &&
                                                             cnri_parse_seed(weights + 7, &seed)));
    if (made_up)
        call->common.load.weights = "none"; /* what they hold is not shown, so it is not drawn */
    cnr_status status = cnri_call_graph(call, err);
    if (!status && made_up) fill_blank(call->graph);
    if (!status || call->common.load.weights || (status != CNR_E_IO && status != CNR_E_NOT_FOUND))
        return status;
    call->common.load.weights = runs ? "random:1" : "none";
    return cnri_call_graph(call, err);
}

/* Draws the net. Missing weights are made up for timing, which does not depend on their values. */
static cnr_status draw(cnri_call *call, const show *s, const cnr_plan *plan, cnr_error *err) {
    const cnr_profile_options options = {.size = sizeof options, .steps = 1, .batch = s->batch};
    cnr_timing timing = {.size = sizeof timing};
    cnri_text text = {0};
    cnr_status status =
        s->profile ? cnr_profile(call->model, &options, cnri_watch(call), &timing, err) : CNR_OK;
    if (!status) cnri_plan_dot(plan, s->profile ? &timing : NULL, &text);
    if (!status) status = cnri_draw_net(call, &text, s->output, err);
    cnr_timing_free(&timing);
    cnri_text_free(&text);
    return status;
}

/* Prints the plan. Nets with 8-bit layers also get their conversions; in JSON these are in the
 * net's object. */
static void print_plan(const cnr_plan *plan, bool json, cnri_text *text) {
    const cnri_conversions found = cnri_conversions_of(plan->graph);
    cnri_plan_print(plan, json, text);
    if (found.n == 0 || text->failed || text->n < 2) return;
    if (json) {
        text->n -= 2; /* "}" and the line's end */
        cnri_text_add(text, ",\"conversions\":%d,\"conversion_pairs\":%d}\n", (int)found.n,
                      (int)found.pairs);
        return;
    }
    cnri_text_add(text, "%d conversions between floats and 8 bits, %d of them back at once\n",
                  (int)found.n, (int)found.pairs);
}

/* Prints the plan, its candidates or the graph into a text. */
static cnr_status print(cnri_call *call, const show *s, cnri_text *text, cnr_error *err) {
    const char *node =
        call->next_operand < call->operands.n ? call->operands.at[call->next_operand] : NULL;
    cnr_plan *plan = NULL;
    cnr_status status = CNR_OK;
    if (s->dot) cnri_graph_dot(call->graph, text);
    else status = cnri_call_model_of_graph(call, err);
    if (!s->dot && !status) status = cnri_call_placed(call, err);
    if (!s->dot && !status)
        status = cnri_plan_default_sizes(call->model, s->batch, s->candidates, &plan, err);
    if (plan && s->graph_json) status = cnri_graph_json(call, plan, err);
    else if (plan && s->output) status = draw(call, s, plan, err);
    else if (plan && s->candidates)
        status = cnri_table_print(plan->table, node, call->common.json, text, err);
    else if (plan) print_plan(plan, call->common.json, text);
    cnri_plan_free(plan);
    return status ? status : cnri_tell_text(text, err);
}

/* The command show. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    cnri_text text = {0};
    const show *s = values;
    cnr_status status = cnri_call_weights(call, err);
    if (!status && call->next_operand < call->operands.n && !s->candidates)
        status =
            cnri_fail(err, CNR_E_ARG, NULL, "one word too many: \"%s\" (a node wants --candidates)",
                      call->operands.at[call->next_operand]);
    if (!status) status = load(call, s->profile, err);
    if (!status) status = cnri_graph_status(call->graph, false, err);
    if (!status) status = print(call, s, &text, err);
    cnri_text_free(&text);
    return status;
}

/* True for a name with the ending of a picture or page. */
static bool is_picture(const char *path) {
    static const char *const endings[] = {".svg", ".png", ".html", ".dot"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; i < CNRI_COUNT(endings); i++)
        if (dot && strcmp(dot, endings[i]) == 0) return true;
    return false;
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    const show *s = values;
    (void)call;
    if (s->profile && !s->output) return "--profile is for -o FILE; bench --profile prints a table";
    if (s->output && !is_picture(s->output))
        return "-o: wanted a name that ends with .svg, .png, .html or .dot";
    return s->output && (s->dot || s->candidates || s->graph_json)
               ? "-o draws the plan: not with --dot, --graph-json, --candidates"
               : NULL;
}

const cnri_command cnri_cmd_show = {
    .name = "show",
    .example = "cnnrun show net.cnr --candidates conv1",
    .operands = "NET [--candidates [NODE]]",
    .summary = "Prints each node with its shape, parameters, work, kernel and memory, and the "
               "net's peak;\n"
               "with -o it draws them.",
    .details = "With --json a line a node and one for the net. Weights are not needed.\n"
               "A copy between devices is told with its bytes and what it should take: by what "
               "tune --devices\n"
               "measured into the cache folder, or a guess (in JSON: transfer, from, to, bytes, "
               "ms, ms_from).\n"
               "A kernel that never ran on the hardware that it is for is named below the net (in "
               "JSON: untried).\n"
               "In a picture shapes stand on the edges, devices fill layers, kernels frame them; a "
               "dashed layer\n"
               "is computed by another, or only names memory. --profile writes each layer's time "
               "and share,\n"
               "and makes it as wide. Drawing wants the plugin draw-graphviz; the .dot is written "
               "without it.\n"
               "Where layers work on 8 bits, conversions are counted, and pairs of them that take "
               "each other back\n"
               "(in JSON: conversions, conversion_pairs).\n"
               "--candidates --json has a line a row: node, op, kernel (reference: the operator's "
               "own), device,\n"
               "takes (nodes that it computes), layout_in, layout_out, encodings, ns and ns_from "
               "(recorded,\n"
               "estimate, guess), joules and joules_from (null: not known), mhz, bytes, flops, "
               "score, splits,\n"
               "chosen, by (record, score, forced, policy, deterministic, dynamic, stored), why, "
               "share; then one\n"
               "for the net: nodes, rows, links (from, to, ns_per_byte, ns_fixed, source), policy, "
               "notes, failure.",
    CNRI_OPTIONS(options),
    CNRI_VALUES(show, .batch = 1),
    .min_operands = 1,
    .max_operands = 2,
    .takes = CNRI_NETS | CNRI_PICTURES,
    .opens = cnri_call_open,
    .wrong = wrong,
    .run = run,
};
