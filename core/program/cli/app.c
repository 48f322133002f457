/* Applications that commands call: scripts draw what the commands measured. */
#include "cli/cli.h"
#include "lua/script.h"
#include <cnnrun/lab.h>

/* The observer's event callback: removes the progress line before a script prints. Returns 0 in
 * every case, so it never stops the work. */
static int32_t clear_bar(void *arg, int32_t kind, const void *of) {
    (void)of;
    if (kind == CNRI_EVENT_CLEAR_PROGRESS) cnri_watch_end(arg);
    return 0;
}

const cnr_observer *cnri_watch_script(cnri_call *call) {
    cnri_watch(call);
    call->watching.observer.event = clear_bar;
    return &call->watching.observer;
}

/* A file name as a word for an application, for cnri_free; "./" is put before a leading dash, which
 * would make it an option. */
static char *as_word(const char *path) {
    return cnri_format("%s%s", *path == '-' ? "./" : "", path);
}

cnr_status cnri_app_draw(const cnri_call *call, const char *name, const char *csv,
                         const char *picture, cnr_error *err) {
    char *words[] = {as_word(csv), as_word(picture), NULL};
    char *path = cnri_lua_app(name);
    const cnri_lua_rights rights = {.cancelled = NULL};
    cnri_lua_program *p = NULL;
    int code = 0;
    cnr_status status =
        !words[0] || !words[1] ? cnri_out_of_memory(err, name)
        : path                 ? cnri_lua_open(call->rt, path, 2, words, &rights, &p, err)
               : cnri_fail(err, CNR_E_NOT_FOUND, name, "is not among the installed applications");
    if (!status) status = cnri_lua_main(p, &code, err);
    if (!status && code) status = cnri_fail(err, CNR_E_SCRIPT, picture, "was not drawn");
    cnri_lua_close(p);
    cnri_free(words[0]);
    cnri_free(words[1]);
    cnri_free(path);
    return status;
}

cnr_status cnri_call_script(const cnri_call *call, const char *name, cnri_json *json,
                            const cnr_tensor *const *tensors, int32_t n_tensors, cnr_error *err) {
    cnr_script *script = NULL;
    cnri_json_end(json);
    cnr_status status = json->text.failed
                            ? cnri_out_of_memory(err, name)
                            : cnr_script_open(call->rt, name, call->model, &script, err);
    if (!status)
        status = cnr_script_call(script, json->text.at, tensors, n_tensors, NULL, NULL, err);
    cnr_script_close(script);
    cnri_text_free(&json->text);
    return status;
}
