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

/* Lets the compiler check a format (argument f) against its arguments (from argument a on) */
#define CNRI_PRINTF(f, a) __attribute__((format(printf, f, a)))
/* Number of elements of an array. */
#define CNRI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- error.c: fills err (may be NULL), returns code ---- */
/* Fills err with the formatted message; returns code. err NULL: only returns it. */
cnr_status cnri_fail(cnr_error *err, int32_t code, const char *where, const char *format, ...)
    CNRI_PRINTF(4, 5);
/* Fills err (may be NULL) with code, place and formatted text; returns the code. */
cnr_status cnri_failv(cnr_error *err, int32_t code, const char *where, const char *format,
                      va_list args) CNRI_PRINTF(4, 0);
/* Fills err (may be NULL) with "out of memory"; returns CNR_E_MEMORY. */
cnr_status cnri_out_of_memory(cnr_error *err, const char *where);
/* Checks the status that a plugin's hook returned. A number that is no cnr_status becomes
 * CNR_E_STATE. An error without a text gets "WHAT failed without saying why". */
cnr_status cnri_plugin_status(cnr_error *err, int32_t status, const char *where, const char *what);

/* Checks arguments that may not be NULL, given as pairs: "model", model, "out", out, NULL.
 * CNR_E_ARG names the first that is NULL. */
cnr_status cnri_require_arguments(cnr_error *err, const char *name, ...) __attribute__((sentinel));

/* ---- log.c: one process-wide sink; default is stderr at level WARN ---- */
typedef void (*cnri_log_fn)(void *arg, int32_t level, const char *who, const char *text);
/* Messages of this level or more urgent ones go to fn from now on; fn NULL: to standard error. */
void cnri_log_to(cnri_log_fn fn, void *arg, int32_t level);
/* Passes on a formatted message (at most 4095 bytes) if its level is wanted. who: a plugin or
 * part, or NULL. */
void cnri_log(int32_t level, const char *who, const char *format, ...) CNRI_PRINTF(3, 4);
/* cnri_log with a va_list; texts over 4095 bytes are cut */
void cnri_logv(int32_t level, const char *who, const char *format, va_list args) CNRI_PRINTF(3, 0);

/* ---- alloc.c: every allocation of cnnrun. Blocks are 64-byte aligned; NULL means out of
 * memory. A hostile test sets the environment variable CNNRUN_FAIL_ALLOC=n (read once,
 * CNRI_HOSTILE builds only) or calls cnri_alloc_fail_at(n): the n-th allocation from now fails,
 * and all after it. 0 turns it off. With CNNRUN_FAIL_ALLOC_ONCE=n or cnri_alloc_fail_once(n)
 * only that one fails. ---- */
/* A block aligned to 64 bytes at least; NULL: out of memory. */
void *cnri_alloc(size_t bytes);
/* cnri_alloc of memory that is all zero. NULL: out of memory. */
void *cnri_alloc_zero(size_t bytes);
/* Allocates memory that the caller can do without: NULL does not count as a failed allocation.
 * Its pages are small and not touched yet. */
void *cnri_alloc_optional(size_t bytes);
/* Allocates a large block for cnri_free; untouched pages take no memory. NULL: out of memory. */
void *cnri_alloc_sparse(size_t bytes);
/* Changes a block's size and keeps its contents; block NULL allocates one. */
void *cnri_resize(void *block, size_t bytes);
void cnri_free(void *block); /* frees a block of cnri_alloc; NULL: nothing */
/* A copy of the text, for cnri_free. NULL: text is NULL, or out of memory. */
char *cnri_strdup(const char *text);
/* A formatted text, to be freed; NULL: out of memory. */
char *cnri_format(const char *format, ...) CNRI_PRINTF(1, 2);
/* For tests: the n-th allocation from now on and all later ones fail; 0: none fails any more. */
void cnri_alloc_fail_at(int64_t n);
/* For tests: only the n-th allocation from now on fails. */
void cnri_alloc_fail_once(int64_t n);
/* The number of allocations that failed in this thread so far, those of plugins and scripts
 * included. A result made while the number grew may be incomplete even if its status is CNR_OK,
 * because some code may have gone on without the memory. Check with cnri_alloc_verdict at the
 * end of a piece of work. */
