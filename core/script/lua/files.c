/* The rule for files that a script may open, and memory blocks that the collector frees. */
#include "group/group.h"
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLDER_TYPE "cnnrun holder"

/* True if `path`, as written, lies below the folder `given`. */
static bool is_below(const char *path, const char *given) {
    const size_t n = strlen(given);
    if (n == 0 || strncmp(path, given, n) != 0) return false;
    if (given[n - 1] != '/' && path[n] != '/') return false;
    return cnri_path_is_inside(path + n + (path[n] == '/'));
}

/* True if `path` is `given` or lies below it with links followed. *out: it lies there as
 * written, but leads elsewhere. */
static bool allowed(const char *path, const char *given, bool *out) {
    if (!*given) return false;
    if (strcmp(path, given) == 0 || cnri_path_leads_below(path, given)) return true;
    if (is_below(path, given)) *out = true;
    return false;
}

/* Checks `path` against the word `given` or a part of it: "--output=FILE",
 * "net.cfg,net.weights". */
typedef bool (*fits_fn)(const char *path, const char *part, bool *out);
static bool named_by(const char *path, const char *given, fits_fn fits, bool *out) {
    if (fits(path, given, out)) return true;
    for (const char *p = given; *p; p++) {
        const size_t n = strcspn(p, ",=");
        char part[PATH_MAX];
        if (n > 0 && n < sizeof part) {
            memcpy(part, p, n);
            part[n] = 0;
            if (fits(path, part, out)) return true;
        }
        p += n;
        if (!*p) break;
    }
    return false;
}

static bool is_allowed(const cnri_script *s, const char *path, bool write, bool *out) {
    for (int32_t i = 0; i < s->may_name.n; i++)
        if (named_by(path, s->may_name.at[i], allowed, out)) return true;
    return (s->output && allowed(path, s->output, out)) || (!write && allowed(path, s->dir, out));
}

static cnr_status refuse(const cnri_script *s, const char *path, bool write, bool out,
                         cnr_error *err) {
    if (!s->experiment)
        return cnri_fail(err, CNR_E_ARG, "", "'%s': a net's script touches no files", path);
    if (out)
        return cnri_fail(err, CNR_E_ARG, "",
                         "'%s' may not be %s: it is a link that leads elsewhere "
                         "(--trust lifts this)",
                         path, write ? "written" : "read");
    return cnri_fail(err, CNR_E_ARG, "",
                     "'%s' may not be %s: it is none of the paths on the command line%s "
                     "(--trust lifts this)",
                     path, write ? "written" : "read",
                     write ? ": name it there, or its folder by --output DIR (of a script, before "
                             "its name)"
                           : "");
}

static void check_one(lua_State *L, const char *path, bool write) {
    const cnri_script *s = cnri_script_of(L);
    cnr_error err = CNR_ERROR_INIT;
    bool out = false;
    if (s->trust || (s->experiment && is_allowed(s, path, write, &out))) return;
    refuse(s, path, write, out, &err);
    luaL_error(L, "%s", err.text);
}

/* ---- what plugins open ---- */

/* True if `path` is one of the files of a pattern such as "frames-%04d.png". */
static bool is_numbered(const char *path, const char *pattern, bool *out) {
    const char *at = strchr(pattern, '%'),
               *tail = at ? at + 1 + strspn(at + 1, "0123456789") : NULL;
    (void)out;
    if (!at || *tail != 'd' || strncmp(path, pattern, (size_t)(at - pattern)) != 0) return false;
    const char *number = path + (at - pattern);
    const size_t n = strspn(number, "0123456789");
    return n > 0 && strcmp(number + n, tail + 1) == 0;
}

/* True if a spec names `path` for reading: as one of "*.jpg", or in "SCHEME:PATH" or
 * "SCHEME:PATH:MORE". */
static bool is_in_spec(const char *path, const char *spec, bool *out) {
    char at[PATH_MAX];
    if (is_numbered(path, spec, out) || fnmatch(spec, path, FNM_PATHNAME | FNM_PERIOD) == 0)
        return true;
    const char *colon = strstr(spec, "://") ? NULL : strchr(spec, ':');
    if (!colon || snprintf(at, sizeof at, "%s", colon + 1) >= (int)sizeof at) return false;
    if (is_numbered(path, at, out) || fnmatch(at, path, FNM_PATHNAME | FNM_PERIOD) == 0 ||
        allowed(path, at, out))
        return true;
    char *tail = strrchr(at, ':');
    if (tail) *tail = 0;
    return allowed(path, at, out);
}

cnr_status cnri_lua_may_open(const void *script, const char *path, int32_t writes, cnr_error *err) {
    const cnri_script *s = script;
    bool out = false;
    if (s->experiment && is_allowed(s, path, writes, &out)) return CNR_OK;
    for (int32_t i = 0; s->experiment && i < s->may_name.n; i++)
        if (named_by(path, s->may_name.at[i], writes ? is_numbered : is_in_spec, &out))
            return CNR_OK;
    return refuse(s, path, writes, out, err);
}

/* True if `name` is a word of the command line, or a part of one between "=", "," and ":". */
bool cnri_lua_is_named(const void *script, const char *name) {
    const cnri_script *s = script;
    const size_t n = strlen(name);
    for (int32_t i = 0; n > 0 && s->experiment && i < s->may_name.n; i++) {
        const char *word = s->may_name.at[i];
        for (const char *p = strstr(word, name); p; p = strstr(p + 1, name))
            if ((p == word || strchr("=,:", p[-1])) && (p[n] == 0 || p[n] == ',')) return true;
    }
    return false;
}

