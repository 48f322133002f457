/* Scripts whose top level has run: experiments, which return a function main(args), and nets. */
#include "core/lua/layer.h"
#include "core/lua/load.h"
#include "core/lua/model.h"
#include <string.h>
#include <sys/stat.h>

struct cnri_lua_program {
    cnri_script script;
    bool is_main;
    int exit_code;
};

static void push_args(lua_State *L, const cnri_script *s) {
    lua_createtable(L, s->n_args, 2);
    lua_pushstring(L, s->output);
    lua_setfield(L, -2, "output");
    lua_pushstring(L, s->path);
    lua_rawseti(L, -2, 0);
    for (int32_t i = 0; i < s->n_args; i++) {
        lua_pushstring(L, s->args[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static const char result; /* its address: where the registry has what the top level returned */

static int run_top(lua_State *L) {
    cnri_lua_program *p = lua_touserdata(L, 1);
    cnri_lua_load_file(L, p->script.path, p->script.path);
    lua_call(L, 0, 1);
    p->is_main = lua_isfunction(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &result);
    return 0;
}

/* An experiment whose top level had mistakes, of which no net tells. */
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

static int run_main(lua_State *L) {
    cnri_lua_program *p = lua_touserdata(L, 1);
    cnri_script *s = &p->script;
    refuse_mistakes(L);
    s->experiment = true;
    if (!s->stopped) s->budget = CNRI_MAIN_INSTRUCTIONS;
    s->cpu_limit_ns = UINT64_MAX;
    s->limit = CNRI_MAIN_BYTES;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &result);
    push_args(L, s);
    lua_call(L, 1, 1);
    if (!lua_isinteger(L, -1)) return 0;
    const lua_Integer code = lua_tointeger(L, -1);
    if (code < 0 || code > 255) /* the system would cut 256 to 0 */
        luaL_error(L, "main returned %I: an exit code is 0 to 255", (LUAI_UACINT)code);
    p->exit_code = (int)code;
    return 0;
}

cnr_status cnri_lua_open(cnr_runtime *rt, const char *path, int argc, char **argv,
                         const cnri_lua_rights *rights, cnri_lua_program **out, cnr_error *err) {
    cnri_lua_program *p = *out = cnri_alloc_zero(sizeof *p);
    if (!p) return cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    cnr_status status = cnri_script_open(&p->script, rt, path, rights->trust, err);
    p->script.args = (const char *const *)argv;
    p->script.n_args = argc;
    p->script.output = rights->output;
    p->script.cancelled = rights->cancelled;
    p->script.watch = rights->watch;
    if (!status) status = cnri_script_guard(&p->script, run_top, p, 0, err);
    if (!status) return CNR_OK;
    cnri_lua_close(p);
    *out = NULL;
    return status;
}

void cnri_lua_close(cnri_lua_program *p) {
    if (!p) return;
    cnri_script_close(&p->script);
    cnri_free(p);
}

bool cnri_lua_is_main(const cnri_lua_program *p) {
    return p->is_main;
}

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
    if (!status) status = cnri_script_guard(&p->script, run_main, p, 0, err);
    if (!status && exit_code) *exit_code = p->exit_code;
    return status;
}

typedef struct building {
    const char *net;
    cnri_lua_built built;
} building;

static int build(lua_State *L) {
    building *b = lua_touserdata(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &result);
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
    if (!b.built.graph) status = cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    if (!status) status = cnri_script_guard(&p->script, build, &b, 0, err);
    cnri_lua_close(p); /* before weights come, which may be large */
    if (!status) status = cnri_lua_verdict(b.built.graph, path, err);
    if (!status) status = cnri_lua_fill(&b.built, options, err);
    cnri_lua_built_free(&b.built);
    if (!status) *out = b.built.graph;
    else cnri_graph_free(b.built.graph);
    return status;
}
