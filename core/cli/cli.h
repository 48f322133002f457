/* cli: the program's subcommands and what they share: options, JSON lines, progress, signals.
 *
 * A subcommand is a file cmd_NAME.c with `int cnri_cmd_NAME(int argc, char **argv)` (argv[0] is its
 * name; returns the exit code) and one row in CNRI_COMMANDS. It describes itself by a
 * cnri_syntax, from which parsing, help and suggestions come:
 *
 *     typedef struct bench { int64_t runs; bool profile; } bench;
 *     static const cnri_option options[] = {
 *         {"--runs", "N", CNRI_OPT_INT, offsetof(bench, runs), "timed runs (20)", .min = 1, .max = 1e6},
 *         {"--profile", NULL, CNRI_OPT_FLAG, offsetof(bench, profile), "time of each step"},
 *     };
 *     static const cnri_syntax syntax = {"bench", "NET", "Measures ...", NULL,
 *                                        options, CNRI_COUNT(options), true, 1, 1};
 *     bench b = {.runs = 20};
 *     cnri_args args;
 *     int code;
 *     if (!cnri_args_parse(&args, &syntax, argc, argv, &b, &code)) return code;
 *     ...
 *     cnri_args_free(&args);
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
    X(tune, "time the kernels of a net's layers and keep the record for planning")           \
    X(show, "a net node by node, before anything runs")                                      \
    X(import, "a model of another program to the native file")                               \
    X(convert, "any net to the native file, weights encoded if asked")                       \
    X(quantize, "have a net work on 8-bit whole numbers")                                    \
    X(check, "verify the digests of native model files")                                     \
    X(plugins, "list plugins with what they provide, or why they were refused")              \
    X(gauges, "meters and knobs of this machine, and what they read now")                    \
    X(ops, "list operators, their inputs, attributes and help")                              \
    X(export, "write a net in another format")                                                \
    X(verify, "run models on given inputs, compare with given outputs")                       \
    X(kernelcheck, "judge every kernel by its operator's reference")                         \
    X(completions, "what a shell completes: for bash, zsh or fish")

#define X(name, help) int cnri_cmd_##name(int argc, char **argv);
CNRI_COMMANDS(X)
#undef X

/* The same rows as a table, in main.c. */
typedef struct cnri_command {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} cnri_command;
#define X(name, help) CNRI_CMD_##name,
enum { CNRI_COMMANDS(X) CNRI_N_COMMANDS };
#undef X
extern const cnri_command cnri_commands[CNRI_N_COMMANDS];

/* ---- options.c ---- */

typedef CNRI_VEC(const char *) cnri_words;

typedef enum cnri_option_type {
    CNRI_OPT_FLAG,   /* bool; no argument */
    CNRI_OPT_COUNT,  /* int32_t; each occurrence adds one; no argument */
    CNRI_OPT_INT,    /* int64_t within min..max */
    CNRI_OPT_REAL,   /* double within min..max */
    CNRI_OPT_TEXT,   /* const char * */
    CNRI_OPT_BYTES,  /* uint64_t: a number with K, M or G behind it, or none */
    CNRI_OPT_CHOICE, /* int32_t: which of `choices` */
    CNRI_OPT_LIST    /* cnri_words: every occurrence, in order */
} cnri_option_type;

typedef struct cnri_option {
    const char *name;     /* "--limit" */
    const char *argument; /* "N"; NULL for FLAG and COUNT */
    cnri_option_type type;
    size_t at;            /* offset of the value in the command's struct, where its default is */
    const char *help;     /* NULL: not for people, so not listed */
    double min, max;      /* INT, REAL; both 0: no bounds */
    const char *const *choices; /* CHOICE: NULL-terminated */
    char letter;          /* 'o': -o does the same; 0: none */
} cnri_option;

typedef struct cnri_syntax {
    const char *command;  /* "eval" */
    const char *operands; /* "NET --data SPEC", as help shows them */
    const char *summary;
    const char *details;  /* (optional) paragraphs behind the option list */
    const cnri_option *options;
    int32_t n_options;
    bool nets;            /* takes the common options of commands that run nets too */
    int32_t min_operands, max_operands; /* max -1: any number */
    void (*more)(void);   /* (optional) prints what only the plugins know, behind the details */
} cnri_syntax;

/* Options of every command (first nine) and of those that run nets. */
typedef struct cnri_common {
    cnri_words plugin_dirs;
    int32_t verbose, quiet;
    bool json;
    const char *device;
    int64_t threads;
    const char *weights, *net;
    cnri_words no_rewrite, symbols, settings, kernels; /* the last three: "name=value" */
    bool deterministic, no_verify, trust, letterbox;
    uint64_t memory, memory_limit, cache_limit;
    const char *cache, *clock, *sysfs_root, *meter_address, *board;
    const char *preset, *resize, *crop, *mean, *std, *scale;
    int32_t channels; /* 0: as the net says */
} cnri_common;

typedef struct cnri_args {
    const cnri_syntax *syntax;
    cnri_common common;
    cnri_words operands;
} cnri_args;

/* Parses argv[1..argc); `values` is the command's struct (NULL without options of its own). False:
 * leave with *code (help was printed, or a mistake explained on stderr). */
bool cnri_args_parse(cnri_args *args, const cnri_syntax *syntax, int argc, char **argv,
                     void *values, int *code);
/* The same, but stops at the first operand; *next is its index in argv (argc: none). */
bool cnri_args_parse_leading(cnri_args *args, const cnri_syntax *syntax, int argc, char **argv,
                             void *values, int *next, int *code);
