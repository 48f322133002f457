/* The parsed directory of a .cnr file. store.h describes the layout. */
#ifndef CNRI_STORE_FORMAT_H
#define CNRI_STORE_FORMAT_H

#include "store/store.h"

/* An operator or encoding that the file uses, and the version that it was written with. */
typedef struct cnri_stored_use {
    const char *name;
    uint32_t version;
} cnri_stored_use;
/* A key and text of the metadata, in the mapping. */
typedef struct cnri_stored_pair {
    const char *key, *text;
} cnri_stored_pair;

/* A value of the file. */
typedef struct cnri_stored_value {
    const char *name;
    uint8_t kind;
    cnr_tensor type; /* data points into the mapping */
    cnr_quant quant;
    uint32_t encoding;     /* index + 1 into `encodings`; 0: none */
    uint64_t offset;       /* bytes from the beginning of the data section */
    const uint8_t *digest; /* SHA-256 of the data, 32 bytes */
    const uint8_t *print;  /* fingerprint, 16 bytes; NULL: the file has none */
    cnr_init init;
} cnri_stored_value;

/* A node of the file. */
typedef struct cnri_stored_node {
    uint32_t op;
    const char *name, *where;
    int32_t n_in, n_out, n_attrs;
    cnr_value *in;
    cnr_attr *attrs;
    const cnr_attr **attr_list;
} cnri_stored_node;

/* An output of the file. */
typedef struct cnri_stored_output {
    cnr_value value;
    const char *name;
} cnri_stored_output;

/* The parsed file. Strings point into the mapping; lists are allocated in `blocks`. */
typedef struct cnri_stored {
    const char *path;
    cnri_mapping file;
    const uint8_t *at; /* begin of the .cnr data in the mapping, which may be a compiled model */
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

/* parse.c: maps the file, checks header and directory, and fills `out`. Needs no operators. */
cnr_status cnri_store_parse(const char *path, cnri_stored *out, cnr_error *err);
/* Unmaps the file and frees all lists. */
void cnri_store_release(cnri_stored *s);

#endif
