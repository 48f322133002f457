/* base: errors, log, allocation, growable arrays, interned names, digests, files, clock. */
#ifndef CNRI_BASE_H
#define CNRI_BASE_H

#include <cnnrun/status.h>
#include <cnnrun/tensor.h>
#include <stdarg.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CNRI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define CNRI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- error.c: fills err (may be NULL), returns code ---- */
cnr_status cnri_fail(cnr_error *err, int32_t code, const char *where, const char *format, ...)
    CNRI_PRINTF(4, 5);
cnr_status cnri_failv(cnr_error *err, int32_t code, const char *where, const char *format,
                      va_list args) CNRI_PRINTF(4, 0);
cnr_status cnri_out_of_memory(cnr_error *err, const char *where);
/* The status of a plugin's hook: one that is none of ours becomes E_STATE, and one that came
 * without a text of its own gets "WHAT failed without saying why". */
cnr_status cnri_plugin_status(cnr_error *err, int32_t status, const char *where, const char *what);

/* Arguments that may not be NULL: "model", model, "out", out, NULL. CNR_E_INVALID names the first
 * that is. */
cnr_status cnri_require_arguments(cnr_error *err, const char *name, ...) __attribute__((sentinel));

/* ---- log.c: one process-wide sink; default is stderr at level WARN ---- */
typedef void (*cnri_log_fn)(void *arg, int32_t level, const char *who, const char *text);
void cnri_log_to(cnri_log_fn fn, void *arg, int32_t level);
void cnri_log(int32_t level, const char *who, const char *format, ...) CNRI_PRINTF(3, 4);
void cnri_logv(int32_t level, const char *who, const char *format, va_list args) CNRI_PRINTF(3, 0);

/* ---- alloc.c: every allocation of ours. 64-byte aligned; NULL when out of memory. A hostile test
 * sets the environment variable CNNRUN_FAIL_ALLOC=n (read once, CNRI_HOSTILE builds only) or calls
 * cnri_alloc_fail_at(n): the n-th allocation from now fails, and all after it. 0 turns it off.
 * CNNRUN_FAIL_ALLOC_ONCE=n and cnri_alloc_fail_once(n): only that one fails. ---- */
void *cnri_alloc(size_t bytes);
void *cnri_alloc_zero(size_t bytes);
void *cnri_alloc_optional(
    size_t bytes); /* untouched, in small pages; NULL is no failure: there is another way */
void *
cnri_alloc_sparse(size_t bytes); /* of which little may be touched: the rest costs no memory */
void *cnri_resize(void *block, size_t bytes); /* keeps contents; block NULL allocates */
void cnri_free(void *block);
char *cnri_strdup(const char *text);
char *cnri_format(const char *format, ...) CNRI_PRINTF(1, 2); /* NULL when out of memory */
void cnri_alloc_fail_at(int64_t n);
void cnri_alloc_fail_once(int64_t n);
/* Allocations that failed in this thread so far, those of plugins and scripts too. What came about
 * while the number grew is not whole, whatever the status says: someone on the way may have made do
 * without. So whoever answers for a piece of work asks for a verdict at its end. */
int64_t cnri_alloc_failures(void);
/* `status`; or CNR_E_MEMORY where one failed since there were `before`. */
cnr_status cnri_alloc_verdict(int64_t before, cnr_status status, const char *where, cnr_error *err);
int64_t cnri_alloc_count(void); /* allocations so far, for the hostile test */
/* a * b, or 0 with *overflow set */
static inline size_t cnri_mul(size_t a, size_t b, bool *overflow) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) {
        *overflow = true;
        return 0;
    }
    return r;
}

/* ---- budget.c: bounds of what data alone decides: activations, inputs, outputs, pictures ---- */
/* Three quarters of the machine's memory, or of what the process's control groups or its address
 * space leave it. */
uint64_t cnri_memory_share(void);
uint64_t cnri_memory_of_groups(const char *list, const char *mount); /* UINT64_MAX: no bound */
/* CNR_E_LIMIT, naming both figures, when `bytes` for `what` are more than `limit` (0: the
 * share). */
cnr_status cnri_memory_fits(uint64_t bytes, uint64_t limit, const char *where, const char *what,
                            cnr_error *err);

