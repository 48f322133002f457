/* Applications: scripts that say which options they take. The program parses these with its own, by
 * one parser, and hands the values to the script. */
#include "cli/cli.h"
#include "lua/script.h"
#include <math.h>
#include <unistd.h>

/* The value of one option of the application. */
typedef union slot {
    bool flag;
    int64_t whole;
    double real;
    const char *text;
    const char *const *list;
} slot;

/* An application script and its command line. */
typedef struct application {
    cnri_lua_application says;
    cnri_command command;
    cnri_option *options;
    slot *values; /* by option, in the order of the application's list */
    char *name;
    CNRI_VEC(cnri_lua_named) named;
    cnri_loading loading;
    cnri_lua_rights rights;
} application;

/* Frees options, values, texts and the description. */
static void application_free(application *a) {
    for (int32_t i = 0; a->values && i < a->command.n_options; i++)
        if (a->options[i].type == CNRI_T_LIST) cnri_free((void *)a->values[i].list);
    cnri_loading_free(&a->loading);
    cnri_vec_free(&a->named);
    cnri_free(a->options);
    cnri_free(a->values);
    cnri_free(a->name);
    cnri_lua_application_free(&a->says);
}

/* ---- the command ---- */

/* The name of an application, for cnri_free: "detect" for "scripts/apps/detect.lua". */
static char *name_of(const char *path) {
    const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
    return cnri_format("%.*s", (int)strcspn(from, "."), from);
}

/* Turns an option that a script declares into option i of the command line, which borrows its
 * texts. */
static cnri_option option_of(const cnri_lua_flag *flag, int32_t i) {
    cnri_option o = {.name = flag->name,
                     .argument = flag->argument,
                     .help = flag->refused ? NULL
                             : flag->help  ? flag->help
                                           : "",
                     .letter = flag->letter,
                     .refused = flag->refused,
                     .at = (size_t)i * sizeof(slot)};
    if (flag->repeats) o.type = CNRI_T_LIST;
    else if (!flag->argument) o.type = CNRI_T_BOOL;
    else if (strcmp(flag->argument, "NUMBER") == 0 || strcmp(flag->argument, "SECONDS") == 0)
        o.type = CNRI_T_REAL;
    else if (strcmp(flag->argument, "COUNT") == 0) {
        o.type = CNRI_T_I64;
        o.max = 1e9;
    } else o.type = CNRI_T_TEXT;
    return o;
}

/* Value of an option that was not given, by its type: NaN, CNRI_NONE or NULL. */
static slot default_of(const cnri_option *o) {
    if (o->type == CNRI_T_REAL) return (slot){.real = NAN};
    if (o->type == CNRI_T_I64) return (slot){.whole = CNRI_NONE};
    return (slot){.text = NULL};
}

/* Builds the command from what the script says of itself. */
static cnr_status build(application *a, const char *path, cnr_error *err) {
    const cnri_lua_application *s = &a->says;
    const int32_t n = s->flags.n;
    a->name = name_of(path);
    a->options = cnri_alloc_zero((size_t)(n + 1) * sizeof *a->options);
    a->values = cnri_alloc_zero((size_t)(n + 1) * sizeof *a->values);
    if (!a->name || !a->options || !a->values) return cnri_out_of_memory(err, path);
    for (int32_t i = 0; i < n; i++) {
        a->options[i] = option_of(&s->flags.at[i], i);
        a->values[i] = default_of(&a->options[i]);
    }
    const bool takes_nets = s->nets || s->pictures;
    a->command =
        (cnri_command){.name = a->name,
                       .operands = s->operands ? s->operands : "",
                       .summary = s->about ? s->about : "",
                       .example = s->example,
                       .details = s->details,
                       .options = a->options,
                       .n_options = n,
                       .min_operands = s->min_operands,
                       .max_operands = s->max_operands,
                       .takes = (takes_nets ? CNRI_NETS : 0u) | (s->pictures ? CNRI_PICTURES : 0u),
                       .without = s->without};
    return CNR_OK;
}

