/* cnnrun prune: prunes a net by a schedule, a script of scripts/prune, and trains in between. */
#include "cli/cli.h"
#include "lua/script.h"
#include <unistd.h>

/* Options of prune. */
typedef struct prune {
    const char *data, *output, *folder, *test;
    double validation;
    int64_t validation_seed, limit, seed;
    bool no_scan, restart;
} prune;
/* A row of the table of options. */
#define ROW(member, name, ...) CNRI_OPTION(prune, member, name, __VA_ARGS__)
static const cnri_option options[] =
    {ROW(data, "--data", "SPEC",
         "labelled pictures to train on and judge by; words behind vary them: "
         "mnist:DIR,shift=2",
         .wanted = true),
     ROW(output, "--output", "FILE", "the .cnr to write", .letter = 'o', .wanted = true,
         .writes = true),
     ROW(folder, "--folder", "DIR",
         "folder of intermediate results and the report (FILE's name with .pruning)"),
     ROW(validation, "--validation", "X",
         "the part of the pictures that rates and epochs are judged by, or "
         "their number (0.1)",
         .min = 1e-9, .max = 1e15),
     ROW(validation_seed, "--validation-seed", "N", "seed that selects them (1)", .max = 1e15),
     ROW(limit, "--limit", "N", "only the first N pictures (all)", .min = 1, .max = 1e15),
     ROW(test, "--eval", "SPEC",
         "pictures for the test, which is looked at once, at the end (the same "
         "source's eval split; \"\": none)"),
     ROW(seed, "--seed", "N", "seed of order and variations (1)", .max = 1e15),
     ROW(no_scan, "--no-scan", NULL, "skip the scan, if the schedule names all shares"),
     ROW(restart, "--restart", NULL, "begin again and ignore earlier results in the folder")};
#undef ROW

/* Path of the schedule that a word names, which may be a shipped one; free with cnri_free; NULL:
 * there is none. */
static char *schedule_of(const char *word) {
    if (access(word, R_OK) == 0) return cnri_strdup(word);
    char *file = strchr(word, '/') ? NULL : cnri_format("prune/%s.lua", word);
    char *path = file ? cnri_lua_shipped(file) : NULL;
    cnri_free(file);
    return path;
}

/* An option of the command as a named argument of the schedule; it borrows the text. */
static cnri_lua_named named_of(const cnri_option *o, const prune *p) {
    const void *at = (const char *)p + o->at;
    cnri_lua_named named = {.name = o->name + 2};
    if (o->type == CNRI_T_TEXT) named.text = *(const char *const *)at;
    else if (o->type == CNRI_T_REAL) named.number = *(const double *)at;
    else if (o->type == CNRI_T_BOOL) named.number = *(const bool *)at;
    else named.number = (double)*(const int64_t *)at;
    return named;
}

/* Runs a schedule's script with the options as arguments. */
static cnr_status run_schedule(cnri_call *call, const char *path, const prune *p,
                               const cnr_load_options *load, cnr_error *err) {
    enum { OWN = CNRI_COUNT(options) };
    cnri_lua_named named[OWN + 3] = {{.name = "json", .number = call->common.json},
                                     {.name = "quiet", .number = call->common.quiet}};
    for (int32_t i = 0; i < OWN; i++) named[i + 2] = named_of(&options[i], p);
    const cnri_lua_rights rights = {.trust = call->common.trust,
                                    .output = p->folder,
                                    .cancelled = cnri_cancelled,
                                    .watch = cnri_watch_script(call),
                                    .named = named,
                                    .load = load};
    cnri_lua_program *program = NULL;
    cnr_status status =
        cnri_lua_open(call->rt, path, 1, (char **)call->operands.at, &rights, &program, err);
    if (!status && !cnri_lua_is_main(program))
        status = cnri_fail(err, CNR_E_SCRIPT, path, "is no schedule: it returns no function");
    if (!status) {
        cnri_signals_patient(); /* a file that is being written is written to its end */
        status = cnri_lua_main(program, &call->code, err);
    }
    cnri_lua_close(program);
    return status;
}

/* The command prune. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    prune *p = values;
    const char *named = call->operands.at[1];
    char *path = schedule_of(named),
         *folder = p->folder ? NULL : cnri_path_with_ending(p->output, ".pruning");
    cnri_loading l = {0};
    cnr_status status = path ? cnri_call_loading(call, &l, err)
                             : cnri_fail(err, CNR_E_NOT_FOUND, named,
                                         "no such schedule, nor among the installed ones of "
                                         "scripts/prune");
    if (folder) p->folder = folder;
    if (!status && !p->folder) status = cnri_out_of_memory(err, named);
    if (!status) status = run_schedule(call, path, p, &l.options, err);
    cnri_loading_free(&l);
    cnri_free(path);
    cnri_free(folder);
    return status;
}

/* Refuses options of loading, because the schedule loads nets by itself, also from files that it
 * writes; NULL: there are none. */
static const char *wrong(const cnri_call *call, const void *values) {
    const cnri_common *c = &call->common;
    (void)values;
    if (cnri_call_prepares(c) || c->load.labels || c->load.import_options || c->load.symbols)
        return "the net is taken as it is: options that say how pictures become its input, and "
               "--labels, --import-option and --symbol have no place here; they go into a .cnr "
               "first: cnnrun import, cnnrun convert";
    if (c->load.net || c->load.no_rewrite || c->load.memory_bound || c->load.cache)
        return "nets change on the way: --net, --no-rewrite, --memory and --cache have no place "
               "here";
    return NULL;
}

const cnri_command cnri_cmd_prune = {
    .name = "prune",
    .example = "cnnrun prune net.cnr lenet5 --data mnist:DIR -o small.cnr",
    .operands = "NET SCHEDULE --data SPEC -o FILE",
    .summary =
        "Prunes a net by a schedule: cuts weights, trains on with what is cut held at 0, in turns.",
    .details = "A schedule is a Lua file, or the name of one of the installed scripts/prune: "
               "lenet5, alexnet,\n"
               "gradual, saliency, movement, taylor, ticket, blocks, channels; its README tells "
               "what they may\n"
               "say. It is checked whole before any work. First each layer is pruned alone, to 95% "
               "and on to\n"
               "5%, to see what it can lose; all that is decided is decided by a part of the "
               "pictures that is\n"
               "not trained on. DIR gets scan.csv, steps.csv, their pictures, weights before and "
               "after, and\n"
               "report.html; and what was worked out so far, so that whoever was stopped or killed "
               "goes on\n"
               "there, and a corrected schedule with what still follows from it. JSON: {\"scan\", "
               "\"keep\",\n"
               "\"accuracy\", \"loss\"} of each layer and share, {\"step\", \"kept\", \"cut\", "
               "\"accuracy\", \"loss\"} of each\n"
               "step (cut: before training), and at the end {\"output\", \"kept\", \"bytes\", "
               "\"validation\", \"test\",\n"
               "\"tested\", \"ms\", \"arena_bytes\", \"joules\", \"report\" ...}, with NAME_dense "
               "for the net as it was.",
    CNRI_OPTIONS(options),
    CNRI_VALUES(prune, .data = NULL),
    .min_operands = 2,
    .max_operands = 2,
    .takes = CNRI_NETS | CNRI_PICTURES | CNRI_GROUP,
    .opens = cnri_call_open,
    .wrong = wrong,
    .run = run,
};
