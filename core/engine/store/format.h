/* The directory of a .cnr file as parsed (its layout: store.h). */
#ifndef CNRI_STORE_FORMAT_H
#define CNRI_STORE_FORMAT_H

#include "store/store.h"

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

#endif
