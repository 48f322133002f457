/* front: what the programs share: options, help, results, progress, signals. It uses the engine
 * alone.
 *
 * A command is a descriptor. Parsing, help, suggestions, completions, opening and closing come from
 * it; results come from tables of fields, which are printed as lines for people or as JSON:
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
 *         CNRI_VALUES(bench, .runs = 20), CNRI_ONE_NET(cnri_call_model), .run = run};
 */
#ifndef CNRI_FRONT_H
#define CNRI_FRONT_H

#include "run/run.h"
#include <cnnrun/power.h>

/* ---- fields.c: members of structs, by name and type ---- */

typedef CNRI_VEC(const char *) cnri_words;

typedef enum cnri_type {
    CNRI_T_BOOL,
    CNRI_T_I32,
    CNRI_T_U32,
    CNRI_T_I64,
    CNRI_T_U64,
    CNRI_T_REAL,
    CNRI_T_TEXT, /* a pointer, which may be NULL */
    CNRI_T_HERE, /* an array of char */
    CNRI_T_WORDS,
    CNRI_T_LIST,  /* const char *const *, to a NULL; cnri_free */
    CNRI_T_COMMAS /* the same, of one word: "cpu,opencl:0" */
} cnri_type;

#define CNRI_TYPE_OF(value) \
    _Generic((value), bool: CNRI_T_BOOL, int32_t: CNRI_T_I32, uint32_t: CNRI_T_U32,                \
             int64_t: CNRI_T_I64, uint64_t: CNRI_T_U64, double: CNRI_T_REAL,                       \
             const char *: CNRI_T_TEXT, cnri_words: CNRI_T_WORDS,                                  \
             char *: sizeof(value) == sizeof(char *) ? CNRI_T_TEXT : CNRI_T_HERE)
#define CNRI_MEMBER(owner, member) \
    .type = CNRI_TYPE_OF(((owner *)0)->member), .at = offsetof(owner, member)

typedef struct cnri_field {
    const char *key;
    cnri_type type;
    size_t at;
    bool aside; /* for people alone: no part of the JSON object */
    bool maybe; /* no part of it without a value: NULL, NaN, CNRI_NONE */
} cnri_field;
#define CNRI_NONE INT64_MIN
#define CNRI_MAYBE(owner, name, member) \
    { .key = (name), CNRI_MEMBER(owner, member), .maybe = true }
#define CNRI_FIELD(owner, name, member) \
    { .key = (name), CNRI_MEMBER(owner, member) }
#define CNRI_KEY(owner, member) CNRI_FIELD(owner, #member, member) /* of the same name */
#define CNRI_KEY_IN(owner, part, member) CNRI_FIELD(owner, #member, part.member)
#define CNRI_ASIDE(owner, name, member) \
    { .key = (name), CNRI_MEMBER(owner, member), .aside = true }

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
#define CNRI_RESULTS(...) \
    (const cnri_record *const[]) { __VA_ARGS__, NULL }
#define CNRI_RECORD(table, text) \
    { .fields = (table), .n = CNRI_COUNT(table), .line = (text) }

/* ---- options.c ---- */

/* By the type of its member: bool: no argument; int32_t: which of `choices`, or without an argument
 * how often it was given; whole and real numbers within min..max; uint64_t without bounds: bytes,
 * with K, M or G behind; a text: one of `choices`, if there are; cnri_words and lists: every
 * occurrence. */
typedef struct cnri_option {
    const char *name;     /* "--limit" */
    const char *argument; /* "N"; NULL: takes none */
    cnri_type type;
    size_t at;                  /* in the command's struct, where its default is */
    const char *help;           /* NULL: not for people, so not listed */
    double min, max;            /* both 0: no bounds */
    const char *const *choices; /* NULL-terminated */
    char letter;                /* 'o': -o does the same; 0: none */
    bool wanted;                /* the command can't do without */
    bool writes;                /* a file that will be written: none of those that are read */
    const char *beside;         /* and one beside it of that ending; NULL: none */
    const char *otherwise;      /* of a text: the value where none follows; what can follow are a
                                   number, more of them behind a comma, true and false */
    const char *refused;        /* why the command can't take it, which is its whole answer */
} cnri_option;
#define CNRI_OPTION(owner, member, word, wants, ...) \
    { .name = (word), .argument = (wants), CNRI_MEMBER(owner, member), .help = __VA_ARGS__ }

