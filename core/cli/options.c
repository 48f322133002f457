/* Options from tables: parsing, checks, suggestions. */
#include "core/cli/cli.h"
#include <stdlib.h>

static const char *const channel_choices[] = {"net", "rgb", "bgr", "gray", NULL};

#define AT(field) offsetof(cnri_common, field)

static const cnri_option general_options[] = {
    {"--json", NULL, CNRI_OPT_FLAG, AT(json), "results as JSON, one object a line", 0, 0, NULL, 0},
    {"--plugin-dir", "DIR", CNRI_OPT_LIST, AT(plugin_dirs),
     "search plugins here first (repeatable)", 0, 0, NULL, 0},
    {"--verbose", NULL, CNRI_OPT_COUNT, AT(verbose), "say more on stderr; twice: still more", 0, 0,
     NULL, 'v'},
    {"--quiet", NULL, CNRI_OPT_COUNT, AT(quiet), "only errors on stderr, no progress", 0, 0, NULL,
     'q'},
    {"--clock", "NAME", CNRI_OPT_TEXT, AT(clock),
     "a plugin's clock for all that is measured (the board's, or the machine's)", 0, 0, NULL, 0},
    {"--sysfs-root", "DIR", CNRI_OPT_TEXT, AT(sysfs_root),
     "where meters and knobs look for /sys and the like (/)", 0, 0, NULL, 0},
    {"--meter-address", "WHERE", CNRI_OPT_TEXT, AT(meter_address),
     "of a meter that is no file there: /dev/ttyUSB0, i2c:1:0x40", 0, 0, NULL, 0},
    {"--board", "NAME[,K=V...]", CNRI_OPT_TEXT, AT(board),
     "a file that describes the machine, which is simulated if it is another", 0, 0, NULL, 0},
};

static const cnri_option net_options[] = {
    {"--device", "NAME", CNRI_OPT_TEXT, AT(device), "where to run: cpu, cpu:little, opencl:0 ... (the best)", 0,
     0, NULL, 0},
    {"--threads", "N", CNRI_OPT_INT, AT(threads), "threads of the processor (0: all it has)", 0,
     4096, NULL, 0},
    {"--weights", "FILE", CNRI_OPT_TEXT, AT(weights),
     "weights from a file (.cnr, .npz ...), random:SEED, or none (to look at)", 0, 0, NULL, 0},
    {"--net", "NAME", CNRI_OPT_TEXT, AT(net), "which net of a script that holds several", 0, 0,
     NULL, 0},
    {"--option", "NAME=VALUE", CNRI_OPT_LIST, AT(settings), "a setting of the importer (repeatable)",
     0, 0, NULL, 0},
    {"--symbol", "NAME=VALUE", CNRI_OPT_LIST, AT(symbols), "bind a named dimension (repeatable)", 0,
     0, NULL, 0},
    {"--no-rewrite", "NAME", CNRI_OPT_LIST, AT(no_rewrite), "leave a rewrite out (repeatable)", 0,
     0, NULL, 0},
    {"--kernel", "NODE=NAME", CNRI_OPT_LIST, AT(kernels),
     "have this kernel run a node, or all of an operator (repeatable)", 0, 0, NULL, 0},
    {"--memory", "BYTES", CNRI_OPT_BYTES, AT(memory),
     "most memory for prepared weights; K, M, G count (no bound)", 0, 0, NULL, 0},
    {"--memory-limit", "BYTES", CNRI_OPT_BYTES, AT(memory_limit),
     "most memory for activations, inputs and outputs; more is refused (3/4 of what there is)", 0, 0,
     NULL, 0},
    {"--cache", "DIR", CNRI_OPT_TEXT, AT(cache),
     "keep plans and prepared weights here for the next time (CNNRUN_CACHE; none)", 0, 0, NULL, 0},
    {"--cache-limit", "BYTES", CNRI_OPT_BYTES, AT(cache_limit),
     "most that they may take; the oldest go first (4G)", 0, 0, NULL, 0},
    {"--deterministic", NULL, CNRI_OPT_FLAG, AT(deterministic), "never let a clock choose", 0, 0,
     NULL, 0},
    {"--no-verify", NULL, CNRI_OPT_FLAG, AT(no_verify),
     "believe the weights of a .cnr: their digests are not compared", 0, 0, NULL, 0},
    {"--trust", NULL, CNRI_OPT_FLAG, AT(trust),
     "let a script use files and time, as a program can", 0, 0, NULL,
     0},
};

