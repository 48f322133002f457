/* cnnrun train: trains a net on labelled pictures and writes it with its best weights. */
#include "cli/cli.h"
#include "people/people.h"

/* Options of train. */
typedef struct train {
    cnr_train_options o;
    int32_t rate_policy; /* index in cnri_rate_policies */
    bool no_energy;
} train;
/* A row of the table of options. */
#define ROW(member, name, ...) CNRI_OPTION(train, o.member, name, __VA_ARGS__)
static const cnri_option options[] =
    {ROW(data, "--data", "SPEC",
         "labelled pictures: a directory, images:LIST, or another source's spec", .wanted = true),
     ROW(validation, "--validation", "X",
         "the part of them that epochs are judged by, or their "
         "number; 0: none, and the last epoch is kept (0.1)",
         .max = 1e15),
     ROW(validation_seed, "--validation-seed", "N", "seed that selects them (1)", .max = 1e15,
         .rare = true),
     ROW(limit, "--limit", "N", "only the first N pictures (all)", .min = 1, .max = 1e15),
     ROW(test, "--eval", "SPEC",
         "pictures that the best epoch is tested on, once (the same "
         "source's eval split, if it has one; \"\": none)"),
     ROW(output, "--output", "FILE", "the .cnr to write", .letter = 'o', .wanted = true,
         .writes = true),
     ROW(epochs, "--epochs", "N", "passes over the training pictures (6)", .min = 1, .max = 1e6),
     ROW(batch, "--batch", "N", "batch size (64)", .min = 1, .max = 65536),
     ROW(optimizer, "--optimizer", "NAME",
         "sgd, adam, or another operator that a plugin brings (the first); a .lua file that "
         "returns an optimiser, or a shipped one: adamw, rmsprop"),
     ROW(clip, "--clip", "X", "limit the norm of all gradients together to X", .max = 1e30,
         .rare = true),
     ROW(accumulate, "--accumulate", "N",
         "update after every N steps, with their mean gradient (1)", .min = 1, .max = 1e6,
         .rare = true),
     ROW(average, "--average", "X",
         "keep X of a running mean of the weights at each update; the mean is judged and written",
         .max = 0.9999999, .rare = true),
     ROW(layer_rates, "--layer-rates", "LIST",
         "factors of the rate by weights' names: 'conv*=0.1,ip1=2'", .rare = true),
     ROW(head, "--head", "N",
         "a new last layer for N classes, at random; the other weights are as --weights has them",
         .min = 1, .max = 1e9),
     ROW(freeze, "--freeze", "LIST",
         "weights that are not trained: 'conv*,bn*'; never those of a new --head"),
     ROW(rate, "--lr", "X", "learning rate (0.02)", .max = 1000),
     CNRI_OPTION(train, rate_policy, "--rate-policy", "NAME", "how the rate falls (cosine)",
                 .choices = cnri_rate_policies),
     ROW(gamma, "--gamma", "X", "of inverse (1e-4), and what step and multistep multiply by (0.1)",
         .max = 1000, .rare = true),
     ROW(power, "--power", "X", "of inverse (0.75) and poly (1)", .max = 1000, .rare = true),
     ROW(rate_epochs, "--rate-epochs", "LIST",
         "when the rate falls: each so many epochs (step), or at those (multistep: 10,15)",
         .rare = true),
     ROW(momentum, "--momentum", "X", "0 to 0.9999 (the optimiser's own: sgd 0.9)", .max = 0.9999),
     ROW(nesterov, "--nesterov", NULL, "Nesterov momentum", .rare = true),
     ROW(decay, "--decay", "X", "weight decay (0.0005)", .max = 1),
     ROW(decay, "--weight-decay", "X", "the same", .max = 1, .rare = true),
     ROW(beta1, "--beta1", "X", "decay of the mean of gradients (adam: 0.9)", .max = 0.999999,
         .rare = true),
     ROW(beta2, "--beta2", "X", "decay of the mean of their squares (adam: 0.999)", .max = 0.999999,
         .rare = true),
     ROW(epsilon, "--epsilon", "X", "added to the divisor (adam: 1e-8)", .max = 1, .rare = true),
     ROW(keep_zeros, "--keep-zeros", "GLOB",
         "weights of these names keep their zeros, for pruned nets (none)", .rare = true),
     ROW(local_statistics, "--local-statistics", NULL,
         "of several processes: batch normalisation takes the statistics of each one's part of the "
         "batch, not of the whole batch",
         .rare = true),
     ROW(seed, "--seed", "N", "seed of weights, order and dropout (1)", .max = 1e15),
     ROW(checkpoint, "--checkpoint", "FILE",
         "save the state of training in FILE; resume from it if it exists", .writes = true),
     ROW(checkpoint_seconds, "--checkpoint-every", "SECONDS",
         "also save the state at this interval, not only after epochs (30)", .max = 1e9,
         .rare = true),
     ROW(curves, "--curves", "FILE.csv",
         "loss, accuracy and rate of each epoch, and their plot as FILE.png", .writes = true,
         .beside = ".png"),
     ROW(loss, "--loss", "LOSS",
         "an operator, a .lua file that returns a loss, or mse, binary, focal, smooth, "
         "contrastive (the net's own, else the first loss operator)"),
     ROW(metric_files, "--metric", "LIST",
         "other measures than accuracy: .lua files that return a function(scores, labels), or "
         "shipped ones: f1, balanced, cross_entropy"),
     ROW(best_by, "--best-by", "NAME",
         "metric that chooses the best epoch; -NAME: the least (accuracy)"),
     ROW(overwrite, "--overwrite", NULL,
         "replace FILE even if what is in it is better, or is no such net"),
     CNRI_OPTION(train, no_energy, "--no-energy", NULL, "ask no meter", .rare = true)};