/* The options that commands share: those of all first, then those of commands that take nets. */
typedef struct cnri_common {
    cnri_words plugin_dirs, skip_plugins;
    const char *const *plugin_order;
    int32_t verbose, quiet;
    bool json;
    cnr_load_options load; /* lists are its own; symbols: "NAME=VALUE", till they are cut */
    int64_t threads;
    bool trust;
    const char *governor;
    const char *group; /* of processes; NULL: the one whose launcher started this process */
    const char *clock, *sysfs_root, *meter_address, *board, *cpu_isa;
    const char *preset, *resize, *crop, *mean, *std, *scale, *letterbox;
    int32_t channels; /* 0: as the net says */
} cnri_common;

/* `takes`: which options besides the general ones. OWN_FILES: each process of a group writes files
 * of its own; else only rank 0 writes. */
enum { CNRI_NETS = 1, CNRI_PICTURES = 2, CNRI_GROUP = 4, CNRI_OWN_FILES = 8 };

typedef struct cnri_call cnri_call;
typedef struct cnri_command {
    const char *name;
    const char *operands; /* "NET --data SPEC", as help shows them */
    const char *summary;
    const char *example;               /* a whole line, as typed */
    const char *details;               /* (optional) paragraphs behind the option list */
    const cnri_record *const *results; /* (optional) help tells of their JSON; up to a NULL */
    const cnri_option *options;
    int32_t n_options;
    size_t values_bytes;                /* of the struct that options fill */
    const void *defaults;               /* what it holds before they are parsed; NULL: zeros */
    int32_t min_operands, max_operands; /* max -1: any number */
    uint32_t takes;
    /* (optional) What the command finds in its call: a runtime, a graph or a model. */
    cnr_status (*opens)(cnri_call *call, cnr_error *err);
    /* (optional) Before all words are parsed. False: that was all, and call->code is set. */
    bool (*leads)(cnri_call *call, void *values);
    /* (optional) What is wrong with the options, before anything opens; NULL: nothing. */
    const char *(*wrong)(const cnri_call *call, const void *values);
    /* call->code is the program's exit code when this says CNR_OK. */
    cnr_status (*run)(cnri_call *call, void *values, cnr_error *err);
    void (*more)(void);  /* (optional) prints what only the plugins know, behind the details */
    const char *without; /* (optional) why options of nets and pictures that it does not take have
                            no use here */
} cnri_command;
#define CNRI_ONE_NET(what) \
    .min_operands = 1, .max_operands = 1, .takes = CNRI_NETS | CNRI_PICTURES, .opens = (what)
#define CNRI_ONE_NET_SHARED(what) /* by the processes of a group */ \
    .min_operands = 1, .max_operands = 1, .takes = CNRI_NETS | CNRI_PICTURES | CNRI_GROUP, \
    .opens = (what)
#define CNRI_OPTIONS(table) .options = (table), .n_options = CNRI_COUNT(table)
#define CNRI_VALUES(owner, ...) \
    .values_bytes = sizeof(owner), .defaults = &(const owner) { __VA_ARGS__ }

/* What a work's observer is for the program: progress becomes a bar, signals stop the work. */
typedef struct cnri_watching {
    cnr_observer observer;
    const char *what;     /* NULL: no bar is there */
    int64_t first, total; /* done when it began; 0: unknown */
    uint64_t begun_ns, shown_ns;
    bool terminal, quiet;
    int32_t width; /* of the last bar drawn */
} cnri_watching;

