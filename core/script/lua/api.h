/* Inside the room: the scripting API as tables, from which the module and its types, the help
 * and the annotations for editors are made. */
#ifndef CNRI_LUA_API_H
#define CNRI_LUA_API_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key of a table that a function takes. Lists end with a row of zeros. */
typedef enum cnri_lua_kind {
    CNRI_KEY_OTHER, /* the function reads it itself */
    CNRI_KEY_TEXT,  /* const char * */
    CNRI_KEY_WHOLE, /* int64_t, from min to max */
    CNRI_KEY_REAL,  /* double, from min to max */
    CNRI_KEY_FLAG   /* int32_t, 0 or 1 */
} cnri_lua_kind;
/* A key of a table that scripts pass. */
typedef struct cnri_lua_key {
    const char *text; /* its name, a colon, and one line of help */
    cnri_lua_kind kind;
    const char *type; /* type as in annotations */
    size_t offset;    /* offset in the struct that cnri_lua_take fills */
    double minimum, maximum;
    const char *const *choices; /* allowed texts, ending in NULL; NULL: any */
} cnri_lua_key;
/* A key whose value the function reads itself. */
#define CNRI_OTHER(text, type) \
    { text, CNRI_KEY_OTHER, type, 0, 0, 0, NULL }
/* Row of a table of keys: a key whose value is a text, stored as a pointer in member `field`. */
#define CNRI_TEXT(text, in, field) \
    { text, CNRI_KEY_TEXT, "string", offsetof(in, field), 0, 0, NULL }
/* A key with one of several texts. */
#define CNRI_CHOICE(text, in, field, choices) \
    { text, CNRI_KEY_TEXT, "string", offsetof(in, field), 0, 0, choices }
/* Row of a table of keys: a key with true or false, stored as 1 or 0. */
#define CNRI_FLAG(text, in, field) \
    { text, CNRI_KEY_FLAG, "boolean", offsetof(in, field), 0, 1, NULL }
/* A key with a whole number from minimum to maximum. */
#define CNRI_WHOLE(text, in, field, minimum, maximum) \
    { text, CNRI_KEY_WHOLE, "integer", offsetof(in, field), minimum, maximum, NULL }
/* A key with a number from minimum to maximum. */
#define CNRI_REAL(text, in, field, minimum, maximum) \
    { text, CNRI_KEY_REAL, "number", offsetof(in, field), minimum, maximum, NULL }

/* A function or a method. Types are written as in annotations for editors: "string",
 * "cnnrun.Tensor", "{ n: integer, top1: number }"; "x?: string" may be left out. Lists end with
 * zeros. Names are the beginnings of longer texts, because some equal names of operators, which
 * the core must not contain. */
typedef struct cnri_lua_row {
    const char *text; /* "load(path: string, options?: table)"; `keys` describes `options` */
    lua_CFunction f;
    const char *gives; /* types of the results, "cnnrun.Tensor, string?"; "": none */
    const char *help;  /* one line, what the option does */
    /* keys of the table that it takes; NULL: it takes none, or any key */
    const cnri_lua_key *keys;
} cnri_lua_row;

/* A section of the API, in the order of the help: the module's functions in several sections,
 * then one for each type. */
typedef struct cnri_lua_section {
    const char *name; /* "cnnrun", or a type: "cnnrun.Tensor", "cnnrun.Layer: cnnrun.Value" */
    const char *how;  /* text in front of a function's name: "c.", "tensor:" */
    const char *help;
    const cnri_lua_row *rows; /* NULL: values that only other functions take */
    const char *marks;        /* fields and operators as in annotations, one a line; NULL: none */
} cnri_lua_section;
extern const cnri_lua_section cnri_lua_sections[]; /* module.c */
/* The module `cnnrun`. It stands above the files whose functions it has, and registers itself with
 * those that open types and answer `require`. */
typedef struct cnri_lua_module {
    void (*push)(lua_State *L); /* the table that require "cnnrun" gives */
    const cnri_lua_section *sections;
} cnri_lua_module;
extern const cnri_lua_module cnri_lua_cnnrun; /* module.c */

/* ---- rows.c ---- */
/* Before the first state is opened (cnri_lua_install does); any thread. */
void cnri_lua_module_register(const cnri_lua_module *module);
/* Pushes the table of the registered module `cnnrun`. */
void cnri_lua_push_module(lua_State *L);
/* Puts the rows' functions into the table on top. */
void cnri_lua_set_rows(lua_State *L, const cnri_lua_row *rows);
/* Implements t.name, with the upvalues methods (by name) and `what`: pushes the method, or raises
 * an error that names a similar one. */
int cnri_lua_find_method(lua_State *L);
/* Makes a type of userdata, by its metatable `type`, which scripts never see. `events` go into it.
 * `index` is called for t[k] with the upvalues of cnri_lua_find_method; NULL: cnri_lua_find_method
 * itself is. `what` names the type in messages: "a tensor". `methods`: the sections of that name,
 * or NULL. */
void cnri_lua_new_type(lua_State *L, const char *type, const char *what, const luaL_Reg *events,
                       const char *methods, lua_CFunction index);
/* Index of the first item of the list at `args` that is no name: 2 if [1] is a string, else 1. */
int cnri_lua_first_item(lua_State *L, int args);
/* Length in bytes of the name that a text such as "track(picture) -> box" begins with; 0: none. */
size_t cnri_word_length(const char *text);
/* Pushes t[name], where `text` begins with the name, without calling metamethods; returns its
 * type. */
int cnri_lua_get(lua_State *L, int t, const char *text);
/* True if a table may have that key. */
bool cnri_lua_is_key(const cnri_lua_key *keys, const char *name);
/* Push " (did you mean 'x'?)", or "" if no name is near. Names are the beginnings of texts. */
void cnri_lua_suggest(lua_State *L, const char *word, const char *const *texts, int32_t n);
/* Pushes "; did you mean ...?" for a misspelt key, or "". */
void cnri_lua_suggest_key(lua_State *L, const char *word, const cnri_lua_key *keys);
/* Raises an error unless each key of the table at `t` is one of `keys`. */
void cnri_lua_check_keys(lua_State *L, int t, const cnri_lua_key *keys);
/* Checks the keys, and reads all except CNRI_KEY_OTHER into the struct at `to`; missing ones
 * keep their value. Texts stay on the stack, because callbacks may change the table. Nothing at
 * `t` counts as an empty table. Raises errors. */
void cnri_lua_take(lua_State *L, int t, const cnri_lua_key *keys, void *to);

#endif
