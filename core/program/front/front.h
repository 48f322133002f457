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

/* Types of fields and options. */
typedef enum cnri_type {
    CNRI_T_BOOL,
    CNRI_T_I32,
    CNRI_T_U32,
    CNRI_T_I64,
    CNRI_T_U64,
    CNRI_T_REAL,
    CNRI_T_TEXT, /* a pointer; NULL: no value */
    CNRI_T_HERE, /* an array of char */
    CNRI_T_WORDS,
    CNRI_T_LIST,  /* const char *const *, ending in NULL, for cnri_free */
    CNRI_T_COMMAS /* the same, given as one word: "cpu,opencl:0" */
} cnri_type;

/* Type of a member. */
#define CNRI_TYPE_OF(value) \
    _Generic((value), bool: CNRI_T_BOOL, int32_t: CNRI_T_I32, uint32_t: CNRI_T_U32,                \
             int64_t: CNRI_T_I64, uint64_t: CNRI_T_U64, double: CNRI_T_REAL,                       \
             const char *: CNRI_T_TEXT, cnri_words: CNRI_T_WORDS,                                  \
             char *: sizeof(value) == sizeof(char *) ? CNRI_T_TEXT : CNRI_T_HERE)
/* Type and offset of a member. */
#define CNRI_MEMBER(owner, member) \
    .type = CNRI_TYPE_OF(((owner *)0)->member), .at = offsetof(owner, member)

/* A field of a result. */
typedef struct cnri_field {
    const char *key;
    cnri_type type;
    size_t at;
    bool aside; /* for people only: not in the JSON object */
    bool maybe; /* left out of the object if it has no value: NULL, NaN, CNRI_NONE */
} cnri_field;
#define CNRI_NONE INT64_MIN
/* A field that JSON leaves out if it has no value. */
#define CNRI_MAYBE(owner, name, member) \
    { .key = (name), CNRI_MEMBER(owner, member), .maybe = true }
/* A field that JSON always has. */
#define CNRI_FIELD(owner, name, member) \
    { .key = (name), CNRI_MEMBER(owner, member) }
/* A field named like its member. */
#define CNRI_KEY(owner, member) CNRI_FIELD(owner, #member, member)
/* A field named like its member. */
#define CNRI_KEY_IN(owner, part, member) CNRI_FIELD(owner, #member, part.member)
/* A field for people only. */
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
    bool warns; /* warnings about call->model are added as "warnings" */
} cnri_record;
/* A list of records. */
#define CNRI_RESULTS(...) \
    (const cnri_record *const[]) { __VA_ARGS__, NULL }
/* A record: its fields, and the line that people see. */
#define CNRI_RECORD(table, text) \
    { .fields = (table), .n = CNRI_COUNT(table), .line = (text) }

/* ---- options.c ---- */

/* An option; the type of its member decides what it takes. bool: no argument. int32_t: one of
 * `choices`, or without an argument the number of times it was given. Whole and real numbers:
 * within min..max. uint64_t without bounds: bytes, with K, M or G. A text: one of `choices`, if
 * there are any. cnri_words and lists: every occurrence. */
typedef struct cnri_option {
    const char *name;     /* "--limit" */
    const char *argument; /* name of the argument, "N"; NULL: takes none */
    cnri_type type;
    size_t at;                  /* offset in the command's struct, which holds the default */
    const char *help;           /* NULL: not listed in the help */
    double min, max;            /* both 0: no bounds */
    const char *const *choices; /* NULL-terminated */
    char letter;                /* 'o' makes -o the same option; 0: none */
    bool wanted;                /* the command requires it */
    bool rare;                  /* listed by `cnnrun help NAME`, not by --help */
    bool writes;        /* it names an output file, which must not be one of the input files */
    const char *beside; /* a file with this extension is written beside it; NULL: none */
    /* For a text: the value if none follows. Only numbers, lists of numbers, true and false can
     * follow then. */
    const char *otherwise;
    const char *refused; /* why the command refuses it, as the whole message */
} cnri_option;
/* An option: where its value goes, its name, argument and help. */
#define CNRI_OPTION(owner, member, word, wants, ...) \
    { .name = (word), .argument = (wants), CNRI_MEMBER(owner, member), .help = __VA_ARGS__ }

/* The options that commands share: first those of all commands, then those of commands that load
 * nets. */