#undef ROW

static const cnri_field epoch_fields[] = {CNRI_KEY(cnr_epoch, epoch),
                                          CNRI_KEY(cnr_epoch, loss),
                                          CNRI_FIELD(cnr_epoch, "train_accuracy", train_top1),
                                          CNRI_FIELD(cnr_epoch, "accuracy", top1),
                                          CNRI_KEY(cnr_epoch, seconds),
                                          CNRI_ASIDE(cnr_epoch, "epochs", epochs),
                                          CNRI_ASIDE(cnr_epoch, "best", best)};
static const cnri_record epoch_record =
    CNRI_RECORD(epoch_fields,
                "epoch {epoch}/{epochs}  loss {loss:.4f}  train {train_accuracy:.2%}"
                "{accuracy?  validation {accuracy:.2%}  best {best:.2%}}  {seconds:t}\n");

/* Result of the training. */
typedef struct ending {
    cnr_train_result r;
    const char *output, *ended;
    double best_range[2], test_range[2]; /* Wilson's 95% intervals; NaN: not judged */
    cnri_energy_shown e;
} ending;
static const cnri_field fields[] = {CNRI_KEY(ending, output),
                                    CNRI_KEY_IN(ending, r, epochs),
                                    CNRI_KEY_IN(ending, r, best),
                                    CNRI_KEY_IN(ending, r, best_epoch),
                                    CNRI_KEY_IN(ending, r, validated),
                                    CNRI_KEY_IN(ending, r, test),
                                    CNRI_KEY_IN(ending, r, tested),
                                    CNRI_KEY_IN(ending, r, seconds),
                                    CNRI_FIELD(ending, "best_low", best_range[0]),
                                    CNRI_FIELD(ending, "best_high", best_range[1]),
                                    CNRI_FIELD(ending, "test_low", test_range[0]),
                                    CNRI_FIELD(ending, "test_high", test_range[1]),
                                    CNRI_KEY(ending, ended),
                                    CNRI_KEY_IN(ending, r, replaced),
                                    CNRI_ENERGY_FIELDS(ending, e)};
