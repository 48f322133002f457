/* lua: nets and experiments as sandboxed Lua scripts. What cli and applications see of the room. */
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
/* What that loader does; rt may be NULL. */
cnr_status cnri_lua_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                         cnr_graph **out, cnr_error *err);
/* The functions of cnri_services, cnri_governor_scripts and cnri_train_files. */
cnr_status cnri_lua_board_read(const char *spec, bool scene, cnri_board **out, cnr_error *err);
cnr_status cnri_lua_policy_open(const char *name, const char *text, const char *const *options,
                                cnri_policy **out, cnr_error *err);
cnr_status cnri_lua_frequency_policy_open(const char *spec, const cnri_learns *from,
                                          cnri_frequency_policy *out, cnr_error *err);
char *cnri_lua_governors_folder(void);
cnr_status cnri_lua_loss_open(const char *name, cnri_own_loss *out, cnr_error *err);
void cnri_lua_loss_close(cnri_own_loss *loss);
cnr_status cnri_lua_optimizer_open(const char *name, cnri_own_optimizer *out, cnr_error *err);
void cnri_lua_optimizer_close(cnri_own_optimizer *optimizer);
cnr_status cnri_lua_metrics_open(const char *name, cnri_metrics *to, void **file, cnr_error *err);
void cnri_lua_metrics_close(void *file);

/* What main's args has besides words: args.first_page of "first-page". NULL and 0 are left out. */
typedef struct cnri_lua_named {
    const char *name, *text;
    double number; /* without a text */
    bool is_item;  /* `text` is one more of a list */
    bool is_flag;  /* true, without text or number */
    bool is_zero;  /* the number 0 was given */
} cnri_lua_named;

/* What a script may do beyond computing: read and write the paths that its words name, and ... */
typedef struct cnri_lua_rights {
    bool trust;                   /* any file, the clock, and no limit of instructions holds */
    const char *output;           /* what lies below this folder, which is made; NULL: no such */
    bool (*cancelled)(void);      /* NULL, or asked now and then: true ends it, between two calls of
                                     ours, with E_CANCELLED */
    const cnr_observer *watch;    /* of long work, its progress and its clearing; NULL */
    const cnri_lua_named *named;  /* texts are as words; ends in zeros; NULL: there is none */
    const cnr_load_options *load; /* args.load, for c.load, which may read what it names; NULL */
} cnri_lua_rights;
/* A script whose top level has run, once: an experiment, which returns a function main(args), or
 * nets. args[0] is the path, args[1] .. the words of argv, args.output the folder; all must outlive
 * it. */
typedef struct cnri_lua_program cnri_lua_program;
cnr_status cnri_lua_open(cnr_runtime *rt, const char *path, int argc, char **argv,
                         const cnri_lua_rights *rights, cnri_lua_program **out, cnr_error *err);
void cnri_lua_close(cnri_lua_program *p);
bool cnri_lua_is_main(const cnri_lua_program *p);
/* Replaces the words and what main's args has besides them; `rights` as above, of which the names,
 * the load options and the folder count. Before cnri_lua_main. */
cnr_status cnri_lua_give(cnri_lua_program *p, int argc, char **argv, const cnri_lua_rights *rights,
                         cnr_error *err);

/* ---- application.c: an application is a script whose top level returns a table: `main`, and the
 * options that it takes, which the program parses (lib.args makes the table) ---- */
typedef struct cnri_lua_flag {
    char *name, *argument, *help; /* "--output", "PATH" or NULL */
    char *refused;                /* why this option of the program can't be taken; NULL: it can */
    char letter;                  /* 'o'; 0: none */
    bool repeats;
} cnri_lua_flag;
typedef struct cnri_lua_application {
    char *operands, *about, *example, *details;
    char *without; /* why it takes no options of nets; NULL: it takes them */
    bool nets, pictures;
    int32_t min_operands, max_operands; /* max -1: any number */
    CNRI_VEC(cnri_lua_flag) flags;
} cnri_lua_application;
bool cnri_lua_is_application(const cnri_lua_program *p);
/* To be freed after an error, too. `details`: the help's last part is wanted, which may ask
 * plugins. */
cnr_status cnri_lua_application_read(cnri_lua_program *p, bool details, cnri_lua_application *out,
                                     cnr_error *err);
void cnri_lua_application_free(cnri_lua_application *a);
/* *exit_code (may be NULL): the whole number that main returned, else 0. */
cnr_status cnri_lua_main(cnri_lua_program *p, int *exit_code, cnr_error *err);
/* Runs main, which must return a table of results, and calls `each` with each of them in the order
 * of their names: a number, a text, a flag (`number` is 1 or 0), or the numbers of a list one by
 * one (is_item). The values are valid during the call. */
