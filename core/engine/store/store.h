/* store: the native model file .cnr, which is memory-mapped and has digests, and stored plans. */
#ifndef CNRI_STORE_H
#define CNRI_STORE_H

#include "graph/graph.h"

/* ---- the layout of a .cnr file; all numbers are little-endian ----
 *
 *   0    magic[8]   u32 version   u32 header bytes   u64 file bytes
 *   24   u64 directory offset, bytes   u64 data offset, bytes
 *   56   directory SHA-256 [32]   u64 fingerprint offset   SHA-256 of the 96 bytes above [32]
 *   128  directory
 *        fingerprints [16] of all constants with data, in their order (cnri_fingerprints); older
 *                   files have none (offset 0), and older readers ignore them
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
 *                   outputs are numbered after the values, in the order of the nodes; a node
 *                   reads lower numbers only, so a file can't hold a cycle
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
/* Offset n rounded up to the file's alignment. */
static inline uint64_t cnri_store_align(uint64_t n) {
    return (n + CNRI_STORE_ALIGN - 1) / CNRI_STORE_ALIGN * CNRI_STORE_ALIGN;
}

/* Whether `head`, the beginning of a file, is that of a .cnr file or of a compiled model, which
 * contains one. All readers of .cnr files accept both. */
bool cnri_store_begins(const void *head, size_t bytes);
/* Maps the file and builds its graph in *out. Checks the digests of header and directory. With
 * `verify`, a tensor's digest is checked when it is first read (core/engine/graph/seal.c). */
cnr_status cnri_store_read(const char *path, bool verify, cnr_graph **out, cnr_error *err);
/* Reads the whole file and checks each tensor; *bad: number of damaged ones, which are logged. */
cnr_status cnri_store_check(const char *path, int32_t *bad, cnr_error *err);
/* Fills the weights of `graph` by name from a .cnr file. Checks their digests first unless
 * graph->no_verify. Missing and superfluous weights are listed in the error. */
cnr_status cnri_store_fill(cnr_graph *graph, const char *path, cnr_error *err);

/* ---- plan_cache.c: the plan and packed weights of a net, stored in a cache folder for the next
 * process, or with the net in a file that the user names (a compiled model) ---- */
#define CNRI_COMPILED_SUFFIX ".cnrp"
/* Names of a compiled model's parts: the net, as a complete .cnr file; and "kept NAME" for data of
 * plugins, such as compiled device programs. */
#define CNRI_PART_MODEL "model"
#define CNRI_PART_KEPT "kept "

/* Numbers in the header are at these offsets; plan_cache.c shows the whole file. */
enum {
    CNRI_CACHED_VERSION = 3,
    CNRI_CACHED_HEADER = 1024,
    CNRI_CACHED_COUNTS = 16, /* u64 each: file, directory, identity, choices, blobs, parts */
    CNRI_CACHED_ID = 64,     /* digest of the identity [32] */
    CNRI_CACHED_NAME = 96,   /* the net's name, ends in NUL */
    CNRI_CACHED_CODECS = 608,
    CNRI_CACHED_TEXT = 512, /* room for the name; and for the codecs, up to the header's end */
    CNRI_CACHED_TAIL = 32,
    CNRI_CACHED_ALIGN = 4096,
    CNRI_CACHED_ROW = 60
};
#define CNRI_CACHED_MAGIC \
    "\x89" \
    "CNP\r\n\x1a\n"

/* A blob of a plan cache file: name, bytes, fingerprint, and that of the weights it is made of. */
typedef struct cnri_cached_blob {
    const char *name;
    const void *data;            /* in the mapping; not read when the file is opened */
    uint64_t bytes;              /* in the file */
    uint64_t whole;              /* before codecs encoded it, and after they decode it */
    uint8_t print[16], from[16]; /* fingerprints of the blob and of its source */
} cnri_cached_blob;

/* A stored plan that is open. */
typedef struct cnri_cached {
    cnri_mapping file;
    const char *identity, *choices; /* in the mapping, as the next two */
    const char *net;                /* the net's name */
    const char *codecs;             /* names of codecs that encoded blobs and parts, in their
                                     * order, separated by commas; "": none */
    cnri_cached_blob *blobs;        /* n_blobs blobs, then n_parts parts */
    int32_t n_blobs, n_parts;
} cnri_cached;

/* Maps a file and checks everything but the blobs. CNR_E_NOT_FOUND: no such file. CNR_E_FORMAT: it
 * is damaged. CNR_E_STATE: another user may have written it. */
cnr_status cnri_cached_open(const char *path, cnri_cached *out, cnr_error *err);
/* Does the same for a mapped file. After an error, the caller still owns the mapping. */
cnr_status cnri_cached_read(const char *path, cnri_mapping file, cnri_cached *out, cnr_error *err);
/* True if the bytes begin a stored plan. */
bool cnri_cached_begins(const void *head, size_t bytes);
/* The part of that name; NULL: none. */
const cnri_cached_blob *cnri_cached_part(const cnri_cached *c, const char *name);
/* Returns the number of blobs and parts whose fingerprint does not match, and logs each. */
int32_t cnri_cached_damaged(const cnri_cached *c, const char *path);
void cnri_cached_close(cnri_cached *c); /* unmaps the file and frees the list; c is empty */

#endif
