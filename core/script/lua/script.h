/* lua: nets and experiments as sandboxed Lua scripts. The part of the room that cli and
 * applications use. */
#ifndef CNRI_SCRIPT_H
#define CNRI_SCRIPT_H

#include "govern/govern.h"
#include "run/run.h"
#include "train/train.h"

/* Registers with the lower libraries what scripts provide: the loader of ".lua" files, boards,
 * placement and frequency policies, losses and optimisers. Any thread, any number of times.
 *
 * Of cnr_load_options it reads `net` and `weights`: a file, "random:SEED", or "none", which leaves
 * the weights unfilled (the graph is for looking at, not for running); `import_options` are for the
 * importer of the file. */
void cnri_lua_install(void);
extern const cnri_loader cnri_lua_loader;
/* Makes *out, the graph of the net that a ".lua" file returns: runs the script, or takes the one
 * that cnri_lua_hold kept, and closes it. rt NULL: the script is not trusted. *out is NULL after a
 * failure. */
cnr_status cnri_lua_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                         cnr_graph **out, cnr_error *err);
/* The functions registered as cnri_services, cnri_governor_scripts and cnri_train_files. */
cnr_status cnri_lua_board_read(const char *spec, bool scene, cnri_board **out, cnr_error *err);
/* Opens a policy of placement by file, installed name or text. The caller releases *out. */
cnr_status cnri_lua_policy_open(const char *name, const char *text, const char *const *options,
                                cnri_policy **out, cnr_error *err);
/* Opens a policy of frequencies, "NAME,key=value"; *out has its functions, also close. */
cnr_status cnri_lua_frequency_policy_open(const char *spec, const cnri_learns *from,
                                          cnri_frequency_policy *out, cnr_error *err);
/* Folder of installed governors, for cnri_free; NULL: out of memory. */
char *cnri_lua_governors_folder(void);
/* Opens a loss from a file; close it with cnri_lua_loss_close. */
cnr_status cnri_lua_loss_open(const char *name, cnri_own_loss *out, cnr_error *err);
void cnri_lua_loss_close(cnri_own_loss *loss); /* closes its script, frees it */
/* Opens an optimiser from a file; close it with cnri_lua_optimizer_close. */
cnr_status cnri_lua_optimizer_open(const char *name, cnri_own_optimizer *out, cnr_error *err);
void cnri_lua_optimizer_close(cnri_own_optimizer *optimizer); /* closes its script, frees it */
/* Opens metrics from a file and adds them to `to`; *file: for closing. */
cnr_status cnri_lua_metrics_open(const char *name, cnri_metrics *to, void **file, cnr_error *err);
void cnri_lua_metrics_close(void *file); /* closes its script, frees it */

/* A named argument of main beside the words: args.first_page for "first-page". NULL and 0 are
 * left out. */
typedef struct cnri_lua_named {
    const char *name, *text;
    double number; /* used if there is no text */
    bool is_item;  /* `text` is an item of a list */
    bool is_flag;  /* the value is true, without text or number */
    bool is_zero;  /* the number is 0, and not left out */
} cnri_lua_named;

/* What a script may do beside computing. It may read and write the paths that its words name,
 * and more: */
typedef struct cnri_lua_rights {
    bool trust;         /* open any file, read the clock, and run without a limit of instructions */
    const char *output; /* write below this folder, which is made; NULL: none */
    /* Asked now and then; true ends the script between two calls of the core, with
     * CNR_E_CANCELLED; NULL: never. */
    bool (*cancelled)(void);
    const cnr_observer *watch; /* observer of long work: progress, and clearing it; NULL: none */
    /* Named arguments, ending in zeros; texts count as words; NULL: none. */
    const cnri_lua_named *named;
    /* Args.load, for c.load, which may read the files it names; NULL: none. */
    const cnr_load_options *load;
} cnri_lua_rights;
/* A script whose top level has run once: an experiment, which returns a function main(args), or
 * nets. args[0] is the path, args[1] .. the words of argv, args.output the folder; all must
 * outlive it. */