/* True if the command line has "images:LIST.txt": such a list of the user's may be read, but not
 * written. */
bool cnri_lua_is_vouched(const void *script, const char *spec) {
    struct stat info;
    bool out = false;
    const char *colon = strchr(spec, ':');
    return colon && cnri_lua_is_named(script, spec) && stat(colon + 1, &info) == 0 &&
           S_ISREG(info.st_mode) && !is_allowed(script, colon + 1, true, &out);
}

void cnri_lua_check_address(lua_State *L, const char *address) {
    const cnri_script *s = cnri_script_of(L);
    bool out = false;
    if (s->trust || cnri_lua_is_named(s, address) ||
        (s->experiment && is_allowed(s, address, false, &out)))
        return;
    luaL_error(L, "'%s' may not be called: the command line does not name it (--trust lifts this)",
               address);
}

void cnri_lua_check_file(lua_State *L, const char *path, bool write) {
    struct stat info;
    if (write || !strchr(path, ',') || stat(path, &info) == 0) {
        check_one(L, path, write);
        return;
    }
    for (const char *at = path; at;
         at = *at ? at + 1 : NULL) { /* each of a net's files by itself */
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

/* c.text(path) returns the whole file as text. */
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

/* c.write(path, text) writes a file; a tensor is written as by its own save method. */
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

/* c.script(path) returns what a Lua file returns, which runs with globals of its own. */
static int script_of_file(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, false);
    cnri_lua_load_file(L, path, path);
    lua_call(L, 0, 1);
    return 1;
}

/* c.exists(path) returns "file", "folder" or nil, and the size of a file in bytes. */
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

/* c.folder(path) makes a folder unless it exists. */
static int make_folder(lua_State *L) {
    struct stat info;
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, true);
    if (mkdir(path, 0777) != 0 &&
        (errno != EEXIST || stat(path, &info) != 0 || !S_ISDIR(info.st_mode)))
        return luaL_error(L, "%s: %s", path, strerror(errno));
    return 0;
}

/* c.barrier() waits for the other processes of the job, so that files that they wrote before
 * exist afterwards. Returns this process's rank and the number of processes. */
static int barrier(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    if (cnri_group_barrier(&err)) return luaL_error(L, "%s: %s", err.where, err.text);
    lua_pushinteger(L, cnri_group_rank());
    lua_pushinteger(L, cnri_group_ranks());
    return 2;
}

/* Adds the regular files of the open folder `dir` to the table on top. */
static void list_files(lua_State *L, DIR *dir) {
    struct stat info;
    const struct dirent *entry;
    for (lua_Integer n = 0; (entry = readdir(dir)) != NULL;) {
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        lua_createtable(L, 0, 3);
        cnri_lua_set_text(L, "name", entry->d_name);
        cnri_lua_set_whole(L, "bytes", (int64_t)info.st_size);
        cnri_lua_set_whole(L, "changed", (int64_t)info.st_mtime);
        lua_rawseti(L, -2, ++n);
    }
}

static int close_folder(lua_State *L) {
    DIR **dir = lua_touserdata(L, 1);
    if (*dir) closedir(*dir);
    *dir = NULL;
    return 0;
}

/* c.files(folder) returns { { name, bytes, changed } } in no fixed order; `changed` is in
 * seconds since 1970. */
static int files_of(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, false);
    DIR **dir = lua_newuserdatauv(L, sizeof *dir, 0);
    *dir = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_folder);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    *dir = opendir(path);
    if (!*dir) return luaL_error(L, "%s: %s", path, strerror(errno));
    lua_newtable(L);
    list_files(L, *dir);
    closedir(*dir);
    *dir = NULL;
    return 1;
}

/* c.remove(path) removes a file that the script may write; of a link, the link itself. */
static int remove_file(lua_State *L) {
    struct stat info;
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, true);
    if (lstat(path, &info) != 0 || (!S_ISDIR(info.st_mode) && unlink(path) != 0))
        return luaL_error(L, "%s: %s", path, strerror(errno));
    return S_ISDIR(info.st_mode) ? luaL_error(L, "%s: want a file, got a folder", path) : 0;
}

/* c.output(path, ...) fails, before work begins, unless path can be written and is no input. */
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

/* c.note(...) prints like print, but to standard error, apart from results. */
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

const cnri_lua_row cnri_file_rows[] =
    {{"text(path: string)", text_of, "string", "what the file holds", NULL},
     {"write(path: string, data: string|cnnrun.Tensor)", write_file, "",
      "writes a file that appears whole, or not at all", NULL},
     {"script(path: string)", script_of_file, "any", "what a file of Lua returns", NULL},
     {"exists(path: string)", exists, "\"file\"|\"folder\"|nil, integer?",
      "what is there; of a file, its bytes", NULL},
     {"folder(path: string)", make_folder, "", "makes the folder, when it is not there", NULL},
     {"barrier()", barrier, "integer, integer",
      "waits for all processes of the job (mpirun): rank and number of them; alone: 0, 1", NULL},
     {"files(folder: string)", files_of, "{ name: string, bytes: integer, changed: integer }[]",
      "a folder's files, in no order; changed: seconds since 1970", NULL},
     {"remove(path: string)", remove_file, "", "removes a file", NULL},
     {"output(path: string, ...: string)", output, "",
      "fails if the file can't be written, or is one of the inputs named behind it", NULL},
     {"note(...: any)", note, "", "prints a line on stderr, beside the results", NULL},
     {0}};

void cnri_lua_open_files(lua_State *L) {
    static const luaL_Reg events[] = {{"__gc", free_held}, {0}};
    cnri_lua_new_type(L, HOLDER_TYPE, "a block", events, NULL, NULL);
}
