/* Options from tables: parsing, checks, suggestions. */
#include "core/cli/cli.h"
#include <math.h>

static const char *const channel_choices[] = {"net", "rgb", "bgr", "gray", NULL};

#define ROW(member, name, ...) CNRI_OPTION(cnri_common, member, name, __VA_ARGS__)
static const cnri_option general_options[] = {
    ROW(json, "--json", NULL, "results as JSON, one object a line"),
    ROW(plugin_dirs, "--plugin-dir", "DIR", "search plugins here first (repeatable)"),
    ROW(verbose, "--verbose", NULL, "say more on stderr; twice: still more", .letter = 'v'),
    ROW(quiet, "--quiet", NULL, "only errors on stderr, no progress", .letter = 'q'),
    ROW(clock, "--clock", "NAME",
        "a plugin's clock for all that is measured (the board's, or the machine's)"),
    ROW(sysfs_root, "--sysfs-root", "DIR", "where meters and knobs look for /sys and the like (/)"),
    ROW(meter_address, "--meter-address", "WHERE",
        "of a meter that is no file there: /dev/ttyUSB0, i2c:1:0x40"),
    ROW(cpu_isa, "--cpu-isa", "NAME",
        "which instruction set the CPU's kernels are of: avx512, avx2, generic ... (the widest)"),
    ROW(board, "--board", "NAME[,K=V...]",
        "a file that describes the machine, which is simulated if it is another")};

static const cnri_option net_options[] = {
    ROW(device, "--device", "NAME", "where to run: cpu, cpu:little, opencl:0 ... (the best)"),
    ROW(threads, "--threads", "N", "threads of the processor (0: all it has)", .max = 4096),
    ROW(weights, "--weights", "FILE,..",
        "weights from files (.cnr, .npz ...), random:SEED, or none (to look at)"),
    ROW(weights_type, "--weights-type", "TYPE",
        "fp16, bf16: kernels that can store weights so, and multiply in f32, take what they can (f32)"),
    ROW(arithmetic, "--arithmetic", "TYPE",
        "fp16: kernels that can multiply so take what they can, where the device does, too (f32)"),
    ROW(labels, "--labels", "FILE", "names of the classes, one a line (the net's own)"),
    ROW(net, "--net", "NAME", "which net of a script that holds several"),
    ROW(settings, "--option", "NAME=VALUE", "a setting of the importer (repeatable)"),
    ROW(symbols, "--symbol", "NAME=VALUE", "bind a named dimension (repeatable)"),
    ROW(no_rewrite, "--no-rewrite", "NAME", "leave a rewrite out (repeatable)"),
    ROW(kernels, "--kernel", "NODE=NAME",
        "have this kernel run a node, or all of an operator; NODE@DEVICE: there alone (repeatable)"),
    ROW(policy, "--policy", "FILE",
        "have a file of Lua pick among the net's candidates: kernels, devices, shares"),
    ROW(policy_options, "--policy-option", "NAME=VALUE", "a setting of the policy (repeatable)"),
    ROW(devices, "--devices", "A,B",
        "make candidates for these devices; the first runs what nobody places"),
    ROW(fallback, "--fallback", "A,B",
        "where a device fails, go on on the next of these, and say so (an error)"),
    ROW(memory, "--memory", "BYTES", "most memory for prepared weights; K, M, G count (no bound)"),
    ROW(memory_limit, "--memory-limit", "BYTES",
        "most memory for activations, inputs and outputs; more is refused (3/4 of what there is)"),
    ROW(governor, "--governor", "POLICY",
        "set frequencies by it while this runs: edp, fixed,at=lowest, mine.lua (cnnrun govern)"),
    ROW(cache, "--cache", "DIR",
        "keep plans and prepared weights here for the next time (CNNRUN_CACHE; none)"),
    ROW(cache_limit, "--cache-limit", "BYTES", "most that they may take; the oldest go first (4G)"),
    ROW(deterministic, "--deterministic", NULL, "never let a clock choose"),
    ROW(no_verify, "--no-verify", NULL,
        "believe the weights of a .cnr: their digests are not compared"),
    ROW(trust, "--trust", NULL, "let a script use any file, address, device and the clock; without it, those named here")};

static const cnri_option picture_options[] = {
    ROW(preset, "--preset", "NAME", "mean, std, scale and channels as usual: torchvision, tf ... "
        "(what follows goes before it)"),
    ROW(resize, "--resize", "HxW|N", "scale to H x W; N: the shorter side to N"),
    ROW(crop, "--crop", "HxW|N", "then cut this out of the middle"),
    ROW(mean, "--mean", "M,..|FILE", "subtract: a number a channel, or a picture"),
    ROW(std, "--std", "S,..", "divide: a number a channel"),
    ROW(scale, "--scale", "X", "multiply: value = (pixel - mean) * scale / std"),
    ROW(channels, "--channels", "ORDER", "order of the channels", .choices = channel_choices),
    ROW(letterbox, "--letterbox", NULL, "keep the picture's shape, fill the rest")};
#undef ROW

static const struct { cnri_group group; uint32_t takes; } shared[] = {
    {{"general", general_options, CNRI_COUNT(general_options)}, 0},
    {{"nets", net_options, CNRI_COUNT(net_options)}, CNRI_NETS},
    {{"pictures", picture_options, CNRI_COUNT(picture_options)}, CNRI_PICTURES}};

int32_t cnri_groups_of(const cnri_command *c, cnri_group out[CNRI_GROUPS]) {
    int32_t n = 0;
    if (c->n_options) out[n++] = (cnri_group){NULL, c->options, c->n_options};
    for (size_t i = 0; i < CNRI_COUNT(shared); i++)
        if ((c->takes & shared[i].takes) == shared[i].takes) out[n++] = shared[i].group;
    return n;
}