typedef struct cnri_common {
    cnri_words plugin_dirs, skip_plugins;
    const char *const *plugin_order;
    int32_t verbose, quiet;
    bool json;
    cnr_load_options load; /* it owns the lists; symbols: "NAME=VALUE" until they are split */
    int64_t threads;
    const char *mode; /* "parallel", "reference"; NULL: as the net says */
    bool trust, no_inplace, no_share;
    const char *governor;
    /* Name of the group plugin; NULL: the one whose launcher started this process. */
    const char *group;
    const char *clock, *sysfs_root, *meter_address, *board, *cpu_isa;
    const char *preset, *resize, *crop, *mean, *std, *scale, *letterbox;
    int32_t channels; /* 0: as the net says */
} cnri_common;

/* `takes`: the options beside the general ones. OWN_FILES: each process of a group writes files
 * of its own; else only rank 0 writes. */
enum { CNRI_NETS = 1, CNRI_PICTURES = 2, CNRI_GROUP = 4, CNRI_OWN_FILES = 8 };

typedef struct cnri_call cnri_call;
/* A command of the program. */
typedef struct cnri_command {
    const char *name;
    const char *operands; /* as help shows them: "NET --data SPEC" */
    const char *summary;
    const char *example; /* a whole command line */
    const char *details; /* (optional) paragraphs behind the list of options */
    /* (optional) records whose JSON keys help lists, ending in NULL. */
    const cnri_record *const *results;
    const cnri_option *options;
    int32_t n_options;
    size_t values_bytes;  /* of the struct that options fill */
    const void *defaults; /* contents of the struct before options are parsed; NULL: zeros */
    int32_t min_operands, max_operands; /* max_operands -1: any number */
    uint32_t takes;
    /* (optional) Opens what `run` needs: a runtime, a graph or a model. */
    cnr_status (*opens)(cnri_call *call, cnr_error *err);
    /* (optional) Called before all words are parsed. False: everything is done, and call->code
     * is set. */
    bool (*leads)(cnri_call *call, void *values);
    /* (optional) Says what is wrong with the options, before anything is opened; NULL: nothing. */
    const char *(*wrong)(const cnri_call *call, const void *values);
    /* Does the work. If it returns CNR_OK, call->code is the program's exit code. */
    cnr_status (*run)(cnri_call *call, void *values, cnr_error *err);
    void (*more)(void); /* (optional) prints further help, which only the plugins know */
    /* (optional) why options of nets and pictures that it does not take are useless here. */
    const char *without;
} cnri_command;
/* Members of a command with one net as operand. */
#define CNRI_ONE_NET(what) \
    .min_operands = 1, .max_operands = 1, .takes = CNRI_NETS | CNRI_PICTURES, .opens = (what)
#define CNRI_ONE_NET_SHARED(what) /* for work that the processes of a group share */ \
    .min_operands = 1, .max_operands = 1, .takes = CNRI_NETS | CNRI_PICTURES | CNRI_GROUP, \
    .opens = (what)
/* Members of a command for its table of options. */
#define CNRI_OPTIONS(table) .options = (table), .n_options = CNRI_COUNT(table)
/* Members of a command for the defaults of its options. */
#define CNRI_VALUES(owner, ...) \
    .values_bytes = sizeof(owner), .defaults = &(const owner) { __VA_ARGS__ }

/* How the program observes work: progress becomes a bar, and signals stop the work. */
typedef struct cnri_watching {
    cnr_observer observer;
    const char *what;     /* name of the work whose bar is shown; NULL: none is */
    int64_t first, total; /* first: items done when it began; total 0: unknown */
    uint64_t begun_ns, shown_ns;
    bool terminal, quiet;
    int32_t width; /* width of the last bar drawn */
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
    char *weights;    /* the words behind the net, if they are common.load.weights */
    char *script;     /* path of the application, if one runs */
    cnr_runtime *rt;  /* this and the following members: as the command opened them */
    cnr_governing *governing;        /* the governor of --governor */
    void (*closes)(cnri_call *call); /* (optional) called before the runtime is closed */
    cnr_graph *graph;
    cnr_model *model;
    cnri_watching watching;
    int code;
    bool stdout_taken; /* stdout is that of `energy run`'s command: no line of ours there */
    /* Delay of error messages: other processes of the job may report the same. */
    uint32_t errors_after_ms;
    bool again; /* at the end the program starts again with the same words */
};