typedef struct cnri_lua_program cnri_lua_program;
/* Runs the top level of a script; close *out with cnri_lua_close, also on failure. */
cnr_status cnri_lua_open(cnr_runtime *rt, const char *path, int argc, char **argv,
                         const cnri_lua_rights *rights, cnri_lua_program **out, cnr_error *err);
void cnri_lua_close(cnri_lua_program *p); /* NULL: nothing */
/* True if the script returned something to call: a function or an application. */
bool cnri_lua_is_main(const cnri_lua_program *p);
/* Replaces the words and named arguments of main, the load options and the folder. Call it
 * before cnri_lua_main. */
cnr_status cnri_lua_give(cnri_lua_program *p, int argc, char **argv, const cnri_lua_rights *rights,
                         cnr_error *err);

/* ---- application.c: an application is a script whose top level returns a table with `main` and
 * the options that it takes, which the program parses (lib.args makes the table) ---- */
/* An option that an application takes. */
typedef struct cnri_lua_flag {
    char *name, *argument, *help; /* name "--output"; argument "PATH", or NULL: it takes none */
    char *refused; /* why this option of the program is refused; NULL: it is accepted */
    char letter;   /* short option such as 'o'; 0: none */
    bool repeats;
} cnri_lua_flag;
/* What an application script says of itself: options, operands, help. */
typedef struct cnri_lua_application {
    char *operands, *about, *example, *details;
    char *without; /* why it takes no options of nets; NULL: it does */
    bool nets, pictures;
    int32_t min_operands, max_operands; /* max_operands -1: any number */
    CNRI_VEC(cnri_lua_flag) flags;
} cnri_lua_application;
/* True if the script returned an application. */
bool cnri_lua_is_application(const cnri_lua_program *p);
/* Reads the description; free it after an error too. `details`: reads the last part of the help
 * as well, which may use plugins. */
cnr_status cnri_lua_application_read(cnri_lua_program *p, bool details, cnri_lua_application *out,
                                     cnr_error *err);
void cnri_lua_application_free(cnri_lua_application *a); /* frees texts and flags */
/* Runs main. *exit_code (may be NULL): the whole number that main returned, else 0. */
cnr_status cnri_lua_main(cnri_lua_program *p, int *exit_code, cnr_error *err);
/* Runs main, which must return a table of results, and calls `each` for every result, sorted by
 * name: a number, a text, a flag (`number` is 1 or 0), or each number of a list (is_item).
 * Values are valid during the call only. */
typedef void (*cnri_lua_result_fn)(void *arg, const cnri_lua_named *value);
/* Gets the name of a named argument that main never read. */
typedef void (*cnri_lua_unread_fn)(void *arg, const char *name);
/* Calls main and passes each result to `each`; then each unread argument to `unread` (may be
 * NULL). */
cnr_status cnri_lua_results(cnri_lua_program *p, cnri_lua_result_fn each, cnri_lua_unread_fn unread,
                            void *arg, cnr_error *err);
/* Lets the next load of `path` use the program instead of running the script again. */
void cnri_lua_hold(cnr_runtime *rt, const char *path, cnri_lua_program *p);
void cnri_lua_drop(cnr_runtime *rt); /* closes a held program that nothing loaded */
/* Makes the graph of the net, as cnri_lua_load does. Closes the program. */
cnr_status cnri_lua_graph(cnri_lua_program *p, const cnr_load_options *options, cnr_graph **out,
                          cnr_error *err);

/* ---- manual.c: the manual of the scripting API, for people and editors, gathered from the
 * tables that register it: the module's functions, methods of types and of plugins' objects, a
 * constructor for each operator, and the documented files of scripts/lib ---- */