/* ---- vec: a growable array: struct { T *at; int32_t n, capacity; }.
 *     CNRI_VEC(cnr_value) values = {0};
 *     cnr_value *slot = cnri_push(&values);   NULL when out of memory; zeroed
 *     cnri_vec_free(&values); ---- */
#define CNRI_VEC(T) \
    struct { \
        T *at; \
        int32_t n, capacity; \
    }
#define cnri_push(v) \
    ((__typeof__((v)->at))cnri_vec_push((void **)&(v)->at, &(v)->n, &(v)->capacity, \
                                        sizeof *(v)->at))
#define cnri_vec_free(v) (cnri_free((v)->at), (v)->at = NULL, (v)->n = (v)->capacity = 0)
void *cnri_vec_push(void **at, int32_t *n, int32_t *capacity, size_t bytes);

/* ---- intern.c: thread-safe, process-wide, never freed until exit ---- */
cnr_id cnri_intern(const char *name); /* 0 when name is NULL, "" or memory is out */
const char *cnri_name(cnr_id id);     /* "" for 0 */

/* ---- map.c: string -> pointer; keys copied ---- */
typedef struct cnri_map {
    struct cnri_map_slot *slots;
    int32_t n, capacity;
} cnri_map;
void *cnri_map_get(const cnri_map *map, const char *key);
cnr_status cnri_map_set(cnri_map *map, const char *key, void *value); /* replaces */
/* The same for a key of `length` bytes that no NUL ends. */
void *cnri_map_get_n(const cnri_map *map, const char *key, size_t length);
cnr_status cnri_map_set_n(cnri_map *map, const char *key, size_t length, void *value);
void cnri_map_free(cnri_map *map);

/* ---- text.c ---- */
/* The first of `n` rows that begins with a pointer to this text (or is one); -1: none. */
#define CNRI_INDEX_OF(rows, n, text) cnri_index_of(rows, n, sizeof *(rows), text)
int32_t cnri_index_of(const void *rows, int32_t n, size_t bytes, const char *text);
/* Whether a list that ends with NULL, or is NULL, has the text. */
bool cnri_is_listed(const char *const *list, const char *text);
/* The candidate nearest to `word` by edit distance, if near enough to suggest; else NULL. */
const char *cnri_nearest_word(const char *word, const char *const *candidates, int32_t n);
/* `text` is as the pattern says, in which a star stands for anything. */
bool cnri_matches_pattern(const char *pattern, const char *text);
/* Locale-proof: '.' always. strtod/printf never touch numbers in files. */
bool cnri_parse_double(const char *text, const char **end, double *out);
int32_t cnri_print_double(char *buffer, size_t capacity,
                          double value);                              /* shortest that reads back */
int32_t cnri_print_float(char *buffer, size_t capacity, float value); /* likewise, as a float */
bool cnri_parse_int(const char *text, int64_t *out);                  /* whole string */
/* Seeds are whole numbers from 0 on, below 2^63. */
bool cnri_parse_seed(const char *text, uint64_t *out);
/* A growing string, always terminated. */
typedef struct cnri_text {
    char *at;
    size_t n, capacity;
    bool failed;
} cnri_text;
void cnri_text_add(cnri_text *t, const char *format, ...) CNRI_PRINTF(2, 3);
void cnri_text_json(cnri_text *t,
                    const char *text); /* quoted and escaped; invalid UTF-8 replaced */
/* Adds ,"simulated":true to the JSON object being written while a plugin's clock is in force: its
 * times and joules are a made-up machine's. */
void cnri_text_simulated(cnri_text *t);
void cnri_text_bytes(cnri_text *t, const char *bytes, size_t n);
void cnri_text_free(cnri_text *t);
/* Length of the well-formed UTF-8 sequence (RFC 3629) that begins the n bytes at s, and its code
 * point; 0 when it is not one. */
int cnri_utf8(const char *s, size_t n, uint32_t *code);

/* ---- say.c: text for people. printf's formats but %n; whatever comes in by %s or %c is shown on
 * one line, escaped, and widths count characters. Returns the bytes told, -1 when they could not be
 * written. Everything that a person reads is written by these (tests/rooms/text.t). ---- */
