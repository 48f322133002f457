/* cnnrun conform: judges everything that a plugin brings, and writes a report. */
#include "cli/conform.h"
#include <stdlib.h>

/* Options of conform. */
typedef struct settings {
    cnri_conform_call c;
    cnri_words samples;
    bool keep_knobs;
} settings;

static const cnri_option options[] = {
    CNRI_CONFORM_OPTIONS(settings, c),
    CNRI_OPTION(settings, c.o.check.cases, "--cases", "N",
                "cases a kernel or operator (120; 40 of more than 8)", .min = 1, .max = 1e6),
    CNRI_OPTION(settings, c.o.check.op, "--op", "NAME", NULL), /* for children */
    CNRI_OPTION(settings, samples, "--sample", "FILE",
                "what its importers or sources read, and are shown damaged; more than once"),
    CNRI_OPTION(settings, keep_knobs, "--keep-knobs", NULL,
                "knobs are read, and never set (they are set within their bounds and restored)"),
};

/* Opens a runtime in which the plugin's file must load. */
static cnr_status open_plugin(cnri_call *call, cnr_error *err) {
    cnri_words *words = &call->common.plugin_dirs;
    const char **slot = cnri_push(words);
    if (slot) *slot = call->operands.at[0];
    const bool ended = slot && cnri_push(words); /* by a NULL */
    if (!ended) return cnri_fail(err, CNR_E_MEMORY, "conform", "out of memory");
    words->n--;
    return cnri_call_open(call, err);
}

/* The loaded plugin of that file; NULL: another one of its name was loaded. */
static const cnri_plugin *plugin_of(const char *path) {
    char *whole = realpath(path, NULL);
    const cnri_plugin *found = NULL;
    for (int32_t i = 0; i < cnri_plugin_count() && whole; i++) {
        const cnri_plugin *p = cnri_plugin_at(i);
        char *its = p->desc ? realpath(p->path, NULL) : NULL;
        if (its && strcmp(its, whole) == 0) found = p;
        free(its);
    }
    free(whole);
    return found;
}

/* Number of kernels and operators that the plugin brings. */
static int32_t count_kernels(const cnri_plugin *plugin) {
    static const int32_t kinds[] = {CNR_KIND_KERNEL, CNR_KIND_OPERATOR};
    int32_t n = 0;
    for (size_t k = 0; k < CNRI_COUNT(kinds); k++)
        for (int32_t i = 0; i < cnri_descriptor_count(kinds[k]); i++)
            n += cnri_owner(cnri_descriptor_at(kinds[k], i)) == plugin;
    return n;
}

/* The command conform. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    settings *s = values;
    const char *path = call->operands.at[0];
    s->c.o.plugin = plugin_of(path);
    if (!s->c.o.plugin)
        return cnri_fail(err, CNR_E_NOT_FOUND, path,
                         "did not load: another plugin of its name was there first (see \"cnnrun "
                         "plugins\"); --skip-plugin or --plugin-order decides");
    if (!s->c.o.check.cases) s->c.o.check.cases = count_kernels(s->c.o.plugin) > 8 ? 40 : 120;
    if (!cnri_push(&s->samples)) return cnri_fail(err, CNR_E_MEMORY, "conform", "out of memory");
    s->c.o.samples = s->samples.at;
    if (!s->c.o.check.op) s->c.o.check.plugin = s->c.o.plugin->name;
    s->c.o.leaves_knobs = s->keep_knobs;
    return cnri_conform_command(call, &s->c, err);
}

const cnri_command cnri_cmd_conform = {
    .name = "conform",
    .example = "cnnrun conform my.so -o report.html",
    .operands = "PLUGIN.so",
    .summary = "Judges all that a plugin brings by what fits it: kernels and operators as\n"
               "kernelcheck does, devices as devicecheck does; encodings, meters, knobs, sources,\n"
               "importers, rewrites; names that collide or that nobody has. Prints TAP: one test a "
               "judgement.",
    .details =
        "Each judgement runs in a process of its own, so that a crash or a hang costs that one\n"
        "alone, and is told with what was being tried. -o writes a report, by its ending: .html\n"
        "(a page to show), .json, .tap or .txt. The exit code is 0 when nothing failed.\n"
        "Encodings: decode gives back what was encoded, but for a share; damaged bytes are\n"
        "refused or decoded within bounds; every byte is written and no other. Meters: readings\n"
        "are possible ones (no negative watts). Knobs: what is set reads back, and is restored.\n"
        "A device that claims regions: nets give on it what their nodes give one by one (--net).\n"
        "An operator's text for OpenCL is compiled and judged where there is such a device.\n"
        "A rewrite: nets (--net, and drawn ones) give the same with it as without it.\n"
        "Sources and importers: shapes fit the bytes; damaged files of --sample are refused or\n"
        "read.",
    .results = CNRI_RESULTS(&cnri_conform_record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(settings, .c = CNRI_CONFORM_DEFAULTS(0)),
    .min_operands = 1,
    .max_operands = 1,
    .opens = open_plugin,
    .wrong = cnri_conform_wrong,
    .run = run,
};