/* One key of a table, in the manual. */
typedef struct cnri_lua_option {
    char *name, *type, *help;
} cnri_lua_option; /* one key of a table */
/* A function of the manual: owner such as "c." or "net:", name, arguments, results, options. */
typedef struct cnri_lua_help {
    int32_t part; /* index into the manual's parts */
    /* Owner "c." with name "load"; "tensor:" with "topk"; "csv." with "write". */
    char *owner, *name;
    char *args, *gives; /* args "path: string, options?: table"; gives "cnnrun.Net" */
    char *help;         /* one line, what it does */
    CNRI_VEC(cnri_lua_option) options; /* keys of the table that it takes */
    const cnr_op *op;                  /* the operator that it constructs; NULL: none */
    bool loose;                        /* args and gives are the plugin's own text, not types */
} cnri_lua_help;
/* A part of the manual: the module "cnnrun", a type "cnnrun.Tensor", a file "lib.csv". */
typedef struct cnri_lua_part {
    char *name, *help;
} cnri_lua_part;
/* The manual of all that scripts can use. */
typedef struct cnri_lua_manual {
    CNRI_VEC(cnri_lua_part) parts;
    CNRI_VEC(cnri_lua_help) rows; /* sorted by part */
    char *scripts;                /* the folder in which require finds "lib.csv"; NULL: none */
    bool failed;                  /* true: memory was out */
} cnri_lua_manual;
/* Gathers the manual; free it after an error too. Plugins must be loaded. */
cnr_status cnri_lua_manual_make(cnri_lua_manual *r, cnr_error *err);
void cnri_lua_manual_free(cnri_lua_manual *r); /* frees rows and parts, not r */
/* Finds the next item of "a: string, b?: fun(x: integer, y: integer)", without spaces around it,
 * and moves *at past it; false at the end. */
bool cnri_lua_next_item(const char **at, const char **item, size_t *n);
/* annotate.c: prints the whole API as a type file for lua-language-server. */
cnr_status cnri_lua_annotate(const cnri_lua_manual *r, cnri_text *out, cnr_error *err);

/* ---- shipped.c ---- */
/* The folder of the shipped scripts; NULL: there is none. Free with cnri_free. */
char *cnri_lua_scripts(void);
/* The file of a policy: "best" is place/best.lua of the shipped scripts, unless a file has that
 * name. Free with cnri_free; NULL: out of memory. */
char *cnri_lua_policy_file(const char *name);
const char *cnri_lua_release(void); /* release of the interpreter: "Lua 5.4.4" */
/* The path of a shipped script such as "lib/blocks.lua"; and of apps/NAME.lua. NULL: there is
 * none; free with cnri_free. */
char *cnri_lua_shipped(const char *name);
/* Path of an installed application, for cnri_free; NULL: no such name. */
char *cnri_lua_app(const char *name);
/* Calls fn for each shipped application, in the order of names, of the first folder that has
 * any. */
void cnri_lua_apps(void (*fn)(void *arg, const char *name), void *arg);

/* ---- board_schema.c: the keys of board files, in one table for their check, the program's list
 * and the README ---- */
/* What a key of a board file may hold. */
typedef enum cnri_board_type {
    CNRI_BK_NUMBER,
    CNRI_BK_FLAG,
    CNRI_BK_AUTO, /* a flag, or "auto" */
    CNRI_BK_TEXT,
    CNRI_BK_NAME,   /* a short name that is unique in its list */
    CNRI_BK_ONE_OF, /* a name from the list `of` */
    CNRI_BK_LIST,
    CNRI_BK_TABLE,
    CNRI_BK_ANY /* anything; its contents are not checked */
} cnri_board_type;

/* A key. `path` is as "units[].classes[].op"; numbers lie within [low, high]. */
typedef struct cnri_board_key {
    const char *path, *unit, *help;
    cnri_board_type type;
    double low, high;
    const char *otherwise; /* the value if it is left out; NULL: it is required */
    const char *of;
} cnri_board_key;

/* All keys that a board may have; *n: how many. */
const cnri_board_key *cnri_board_keys(int32_t *n);
/* Name of a type of board values, for messages. */
const char *cnri_board_type_name(cnri_board_type type);
/* Checks that every key is known, has the right type and range, and that names refer to
 * something. `file` is the place of errors. */
cnr_status cnri_board_check(const cnri_board *board, const char *file, cnr_error *err);
/* True if the key accepts `true`; in a board that was read, numbers and flags look alike. */
bool cnri_board_takes_flag(const char *path);

/* Processor time that a script which describes a net may use; tests lower it. */
extern uint64_t cnri_script_cpu_ns;

#endif