int64_t cnri_alloc_failures(void);
/* CNR_E_MEMORY if an allocation failed since cnri_alloc_failures gave `before`, else `status`. */
cnr_status cnri_alloc_verdict(int64_t before, cnr_status status, const char *where, cnr_error *err);
int64_t cnri_alloc_count(void); /* the number of allocations so far, for the hostile test */
/* Returns a * b. On overflow it returns 0 and sets *overflow. */
static inline size_t cnri_mul(size_t a, size_t b, bool *overflow) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) {
        *overflow = true;
        return 0;
    }
    return r;
}

/* ---- budget.c: memory limits for sizes that data decides: activations, inputs, outputs,
 * pictures ---- */
/* Returns the memory limit that holds by default, in bytes: three quarters of the machine's
 * memory, or of the least limit of the process's control groups and address space. */
uint64_t cnri_memory_share(void);
/* The memory limit of the control groups that `list` (as /proc/self/cgroup) names, below the
 * folder `mount`. Bytes; UINT64_MAX: there is no limit. */
uint64_t cnri_memory_of_groups(const char *list, const char *mount);
/* Fails with CNR_E_LIMIT, naming both figures, if `bytes` for `what` exceed `limit` (0:
 * cnri_memory_share). */
cnr_status cnri_memory_fits(uint64_t bytes, uint64_t limit, const char *where, const char *what,
                            cnr_error *err);

/* ---- vec: a growable array: struct { T *at; int32_t n, capacity; }.
 *     CNRI_VEC(cnr_value) values = {0};
 *     cnr_value *slot = cnri_push(&values);   NULL when out of memory; zeroed
 *     cnri_vec_free(&values); ---- */
/* A growable array of T. */
#define CNRI_VEC(T) \
    struct { \
        T *at; \
        int32_t n, capacity; \
    }
/* Appends a zeroed element and returns its address, valid until the next push. NULL: no memory. */
#define cnri_push(v) \
    ((__typeof__((v)->at))cnri_vec_push((void **)&(v)->at, &(v)->n, &(v)->capacity, \
                                        sizeof *(v)->at))
/* Frees the elements and leaves an empty vector. */
#define cnri_vec_free(v) (cnri_free((v)->at), (v)->at = NULL, (v)->n = (v)->capacity = 0)
/* What cnri_push calls with an element's size in bytes: makes room in *at, which moves, and returns
 * the new, zeroed element. NULL: out of memory. */
void *cnri_vec_push(void **at, int32_t *n, int32_t *capacity, size_t bytes);

/* ---- intern.c: names as numbers; thread-safe, process-wide, never freed until exit ---- */
/* The id of a name, the same for equal names; 0 if name is NULL or "", or memory is out. */
cnr_id cnri_intern(const char *name);
/* The name of an id; "" if id is 0. */
const char *cnri_name(cnr_id id);

/* ---- map.c: string -> pointer; keys copied ---- */
/* A map from strings to pointers. */
typedef struct cnri_map {
    struct cnri_map_slot *slots;
    int32_t n, capacity;
} cnri_map;
/* The value of a key. NULL: it is not in the map. */
void *cnri_map_get(const cnri_map *map, const char *key);
/* Sets the value of a key, which is copied; replaces an earlier value, without freeing it. */
cnr_status cnri_map_set(cnri_map *map, const char *key, void *value);
/* The key's value, where the key has `length` bytes and need not end in NUL; NULL: it is not in the
 * map. */
void *cnri_map_get_n(const cnri_map *map, const char *key, size_t length);
/* Sets a key of `length` bytes that need no end mark; the map keeps a copy of the key. */
cnr_status cnri_map_set_n(cnri_map *map, const char *key, size_t length, void *value);
void cnri_map_free(cnri_map *map); /* frees keys and slots, not the values; the map becomes empty */

/* ---- text.c ---- */
/* Index of the first of `n` rows that equals `text`; a row is a pointer to text, or a struct
 * that begins with one. -1: there is none. */
#define CNRI_INDEX_OF(rows, n, text) cnri_index_of(rows, n, sizeof *(rows), text)
/* Index of the row (`bytes` long) whose first member, a `const char *`, equals text; -1: none. */
int32_t cnri_index_of(const void *rows, int32_t n, size_t bytes, const char *text);
/* True if `text` is in the list, which ends with NULL. A NULL list is empty. */
bool cnri_is_listed(const char *const *list, const char *text);
/* The candidate nearest to `word` by edit distance, if near enough to suggest; else NULL. */
const char *cnri_nearest_word(const char *word, const char *const *candidates, int32_t n);

