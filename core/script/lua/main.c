/* Scripts whose top level has run: experiments, which return a function main(args), and nets. */
#include "lua/layer.h"
#include "lua/load.h"
#include "lua/model.h"
#include "lua/program.h"
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* Pops a name, and appends `text` to the list of that name in the table below, made if need be. */
static void push_item(lua_State *L, const char *text) {
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    lua_pushstring(L, text);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 2);
}

/* Adds named arguments to the table on top, with _ for -. */
static void push_named(lua_State *L, const cnri_lua_named *named) {
    for (; named && named->name; named++) {
        luaL_gsub(L, named->name, "-", "_");
        if (named->is_item) {
            push_item(L, named->text);
            continue;
        }
        if (named->text) lua_pushstring(L, named->text);
        else if (named->is_flag) lua_pushboolean(L, true);
        else if (named->number == floor(named->number) && fabs(named->number) < 9e15)
            lua_pushinteger(L, (lua_Integer)named->number);
        else lua_pushnumber(L, named->number);
        if (named->text || named->number != 0 || named->is_flag || named->is_zero)
            lua_rawset(L, -3);
        else lua_pop(L, 2);
    }
}

/* Pushes the table of arguments that main gets. */
static void push_args(lua_State *L, const cnri_lua_program *p) {
    const cnri_script *s = &p->script;
    lua_createtable(L, s->n_args, 2);
    lua_pushstring(L, s->output);
    lua_setfield(L, -2, "output");
    push_named(L, p->named);
    if (p->load) {
        cnri_lua_push_load(L, p->load);
        lua_setfield(L, -2, "load");
    }
    lua_pushstring(L, s->path);
    lua_rawseti(L, -2, 0);
    for (int32_t i = 0; i < s->n_args; i++) {
        lua_pushstring(L, s->args[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

const char cnri_lua_result; /* its address is the registry key of the top level's result */

/* True if a table with the function `main` is on top. */
static bool is_application(lua_State *L) {
    if (!lua_istable(L, -1)) return false;
    lua_pushliteral(L, "main");
    const bool is = lua_rawget(L, -2) == LUA_TFUNCTION;
    lua_pop(L, 1);
    return is;
}

/* Lua function: runs the file and keeps what it returns. */
static int run_top(lua_State *L) {
    cnri_lua_program *p = lua_touserdata(L, 1);
    cnri_lua_load_file(L, p->script.path, p->script.path);
    lua_call(L, 0, 1);
    p->is_application = is_application(L);
    p->is_main = p->is_application || lua_isfunction(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &cnri_lua_result);
    return 0;
}

/* Raises an error for mistakes in an experiment's top level, which no net would report. */
static void refuse_mistakes(lua_State *L) {
    cnri_lua_push_mistakes(L);
    const int n = (int)lua_rawlen(L, -1) / 2;
    if (n == 0) return;
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    lua_pushfstring(L, "%s: %s", lua_tostring(L, -2), lua_tostring(L, -1));
    if (n > 1) lua_pushfstring(L, "%s (and %d more)", lua_tostring(L, -1), n - 1);
    lua_error(L);
}

void cnri_lua_begin_main(cnri_script *s) {
    s->experiment = true;
    if (!s->stopped) s->budget = CNRI_MAIN_INSTRUCTIONS;
    s->cpu_limit_ns = UINT64_MAX;
    s->limit = CNRI_MAIN_BYTES;
}

/* Lua function: calls main; the whole number that it returns, 0 to 255, becomes the exit code,
 * nothing is 0. */
static int run_main(lua_State *L) {
    cnri_lua_program *p = lua_touserdata(L, 1);
    refuse_mistakes(L);
    cnri_lua_begin_main(&p->script);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &cnri_lua_result);
    if (p->is_application) lua_getfield(L, -1, "main");
    push_args(L, p);
    lua_call(L, 1, 1);
    if (!lua_isinteger(L, -1)) return 0;
    const lua_Integer code = lua_tointeger(L, -1);
    if (code < 0 || code > 255) /* the system would cut 256 to 0 */
        luaL_error(L, "main returned %I: an exit code is 0 to 255", (LUAI_UACINT)code);
    p->exit_code = (int)code;
    return 0;
}

/* ---- results ---- */

/* Arguments of run_results: the program, and the function to call for each result. */
typedef struct results {
    cnri_lua_program *program;
    cnri_lua_result_fn each;
    cnri_lua_unread_fn unread; /* NULL: nobody asks */
    void *arg;
} results;

/* Reports the numbers of the list on top. */
static void tell_list(lua_State *L, const results *r, const char *name) {
    const lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        if (!lua_isnumber(L, -1))
            luaL_error(L, "result '%s': item %I is no number", name, (LUAI_UACINT)i);
        r->each(r->arg,
                &(cnri_lua_named){.name = name, .number = lua_tonumber(L, -1), .is_item = true});
        lua_pop(L, 1);
    }
    if (n == 0)
        luaL_error(L, "result '%s': want a number, a text, a flag or a list of numbers", name);
}

/* Reports the value on top, a number, text, flag or list, under a name; raises an error for
 * others. */
static void tell_result(lua_State *L, const results *r, const char *name) {
    cnri_lua_named value = {.name = name};
    switch (lua_type(L, -1)) {
    case LUA_TNUMBER: value.number = lua_tonumber(L, -1); break;
    case LUA_TSTRING: value.text = lua_tostring(L, -1); break;
    case LUA_TBOOLEAN:
        value.is_flag = true;
        value.number = lua_toboolean(L, -1);
        break;
    case LUA_TTABLE: tell_list(L, r, name); return;
    default:
        luaL_error(L, "result '%s' is a %s: want a number, a text, a flag or a list of numbers",
                   name, luaL_typename(L, -1));
    }
    r->each(r->arg, &value);
}

/* The smallest key of the table on top that follows `after` (NULL: the smallest of all); NULL:
 * there is no more. */
static const char *next_name(lua_State *L, const char *after) {
    const char *found = NULL;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "a result has no name: want { top1 = 0.98 }");
        const char *name = lua_tostring(L, -2);
        if ((!after || strcmp(name, after) > 0) && (!found || strcmp(name, found) < 0))
            found = name;
    }
    return found;
}

