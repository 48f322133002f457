/* Options from tables: parses and checks them, and suggests names. */
#include "front/front.h"
#include "people/people.h"
#include <math.h>

static const char *const channel_choices[] = {"net", "rgb", "bgr", "gray", NULL};
static const char *const modes[] = {"parallel", "reference", NULL};

/* A row of the table of common options. */
#define ROW(member, name, ...) CNRI_OPTION(cnri_common, member, name, __VA_ARGS__)
static const cnri_option general_options[] =
    {ROW(json, "--json", NULL, "print results as JSON, one object on each line"),
     ROW(plugin_dirs, "--plugin-dir", "DIR", "search plugins here first (repeatable)"),
     ROW(skip_plugins, "--skip-plugin", "NAME", "leave this plugin out (repeatable)"),
     {.name = "--plugin-order",
      .argument = "NAME,...",
      .type = CNRI_T_COMMAS,
      .at = offsetof(cnri_common, plugin_order),
      .help = "plugins that load first and so have precedence (those that come with cnnrun)"},
     ROW(verbose, "--verbose", NULL, "print more on stderr; twice: even more", .letter = 'v'),
     ROW(quiet, "--quiet", NULL, "only errors on stderr, no progress", .letter = 'q'),
     ROW(clock, "--clock", "NAME",
         "clock of a plugin for all measurements (the board's, or the machine's)"),
     ROW(sysfs_root, "--sysfs-root", "DIR",
         "root of /sys and other files for meters and knobs (/)"),
     ROW(meter_address, "--meter-address", "WHERE",
         "address of a meter that is not a file in /sys: /dev/ttyUSB0, i2c:1:0x40"),
     ROW(cpu_isa, "--cpu-isa", "NAME",
         "instruction set of the CPU's kernels: avx512, avx2, generic ... (the widest)"),
     ROW(board, "--board", "NAME[,K=V...]",
         "board file that describes the machine; another machine than this one is simulated")};

#define TEXT_TYPE CNRI_T_TEXT
#define FILE_TYPE CNRI_T_TEXT
#define FLAG_TYPE CNRI_T_I32
#define NOT_TYPE CNRI_T_I32
#define BYTES_TYPE CNRI_T_U64
#define LIST_TYPE CNRI_T_LIST
#define COMMAS_TYPE CNRI_T_COMMAS
#define SETTINGS_TYPE CNRI_T_LIST
#define SIZES_TYPE CNRI_T_LIST
/* Row of an option that the program has. */
#define OPTION_OF_ALL(...) {__VA_ARGS__},
#define OPTION_OF_PROGRAM OPTION_OF_ALL
/* Nothing: an option that only scripts have. */
#define OPTION_OF_SCRIPT(...)
/* Row of one load option. */
#define OPTION(who, kind, member, key, option, wants, all, enters, usual, text) \
    OPTION_OF_##who(.name = option, .argument = wants, .type = kind##_TYPE, \
                    .at = offsetof(cnri_common, load.member), .help = text usual, .choices = all)
static const cnri_option net_options[] =
    {CNRI_LOAD_OPTIONS(OPTION)
         ROW(threads, "--threads", "N", "threads of the processor (0: all it has)", .max = 4096),
     ROW(mode, "--mode", "MODE",
         "reference: the plain C of each operator, on one thread, without rewrites; parallel: the "
         "best kernels (as the net says)",
         .choices = modes),
     ROW(no_inplace, "--no-inplace", NULL, "results never take the place of operands"),
     ROW(no_share, "--no-share", NULL, "each value between layers has memory of its own"),
     ROW(governor, "--governor", "POLICY",
         "set frequencies by it while this runs: edp, fixed,at=lowest, mine.lua (cnnrun govern)"),
     ROW(trust, "--trust", NULL,
         "let a script use any file, address, device and the clock; without it, those named here")};

static const cnri_option picture_options[] =
    {ROW(preset, "--preset", "NAME",
         "mean, std, scale and channels as usual: torchvision, tf ... "
         "(what follows goes before it)"),
     ROW(resize, "--resize", "HxW|N", "scale to H x W; N: the shorter side to N"),
     ROW(crop, "--crop", "HxW|N", "then cut this out of the middle"),
     ROW(mean, "--mean", "M,..|FILE", "subtract: a number a channel, or a picture"),
     ROW(std, "--std", "S,..", "divide: a number a channel"),
     ROW(scale, "--scale", "X", "multiply: value = (pixel - mean) * scale / std"),
     ROW(channels, "--channels", "ORDER", "order of the channels", .choices = channel_choices),
     ROW(letterbox, "--letterbox", "LEVEL",
         "keep the picture's shape, fill the rest with this grey (0); LEVEL,corner: the picture at "
         "the top left; false: stretch",
         .otherwise = "true")};

