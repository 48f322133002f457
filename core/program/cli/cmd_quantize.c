/* cnnrun quantize: calibrates a net on pictures, quantises its layers, and reports what that
 * costs and gains. */
#include "cli/cli.h"
#include "store/store.h"
#include <math.h>

/* Options of quantize. */
typedef struct quantize {
    cnri_quantise_options o;
    const char *out, *chart;
} quantize;

static const cnri_option options[] = {
    CNRI_OPTION(quantize, out, "--output", "FILE", "the native file to write", .letter = 'o',
                .wanted = true, .writes = true),
    CNRI_OPTION(quantize, o.data, "--data", "SPEC",
                "pictures to calibrate with; their \"eval\" "
                "part, where a source has one, to check with",
                .wanted = true),
    CNRI_OPTION(quantize, o.limit, "--limit", "N", "pictures to calibrate with (100)", .min = 1,
                .max = 1e9),
    CNRI_OPTION(quantize, o.layers, "--layers", "GLOB", "only layers of these names (*)"),
    CNRI_OPTION(quantize, o.method, "--method", "NAME",
                "how ranges are made: minmax, percentile, mse, kl, or auto: the one with the least "
                "noise (minmax)"),
    CNRI_OPTION(quantize, o.least, "--min-snr", "DB",
                "a layer with less signal to noise stays float (10; with --max-drop none)",
                .min = -1000, .max = 1000),
    CNRI_OPTION(quantize, o.max_drop, "--max-drop", "POINTS",
                "the noisiest layers stay float until no more points of top-1 (without labels: of "
                "agreement) are lost on a quarter of the pictures, which is held back",
                .min = 0, .max = 100),
    CNRI_OPTION(quantize, o.equalise, "--equalize", NULL,
                "make the channels between two layers alike first, in the weights of both"),
    CNRI_OPTION(quantize, o.correct_bias, "--correct-bias", NULL,
                "judge the correction of biases on pictures that are held back, and tell its gain"),
    CNRI_OPTION(quantize, o.all, "--all", NULL, "quantise layers that are slower here, too"),
    CNRI_OPTION(quantize, o.epochs, "--epochs", "N",
                "train the layers that are quantised for N epochs as if they were, and quantise "
                "the best net (none)",
                .min = 1, .max = 1e6),
    CNRI_OPTION(quantize, o.rate, "--lr", "X", "learning rate of that (0.001)", .max = 1000),
    CNRI_OPTION(quantize, o.batch, "--batch", "N", "batch size of that (32)", .min = 1,
                .max = 65536),
    CNRI_OPTION(quantize, o.seed, "--seed", "N", "seed of order and dropout (1)", .max = 1e15),
    CNRI_OPTION(quantize, o.keep_zeros, "--keep-zeros", "GLOB",
                "weights of these names keep their zeros in training, for pruned nets (none)"),
    CNRI_OPTION(quantize, chart, "--chart", "FILE",
                "noise and time of each layer as a picture, a .png or .svg", .writes = true),
    CNRI_OPTION(quantize, o.check, "--check", "N", "pictures to compare both nets on (as --limit)",
                .min = 0, .max = 1e9)};

/* Result: a layer. */
typedef struct layer {
    cnri_quantised_layer l;
    const char *float_for;
} layer;
static const cnri_field layer_fields[] = {CNRI_FIELD(layer, "layer", l.name),
                                          CNRI_KEY_IN(layer, l, low),
                                          CNRI_KEY_IN(layer, l, high),
                                          CNRI_FIELD(layer, "snr_db", l.decibels),
                                          CNRI_FIELD(layer, "quantized", l.quantised),
                                          CNRI_FIELD(layer, "ms_float", l.ms[0]),
                                          CNRI_FIELD(layer, "ms_quantized", l.ms[1]),
                                          CNRI_MAYBE(layer, "float_for", float_for)};
static const cnri_record layer_record =
    CNRI_RECORD(layer_fields, "{layer:-24} {low:10.4g} {high:10.4g} {snr_db:8.1f} dB  "
                              "{ms_float?{ms_float:8.3f} {ms_quantized:8.3f} ms  }"
                              "{quantized?8 bits|float}{float_for?: {float_for}}\n");

