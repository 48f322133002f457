/* cnnrun show: a net node by node, before anything runs. */
#include "core/cli/cli.h"

typedef struct show {
    bool dot, candidates;
    int64_t batch;
} show;

static const cnri_option options[] = {
    CNRI_OPTION(show, dot, "--dot", NULL, "the graph as text for Graphviz"),
    CNRI_OPTION(show, candidates, "--candidates", NULL,
                "what each node, or NODE (conv*), could be run by: what was taken, by whom and why"),
    CNRI_OPTION(show, batch, "--batch", "N", "pictures at a time (1)", .min = 1, .max = 65536)};

/* With its weights when they are there; a net yet to be trained can be looked at without. */
static cnr_status load(cnri_call *call, cnr_error *err) {
    const char *weights = call->common.weights;
    uint64_t seed;
    const bool made_up = weights && (strcmp(weights, "random") == 0 ||
                                     (strncmp(weights, "random:", 7) == 0 &&
                                      cnri_parse_seed(weights + 7, &seed)));
    if (made_up) call->common.weights = "none"; /* what they hold is not shown, so it is not drawn */
    cnr_status status = cnri_call_graph(call, err);
    if (!status && made_up) cnri_graph_fill_blank(call->graph);
    if (!status || call->common.weights || (status != CNR_E_IO && status != CNR_E_NOT_FOUND))
        return status;
    call->common.weights = "none";
    return cnri_call_graph(call, err);
}

static cnr_status print(cnri_call *call, const show *s, cnri_text *text, cnr_error *err) {
    const char *node = call->rest < call->operands.n ? call->operands.at[call->rest] : NULL;
    cnr_plan *plan = NULL;
    cnr_status status = CNR_OK;
    if (s->dot) cnri_graph_dot(call->graph, text);
    else status = cnri_call_model_of_graph(call, err);
    if (!s->dot && !status) status = cnri_call_placed(call, err);
    if (!s->dot && !status)
        status = cnri_plan_to_see(call->model, s->batch, s->candidates, &plan, err);
    if (plan && s->candidates)
        status = cnri_table_print(plan->table, node, call->common.json, text, err);
    else if (plan) cnri_plan_print(plan, call->common.json, text);
    cnri_plan_free(plan);
    return status ? status : cnri_tell_text(text, err);
}

static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    cnri_text text = {0};
    const show *s = values;
    cnr_status status = cnri_call_weights(call, err);
    if (!status && call->rest < call->operands.n && !s->candidates)
        status = cnri_fail(err, CNR_E_ARG, NULL,
                           "one word too many: \"%s\" (a node wants --candidates)",
                           call->operands.at[call->rest]);
    if (!status) status = load(call, err);
    if (!status) status = cnri_graph_verdict(call->graph, false, err);
    if (!status) status = print(call, s, &text, err);
    cnri_text_free(&text);
    return status;
}

const cnri_command cnri_cmd_show = {
    .name = "show", .operands = "NET [--candidates [NODE]]",
    .summary = "Prints each node with its shape, parameters, work, kernel and memory, and the "
               "net's peak.",
    .details =
        "With --json a line a node and one for the net. Weights are not needed.\n"
        "A copy between devices is told with its bytes and what it should take: by what tune --devices\n"
        "measured into the cache folder, or a guess (in JSON: transfer, from, to, bytes, ms, ms_from).\n"
        "A kernel that never ran on the hardware that it is for is named below the net (in JSON: untried).\n"
        "--candidates --json has a line a row: node, op, kernel (reference: the operator's own), device,\n"
        "takes (nodes that it computes), layout_in, layout_out, encodings, ns and ns_from (measured,\n"
        "estimate, guess), joules and joules_from (null: not known), mhz, bytes, flops, score, splits,\n"
        "chosen, by (record, score, forced, policy, deterministic, dynamic, stored), why, share; then one\n"
        "for the net: nodes, rows, links (from, to, ns_per_byte, ns_fixed, source), policy, notes, failure.",
    CNRI_OPTIONS(options), CNRI_VALUES(show, .batch = 1),
    .min_operands = 1, .max_operands = 2,
    .takes = CNRI_NETS | CNRI_PICTURES, .opens = CNRI_OPENS_RUNTIME, .run = run,
};