static const cnri_option picture_options[] = {
    {"--preset", "NAME", CNRI_OPT_TEXT, AT(preset),
     "mean, std, scale and channels as usual: torchvision, tf ... (what follows goes before it)", 0,
     0, NULL, 0},
    {"--resize", "HxW|N", CNRI_OPT_TEXT, AT(resize), "scale to H x W; N: the shorter side to N", 0,
     0, NULL, 0},
    {"--crop", "HxW|N", CNRI_OPT_TEXT, AT(crop), "then cut this out of the middle", 0, 0, NULL, 0},
    {"--mean", "M,..|FILE", CNRI_OPT_TEXT, AT(mean), "subtract: a number a channel, or a picture",
     0, 0, NULL, 0},
    {"--std", "S,..", CNRI_OPT_TEXT, AT(std), "divide: a number a channel", 0, 0, NULL, 0},
    {"--scale", "X", CNRI_OPT_TEXT, AT(scale), "multiply: value = (pixel - mean) * scale / std", 0,
     0, NULL, 0},
    {"--channels", "ORDER", CNRI_OPT_CHOICE, AT(channels), "order of the channels", 0, 0,
     channel_choices, 0},
    {"--letterbox", NULL, CNRI_OPT_FLAG, AT(letterbox), "keep the picture's shape, fill the rest",
     0, 0, NULL, 0},
};
#undef AT

typedef cnri_option_group group;

/* The option tables that hold for a command, its own first. */
static int32_t groups_of(cnri_args *args, void *values, group out[CNRI_OPTION_GROUPS]) {
    const cnri_syntax *s = args->syntax;
    char *common = (char *)&args->common;
    int32_t n = 0;
    if (s->n_options) out[n++] = (group){"options", s->options, s->n_options, values,
                                           true, false};
    out[n++] = (group){"general", general_options, CNRI_COUNT(general_options), common, false, false};
    if (s->nets) {
        out[n++] = (group){"nets", net_options, CNRI_COUNT(net_options), common, false, true};
        out[n++] = (group){"pictures", picture_options, CNRI_COUNT(picture_options), common,
                           false, true};
    }
    return n;
}

/* ---- values ---- */

/* "16", "64K", "1.5G". */
static bool parse_bytes(const char *text, uint64_t *out) {
    const char *end;
    double value, unit = 1;
    if (!cnri_parse_double(text, &end, &value) || !(value >= 0)) return false;
    switch (*end) {
    case 'k': case 'K': unit = 1024.0; end++; break;
    case 'm': case 'M': unit = 1024.0 * 1024; end++; break;
    case 'g': case 'G': unit = 1024.0 * 1024 * 1024; end++; break;
    default: break;
    }
    if (*end == 'i') end++;
    if (*end == 'B') end++;
    if (*end || !(value * unit < 9e18)) return false;
    *out = (uint64_t)(value * unit);
    return true;
}

static bool in_bounds(const cnri_option *o, double value) {
    return (o->min == 0 && o->max == 0) || (value >= o->min && value <= o->max);
}