/* Lua function, __index of the arguments: notes that the key at 2 was read, and pushes its value.
 */
static int read_arg(lua_State *L) {
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(1));
    lua_pushvalue(L, 2);
    lua_pushnil(L);
    if (lua_type(L, 2) == LUA_TSTRING) lua_rawset(L, lua_upvalueindex(2));
    lua_settop(L, 3);
    return 1;
}

/* Lua function, __pairs of the arguments: all of them are read. */
static int read_all(lua_State *L) {
    lua_settop(L, 1);
    for (lua_pushnil(L); lua_next(L, lua_upvalueindex(1));) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, 1);
        lua_pushvalue(L, -1);
        lua_pushnil(L);
        lua_rawset(L, lua_upvalueindex(2));
    }
    lua_getglobal(L, "next");
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

/* Replaces the table of arguments on top by one that notes what is read. Behind it, the set of
 * named arguments that were not read yet is on top. Words stay where rawlen finds them. */
static void watch_args(lua_State *L, const cnri_lua_program *p) {
    const int args = lua_gettop(L);
    lua_newtable(L); /* args + 1: what main gets */
    lua_newtable(L); /* args + 2: the set */
    for (const cnri_lua_named *n = p->named; n && n->name; n++) {
        luaL_gsub(L, n->name, "-", "_");
        lua_pushboolean(L, true);
        lua_rawset(L, args + 2);
    }
    for (lua_Integer i = 0; i <= (lua_Integer)lua_rawlen(L, args); i++) {
        lua_rawgeti(L, args, i);
        lua_rawseti(L, args + 1, i);
    }
    lua_createtable(L, 0, 2);
    static const luaL_Reg hooks[] = {{"__index", read_arg}, {"__pairs", read_all}, {NULL, NULL}};
    lua_pushvalue(L, args);
    lua_pushvalue(L, args + 2);
    luaL_setfuncs(L, hooks, 2);
    lua_setmetatable(L, args + 1);
    lua_remove(L, args);
}

