/* cnnrun plugins: lists what each plugin brings, or why it was refused; judges a single file. */
#include "cli/cli.h"
#include "people/people.h"

/* Options of plugins. */
typedef struct settings {
    const char *check;
} settings;

static const cnri_option options[] = {CNRI_OPTION(settings, check, "--check", "FILE.so",
                                                  "judge this file, alone and beside the installed "
                                                  "plugins: exit code 0 when it is good")};

/* Result: a plugin. */
typedef struct row {
    const char *name, *version, *file, *refused, *summary, *licence;
    bool known;
    const char *touches;
} row;
static const cnri_field fields[] = {CNRI_KEY(row, name),
                                    CNRI_KEY(row, version),
                                    CNRI_KEY(row, file),
                                    CNRI_KEY(row, refused),
                                    CNRI_KEY(row, summary),
                                    CNRI_KEY(row, licence),
                                    CNRI_ASIDE(row, "known", known),
                                    CNRI_ASIDE(row, "touches", touches)};
static const cnri_record record =
    CNRI_RECORD(fields,
                "{name} {version}\n    file      {file}\n{refused?    refused   {refused}\n}"
                "{known?    about     {summary} ({licence?{licence}|no licence given})\n"
                "    touches   {touches}\n}");

/* Writes CNR_TOUCHES_... bits as words into `text`, which is returned, and as a JSON list (null:
 * the plugin does not say) if j is not NULL. */
static const char *tell_touches(int32_t touches, char text[64], cnri_json *j) {
    static const char *const names[] = {"nothing", "files", "network", "devices"};
    size_t n = 0;
    text[0] = 0;
    if (j && touches) cnri_json_list(j, "touches");
    for (size_t i = 0; i < CNRI_COUNT(names); i++) {
        if (!(touches >> i & 1)) continue;
        if (j) cnri_json_text(j, NULL, names[i]);
        n += (size_t)snprintf(text + n, 64 - n, "%s%s", n ? ", " : "", names[i]);
    }
    if (j && touches) cnri_json_end(j);
    return touches ? text : "not told: scripts need --trust, or name all of it";
}

/* Prints what plugin `index` registered of a kind: as a list under the kind's name, for people
 * in lines. */
static void tell_kind(int32_t index, int32_t wanted, cnri_json *j) {
    int32_t kind, n = 0;
    int used = 0;
    const char *name;
    for (int32_t i = 0; cnri_plugin_item(index, i, &kind, &name); i++) {
        if (kind != wanted) continue;
        if (j && n == 0) cnri_json_list(j, cnri_kind_name(kind));
        if (j) cnri_json_text(j, NULL, name);
        else if (n == 0) used = cnri_say(stdout, "    %-9s %s", cnri_kind_name(kind), name);
        else if (used + (int)strlen(name) + 3 > 100)
            used = cnri_say(stdout, ",\n%-14s%s", "", name) - 2;
        else used += cnri_say(stdout, ", %s", name);
        n++;
    }
    if (j && n) cnri_json_end(j);
    else if (n) cnri_say(stdout, "\n");
}

/* Prints the options of importers: {"caffe": ["shape=C,H,W ...", ...]}. */
static void tell_options(const cnri_plugin *p, cnri_json *j) {
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *importer = cnri_descriptor_at(CNR_KIND_IMPORTER, i);
        const char *const *taken = cnri_importer_options(importer);
        if (!taken || cnri_owner(importer) != p) continue;
        if (j) cnri_json_list(j, importer->name);
        for (; *taken; taken++) {
            if (j) cnri_json_text(j, NULL, *taken);
            else cnri_say(stdout, "    --option  %s\n", *taken);
        }
        if (j) cnri_json_end(j);
    }
}

/* Adds the families of the plugin's devices. */
static void json_families(const cnri_plugin *p, cnri_json *j) {
    cnri_json_list(j, "families");
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE); i++) {
        const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, i);
        if (cnri_owner(cls) == p) cnri_json_text(j, NULL, cls->family);
    }
    cnri_json_end(j);
}

/* Prints a problem, or with arg adds it as JSON. */
static void tell_problem(void *arg, const char *text) {
    if (arg) cnri_json_text(arg, NULL, text);
    else cnri_say(stdout, "    problem   %s\n", text);
}

/* Prints names that other plugins hold, and references to names that no plugin brings; returns
 * their number. judged: other plugins were loaded later. */
static int32_t tell_problems(const cnri_plugin *p, bool judged, cnri_json *j) {
    if (j) cnri_json_list(j, "problems");
    int32_t n = cnri_plugin_problems(p, tell_problem, j);
    if (judged) n += cnri_plugin_displaces(p, tell_problem, j);
    if (j) cnri_json_end(j);
    return n;
}

