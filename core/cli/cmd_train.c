/* cnnrun train: trains a net on labelled pictures and writes it with its best weights. */
#include "core/cli/cli.h"
#include "core/store/store.h"
#include "core/train/train.h"
#include <math.h>
#include <sys/stat.h>

typedef struct train {
    const char *data, *test, *output, *loss, *optimizer;
    int64_t epochs, batch, seed, limit, validation_seed;
    double rate, momentum, decay, validation;
    int32_t policy;
    cnri_args args;
    cnri_progress progress;
    bool bar, overwrite, nesterov;
    double there;  /* what the file that is there gets right; -1: there is none */
    double tested; /* of the test pictures; -1: not looked at */
    int64_t n_tested;
} train;

static const char *const policies[] = {"fixed", "inverse", "step", "cosine", NULL};

static const cnri_option options[] = {
    {"--data", "SPEC", CNRI_OPT_TEXT, offsetof(train, data),
     "labelled pictures: a directory, images:LIST, or another source's spec", 0, 0, NULL, 0},
    {"--validation", "X", CNRI_OPT_REAL, offsetof(train, validation),
     "the part of them that epochs are judged by, or their number; 0: none, and the last epoch is "
     "kept (0.1)", 0, 1e15, NULL, 0},
    {"--validation-seed", "N", CNRI_OPT_INT, offsetof(train, validation_seed),
     "which they are (1)", 0, 1e15, NULL, 0},
    {"--limit", "N", CNRI_OPT_INT, offsetof(train, limit), "only the first N pictures (all)", 1,
     1e15, NULL, 0},
    {"--eval", "SPEC", CNRI_OPT_TEXT, offsetof(train, test),
     "pictures that the best epoch is tested on, once (the same source's eval split, if it has one)",
     0, 0, NULL, 0},
    {"--output", "FILE", CNRI_OPT_TEXT, offsetof(train, output), "the .cnr to write", 0, 0, NULL,
     'o'},
    {"--epochs", "N", CNRI_OPT_INT, offsetof(train, epochs), "rounds over the pictures (6)", 1,
     1e6, NULL, 0},
    {"--batch", "N", CNRI_OPT_INT, offsetof(train, batch), "pictures a step (64)", 1, 65536, NULL,
     0},
    {"--optimizer", "OPERATOR", CNRI_OPT_TEXT, offsetof(train, optimizer),
     "sgd, adam, or another that a plugin brings (the first)", 0, 0, NULL, 0},
    {"--lr", "X", CNRI_OPT_REAL, offsetof(train, rate), "learning rate (0.02)", 0, 1000, NULL, 0},
    {"--policy", "NAME", CNRI_OPT_CHOICE, offsetof(train, policy),
     "how the rate falls (cosine)", 0, 0, policies, 0},
    {"--momentum", "X", CNRI_OPT_REAL, offsetof(train, momentum),
     "0 to 0.9999 (the optimiser's own: sgd 0.9)", 0, 0.9999, NULL, 0},
    {"--nesterov", NULL, CNRI_OPT_FLAG, offsetof(train, nesterov),
     "momentum that looks ahead", 0, 0, NULL, 0},
    {"--decay", "X", CNRI_OPT_REAL, offsetof(train, decay), "weight decay (0.0005)", 0, 1, NULL, 0},
    {"--weight-decay", "X", CNRI_OPT_REAL, offsetof(train, decay), "the same", 0, 1, NULL, 0},
    {"--seed", "N", CNRI_OPT_INT, offsetof(train, seed), "of weights, order and dropout (1)", 0,
     1e15, NULL, 0},
    {"--loss", "OPERATOR", CNRI_OPT_TEXT, offsetof(train, loss),
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

/* -1 is none. */
static double share(double x) { return x >= 0 ? x : (double)NAN; }

static void tell_epoch(train *t, const cnri_train_progress *p) {
    cnri_progress_end(&t->progress);
    if (t->args.common.json) {
        cnri_json j = {0};
        cnr_error err = CNR_ERROR_INIT;
        cnri_json_begin(&j);
        cnri_json_int(&j, "epoch", p->epoch);
        cnri_json_real(&j, "loss", p->loss);
        cnri_json_real(&j, "train_accuracy", p->accuracy);
        cnri_json_real(&j, "accuracy", share(p->judged));
        cnri_json_real(&j, "seconds", p->seconds);
        if (cnri_json_print(&j, &err) != CNR_OK) cnri_complain(&t->args, &err);
        return;
    }
    char spent[32];
    cnri_duration(p->seconds, spent, sizeof spent);
    cnri_say(stdout, "epoch %lld/%lld  loss %.4f  train %.2f%%", (long long)p->epoch,
             (long long)p->epochs, p->loss, 100 * p->accuracy);
    if (p->judged >= 0)
        cnri_say(stdout, "  validation %.2f%%  best %.2f%%", 100 * p->judged, 100 * p->best);
    cnri_say(stdout, "  %s\n", spent);
    fflush(stdout);
}

static bool tell(void *arg, const cnri_train_progress *p) {
    train *t = arg;
    if (!t->bar) {
        cnri_progress_begin(&t->progress, "training", p->steps * p->epochs,
                            t->args.common.quiet > 0);
        t->bar = true;
    }
    if (p->epoch_done) tell_epoch(t, p);
    else {
        char text[96];
        snprintf(text, sizeof text, "epoch %lld  loss %.4f  right %.2f%%",
                 (long long)p->epoch + 1, p->loss, 100 * p->accuracy);
        cnri_progress_show(&t->progress, p->epoch * p->steps + p->step, text);
    }
    return !cnri_cancelled();
}

static cnr_status tell_end(const train *t, const cnri_train_progress *p, cnr_error *err) {
    const char *ended = p->stopped ? "stopped" : p->diverged ? "diverged" : NULL;
    if (t->args.common.json) {
        cnri_json j = {0};
        cnri_json_begin(&j);
        cnri_json_text(&j, "output", t->output);
        cnri_json_int(&j, "epochs", p->epoch);
        cnri_json_real(&j, "best", share(p->best));
        cnri_json_int(&j, "best_epoch", p->best_epoch);
        cnri_json_int(&j, "validated", p->validated);
        cnri_json_real(&j, "test", share(t->tested));
        cnri_json_int(&j, "tested", t->n_tested);
        cnri_json_real(&j, "seconds", p->seconds);
        cnri_json_text(&j, "ended", ended);
        cnri_json_real(&j, "replaced", share(t->there));
        return cnri_json_print(&j, err);
    }
    cnri_say(stdout, "%s: epoch %lld", t->output, (long long)p->best_epoch);
    if (p->best >= 0)
        cnri_say(stdout, ", right on %.2f%% of %lld for validation", 100 * p->best,
                 (long long)p->validated);
    if (t->tested >= 0)
        cnri_say(stdout, ", %.2f%% of %lld for the test", 100 * t->tested, (long long)t->n_tested);
    cnri_say(stdout, "%s%s\n", ended ? "; training " : "", ended ? ended : "");
    return CNR_OK;
}

/* The net with weights: at random unless a file is named. */
static cnr_status load(train *t, cnr_runtime *rt, cnr_graph **net, cnr_error *err) {
    char random[48];
    snprintf(random, sizeof random, "random:%lld", (long long)t->seed);
    const char *given = t->args.common.weights;
    if (!given) t->args.common.weights = random;
    const cnr_status status =
        cnri_args_load_graph(&t->args, rt, t->args.operands.at[0], net, err);
    t->args.common.weights = given;
    return status;
}

/* ---- the file that is there ---- */

/* What it gets right of the same pictures; t->there stays -1 when nothing is there to lose. */
static cnr_status judge_there(train *t, cnr_runtime *rt, const cnri_train_options *o,
                              cnri_samples *samples, cnr_error *err) {
    struct stat about;
    cnr_graph *g = NULL;
    cnr_error why = CNR_ERROR_INIT;
    if (t->overwrite || stat(t->output, &about) != 0 || about.st_size == 0) return CNR_OK;
    cnr_status status = cnri_store_read(t->output, true, &g, &why);
    if (status == CNR_OK)
        status = cnri_train_score(rt, g, o, samples, true, &t->there, NULL, &why);
    cnri_graph_free(g);
    if (status == CNR_E_CANCELLED) return cnri_fail(err, status, why.where, "%s", why.text);
    if (status != CNR_OK)
        return cnri_fail(err, CNR_E_STATE, t->output,
                         "is there already and can't be compared with (%s); --overwrite "
                         "replaces it", why.text);
    if (!t->args.common.quiet)
        cnri_say(stderr, "%s is there already, right on %.2f%%; a better net replaces it\n",
                 t->output, 100 * t->there);
    return CNR_OK;
}

static cnr_status write_net(const train *t, const cnr_graph *net, const cnri_train_progress *p,
                            cnr_error *err) {
    if (t->there > p->best)
        return cnri_fail(err, CNR_E_STATE, t->output,
                         "stays as it was, right on %.2f%%; the best epoch, %lld, on %.2f%% "
                         "(--overwrite replaces it)", 100 * t->there, (long long)p->best_epoch,
                         100 * p->best);
    return cnri_store_write(net, t->output, err);
}

/* ---- the test ---- */

/* Once, when nothing is left to be decided by it. What is no split of its own has been trained on. */
static cnr_status test(train *t, cnr_runtime *rt, const cnri_train_options *o, cnr_graph *net,
                       cnr_error *err) {
    cnri_samples samples;
    cnr_status status = cnri_samples_open(t->test ? t->test : t->data, "eval", &samples, err);
    if (status != CNR_OK) return status;
    if (t->test || samples.info.is_split)
        status = cnri_train_score(rt, net, o, &samples, false, &t->tested, &t->n_tested, err);
    cnri_samples_close(&samples);
    return status;
}

/* ---- all of it ---- */

static cnr_status train_on(train *t, cnr_runtime *rt, cnr_graph *net, cnri_samples *samples,
                           const cnri_train_options *o, cnri_train_progress *last,
                           cnr_error *err) {
    cnri_trainer *trainer = NULL;
    cnr_status status = cnri_trainer_open(rt, net, o, &trainer, err);
    if (status == CNR_OK) status = judge_there(t, rt, o, samples, err);
    if (status == CNR_OK) status = cnri_train_run(trainer, samples, tell, t, last, err);
    if (t->bar) cnri_progress_end(&t->progress);
    cnri_trainer_free(trainer);
    return status;
}

static cnr_status train_net(train *t, cnr_runtime *rt, cnr_graph *net, cnr_error *err) {
    const cnri_train_options o = {
        .loss = t->loss, .optimizer = t->optimizer, .batch = t->batch, .epochs = t->epochs,
        .limit = t->limit, .rate = t->rate, .momentum = t->momentum, .nesterov = t->nesterov,
        .decay = t->decay, .policy = (cnri_train_policy)t->policy, .validation = t->validation,
        .validation_seed = (uint64_t)t->validation_seed, .seed = (uint64_t)t->seed,
        .device = t->args.common.device, .deterministic = t->args.common.deterministic,
        .cancel = cnri_signals_flag()};
    cnri_train_progress last = {.best = -1};
    cnri_samples samples;
    cnr_status status = cnri_samples_open(t->data, "train", &samples, err);
    if (status != CNR_OK) return status;
    status = train_on(t, rt, net, &samples, &o, &last, err);
    cnri_samples_close(&samples);
    if (status == CNR_OK) status = write_net(t, net, &last, err);
    if (status == CNR_OK && !last.stopped) status = test(t, rt, &o, net, err);
    return status == CNR_OK ? tell_end(t, &last, err) : status;
}

static cnr_status all(train *t, cnr_error *err) {
    cnr_runtime *rt = NULL;
    cnr_graph *net = NULL;
    const char *const more[] = {t->data, t->test};
    /* hours of training are lost when the file can't be written behind them */
    cnr_status status = cnri_args_output(&t->args, t->output, more, CNRI_COUNT(more), err);
    if (status == CNR_OK) status = cnri_args_open(&t->args, &rt, err);
    if (status != CNR_OK) return status;
    status = load(t, rt, &net, err);
    if (status == CNR_OK) status = train_net(t, rt, net, err);
    cnri_graph_free(net);
    cnr_close(rt);
    return status;
}

int cnri_cmd_train(int argc, char **argv) {
    train t = {.epochs = 6, .batch = 64, .rate = 0.02, .momentum = -1, .decay = 0.0005, .seed = 1,
               .validation = 0.1, .validation_seed = 1, .policy = CNRI_RATE_COSINE, .there = -1,
               .tested = -1};
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&t.args, &syntax, argc, argv, &t, &code)) return code;
    if (!t.data) code = cnri_usage_error(&t.args, "--data is missing: what to train on");
    else if (!t.output) code = cnri_usage_error(&t.args, "--output is missing: where to write");
    else {
        cnri_signals_patient(); /* a step may take long, and the best weights are to be kept */
        code = all(&t, &err) == CNR_OK ? 0 : cnri_complain(&t.args, &err);
    }
    cnri_args_free(&t.args);
    return code;
}