/* ---- options that stood before the application's name ---- */

/* Copies the lists of common options. False: out of memory. */
static bool take_lists(cnri_common *to, const cnri_common *from) {
    to->plugin_dirs = (cnri_words){0};
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++)
        if (cnri_load_options[i].kind >= CNRI_LOAD_LIST)
            *(void **)(void *)((char *)&to->load + cnri_load_options[i].at) = NULL;
    for (int32_t i = 0; i < from->plugin_dirs.n; i++) {
        const char **at = cnri_push(&to->plugin_dirs);
        if (!at) return false;
        *at = from->plugin_dirs.at[i];
    }
    if (to->plugin_dirs.n && !cnri_push(&to->plugin_dirs)) return false; /* ends in a NULL */
    if (to->plugin_dirs.n) to->plugin_dirs.n--;
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const size_t at = cnri_load_options[i].at;
        const char *const *const *had = (const void *)((const char *)&from->load + at);
        const char *const **list = (void *)((char *)&to->load + at);
        if (cnri_load_options[i].kind < CNRI_LOAD_LIST) continue;
        for (const char *const *word = *had; word && *word; word++)
            if (!cnri_list_add(list, *word)) return false;
    }
    return true;
}

/* ---- what the script gets ---- */

/* Adds a named argument to those of main; without memory it is dropped, and the caller notices. */
static void add(application *a, cnri_lua_named row) {
    cnri_lua_named *at = cnri_push(&a->named);
    if (at) *at = row;
}

/* Adds a text, unless it is NULL. */
static void add_text(application *a, const char *name, const char *text) {
    if (text) add(a, (cnri_lua_named){.name = name, .text = text});
}

/* Adds a number. */
static void add_number(application *a, const char *name, double value) {
    add(a, (cnri_lua_named){.name = name, .number = value, .is_zero = value == 0});
}

/* Adds the value of an option as named arguments, if it was given. */
static void add_value(application *a, const cnri_option *o, const slot *v) {
    const char *name = o->name + 2;
    if (o->type == CNRI_T_LIST)
        for (const char *const *word = v->list; word && *word; word++)
            add(a, (cnri_lua_named){.name = name, .text = *word, .is_item = true});
    else if (o->type == CNRI_T_TEXT) add_text(a, name, v->text);
    else if (o->type == CNRI_T_BOOL && v->flag)
        add(a, (cnri_lua_named){.name = name, .is_flag = true});
    else if (o->type == CNRI_T_REAL && !isnan(v->real)) add_number(a, name, v->real);
    else if (o->type == CNRI_T_I64 && v->whole != CNRI_NONE) add_number(a, name, (double)v->whole);
}

/* Collects all named arguments of the script's main: options, common options and output. */
static cnr_status gather(application *a, const cnri_call *call, const char *output,
                         cnr_error *err) {
    static const char *const orders[] = {NULL, "rgb", "bgr", "gray"};
    const cnri_common *c = &call->common;
    const int64_t before = cnri_alloc_failures();
    for (int32_t i = 0; i < a->command.n_options; i++) add_value(a, &a->options[i], &a->values[i]);
    if (c->json) add(a, (cnri_lua_named){.name = "json", .is_flag = true});
    if (c->quiet) add(a, (cnri_lua_named){.name = "quiet", .is_flag = true});
    if (c->threads > 0) add_number(a, "threads", (double)c->threads);
    const cnri_step_words steps[] = {{"--preset", c->preset},
                                     {"--resize", c->resize},
                                     {"--crop", c->crop},
                                     {"--mean", c->mean},
                                     {"--std", c->std},
                                     {"--scale", c->scale},
                                     {"--channels", orders[c->channels]},
                                     {"--letterbox", c->letterbox}};
    for (size_t i = 0; a->says.pictures && i < CNRI_COUNT(steps); i++)
        add_text(a, steps[i].option + 2, steps[i].text);
    add(a, (cnri_lua_named){.name = NULL});
    const cnr_status status = cnri_call_loading(call, &a->loading, err);
    a->rights =
        (cnri_lua_rights){.output = output,
                          .named = a->named.at,
                          .load = a->says.nets || a->says.pictures ? &a->loading.options : NULL};
    return cnri_alloc_verdict(before, status, a->name, err) ? CNR_E_MEMORY : status;
}

