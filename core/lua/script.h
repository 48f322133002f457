/* lua: nets and experiments as sandboxed Lua scripts. What cli and applications see of the room. */
#ifndef CNRI_SCRIPT_H
#define CNRI_SCRIPT_H

#include "core/run/run.h"

/* Adds the loader of ".lua" files. Before any thread starts; again is harmless.
 *
 * Of cnr_load_options it reads `net` and `weights`: a file, "random:SEED", or "none", which leaves
 * the weights unfilled (the graph is for looking at, not for running); `import_options` are for the
 * importer of the file. */
void cnri_lua_install(void);
/* What that loader does; rt may be NULL. */
cnr_status cnri_lua_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                         cnr_graph **out, cnr_error *err);

/* Runs the experiment at `path`: a script that returns a function main(args). args[0] is the path,
 * args[1] .. the words of argv. E_NOT_FOUND, with nothing run but the script's top level, when it
 * returns something else (a net). `trust`: any file may be read and written, and no limit of
 * instructions holds; else only paths that argv names. *exit_code (may be NULL): the whole number
 * that main returned, else 0. `cancelled` (may be NULL) is asked now and then: true ends it, between
 * two calls of ours, with E_CANCELLED. */
cnr_status cnri_lua_main(cnr_runtime *rt, const char *path, int argc, char **argv, bool trust,
                         bool (*cancelled)(void), int *exit_code, cnr_error *err);

/* Whether `path` is an experiment, by running its top level. */
cnr_status cnri_lua_is_main(cnr_runtime *rt, const char *path, bool *out, cnr_error *err);

#endif
