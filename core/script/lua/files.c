/* Which files a script may touch; blocks in the collector's care. */
#include "lua/files.h"
#include "people/people.h"
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
/* True if `fits` holds for the path and a given word, or a part of it between commas and equals
 * signs. `fits` may set *out, which otherwise stays as it was. */
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

/* True if a script may read, or write, the file; *out: a link leads outside. */
static bool is_allowed(const cnri_script *s, const char *path, bool write, bool *out) {
    for (int32_t i = 0; i < s->may_name.n; i++)
        if (named_by(path, s->may_name.at[i], allowed, out)) return true;
    return (s->output && allowed(path, s->output, out)) || (!write && allowed(path, s->dir, out));
}

/* Fills err with why a script may not use the file. */
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

/* Raises an error unless the script may use the file. */
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

/* Collector: frees a holder's block with cnri_free. */
static int free_held(lua_State *L) {
    void **block = lua_touserdata(L, 1);
    cnri_free(*block);
    *block = NULL;
    return 0;
}

/* Makes the type of held blocks known to Lua. */
void cnri_lua_open_files(lua_State *L) {
    static const luaL_Reg events[] = {{"__gc", free_held}, {0}};
    cnri_lua_new_type(L, HOLDER_TYPE, "a block", events, NULL, NULL);
}
