/* cli: the program's subcommands and what they share: options, results, progress, signals.
 *
 * A subcommand is a file cmd_NAME.c with a descriptor `cnri_cmd_NAME` and one row in CNRI_COMMANDS.
 * Parsing, help, suggestions, completions, opening and closing come from the descriptor; results
 * from tables of fields, which are printed as lines for people or as JSON:
 *
 *     typedef struct bench { int64_t runs; bool profile; } bench;
 *     static const cnri_option options[] = {
 *         CNRI_OPTION(bench, runs, "--runs", "N", "timed runs (20)", .min = 1, .max = 1e6),
 *         CNRI_OPTION(bench, profile, "--profile", NULL, "time of each step")};
 *     static const cnri_field fields[] = {CNRI_FIELD(timing, "ms", ms), ...};
 *     static const cnri_record record = CNRI_RECORD(fields, "{ms:.3f} ms\n");
 *     static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
 *         const bench *b = values;       ... call->model is the net ...
 *         return cnri_tell(call, &record, &timing, err);
 *     }
 *     const cnri_command cnri_cmd_bench = {
 *         .name = "bench", .operands = "NET", .summary = "Measures ...", CNRI_OPTIONS(options),
 *         CNRI_VALUES(bench, .runs = 20), CNRI_ONE_NET(CNRI_OPENS_MODEL), .run = run};
 */
#ifndef CNRI_CLI_H
#define CNRI_CLI_H

#include "core/work/work.h"

/* One row a subcommand, in the order of the help: name, one line of help. */
#define CNRI_COMMANDS(X)                                                                     \
    X(run, "what a net says of pictures (the word run may be left out)")                     \
    X(train, "train a net on labelled pictures")                                             \
    X(eval, "how often a net is right on labelled pictures")                                 \
    X(bench, "time and memory of a net")                                                     \
    X(warm, "plan a net and prepare its weights now, for quick starts later")                \
    X(place, "measure a net on each device and have a policy share it among them")           \
    X(tune, "time the kernels of a net's layers and keep the record for planning")           \
    X(show, "a net node by node, before anything runs")                                      \
    X(import, "a model of another program to the native file")                               \
    X(convert, "any net to the native file, weights encoded if asked")                       \
    X(quantize, "have a net work on 8-bit whole numbers")                                    \
    X(prune, "cut a net's weights by a schedule, and train on in between")                   \
    X(check, "verify the digests of native model files")                                     \
    X(plugins, "list plugins with what they provide, or why they were refused")              \
    X(devices, "what can run nets here, and how fast it is at its best")                      \
    X(boards, "what a board file may hold; checks boards")                                   \
    X(gauges, "meters and knobs of this machine, and what they read now")                    \
    X(govern, "set frequencies by a policy: live, on a recording, on a played board")          \
    X(helper, "as root: readings and settings for the members of a group")                    \
    X(energy, "what the machine draws: domains, a log, curves, what a command takes")        \
    X(ops, "list operators, their inputs, attributes and help")                              \
    X(lua, "what scripts can say, function by function; type files for editors")             \
    X(export, "write a net in another format")                                                \
    X(verify, "run models on given inputs, compare with given outputs")                       \
    X(kernelcheck, "judge every kernel by its operator's reference")                         \
    X(completions, "what a shell completes: for bash, zsh or fish")

/* ---- fields.c: members of structs, by name and type ---- */

typedef CNRI_VEC(const char *) cnri_words;

typedef enum cnri_type {
    CNRI_T_BOOL, CNRI_T_I32, CNRI_T_U32, CNRI_T_I64, CNRI_T_U64, CNRI_T_REAL,
    CNRI_T_TEXT, /* a pointer, which may be NULL */
    CNRI_T_HERE, /* an array of char */
    CNRI_T_WORDS
} cnri_type;

#define CNRI_TYPE_OF(value)                                                                        \
    _Generic((value), bool: CNRI_T_BOOL, int32_t: CNRI_T_I32, uint32_t: CNRI_T_U32,                \
             int64_t: CNRI_T_I64, uint64_t: CNRI_T_U64, double: CNRI_T_REAL,                       \
             const char *: CNRI_T_TEXT, cnri_words: CNRI_T_WORDS,                                  \
             char *: sizeof(value) == sizeof(char *) ? CNRI_T_TEXT : CNRI_T_HERE)
