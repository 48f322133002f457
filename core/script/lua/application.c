/* Reads how an application describes itself: its operands, its options, and options that it
 * refuses. */
#include "lua/layer.h"
#include "lua/program.h"
#include <limits.h>
#include <string.h>

/* An application's description that is being read from Lua. */
typedef struct reading {
    cnri_lua_program *program;
    cnri_lua_application *to;
    bool details, failed; /* failed: memory was out */
} reading;

/* The text in field `key` of the table on top, or NULL. */
static char *text_of(lua_State *L, reading *r, const char *key) {
    char *copy = NULL;
    lua_getfield(L, -1, key);
    if (lua_type(L, -1) == LUA_TSTRING) {
        copy = cnri_strdup(lua_tostring(L, -1));
        r->failed = r->failed || !copy;
    }
    lua_pop(L, 1);
    return copy;
}

/* Field of the table on top, as true or false. */
static bool flag_of(lua_State *L, const char *key) {
    lua_getfield(L, -1, key);
    const bool is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

/* Field of the table on top, if it is a whole number from -1 on; else `otherwise`. */
static int32_t count_of(lua_State *L, const char *key, int32_t otherwise) {
    lua_getfield(L, -1, key);
    const lua_Integer n = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : otherwise;
    lua_pop(L, 1);
    return n < -1 || n > INT_MAX ? otherwise : (int32_t)n;
}

/* Reads one option from the table on top. */
static void read_flag(lua_State *L, reading *r) {
    cnri_lua_flag *flag = cnri_push(&r->to->flags);
    if (!flag) {
        r->failed = true;
        return;
    }
    *flag = (cnri_lua_flag){.repeats = flag_of(L, "repeats"),
                            .name = text_of(L, r, "name"),
                            .argument = text_of(L, r, "argument"),
                            .help = text_of(L, r, "help"),
                            .refused = text_of(L, r, "refused")};
    char *letter = text_of(L, r, "letter");
    flag->letter = letter ? *letter : 0;
    cnri_free(letter);
    if (!flag->name && !r->failed) luaL_error(L, "an option of the application has no name");
}

/* Reads `details`: a text, or a function that returns one. */
static void read_details(lua_State *L, reading *r) {
    lua_getfield(L, -1, "details");
    if (lua_isfunction(L, -1)) {
        cnri_lua_begin_main(&r->program->script);
        lua_call(L, 0, 1);
    }
    if (lua_type(L, -1) == LUA_TSTRING) {
        r->to->details = cnri_strdup(lua_tostring(L, -1));
        r->failed = r->failed || !r->to->details;
    }
    lua_pop(L, 1);
}

/* Lua function: reads the whole description of an application from the script's result table;
 * raises an error for a wrong entry. */
static int read_all(lua_State *L) {
    reading *r = lua_touserdata(L, 1);
    cnri_lua_application *a = r->to;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &cnri_lua_result);
    a->operands = text_of(L, r, "operands");
    a->about = text_of(L, r, "about");
    a->example = text_of(L, r, "example");
    a->without = text_of(L, r, "without");
    a->nets = flag_of(L, "nets");
    a->pictures = flag_of(L, "pictures");
    a->min_operands = count_of(L, "least", 0);
    a->max_operands = count_of(L, "most", -1);
    if (r->details) read_details(L, r);
    if (lua_getfield(L, -1, "flags") == LUA_TTABLE) {
        const lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
        for (lua_Integer i = 1; i <= n; i++) {
            lua_rawgeti(L, -1, i);
            if (!lua_istable(L, -1)) return luaL_error(L, "flags: want tables");
            read_flag(L, r);
            lua_pop(L, 1);
        }
    }
    return 0;
}

cnr_status cnri_lua_application_read(cnri_lua_program *p, bool details, cnri_lua_application *out,
                                     cnr_error *err) {
    *out = (cnri_lua_application){.max_operands = -1};
    reading r = {.program = p, .to = out, .details = details};
    const cnr_status status = cnri_script_guard(&p->script, read_all, &r, 0, err);
    return status || !r.failed ? status : cnri_out_of_memory(err, p->script.path);
}

/* Frees the texts and flags, not the struct. */
void cnri_lua_application_free(cnri_lua_application *a) {
    for (int32_t i = 0; i < a->flags.n; i++) {
        cnri_lua_flag *flag = &a->flags.at[i];
        cnri_free(flag->name);
        cnri_free(flag->argument);
        cnri_free(flag->help);
        cnri_free(flag->refused);
    }
    cnri_vec_free(&a->flags);
    cnri_free(a->operands);
    cnri_free(a->about);
    cnri_free(a->example);
    cnri_free(a->details);
    cnri_free(a->without);
}