int cnri_say(FILE *to, const char *format, ...) CNRI_PRINTF(2, 3);
int cnri_sayv(FILE *to, const char *format, va_list args) CNRI_PRINTF(2, 0);
/* A text of several lines, such as a table made with cnri_text_say: newlines and tabs stay. */
int cnri_say_lines(FILE *to, const char *text, size_t bytes);
/* `head`, `text` and a newline; further lines of the text are indented, so that none of them looks
 * like a message of its own. */
int cnri_say_message(FILE *to, const char *text, const char *head, ...) CNRI_PRINTF(3, 4);
void cnri_text_say(cnri_text *t, const char *format, ...) CNRI_PRINTF(2, 3);
/* What a terminal would obey instead of showing it. */
bool cnri_is_unprintable(uint32_t code);

/* ---- element.c: elements of dense data of any type, as numbers ---- */
/* As elements_read and elements_write of the host table say. False: no such type. */
bool cnri_elements_read(int32_t dtype, const void *data, int64_t first, int64_t stride, int64_t n,
                        int32_t as, void *out);
bool cnri_elements_write(int32_t dtype, void *data, int64_t first, int64_t n, int32_t as,
                         const void *in);
double cnri_element(int32_t dtype, const void *data, int64_t i); /* NaN: no such type */
/* Cut to what the type holds. False: no such type. */
bool cnri_element_set(int32_t dtype, void *data, int64_t i, double value);

/* tensor.c: NULL, or what is wrong with a tensor that somebody hands over: its type, rank or
 * sizes. */
const char *cnri_tensor_fault(const cnr_tensor *t);
/* True if no product of known dimensions overflows: products of some of them are safe then,
 * whatever the unknown ones will be, and if one is 0. */
bool cnri_dims_fit(const cnr_tensor *t);
/* CNR_E_INVALID for a tensor with such a fault, or one whose `bytes` are too few for its shape. */
cnr_status cnri_tensor_check(const cnr_tensor *t, const char *where, cnr_error *err);

/* ---- sha256.c ---- */
typedef struct cnri_sha256 {
    uint32_t h[8];
    uint64_t n;
    uint8_t block[64];
} cnri_sha256;
void cnri_sha256_begin(cnri_sha256 *s);
void cnri_sha256_add(cnri_sha256 *s, const void *data, uint64_t bytes);
void cnri_sha256_end(cnri_sha256 *s, uint8_t digest[32]);
void cnri_sha256_of(const void *data, uint64_t bytes, uint8_t digest[32]);
/* digests.c: of many blocks, on at most so many threads (0: as many as there are processors) */
typedef struct cnri_digest {
    const void *data;
    uint64_t bytes;
    uint8_t sum[32];
    bool releases; /* of a mapped file, whose pages are not to stay in memory */
} cnri_digest;
/* Gives pages of a mapped file back; they are read again when they are wanted again. The last one
 * stays, in which something else begins. */
void cnri_release_pages(const void *data, uint64_t bytes);
void cnri_digests(cnri_digest *list, int32_t n, int32_t threads);
/* Instead of digests the fingerprints of their pieces' fingerprints, 16 bytes. False: no memory. */
bool cnri_fingerprints(cnri_digest *list, int32_t n, int32_t threads);
void cnri_hex(const uint8_t *data, size_t bytes, char *out /* 2 * bytes + 1 */);
/* fingerprint.c: fast and not secret: tells weights, blobs and files apart */
void cnri_fingerprint(const void *data, uint64_t bytes, uint8_t out[16]);
bool cnri_same_fingerprint(const void *data, uint64_t bytes, const uint8_t print[16]);

/* ---- read.c: regular files only; pipes and devices are refused, never waited for ---- */
struct stat;
int cnri_open_file(const char *path, struct stat *info, cnr_error *err); /* -1: not opened */
typedef struct cnri_mapping {
    void *at;
    uint64_t bytes;
    bool copied;
} cnri_mapping;
/* Read-only: mapped when nobody but us (and root) may write the file, else copied, since cutting a
 * mapped file short kills whoever reads on. */
cnr_status cnri_map_file(const char *path, cnri_mapping *out, cnr_error *err);
void cnri_unmap_file(cnri_mapping *m);
/* The whole file, NUL added past its end; at most `limit` bytes. Release with cnri_free. */
cnr_status cnri_read_file(const char *path, uint64_t limit, char **out, size_t *bytes,
                          cnr_error *err);