/* ---- program.c ---- */
/* Runs a program's `run` with handling of signals, crashes and output that can't be written.
 * Returns the exit code. */
int cnri_program(int argc, char **argv, int (*run)(int argc, char **argv));

/* ---- command.c ---- */
/* Parses, opens, runs and closes; returns the exit code. */
int cnri_command_run(const cnri_command *command, int argc, char **argv);
/* `path` with another extension, for cnri_free; NULL: out of memory. */
char *cnri_path_with_ending(const char *path, const char *ending);

/* ---- options.c ---- */
/* Parses argv[1..argc) into call->common, ->operands and `values`. With `next` it stops at the
 * first operand, and sets *next to its index in argv (argc: none). False: exit with call->code,
 * because help or an error was printed. */
bool cnri_call_parse(cnri_call *call, void *values, int *next);
/* Appends a word to a CNRI_T_LIST; false: out of memory. */
bool cnri_list_add(const char *const **list, const char *word);
/* Frees what the call holds, closes its net and runtime; the struct stays. */
void cnri_call_free(cnri_call *call);
/* Index in argv of the first word behind the options that may stand before a command; -1: none. */
int cnri_command_at(int argc, char **argv);

/* A group of options for a command; the command's own come first. */
typedef struct cnri_group {
    const char *title; /* title of a shared group; NULL: the command's own options */
    const cnri_option *rows;
    int32_t n;
} cnri_group;
enum { CNRI_GROUPS = 5 };
/* Groups of options that a command takes; returns how many. */
int32_t cnri_groups_of(const cnri_command *command, cnri_group out[CNRI_GROUPS]);
/* Prints help; NULL: the options that all commands with nets share. */
void cnri_help(const cnri_command *command);

/* ---- help.c: the option tables as text ---- */
/* Prints groups of options; `command` may be NULL. */
void cnri_help_print(const cnri_command *command, const cnri_group *groups, int32_t n);
/* Makes further help whole: with rare options, all details and JSON keys. */
void cnri_help_print_whole(void);
typedef void (*cnri_option_fn)(const cnri_command *c, const cnri_option *o);
/* Calls fn for the options of a group that help lists. */
void cnri_each_option(const cnri_command *c, const cnri_group *group, cnri_option_fn fn);
/* Returns `head` followed by the option's units or choices; valid until the next call. */
const char *cnri_option_choices(const cnri_option *o, const char *head, const char *between);
/* Help of an option, with its units or choices; valid until the next call of this function or of
 * cnri_option_choices. */
const char *cnri_option_help(const cnri_option *o);
/* Writes the JSON keys of a command, one line for each record. */
void cnri_put_results(const cnri_command *c, void (*put)(const char *));

/* ---- complain.c: prints "cnnrun COMMAND: where: text" on stderr; with --json also, on stdout,
 * {"error": {"code": the exit code, "place": ..., "text": ...}}. Functions return the exit code.
 * ---- */
/* Makes errors JSON if --json is among the words; called before anything is parsed. */
void cnri_errors_begin(int argc, char **argv);
/* Prints an error; returns the exit code. */
int cnri_complain(const cnri_call *call, const cnr_error *err);
/* Prints the line only, as the command reports the error in an object of its own; returns the exit
 * status. */
int cnri_complain_line(const cnri_call *call, const cnr_error *err);
/* Reports a mistake in the command line, and what may have been meant (NULL: nothing). */
int cnri_mistake(const char *command, const char *nearest, const char *format, ...)
    CNRI_PRINTF(3, 4);
/* Prints an error as JSON from a signal handler, if --json was given; code: the exit code, text:
 * short and without need of escaping. */
void cnri_error_at_once(const char *text, int code);
/* The same from any thread while the command's own thread hangs. */
void cnri_complain_at_once(const cnr_error *err);

/* ---- open.c ---- */
/* The cache folder of --cache, or else of CNNRUN_CACHE; NULL: there is none, or --no-cache or
 * MODEL_CACHE_DISABLE is set. */
const char *cnri_call_named_cache(const cnri_call *call);
/* The same, or else the user's own folder (cnri_kept_plans), until the next call. */
const char *cnri_call_cache(const cnri_call *call);
/* Opens the runtime of the options, unless one is open. */
cnr_status cnri_call_runtime(cnri_call *call, cnr_error *err);
/* True if a runtime opened with the options of `was` can't be used with those of `now`. Options
 * that can be changed later are updated. */