/* True if `text` matches `pattern`, in which * stands for any characters. */
bool cnri_matches_pattern(const char *pattern, const char *text);
/* Reads and writes numbers with '.' in every locale. Files are never read with strtod or written
 * with printf. False: it failed. */
bool cnri_parse_double(const char *text, const char **end, double *out);
/* shortest text that reads back; returns its length */
int32_t cnri_print_double(char *buffer, size_t capacity, double value);
/* Prints the shortest text that reads back as the same float; returns its length in bytes. */
int32_t cnri_print_float(char *buffer, size_t capacity, float value);
/* Reads a whole number that must be all of the text; false: it is none. */
bool cnri_parse_int(const char *text, int64_t *out);
/* Reads a whole number from 0 on, below 2^63, that is the whole text; false: it is none. */
bool cnri_parse_seed(const char *text, uint64_t *out);
/* A growing string that always ends with a NUL. `failed`: memory was out, and text is missing. */
typedef struct cnri_text {
    char *at;
    size_t n, capacity;
    bool failed;
} cnri_text;
/* Appends formatted text, with numbers as in the C locale. Sets t->failed when out of memory. */
void cnri_text_add(cnri_text *t, const char *format, ...) CNRI_PRINTF(2, 3);
/* appends n bytes; t->failed: no memory */
void cnri_text_bytes(cnri_text *t, const char *bytes, size_t n);
void cnri_text_free(cnri_text *t); /* frees the bytes; t is empty and usable again */
/* Returns the length of the well-formed UTF-8 sequence (RFC 3629) at s, which has n bytes, and
 * its code point in *code. 0: it is malformed. */
int cnri_utf8(const char *s, size_t n, uint32_t *code);

/* ---- say.c: text of others is shown, never obeyed: control characters, what turns the direction
 * of writing, separators of lines and bytes that are no UTF-8 are spelled out. ---- */
typedef struct cnri_sink { /* writes to `file` through a buffer, or to `text` */
    FILE *file;
    cnri_text *text;
    char at[1024];
    size_t n;
    int64_t written; /* bytes that were put so far */
    bool failed;
} cnri_sink;
void cnri_sink_put(cnri_sink *s, const char *bytes, size_t n); /* writes n bytes as they are */
/* writes a text escaped, on one line */
void cnri_sink_text(cnri_sink *s, const char *text, size_t n);
/* Keeps newlines and tabs. Lines after the first get `indent`, unless they are indented. */
void cnri_sink_lines(cnri_sink *s, const char *text, size_t n, const char *indent);
int cnri_sink_end(cnri_sink *s); /* flushes; returns the bytes written, -1: writing failed */
/* Writes one character at `from` as it is shown; returns its bytes. *used: its bytes in `from`. */
size_t cnri_shown(const char *from, size_t n, char shown[12], size_t *used);
/* True for a character that a terminal would act on instead of showing it. */
bool cnri_is_unprintable(uint32_t code);

/* ---- element.c: elements of dense data of any type, as numbers ---- */
/* Type of that name; CNR_DTYPE_NONE: there is none. */
int32_t cnri_dtype_of(const char *name);
/* Reads n elements of type `dtype`, `stride` apart, as the type `as`, like elements_read of the
 * host table. False: there is no such dtype. */
bool cnri_elements_read(int32_t dtype, const void *data, int64_t first, int64_t stride, int64_t n,
                        int32_t as, void *out);
/* Writes n numbers of type `as` (CNR_f64, CNR_i64 or CNR_u64; not checked) to elements first,
 * first + 1 ..., converted like elements_write of the host table. False: there is no such dtype. */
bool cnri_elements_write(int32_t dtype, void *data, int64_t first, int64_t n, int32_t as,
                         const void *in);
/* Element i as a number; NaN: there is no such type. */
double cnri_element(int32_t dtype, const void *data, int64_t i);
/* Stores a number as element i, limited to the range of the type. False: there is no such type. */
bool cnri_element_set(int32_t dtype, void *data, int64_t i, double value);

/* tensor.c: returns NULL, or a text that says what is wrong with the type, rank or sizes of a
 * caller's tensor. */
