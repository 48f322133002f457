/* cnnrun convert: writes any net as a native file, on request with its weights in another
 * encoding. */
#include "cli/cli.h"
#include "store/store.h"
#include "people/people.h"

/* Options of convert. */
typedef struct convert {
    const char *out, *encode, *layers;
} convert;

static const cnri_option options[] =
    {CNRI_OPTION(convert, out, "--output", "FILE", "the native file to write", .letter = 'o',
                 .wanted = true, .writes = true),
     CNRI_OPTION(convert, encode, "--encode", "NAME[:OPTION=VALUE,..]",
                 "store weights in this encoding where a kernel reads it and it pays"),
     CNRI_OPTION(convert, layers, "--layers", "GLOB", "only in layers of these names (*)")};

/* Encodes the weights of the graph in place, by --encode and --layers; *done: what became of
 * them. */
static cnr_status encode(const convert *c, cnr_graph *graph, cnri_encoded *done, cnr_error *err) {
    cnri_encode_options o = {.layers = c->layers};
    cnr_attr **settings;
    cnr_status status = cnri_encoding_parse(c->encode, &o.encoding, &settings, err);
    o.settings = (const cnr_attr *const *)settings;
    if (!status) status = cnri_encode_weights(graph, &o, done, err);
    cnri_free(settings);
    return status;
}

static const cnri_field fields[] = {CNRI_KEY(cnri_encoded_layer, layer),
                                    CNRI_KEY(cnri_encoded_layer, weight),
                                    CNRI_KEY(cnri_encoded_layer, encoded),
                                    CNRI_MAYBE(cnri_encoded_layer, "kept", kept),
                                    CNRI_FIELD(cnri_encoded_layer, "bytes_before", before),
                                    CNRI_FIELD(cnri_encoded_layer, "bytes_after", after),
                                    CNRI_MAYBE(cnri_encoded_layer, "kernel", kernel),
                                    CNRI_KEY(cnri_encoded_layer, pays)};
static const cnri_record record =
    CNRI_RECORD(fields,
                "{layer:-24} {encoded?encoded|left   }  {bytes_before:10} to {bytes_after:10} bytes"
                "{kept?, {kept:.1%} of the numbers}, pays in {pays}{kernel?: {kernel}}\n");

/* Notes in *done which kernels use the encoded layers, by planning. A net that can't be planned
 * here is no error; only out of memory is. */
static cnr_status judge(cnri_call *call, cnri_encoded *done, cnr_error *err) {
    cnr_plan *plan = NULL;
    cnr_status status = cnri_call_model_of_graph(call, err);
    if (!status) status = cnri_plan_default_sizes(call->model, 1, false, &plan, err);
    if (!status) cnri_encoded_judge(done, plan);
    cnri_plan_free(plan);
    return status == CNR_E_MEMORY ? status : CNR_OK;
}

/* Prints what became of each weight. */
static cnr_status tell(cnri_call *call, const convert *c, cnri_encoded *done, cnr_error *err) {
    cnr_status status = judge(call, done, err);
    for (int32_t i = 0; i < done->n_layers && !status; i++)
        status = cnri_tell(call, &record, &done->layers[i], err);
    if (!status && !call->common.quiet)
        cnri_say(stderr, "%s: %d weights in another encoding, %llu bytes instead of %llu\n", c->out,
                 done->encoded, (unsigned long long)done->after, (unsigned long long)done->before);
    return status;
}

/* The command convert. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const convert *c = values;
    cnri_encoded done = {0};
    cnr_status status = cnri_graph_status(call->graph, true, err);
    if (!status && c->encode) status = encode(c, call->graph, &done, err);
    if (!status) status = cnri_store_write(call->graph, c->out, err);
    if (!status && done.n_layers) status = tell(call, c, &done, err);
    cnri_encoded_free(&done);
    return status;
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    const convert *c = values;
    (void)call;
    return c->layers && !c->encode ? "--layers goes with --encode" : NULL;
}

const cnri_command cnri_cmd_convert = {
    .name = "convert",
    .example = "cnnrun convert net.cnr -o sparse.cnr --encode sparse-csr",
    .operands = "NET -o OUT.cnr",
    .summary = "Writes any net that can be loaded to the native file.",
    .details =
        "cnnrun plugins lists the encodings. A layer is encoded where that takes fewer bytes, or "
        "where\n--layers names it; told for each: the part of its numbers that is stored, its "
        "bytes, the kernel\nthat reads them as they are (else they are decoded first), and what "
        "that pays in.\nsparse-csr:keep=0.1 keeps a tenth; block=4, values=f16, int8 or shared "
        "(bits=5), code=zstd.",
    .results = CNRI_RESULTS(&record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(convert, .out = NULL),
    CNRI_ONE_NET(cnri_call_graph),
    .wrong = wrong,
    .run = run,
};