static const cnri_option job_options[] = {
    ROW(group, "--group", "NAME",
        "share the work with the processes that a launcher started beside this one: mpi, none "
        "(by itself under mpirun and srun)")};
#undef ROW

static const struct {
    cnri_group group;
    uint32_t takes;
} shared[] = {{{"general", general_options, CNRI_COUNT(general_options)}, 0},
              {{"nets", net_options, CNRI_COUNT(net_options)}, CNRI_NETS},
              {{"pictures", picture_options, CNRI_COUNT(picture_options)}, CNRI_PICTURES},
              {{"processes", job_options, CNRI_COUNT(job_options)}, CNRI_GROUP}};

int32_t cnri_groups_of(const cnri_command *c, cnri_group out[CNRI_GROUPS]) {
    int32_t n = 0;
    if (c->n_options) out[n++] = (cnri_group){NULL, c->options, c->n_options};
    for (size_t i = 0; i < CNRI_COUNT(shared); i++)
        if ((c->takes & shared[i].takes) == shared[i].takes) out[n++] = shared[i].group;
    return n;
}

void cnri_help(const cnri_command *c) {
    static const cnri_command all_nets = {.name = "",
                                          .takes = CNRI_NETS | CNRI_PICTURES | CNRI_GROUP};
    cnri_group groups[CNRI_GROUPS];
    const int32_t n = cnri_groups_of(c ? c : &all_nets, groups);
    cnri_help_print(c, groups, n);
}

/* ---- values ---- */

/* Appends a word to the list, which ends in a NULL that does not count. False: out of memory. */
static bool parse_word(const char *text, cnri_words *words) {
    const char **slot = cnri_push(words);
    if (slot) *slot = text;
    const bool ended = slot && cnri_push(words);
    if (ended) words->n--;
    return ended;
}

bool cnri_list_add(const char *const **list, const char *word) {
    const int32_t n = cnri_count_options(*list);
    const char **grown = cnri_resize((void *)*list, ((size_t)n + 2) * sizeof *grown);
    if (!grown) return false;
    grown[n] = word;
    grown[n + 1] = NULL;
    *list = grown;
    return true;
}

/* Splits words at commas into one block. False: a word is empty, or memory is out. */
static bool parse_commas(const char *text, const char *const **list) {
    const size_t bytes = strlen(text) + 1; /* and at most as many words */
    const char **words = cnri_alloc_zero((bytes + 1) * sizeof *words + bytes);
    char *at = words ? memcpy(words + bytes + 1, text, bytes) : NULL;
    bool good = words;
    for (int32_t i = 0; at && good; i++) {
        words[i] = at;
        good = *at && *at != ',';
        if ((at = strchr(at, ',')) != NULL) *at++ = 0;
    }
    cnri_free(good ? (void *)*list : words);
    if (good) *list = words;
    return good;
}

static bool unbounded(const cnri_option *o) { return o->min == 0 && o->max == 0; }

static bool is_bytes(const cnri_option *o) { return o->type == CNRI_T_U64 && unbounded(o); }

/* Parses a number. False: `text` is no number of the option's type or exceeds its bounds; the
 * caller reports it. */
static bool parse_number(const cnri_option *o, const char *text, void *at) {
    const char *end;
    int64_t whole = 0;
    double value;
    if (o->type == CNRI_T_REAL) {
        if (!cnri_parse_double(text, &end, &value) || *end || !isfinite(value)) return false;
    } else {
        if (!cnri_parse_int(text, &whole)) return false;
        value = (double)whole;
    }
    if (!unbounded(o) && !(value >= o->min && value <= o->max)) return false;
    if (o->type == CNRI_T_REAL) *(double *)at = value;
    else if (o->type == CNRI_T_I32) *(int32_t *)at = (int32_t)whole;
    else *(int64_t *)at = whole;
    return true;
}

/* Stores an option's text as its type. False: it is wrong. */
static bool store(const cnri_option *o, void *at, const char *text) {
    const int32_t choice = o->choices ? cnri_choice(o->choices, text) : 0;
    if (choice < 0) return false;
    if (o->type == CNRI_T_BOOL) *(bool *)at = true;
    else if (o->type == CNRI_T_TEXT) *(const char **)at = text;
    else if (o->type == CNRI_T_WORDS) return parse_word(text, at);
    else if (o->type == CNRI_T_LIST) return cnri_list_add(at, text);
    else if (o->type == CNRI_T_COMMAS) return parse_commas(text, at);
    else if (o->choices) *(int32_t *)at = choice;
    else if (!o->argument) ++*(int32_t *)at;
    else return is_bytes(o) ? cnri_parse_bytes(text, at) : parse_number(o, text, at);
    return true;
}

