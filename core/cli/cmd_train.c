/* cnnrun train: trains a net on labelled pictures and writes it with its best weights. */
#include "core/cli/cli.h"
#include "core/store/store.h"
#include "core/train/train.h"
#include <math.h>
#include <sys/stat.h>

typedef struct train {
    const char *data, *judge, *output, *loss;
    int64_t epochs, batch, seed;
    double rate, momentum, decay;
    int32_t policy;
    cnri_args args;
    cnri_progress progress;
    bool bar, overwrite;
    double there; /* what the file that is there gets right; -1: there is none */
} train;

static const char *const policies[] = {"fixed", "inverse", "step", "cosine", NULL};

static const cnri_option options[] = {
    {"--data", "SPEC", CNRI_OPT_TEXT, offsetof(train, data),
     "labelled pictures: a directory, images:LIST, or another source's spec", 0, 0, NULL, 0},
    {"--eval", "SPEC", CNRI_OPT_TEXT, offsetof(train, judge),
     "pictures to judge by (the same spec's eval split)", 0, 0, NULL, 0},
    {"--output", "FILE", CNRI_OPT_TEXT, offsetof(train, output), "the .cnr to write", 0, 0, NULL,
     'o'},
    {"--epochs", "N", CNRI_OPT_INT, offsetof(train, epochs), "rounds over the pictures (6)", 1,
     1e6, NULL, 0},
    {"--batch", "N", CNRI_OPT_INT, offsetof(train, batch), "pictures a step (64)", 1, 65536, NULL,
     0},
    {"--lr", "X", CNRI_OPT_REAL, offsetof(train, rate), "learning rate (0.02)", 0, 1000, NULL, 0},
    {"--policy", "NAME", CNRI_OPT_CHOICE, offsetof(train, policy),
     "how the rate falls (cosine)", 0, 0, policies, 0},
    {"--momentum", "X", CNRI_OPT_REAL, offsetof(train, momentum), "0 to 0.9999 (0.9)", 0, 0.9999,
     NULL, 0},
    {"--decay", "X", CNRI_OPT_REAL, offsetof(train, decay), "weight decay (0.0005)", 0, 1, NULL, 0},
    {"--seed", "N", CNRI_OPT_INT, offsetof(train, seed), "of weights and order (1)", 0, 1e15, NULL,
     0},
    {"--loss", "OPERATOR", CNRI_OPT_TEXT, offsetof(train, loss),
     "what is made small (the net's own, else the first loss that a plugin brings)", 0, 0, NULL, 0},
    {"--overwrite", NULL, CNRI_OPT_FLAG, offsetof(train, overwrite),
     "replace FILE even if what is in it is better, or is no such net", 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "train",
    .operands = "NET --data SPEC -o FILE",
    .summary = "Trains a net by gradient descent with momentum and keeps the best weights.",
    .details =
        "Weights start at random from the seed, or as --weights FILE has them. After each epoch "
        "the\nnet is judged on the eval split; Ctrl-C ends training and writes the best so far, if "
        "an epoch was\njudged. A net that is in FILE already is judged first and replaced by a "
        "better one only. A loss\nthat is no number or a hundred times what it was ends training. "
        "JSON: a line an epoch: {\"epoch\",\n\"loss\", \"train_accuracy\", \"accuracy\", "
        "\"seconds\"}, and at the end {\"output\", \"epochs\", \"best\",\n\"best_epoch\", "
        "\"seconds\", \"ended\": null, \"stopped\" or \"diverged\", \"replaced\": what was "
        "right before}.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

static void tell_epoch(train *t, const cnri_train_progress *p) {
    cnri_progress_end(&t->progress);
    if (t->args.common.json) {
        cnri_json j = {0};
        cnr_error err = CNR_ERROR_INIT;
        cnri_json_begin(&j);
        cnri_json_int(&j, "epoch", p->epoch);
        cnri_json_real(&j, "loss", p->loss);
        cnri_json_real(&j, "train_accuracy", p->accuracy);
        cnri_json_real(&j, "accuracy", p->judged);
        cnri_json_real(&j, "seconds", p->seconds);
        if (cnri_json_print(&j, &err) != CNR_OK) cnri_complain(&t->args, &err);
        return;
    }
    char spent[32];
    cnri_duration(p->seconds, spent, sizeof spent);
    cnri_say(stdout, "epoch %lld/%lld  loss %.4f  train %.2f%%  eval %.2f%%  best %.2f%%  %s\n",
             (long long)p->epoch, (long long)p->epochs, p->loss, 100 * p->accuracy, 100 * p->judged,
             100 * p->best, spent);
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
        cnri_json_real(&j, "best", p->best);
        cnri_json_int(&j, "best_epoch", p->best_epoch);
        cnri_json_real(&j, "seconds", p->seconds);
        cnri_json_text(&j, "ended", ended);
        cnri_json_real(&j, "replaced", t->there >= 0 ? t->there : (double)NAN);
        return cnri_json_print(&j, err);
    }
    cnri_say(stdout, "%s: right on %.2f%%, epoch %lld%s%s\n", t->output, 100 * p->best,
             (long long)p->best_epoch, ended ? "; training " : "", ended ? ended : "");
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
                              cnri_samples *judge, cnr_error *err) {
    struct stat about;
    cnr_graph *g = NULL;
    cnr_error why = CNR_ERROR_INIT;
    if (t->overwrite || stat(t->output, &about) != 0 || about.st_size == 0) return CNR_OK;
    cnr_status status = cnri_store_read(t->output, true, &g, &why);
    if (status == CNR_OK)
        status = cnri_train_score(rt, g, o, judge, cnri_cancelled, &t->there, &why);
    cnri_graph_free(g);
    if (status == CNR_E_CANCELLED) return cnri_fail(err, status, why.where, "%s", why.text);
    if (status != CNR_OK)
        return cnri_fail(err, CNR_E_STATE, t->output,
                         "is there already and is no net to compare with (%s); --overwrite "
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

/* ---- all of it ---- */

static cnr_status train_on(train *t, cnr_runtime *rt, cnr_graph *net, cnri_samples *samples,
                           cnri_samples *judge, cnri_train_progress *last, cnr_error *err) {
    const cnri_train_options o = {
        .loss = t->loss, .batch = t->batch, .epochs = t->epochs, .rate = t->rate,
        .momentum = t->momentum, .decay = t->decay, .policy = (cnri_train_policy)t->policy,
        .seed = (uint64_t)t->seed, .device = t->args.common.device,
        .deterministic = t->args.common.deterministic};
    cnri_trainer *trainer = NULL;
    cnr_status status = cnri_trainer_open(rt, net, &o, &trainer, err);
    if (status == CNR_OK) status = judge_there(t, rt, &o, judge, err);
    if (status == CNR_OK) status = cnri_train_run(trainer, samples, judge, tell, t, last, err);
    if (t->bar) cnri_progress_end(&t->progress);
    cnri_trainer_free(trainer);
    return status;
}

static cnr_status train_net(train *t, cnr_runtime *rt, cnr_graph *net, cnri_train_progress *last,
                            cnr_error *err) {
    cnri_samples samples, judge;
    cnr_status status = cnri_samples_open(t->data, "train", &samples, err);
    if (status != CNR_OK) return status;
    status = cnri_samples_open(t->judge ? t->judge : t->data, "eval", &judge, err);
    if (status == CNR_OK) {
        status = train_on(t, rt, net, &samples, &judge, last, err);
        cnri_samples_close(&judge);
    }
    cnri_samples_close(&samples);
    return status;
}

static cnr_status all(train *t, cnr_error *err) {
    cnr_runtime *rt = NULL;
    cnr_graph *net = NULL;
    cnri_train_progress last = {.best = -1};
    const char *const more[] = {t->data, t->judge};
    /* hours of training are lost when the file can't be written behind them */
    cnr_status status = cnri_args_output(&t->args, t->output, more, CNRI_COUNT(more), err);
    if (status == CNR_OK) status = cnri_args_open(&t->args, &rt, err);
    if (status != CNR_OK) return status;
    status = load(t, rt, &net, err);
    if (status == CNR_OK) status = train_net(t, rt, net, &last, err);
    if (status == CNR_OK) status = write_net(t, net, &last, err);
    if (status == CNR_OK) status = tell_end(t, &last, err);
    cnri_graph_free(net);
    cnr_close(rt);
    return status;
}

int cnri_cmd_train(int argc, char **argv) {
    train t = {.epochs = 6, .batch = 64, .rate = 0.02, .momentum = 0.9, .decay = 0.0005, .seed = 1,
               .policy = CNRI_RATE_COSINE, .there = -1};
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