/* Result: the whole net. */
typedef struct result {
    cnri_quantising q;
    double float_share;
    bool biases_corrected;
} result;
/* A field of the result. */
#define ROW(name, member) CNRI_FIELD(result, name, q.member)
static const cnri_field fields[] = {ROW("layers", n_quantised),
                                    ROW("float_layers", n_float),
                                    CNRI_KEY(result, float_share),
                                    ROW("method", method),
                                    ROW("bias_gain_db", bias_gain),
                                    CNRI_ASIDE(result, "biases_corrected", biases_corrected),
                                    ROW("points_lost", lost),
                                    ROW("held_back", held_back),
                                    ROW("best_epoch", best_epoch),
                                    ROW("validation_before", trained[0]),
                                    ROW("validation_after", trained[1]),
                                    ROW("weight_bytes_float", bytes[0]),
                                    ROW("weight_bytes_quantized", bytes[1]),
                                    ROW("pictures", checked),
                                    ROW("top1_float", top1[0]),
                                    ROW("top1_float_low", top1_range[0][0]),
                                    ROW("top1_float_high", top1_range[0][1]),
                                    ROW("top1_quantized", top1[1]),
                                    ROW("top1_quantized_low", top1_range[1][0]),
                                    ROW("top1_quantized_high", top1_range[1][1]),
                                    ROW("agree", agree),
                                    ROW("agree_low", agree_range[0]),
                                    ROW("agree_high", agree_range[1]),
                                    ROW("output_snr_db", decibels),
                                    ROW("ms_float", ms[0]),
                                    ROW("ms_quantized", ms[1])};
#undef ROW
static const cnri_record record = CNRI_RECORD(
    fields,
    "layers    {layers} of 8 bits{float_layers?, {float_layers} float ({float_share:.0%})}\n"
    "weights   {weight_bytes_float:.3M} MB float, {weight_bytes_quantized:.3M} MB quantised\n"
    "ranges    {method}\n"
    "{bias_gain_db?biases    {biases_corrected?corrected: {bias_gain_db:.2f} dB less noise in the "
    "outputs|as they were: corrected, outputs had no less noise}\n}"
    "{validation_before?training  right on {validation_before:.2%} of the validation part as 8 "
    "bits, "
    "{best_epoch?{validation_after:.2%} after epoch {best_epoch}|no epoch was better: the weights "
    "stay}\n}"
    "{points_lost?budget    {points_lost:.2f} points lost on {held_back} pictures\n}"
    "{pictures?pictures  {pictures}{agree?, the same answer to {agree:.2%} ({agree_low:.1%} to "
    "{agree_high:.1%})}\n"
    "{output_snr_db?outputs   {output_snr_db:.1f} dB signal to noise\n}"
    "{top1_float?top-1     {top1_float:.2%} float ({top1_float_low:.1%} to {top1_float_high:.1%}), "
    "{top1_quantized:.2%} quantised ({top1_quantized_low:.1%} to {top1_quantized_high:.1%})\n}"
    "time      {ms_float:.3f} ms float, {ms_quantized:.3f} ms quantised a picture\n}");

/* Prints layers and result. */
static cnr_status tell(const cnri_call *call, const cnri_quantising *q, cnr_error *err) {
    const result r = {*q, q->n_layers ? (double)q->n_float / q->n_layers : NAN, q->bias_gain > 0};
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < q->n_layers && !status; i++) {
        const layer l = {q->layers[i], q->layers[i].float_for};
        status = cnri_tell(call, &layer_record, &l, err);
    }
    if (status || !call->common.json) return status ? status : cnri_tell_line(&record, &r, err);
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_fields(&j, &record, &r);
    cnri_json_warnings(&j, q->quantized);
    return cnri_json_print(&j, err);
}

