/* The layout of a .cnr file, and its directory as parsed. All numbers are little-endian.
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
#ifndef CNRI_STORE_FORMAT_H
#define CNRI_STORE_FORMAT_H

#include "store/store.h"

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

typedef struct cnri_stored_use {
    const char *name;
    uint32_t version;
} cnri_stored_use;
typedef struct cnri_stored_pair {
    const char *key, *text;
} cnri_stored_pair;

typedef struct cnri_stored_value {
    const char *name;
    uint8_t kind;
    cnr_tensor type; /* data points into the mapping */
    cnr_quant quant;
    uint32_t encoding;     /* 0, or index + 1 into the list */
    uint64_t offset;       /* from the data's begin */
    const uint8_t *digest; /* 32 bytes */
    const uint8_t *print;  /* 16 bytes; NULL: the file has none */
    cnr_init init;
} cnri_stored_value;

typedef struct cnri_stored_node {
    uint32_t op;
    const char *name, *where;
    int32_t n_in, n_out, n_attrs;
    cnr_value *in;
    cnr_attr *attrs;
    const cnr_attr **attr_list;
} cnri_stored_node;

typedef struct cnri_stored_output {
    cnr_value value;
    const char *name;
} cnri_stored_output;

/* Strings point into the mapping, lists into `blocks`. */
typedef struct cnri_stored {
    const char *path;
    cnri_mapping file;
    const uint8_t *at; /* where it begins in the mapping, and its size: a compiled model holds it */
    uint64_t bytes;
    uint64_t data_offset, data_bytes;
    const char *name;
    cnri_stored_use *ops, *encodings;
    cnri_stored_pair *meta;
    cnri_stored_value *values;
    cnri_stored_node *nodes;
    cnri_stored_output *outputs;
    const char **symbols;
    cnr_value *inputs;
    int32_t n_ops, n_encodings, n_symbols, n_meta, n_values, n_inputs, n_nodes, n_outputs;
    CNRI_VEC(void *) blocks;
} cnri_stored;

/* parse.c: maps the file, checks header and directory, and fills `out`; needs no operators. */
cnr_status cnri_store_parse(const char *path, cnri_stored *out, cnr_error *err);
void cnri_store_release(cnri_stored *s);

static inline uint64_t cnri_store_align(uint64_t n) {
    return (n + CNRI_STORE_ALIGN - 1) / CNRI_STORE_ALIGN * CNRI_STORE_ALIGN;
}

#endif
