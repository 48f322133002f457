/* cnnrun prune: cuts a net's weights by a schedule, a script of scripts/prune, and trains on in between. */
#include "core/cli/cli.h"
#include "core/lua/script.h"
#include <unistd.h>

typedef struct prune {
    const char *data, *output, *folder, *test;
    double validation;
    int64_t validation_seed, limit, seed;
    bool no_scan, restart;
} prune;
#define ROW(member, name, ...) CNRI_OPTION(prune, member, name, __VA_ARGS__)
static const cnri_option options[] = {
    ROW(data, "--data", "SPEC", "labelled pictures to train on and judge by; words behind vary them: "
        "mnist:DIR,shift=2", .wanted = true),
    ROW(output, "--output", "FILE", "the .cnr to write", .letter = 'o', .wanted = true,
        .writes = true),
    ROW(folder, "--folder", "DIR", "where work is kept, and the report (FILE's name with .pruning)"),
    ROW(validation, "--validation", "X", "the part of the pictures that rates and epochs are judged by, or "
        "their number (0.1)", .min = 1e-9, .max = 1e15),
    ROW(validation_seed, "--validation-seed", "N", "which they are (1)", .max = 1e15),
    ROW(limit, "--limit", "N", "only the first N pictures (all)", .min = 1, .max = 1e15),
    ROW(test, "--eval", "SPEC", "pictures for the test, which is looked at once, at the end (the same "
        "source's eval split; \"\": none)"),
    ROW(seed, "--seed", "N", "of order and variations (1)", .max = 1e15),
    ROW(no_scan, "--no-scan", NULL, "leave the scan out, where the schedule names all shares"),
    ROW(restart, "--restart", NULL, "begin anew, whatever the folder holds")};
#undef ROW

/* The schedule that a word names, one that ships too: cnri_free; NULL: none. */
static char *schedule_of(const char *word) {
    if (access(word, R_OK) == 0) return cnri_strdup(word);
    char *file = strchr(word, '/') ? NULL : cnri_format("prune/%s.lua", word);
    char *path = file ? cnri_lua_shipped(file) : NULL;
    cnri_free(file);
    return path;
}

typedef struct words {
    CNRI_VEC(char *) at;
    bool failed;
} words;

/* Owned. NULL: memory was missing. */
static void add(words *w, char *text) {
    char **slot = text ? cnri_push(&w->at) : NULL;
    if (slot) *slot = text;
    else cnri_free(text);
    w->failed = w->failed || !slot;
}

static void add_text(words *w, const char *flag, const char *text) {
    if (!text) return;
    add(w, cnri_strdup(flag));
    add(w, cnri_strdup(text));
}

static void add_whole(words *w, const char *flag, int64_t n) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)n);
    if (n) add_text(w, flag, number);
}

static void add_words(words *w, const char *flag, const cnri_words *texts) {
    for (int32_t i = 0; i < texts->n; i++) add_text(w, flag, texts->at[i]);
}

static void add_flag(words *w, const char *flag, bool on) {
    if (on) add(w, cnri_strdup(flag));
}

/* What the script reads by lib.args: paths among its words are those it may touch. */
static void take_words(const cnri_call *call, const prune *p, const char *folder, words *w) {
    const cnri_common *c = &call->common;
    char part[40] = "";
    if (p->validation > 0) cnri_print_double(part, sizeof part, p->validation);
    add(w, cnri_strdup(call->operands.at[0]));
    add_text(w, "--data", p->data);
    add_text(w, "--output", p->output);
    add_text(w, "--folder", folder);
    add_text(w, "--weights", c->weights);
    add_text(w, "--weights-type", c->weights_type);
    add_text(w, "--arithmetic", c->arithmetic);
    add_text(w, "--device", c->device);
    add_text(w, "--devices", c->devices);
    add_text(w, "--fallback", c->fallback);
    add_words(w, "--kernel", &c->kernels);
    add_text(w, "--policy", c->policy);
    add_words(w, "--policy-option", &c->policy_options);
    add_whole(w, "--memory-limit", (int64_t)c->memory_limit);
    add_flag(w, "--deterministic", c->deterministic);
    add_flag(w, "--no-verify", c->no_verify);
    add_text(w, "--validation", *part ? part : NULL);
    add_whole(w, "--validation-seed", p->validation_seed);
    add_whole(w, "--limit", p->limit);
    add_whole(w, "--seed", p->seed);
    add_text(w, "--eval", p->test);
    add_flag(w, "--no-scan", p->no_scan);
    add_flag(w, "--restart", p->restart);
    add_flag(w, "--json", c->json);
    add_flag(w, "--quiet", c->quiet);
}