const char *cnri_tensor_fault(const cnr_tensor *t);
/* True if no product of any of the known dimensions overflows, whatever the unknown ones become. */
bool cnri_dims_fit(const cnr_tensor *t);
/* CNR_E_ARG if the tensor has such a fault, or its `bytes` are too few for its shape. */
cnr_status cnri_tensor_check(const cnr_tensor *t, const char *where, cnr_error *err);

/* ---- sha256.c ---- */
/* State of a SHA-256 digest. */
typedef struct cnri_sha256 {
    uint32_t h[8];
    uint64_t n;
    uint8_t block[64];
} cnri_sha256;
/* Starts a SHA-256 digest. */
void cnri_sha256_begin(cnri_sha256 *s);
/* Adds bytes to a digest. */
void cnri_sha256_add(cnri_sha256 *s, const void *data, uint64_t bytes);
/* Ends a digest and writes its 32 bytes; the state can't be added to afterwards. */
void cnri_sha256_end(cnri_sha256 *s, uint8_t digest[32]);
/* Computes the SHA-256 digest of one block of memory. */
void cnri_sha256_of(const void *data, uint64_t bytes, uint8_t digest[32]);
/* digests.c: SHA-256 of many blocks, on at most `threads` threads (0: one for each processor). */
typedef struct cnri_digest {
    const void *data;
    uint64_t bytes;
    uint8_t sum[32];
    bool releases; /* of a mapped file, whose pages are not to stay in memory */
} cnri_digest;
/* Gives pages of a mapped file back; they are read again when they are wanted again. The last one
 * stays, in which something else begins. */
void cnri_release_pages(const void *data, uint64_t bytes);
/* Computes the SHA-256 digest of each block of the list on up to `threads` threads (0: one for
 * each processor) */
void cnri_digests(cnri_digest *list, int32_t n, int32_t threads);
/* Fingerprints of many blocks, 16 bytes each in `sum`: of the fingerprints of each block's
 * pieces. False: out of memory. */
bool cnri_fingerprints(cnri_digest *list, int32_t n, int32_t threads);
void cnri_hex(const uint8_t *data, size_t bytes, char *out /* writes 2 * bytes digits and a NUL */);
/* fingerprint.c: a fast, not cryptographic hash; tells weights, blobs and files apart */
void cnri_fingerprint(const void *data, uint64_t bytes, uint8_t out[16]);
/* True if the data has this fingerprint. */
bool cnri_same_fingerprint(const void *data, uint64_t bytes, const uint8_t print[16]);

/* ---- read.c: reads regular files only; pipes and devices are refused at once ---- */
struct stat;
/* Opens a regular file to read, and describes it in *info. Returns its descriptor, for close(); -1
 * with err: not opened. */
int cnri_open_file(const char *path, struct stat *info, cnr_error *err);
/* A file in memory: mapped, or copied where it can't be mapped. */
typedef struct cnri_mapping {
    void *at;
    uint64_t bytes;
    bool copied;
} cnri_mapping;
/* Opens a file read-only. It is mapped if only this user and root may write it. Else it is
 * copied, because a mapped file that someone cuts short kills the process that reads it. */
cnr_status cnri_map_file(const char *path, cnri_mapping *out, cnr_error *err);
/* Releases the mapping or copy and clears *m. */
void cnri_unmap_file(cnri_mapping *m);
/* Reads a whole file of at most `limit` bytes and adds a NUL. Release *out with cnri_free. */
cnr_status cnri_read_file(const char *path, uint64_t limit, char **out, size_t *bytes,
                          cnr_error *err);
/* Reads the first bytes of a file, at most `capacity`. */
cnr_status cnri_read_head(const char *path, void *out, size_t capacity, size_t *bytes,
                          cnr_error *err);
/* Maps a file that cnnrun keeps between runs. Its data goes to kernels unchecked, so one rule
 * holds for all such files: file and folder belong to this user or root, nobody else may write
 * them, and neither is a symbolic link. CNR_E_STATE says which rule is broken. */
cnr_status cnri_map_kept(const char *path, cnri_mapping *out, cnr_error *err);
/* Reads such a file, of `limit` bytes at most, into *out, which the caller frees with cnri_free;
 * the rule is the same. */
