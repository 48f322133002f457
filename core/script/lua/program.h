/* Inside the room: a script whose top level has run; for main.c and application.c. */
#ifndef CNRI_LUA_PROGRAM_H
#define CNRI_LUA_PROGRAM_H

#include "lua/state.h"

/* A script that is run as a program. */
struct cnri_lua_program {
    cnri_script script;
    const cnri_lua_named *named;
    const cnr_load_options *load;
    bool is_main, is_application;
    int exit_code;
};

extern const char cnri_lua_result; /* its address is the registry key of the top level's result */
/* Lets the script do from now on what experiments may. */
void cnri_lua_begin_main(cnri_script *s);

#endif
