/* Scripts that an application calls: detection and pruning are among those that are installed. */
#ifndef CNNRUN_SCRIPT_H
#define CNNRUN_SCRIPT_H

#include <cnnrun/power.h>

CNR_BEGIN_EXPORTS

/* A Lua state with a script whose top level has run; one thread at a time. */
typedef struct cnr_script cnr_script;
/* path: a file, or one of the installed scripts, such as "calls/detect.lua". The script must return
 * a function. It may use all files and devices that the application may use. model (may be NULL):
 * the function gets it as a net; it must live as long as the script, and the application must not
 * run it while a call lasts. */
cnr_status cnr_script_open(cnr_runtime *rt, const char *path, cnr_model *model, cnr_script **out,
                           cnr_error *err);
/* Calls function(text, tell, net, tensors...). text may be NULL; the script gets copies of tensors,
 * which are dense and on the host. tell(text) calls the observer's event with CNR_EVENT_SCRIPT and
 * the text. *out (may be NULL): the text that the function returned, "" if none, valid until the
 * next call. The observer (may be NULL) hears of long work inside; what stops it makes the call
 * CNR_E_CANCELLED. */
cnr_status cnr_script_call(cnr_script *script, const char *text, const cnr_tensor *const *tensors,
                           int32_t n_tensors, const cnr_observer *observer, const char **out,
                           cnr_error *err);
void cnr_script_close(cnr_script *script); /* before cnr_close; NULL: nothing */
/* The kind of an observer's event (see lab.h); `of` is the text. */
enum { CNR_EVENT_SCRIPT = 64 };

CNR_END_EXPORTS
#endif