/* Stores `text` at the option's place. On a mistake writes what was wanted into `want`. */
static bool store(const cnri_option *o, char *values, const char *text, char *want, size_t room) {
    void *at = values + o->at;
    const char *end;
    int64_t i;
    double d;
    switch (o->type) {
    case CNRI_OPT_FLAG: *(bool *)at = true; return true;
    case CNRI_OPT_COUNT: ++*(int32_t *)at; return true;
    case CNRI_OPT_TEXT: *(const char **)at = text; return true;
    case CNRI_OPT_INT:
        if (cnri_parse_int(text, &i) && in_bounds(o, (double)i)) {
            *(int64_t *)at = i;
            return true;
        }
        break;
    case CNRI_OPT_REAL:
        if (cnri_parse_double(text, &end, &d) && *end == 0 && d == d && in_bounds(o, d)) {
            *(double *)at = d;
            return true;
        }
        break;
    case CNRI_OPT_BYTES:
        if (parse_bytes(text, at)) return true;
        snprintf(want, room, "a number of bytes like 64M");
        return false;
    case CNRI_OPT_CHOICE: {
        size_t n = (size_t)snprintf(want, room, "one of");
        for (int32_t c = 0; o->choices[c]; c++) {
            if (strcmp(o->choices[c], text) == 0) {
                *(int32_t *)at = c;
                return true;
            }
            if (n < room) n += (size_t)snprintf(want + n, room - n, " %s", o->choices[c]);
        }
        return false;
    }
    case CNRI_OPT_LIST: {
        cnri_words *words = at;
        const char **slot = cnri_push(words);
        if (slot) *slot = text;
        const bool ended = slot && cnri_push(words); /* a NULL, that does not count */
        if (ended) words->n--;
        snprintf(want, room, "more memory");
        return ended;
    }
    }
    const char *kind = o->type == CNRI_OPT_INT ? "a whole number" : "a number";
    if (o->min == 0 && o->max == 0) snprintf(want, room, "%s", kind);
    else snprintf(want, room, "%s from %.15g to %.15g", kind, o->min, o->max);
    return false;
}

/* ---- parsing ---- */

static int mistake(const cnri_syntax *s, const char *text, const char *nearest) {
    char whole[1024];
    snprintf(whole, sizeof whole, "%s%s%s%s", text, nearest ? "; did you mean " : "",
             nearest ? nearest : "", nearest ? "?" : "");
    cnri_error_told(s->command, -CNR_E_ARG, "", whole);
    cnri_say(stderr, "cnnrun%s%s --help lists all options\n", *s->command ? " " : "", s->command);
    return -CNR_E_ARG;
}

static int unknown_option(const cnri_syntax *s, const group *groups, int32_t n, const char *word) {
    const char *names[64];
    char text[256];
    int32_t count = 0;
    for (int32_t g = 0; g < n; g++)
        for (int32_t i = 0; i < groups[g].n && count < (int32_t)CNRI_COUNT(names) - 1; i++)
            names[count++] = groups[g].rows[i].name;
    names[count++] = "--help";
    snprintf(text, sizeof text, "unknown option %s", word);
    return mistake(s, text, cnri_nearest(word, names, count));
}

static const cnri_option *find(const group *groups, int32_t n, const char *word, size_t length,
                               char letter, char **values) {
    for (int32_t g = 0; g < n; g++)
        for (int32_t i = 0; i < groups[g].n; i++) {
            const cnri_option *o = &groups[g].rows[i];
            if (letter ? o->letter == letter
                       : strlen(o->name) == length && strncmp(o->name, word, length) == 0) {
                *values = groups[g].values;
                return o;
            }
        }
    return NULL;
}

/* Takes the option `name` with the text behind it, or the next word. */
static bool take(const cnri_syntax *s, const cnri_option *o, char *values, const char *attached,
                 int argc, char **argv, int *i, int *code) {
    char text[512], want[256] = "";
    const bool takes = o->argument != NULL;
    if (!takes && attached) {
        snprintf(text, sizeof text, "%s takes no value", o->name);
        *code = mistake(s, text, NULL);
        return false;
    }
    if (takes && !attached && *i + 1 >= argc) {
        snprintf(text, sizeof text, "%s wants %s", o->name, o->argument);
        *code = mistake(s, text, NULL);
        return false;
    }
    const char *value = attached ? attached : takes ? argv[++*i] : "";
    if (store(o, values, value, want, sizeof want)) return true;
    snprintf(text, sizeof text, "%s: wanted %s, got \"%s\"", o->name, want, value);
    *code = mistake(s, text, NULL);
    return false;
}