/* The first bytes, at most `capacity`. */
cnr_status cnri_read_head(const char *path, void *out, size_t capacity, size_t *bytes,
                          cnr_error *err);
/* What was kept between runs is believed (blobs go to kernels as they are), so this is the one rule
 * for all of it: file and folder are ours or root's, nobody else may write them, and neither is a
 * symbolic link. CNR_E_STATE tells which. */
cnr_status cnri_map_kept(const char *path, cnri_mapping *out, cnr_error *err);
cnr_status cnri_read_kept(const char *path, uint64_t limit, char **out, size_t *bytes,
                          cnr_error *err);
cnr_status cnri_kept_check(const char *folder, cnr_error *err); /* the folder's half of it */

/* ---- kept.c: what plugins keep, in a folder; NULL: CNNRUN_CACHE, else ~/.cache/cnnrun ---- */
char *cnri_kept_folder(cnr_error *err); /* what NULL stands for: cnri_free; NULL with err */
/* Makes a folder of that sort, with those above it, and checks it. */
cnr_status cnri_kept_create(const char *folder, cnr_error *err);
/* *data by cnri_alloc, a NUL behind it. CNR_E_NOT_FOUND: there is none. */
cnr_status cnri_kept_load(const char *folder, const char *name, uint64_t limit, void **data,
                          uint64_t *bytes, cnr_error *err);
cnr_status cnri_kept_save(const char *folder, const char *name, const void *data, uint64_t bytes,
                          cnr_error *err);

/* ---- path.c ---- */
char *cnri_path_join(const char *directory, const char *name);
char *cnri_path_dir(const char *path); /* "." when there is none */
char *cnri_executable_dir(void);
/* Folder of the shared library that this code is in; NULL: it is in the program itself. */
char *cnri_library_dir(void);
/* Is `name` a relative path that, links apart, stays below where it begins? */
bool cnri_path_is_inside(const char *name);
/* With links followed, `path` is `given` or lies below it; either may be yet to be made. */
bool cnri_path_leads_below(const char *path, const char *given);
/* A file that another one, `from`, names. Links are followed, and lead to a file in the folder of
 * `from`, or in the one that `from` itself is a link into and of the same owner (caches of
 * downloads are made of such links). *out: where that is; cnri_free. CNR_E_FORMAT: it leads out. */
cnr_status cnri_path_beside(const char *from, const char *name, char **out, cnr_error *err);
/* "PATH: what: " and what errno says, with the status that goes with it. (error.c) */
cnr_status cnri_fail_errno(cnr_error *err, const char *path, const char *what);

/* ---- output.c: the one way in which files are written ----
 *     cnri_writer w;
 *     cnr_status status = cnri_write_begin(&w, path, 0, err);   a temporary beside the target
 *     if (!status) status = cnri_write(&w, data, bytes, err);   or through w.file
 *     if (!status) return cnri_write_commit(&w, err);           synced, renamed, the folder synced
 *     cnri_write_abandon(&w);                                   after an error: removed
 *
 * A target that is there keeps its mode, owner and group, or is refused. Of a symbolic link the
 * file that it leads to is replaced. "-", folders, devices and pipes are refused. The temporary is
 * "FOLDER/.NAME.SLOT.cnnrun-tmp" and locked; one that nobody holds the lock of was left behind by a
 * process that was killed, and is removed when that target is next written. */
#define CNRI_TEMPORARY_SUFFIX ".cnnrun-tmp"
/* Kept between runs for ourselves: mode 0600; replaces whatever has the name, a link itself too. */
enum { CNRI_WRITE_PRIVATE = 1 };
typedef struct cnri_writer {
    FILE *file;
    char *path;   /* as asked for; messages name it */
    char *target; /* with links followed */
    char *temporary;
} cnri_writer;
cnr_status cnri_write_begin(cnri_writer *w, const char *path, uint32_t flags, cnr_error *err);
cnr_status cnri_write(cnri_writer *w, const void *data, uint64_t bytes, cnr_error *err);
cnr_status cnri_write_seek(cnri_writer *w, uint64_t offset, cnr_error *err);
cnr_status cnri_write_commit(cnri_writer *w, cnr_error *err);
void cnri_write_abandon(cnri_writer *w);
/* Before work begins: `path` can be written, and none of the words names the same file, itself or
 * in a part between ',', '=' and ':' ("images:LIST", "net.cfg,net.weights"). */