/* Tells which named arguments of the set on top were not read, sorted. */
static void tell_unread(lua_State *L, const results *r) {
    for (const char *name = next_name(L, NULL); name; name = next_name(L, name))
        if (r->unread) r->unread(r->arg, name);
}

/* Lua function: calls main and passes on the results that it returns. */
static int run_results(lua_State *L) {
    const results *r = lua_touserdata(L, 1);
    cnri_lua_program *p = r->program;
    refuse_mistakes(L);
    cnri_lua_begin_main(&p->script);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &cnri_lua_result);
    push_args(L, p);
    watch_args(L, p);
    lua_insert(L, -3); /* the set below main and its arguments */
    lua_call(L, 1, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "main returned a %s: want a table of results, { top1 = 0.98 }",
                   luaL_typename(L, -1));
    const char *name = next_name(L, NULL);
    if (!name) luaL_error(L, "main returned no results: want a table such as { top1 = 0.98 }");
    for (; name; name = next_name(L, name)) {
        lua_pushstring(L, name);
        lua_rawget(L, -2);
        tell_result(L, r, name);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    tell_unread(L, r);
    return 0;
}

/* Allows the script to name a file. False: out of memory. */
static bool add_name(cnri_script *s, const char *name) {
    const char **slot = name ? cnri_push(&s->may_name) : NULL;
    if (slot) *slot = name;
    return slot || !name;
}

/* Collects the words that paths may be named by: words, texts beside them, files of load
 * options. False: it failed. */
static bool add_names(cnri_script *s, const cnri_lua_rights *rights) {
    const cnr_load_options *load = rights->load;
    bool good = true;
    for (int32_t i = 0; i < s->n_args; i++) good = good && add_name(s, s->args[i]);
    for (const cnri_lua_named *n = rights->named; n && n->name; n++)
        good = good && add_name(s, n->text);
    for (int32_t i = 0; load && i < CNRI_N_LOAD_OPTIONS; i++)
        if (cnri_load_options[i].kind == CNRI_LOAD_FILE)
            good =
                good &&
                add_name(s, *(const char *const *)((const char *)load + cnri_load_options[i].at));
    return good;
}

cnr_status cnri_lua_open(cnr_runtime *rt, const char *path, int argc, char **argv,
                         const cnri_lua_rights *rights, cnri_lua_program **out, cnr_error *err) {
    cnri_lua_program *p = *out = cnri_alloc_zero(sizeof *p);
    if (!p) return cnri_out_of_memory(err, path);
    cnr_status status = cnri_script_open(&p->script, rt, path, rights->trust, err);
    p->script.args = (const char *const *)argv;
    p->script.n_args = argc;
    p->script.output = rights->output;
    p->script.cancelled = rights->cancelled;
    p->script.watch = rights->watch;
    p->named = rights->named;
    p->load = rights->load;
    if (!status && !add_names(&p->script, rights)) status = cnri_out_of_memory(err, path);
    if (!status) status = cnri_script_guard(&p->script, run_top, p, 0, err);
    if (!status) return CNR_OK;
    cnri_lua_close(p);
    *out = NULL;
    return status;
}

cnr_status cnri_lua_give(cnri_lua_program *p, int argc, char **argv, const cnri_lua_rights *rights,
                         cnr_error *err) {
    p->script.args = (const char *const *)argv;
    p->script.n_args = argc;
    p->script.output = rights->output;
    p->named = rights->named;
    p->load = rights->load;
    return add_names(&p->script, rights) ? CNR_OK : cnri_out_of_memory(err, p->script.path);
}

