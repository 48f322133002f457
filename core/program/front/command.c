/* One use of a command, from its words to its exit code. */
#include "front/front.h"
#include "people/people.h"
#include <errno.h>
#include <time.h>
#include <unistd.h>

char *cnri_path_with_ending(const char *path, const char *ending) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return cnri_format("%.*s%s", (int)(dot ? dot - path : (ptrdiff_t)strlen(path)), path, ending);
}

/* Address of an option's value. */
static const void *member(const cnri_option *o, const void *values) {
    return (const char *)values + o->at;
}

/* Text of an option; NULL: not given, or no text. */
static const char *text_at(const cnri_option *o, const void *values) {
    return o->type == CNRI_T_TEXT ? *(const char *const *)member(o, values) : NULL;
}

/* Checks that required options are given, and the command's own rules. True: nothing is wrong. */
static bool complete(cnri_call *call, const void *values) {
    const cnri_command *c = call->command;
    for (int32_t i = 0; i < c->n_options; i++) {
        const cnri_option *o = &c->options[i];
        const char letter[] = {'-', o->letter, 0};
        if (!o->wanted || text_at(o, values)) continue;
        call->code = cnri_mistake(c->name, NULL, "%s %s is missing: %s",
                                  o->letter ? letter : o->name, o->argument, o->help);
        return false;
    }
    const char *wrong = c->wrong ? c->wrong(call, values) : NULL;
    if (wrong) call->code = cnri_mistake(c->name, NULL, "%s", wrong);
    return !wrong;
}

/* Checks that the file of an option can be written, and that it is none of those read. */
static cnr_status check_option(const cnri_option *o, const char *path, const cnri_paths *read,
                               cnr_error *err) {
    const char *const *words = (const char *const *)read->at;
    if (!*path) return cnri_fail(err, CNR_E_ARG, o->name, "wanted a file, got no name");
    char *beside = o->beside ? cnri_path_with_ending(path, o->beside) : NULL;
    cnr_status status = cnri_write_check(path, words, read->n, err);
    if (!status && o->beside)
        status =
            beside ? cnri_write_check(beside, words, read->n, err) : cnri_out_of_memory(err, path);
    cnri_free(beside);
    return status;
}

/* Checks that output files can be written and are none of the input files. */
static cnr_status check_written(const cnri_call *call, const void *values, cnr_error *err) {
    const cnri_command *c = call->command;
    const cnr_load_options *load = &call->common.load;
    cnri_paths read = {0};
    cnr_status status = CNR_OK;
    if (call->common.mean) status = cnri_paths_add(&read, call->common.mean, err);
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS && !status; i++) {
        const void *at = (const char *)load + cnri_load_options[i].at;
        const bool file = cnri_load_options[i].kind == CNRI_LOAD_FILE && *(const char *const *)at;
        if (file) status = cnri_paths_add(&read, *(const char *const *)at, err);
    }
    for (const char *const *at = load->import_options; at && *at && !status; at++)
        status = cnri_paths_add(&read, *at, err);
    for (int32_t i = 0; i < call->operands.n && !status; i++)
        status = cnri_paths_add(&read, call->operands.at[i], err);
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

/* Says that times are simulated. In JSON each object says so, and while stdout belongs to
 * another command the energy result does. */
static void tell_clock(const cnri_call *call) {
    if (call->common.json || call->stdout_taken || cnri_clock_is_real()) return;
    cnri_say(stdout, "simulated  times, and what follows from them, are by the clock of %s\n",
             call->common.board   ? call->common.board
             : call->common.clock ? call->common.clock
                                  : "a plugin");
    fflush(stdout);
}

/* Sleeps, even if signals arrive. */
static void sleep_ms(uint32_t ms) {
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (ms && nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

/* Runs a command: checks, opens, runs, and prints errors. */
static void run(cnri_call *call, void *values) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = check_written(call, values, &err);
    if (!status && call->command->opens) status = call->command->opens(call, &err);
    if (!status) status = call->command->run(call, values, &err);
    cnri_watch_end(&call->watching);
    if (!status) tell_clock(call);
    if (status) sleep_ms(call->errors_after_ms);
    if (status) call->code = cnri_complain(call, &err);
}

void cnri_call_free(cnri_call *call) {
    cnri_common *c = &call->common;
    cnri_vec_free(&c->plugin_dirs);
    cnri_vec_free(&c->skip_plugins);
    cnri_free((void *)c->plugin_order);
    cnri_vec_free(&call->operands);
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++)
        if (cnri_load_options[i].kind >= CNRI_LOAD_LIST)
            cnri_free(*(void **)(void *)((char *)&c->load + cnri_load_options[i].at));
    cnri_free(call->weights);
    cnri_graph_free(call->graph);
    if (call->closes) call->closes(call);
    cnr_close(call->rt);
    cnri_free(call->script);
}

/* Replaces this process by a new run with the same words; returns only if that fails. */
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
    void *values = cnri_alloc_zero(c->values_bytes + 1);
    if (!values) return cnri_mistake(c->name, NULL, "out of memory");
    if (c->defaults) memcpy(values, c->defaults, c->values_bytes);
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
