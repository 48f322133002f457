/* keep: plans and measured times between processes: what a stored plan depends on, the folder that
 * holds both, and the record of times. */
#ifndef CNRI_KEEP_H
#define CNRI_KEEP_H

#include "run/run.h"
#include "store/store.h"

/* Lets models find and store plans. Any thread may call it, more than once. */
void cnri_keep_register(void);

/* stored.c */
/* Makes a plan without looking it up or storing it. */
cnr_status cnri_fresh_plan(const cnri_plan_request *r, cnr_plan **out, cnr_error *err);
/* What is written beside a plan. */
typedef struct cnri_plan_file {
    const char *path, *identity;
    const cnri_cached_blob *parts; /* rows with their data */
    int32_t n_parts;
    uint64_t limit;                /* most bytes of the file, before codecs */
    uint32_t flags;                /* those of cnri_write_begin */
    const char *codecs, *key_file; /* as in cnr_load_options */
} cnri_plan_file;
cnr_status cnri_plan_write(cnr_plan *plan, const cnri_plan_file *to, cnr_error *err);
/* memo.c */
/* Appends the plan's decisions to a text, as cnri_memo_parse reads them; out->failed: no memory. */
void cnri_memo_print(const cnr_plan *plan, cnri_text *out);
/* Parses text of cnri_memo_print; CNR_E_FORMAT: it is malformed. The caller adds the blobs. */
cnr_status cnri_memo_parse(cnri_memo *memo, const char *text, cnr_error *err);
void cnri_memo_free(cnri_memo *memo); /* frees the lists; the struct becomes empty */
/* identity.c: appends all that a stored plan depends on, one item a line: "weights 12ab...". */
void cnri_plan_identity(const cnri_plan_request *r, cnri_text *out);
/* Appends a line with the file's digest for each plugin that brings one of `kinds` (bits 1 <<
 * CNR_KIND_...). */
void cnri_identity_plugins(cnri_text *out, uint32_t kinds);

#define CNRI_TUNING_FILE "tuning.jsonl"
/* record.c: the record in a cache folder; none there is none. print: fingerprint of the file, or
 * zeros. */
cnr_status cnri_tuning_load(const char *folder, cnri_tuning *out, uint8_t print[16],
                            cnr_error *err);

/* Prints and parses the record as one JSON object on each line. Parsing adds rows and skips
 * malformed lines, because the record only advises. */
void cnri_tuning_print(const cnri_tuning *t, cnri_text *out);
/* Adds the rows of a printed tuning record to t. CNR_E_FORMAT: the digest is missing or wrong, or a
 * row is malformed. */
cnr_status cnri_tuning_parse(cnri_tuning *t, const char *text, cnr_error *err);

#define CNRI_PLAN_SUFFIX ".plan"

/* ---- codec.c: codecs that stored blobs pass through (cnnrun/codec.h) ---- */
enum { CNRI_CODECS = 4 }; /* most of them */
/* Codecs in their order, and their key. */
typedef struct cnri_coding {
    const struct cnr_codec *at[CNRI_CODECS];
    int32_t n;
    char *key; /* NULL: none needs one */
    uint64_t key_bytes;
} cnri_coding;
/* Finds codecs by their names, separated by commas, and reads the key that they need; close it.
 * NULL or "": no codecs. key_file NULL: the key is the text of CNNRUN_CACHE_KEY. */
cnr_status cnri_coding_open(const char *names, const char *key_file, cnri_coding *out,
                            cnr_error *err);
void cnri_coding_close(cnri_coding *c);
/* True if one of the codecs needs a key. */
bool cnri_coding_is_keyed(const cnri_coding *c);
/* Encodes by all codecs. The caller frees *to with cnri_free; NULL: there are no codecs. */
cnr_status cnri_coding_encode(const cnri_coding *c, const void *from, uint64_t bytes, void **to,
                              uint64_t *n, cnr_error *err);
/* Decodes `bytes` bytes to exactly n. CNR_E_FORMAT: they are damaged, or the key is another. */
cnr_status cnri_coding_decode(const cnri_coding *c, const void *from, uint64_t bytes, void *to,
                              uint64_t n, cnr_error *err);

/* Returns the data of a blob or part. Called one by one, so one is in memory at a time. */
typedef cnr_status (*cnri_cached_fn)(void *arg, int32_t index, const void **data, cnr_error *err);
/* Writes identity, choices, blobs and parts; after an error, the file at `path` is unchanged. The
 * caller sets name, bytes and `from` of each blob and part, and which net and codecs; lengths and
 * fingerprints are computed here. coding: the codecs; NULL: none. flags: those of
 * cnri_write_begin. */
cnr_status cnri_cached_write(const char *path, const cnri_cached *what, const cnri_coding *coding,
                             uint32_t flags, cnri_cached_fn data, void *arg, cnr_error *err);

/* A file of a cache folder that counts towards its limit: a plan, or a plugin's file whose name
 * ends in "bin". */
typedef struct cnri_cache_file {
    char *name;
    uint64_t bytes;
    int64_t used_ns; /* time of last use, since 1970 */
    bool is_plan;
} cnri_cache_file;
typedef CNRI_VEC(cnri_cache_file) cnri_cache_files;
/* Lists these files, least recently used first. False: out of memory; `out` must still be freed. */
bool cnri_cache_list(const char *folder, cnri_cache_files *out);
/* Frees the names and the list; the struct becomes empty. */
void cnri_cache_list_free(cnri_cache_files *files);
/* Removes one file of the cache; true if it is gone. False: it isn't a cache file, or can't be
 * removed. */
bool cnri_cache_remove(const char *folder, const char *name);
enum { CNRI_CACHE_VARIANTS = 4 }; /* maximum number of plans that differ in weights alone */
/* Removes the least recently used files until the others take at most `limit` bytes. Of files that
 * share the first `shared` bytes of their names with `keep`, CNRI_CACHE_VARIANTS remain. The file
 * named `keep` (NULL: none) is never removed. */
void cnri_cache_trim(const char *folder, uint64_t limit, const char *keep, size_t shared);
/* Sets the file's times to now, as that of last use; errors are ignored. */
void cnri_cache_touch(const char *path);
/* Returns the path of the most recently used plan whose file name begins with `prefix`, to be freed
 * by cnri_free; NULL: there is none. */
char *cnri_cache_latest(const char *folder, const char *prefix);

#endif
