/* Applications that commands call: what they measured is drawn by scripts. */
#include "core/cli/cli.h"
#include "core/lua/script.h"

char *cnri_beside(const char *path, const char *ending) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return cnri_format("%.*s%s", (int)(dot ? dot - path : (ptrdiff_t)strlen(path)), path, ending);
}

/* A file's name as an application takes it: one that begins with a dash would be an option. */
static char *as_word(const char *path) {
    return cnri_format("%s%s", *path == '-' ? "./" : "", path);
}

cnr_status cnri_app_draw(const cnri_call *call, const char *name, const char *csv, const char *picture,
                         cnr_error *err) {
    char *words[] = {as_word(csv), as_word(picture), NULL};
    char *path = cnri_lua_app(name);
    const cnri_lua_rights rights = {.cancelled = NULL};
    cnri_lua_program *p = NULL;
    int code = 0;
    cnr_status status = !words[0] || !words[1] ? cnri_fail(err, CNR_E_MEMORY, name, "out of memory")
                        : path ? cnri_lua_open(call->rt, path, 2, words, &rights, &p, err)
                             : cnri_fail(err, CNR_E_NOT_FOUND, name,
                                         "is not among the installed applications");
    if (!status) status = cnri_lua_main(p, &code, err);
    if (!status && code) status = cnri_fail(err, CNR_E_SCRIPT, picture, "was not drawn");
    cnri_lua_close(p);
    cnri_free(words[0]);
    cnri_free(words[1]);
    cnri_free(path);
    return status;
}
