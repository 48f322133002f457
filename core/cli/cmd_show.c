/* cnnrun show: a net node by node, before anything runs. */
#include "core/cli/cli.h"

typedef struct show {
    bool dot;
    int64_t batch;
} show;

static const cnri_option options[] = {
    {"--dot", NULL, CNRI_OPT_FLAG, offsetof(show, dot), "the graph as text for Graphviz", 0, 0,
     NULL, 0},
    {"--batch", "N", CNRI_OPT_INT, offsetof(show, batch), "pictures at a time (1)", 1, 65536, NULL,
     0},
};

static const cnri_syntax syntax = {
    .command = "show",
    .operands = "NET",
    .summary = "Prints each node with its shape, parameters, work, kernel and memory, and the "
               "net's peak.",
    .details = "With --json a line a node and one for the net. Weights are not needed.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

static cnr_status print(const cnri_text *text, cnr_error *err) {
    if (text->failed) return cnri_fail(err, CNR_E_MEMORY, "output", "out of memory");
    if (text->at && (cnri_say_lines(stdout, text->at, text->n) < 0 || fflush(stdout) != 0))
        return cnri_fail(err, CNR_E_IO, "output", "can't write");
    return CNR_OK;
}

static cnr_status plan_of(const cnr_model *model, const show *s, cnr_plan **plan, cnr_error *err) {
    cnri_shapes shapes;
    cnr_status status = cnri_input_shapes(model, s->batch, &shapes, err);
    if (!status)
        status = cnri_plan_make(model->graph, &model->rt->devices, &model->plan_options,
                                shapes.list, shapes.n, plan, err);
    cnri_shapes_free(&shapes);
    return status;
}

/* With its weights when they are there; a net yet to be trained can be looked at without. */
static cnr_status load_graph(cnri_args *args, cnr_runtime *rt, cnr_graph **graph, cnr_error *err) {
    cnr_status status = cnri_args_load_graph(args, rt, args->operands.at[0], graph, err);
    if (!status || args->common.weights || (status != CNR_E_IO && status != CNR_E_NOT_FOUND))
        return status;
    args->common.weights = "none";
    return cnri_args_load_graph(args, rt, args->operands.at[0], graph, err);
}

int cnri_cmd_show(int argc, char **argv) {
    show s = {.batch = 1};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_graph *graph = NULL;
    cnr_model *model;
    cnr_plan *plan = NULL;
    cnri_text text = {0};
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &s, &code)) return code;
    cnr_status status = cnri_args_open(&args, &rt, &err);
    if (!status) status = load_graph(&args, rt, &graph, &err);
    if (!status) status = cnri_graph_verdict(graph, false, &err);
    if (!status && s.dot) {
        cnri_graph_dot(graph, &text);
    } else if (!status) {
        status = cnri_args_model(&args, rt, graph, &model, &err);
        graph = NULL;
        if (!status) status = plan_of(model, &s, &plan, &err);
        if (!status) cnri_plan_print(plan, args.common.json, &text);
    }
    if (!status) status = print(&text, &err);
    if (status) code = cnri_complain(&args, &err);
    cnri_text_free(&text);
    cnri_plan_free(plan);
    cnri_graph_free(graph);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