/* Draws the layers' signal-to-noise ratios in dB as a picture to `path`. */
static cnr_status draw(const cnri_call *call, const char *path, const cnri_quantising *q,
                       cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "output", path);
    cnri_json_text(&j, "title", q->net->name);
    cnri_json_list(&j, "rows");
    for (int32_t i = 0; i < q->n_layers; i++) {
        const cnri_quantised_layer *l = &q->layers[i];
        cnri_json_object(&j, NULL);
        cnri_json_text(&j, "name", l->name);
        cnri_json_real(&j, "decibels", l->decibels);
        if (l->float_for) cnri_json_text(&j, "float_for", l->float_for);
        if (!isnan(l->ms[0])) cnri_json_real(&j, "ms_float", l->ms[0]);
        if (!isnan(l->ms[1])) cnri_json_real(&j, "ms_quantized", l->ms[1]);
        cnri_json_end(&j);
    }
    cnri_json_end(&j);
    return cnri_call_script(call, "calls/quantize_chart.lua", &j, NULL, 0, err);
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    const quantize *q = values;
    const char *dot = q->chart ? strrchr(q->chart, '.') : NULL;
    (void)call;
    if (q->chart && (!dot || (strcmp(dot, ".png") != 0 && strcmp(dot, ".svg") != 0)))
        return "--chart: wanted a name that ends with .png or .svg";
    return NULL;
}

/* The command quantize. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    quantize *q = values;
    const cnr_load_options *given = &call->common.load;
    const cnr_load_options how = {.size = sizeof how,
                                  .no_rewrite = given->no_rewrite,
                                  .device = given->device,
                                  .memory_bound = given->memory_bound,
                                  .memory_limit = given->memory_limit,
                                  .deterministic = given->deterministic};
    cnri_quantising done;
    q->o.how = &how;
    cnr_status status = cnri_graph_status(call->graph, true, err);
    if (!status) status = cnri_quantise(call->rt, call->graph, &q->o, cnri_watch(call), &done, err);
    cnri_watch_end(&call->watching);
    if (status) return status;
    status = tell(call, &done, err);
    if (!status && q->chart) status = draw(call, q->chart, &done, err);
    if (!status) status = cnri_store_write(done.quantized, q->out, err); /* nothing else can fail */
    cnri_quantising_free(&done);
    return status;
}

const cnri_command cnri_cmd_quantize = {
    .name = "quantize",
    .example = "cnnrun quantize net.cnr --data FOLDER --max-drop 1 -o net8.cnr",
    .operands = "NET --data SPEC -o OUT.cnr",
    .summary = "Makes layers work on 8-bit whole numbers, with ranges seen on pictures.",
    .details =
        "Told for each layer: its output's range, and signal to noise in decibels against "
        "the float\n"
        "net on some of the pictures. Where a layer's output, or what the net's outputs are "
        "made of,\n"
        "has less than --min-snr, the layers that make the most of that noise stay float; "
        "they may\n"
        "stand far before it. Each is then told with the signal to noise of the value that "
        "it spoiled.\n"
        "--method minmax holds all that was seen; percentile leaves out 0.01% at each end; "
        "mse and kl\n"
        "cut off what costs least in square error, or in information. auto tries these on "
        "the same\n"
        "pictures, keeps the one with the least noise in what the net's outputs are made "
        "of, and cuts\n"
        "nothing off that would cost a value more than a hundredth of its signal.\n"
        "Weights are rounded so that the errors of a row cancel on the pictures. What outputs are "
        "off by on\n"
        "average is taken off the biases where that makes less noise; with --correct-bias as "
        "judged on\n"
        "pictures that are held back as for --max-drop. --equalize helps where some channels hold "
        "far less\n"
        "than others.\n"
        "Both nets are timed here, step by step, as tune does: a layer stays float where 8 "
        "bits do not\n"
        "make the net faster, conversions counted; --all and --deterministic time nothing. "
        "--max-drop\n"
        "asks on every fourth of the --limit pictures, of which nothing else is made (of less "
        "than\n"
        "eight: on all), never on those of --check.\n"
        "--check runs both nets. A warning says that the new one is slower here (by 5% or "
        "more), less\n"
        "accurate (by a point of top-1), gives other answers (more than 5%), or, where "
        "answers are no\n"
        "classes, has outputs below 10 dB. If no answer is the same and there is more noise "
        "than signal,\n"
        "that is an error, and nothing is written. The loaded plugins' rewrites do the work "
        "(cnnrun plugins).",
    .results = CNRI_RESULTS(&layer_record, &record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(quantize,
                .o = {.limit = 100, .check = -1, .least = NAN, .max_drop = NAN, .seed = 1}),
    CNRI_ONE_NET(cnri_call_graph),
    .wrong = wrong,
    .run = run,
};