#define CNRI_MEMBER(owner, member)                                                                 \
    .type = CNRI_TYPE_OF(((owner *)0)->member), .at = offsetof(owner, member)

typedef struct cnri_field {
    const char *key;
    cnri_type type;
    size_t at;
    bool aside; /* for people alone: no part of the JSON object */
    bool maybe; /* no part of it without a value: NULL, NaN, CNRI_NONE */
} cnri_field;
#define CNRI_NONE INT64_MIN
#define CNRI_MAYBE(owner, name, member) {.key = (name), CNRI_MEMBER(owner, member), .maybe = true}
#define CNRI_FIELD(owner, name, member) {.key = (name), CNRI_MEMBER(owner, member)}
#define CNRI_KEY(owner, member) CNRI_FIELD(owner, #member, member) /* of the same name */
#define CNRI_KEY_IN(owner, part, member) CNRI_FIELD(owner, #member, part.member)
#define CNRI_ASIDE(owner, name, member) {.key = (name), CNRI_MEMBER(owner, member), .aside = true}

/* A result: its fields in the order of the JSON object, and how people are told. In `line`
 *     {key}           is the field's value,
 *     {key:10.3f}     as printf has it (d, f, g, s or none behind the width); % a hundred times as
 *                     much, M a millionth, t a duration,
 *     {key?yes|no}    one text or the other, which may hold fields too: is there a value? None are
 *                     NULL, "", false, NaN, CNRI_NONE and 0 of whole numbers,
 *     {key+s}         the text unless the value is 1: layer{n+s}. */
typedef struct cnri_record {
    const cnri_field *fields;
    int32_t n;
    const char *line;
    bool warns; /* what was odd about call->model belongs to it, as "warnings" */
} cnri_record;
#define CNRI_RESULTS(...) (const cnri_record *const[]){__VA_ARGS__, NULL}
#define CNRI_RECORD(table, text) {.fields = (table), .n = CNRI_COUNT(table), .line = (text)}

/* ---- options.c ---- */

/* By the type of its member: bool: no argument; int32_t: which of `choices`, or without an argument
 * how often it was given; whole and real numbers within min..max; uint64_t without bounds: bytes, with
 * K, M or G behind; cnri_words: every occurrence. */
typedef struct cnri_option {
    const char *name;     /* "--limit" */
    const char *argument; /* "N"; NULL: takes none */
    cnri_type type;
    size_t at;            /* in the command's struct, where its default is */
    const char *help;     /* NULL: not for people, so not listed */
    double min, max;      /* both 0: no bounds */
    const char *const *choices; /* NULL-terminated */
    char letter;          /* 'o': -o does the same; 0: none */
    bool wanted;          /* the command can't do without */
    bool writes;          /* a file that will be written: none of those that are read */
    const char *beside;   /* and one beside it of that ending; NULL: none */
} cnri_option;
#define CNRI_OPTION(owner, member, word, wants, ...)                                               \
    {.name = (word), .argument = (wants), CNRI_MEMBER(owner, member), .help = __VA_ARGS__}

/* The options that commands share: those of all first, then those of commands that take nets. */
typedef struct cnri_common {
    cnri_words plugin_dirs;
    int32_t verbose, quiet;
    bool json;
    const char *device;
    int64_t threads;
    const char *weights, *weights_type, *arithmetic, *labels, *net;
    cnri_words no_rewrite, symbols, settings, kernels; /* the last three: "name=value" */
    const char *policy, *devices, *fallback; /* the last two: "cpu,opencl:0" */
    cnri_words policy_options;    /* "name=value" */
    bool deterministic, no_verify, trust, letterbox;
    uint64_t memory, memory_limit, cache_limit;
    const char *governor;
    const char *cache, *clock, *sysfs_root, *meter_address, *board, *cpu_isa;
    const char *preset, *resize, *crop, *mean, *std, *scale;
    int32_t channels; /* 0: as the net says */
} cnri_common;

enum { CNRI_NETS = 1, CNRI_PICTURES = 2 }; /* `takes`: which of them besides the general ones */

typedef enum cnri_opens { /* what a command finds when it runs */
    CNRI_OPENS_NOTHING,
    CNRI_OPENS_RUNTIME,
    CNRI_OPENS_GRAPH, /* of the first operand, and what stands behind it is weights */
    CNRI_OPENS_MODEL
} cnri_opens;