static cnr_status run_schedule(cnri_call *call, const char *path, const words *w, const char *folder,
                               cnr_error *err) {
    const cnri_lua_rights rights = {call->common.trust, folder, cnri_cancelled, cnri_watch(call)};
    cnri_lua_program *program = NULL;
    cnr_status status = cnri_lua_open(call->rt, path, w->at.n, w->at.at, &rights, &program, err);
    if (!status && !cnri_lua_is_main(program))
        status = cnri_fail(err, CNR_E_SCRIPT, path, "is no schedule: it returns no function");
    if (!status) {
        cnri_signals_patient(); /* a file that is being written is written to its end */
        status = cnri_lua_main(program, &call->code, err);
    }
    cnri_lua_close(program);
    return status;
}

static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const prune *p = values;
    const char *named = call->operands.at[1];
    char *path = schedule_of(named), *folder = p->folder ? cnri_strdup(p->folder)
                                                         : cnri_beside(p->output, ".pruning");
    words w = {0};
    cnr_status status = CNR_OK;
    take_words(call, p, folder ? folder : "", &w);
    if (!path)
        status = cnri_fail(err, CNR_E_NOT_FOUND, named, "no such schedule, nor among the installed ones of "
                           "scripts/prune");
    if (!status && (!folder || w.failed)) status = cnri_fail(err, CNR_E_MEMORY, named, "out of memory");
    if (!status) status = run_schedule(call, path, &w, folder, err);
    for (int32_t i = 0; i < w.at.n; i++) cnri_free(w.at.at[i]);
    cnri_vec_free(&w.at);
    cnri_free(path);
    cnri_free(folder);
    return status;
}

/* The schedule loads nets by itself, from files that it writes as well. */
static const char *wrong(const cnri_call *call, const void *values) {
    const cnri_common *c = &call->common;
    (void)values;
    if (c->preset || c->resize || c->crop || c->mean || c->std || c->scale || c->channels || c->letterbox ||
        c->labels || c->settings.n || c->symbols.n)
        return "the net is taken as it is; how pictures become its input, labels, settings and sizes go into "
               "a .cnr first: cnnrun import, cnnrun convert";
    if (c->net || c->no_rewrite.n || c->memory || c->cache)
        return "nets change on the way: --net, --no-rewrite, --memory and --cache have no place here";
    return NULL;
}

const cnri_command cnri_cmd_prune = {
    .name = "prune", .operands = "NET SCHEDULE --data SPEC -o FILE",
    .summary = "Prunes a net by a schedule: cuts weights, trains on with what is cut held at 0, in turns.",
    .details =
        "A schedule is a Lua file, or the name of one of the installed scripts/prune: lenet5, alexnet,\n"
        "gradual, saliency, blocks, channels; its README tells what they may say. First each layer is\n"
        "pruned alone, to 95% and on to 5%, to see what it can lose; all that is decided is decided by a\n"
        "part of the pictures that is not trained on. DIR gets scan.csv, steps.csv, their pictures, weights\n"
        "before and after, and report.html; and what was worked out so far, so that whoever was stopped\n"
        "or killed goes on there. JSON: {\"scan\", \"keep\", \"accuracy\", \"loss\"} of each layer and share,\n"
        "{\"step\", \"kept\", \"cut\", \"accuracy\", \"loss\"} of each step (cut: before training), and at the\n"
        "end {\"output\", \"kept\", \"bytes\", \"validation\", \"test\", \"tested\", \"ms\", \"arena_bytes\",\n"
        "\"joules\", \"report\" ...}, with NAME_dense for the net as it was.",
    CNRI_OPTIONS(options), CNRI_VALUES(prune, .data = NULL),
    .min_operands = 2, .max_operands = 2,
    .takes = CNRI_NETS | CNRI_PICTURES, .opens = CNRI_OPENS_RUNTIME, .wrong = wrong, .run = run,
};
