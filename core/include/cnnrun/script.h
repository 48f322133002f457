/* Scripts that an application calls, such as the installed ones for detection and pruning. */
#ifndef CNNRUN_SCRIPT_H
#define CNNRUN_SCRIPT_H

#include <cnnrun/power.h>

CNR_BEGIN_EXPORTS

/* A Lua state whose script has run at top level. One thread at a time. */
typedef struct cnr_script cnr_script;
/* Opens a script. path: a file, or an installed script such as "calls/detect.lua". The script must
 * return a function. It may use all files and devices that the application may use. model (may be
 * NULL) is passed to the function as a net. It must live as long as the script, and the application
 * must not run it during a call. */
cnr_status cnr_script_open(cnr_runtime *rt, const char *path, cnr_model *model, cnr_script **out,
                           cnr_error *err);
/* Calls function(text, tell, net, tensors...). text may be NULL. The script gets copies of the
 * tensors, which must be dense and on the host. tell(text) calls the observer's event with
 * CNR_EVENT_SCRIPT and the text. *out (may be NULL): the text that the function returned, "" if
 * none, valid until the next call. The observer (may be NULL) gets the progress of long work; if it
 * stops the work, the call returns CNR_E_CANCELLED. */
cnr_status cnr_script_call(cnr_script *script, const char *text, const cnr_tensor *const *tensors,
                           int32_t n_tensors, const cnr_observer *observer, const char **out,
                           cnr_error *err);
/* Closes a script; NULL: nothing. Call it before cnr_close. */
void cnr_script_close(cnr_script *script);
/* Kind of an observer's event, like those in lab.h; `of` is the text. */
enum { CNR_EVENT_SCRIPT = 64 };

CNR_END_EXPORTS
#endif
