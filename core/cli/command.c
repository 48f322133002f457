/* One use of a command: from its words to its exit code. */
#include "core/cli/cli.h"
#include "core/lua/script.h"
#include <unistd.h>

static const void *member(const cnri_option *o, const void *values) {
    return (const char *)values + o->at;
}

static const char *text_at(const cnri_option *o, const void *values) {
    return o->type == CNRI_T_TEXT ? *(const char *const *)member(o, values) : NULL;
}

/* What the command can't do without; its own rules. NULL: nothing is wrong. */
static bool complete(cnri_call *call, const void *values) {
    const cnri_command *c = call->command;
    for (int32_t i = 0; i < c->n_options; i++) {
        const cnri_option *o = &c->options[i];
        const char letter[] = {'-', o->letter, 0};
        if (!o->wanted || text_at(o, values)) continue;
        call->code = cnri_mistake(c->name, NULL, "%s %s is missing: %s",
                                  o->letter ? letter : o->name,
                                  o->argument, o->help);
        return false;
    }
    const char *wrong = c->wrong ? c->wrong(call, values) : NULL;
    if (wrong) call->code = cnri_mistake(c->name, NULL, "%s", wrong);
    return !wrong;
}

static cnr_status check_option(const cnri_option *o, const char *path, const cnri_paths *read,
                               cnr_error *err) {
    const char *const *words = (const char *const *)read->at;
    if (!*path) return cnri_fail(err, CNR_E_ARG, o->name, "wanted a file, got no name");
    char *beside = o->beside ? cnri_beside(path, o->beside) : NULL;
    cnr_status status = cnri_write_check(path, words, read->n, err);
    if (!status && o->beside)
        status = beside ? cnri_write_check(beside, words, read->n, err)
                        : cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    cnri_free(beside);
    return status;
}

/* Files that will be written can be, and are none of those that are read. */
static cnr_status check_written(const cnri_call *call, const void *values, cnr_error *err) {
    const cnri_command *c = call->command;
    const cnri_words *lists[] = {&call->operands, &call->common.settings};
    const char *more[] = {call->common.weights, call->common.labels, call->common.mean};
    cnri_paths read = {0};
    cnr_status status = CNR_OK;
    for (size_t k = 0; k < CNRI_COUNT(more) && !status; k++)
        if (more[k]) status = cnri_paths_add(&read, more[k], err);
    for (size_t k = 0; k < CNRI_COUNT(lists); k++)
        for (int32_t i = 0; i < lists[k]->n && !status; i++)
            status = cnri_paths_add(&read, lists[k]->at[i], err);
    for (int32_t i = 0; i < c->n_options && !status; i++) {
        const cnri_option *o = &c->options[i];
        const char *text = text_at(o, values);
        if (text && !o->writes && (strstr(o->argument, "FILE") || strstr(o->argument, "SPEC")))
            status = cnri_paths_add(&read, text, err);
    }
    for (int32_t i = 0; i < c->n_options && !status; i++)
        if (c->options[i].writes && text_at(&c->options[i], values))
            status = check_option(&c->options[i], text_at(&c->options[i], values), &read, err);
    cnri_paths_free(&read);
    return status;
}

static cnr_status open_all(cnri_call *call, cnr_error *err) {
    const cnri_opens opens = call->command->opens;
    cnr_status status = opens >= CNRI_OPENS_RUNTIME ? cnri_call_open(call, err) : CNR_OK;
    if (!status && opens == CNRI_OPENS_GRAPH) status = cnri_call_graph(call, err);
    if (!status && opens == CNRI_OPENS_MODEL) status = cnri_call_model(call, err);
    return status;
}

/* JSON says so in each object. */
static void tell_clock(const cnri_call *call) {
    if (call->common.json || cnri_clock_is_real()) return;
    cnri_say(stdout, "simulated  times, and what follows from them, are by the clock of %s\n",
             call->common.board ? call->common.board : call->common.clock ? call->common.clock : "a plugin");
    fflush(stdout);
}

static void run(cnri_call *call, void *values) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = check_written(call, values, &err);
    if (!status) status = open_all(call, &err);
    if (!status) status = call->command->run(call, values, &err);
    cnri_watch_end(&call->watching);
    if (!status && call->command->takes & CNRI_NETS) tell_clock(call);
    if (status) call->code = cnri_complain(call, &err);
}

void cnri_call_free(cnri_call *call) {
    cnri_common *c = &call->common;
    cnri_call_ungovern(call);
    cnri_words *all[] = {&c->plugin_dirs, &c->no_rewrite, &c->settings, &c->symbols, &c->kernels,
                         &c->policy_options, &call->operands};
    for (size_t i = 0; i < CNRI_COUNT(all); i++) cnri_vec_free(all[i]);
    cnri_free(call->weights);
    cnri_graph_free(call->graph);
    if (call->rt) cnri_lua_drop(call->rt);
    cnr_close(call->rt);
    cnri_free(call->script);
}

/* In this process's place, with the words it had; returns if that can't be. */
static void begin_again(int argc, char **argv) {
    char name[] = "cnnrun";
    char **words = cnri_alloc(((size_t)argc + 2) * sizeof *words);
    if (!words) return;
    words[0] = name;
    for (int i = 0; i < argc; i++) words[i + 1] = argv[i];
    words[argc + 1] = NULL;
    execv("/proc/self/exe", words);
    cnri_free(words);
}

int cnri_command_run(const cnri_command *command, int argc, char **argv) {
    const cnri_command *c = command;
    cnri_call call = {.command = c, .argc = argc, .argv = argv};
    void *values = cnri_alloc_zero(c->room + 1);
    if (!values) return cnri_mistake(c->name, NULL, "out of memory");
    if (c->usual) memcpy(values, c->usual, c->room);
    if ((!c->leads || c->leads(&call, values)) && cnri_call_parse(&call, values, NULL) &&
        complete(&call, values))
        run(&call, values);
    for (int32_t i = 0; i < c->n_options; i++)
        if (c->options[i].type == CNRI_T_WORDS)
            cnri_vec_free((cnri_words *)(void *)((char *)values + c->options[i].at));
    cnri_call_free(&call);
    cnri_free(values);
    if (call.again) begin_again(argc, argv);
    return call.code;
}
