/* people: text for people and JSON, and what long work checks of files before it begins. */
#ifndef CNRI_PEOPLE_H
#define CNRI_PEOPLE_H

#include "base/base.h"

/* ---- say.c: text for people. Formats are printf's without %n. Text from %s or %c is escaped
 * and stays on one line; widths count characters. Functions return the bytes written, or -1 if
 * writing failed. Everything that a person reads is written by these (tests/rooms/text.t). ---- */
int cnri_say(FILE *to, const char *format, ...) CNRI_PRINTF(2, 3);
/* cnri_say with a va_list. Returns the bytes written; -1: writing failed. */
int cnri_sayv(FILE *to, const char *format, va_list args) CNRI_PRINTF(2, 0);
/* Writes a text of several lines, such as a table made with cnri_text_say: newlines and tabs stay,
 * other control bytes are escaped. Returns the bytes written; -1: writing failed. */
int cnri_say_lines(FILE *to, const char *text, size_t bytes);
/* Writes `head`, `text` and a newline. Further lines of the text are indented, so that none
 * looks like a message of its own. */
int cnri_say_message(FILE *to, const char *text, const char *head, ...) CNRI_PRINTF(3, 4);
/* Like cnri_say, but appends to a text; a lack of memory sets t->failed. */
void cnri_text_say(cnri_text *t, const char *format, ...) CNRI_PRINTF(2, 3);

/* ---- json.c ---- */
/* Adds `text` as a JSON string, quoted and escaped; invalid UTF-8 is replaced. */
void cnri_text_json(cnri_text *t, const char *text);
/* Adds ,"simulated":true to the JSON object being written if a plugin's clock is in force,
 * because times and joules are then those of a simulated machine. */
void cnri_text_simulated(cnri_text *t);

/* ---- nearby.c ---- */
/* For a path that is not there: something of nearly that name in its folder, or in the first folder
 * above that exists. False: there is none. */
bool cnri_nearest_path(const char *path, char *out, size_t capacity);

/* ---- paths.c ---- */
/* True if `path`, with links followed, is `given` or lies below it. Either need not exist yet. */
bool cnri_path_leads_below(const char *path, const char *given);
/* Checks before work begins that `path` can be written and that none of the words names the same
 * file. A word is also looked at in parts between ',', '=' and ':' ("images:LIST",
 * "net.cfg,net.weights"). */
cnr_status cnri_write_check(const char *path, const char *const *words, int32_t n, cnr_error *err);
/* Locks a folder among processes that call this, for files that are read, changed and written
 * again. *lock is for cnri_folder_unlock. Fails if it can't be opened, or is still locked after
 * five seconds. */
cnr_status cnri_folder_lock(const char *folder, int *lock, cnr_error *err);
/* Locks at once or not at all; false: another process has the lock, or the file system has none. */
bool cnri_folder_try(const char *folder, int *lock);
/* Gives up the lock of cnri_folder_lock, by closing its descriptor. */
void cnri_folder_unlock(int lock);

/* ---- ending.c: functions that signal handlers call before the process ends ---- */
/* Adds a function, which must be async-signal-safe. At most eight fit; false: all are taken. */
bool cnri_exit_hook_add(void (*fn)(void *arg), void *arg);
/* Removes every hook with this argument, so that it isn't called at exit. */
void cnri_exit_hook_remove(void *arg);
/* For those signal handlers: calls cnri_write_drop_all, then every added function. */
void cnri_exit_hooks_run(void);

/* ---- numbers.c ---- */
/* Parses a size such as "300", "20K", "1.5G" or "4GiB". */
bool cnri_parse_bytes(const char *text, uint64_t *out);
/* *out: most bytes of a cache folder: `given` unless it is 0, else those of MODEL_CACHE_MAXSIZE,
 * else 4 GiB. CNR_E_ARG: the variable is no size. */
cnr_status cnri_cache_limit(uint64_t given, uint64_t *out, cnr_error *err);
/* Fills a tensor with plausible numbers, the same every time; 0 in types other than f32. */
void cnri_fill_made_up(cnr_tensor *t);
/* Median of n values, which it sorts; 0 if n is 0. */
double cnri_median(double *values, int64_t n);

#endif