typedef struct cnri_call cnri_call;
typedef struct cnri_command {
    const char *name;
    const char *operands; /* "NET --data SPEC", as help shows them */
    const char *summary;
    const char *details;  /* (optional) paragraphs behind the option list */
    const cnri_record *const *results; /* (optional) help tells of their JSON; up to a NULL */
    const cnri_option *options;
    int32_t n_options;
    size_t room;          /* of the struct that options fill */
    const void *usual;    /* what it holds before them; NULL: zeros */
    int32_t min_operands, max_operands; /* max -1: any number */
    uint32_t takes;
    cnri_opens opens;
    /* (optional) Before all words are parsed. False: that was all, and call->code is set. */
    bool (*leads)(cnri_call *call, void *values);
    /* (optional) What is wrong with the options, before anything opens; NULL: nothing. */
    const char *(*wrong)(const cnri_call *call, const void *values);
    /* call->code is the program's exit code when this says CNR_OK. */
    cnr_status (*run)(cnri_call *call, void *values, cnr_error *err);
    void (*more)(void);   /* (optional) prints what only the plugins know, behind the details */
} cnri_command;
#define CNRI_ONE_NET(what)                                                                         \
    .min_operands = 1, .max_operands = 1, .takes = CNRI_NETS | CNRI_PICTURES, .opens = (what)
#define CNRI_OPTIONS(table) .options = (table), .n_options = CNRI_COUNT(table)
#define CNRI_VALUES(owner, ...) .room = sizeof(owner), .usual = &(const owner){__VA_ARGS__}

#define X(name, help) extern const cnri_command cnri_cmd_##name;
CNRI_COMMANDS(X)
#undef X
#define X(name, help) CNRI_CMD_##name,
enum { CNRI_COMMANDS(X) CNRI_N_COMMANDS };
#undef X
/* The rows as a table, in main.c. */
typedef struct cnri_row { const cnri_command *command; const char *help; } cnri_row;
extern const cnri_row cnri_commands[CNRI_N_COMMANDS];

/* ---- app.c ---- */
/* `path` with another ending than its own: cnri_free; NULL: out of memory. */
char *cnri_beside(const char *path, const char *ending);
/* Has the application of that name draw a table. */
cnr_status cnri_app_draw(const cnri_call *call, const char *name, const char *csv, const char *picture,
                         cnr_error *err);

/* What a work's observer is for the program: progress becomes a bar, signals stop the work. */
typedef struct cnri_watching {
    cnr_observer observer;
    const char *what; /* NULL: no bar is there */
    int64_t first, total; /* done when it began; 0: unknown */
    uint64_t begun_ns, shown_ns;
    bool terminal, quiet;
    int32_t width;    /* of the last bar drawn */
} cnri_watching;

/* One use of a command. */
struct cnri_call {
    const cnri_command *command;
    int argc;
    char **argv; /* argv[0] is the command's name */
    cnri_common common;
    cnri_words operands;
    int32_t rest;    /* the first operand behind the net and its weights, once it is loaded */
    char *weights;   /* words behind the net, if they are common.weights */
    char *script;    /* the application's, if one is run */
    cnr_runtime *rt; /* this and what follows: as the command opens them */
    cnr_governing *governing; /* of --governor */
    cnr_graph *graph;
    cnr_model *model;
    cnri_watching watching;
    int code;
    bool again; /* at the end the program begins anew, with the words it had */
};

/* Parses, opens, runs, closes; returns the exit code. (command.c) */
int cnri_command_run(const cnri_command *command, int argc, char **argv);
/* NULL: there is none. (main.c) */
const cnri_command *cnri_command_find(const char *name);

/* Parses argv[1..argc) into call->common, ->operands and `values`. With `next` it stops at the first
 * operand, whose index in argv this is (argc: none). False: leave with call->code (help was printed, or
 * a mistake explained). */
bool cnri_call_parse(cnri_call *call, void *values, int *next);
void cnri_call_free(cnri_call *call);
/* Where in argv the first word behind options that may stand before a command is; -1: none. */
int cnri_command_at(int argc, char **argv);

/* Option tables that hold for a command, its own first. */
typedef struct cnri_group {
    const char *title; /* of the shared ones; NULL: the command's own */
    const cnri_option *rows;
    int32_t n;
} cnri_group;
enum { CNRI_GROUPS = 4 };
int32_t cnri_groups_of(const cnri_command *command, cnri_group out[CNRI_GROUPS]);