static const cnri_record record =
    CNRI_RECORD(fields, "{output}: epoch {best_epoch}{best?, right on {best:.2%} of {validated} "
                        "for validation "
                        "({best_low:.1%} to {best_high:.1%})}"
                        "{test?, {test:.2%} of {tested} for the test ({test_low:.1%} to "
                        "{test_high:.1%})}{ended?; training {ended}}\n" CNRI_ENERGY_LINE);

/* What events are told. */
typedef struct hearing {
    cnri_call *call;
    const cnr_train_options *o;
} hearing;

/* Prints an epoch. */
static cnr_status tell_epoch(const cnri_call *call, const cnr_epoch *e, cnr_error *err) {
    cnri_json j;
    if (!call->common.json) {
        CNR_TRY(cnri_tell(call, &epoch_record, e, err));
        cnri_say_metrics("  ", e->metrics, e->n_metrics);
        return CNR_OK;
    }
    cnri_json_begin(&j);
    cnri_json_fields(&j, &epoch_record, e);
    cnri_json_metrics(&j, "metrics", e->metrics, e->n_metrics);
    return cnri_json_print(&j, err);
}

/* Prints the result. */
static cnr_status tell_ending(const cnri_call *call, const ending *end, cnr_error *err) {
    cnri_json j;
    const cnr_train_result *r = &end->r;
    if (!call->common.json) {
        CNR_TRY(cnri_tell(call, &record, end, err));
        cnri_say_metrics("best epoch: ", r->metrics, r->n_metrics);
        if (r->tested > 0) cnri_say_metrics("test: ", r->test_metrics, r->n_metrics);
        return CNR_OK;
    }
    cnri_json_begin(&j);
    cnri_json_fields(&j, &record, end);
    cnri_json_metrics(&j, "metrics", r->metrics, r->n_metrics);
    cnri_json_metrics(&j, "test_metrics", r->test_metrics, r->n_metrics);
    return cnri_json_print(&j, err);
}

/* Observer function: prints epochs as they end, and that a file is replaced. */
static int32_t hear(void *arg, int32_t kind, const void *of) {
    const hearing *h = arg;
    cnr_error err = CNR_ERROR_INIT;
    cnri_watch_end(&h->call->watching);
    if (kind == CNR_EVENT_EPOCH && tell_epoch(h->call, of, &err)) cnri_complain(h->call, &err);
    if (kind == CNR_EVENT_REPLACES && !h->call->common.quiet)
        cnri_say(stderr, "%s is there already, right on %.2f%%; a better net replaces it\n",
                 h->o->output, 100 * *(const double *)of);
    return 0;
}

/* Observer function: shows progress as a bar; nonzero: stop. */
static int32_t show(void *arg, const cnr_progress *p) {
    const hearing *h = arg;
    return cnri_watch_show(&h->call->watching, p);
}

/* Fills the options with the library's defaults; returns true. */
static bool set_defaults(cnri_call *call, void *values) {
    (void)call;
    cnr_train_options_default(&((train *)values)->o);
    ((train *)values)->rate_policy = 3; /* cosine */
    return true;
}

/* Sets the rate policy. Accepts its words after --policy too, which once set it. */
static void take_rate_policy(cnri_call *call, train *t) {
    for (int32_t i = 0; call->common.load.policy && cnri_rate_policies[i]; i++)
        if (strcmp(call->common.load.policy, cnri_rate_policies[i]) == 0) {
            t->rate_policy = i;
            call->common.load.policy = NULL;
        }
    t->o.policy = cnri_rate_policies[t->rate_policy];
}

