/* Which files a script may touch; blocks in the collector's care. */
#include "core/lua/files.h"
#include "core/lua/tensor.h"
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define HOLDER_TYPE "cnnrun holder"

/* `path` lies below the directory `given`: as it is written. */
static bool below(const char *path, const char *given) {
    const size_t n = strlen(given);
    if (n == 0 || strncmp(path, given, n) != 0) return false;
    if (given[n - 1] != '/' && path[n] != '/') return false;
    return cnri_path_is_inside(path + n + (path[n] == '/'));
}

/* It is `given`, or below it with links followed. *out: it lies there, and leads elsewhere. */
static bool allowed(const char *path, const char *given, bool *out) {
    if (!*given) return false;
    if (strcmp(path, given) == 0 || cnri_path_leads_below(path, given)) return true;
    if (below(path, given)) *out = true;
    return false;
}

/* ... or by a part of the word `given`: "--output=FILE", "net.cfg,net.weights". */
static bool named_by(const char *path, const char *given, bool *out) {
    if (allowed(path, given, out)) return true;
    for (const char *p = given; *p; p++) {
        const size_t n = strcspn(p, ",=");
        char part[PATH_MAX];
        if (n > 0 && n < sizeof part) {
            memcpy(part, p, n);
            part[n] = 0;
            if (allowed(path, part, out)) return true;
        }
        p += n;
        if (!*p) break;
    }
    return false;
}

static void check_one(lua_State *L, const char *path, bool write) {
    const cnri_script *s = cnri_script_of(L);
    if (s->trust) return;
    if (!s->experiment) luaL_error(L, "'%s': a net's script touches no files", path);
    bool out = false;
    for (int32_t i = 0; i < s->n_args; i++)
        if (named_by(path, s->args[i], &out)) return;
    if (s->output && allowed(path, s->output, &out)) return;
    if (!write && allowed(path, s->dir, &out)) return;
    if (out)
        luaL_error(L, "'%s' may not be %s: it is a link that leads elsewhere (--trust lifts this)",
                   path, write ? "written" : "read");
    luaL_error(L, "'%s' may not be %s: it is none of the paths on the command line%s (--trust lifts "
               "this)", path, write ? "written" : "read",
               write ? ": name it there, or its folder by --output DIR before the script" : "");
}

void cnri_lua_check_file(lua_State *L, const char *path, bool write) {
    struct stat info;
    if (write || !strchr(path, ',') || stat(path, &info) == 0) {
        check_one(L, path, write);
        return;
    }
    for (const char *at = path; at; at = *at ? at + 1 : NULL) { /* each of a net's files by itself */
        const char *part = lua_pushlstring(L, at, strcspn(at, ","));
        if (cnri_weights_are_file(part)) check_one(L, part, false);
        at += strlen(part);
        lua_pop(L, 1);
    }
}

const char *cnri_lua_push_beside(lua_State *L, const char *name) {
    const cnri_script *s = cnri_script_of(L);
    cnr_error err = CNR_ERROR_INIT;
    char *real = NULL;
    if (name[0] == '/' && s->trust) return lua_pushstring(L, name);
    /* what is not there is missed by whoever opens it */
    const cnr_status status = s->trust ? CNR_OK : cnri_path_beside(s->path, name, &real, &err);
    cnri_free(real);
    if (status == CNR_E_MEMORY) cnri_script_raise(L, &err);
    if (status && status != CNR_E_NOT_FOUND) {
        lua_pushnil(L);
        return NULL;
    }
    if (strcmp(s->dir, ".") == 0) return lua_pushstring(L, name);
    return lua_pushfstring(L, "%s/%s", s->dir, name);
}

/* ---- held blocks ---- */

void **cnri_lua_push_holder(lua_State *L) {
    void **block = lua_newuserdatauv(L, sizeof *block, 0);
    *block = NULL;
    luaL_setmetatable(L, HOLDER_TYPE);
    return block;
}

static int free_held(lua_State *L) {
    void **block = lua_touserdata(L, 1);
    cnri_free(*block);
    *block = NULL;
    return 0;
}

/* ---- what experiments do with files ---- */