/* ---- reference.c: the option tables as text ---- */
void cnri_help(const cnri_command *command); /* NULL: what all that take nets have in common */
/* A man page, or what bash, zsh or fish complete: false: no such form. */
bool cnri_reference(const char *form);

/* ---- complain.c: "cnnrun COMMAND: where: text" on stderr; with --json also, on stdout,
 *     {"error": {"code": the exit code, "place": ..., "text": ...}}
 * Each returns the exit code. ---- */
/* Looks for --json, before anything is parsed. */
void cnri_errors_begin(int argc, char **argv);
int cnri_complain(const cnri_call *call, const cnr_error *err);
/* Only the line: the command tells it in an object of its own. */
int cnri_complain_beside(const cnri_call *call, const cnr_error *err);
/* A mistake in the command line, with what may have been meant (NULL: nothing). */
int cnri_mistake(const char *command, const char *nearest, const char *format, ...) CNRI_PRINTF(3, 4);
/* The same out of a signal handler; the text is short and needs no escaping. */
void cnri_error_at_once(const char *text, int code);

/* ---- setup.c: from options to runtimes and models ---- */
/* --cache, else CNNRUN_CACHE; NULL: none. */
const char *cnri_call_cache(const cnri_call *call);
cnr_status cnri_call_open(cnri_call *call, cnr_error *err);
/* Whether a runtime opened for `was` won't do for `now`; what can still be changed of it is. */
bool cnri_call_reopen(const cnri_call *was, const cnri_call *now);
/* How nets are loaded, as the options say; to be freed after an error too. */
typedef struct cnri_loading {
    cnr_load_options options;
    const char **names; /* of symbols */
    int64_t *values;
    char *text;
    const char **devices, **fallback;
    char *device_text, *fallback_text;
} cnri_loading;
cnr_status cnri_call_loading(const cnri_call *call, cnri_loading *out, cnr_error *err);
void cnri_loading_free(cnri_loading *l);
/* Takes words behind the net as its weights; loading does. */
cnr_status cnri_call_weights(cnri_call *call, cnr_error *err);
/* Load the first operand as the options say and set its preprocessing from the flags. */
cnr_status cnri_call_model(cnri_call *call, cnr_error *err);
cnr_status cnri_call_graph(cnri_call *call, cnr_error *err);
/* Where options wish for nothing else, the model follows the placement kept in the cache folder. */
cnr_status cnri_call_placed(cnri_call *call, cnr_error *err);
/* A model of call->graph, which it takes over, with the same options. */
cnr_status cnri_call_model_of_graph(cnri_call *call, cnr_error *err);
/* The preprocessing flags, put into `graph` for its picture inputs. */
cnr_status cnri_call_preprocess(const cnri_call *call, cnr_graph *graph, cnr_error *err);

/* ---- cmd_govern.c: --governor ---- */
/* Begins with the runtime; without the option nothing. */
cnr_status cnri_call_govern(cnri_call *call, cnr_error *err);
/* All is put back, and what came of it told, on stderr to people. */
void cnri_call_ungovern(cnri_call *call);

/* ---- json.c: one object a line on stdout; results are told by cnri_tell where that can do it ----
 *     cnri_json j = {0};
 *     cnri_json_begin(&j);  cnri_json_text(&j, "input", name);  cnri_json_list(&j, "top"); ...
 *     cnri_json_end(&j);    (of the list)
 *     status = cnri_json_print(&j, err);      ends the object, writes the line, frees ---- */
typedef struct cnri_json { cnri_text text; char closers[32]; int32_t depth; bool comma; } cnri_json;
void cnri_json_begin(cnri_json *j);
/* key NULL inside lists */
void cnri_json_object(cnri_json *j, const char *key);
void cnri_json_list(cnri_json *j, const char *key);
void cnri_json_end(cnri_json *j);
void cnri_json_text(cnri_json *j, const char *key, const char *value); /* NULL: null */
void cnri_json_int(cnri_json *j, const char *key, int64_t value);
void cnri_json_real(cnri_json *j, const char *key, double value); /* not finite: null */
void cnri_json_bool(cnri_json *j, const char *key, bool value);
/* "warnings": what was odd about the net and how it is asked; nothing where nothing was. */
void cnri_json_warnings(cnri_json *j, const cnr_graph *g);
cnr_status cnri_json_print(cnri_json *j, cnr_error *err);

