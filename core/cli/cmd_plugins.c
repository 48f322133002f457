/* cnnrun plugins: what each plugin brings, or why it was refused; judges a single file. */
#include "core/cli/cli.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct settings { const char *check; } settings;

static const cnri_option options[] = {
    {"--check", "FILE.so", CNRI_OPT_TEXT, offsetof(settings, check),
     "judge this file alone: exit code 0 when it loads", 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "plugins",
    .operands = "",
    .summary = "Lists the plugins that were found, with what they provide or why they were refused.",
    .details = "Plugins are searched for in each --plugin-dir, in the folders of CNNRUN_PLUGIN_PATH\n"
               "(absolute, separated by colons), in plugins/ beside the program, in\n"
               "../lib/cnnrun/plugins/ from there, and where cnnrun was installed.",
    .options = options,
    .n_options = CNRI_COUNT(options)};

/* Calls fn for each item that plugin `index` registered of a kind; returns how many. */
typedef void (*item_fn)(void *arg, int32_t n, const char *name);
static int32_t each_item(int32_t index, int32_t wanted, item_fn fn, void *arg) {
    int32_t kind, n = 0;
    const char *name;
    for (int32_t i = 0; cnri_plugin_item(index, i, &kind, &name); i++)
        if (kind == wanted) fn(arg, n++, name);
    return n;
}

static const char *text_or(const char *text, const char *other) {
    return text && *text ? text : other;
}

/* ---- for people ---- */

/* A list under its kind, broken into lines. */
typedef struct columns { const char *kind; int used; } columns;
static void print_item(void *arg, int32_t n, const char *name) {
    columns *c = arg;
    const int wide = (int)strlen(name) + 2;
    if (n == 0) c->used = cnri_say(stdout, "    %-9s ", c->kind);
    else c->used += cnri_say(stdout, ",");
    if (n && c->used + wide > 100) c->used = cnri_say(stdout, "\n%-14s", "");
    else if (n) c->used += cnri_say(stdout, " ");
    c->used += cnri_say(stdout, "%s", name);
}

static void print_options(const cnri_plugin *p) {
    for (int32_t i = 0; i < cnri_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *importer = cnri_at(CNR_KIND_IMPORTER, i);
        if (cnri_owner(importer) != p) continue;
        const char *const *row = cnri_importer_options(importer);
        for (; row && *row; row++) cnri_say(stdout, "    --option  %s\n", *row);
    }
}

static void print_plugin(int32_t index) {
    const cnri_plugin *p = cnri_plugin_at(index);
    cnri_say(stdout, "%s %s\n    file      %s\n", p->name, p->version, p->path);
    if (p->refused) cnri_say(stdout, "    refused   %s\n", p->refused);
    if (!p->desc) return;
    cnri_say(stdout, "    about     %s (%s)\n", text_or(p->desc->summary, "-"),
             text_or(p->desc->licence, "no licence given"));
    for (int32_t kind = 1; cnri_kind_name(kind); kind++) {
        columns c = {cnri_kind_name(kind), 0};
        if (each_item(index, kind, print_item, &c)) cnri_say(stdout, "\n");
    }
    print_options(p);
}

/* ---- for programs ---- */

static void add_item(void *json, int32_t n, const char *name) {
    (void)n;
    cnri_json_text(json, NULL, name);
}

static void add_none(void *arg, int32_t n, const char *name) {
    (void)arg, (void)n, (void)name;
}

static void add_families(cnri_json *j, const cnri_plugin *p) {
    cnri_json_list(j, "families");
    for (int32_t i = 0; i < cnri_count(CNR_KIND_DEVICE); i++) {
        const cnr_device_class *cls = cnri_at(CNR_KIND_DEVICE, i);
        if (cnri_owner(cls) == p) cnri_json_text(j, NULL, cls->family);
    }
    cnri_json_end(j);
}

/* Of importers that say what they take: {"caffe": ["shape=C,H,W ...", ...]} */
static void add_options(cnri_json *j, const cnri_plugin *p) {
    cnri_json_object(j, "options");
    for (int32_t i = 0; i < cnri_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *importer = cnri_at(CNR_KIND_IMPORTER, i);
        const char *const *row = cnri_importer_options(importer);
        if (!row || cnri_owner(importer) != p) continue;
        cnri_json_list(j, importer->name);
        for (; *row; row++) cnri_json_text(j, NULL, *row);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

static cnr_status print_json(int32_t index, cnr_error *err) {
    const cnri_plugin *p = cnri_plugin_at(index);
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "name", p->name);
    cnri_json_text(&j, "version", p->version);
    cnri_json_text(&j, "file", p->path);
    cnri_json_text(&j, "refused", p->refused);
    cnri_json_text(&j, "summary", p->desc ? p->desc->summary : NULL);
    cnri_json_text(&j, "licence", p->desc ? p->desc->licence : NULL);
    cnri_json_object(&j, "provides");
    for (int32_t kind = 1; cnri_kind_name(kind); kind++) {
        if (!each_item(index, kind, add_none, NULL)) continue;
        cnri_json_list(&j, cnri_kind_name(kind));
        each_item(index, kind, add_item, &j);
        cnri_json_end(&j);
    }
    cnri_json_end(&j);
    add_families(&j, p);
    add_options(&j, p);
    return cnri_json_print(&j, err);
}

/* ---- the command ---- */

static cnr_status print_one(const cnri_args *args, int32_t index, cnr_error *err) {
    if (args->common.json) return print_json(index, err);
    print_plugin(index);
    return CNR_OK;
}

static int list(cnri_args *args) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt;
    if (!args->common.verbose) args->common.quiet++; /* the list gives the reasons itself */
    cnr_status status = cnri_args_open(args, &rt, &err);
    if (status != CNR_OK) return cnri_complain(args, &err);
    const int32_t n = cnri_plugin_count();
    for (int32_t i = 0; i < n && status == CNR_OK; i++) status = print_one(args, i, &err);
    if (n == 0)
        cnri_say(stderr, "cnnrun: no plugins were found, so there is nothing to run nets with yet; "
                         "cnnrun plugins --help says where they are searched for\n");
    cnr_close(rt);
    return status == CNR_OK ? 0 : cnri_complain(args, &err);
}

/* ---- one file ---- */

static int judge(const cnri_args *args, const char *path) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_graph_install(cnri_host_mutable());
    char *why = cnri_plugin_check(path);
    const int32_t n = cnri_plugin_count();
    cnr_status status = n > 0 ? print_one(args, n - 1, &err) : CNR_OK;
    if (status == CNR_OK && why) status = cnri_fail(&err, CNR_E_VERSION, path, "refused: %s", why);
    cnri_free(why);
    return status == CNR_OK ? 0 : cnri_complain(args, &err);
}