cnr_status cnri_read_kept(const char *path, uint64_t limit, char **out, size_t *bytes,
                          cnr_error *err);
/* fails unless others cannot write the folder */
cnr_status cnri_kept_check(const char *folder, cnr_error *err);

/* ---- kept.c: files that plugins keep between runs. Folder NULL: CNNRUN_CACHE, else
 * $XDG_CACHE_HOME/cnnrun, else ~/.cache/cnnrun ---- */
/* True if MODEL_CACHE_DISABLE forbids to store or to take plans and measured times. */
bool cnri_kept_disabled(void);
/* That folder for plans, if nobody names another; free it with cnri_free. NULL: none may be stored,
 * since CNNRUN_CACHE is empty or MODEL_CACHE_DISABLE is set, or there is no such folder. */
char *cnri_kept_plans(void);
/* The path that folder NULL stands for; free it with cnri_free. NULL: it failed, see err. */
char *cnri_kept_folder(cnr_error *err);
/* Makes such a folder, and those above it, and checks who may write it. */
cnr_status cnri_kept_create(const char *folder, cnr_error *err);
/* Loads a kept file; free *data with cnri_free. A NUL follows the bytes. CNR_E_NOT_FOUND: there
 * is no such file. */
cnr_status cnri_kept_load(const char *folder, const char *name, uint64_t limit, void **data,
                          uint64_t *bytes, cnr_error *err);
/* Writes a file that cnri_kept_read reads, with its length and digest; replaces an older one. */
cnr_status cnri_kept_save(const char *folder, const char *name, const void *data, uint64_t bytes,
                          cnr_error *err);

/* ---- path.c ---- */
/* Joins two paths; an absolute `name` is copied. Free it with cnri_free; NULL: out of memory. */
char *cnri_path_join(const char *directory, const char *name);
/* Folder part of a path, "." if it has none. Free it with cnri_free; NULL: out of memory. */
char *cnri_path_dir(const char *path);
/* Folder of the running executable, to be freed with cnri_free; NULL: unknown or out of memory. */
char *cnri_executable_dir(void);
/* Folder of the shared library that contains this code, to be freed with cnri_free; NULL: the
 * program contains it, or out of memory. */
char *cnri_library_dir(void);
/* True if `name` is a relative path that stays below its start. Links are not followed. */
bool cnri_path_is_inside(const char *name);
/* True if `path` is `folder` or lies below it; both have no links left. */
bool cnri_path_real_below(const char *path, const char *folder);
/* Finds the file `name` that another file, `from`, refers to. With links followed, it must lie
 * in the folder of `from`, or in the folder that `from` is a link into, and then have the same
 * owner (download caches are made of such links). Folders below those count too. *out is the path
 * without links, for cnri_free; NULL after a failure. CNR_E_FORMAT: the file lies elsewhere, or
 * the name is absolute or has a "..". A missing file fails as cnri_fail_errno does. */
cnr_status cnri_path_beside(const char *from, const char *name, char **out, cnr_error *err);
/* Fails with "PATH: what: " and the text of errno, and the status that fits errno. (error.c) */
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
/* For files that cnnrun keeps for itself between runs: mode 0600; replaces whatever has the
 * name, even a symbolic link. */
enum { CNRI_WRITE_PRIVATE = 1 };
/* For files that can be made again and tell by themselves whether they are whole: not synced. */
enum { CNRI_WRITE_UNSYNCED = 2 };
/* A file that is written beside its place and renamed when it is complete. */
typedef struct cnri_writer {
    FILE *file;
    char *path;   /* as the caller gave it; used in messages */
    char *target; /* the path with links followed */
    bool unsynced;
    int listed; /* row, from 1, of the list that a signal handler removes files by; 0: none */
    char *temporary;
} cnri_writer;
/* Opens a temporary file beside `path`; an older file stays until cnri_write_commit. Nothing has
 * to be freed on failure. */