/* Appends what `store` would have accepted. */
static void describe(const cnri_option *o, cnri_text *out) {
    const char *kind = o->type == CNRI_T_REAL ? "a number" : "a whole number";
    if (o->type == CNRI_T_WORDS || o->type == CNRI_T_LIST) cnri_text_add(out, "more memory");
    else if (o->type == CNRI_T_COMMAS) cnri_text_add(out, "names such as cpu,opencl:0");
    else if (is_bytes(o)) cnri_text_add(out, "a number of bytes like 64M");
    else if (unbounded(o) && !o->choices) cnri_text_add(out, "%s", kind);
    else if (!o->choices) cnri_text_add(out, "%s from %.15g to %.15g", kind, o->min, o->max);
    else cnri_text_add(out, "one of");
    for (int32_t i = 0; o->choices && o->choices[i]; i++) cnri_text_add(out, " %s", o->choices[i]);
}

/* ---- parsing ---- */

/* A command line that is being read. */
typedef struct parser {
    cnri_call *call;
    void *values;
    cnri_group groups[CNRI_GROUPS];
    int32_t n;
    int at; /* index in argv */
} parser;

/* Begins to read a command line. */
static parser begin(cnri_call *call, void *values) {
    parser p = {.call = call, .values = values, .at = 1};
    p.n = cnri_groups_of(call->command, p.groups);
    return p;
}

/* True if commands that take nets or pictures have an option of that name. */
static bool is_shared(const char *name) {
    for (size_t g = 0; g < CNRI_COUNT(shared); g++)
        for (int32_t i = 0; i < shared[g].group.n; i++)
            if (strcmp(shared[g].group.rows[i].name, name) == 0) return true;
    return false;
}

/* Says that there is no option of these `length` letters, with a similar one; sets the exit code
 * and returns false. */
static bool unknown_option(const parser *p, const char *word, int length) {
    cnri_words names = {0};
    char name[128];
    const cnri_command *command = p->call->command;
    snprintf(name, sizeof name, "%.*s", length, word);
    if (command->without && is_shared(name)) {
        p->call->code =
            cnri_mistake(command->name, NULL, "%s has no use here: %s", name, command->without);
        return false;
    }
    const char **slot = cnri_push(&names);
    if (slot) *slot = "--help";
    for (int32_t g = 0; g < p->n; g++)
        for (int32_t i = 0; i < p->groups[g].n; i++)
            if (!p->groups[g].rows[i].refused && (slot = cnri_push(&names)) != NULL)
                *slot = p->groups[g].rows[i].name;
    p->call->code = cnri_mistake(p->call->command->name, cnri_nearest_word(name, names.at, names.n),
                                 "unknown option %s", name);
    cnri_vec_free(&names);
    return false;
}

/* Finds an option by its name of `length` letters, or by its letter if that is not 0; NULL: none.
 * *at: where its value is stored. */
static const cnri_option *find(const parser *p, const char *word, int length, char letter,
                               void **at) {
    for (int32_t g = 0; g < p->n; g++)
        for (int32_t i = 0; i < p->groups[g].n; i++) {
            const cnri_option *o = &p->groups[g].rows[i];
            if (letter
                    ? o->letter != letter
                    : strlen(o->name) != (size_t)length || strncmp(o->name, word, (size_t)length))
                continue;
            *at = (char *)(p->groups[g].title ? (void *)&p->call->common : p->values) + o->at;
            return o;
        }
    return NULL;
}

/* The word behind word `at`, if it can be the value of an option that may have none ("114,corner",
 * "false"); else NULL. */
static const char *optional_value(const cnri_call *c, int at) {
    const char *word = at + 1 < c->argc ? c->argv[at + 1] : "", *end;
    double value;
    const bool number = cnri_parse_double(word, &end, &value) && (!*end || *end == ',');
    return number || strcmp(word, "true") == 0 || strcmp(word, "false") == 0 ? word : NULL;
}

