/* The loader of ".lua" files: runs the script and gives the graph of the net it returns. */
#define _GNU_SOURCE /* memmem */
#include "lua/load.h"
#include <string.h>

cnr_status cnri_lua_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                         cnr_graph **out, cnr_error *err) {
    cnri_lua_program *p = NULL;
    const bool trust = rt && rt->options.trust_scripts;
    cnr_status status = CNR_OK;
    *out = NULL;
    if (rt && rt->begun.loader) { /* this file, as the caller saw to */
        p = rt->begun.state;
        memset(&rt->begun, 0, sizeof rt->begun);
    } else {
        status = cnri_lua_open(rt, path, 0, NULL, &(cnri_lua_rights){.trust = trust}, &p, err);
    }
    return status ? status : cnri_lua_graph(p, options, out, err);
}

/* True if the head of a file contains the word. */
static bool contains(const uint8_t *head, size_t bytes, const char *word) {
    return head && memmem(head, bytes, word, strlen(word)) != NULL;
}

/* Score of a file as a script: 100 by its name *.lua, 40 because it mentions require and cnnrun,
 * else 0. */
static int32_t accepts(const char *path, const uint8_t *head, size_t head_bytes) {
    const size_t n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".lua") == 0) return 100;
    return contains(head, head_bytes, "require") && contains(head, head_bytes, "cnnrun") &&
                   !contains(head, head_bytes, "\033Lua")
               ? 40
               : 0;
}

const cnri_loader cnri_lua_loader = {"lua", accepts, cnri_lua_load};

void cnri_lua_hold(cnr_runtime *rt, const char *path, cnri_lua_program *p) {
    rt->begun.loader = p ? &cnri_lua_loader : NULL;
    rt->begun.path = path;
    rt->begun.state = p;
}

void cnri_lua_drop(cnr_runtime *rt) {
    if (rt->begun.loader == &cnri_lua_loader) cnri_lua_close(rt->begun.state);
    memset(&rt->begun, 0, sizeof rt->begun);
}