/* Closes the script and frees the program; NULL: nothing. */
void cnri_lua_close(cnri_lua_program *p) {
    if (!p) return;
    cnri_script_close(&p->script);
    cnri_free(p);
}

bool cnri_lua_is_main(const cnri_lua_program *p) { return p->is_main; }

bool cnri_lua_is_application(const cnri_lua_program *p) { return p->is_application; }

/* Turns an application's error into one for people: a mistake in its options, unless the engine
 * raised it, whose code and place stay. */
static cnr_status explain(const cnri_lua_program *p, cnr_status status, cnr_error *err) {
    cnr_error own;
    if (status != CNR_E_SCRIPT || !p->is_application || strcmp(err->where, p->script.path) != 0)
        return status;
    if (cnri_script_raised(&p->script, err->text, &own)) {
        const size_t before =
            strlen(err->text) - strlen(own.text) - strlen(own.where) - (*own.where ? 2 : 0);
        if (before == 0) return cnri_fail(err, own.code, own.where, "%s", own.text);
        err->code = own.code;
    } else err->code = CNR_E_ARG;
    err->where[0] = 0;
    return err->code;
}

/* Makes a folder, unless it is there. CNR_E_IO: neither. */
static cnr_status make_folder(const char *path, cnr_error *err) {
    struct stat info;
    if (mkdir(path, 0777) == 0 || (stat(path, &info) == 0 && S_ISDIR(info.st_mode))) return CNR_OK;
    return cnri_fail_errno(err, path, "can't be made a folder");
}

cnr_status cnri_lua_main(cnri_lua_program *p, int *exit_code, cnr_error *err) {
    if (!p->is_main)
        return cnri_fail(err, CNR_E_NOT_FOUND, p->script.path,
                         "no experiment: it returns no function main(args)");
    const char *folder = p->script.output;
    cnr_status status = folder ? make_folder(folder, err) : CNR_OK;
    if (!status) status = explain(p, cnri_script_guard(&p->script, run_main, p, 0, err), err);
    if (!status && exit_code) *exit_code = p->exit_code;
    return status;
}

cnr_status cnri_lua_results(cnri_lua_program *p, cnri_lua_result_fn each, cnri_lua_unread_fn unread,
                            void *arg, cnr_error *err) {
    if (!p->is_main || p->is_application)
        return cnri_fail(err, CNR_E_NOT_FOUND, p->script.path,
                         "no study: it returns no function that returns results");
    results r = {.program = p, .each = each, .unread = unread, .arg = arg};
    return cnri_script_guard(&p->script, run_results, &r, 0, err);
}

/* A net that is to be built. */
typedef struct building {
    const char *net;
    cnri_lua_built built;
} building;

/* Lua function: builds the net that was chosen into b->built. */
static int build(lua_State *L) {
    building *b = lua_touserdata(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &cnri_lua_result);
    cnri_lua_pick_net(L, b->net);
    cnri_lua_build(L, -1, &b->built);
    return 0;
}

cnr_status cnri_lua_graph(cnri_lua_program *p, const cnr_load_options *options, cnr_graph **out,
                          cnr_error *err) {
    const char *path = p->script.path;
    building b = {.net = options && CNRI_HAS(options, net) ? options->net : NULL};
    cnr_status status = CNR_OK;
    *out = NULL;
    b.built.graph = cnri_graph_new("");
    if (!b.built.graph) status = cnri_out_of_memory(err, path);
    if (!status) status = cnri_script_guard(&p->script, build, &b, 0, err);
    cnri_lua_close(p); /* before weights come, which may be large */
    if (!status) status = cnri_lua_verdict(b.built.graph, path, err);
    if (!status) status = cnri_lua_fill(&b.built, options, err);
    cnri_lua_built_free(&b.built);
    if (!status) *out = b.built.graph;
    else cnri_graph_free(b.built.graph);
    return status;
}