/* c.text(path): the whole file. */
static int text_of(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    char *text;
    size_t bytes;
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, false);
    void **held = cnri_lua_push_holder(L);
    if (cnri_read_file(path, CNRI_SCRIPT_FILE_BYTES, &text, &bytes, &err))
        return cnri_script_raise(L, &err);
    *held = text;
    lua_pushlstring(L, text, bytes);
    return 1;
}

static cnr_status write_text(const char *path, const char *text, size_t bytes, cnr_error *err) {
    cnri_writer w;
    cnr_status status = cnri_write_begin(&w, path, 0, err);
    if (status) return status;
    status = cnri_write(&w, text, bytes, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

/* c.write(path, text): a tensor is saved as its own method does it. */
static int write_file(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    size_t bytes;
    const char *path = luaL_checkstring(L, 1);
    if (luaL_testudata(L, 2, CNRI_TENSOR_TYPE)) {
        lua_settop(L, 2);
        lua_insert(L, 1);
        return cnri_lua_tensor_save(L);
    }
    const char *text = luaL_checklstring(L, 2, &bytes);
    cnri_lua_check_file(L, path, true);
    const uint64_t left = cnri_script_leave();
    const cnr_status status = write_text(path, text, bytes, &err);
    cnri_script_return(L, left);
    return status ? cnri_script_raise(L, &err) : 0;
}

/* c.script(path): what a file of Lua returns, with globals of its own. */
static int script_of_file(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, false);
    cnri_lua_load_file(L, path, path);
    lua_call(L, 0, 1);
    return 1;
}

/* c.exists(path): "file", "folder" or nil, and how many bytes a file has. */
static int exists(lua_State *L) {
    struct stat info;
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, false);
    if (stat(path, &info) != 0) return 0;
    lua_pushstring(L, S_ISDIR(info.st_mode) ? "folder" : "file");
    if (S_ISDIR(info.st_mode)) return 1;
    lua_pushinteger(L, (lua_Integer)info.st_size);
    return 2;
}

/* c.folder(path): makes it, when it is not there. */
static int make_folder(lua_State *L) {
    struct stat info;
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, true);
    if (mkdir(path, 0777) != 0 &&
        (errno != EEXIST || stat(path, &info) != 0 || !S_ISDIR(info.st_mode)))
        return luaL_error(L, "%s: %s", path, strerror(errno));
    return 0;
}

/* c.output(path, ...): fails unless path can be written and is no input, before work begins. */
static int output(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const int n = lua_gettop(L);
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, true);
    const char **words = lua_newuserdatauv(L, (size_t)n * sizeof *words, 0);
    for (int i = 2; i <= n; i++) words[i - 2] = luaL_checkstring(L, i);
    if (cnri_write_check(path, words, n - 1, &err)) return cnri_script_raise(L, &err);
    return 0;
}

/* c.note(...): as print, but beside the results. */
static int note(lua_State *L) {
    const int n = lua_gettop(L);
    for (int i = 1; i <= n; i++) {
        size_t bytes;
        const char *text = luaL_tolstring(L, i, &bytes);
        if (i > 1) cnri_say(stderr, "\t");
        cnri_say_lines(stderr, text, bytes);
        lua_pop(L, 1);
    }
    cnri_say(stderr, "\n");
    return 0;
}

const cnri_lua_row cnri_file_rows[] = {
    {"text(path: string)", text_of, "string", "what the file holds", NULL},
    {"write(path: string, data: string|cnnrun.Tensor)", write_file, "",
     "writes a file that appears whole, or not at all", NULL},
    {"script(path: string)", script_of_file, "any", "what a file of Lua returns", NULL},
    {"exists(path: string)", exists, "\"file\"|\"folder\"|nil, integer?", "what is there; of a file, its bytes",
     NULL},
    {"folder(path: string)", make_folder, "", "makes the folder, when it is not there", NULL},
    {"output(path: string, ...: string)", output, "",
     "fails if the file can't be written, or is one of the inputs named behind it", NULL},
    {"note(...: any)", note, "", "prints a line on stderr, beside the results", NULL},
    {0}};

void cnri_lua_open_files(lua_State *L) {
    static const luaL_Reg events[] = {{"__gc", free_held}, {0}};
    cnri_lua_new_type(L, HOLDER_TYPE, "a block", events, NULL, NULL);
}