/* Loads the net, with random weights unless a file is named. */
static cnr_status load(cnri_call *call, const cnr_train_options *o, cnr_error *err) {
    char random[48];
    cnr_status status = cnri_call_weights(call, err);
    const char *given = call->common.load.weights;
    snprintf(random, sizeof random, "random:%llu", (unsigned long long)o->seed);
    if (!given) call->common.load.weights = random;
    if (!status) status = cnri_call_graph(call, err);
    call->common.load.weights = given;
    if (!status && o->head > 0) status = cnri_train_head(&call->graph, o->head, o->seed, err);
    return status;
}

/* Draws the curves of the table as a picture. */
static cnr_status draw_curves(const cnri_call *call, const char *table, cnr_error *err) {
    char *picture = cnri_path_with_ending(table, ".png");
    const cnr_status status = picture ? cnri_app_draw(call, "curves", table, picture, err)
                                      : cnri_out_of_memory(err, table);
    cnri_free(picture);
    return status;
}

/* The command train. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    static const char *const words[] = {NULL, "stopped", "diverged"};
    train *t = values;
    const cnr_train_options *o = &t->o;
    const cnr_load_options *given = &call->common.load;
    take_rate_policy(call, t);
    const cnr_load_options how = {.size = sizeof how,
                                  .device = given->device,
                                  .deterministic = given->deterministic,
                                  .memory_limit = given->memory_limit,
                                  .policy = given->policy,
                                  .policy_options = given->policy_options};
    ending end = {.r = {.size = sizeof end.r}, .output = o->output};
    hearing h = {call, o};
    t->o.energy = !t->no_energy;
    cnr_status status = load(call, o, err);
    if (status) return status;
    cnr_observer observer = *cnri_watch(call);
    observer.arg = &h;
    observer.progress = show;
    observer.event = hear;
    const cnri_train_task task = {.rt = call->rt, .net = call->graph, .how = &how};
    status = cnri_train_net(&task, o, &observer, &end.r, err);
    cnri_watch_end(&call->watching);
    end.ended = words[end.r.ended];
    end.e = cnri_energy_show(end.r.energy, "in all", (double)(end.r.trained * end.r.epochs));
    cnr_wilson_interval(end.r.best, end.r.validated, end.best_range);
    cnr_wilson_interval(end.r.test, end.r.tested, end.test_range);
    if (!status) status = tell_ending(call, &end, err);
    if (!status) status = cnri_tell_domains(call, end.r.energy, end.e.fps, err);
    cnr_train_result_free(&end.r);
    return status || !o->curves ? status : draw_curves(call, o->curves, err);
}

const cnri_command cnri_cmd_train = {
    .name = "train",
    .example = "cnnrun train net.lua --data mnist:DIR --epochs 5 -o net.cnr",
    .operands = "NET --data SPEC -o FILE",
    .summary = "Trains a net by gradient descent and keeps the best weights.",
    .details =
        "Weights start at random from the seed, or as --weights FILE has them. After each epoch "
        "the\nnet is judged on a part of the pictures that is not trained on; the best one is "
        "kept, "
        "and\ntested once at the end, on pictures that decided nothing. Ctrl-C ends training and "
        "writes\nthe best so far, if an epoch was judged. A net that is in FILE already is judged "
        "first and\nreplaced by a better one only. A loss that is no number, or a hundred times "
        "what "
        "it was at\nfirst, ends training. A line an epoch, and one at the end: accuracy and best "
        "are "
        "of the\nvalidation part of `validated` pictures, test is of `tested` others; ended is "
        "null, "
        "\"stopped\"\nor \"diverged\"; replaced is what the file that was there got right.\n"
        "best_low to best_high and test_low to test_high are Wilson's 95% intervals.",
    .results = CNRI_RESULTS(&epoch_record, &record, &cnri_energy_domain),
    CNRI_OPTIONS(options),
    CNRI_VALUES(train, .o = {.size = sizeof(cnr_train_options)}),
    CNRI_ONE_NET_SHARED(cnri_call_open),
    .leads = set_defaults,
    .run = run,
};