/* ---- values ---- */

/* "16", "64K", "1.5G". */
static bool parse_bytes(const char *text, uint64_t *out) {
    static const char units[] = "KMG";
    const char *end;
    double value;
    if (!cnri_parse_double(text, &end, &value) || !(value >= 0)) return false;
    const char *unit = memchr(units, *end & ~0x20, sizeof units - 1);
    for (int64_t i = 0; unit && i <= unit - units; i++) value *= 1024;
    end += unit != NULL;
    end += *end == 'i';
    end += *end == 'B';
    if (*end || !(value < 9e18)) return false;
    *out = (uint64_t)value;
    return true;
}

static bool parse_choice(const cnri_option *o, const char *text, int32_t *out) {
    for (int32_t i = 0; o->choices[i]; i++)
        if (strcmp(o->choices[i], text) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* Lists for the core end in a NULL, which does not count. */
static bool parse_word(const char *text, cnri_words *words) {
    const char **slot = cnri_push(words);
    if (slot) *slot = text;
    const bool ended = slot && cnri_push(words);
    if (ended) words->n--;
    return ended;
}

static bool unbounded(const cnri_option *o) {
    return o->min == 0 && o->max == 0;
}

static bool is_bytes(const cnri_option *o) {
    return o->type == CNRI_T_U64 && unbounded(o);
}

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

static bool store(const cnri_option *o, void *at, const char *text) {
    if (o->type == CNRI_T_BOOL) *(bool *)at = true;
    else if (o->type == CNRI_T_TEXT) *(const char **)at = text;
    else if (o->type == CNRI_T_WORDS) return parse_word(text, at);
    else if (o->choices) return parse_choice(o, text, at);
    else if (!o->argument) ++*(int32_t *)at;
    else return is_bytes(o) ? parse_bytes(text, at) : parse_number(o, text, at);
    return true;
}

/* What `store` would have taken. */
static void describe(const cnri_option *o, cnri_text *out) {
    const char *kind = o->type == CNRI_T_REAL ? "a number" : "a whole number";
    if (o->type == CNRI_T_WORDS) cnri_text_add(out, "more memory");
    else if (is_bytes(o)) cnri_text_add(out, "a number of bytes like 64M");
    else if (unbounded(o) && !o->choices) cnri_text_add(out, "%s", kind);
    else if (!o->choices) cnri_text_add(out, "%s from %.15g to %.15g", kind, o->min, o->max);
    else cnri_text_add(out, "one of");
    for (int32_t i = 0; o->choices && o->choices[i]; i++) cnri_text_add(out, " %s", o->choices[i]);
}

/* ---- parsing ---- */

typedef struct parser {
    cnri_call *call;
    void *values;
    cnri_group groups[CNRI_GROUPS];
    int32_t n;
    int at; /* in argv */
} parser;

static parser begin(cnri_call *call, void *values) {
    parser p = {.call = call, .values = values, .at = 1};
    p.n = cnri_groups_of(call->command, p.groups);
    return p;
}

static bool unknown_option(const parser *p, const char *word, int length) {
    cnri_words names = {0};
    char name[128];
    const char **slot = cnri_push(&names);
    if (slot) *slot = "--help";
    for (int32_t g = 0; g < p->n; g++)
        for (int32_t i = 0; i < p->groups[g].n; i++)
            if ((slot = cnri_push(&names)) != NULL) *slot = p->groups[g].rows[i].name;
    snprintf(name, sizeof name, "%.*s", length, word);
    p->call->code = cnri_mistake(p->call->command->name, cnri_nearest(name, names.at, names.n),
                                 "unknown option %s", name);
    cnri_vec_free(&names);
    return false;
}

/* By its name, or by its letter where that is not 0; *at: where its value is. */
static const cnri_option *find(const parser *p, const char *word, int length, char letter,
                               void **at) {
    for (int32_t g = 0; g < p->n; g++)
        for (int32_t i = 0; i < p->groups[g].n; i++) {
            const cnri_option *o = &p->groups[g].rows[i];
            if (letter ? o->letter != letter
                       : strlen(o->name) != (size_t)length || strncmp(o->name, word,
                                                                      (size_t)length))
                continue;
            *at = (char *)(p->groups[g].title ? (void *)&p->call->common : p->values) + o->at;
            return o;
        }
    return NULL;
}

/* Takes the option with the text behind it, or the next word. */
static bool take(parser *p, const cnri_option *o, void *at, const char *attached) {
    cnri_call *c = p->call;
    const char *name = c->command->name;
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

/* One word that begins with a dash: --name, --name=value, -o value, -ovalue, -vv. */
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

bool cnri_call_parse(cnri_call *call, void *values, int *next) {
    const cnri_command *c = call->command;
    parser p = begin(call, values);
    if (!take_all(&p, next)) return false;
    const int32_t n = call->operands.n;
    if (!next && n < c->min_operands)
        call->code = cnri_mistake(c->name, NULL, "something is missing: cnnrun %s %s", c->name,
                                  c->operands);
    else if (!next && c->max_operands >= 0 && n > c->max_operands &&
             !(c->takes & CNRI_NETS)) /* words behind a net may be its weights */
        call->code = cnri_mistake(c->name, NULL, "one word too many: \"%s\"",
                                  call->operands.at[c->max_operands]);
    return call->code == 0;
}

int cnri_command_at(int argc, char **argv) {
    static const cnri_command any = {.name = "", .takes = CNRI_NETS | CNRI_PICTURES};
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
        if (o->argument && (whole ? !word[length] : !word[2])) i++;
    }
    return i < argc ? i : -1;
}