/* ---- running ---- */

/* Closes the program *p and its runtime, opens a runtime as the options behind the name say, and
 * runs the script's top level again in it, as *p. */
static cnr_status open_again(cnri_call *early, cnri_call *call, cnri_lua_program **p,
                             const char *path, const cnri_lua_rights *rights, cnr_error *err) {
    cnri_lua_close(*p);
    *p = NULL;
    if (early->closes) early->closes(early);
    cnr_close(early->rt);
    early->rt = NULL;
    early->closes = NULL;
    const cnr_status status = cnri_call_open(call, err);
    return status ? status
                  : cnri_lua_open(call->rt, path, call->argc - 1, call->argv + 1, rights, p, err);
}

/* Runs main with the arguments; opens the runtime anew if options ask for it. */
static cnr_status run(application *a, cnri_call *early, cnri_call *call, cnri_lua_program **p,
                      const char *path, const char *output, cnr_error *err) {
    const cnri_lua_rights rights = {.trust = call->common.trust,
                                    .output = output,
                                    .cancelled = cnri_cancelled,
                                    .watch = cnri_watch_script(call)};
    cnr_status status = CNR_OK;
    if (cnri_call_reopen(early, call)) {
        status = open_again(early, call, p, path, &rights, err);
    } else {
        call->rt = early->rt;
        call->governing = early->governing;
        call->closes = early->closes;
        early->rt = NULL;
        early->governing = NULL;
        early->closes = NULL;
        status = cnri_call_open(call, err); /* --governor behind the name */
    }
    if (!status && a->says.pictures) status = cnri_call_weights(call, err);
    if (!status) status = gather(a, call, output, err);
    if (status) return status;
    const int32_t words = call->next_operand > 1 ? call->next_operand - 1 : 0;
    char **argv = (char **)call->operands.at;
    if (words) /* they are --weights now */
        memmove(argv + 1, argv + 1 + words, (size_t)(call->operands.n - 1 - words) * sizeof *argv);
    status = cnri_lua_give(*p, call->operands.n - words, argv, &a->rights, err);
    cnri_signals_patient(); /* a file that is being written is written to its end */
    return status ? status : cnri_lua_main(*p, &call->code, err);
}

/* True if -h or --help is among the words. */
static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

int cnri_application_run(cnri_call *early, cnri_lua_program *p, const char *path,
                         const char *output, int argc, char **argv) {
    application a = {0};
    cnr_error err = CNR_ERROR_INIT;
    cnri_call call = {.command = early->command, .argc = argc, .argv = argv};
    cnr_status status = cnri_lua_application_read(p, wants_help(argc, argv), &a.says, &err);
    if (!status) status = build(&a, path, &err);
    if (!status) {
        call.command = &a.command;
        call.common = early->common;
        if (!take_lists(&call.common, &early->common)) status = cnri_out_of_memory(&err, path);
    }
    const bool go_on = !status && cnri_call_parse(&call, a.values, NULL);
    if (go_on) status = run(&a, early, &call, &p, path, output, &err);
    cnri_watch_end(&call.watching);
    if (status == CNR_E_CANCELLED) *err.where = 0; /* the script's path says nothing */
    if (status) call.code = cnri_complain(&call, &err);
    cnri_lua_close(p);
    const int code = call.code;
    cnri_call_free(&call);
    application_free(&a);
    return code;
}