/* What the file does while it loads stays in a process of its own: ending it, crashing it, staying
 * forever. The child says "done" when it comes out of the judgement alive. */
enum { CHECK_SECONDS = 4 };

static void judge_in_child(const cnri_args *args, const char *path, int done) {
    const int code = judge(args, path);
    cnri_plugins_finish();
    fflush(stdout);
    const char word = 1;
    _exit(write(done, &word, 1) == 1 ? code : -CNR_E_IO);
}

/* False: the child did not come out; `why` says what became of it. */
static bool judged(pid_t child, int done, int *code, char *why, size_t room) {
    struct pollfd poll_done = {.fd = done, .events = POLLIN};
    char word = 0;
    int state = 0, ready;
    do ready = poll(&poll_done, 1, CHECK_SECONDS * 1000);
    while (ready < 0 && errno == EINTR && !cnri_cancelled());
    if (ready <= 0) kill(child, SIGKILL);
    const bool said = ready > 0 && read(done, &word, 1) == 1;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {}
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : -CNR_E_STATE;
    if (said) return true;
    if (ready == 0)
        snprintf(why, room, "did not come back within %d s of being opened", CHECK_SECONDS);
    else if (WIFSIGNALED(state))
        snprintf(why, room, "was ended by signal %d while it was being opened", WTERMSIG(state));
    else snprintf(why, room, "ended the process (exit code %d) while it was being opened", *code);
    return false;
}

static int check(const cnri_args *args, const char *path) {
    cnr_error err = CNR_ERROR_INIT;
    char why[128];
    int ends[2], code = 0;
    fflush(stdout);
    if (pipe(ends) != 0) return judge(args, path);
    const pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return judge(args, path);
    }
    if (child == 0) {
        close(ends[0]);
        judge_in_child(args, path, ends[1]);
    }
    close(ends[1]);
    const bool good = judged(child, ends[0], &code, why, sizeof why);
    close(ends[0]);
    if (good) return code;
    cnri_fail(&err, CNR_E_STATE, path, "refused: it %s", why);
    return cnri_complain(args, &err);
}

int cnri_cmd_plugins(int argc, char **argv) {
    settings s = {0};
    cnri_args args;
    int code;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &s, &code)) return code;
    code = s.check ? check(&args, s.check) : list(&args);
    cnri_args_free(&args);
    return code;
}