bool cnri_call_reopen(const cnri_call *was, const cnri_call *now);

/* ---- json.c: one object on each line of stdout; use cnri_tell instead where possible ----
 * cnri_json j = {0}; cnri_json_begin(&j);  cnri_json_text(&j, "input", name);
 * cnri_json_list(&j, "top"); ... cnri_json_end(&j);    (of the list) status =
 * cnri_json_print(&j, err);      ends the object, writes the line, frees ---- */
/* A JSON object that is being written; ends as one line on stdout. */
typedef struct cnri_json {
    cnri_text text;
    char closers[32];
    int32_t depth;
    bool comma;
} cnri_json;
/* Begins an object. */
void cnri_json_begin(cnri_json *j);
/* Inside lists, key is NULL. */
void cnri_json_object(cnri_json *j, const char *key);
/* Begins a list; key NULL: inside a list. */
void cnri_json_list(cnri_json *j, const char *key);
/* Ends the innermost list or object. */
void cnri_json_end(cnri_json *j);
void cnri_json_text(cnri_json *j, const char *key, const char *value); /* value NULL writes null */
/* Adds a whole number; key NULL: inside a list. */
void cnri_json_int(cnri_json *j, const char *key, int64_t value);
/* A value that is not finite writes null. */
void cnri_json_real(cnri_json *j, const char *key, double value);
/* Adds true or false; key NULL: inside a list. */
void cnri_json_bool(cnri_json *j, const char *key, bool value);
/* Adds "warnings" about the net and its options; nothing if there are none. */
void cnri_json_warnings(cnri_json *j, const cnr_graph *g);
/* Ends all and prints it as one line; frees the text. */
cnr_status cnri_json_print(cnri_json *j, cnr_error *err);
/* Writes the text unchanged to stdout. */
cnr_status cnri_tell_text(const cnri_text *text, cnr_error *err);

/* ---- fields.c ---- */
/* Prints a result: a JSON object with --json, else the line for people. */
cnr_status cnri_tell(const cnri_call *call, const cnri_record *record, const void *of,
                     cnr_error *err);
/* Print the line only; add the fields only, to an object that was begun. */
cnr_status cnri_tell_line(const cnri_record *record, const void *of, cnr_error *err);
/* Adds the fields of a record as keys. */
void cnri_json_fields(cnri_json *j, const cnri_record *record, const void *of);
/* Formats a duration: "12s", "3m04s", "1h02m". */
void cnri_duration(double seconds, char *out, size_t capacity);

/* ---- progress.c: progress on stderr; a bar on a terminal, an occasional line elsewhere ---- */
/* The observer that shows the progress on stderr and stops work at Ctrl-C; valid as long as the
 * call. */
const cnr_observer *cnri_watch(cnri_call *call);
/* Shows progress, at most ten times a second; returns 0. */
int32_t cnri_watch_show(void *watching, const cnr_progress *p);
void cnri_watch_end(cnri_watching *w); /* removes the bar */

/* ---- guard.c: the only signal handlers of the program beside those of signals.c ---- */
/* Installs the handlers of signals that a crash raises. */
void cnri_guard_install(void);
/* For signal handlers: prints on stderr which plugin was doing what when a signal came ("running
 * kernel NAME for node NODE on DEVICE"), and the plugin's name. Prints nothing if none was. */
void cnri_tell_crash(const char *signal_name);
/* Prints what a thread does now; safe in a signal handler. */
void cnri_tell_activity(const cnri_activity *a);
/* Plugin whose code the thread is in; "(none)". */
const char *cnri_activity_plugin(const cnri_activity *a);

/* ---- signals.c ---- */
/* Makes SIGINT and SIGTERM set the flag; a second one ends the process. `tell` is called with
 * the reason and the exit code if the process must end at once. */
void cnri_signals_install(void (*tell)(const char *text, int code));
/* The exit code of a status: the status negated; 128 plus the signal's number if a signal
 * cancelled it, as in shells. */
int cnri_exit_code(int32_t status);
/* True after Ctrl-C or SIGTERM. */
bool cnri_cancelled(void);
/* Says that the command checks cnri_cancelled itself. Otherwise it is ended a second after the
 * signal. */
void cnri_signals_patient(void);
/* The flag, for observers. Whoever asks for it must check it. */
const volatile int32_t *cnri_signals_flag(void);

#endif