/* One use of a command. */
struct cnri_call {
    const cnri_command *command;
    int argc;
    char **argv; /* argv[0] is the command's name */
    cnri_common common;
    cnri_words operands;
    int32_t
        next_operand; /* index of the first operand behind the net and its weights, once loaded */
    char *weights;    /* words behind the net, if they are common.load.weights */
    char *script;     /* the application's, if one is run */
    cnr_runtime *rt;  /* this and what follows: as the command opens them */
    cnr_governing *governing;        /* of --governor */
    void (*closes)(cnri_call *call); /* (optional) before the runtime is closed */
    cnr_graph *graph;
    cnr_model *model;
    cnri_watching watching;
    int code;
    bool stdout_taken;        /* by the output of a command that ran beside */
    uint32_t errors_after_ms; /* its errors wait so long: others of its job may tell the same */
    bool again;               /* at the end the program begins anew, with the words it had */
};

/* ---- program.c ---- */
/* What stands around `run` in a program: signals, crashes, output that can't be written. Returns
 * the exit code. */
int cnri_program(int argc, char **argv, int (*run)(int argc, char **argv));

/* ---- command.c ---- */
/* Parses, opens, runs, closes; returns the exit code. */
int cnri_command_run(const cnri_command *command, int argc, char **argv);
/* `path` with another ending than its own: cnri_free; NULL: out of memory. */
char *cnri_path_with_ending(const char *path, const char *ending);

/* ---- options.c ---- */
/* Parses argv[1..argc) into call->common, ->operands and `values`. With `next` it stops at the
 * first operand, whose index in argv this is (argc: none). False: leave with call->code (help was
 * printed, or a mistake explained). */
bool cnri_call_parse(cnri_call *call, void *values, int *next);
/* "300", "20K", "1.5G", "4GiB". */
bool cnri_parse_bytes(const char *text, uint64_t *out);
/* One more word of a CNRI_T_LIST; false: for want of memory. */
bool cnri_list_add(const char *const **list, const char *word);
void cnri_call_free(cnri_call *call);
/* Where in argv the first word behind options that may stand before a command is; -1: none. */
int cnri_command_at(int argc, char **argv);

/* Option tables that hold for a command, its own first. */
typedef struct cnri_group {
    const char *title; /* of the shared ones; NULL: the command's own */
    const cnri_option *rows;
    int32_t n;
} cnri_group;
enum { CNRI_GROUPS = 5 };
int32_t cnri_groups_of(const cnri_command *command, cnri_group out[CNRI_GROUPS]);
void cnri_help(const cnri_command *command); /* NULL: what all that take nets have in common */

/* ---- help.c: the option tables as text ---- */
/* `command` may be NULL. */
void cnri_help_print(const cnri_command *command, const cnri_group *groups, int32_t n);
typedef void (*cnri_option_fn)(const cnri_command *c, const cnri_option *o);
/* Those of a group that people are told of. */
void cnri_each_option(const cnri_command *c, const cnri_group *group, cnri_option_fn fn);
/* `head` with the option's units or choices behind it; until the next call. */
const char *cnri_option_choices(const cnri_option *o, const char *head, const char *between);
const char *cnri_option_help(const cnri_option *o);
/* The keys of a command's JSON, a line a record. */
void cnri_put_results(const cnri_command *c, void (*put)(const char *));

/* ---- complain.c: "cnnrun COMMAND: where: text" on stderr; with --json also, on stdout,
 *     {"error": {"code": the exit code, "place": ..., "text": ...}}
 * Each returns the exit code. ---- */
/* Looks for --json, before anything is parsed. */
void cnri_errors_begin(int argc, char **argv);
int cnri_complain(const cnri_call *call, const cnr_error *err);
/* Only the line: the command tells it in an object of its own. */
int cnri_complain_line(const cnri_call *call, const cnr_error *err);
/* A mistake in the command line, with what may have been meant (NULL: nothing). */
int cnri_mistake(const char *command, const char *nearest, const char *format, ...)
    CNRI_PRINTF(3, 4);