/* ---- fields.c ---- */
/* A result: an object with --json, else the line. */
cnr_status cnri_tell(const cnri_call *call, const cnri_record *record, const void *of,
                     cnr_error *err);
cnr_status cnri_tell_text(const cnri_text *text, cnr_error *err); /* as it is, on stdout */
/* The line alone; the fields alone, into an object that is begun. */
cnr_status cnri_tell_line(const cnri_record *record, const void *of, cnr_error *err);
void cnri_json_fields(cnri_json *j, const cnri_record *record, const void *of);

/* ---- energy.c: what was measured, as fields and a line of the result that it belongs to ---- */
typedef struct cnri_energy_shown {
    const char *source; /* NULL: energy was not asked for */
    const char *unmeasured, *per; /* why nothing can be told; "a run": what the joules are of */
    const char *net_unmeasured;   /* why joules net of idle can't */
    const char *missing;          /* domains that the sums lack */
    double seconds, joules, joules_net, watts, idle_watts, edp, fps, fps_per_watt;
    int64_t samples, rounds;
} cnri_energy_shown;
cnri_energy_shown cnri_energy_show(const cnr_energy *e, const char *per, double pictures);
#define CNRI_ENERGY_FIELDS(owner, at)                                                              \
    CNRI_FIELD(owner, "energy_source", at.source), CNRI_FIELD(owner, "joules", at.joules),         \
        CNRI_FIELD(owner, "joules_net", at.joules_net), CNRI_FIELD(owner, "watts", at.watts),      \
        CNRI_FIELD(owner, "idle_watts", at.idle_watts), CNRI_FIELD(owner, "edp", at.edp),          \
        CNRI_FIELD(owner, "fps", at.fps), CNRI_FIELD(owner, "fps_per_watt", at.fps_per_watt),      \
        CNRI_MAYBE(owner, "samples", at.samples), CNRI_MAYBE(owner, "rounds", at.rounds),          \
        CNRI_MAYBE(owner, "net_unmeasured", at.net_unmeasured),                                  \
        CNRI_MAYBE(owner, "missing", at.missing),                                                \
        CNRI_ASIDE(owner, "per", at.per), CNRI_ASIDE(owner, "unmeasured", at.unmeasured)
#define CNRI_ENERGY_LINE                                                                           \
    "{joules?energy    {joules:.4g} J {per}{joules_net?, {joules_net:.4g} net of idle}, {watts:.4g} W"\
    "{fps?, {fps:.4g} FPS, {fps_per_watt:.4g} FPS/W}, EDP {edp:.4g} J s\n"                         \
    "          of the whole machine{missing? but {missing}}, {energy_source}: {samples} samples in {rounds} round{rounds+s}\n}"\
    "{net_unmeasured?          net of idle unmeasured: {net_unmeasured}\n}"                           \
    "{unmeasured?energy    unmeasured: {unmeasured}\n}"
/* A line each. fps: of the whole; NaN: nothing is counted. */
extern const cnri_record cnri_energy_domain;
cnr_status cnri_tell_domains(const cnri_call *call, const cnr_energy *e, double fps, cnr_error *err);

/* ---- progress.c: on stderr; a bar on a terminal, a line now and then elsewhere ---- */
const cnr_observer *cnri_watch(cnri_call *call);
int32_t cnri_watch_show(void *watching, const cnr_progress *p);
void cnri_watch_end(cnri_watching *w); /* removes the bar */
/* "12s", "3m04s", "1h02m" */
void cnri_duration(double seconds, char *out, size_t room);

/* ---- guard.c: with signals.c the only signal handlers of the house ---- */
void cnri_guard_install(void);

/* ---- signals.c ---- */
/* From now on SIGINT and SIGTERM set the flag; a second one ends the process as usual. */
void cnri_signals_install(void);
/* The status negated; cancelled by a signal: 128 and its number, as shells have it. */
int cnri_exit_code(int32_t status);
bool cnri_cancelled(void);
/* From now on the command looks at cnri_cancelled itself, however rarely; else it is ended a second
 * after the signal. */
void cnri_signals_patient(void);
/* The flag itself, for observers: whoever asks for it sees to it that it is looked at. */
const volatile int32_t *cnri_signals_flag(void);

#endif
