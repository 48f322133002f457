/* cnnrun compile: writes a net and the plan made for it here into one file. */
#include "cli/cli.h"
#include "lua/script.h"
#include "store/store.h"

/* Options of compile. */
typedef struct compile {
    const char *out;
    int64_t batch;
} compile;
static const cnri_option options[] =
    {CNRI_OPTION(compile, out, "--output", "FILE", "the compiled model to write: NET.cnrp",
                 .letter = 'o', .wanted = true, .writes = true),
     CNRI_OPTION(compile, batch, "--batch", "N", "pictures at a time (1)", .min = 1, .max = 65536)};

/* Result: the compiled file. */
typedef struct compiled {
    const char *file;
    cnri_compiled c;
} compiled;
static const cnri_field fields[] = {CNRI_KEY(compiled, file),
                                    CNRI_KEY_IN(compiled, c, device),
                                    CNRI_KEY_IN(compiled, c, batch),
                                    CNRI_KEY_IN(compiled, c, model_bytes),
                                    CNRI_KEY_IN(compiled, c, blobs),
                                    CNRI_KEY_IN(compiled, c, blob_bytes),
                                    CNRI_KEY_IN(compiled, c, programs),
                                    CNRI_KEY_IN(compiled, c, program_bytes),
                                    CNRI_KEY_IN(compiled, c, ms)};
static const cnri_record record =
    CNRI_RECORD(fields,
                "{file}: for {device}, batch {batch}: the net of {model_bytes:.2M} MB, {blobs} "
                "prepared blob{blobs+s} of {blob_bytes:.2M} MB, {programs} program{programs+s} of "
                "{program_bytes:.2M} MB; {ms:.1f} ms\n");

/* The command compile. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const compile *c = values;
    compiled done = {.file = c->out};
    const char *policy = call->common.load.policy;
    char *file = policy ? cnri_lua_policy_file(policy) : NULL;
    if (policy && !file) return cnri_out_of_memory(err, policy);
    const cnr_status status = cnri_compile(call->model, c->batch, file, c->out, &done.c, err);
    cnri_free(file);
    return status ? status : cnri_tell(call, &record, &done, err);
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    const compile *c = values;
    const cnr_load_options *o = &call->common.load;
    const size_t n = c->out ? strlen(c->out) : 0, tail = strlen(CNRI_COMPILED_SUFFIX);
    if (n <= tail || strcmp(c->out + n - tail, CNRI_COMPILED_SUFFIX) != 0)
        return "-o: want a name that ends in " CNRI_COMPILED_SUFFIX;
    if (o->policy_options && *o->policy_options)
        return "--policy-option does not go with compile: write the setting into the policy";
    return o->symbols && *o->symbols ? "--symbol does not go with compile: its file has the net's "
                                       "usual sizes (--batch)"
                                     : NULL;
}

const cnri_command cnri_cmd_compile = {
    .name = "compile",
    .example = "cnnrun compile scripts/nets/lenet5.lua -o lenet5.cnrp",
    .operands = "NET -o NET.cnrp",
    .summary = "Writes a net, its plan for this machine and its prepared weights to one file.",
    .details =
        "cnnrun NET.cnrp PICTURE runs it without planning, preparing or compiling anything, and "
        "so do all\ncommands, cnr_load and scripts. Options given here come with the file. Where "
        "the machine, the\nprogram or the options are others, it says what does not fit and plans "
        "anew, of the net that the\nfile holds. Kernels take what is prepared as it is, so trust "
        "such a file as you trust a program.",
    .results = CNRI_RESULTS(&record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(compile, .batch = 1),
    CNRI_ONE_NET(cnri_call_model),
    .wrong = wrong,
    .run = run,
};