/* One word that begins with a dash: --name, --name=value, -o value, -ovalue, -vv. */
static bool parse_word(const cnri_syntax *s, const group *groups, int32_t n, int argc, char **argv,
                       int *i, int *code) {
    const char *word = argv[*i];
    char *values;
    if (word[1] == '-') {
        const char *equals = strchr(word, '=');
        const size_t length = equals ? (size_t)(equals - word) : strlen(word);
        const cnri_option *o = find(groups, n, word, length, 0, &values);
        if (o) return take(s, o, values, equals ? equals + 1 : NULL, argc, argv, i, code);
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        *code = unknown_option(s, groups, n, name);
        return false;
    }
    for (const char *c = word + 1; *c; c++) {
        const cnri_option *o = find(groups, n, NULL, 0, *c, &values);
        if (!o) {
            *code = unknown_option(s, groups, n, word);
            return false;
        }
        const char *attached = o->argument && c[1] ? c + 1 : NULL;
        if (!take(s, o, values, attached, argc, argv, i, code)) return false;
        if (o->argument) break;
    }
    return true;
}

/* -h, --help, and --help=FORM, by which the man page and completions are made. */
static bool is_help(const char *word) {
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 ||
           strncmp(word, "--help=", 7) == 0;
}

static bool parse(cnri_args *args, const cnri_syntax *s, int argc, char **argv, void *values,
                  int *next, int *code) {
    group groups[CNRI_OPTION_GROUPS];
    memset(args, 0, sizeof *args);
    args->syntax = s;
    const int32_t n = groups_of(args, values, groups);
    bool options = true;
    int i;
    for (i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && is_help(word)) {
            const char *form = strchr(word, '=');
            *code = cnri_reference(s, groups, n, form ? form + 1 : "help");
            return false;
        } else if (options && word[0] == '-' && word[1]) {
            if (!parse_word(s, groups, n, argc, argv, &i, code)) return false;
        } else if (next) {
            break;
        } else {
            const char **slot = cnri_push(&args->operands);
            if (!slot) {
                *code = mistake(s, "out of memory", NULL);
                return false;
            }
            *slot = word;
        }
    }
    if (next) *next = i;
    return true;
}

bool cnri_args_parse(cnri_args *args, const cnri_syntax *s, int argc, char **argv, void *values,
                     int *code) {
    char text[512];
    bool good = parse(args, s, argc, argv, values, NULL, code);
    if (good && args->operands.n < s->min_operands) {
        snprintf(text, sizeof text, "something is missing: cnnrun %s %s", s->command, s->operands);
        *code = mistake(s, text, NULL);
        good = false;
    }
    if (good && s->max_operands >= 0 && args->operands.n > s->max_operands) {
        snprintf(text, sizeof text, "one word too many: \"%s\"",
                 args->operands.at[s->max_operands]);
        *code = mistake(s, text, NULL);
        good = false;
    }
    if (!good) cnri_args_free(args);
    return good;
}

bool cnri_args_parse_leading(cnri_args *args, const cnri_syntax *s, int argc, char **argv,
                             void *values, int *next, int *code) {
    const bool good = parse(args, s, argc, argv, values, next, code);
    if (!good) cnri_args_free(args);
    return good;
}

int cnri_args_command_at(int argc, char **argv) {
    static const cnri_syntax any = {.command = "", .operands = "", .nets = true};
    group groups[CNRI_OPTION_GROUPS];
    cnri_args args = {.syntax = &any};
    char *values;
    const int32_t n = groups_of(&args, NULL, groups);
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *word = argv[i], *equals = strchr(word, '=');
        const bool whole = word[1] == '-';
        const size_t length = equals ? (size_t)(equals - word) : strlen(word);
        const cnri_option *o = find(groups, n, word, length, whole ? 0 : word[1], &values);
        if (!o) return -1;
        if (o->argument && (whole ? !equals : !word[2])) i++;
    }
    return i < argc ? i : -1;
}

void cnri_args_free(cnri_args *args) {
    cnri_vec_free(&args->common.plugin_dirs);
    cnri_vec_free(&args->common.no_rewrite);
    cnri_vec_free(&args->common.settings);
    cnri_vec_free(&args->common.symbols);
    cnri_vec_free(&args->operands);
}