/* The same out of a signal handler; the text is short and needs no escaping. */
void cnri_error_at_once(const char *text, int code);
/* On any thread, while the command's own is stuck. */
void cnri_complain_at_once(const cnr_error *err);

/* ---- open.c ---- */
/* --cache, else CNNRUN_CACHE; NULL: none, or MODEL_CACHE_DISABLE says so. */
const char *cnri_call_cache(const cnri_call *call);
/* --cache-limit, else MODEL_CACHE_MAXSIZE; 0: the usual one. */
cnr_status cnri_call_cache_limit(const cnri_call *call, uint64_t *out, cnr_error *err);
/* The runtime of the options, if none is open. */
cnr_status cnri_call_runtime(cnri_call *call, cnr_error *err);
/* Whether a runtime opened for `was` won't do for `now`; what can still be changed of it is. */
bool cnri_call_reopen(const cnri_call *was, const cnri_call *now);

/* ---- json.c: one object a line on stdout; results are told by cnri_tell where that can do it ----
 *     cnri_json j = {0};
 *     cnri_json_begin(&j);  cnri_json_text(&j, "input", name);  cnri_json_list(&j, "top"); ...
 *     cnri_json_end(&j);    (of the list)
 *     status = cnri_json_print(&j, err);      ends the object, writes the line, frees ---- */
typedef struct cnri_json {
    cnri_text text;
    char closers[32];
    int32_t depth;
    bool comma;
} cnri_json;
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
cnr_status cnri_tell_text(const cnri_text *text, cnr_error *err); /* as it is, on stdout */

/* ---- fields.c ---- */
/* A result: an object with --json, else the line. */
cnr_status cnri_tell(const cnri_call *call, const cnri_record *record, const void *of,
                     cnr_error *err);
/* The line alone; the fields alone, into an object that is begun. */
cnr_status cnri_tell_line(const cnri_record *record, const void *of, cnr_error *err);
void cnri_json_fields(cnri_json *j, const cnri_record *record, const void *of);
/* "12s", "3m04s", "1h02m" */
void cnri_duration(double seconds, char *out, size_t capacity);

/* ---- progress.c: on stderr; a bar on a terminal, a line now and then elsewhere ---- */
const cnr_observer *cnri_watch(cnri_call *call);
int32_t cnri_watch_show(void *watching, const cnr_progress *p);
void cnri_watch_end(cnri_watching *w); /* removes the bar */

/* ---- guard.c: with signals.c the only signal handlers of the house ---- */
void cnri_guard_install(void);
/* For signal handlers, on stderr: which plugin did what when a signal came, if one did anything;
 * "running kernel NAME for node NODE on DEVICE"; the plugin's name. */
void cnri_tell_crash(const char *signal_name);
void cnri_tell_activity(const cnri_activity *a);
const char *cnri_activity_plugin(const cnri_activity *a);

/* ---- signals.c ---- */
/* From now on SIGINT and SIGTERM set the flag; a second one ends the process as usual. `tell`: why
 * the process ends at once, and its exit code. */
void cnri_signals_install(void (*tell)(const char *text, int code));
/* The status negated; cancelled by a signal: 128 and its number, as shells have it. */
int cnri_exit_code(int32_t status);
bool cnri_cancelled(void);
/* From now on the command looks at cnri_cancelled itself, however rarely; else it is ended a second
 * after the signal. */
void cnri_signals_patient(void);
/* The flag itself, for observers: whoever asks for it sees to it that it is looked at. */
const volatile int32_t *cnri_signals_flag(void);

/* ---- nearby.c: `path` is not there, but something of nearly that name is, in its folder or in the
 * first above that exists: false when there is none. ---- */
bool cnri_nearest_path(const char *path, char *out, size_t capacity);

#endif
