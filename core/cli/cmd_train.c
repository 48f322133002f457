/* cnnrun train: trains a net on labelled pictures and writes it with its best weights. */
#include "core/cli/cli.h"
#include <math.h>

typedef struct train {
    cnr_train_options o;
    int64_t seed, validation_seed, epochs, batch, limit;
    int32_t policy;
    bool overwrite, nesterov;
    const cnri_args *args;
    cnri_watching watching;
} train;

static const char *const policies[] = {"fixed", "inverse", "step", "cosine", NULL};

static const cnri_option options[] = {
    {"--data", "SPEC", CNRI_OPT_TEXT, offsetof(train, o.data),
     "labelled pictures: a directory, images:LIST, or another source's spec", 0, 0, NULL, 0},
    {"--validation", "X", CNRI_OPT_REAL, offsetof(train, o.validation),
     "the part of them that epochs are judged by, or their number; 0: none, and the last epoch is "
     "kept (0.1)", 0, 1e15, NULL, 0},
    {"--validation-seed", "N", CNRI_OPT_INT, offsetof(train, validation_seed),
     "which they are (1)", 0, 1e15, NULL, 0},
    {"--limit", "N", CNRI_OPT_INT, offsetof(train, limit), "only the first N pictures (all)", 1,
     1e15, NULL, 0},
    {"--eval", "SPEC", CNRI_OPT_TEXT, offsetof(train, o.test),
     "pictures that the best epoch is tested on, once (the same source's eval split, if it has one; \"\": none)",
     0, 0, NULL, 0},
    {"--output", "FILE", CNRI_OPT_TEXT, offsetof(train, o.output), "the .cnr to write", 0, 0, NULL,
     'o'},
    {"--epochs", "N", CNRI_OPT_INT, offsetof(train, epochs), "rounds over the pictures (6)", 1,
     1e6, NULL, 0},
    {"--batch", "N", CNRI_OPT_INT, offsetof(train, batch), "pictures a step (64)", 1, 65536, NULL,
     0},
    {"--optimizer", "OPERATOR", CNRI_OPT_TEXT, offsetof(train, o.optimizer),
     "sgd, adam, or another that a plugin brings (the first)", 0, 0, NULL, 0},
    {"--lr", "X", CNRI_OPT_REAL, offsetof(train, o.rate), "learning rate (0.02)", 0, 1000, NULL, 0},
    {"--policy", "NAME", CNRI_OPT_CHOICE, offsetof(train, policy),
     "how the rate falls (cosine)", 0, 0, policies, 0},
    {"--momentum", "X", CNRI_OPT_REAL, offsetof(train, o.momentum),
     "0 to 0.9999 (the optimiser's own: sgd 0.9)", 0, 0.9999, NULL, 0},
    {"--nesterov", NULL, CNRI_OPT_FLAG, offsetof(train, nesterov),
     "momentum that looks ahead", 0, 0, NULL, 0},
    {"--decay", "X", CNRI_OPT_REAL, offsetof(train, o.decay), "weight decay (0.0005)", 0, 1, NULL, 0},
    {"--weight-decay", "X", CNRI_OPT_REAL, offsetof(train, o.decay), "the same", 0, 1, NULL, 0},
    {"--beta1", "X", CNRI_OPT_REAL, offsetof(train, o.beta1),
     "of optimisers that average gradients (adam's own: 0.9)", 0, 0.999999, NULL, 0},
    {"--beta2", "X", CNRI_OPT_REAL, offsetof(train, o.beta2), "and their squares (adam's own: 0.999)",
     0, 0.999999, NULL, 0},
    {"--epsilon", "X", CNRI_OPT_REAL, offsetof(train, o.epsilon),
     "what adam adds before it divides (its own: 1e-8)", 0, 1, NULL, 0},
    {"--seed", "N", CNRI_OPT_INT, offsetof(train, seed), "of weights, order and dropout (1)", 0,
     1e15, NULL, 0},
    {"--loss", "OPERATOR", CNRI_OPT_TEXT, offsetof(train, o.loss),
     "what is made small (the net's own, else the first loss that a plugin brings)", 0, 0, NULL, 0},
    {"--overwrite", NULL, CNRI_OPT_FLAG, offsetof(train, overwrite),
     "replace FILE even if what is in it is better, or is no such net", 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "train",
    .operands = "NET --data SPEC -o FILE",
    .summary = "Trains a net by gradient descent and keeps the best weights.",
    .details =
        "Weights start at random from the seed, or as --weights FILE has them. After each epoch "
        "the\nnet is judged on a part of the pictures that is not trained on; the best one is kept, "
        "and\ntested once at the end, on pictures that decided nothing. Ctrl-C ends training and "
        "writes\nthe best so far, if an epoch was judged. A net that is in FILE already is judged "
        "first and\nreplaced by a better one only. A loss that is no number, or a hundred times what "
        "it was at\nfirst, ends training. JSON: a line an epoch: {\"epoch\", \"loss\", "
        "\"train_accuracy\",\n\"accuracy\", \"seconds\"}, and at the end {\"output\", "
        "\"epochs\", \"best\", \"best_epoch\",\n\"validated\", \"test\", \"tested\", "
        "\"seconds\", \"ended\", \"replaced\"}: accuracy and best are of\nthe validation part "
        "of `validated` pictures, test is of `tested` others; ended is null,\n\"stopped\" or "
        "\"diverged\"; replaced is what the file that was there got right.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

/* ---- report ---- */

static int32_t tell_epoch(train *t, const cnr_epoch *e) {
    cnr_error err = CNR_ERROR_INIT;
    char spent[32];
    cnri_watch_end(&t->watching);
    if (t->args->common.json) {
        cnri_json j = {0};
        cnri_json_begin(&j);
        cnri_json_int(&j, "epoch", e->epoch);
        cnri_json_real(&j, "loss", e->loss);
        cnri_json_real(&j, "train_accuracy", e->train_top1);
        cnri_json_real(&j, "accuracy", e->top1);
        cnri_json_real(&j, "seconds", e->seconds);
        if (cnri_json_print(&j, &err) != CNR_OK) cnri_complain(t->args, &err);
        return 0;
    }
    cnri_duration(e->seconds, spent, sizeof spent);
    cnri_say(stdout, "epoch %lld/%lld  loss %.4f  train %.2f%%", (long long)e->epoch,
             (long long)e->epochs, e->loss, 100 * e->train_top1);
    if (!isnan(e->top1))
        cnri_say(stdout, "  validation %.2f%%  best %.2f%%", 100 * e->top1, 100 * e->best);
    cnri_say(stdout, "  %s\n", spent);
    fflush(stdout);
    return 0;
}

static int32_t hear(void *arg, int32_t kind, const void *of) {
    train *t = arg;
    if (kind == CNR_EVENT_EPOCH) return tell_epoch(t, of);
    if (kind == CNR_EVENT_REPLACES && !t->args->common.quiet)
        cnri_say(stderr, "%s is there already, right on %.2f%%; a better net replaces it\n",
                 t->o.output, 100 * *(const double *)of);
    return 0;
}

static int32_t show(void *arg, const cnr_progress *p) {
    train *t = arg;
    return t->watching.observer.progress(&t->watching, p);
}

static cnr_status tell_end(const train *t, const cnr_train_result *r, cnr_error *err) {
    static const char *const words[] = {NULL, "stopped", "diverged"};
    const char *ended = words[r->ended];
    if (t->args->common.json) {
        cnri_json j = {0};
        cnri_json_begin(&j);
        cnri_json_text(&j, "output", t->o.output);
        cnri_json_int(&j, "epochs", r->epochs);
        cnri_json_real(&j, "best", r->best);
        cnri_json_int(&j, "best_epoch", r->best_epoch);
        cnri_json_int(&j, "validated", r->validated);
        cnri_json_real(&j, "test", r->test);
        cnri_json_int(&j, "tested", r->tested);
        cnri_json_real(&j, "seconds", r->seconds);
        cnri_json_text(&j, "ended", ended);
        cnri_json_real(&j, "replaced", r->replaced);
        return cnri_json_print(&j, err);
    }
    cnri_say(stdout, "%s: epoch %lld", t->o.output, (long long)r->best_epoch);
    if (!isnan(r->best))
        cnri_say(stdout, ", right on %.2f%% of %lld for validation", 100 * r->best,
                 (long long)r->validated);
    if (!isnan(r->test))
        cnri_say(stdout, ", %.2f%% of %lld for the test", 100 * r->test, (long long)r->tested);
    cnri_say(stdout, "%s%s\n", ended ? "; training " : "", ended ? ended : "");
    return CNR_OK;
}

/* ---- all of it ---- */

/* The net with weights: at random unless a file is named. */
static cnr_status load(cnri_args *args, int64_t seed, cnr_runtime *rt, cnr_graph **net,
                       cnr_error *err) {
    char random[48];
    snprintf(random, sizeof random, "random:%lld", (long long)seed);
    const char *given = args->common.weights;
    if (!given) args->common.weights = random;
    const cnr_status status = cnri_args_load_graph(args, rt, args->operands.at[0], net, err);
    args->common.weights = given;
    return status;
}

static cnr_status all(train *t, cnri_args *args, cnr_error *err) {
    const cnr_load_options how = {.size = sizeof how, .device = args->common.device,
                                  .deterministic = args->common.deterministic,
                                  .memory_limit = args->common.memory_limit};
    const char *const more[] = {t->o.data, t->o.test};
    cnr_runtime *rt = NULL;
    cnr_graph *net = NULL;
    cnr_train_result result = {.size = sizeof result};
    /* hours of training are lost when the file can't be written behind them */
    cnr_status status = cnri_args_output(args, t->o.output, more, CNRI_COUNT(more), err);
    if (!status) status = cnri_args_open(args, &rt, err);
    if (!status) status = load(args, t->seed, rt, &net, err);
    if (!status) {
        cnr_observer observer = *cnri_watch(&t->watching, args);
        observer.arg = t;
        observer.progress = show;
        observer.event = hear;
        const cnri_train_task task = {.rt = rt, .net = net, .how = &how};
        status = cnri_train_net(&task, &t->o, &observer, &result, err);
        cnri_watch_end(&t->watching);
    }
    if (!status) status = tell_end(t, &result, err);
    cnri_graph_free(net);
    cnr_close(rt);
    return status;
}

int cnri_cmd_train(int argc, char **argv) {
    train t = {.o = {.size = sizeof t.o}};
    cnri_args args;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    cnr_train_usual(&t.o);
    t.seed = (int64_t)t.o.seed;
    t.validation_seed = (int64_t)t.o.validation_seed;
    t.policy = t.o.policy;
    t.epochs = t.o.epochs;
    t.batch = t.o.batch;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &t, &code)) return code;
    t.args = &args;
    t.o.seed = (uint64_t)t.seed;
    t.o.validation_seed = (uint64_t)t.validation_seed;
    t.o.policy = t.policy;
    t.o.epochs = t.epochs;
    t.o.batch = t.batch;
    t.o.limit = t.limit;
    t.o.nesterov = t.nesterov;
    t.o.overwrite = t.overwrite;
    if (!t.o.data) code = cnri_usage_error(&args, "--data is missing: what to train on");
    else if (!t.o.output) code = cnri_usage_error(&args, "--output is missing: where to write");
    else code = all(&t, &args, &err) == CNR_OK ? 0 : cnri_complain(&args, &err);
    cnri_args_free(&args);
    return code;
}