cnr_status cnri_write_begin(cnri_writer *w, const char *path, uint32_t flags, cnr_error *err);
/* Writes bytes at the current position. CNR_E_IO, with the path: not all were written. */
cnr_status cnri_write(cnri_writer *w, const void *data, uint64_t bytes, cnr_error *err);
/* Moves to a byte offset from the start. */
cnr_status cnri_write_seek(cnri_writer *w, uint64_t offset, cnr_error *err);
/* Flushes, renames the file into place and frees the writer, also on failure. */
cnr_status cnri_write_commit(cnri_writer *w, cnr_error *err);
/* Removes the temporary file and frees the writer. */
void cnri_write_abandon(cnri_writer *w);
/* Removes a temporary file that no process is writing. True: it is gone. */
bool cnri_write_remove_temporary(const char *temporary);
/* For signal handlers of a process about to end: removes the temporary files it was writing. */
void cnri_write_drop_all(void);
/* Discards everything that this process writes from now on; all calls still succeed. Used when
 * another process of the same job writes the same files. */
void cnri_write_to_nowhere(void);

/* ---- activity.c: records which plugin call runs, so that a signal handler can name it ---- */
/* The plugin call that runs on this thread, and the one around it. */
typedef struct cnri_activity {
    const char *verb;       /* "running kernel" */
    const void *descriptor; /* a descriptor of the plugin that is called */
    /* Names of the kernel or operator, the node and the device; NULL: none. */
    const char *name, *node, *device;
    const struct cnri_activity *outer;
} cnri_activity;
/* Begins an activity. It must end on the same thread and in the same function. */
void cnri_activity_begin(cnri_activity *a);
/* Ends the activity of this thread; the one that it interrupted becomes current again. */
void cnri_activity_end(const cnri_activity *a);
/* For signal handlers: the activity of this thread; NULL: none. */
const cnri_activity *cnri_activity_of_thread(void);
/* The activity that any thread began last, for messages of crashes. NULL: there is none. */
const cnri_activity *cnri_activity_latest(void);
/* The activity of one thread, for another thread that waits for it. */
typedef struct cnri_watched {
    pthread_mutex_t lock;
    const cnri_activity *now; /* NULL: no plugin code runs */
    uint64_t count;           /* number of activities that began or ended */
    bool given_up;            /* the thread will never return from its call */
} cnri_watched;
/* Publishes this thread's activities in *watched from now on. */
void cnri_activity_watch(cnri_watched *watched);
bool cnri_activity_is_watched(void); /* True if this thread's activities are published. */
/* True if an activity began or ended since *count was set; updates *count. */
bool cnri_activity_moved(cnri_watched *watched, uint64_t *count);
/* The plugin call that a thread hangs in. give_up marks the thread as given up, so that it never
 * returns from the call; `now` only fills *call. Both return false if the thread has moved on
 * since `count`. */
typedef struct cnri_hung {
    char verb[64], name[128], node[128], device[128];
} cnri_hung;
/* Like cnri_activity_now, and marks the call as given up. False: it is over already. */
bool cnri_activity_give_up(cnri_watched *watched, uint64_t count, cnri_hung *call);
/* Describes call number `count` of that thread in *call; false: it is over. */
bool cnri_activity_now(cnri_watched *watched, uint64_t count, cnri_hung *call);
/* Runs `status = call` as the activity that the further arguments describe. */
#define CNRI_DURING(status, call, ...) \
    do { \
        cnri_activity during_ = {__VA_ARGS__}; \
        cnri_activity_begin(&during_); \
        (status) = (call); \
        cnri_activity_end(&during_); \
    } while (0)

/* ---- clock.c ---- */
/* Monotonic time in ns by the clock in force, which may be a plugin's. */
uint64_t cnri_now_ns(void);
/* Monotonic time in ns by the machine's clock: for time budgets and for progress on a terminal. */
uint64_t cnri_real_ns(void);
void cnri_wait_until(uint64_t ns); /* waits until that time of the clock in force */
/* A plugin's clock in virtual time, which replaces the real one. */
typedef struct cnri_clock {
    uint64_t (*now_ns)(void);
    void (*wait_until)(uint64_t ns);
    const void *descriptor; /* a descriptor of the plugin that brings the clock */
} cnri_clock;
/* True if the machine's clock is in force. Under a plugin's clock time passes only when that
 * plugin advances it, so threads must not wait for it. */
bool cnri_clock_is_real(void);
const void *cnri_clock_descriptor(void); /* of the clock in force; NULL: it is the machine's */
/* Puts a clock in force for the whole process, until another is used or this one leaves. */
void cnri_clock_use(const cnri_clock *clock);
/* Takes the clock out of force: the machine's is used again. */
void cnri_clock_leave(const cnri_clock *clock);

#endif