typedef void (*cnri_lua_result_fn)(void *arg, const cnri_lua_named *value);
cnr_status cnri_lua_results(cnri_lua_program *p, cnri_lua_result_fn each, void *arg,
                            cnr_error *err);
/* The next load of `path` takes the program over instead of running the script again. */
void cnri_lua_hold(cnr_runtime *rt, const char *path, cnri_lua_program *p);
void cnri_lua_drop(cnr_runtime *rt); /* closes one that nothing loaded */
/* The net, as cnri_lua_load gives it. Closes the program. */
cnr_status cnri_lua_graph(cnri_lua_program *p, const cnr_load_options *options, cnr_graph **out,
                          cnr_error *err);

/* ---- manual.c: what scripts can say, for people and editors, from where it is registered: the
 * module's functions, the methods of types and of plugins' objects, a constructor for each
 * operator, and what the documented files of scripts/lib say of themselves ---- */
typedef struct cnri_lua_option {
    char *name, *type, *help;
} cnri_lua_option; /* a key of a table */
typedef struct cnri_lua_help {
    int32_t part;                      /* of what: index into parts */
    char *owner, *name;                /* "c." "load", "tensor:" "topk", "csv." "write" */
    char *args, *gives;                /* "path: string, options?: table"; "cnnrun.Net" */
    char *help;                        /* a line */
    CNRI_VEC(cnri_lua_option) options; /* of the table that it takes */
    const cnr_op *op;                  /* of a constructor */
    bool loose; /* args and gives are no types: of an object, as its plugin puts it */
} cnri_lua_help;
/* Of the module "cnnrun", of a type "cnnrun.Tensor", of a file "lib.csv". */
typedef struct cnri_lua_part {
    char *name, *help;
} cnri_lua_part;
typedef struct cnri_lua_manual {
    CNRI_VEC(cnri_lua_part) parts;
    CNRI_VEC(cnri_lua_help) rows; /* by part */
    char *scripts;                /* the folder that require finds "lib.csv" in; NULL: none */
    bool failed;                  /* for want of memory */
} cnri_lua_manual;
/* To be freed after an error, too. Plugins have been loaded. */
cnr_status cnri_lua_manual_make(cnri_lua_manual *r, cnr_error *err);
void cnri_lua_manual_free(cnri_lua_manual *r);
/* The next item of "a: string, b?: fun(x: integer, y: integer)" without spaces around it, and what
 * follows; false at the end. */
bool cnri_lua_next_item(const char **at, const char **item, size_t *n);
/* annotate.c: all of it as a type file of lua-language-server. */
cnr_status cnri_lua_annotate(const cnri_lua_manual *r, cnri_text *out, cnr_error *err);

/* ---- shipped.c ---- */
/* The folder of the scripts that came with the program; NULL: there is none. cnri_free. */
char *cnri_lua_scripts(void);
/* The file of a policy: "best" is place/best.lua of the installed scripts, unless a file is called
 * so. cnri_free; NULL: no memory. */
char *cnri_lua_policy_file(const char *name);
const char *cnri_lua_release(void); /* of the interpreter: "Lua 5.4.4" */
/* The path of a script that ships, "lib/blocks.lua"; of apps/NAME.lua. NULL: none; cnri_free. */
char *cnri_lua_shipped(const char *name);
char *cnri_lua_app(const char *name);
void cnri_lua_apps(void (*fn)(void *arg, const char *name), void *arg); /* each there is */

/* ---- board_schema.c: what a board file may hold: one table, from which its check, the program's
 * list and the README's come ---- */
typedef enum cnri_board_type {
    CNRI_BK_NUMBER,
    CNRI_BK_FLAG,
    CNRI_BK_AUTO, /* a flag, or "auto" */
    CNRI_BK_TEXT,
    CNRI_BK_NAME,   /* a name is short, and in its list no other has it */
    CNRI_BK_ONE_OF, /* a name of the list `of` */
    CNRI_BK_LIST,
    CNRI_BK_TABLE,
    CNRI_BK_ANY /* any: nothing below it is looked at */
} cnri_board_type;

/* `path` as in "units[].classes[].op". Numbers lie within [low, high]. */
typedef struct cnri_board_key {
    const char *path, *unit, *help;
    cnri_board_type type;
    double low, high;
    const char *otherwise; /* what it is where it is left out; NULL: it is required */
    const char *of;
} cnri_board_key;

const cnri_board_key *cnri_board_keys(int32_t *n);
const char *cnri_board_type_name(cnri_board_type type);
/* Every key is known, of its type and within its range; names that are referred to are there.
 * `file` is where errors are. */
cnr_status cnri_board_check(const cnri_board *board, const char *file, cnr_error *err);
/* May `true` stand there? Numbers and flags are one in a board that was read. */
bool cnri_board_takes_flag(const char *path);

#endif
