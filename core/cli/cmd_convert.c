/* cnnrun convert: any net to the native file, its weights in another encoding if asked. */
#include "core/cli/cli.h"
#include "core/store/store.h"

typedef struct convert { const char *out, *encode, *layers; } convert;

static const cnri_option options[] = {
    CNRI_OPTION(convert, out, "--output", "FILE", "the native file to write", .letter = 'o',
                .wanted = true, .writes = true),
    CNRI_OPTION(convert, encode, "--encode", "NAME[:OPTION=VALUE,..]",
                "store weights in this encoding where a kernel reads it"),
    CNRI_OPTION(convert, layers, "--layers", "GLOB", "only in layers of such names (*)")};

static cnr_status encode(const convert *c, cnr_graph *graph, cnri_encoded *done, cnr_error *err) {
    cnri_encode_options o = {.layers = c->layers};
    cnr_attr **settings;
    cnr_status status = cnri_encoding_parse(c->encode, &o.encoding, &settings, err);
    o.settings = (const cnr_attr *const *)settings;
    if (!status) status = cnri_encode_weights(graph, &o, done, err);
    cnri_free(settings);
    return status;
}

static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const convert *c = values;
    cnri_encoded done = {0};
    cnr_status status = cnri_graph_verdict(call->graph, true, err);
    if (!status && c->encode) status = encode(c, call->graph, &done, err);
    if (!status) status = cnri_store_write(call->graph, c->out, err);
    if (!status && done.encoded && !call->common.quiet)
        cnri_say(stderr, "%s: %d weights in another encoding, %llu bytes instead of %llu\n", c->out,
                 done.encoded, (unsigned long long)done.after, (unsigned long long)done.before);
    return status;
}

static const char *wrong(const cnri_call *call, const void *values) {
    const convert *c = values;
    (void)call;
    return c->layers && !c->encode ? "--layers goes with --encode" : NULL;
}

const cnri_command cnri_cmd_convert = {
    .name = "convert", .operands = "NET -o OUT.cnr",
    .summary = "Writes any net that can be loaded to the native file.",
    .details = "cnnrun plugins lists the encodings.",
    CNRI_OPTIONS(options), CNRI_VALUES(convert, .out = NULL),
    CNRI_ONE_NET(CNRI_OPENS_GRAPH),
    .wrong = wrong, .run = run,
};