/* Stores the option's value: the text attached to it, or the next word. False: it failed. */
static bool take(parser *p, const cnri_option *o, void *at, const char *attached) {
    cnri_call *c = p->call;
    const char *name = c->command->name;
    if (o->refused) {
        c->code = cnri_mistake(name, NULL, "%s has no use here: %s", o->name, o->refused);
        return false;
    }
    if (o->otherwise && !attached) {
        const char *next = optional_value(c, p->at);
        p->at += next != NULL;
        attached = next ? next : o->otherwise;
    }
    if (!o->argument && attached) {
        c->code = cnri_mistake(name, NULL, "%s takes no value", o->name);
        return false;
    }
    if (o->argument && !attached && p->at + 1 >= c->argc) {
        c->code = cnri_mistake(name, NULL, "%s wants %s", o->name, o->argument);
        return false;
    }
    const char *value = attached ? attached : o->argument ? c->argv[++p->at] : "";
    if (store(o, at, value)) return true;
    cnri_text want = {0};
    describe(o, &want);
    c->code = cnri_mistake(name, NULL, "%s: wanted %s, got \"%s\"", o->name,
                           want.at ? want.at : "something else", value);
    cnri_text_free(&want);
    return false;
}

/* Parses a word that begins with a dash: --name, --name=value, -o value, -ovalue, -vv. False: it
 * failed. */
static bool take_word(parser *p) {
    const char *word = p->call->argv[p->at];
    void *at;
    if (word[1] == '-') {
        const int length = (int)strcspn(word, "=");
        const cnri_option *o = find(p, word, length, 0, &at);
        if (!o) return unknown_option(p, word, length);
        return take(p, o, at, word[length] ? word + length + 1 : NULL);
    }
    for (const char *c = word + 1; *c; c++) {
        const cnri_option *o = find(p, NULL, 0, *c, &at);
        if (!o) return unknown_option(p, word, (int)strlen(word));
        if (!take(p, o, at, o->argument && c[1] ? c + 1 : NULL)) return false;
        if (o->argument) break;
    }
    return true;
}

/* Reads all words; *next: the first behind "--". False: it is to end, with call->code. */
static bool take_all(parser *p, int *next) {
    cnri_call *c = p->call;
    for (bool options = true; p->at < c->argc; p->at++) {
        const char *word = c->argv[p->at], **slot;
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)) {
            cnri_help(c->command);
            return false;
        } else if (options && word[0] == '-' && word[1]) {
            if (!take_word(p)) return false;
        } else if (next) {
            break;
        } else if ((slot = cnri_push(&c->operands)) != NULL) {
            *slot = word;
        } else {
            c->code = cnri_mistake(c->command->name, NULL, "out of memory");
            return false;
        }
    }
    if (next) *next = p->at;
    return true;
}

/* Options that stand for load options. False: memory is out. */
static bool apply_modes(cnri_common *c) {
    const bool reference = c->mode && strcmp(c->mode, modes[1]) == 0;
    bool good = true;
    if (c->mode) good = cnri_list_add(&c->load.kernels, reference ? "*=reference" : "*=");
    if (good && reference)
        good = cnri_list_add(&c->load.no_rewrite, "all") &&
               cnri_list_add(&c->load.no_rewrite, "fold-affine");
    if (good && c->no_inplace) good = cnri_list_add(&c->load.no_rewrite, "inplace");
    if (good && c->no_share) good = cnri_list_add(&c->load.no_rewrite, "share");
    if (reference && !c->threads) c->threads = 1;
    return good;
}

bool cnri_call_parse(cnri_call *call, void *values, int *next) {
    const cnri_command *c = call->command;
    parser p = begin(call, values);
    if (!take_all(&p, next)) return false;
    if (!apply_modes(&call->common)) call->code = cnri_mistake(c->name, NULL, "out of memory");
    const int32_t n = call->operands.n;
    if (!next && n < c->min_operands)
        call->code =
            cnri_mistake(c->name, NULL, "something is missing: cnnrun %s %s", c->name, c->operands);
    else if (!next && c->max_operands >= 0 && n > c->max_operands &&
             !(c->takes & CNRI_NETS)) /* words behind a net may be its weights */
        call->code = cnri_mistake(c->name, NULL, "one word too many: \"%s\"",
                                  call->operands.at[c->max_operands]);
    return call->code == 0;
}

int cnri_command_at(int argc, char **argv) {
    static const cnri_command any = {.name = "", .takes = CNRI_NETS | CNRI_PICTURES | CNRI_GROUP};
    cnri_call call = {.command = &any};
    const parser p = begin(&call, NULL);
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *word = argv[i];
        const bool whole = word[1] == '-';
        const int length = (int)strcspn(word, "=");
        void *at;
        const cnri_option *o = find(&p, word, length, whole ? 0 : word[1], &at);
        if (!o) return -1;
        if (o->argument && !o->otherwise && (whole ? !word[length] : !word[2])) i++;
    }
    return i < argc ? i : -1;
}
