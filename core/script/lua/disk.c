/* What experiments do with files, and say beside their results. */
#include "group/group.h"
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include "people/people.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Implements c.text(path): pushes the whole file as a string. Raises an error if it can't be read
 * or the script may not read it. */
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

/* Writes a text to a file, which is replaced whole. */
static cnr_status write_text(const char *path, const char *text, size_t bytes, cnr_error *err) {
    cnri_writer w;
    cnr_status status = cnri_write_begin(&w, path, 0, err);
    if (status) return status;
    status = cnri_write(&w, text, bytes, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

/* Implements c.write(path, value): writes a text, or a tensor as its own method does it. Raises
 * errors. */
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

/* Implements c.folder(path): makes a folder unless it is there. Raises errors. */
static int make_folder(lua_State *L) {
    struct stat info;
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, true);
    if (mkdir(path, 0777) == 0 ||
        (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return 0;
    cnr_error err = CNR_ERROR_INIT;
    if (errno == EEXIST) cnri_fail(&err, CNR_E_ARG, path, "is there, and is no folder");
    else
        cnri_fail(&err, errno == ENOENT ? CNR_E_NOT_FOUND : CNR_E_IO, path, "can't be made: %s",
                  strerror(errno));
    return cnri_script_raise(L, &err);
}

/* c.barrier(): what other processes of the job wrote before it is there behind it; this process'
 * rank, and how many there are. */
static int barrier(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    if (cnri_group_barrier(&err)) return luaL_error(L, "%s: %s", err.where, err.text);
    lua_pushinteger(L, cnri_group_rank());
    lua_pushinteger(L, cnri_group_ranks());
    return 2;
}

/* The regular files of the open folder `dir` into the table on top. */
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

/* Collector: closes an open folder; closed already: nothing. */
static int close_folder(lua_State *L) {
    DIR **dir = lua_touserdata(L, 1);
    if (*dir) closedir(*dir);
    *dir = NULL;
    return 0;
}

/* c.files(folder): { { name, bytes, changed } }, in no order; `changed` in seconds since 1970. */
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

/* Implements c.remove(path): removes a file that the script may write; a link goes, not what it
 * leads to. Raises an error for a folder. */
static int remove_file(lua_State *L) {
    struct stat info;
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, true);
    if (lstat(path, &info) != 0 || (!S_ISDIR(info.st_mode) && unlink(path) != 0))
        return luaL_error(L, "%s: %s", path, strerror(errno));
    return S_ISDIR(info.st_mode) ? luaL_error(L, "%s: want a file, got a folder", path) : 0;
}

/* Implements c.output(path, ...): raises an error unless path can be written and is none of the
 * inputs, before work begins. */
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

/* Implements c.note(...): prints its arguments with tabs between and a newline, to stderr. */
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
