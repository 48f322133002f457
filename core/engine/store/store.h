/* store: the native model file .cnr (graph and weights, mapped, digested), and stored plans. */
#ifndef CNRI_STORE_H
#define CNRI_STORE_H

#include "graph/graph.h"

/* ---- the layout of a .cnr file; all numbers are little-endian ----
 *
 *   0    magic[8]   u32 version   u32 header bytes   u64 file bytes
 *   24   u64 directory offset, bytes   u64 data offset, bytes
 *   56   directory SHA-256 [32]   u64 fingerprints' offset   SHA-256 of the 96 bytes above [32]
 *   128  directory
 *        fingerprints [16] of all constants with data, in their order, as cnri_fingerprints makes
 * them; older files have none (offset 0), and older readers pass them over
 *        ...                       zeros up to a multiple of 64
 *   data tensors, each at a multiple of 64, zeros between
 *
 *   directory:  name
 *     n operators   {name, u32 version}           n encodings {name, u32 version}
 *     n symbols     {name}                        n metadata  {key, text}
 *     n values      {name, u8 kind, type, ...}    inputs and constants, numbered from 0; with data:
 *                   u64 offset, bytes  SHA-256 [32]
 *     n inputs      {u32 value}
 *     n nodes       {u32 operator, name, where, n {i32 value}, n outputs {u8 zero}, n attributes}
 *                   whose outputs are numbered on from the values: an earlier number is an
 *                   earlier value, so a file can't hold a cycle
 *     n outputs     {u32 value, name}
 *   a count is a u32; a string is a u32 length, its bytes and a NUL */
enum {
    CNRI_STORE_VERSION = 1,
    CNRI_STORE_HEADER = 128,
    CNRI_STORE_SIGNED = 96, /* bytes of the header that its digest covers */
    CNRI_STORE_ALIGN = 64
};
#define CNRI_STORE_MAGIC \
    "\x89" \
    "CNR\r\n\x1a\n"

enum { CNRI_STORED_INPUT = 1, CNRI_STORED_WEIGHT = 2, CNRI_STORED_UNFILLED = 3 };
static inline uint64_t cnri_store_align(uint64_t n) {
    return (n + CNRI_STORE_ALIGN - 1) / CNRI_STORE_ALIGN * CNRI_STORE_ALIGN;
}

/* Whether a file that begins so is one, or a compiled model, which holds one. All that read a .cnr
 * read that one then. */
bool cnri_store_begins(const void *head, size_t bytes);
/* Maps and reads. Digests of header and directory are checked; those of tensors when these are
 * first read (core/engine/graph/seal.c), if at all. */
cnr_status cnri_store_read(const char *path, bool verify, cnr_graph **out, cnr_error *err);
/* Reads whole and checks every tensor; *bad counts the damaged ones, each logged. */
cnr_status cnri_store_check(const char *path, int32_t *bad, cnr_error *err);
/* Fills the weights of `graph` by name from a .cnr, after their digests were checked unless it says
 * no_verify. Extra and missing ones are errors, listed. */
cnr_status cnri_store_fill(cnr_graph *graph, const char *path, cnr_error *err);

/* ---- plan_cache.c: what was worked out for a net, kept in a folder for the next process, or in a
 * file of the user's own (a compiled model), which holds the net, too ---- */
#define CNRI_CACHE_LIMIT ((uint64_t)4 << 30) /* bytes, where nobody said */
#define CNRI_PLAN_SUFFIX ".plan"
#define CNRI_COMPILED_SUFFIX ".cnrp"
/* Parts of a compiled model: the net as a whole .cnr file; what plugins keep, such as programs of a
 * device, by "kept NAME". */
#define CNRI_PART_MODEL "model"
#define CNRI_PART_KEPT "kept "

typedef struct cnri_cached_blob {
    const char *name;
    const void *data; /* in the mapping; not looked at until it is wanted */
    uint64_t bytes;
    uint8_t print[16], from[16]; /* of the blob; of what it is made of */
} cnri_cached_blob;

typedef struct cnri_cached {
    cnri_mapping file;
    const char *identity, *choices; /* in the mapping */
    cnri_cached_blob *blobs;        /* behind them stand the parts */
    int32_t n_blobs, n_parts;
} cnri_cached;

/* Maps a file and checks all but the blobs. CNR_E_NOT_FOUND: there is none; CNR_E_FORMAT: damaged;
 * CNR_E_STATE: someone else may have written it. */
cnr_status cnri_cached_open(const char *path, cnri_cached *out, cnr_error *err);
/* The same of a mapping, which stays the caller's after an error. */
cnr_status cnri_cached_read(const char *path, cnri_mapping file, cnri_cached *out, cnr_error *err);
bool cnri_cached_begins(const void *head, size_t bytes); /* a file that does so is of this form */
const cnri_cached_blob *cnri_cached_part(const cnri_cached *c, const char *name); /* NULL: none */
/* How many blobs and parts do not have their fingerprints; each is logged. */
int32_t cnri_cached_damaged(const cnri_cached *c, const char *path);
void cnri_cached_close(cnri_cached *c);

/* Called for one blob after the other, so that they need not all be there at once. */
typedef cnr_status (*cnri_cached_fn)(void *arg, int32_t index, const void **data, cnr_error *err);
/* Writes identity, choices, blobs and parts; whole or not at all. Blobs and parts have names, bytes
 * and what they are made of; their fingerprints are filled in. flags: of cnri_write_begin. */
cnr_status cnri_cached_write(const char *path, const cnri_cached *what, uint32_t flags,
                             cnri_cached_fn data, void *arg, cnr_error *err);

/* The files of a folder that count in its limit, the one used longest ago first: plans, and what
 * plugins keep under names that end in "bin". False: no memory; to be freed all the same. */
typedef struct cnri_cache_file {
    char *name;
    uint64_t bytes;
    int64_t used_ns; /* since 1970 */
    bool is_plan;
} cnri_cache_file;
typedef CNRI_VEC(cnri_cache_file) cnri_cache_files;
bool cnri_cache_list(const char *folder, cnri_cache_files *out);
void cnri_cache_list_free(cnri_cache_files *files);
bool cnri_cache_remove(const char *folder, const char *name); /* one of them; false: it stays */
enum { CNRI_CACHE_VARIANTS = 4 }; /* plans of one net, environment and options, by weights */
/* Removes those that were used longest ago until the rest take at most `limit` bytes, and those
 * beyond CNRI_CACHE_VARIANTS whose names begin as `shared` bytes of `keep`. `keep`, the name of a
 * file in there, stays. */
void cnri_cache_trim(const char *folder, uint64_t limit, const char *keep, size_t shared);
void cnri_cache_touch(const char *path); /* used now */
/* The plan used last whose file's name begins with `prefix`; NULL: none. cnri_free. */
char *cnri_cache_latest(const char *folder, const char *prefix);

#endif