cnr_status cnri_write_check(const char *path, const char *const *words, int32_t n, cnr_error *err);
/* Removes a temporary that nobody is writing; true: it is not there any more. */
bool cnri_write_remove_temporary(const char *temporary);
/* Nobody else who asks for it has the folder until cnri_folder_unlock: for files that are read,
 * changed and written again. Waits for five seconds at most. */
cnr_status cnri_folder_lock(const char *folder, int *lock, cnr_error *err);
bool cnri_folder_try(const char *folder,
                     int *lock); /* at once; false: somebody has it, or none can */
void cnri_folder_unlock(int lock);
/* For signal handlers of a process that is about to end: removes what it was writing. */
void cnri_write_drop_all(void);
/* From now on what this process writes goes nowhere, though all calls succeed: another process of
 * its job writes the same. */
void cnri_write_to_nowhere(void);

/* ---- ending.c: what else is to be undone when a signal ends the process ---- */
/* `fn` only does what signal handlers may. At most eight; false: there is no slot left. */
bool cnri_exit_hook_add(void (*fn)(void *arg), void *arg);
void cnri_exit_hook_remove(void *arg);
/* For such handlers: cnri_write_drop_all, and what was added. */
void cnri_exit_hooks_run(void);

/* ---- activity.c: what a plugin's code is called for, so that a signal handler can name it ---- */
typedef struct cnri_activity {
    const char *verb;                 /* "running kernel" */
    const void *descriptor;           /* whose plugin it is */
    const char *name, *node, *device; /* of the kernel or operator; NULL: none */
    const struct cnri_activity *outer;
} cnri_activity;
/* From begin to end, on one thread and in one function. */
void cnri_activity_begin(cnri_activity *a);
void cnri_activity_end(const cnri_activity *a);
/* For signal handlers: this thread's, NULL: none; that of any thread, which may be over already. */
const cnri_activity *cnri_activity_of_thread(void);
const cnri_activity *cnri_activity_latest(void);
/* The activities of one thread, for another that waits for it. */
typedef struct cnri_watched {
    pthread_mutex_t lock;
    const cnri_activity *now; /* NULL: no plugin's code */
    uint64_t count;           /* of activities that began or ended */
    bool given_up;            /* the thread stays in its call */
} cnri_watched;
void cnri_activity_watch(cnri_watched *watched); /* this thread's, from now on */
bool cnri_activity_is_watched(void);             /* of this thread */
/* Whether one began or ended since it had that count, which is then the new one. */
bool cnri_activity_moved(cnri_watched *watched, uint64_t *count);
/* Unless it has moved since: the thread never returns from the call that it is in. Who that is. */
typedef struct cnri_hung {
    char verb[64], name[128], node[128], device[128];
} cnri_hung;
bool cnri_activity_give_up(cnri_watched *watched, uint64_t count, cnri_hung *call);
bool cnri_activity_now(cnri_watched *watched, uint64_t count, cnri_hung *call); /* who, alone */
/* `status = call` as the activity. */
#define CNRI_DURING(status, call, ...) \
    do { \
        cnri_activity during_ = {__VA_ARGS__}; \
        cnri_activity_begin(&during_); \
        (status) = (call); \
        cnri_activity_end(&during_); \
    } while (0)

/* ---- clock.c ---- */
uint64_t cnri_now_ns(void);  /* monotonic; by the clock in force, which may be a plugin's */
uint64_t cnri_real_ns(void); /* by the machine's: for budgets, and for who waits at a terminal */
void cnri_wait_until(uint64_t ns); /* by the clock in force */
typedef struct cnri_clock {
    uint64_t (*now_ns)(void);
    void (*wait_until)(uint64_t ns);
    const void *descriptor; /* of the plugin that brought it */
} cnri_clock;
/* No plugin's is in force: time passes by itself, and threads may wait for it. */
bool cnri_clock_is_real(void);
const void *cnri_clock_descriptor(void); /* of the clock in force; NULL: the machine's */
/* Puts one in force that is the process's until someone else does or it leaves. */
void cnri_clock_use(const cnri_clock *clock);
void cnri_clock_leave(const cnri_clock *clock); /* the machine's again, if it is in force */
double cnri_median(double *values, int64_t n);  /* sorts them; 0 of none */

#endif