/* Index of a plugin in the list of all; their number: it is not there. */
static int32_t index_of(const cnri_plugin *p) {
    int32_t i = 0;
    while (i < cnri_plugin_count() && cnri_plugin_at(i) != p) i++;
    return i;
}

/* Prints a plugin with all that it brings; *problems: how many were found. */
static cnr_status tell(const cnri_call *call, const cnri_plugin *p, bool judged, int32_t *problems,
                       cnr_error *err) {
    const int32_t index = index_of(p);
    char touches[64];
    cnri_json object, *j = call->common.json ? &object : NULL;
    const row r = {p->name,
                   p->version,
                   p->path,
                   p->refused,
                   p->desc ? p->desc->summary : NULL,
                   p->desc ? p->desc->licence : NULL,
                   p->desc != NULL,
                   tell_touches(cnri_touches(p), touches, NULL)};
    cnr_status status = CNR_OK;
    if (j) cnri_json_begin(j);
    if (j) cnri_json_fields(j, &record, &r);
    else status = cnri_tell_line(&record, &r, err);
    if (j) tell_touches(cnri_touches(p), touches, j);
    if (j) cnri_json_object(j, "provides");
    for (int32_t kind = 1; cnri_kind_name(kind); kind++) tell_kind(index, kind, j);
    if (!j) {
        tell_options(p, NULL);
        *problems = tell_problems(p, judged, NULL);
        return status;
    }
    cnri_json_end(j);
    json_families(p, j);
    cnri_json_object(j, "options");
    tell_options(p, j);
    cnri_json_end(j);
    *problems = tell_problems(p, judged, j);
    return cnri_json_print(j, err);
}

/* Prints all plugins, refused ones included; none found is only a note. */
static cnr_status list(cnri_call *call, cnr_error *err) {
    if (!call->common.verbose) call->common.quiet++; /* the list gives the reasons itself */
    cnr_status status = cnri_call_open(call, err);
    if (status) return status;
    int32_t problems;
    const int32_t n = cnri_plugin_count();
    for (int32_t i = 0; i < n && !status; i++)
        status = tell(call, cnri_plugin_at(i), false, &problems, err);
    if (n == 0)
        cnri_say(stderr, "cnnrun: no plugins were found, so there is nothing to run nets with yet; "
                         "cnnrun plugins --help says where they are searched for\n");
    return status;
}

/* A plugin that is being judged. */
typedef struct judging {
    cnri_call *call;
    const char *path;
} judging;

/* Prints the result in the child process; returns its exit code, not 0 if the plugin is refused or
 * has problems. */
static int tell_judged(void *arg, const cnri_plugin *p, const char *refused) {
    cnri_call *call = ((const judging *)arg)->call;
    const char *path = ((const judging *)arg)->path;
    cnr_error err = CNR_ERROR_INIT;
    int32_t problems = 0;
    cnr_status status = p ? tell(call, p, !refused, &problems, &err) : CNR_OK;
    if (!status && refused) status = cnri_fail(&err, CNR_E_VERSION, path, "refused: %s", refused);
    if (!status && problems)
        status = cnri_fail(&err, CNR_E_VERSION, path,
                           "has %d problem%s beside the installed plugins (listed above)",
                           (int)problems, problems == 1 ? "" : "s");
    return status ? cnri_complain(call, &err) : 0;
}

/* The command plugins. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const settings *s = values;
    const cnr_observer observer = {.size = sizeof observer, .cancel = cnri_signals_flag()};
    judging j = {call, s->check};
    if (!s->check) return list(call, err);
    const cnri_judged_plugin judged = {.path = s->check,
                                       .neighbours = {.dirs = call->common.plugin_dirs.at,
                                                      .default_dirs = true,
                                                      .skip = call->common.skip_plugins.at},
                                       .tell = tell_judged,
                                       .arg = &j};
    return cnri_judge_plugin(&judged, &observer, &call->code, err);
}

const cnri_command cnri_cmd_plugins = {
    .name = "plugins",
    .example = "cnnrun plugins --check my.so",
    .operands = "",
    .summary = "Lists the plugins that were found, with their contents or the reason of a refusal.",
    .details =
        "Plugins are searched for in each --plugin-dir, in the folders of CNNRUN_PLUGIN_PATH\n"
        "(absolute, separated by colons), in plugins/ beside the program, in\n"
        "../lib/cnnrun/plugins/ from there, and where cnnrun was installed. Those that come with\n"
        "cnnrun load first, wherever the others are; --plugin-order names plugins that load "
        "before\n"
        "them. Where two bring the same name, the one that loads first has it. Problems are such\n"
        "names, and kernels for an operator, device or encoding that nobody brings.",
    CNRI_OPTIONS(options),
    CNRI_VALUES(settings, .check = NULL),
    .run = run,
};