void cnri_args_free(cnri_args *args);
/* Where in argv the first word behind options that may stand before a command is; -1: none. */
int cnri_args_command_at(int argc, char **argv);

/* ---- reference.c: the option tables as text ---- */

/* Option tables that hold for a command, each under its title; values: where they are stored.
 * own: the command's; shared: of all that take nets; neither: of every command. */
typedef struct cnri_option_group {
    const char *title;
    const cnri_option *rows;
    int32_t n;
    char *values;
    bool own, shared;
} cnri_option_group;
enum { CNRI_OPTION_GROUPS = 4 };
/* Prints them as `form`: help, man (a section of the page), bash, zsh or fish (a command's
 * completions). Returns the exit code. */
int cnri_reference(const cnri_syntax *syntax, const cnri_option_group *groups, int32_t n,
                   const char *form);
/* Prints the whole page, or all completions of a shell: begins, has `command` print itself by
 * --help=FORM for each, and ends. */
int cnri_reference_all(const char *form);
/* Prints the options of all commands that take nets. */
void cnri_reference_options(void);

/* ---- complain.c: "cnnrun COMMAND: where: text" on stderr; with --json also, on stdout,
 *     {"error": {"code": the exit code, "place": ..., "text": ...}}
 * Each returns the exit code. ---- */
/* Looks for --json, before anything is parsed. */
void cnri_errors_begin(int argc, char **argv);
int cnri_complain(const cnri_args *args, const cnr_error *err);
/* Only the line: the command tells it in an object of its own. */
int cnri_complain_beside(const cnri_args *args, const cnr_error *err);
/* A mistake in the command line found by the command itself. */
int cnri_usage_error(const cnri_args *args, const char *format, ...) CNRI_PRINTF(2, 3);
int cnri_error_told(const char *command, int code, const char *where, const char *text);
/* The same out of a signal handler; the text is short and needs no escaping. */
void cnri_error_at_once(const char *text, int code);

/* ---- setup.c: from options to runtimes and models ---- */

/* ---- nearby.c ---- */
/* `path` is not there, but something of nearly that name is, in its folder or in the first above
 * that exists: false when there is none. */
bool cnri_nearby(const char *path, char *out, size_t room);

/* Before work begins: `path` can be written, and is none of the operands, of the files of common
 * options, or of n more (NULL ones are none). */
cnr_status cnri_args_output(const cnri_args *args, const char *path, const char *const *more,
                            int32_t n, cnr_error *err);
/* --no-rewrite as the core takes it: NULL-terminated, NULL when there is none. */
const char *const *cnri_args_no_rewrite(const cnri_args *args);
/* --cache, else CNNRUN_CACHE; NULL: none. */
const char *cnri_args_cache(const cnri_args *args);
cnr_status cnri_args_open(const cnri_args *args, cnr_runtime **rt, cnr_error *err);
/* How nets are loaded, as the options say; to be freed after an error too. */
typedef struct cnri_loading {
    cnr_load_options options;
    const char **names; /* of symbols */
    int64_t *values;
    char *text;
} cnri_loading;
cnr_status cnri_args_loading(const cnri_args *args, cnri_loading *out, cnr_error *err);
void cnri_loading_free(cnri_loading *l);
/* Whether a runtime opened for `was` won't do for `now`; what can still be changed of it is. */
bool cnri_args_reopen(const cnri_args *was, const cnri_args *now, cnr_runtime *rt);
/* Loads a net as the options say and sets its preprocessing from the flags. */
cnr_status cnri_args_load(const cnri_args *args, cnr_runtime *rt, const char *path,
                          cnr_model **out, cnr_error *err);
/* A model of `graph`, which it takes over, with the same options. */
cnr_status cnri_args_model(const cnri_args *args, cnr_runtime *rt, cnr_graph *graph,
                           cnr_model **out, cnr_error *err);
/* Only the graph (show, convert, check, train). */
cnr_status cnri_args_load_graph(const cnri_args *args, cnr_runtime *rt, const char *path,
                                cnr_graph **out, cnr_error *err);
/* The preprocessing flags, put into `graph` for its picture inputs. */
cnr_status cnri_args_preprocess(const cnri_args *args, cnr_graph *graph, cnr_error *err);
/* Whether --mean is "104,117,123" rather than a file. */
bool cnri_is_numbers(const char *text);

/* ---- json.c: one object a line on stdout ----
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

/* ---- progress.c: on stderr; a bar on a terminal, a line now and then elsewhere ---- */
typedef struct cnri_progress {
    const char *what;
    int64_t total; /* 0: unknown */
    uint64_t begun_ns, shown_ns;
    bool terminal, quiet;
    int32_t width; /* of the last bar drawn */
} cnri_progress;
void cnri_progress_begin(cnri_progress *p, const char *what, int64_t total, bool quiet);
/* `done` of total are done; `text` (may be NULL) stands behind the bar: "loss 0.12". */
void cnri_progress_show(cnri_progress *p, int64_t done, const char *text);
void cnri_progress_end(cnri_progress *p); /* removes the bar */
/* An observer for this command: progress becomes a bar, signals stop the work. */
typedef struct cnri_watching {
    cnr_observer observer;
    cnri_progress bar;
    bool begun, quiet;
} cnri_watching;
const cnr_observer *cnri_watch(cnri_watching *w, const cnri_args *args);
void cnri_watch_end(cnri_watching *w);
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
