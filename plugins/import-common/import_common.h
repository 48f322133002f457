/* Shared by importers: files, options, numbers as text, and building nodes by name. */
#ifndef IMPORT_COMMON_H
#define IMPORT_COMMON_H

#include <cnnrun/kit.h>

extern const cnr_host *imp_host; /* set by each importer's init */

/* Defines what a plugin of one importer exports: init, which registers the descriptor IMPORTER, and
 * the plugin's description. */
#define IMP_PLUGIN(NAME, VERSION, SUMMARY, IMPORTER) \
    static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, \
                           cnr_error *err) { \
        (void)err; \
        imp_host = host; \
        return host->add(registrar, CNR_KIND_IMPORTER, &IMPORTER); \
    } \
    CNR_PLUGIN(NAME, VERSION, SUMMARY, "MIT", init, CNR_TOUCHES_FILES)

/* ---- common.c: memory, files and text ---- */

/* Allocates from the host for libraries that pass a context, which is not used
 * (ProtobufCAllocator); NULL: no memory. */
void *imp_library_alloc(void *context, size_t bytes);
/* Free function for libraries; context: not used. */
void imp_library_free(void *context, void *block);

/* *out: the whole file in memory of the host's, followed by a zero byte, and its *bytes; fails
 * where the host does. */
cnr_status imp_read_file(const char *path, uint8_t **out, size_t *bytes, cnr_error *err);
enum { IMP_HEAD = 4096 };
/* Reads the begin of a file, at most IMP_HEAD bytes; *n: how many. */
cnr_status imp_read_head(const char *path, uint8_t head[IMP_HEAD], size_t *n, cnr_error *err);
/* Reads n bytes of a file from `offset` on, in spite of signals; 0: it is too short. */
int imp_pread(int fd, void *out, uint64_t n, uint64_t offset);
/* 1: the first bytes hold no control character that text does not have. */
int imp_is_text(const uint8_t *head, size_t n);
/* 1 if a path ends in `tail`. */
int imp_ends_with(const char *path, const char *tail);
/* The value of option "NAME=VALUE", inside the option's text; NULL: not given. */
const char *imp_option(const cnr_import_args *args, const char *name);
/* Parses the number after any spaces, independent of the locale; *end: behind it, or `text` if
 * there is none, and 0 is returned. */
double imp_number(const char *text, const char **end);
/* Parses positive sizes, "3,227,227" or "3x227x227". 0: text is NULL; -1: it is malformed. */
int32_t imp_shape(const char *text, int64_t dim[CNR_MAX_RANK]);
/* Product of the sizes, each >= 0; -1: it overflows. */
int64_t imp_count(const int64_t *dim, int32_t rank);

/* ---- thin.c: protobuf files whose large fields stay in the file ---- */

/* Where bytes lie in a file. */
typedef struct imp_place {
    uint64_t offset, bytes;
} imp_place;
enum {
    IMP_THIN_BULK = -1, /* as `is`: the field's bytes stay in the file */
    IMP_PLACE_FIELD =
        60000, /* holds an imp_place; the schema has it as `bytes` in each message with bulk */
    IMP_BULK_LEAST = 4096 /* fields and messages of fewer bytes are copied as they are */
};
/* A field of the schema on the way to bulk. Messages have numbers that the importer chooses, over
 * 0; the first row's `of` is the file's message. A row of zeros ends a list. */
typedef struct imp_thin_row {
    int32_t of, field, is; /* message; its field; the message that the field is, or IMP_THIN_BULK */
} imp_thin_row;
/* Reads a file like imp_read_file, without its bulk. A damaged message is read whole. */
cnr_status imp_read_thin(const char *path, const imp_thin_row *rows, uint8_t **out, size_t *bytes,
                         cnr_error *err);

/* Memory that is freed all at once; zeroed and aligned for any type. */
typedef struct imp_pool {
    struct imp_chunk *chunks;
    size_t left;
} imp_pool;
/* Memory of a pool, freed with it; NULL: out of memory. */
void *imp_take(imp_pool *pool, size_t bytes);
void imp_pool_free(imp_pool *pool); /* frees all blocks of the pool */
/* Makes room in *at, which moves, for one more entry after n entries of `bytes` each. 1; 0: out of
 * memory, or 2^28 entries. */
int imp_grow(void **at, int32_t n, int32_t *room, size_t bytes);

/* ---- rows: what an importer makes of the layers of its format ---- */

/* A row of an importer's table of layer types. `convert`, of type CONVERT, adds the layer's nodes.
 * An importer leaves out the columns that it does not use. */
#define IMP_ROW(CONVERT) \
    struct { \
        const char *type; /* name of the type in the format */ \
        CONVERT convert; \
        const char *op;         /* our operator, if one is enough */ \
        int32_t min_in, max_in; /* bounds on the number of inputs */ \
        int32_t flags;          /* defined by the importer */ \
        const char *takes; /* attributes that `convert` reads itself, each surrounded by blanks */ \
    }
/* A row of a table of layers. */
#define IMP_LAYER(TYPE, CONVERT, ...) \
    { .type = TYPE, .convert = CONVERT, __VA_ARGS__ }
/* The row of the type; NULL: there is none. */
#define IMP_ROW_OF(rows, type) \
    ((__typeof__(&(rows)[0]))imp_row_of(rows, CNR_ROWS(rows), sizeof(rows)[0], type))
/* The row of n whose first member, a text, equals type; NULL: none. */
const void *imp_row_of(const void *rows, int32_t n, size_t bytes, const char *type);
/* 1 if the list of n texts holds `word`, else 0. */
int imp_is_one_of(const char *word, const char *const *list, int32_t n);

/* Candidates for the square input size of a net whose file does not give it. */
typedef struct imp_fits {
    int64_t low, high;      /* the smallest and the largest; 0: none */
    int64_t usual, n_usual; /* sizes common for pictures (224, 299 ...) */
    int64_t exact, n_exact; /* sizes at which no window skips pixels */
} imp_fits;
/* Notes a size that fits; exact: nothing is rounded then. To be called in rising order. */
void imp_fits_add(imp_fits *f, int64_t size, int exact);
/* Of the sizes that fit: the only one; else the only common one; else the only exact one; else
 * 0. */
int64_t imp_fits_best(const imp_fits *f);

/* ---- build.c: the graph that is being imported ---- */

/* A graph that an importer builds. */
typedef struct imp_net {
    struct cnr_graph *graph;
    const char *path;  /* of the model, for messages */
    cnr_status status; /* E_MEMORY once memory ran out */
} imp_net;

/* Attributes of one node, IMP_MAX_ATTRS at most. Texts and lists are borrowed. */
enum { IMP_MAX_ATTRS = 16 };
/* Attributes of a node that is being built. */
typedef struct imp_attrs {
    cnr_attr at[IMP_MAX_ATTRS];
    const cnr_attr *ptr[IMP_MAX_ATTRS];
    int32_t n;
} imp_attrs;
/* Adds an attribute and returns it, for the caller to set its value; valid while the list is. The
 * list's length is not checked. */
cnr_attr *imp_attr(imp_attrs *l, const char *name, int32_t type);
/* Adds a whole number. */
void imp_int(imp_attrs *l, const char *name, int64_t value);
/* Adds attribute `name`, true or false. */
void imp_bool(imp_attrs *l, const char *name, int value);
/* Adds a number. */
void imp_float(imp_attrs *l, const char *name, double value);
/* Adds a choice. */
void imp_enum(imp_attrs *l, const char *name, const char *value);
/* Adds a data type. */
void imp_dtype(imp_attrs *l, const char *name, int32_t value);
/* Adds a list of whole numbers; it must stay until the node is made. */
void imp_ints(imp_attrs *l, const char *name, const int64_t *values, int64_t n);
/* Adds a list of numbers; it must stay until the node is made. */
void imp_floats(imp_attrs *l, const char *name, const double *values, int64_t n);

/* Adds a node of one output named name + suffix. -1: failed; the graph keeps the error. */
cnr_value imp_node(imp_net *net, const char *op, const char *name, const char *suffix,
                   const cnr_value *in, int32_t n_in, const imp_attrs *attrs);
/* A float32 weight name + suffix whose data is read as graph_constant_read says. */
cnr_value imp_weight_read(
    imp_net *net, const char *name, const char *suffix, const int64_t *dim, int32_t rank,
    cnr_status (*read)(void *state, uint64_t offset, void *out, uint64_t bytes), void *state);
/* A float32 weight name + suffix; data NULL: filled later. */
cnr_value imp_weight(imp_net *net, const char *name, const char *suffix, const float *data,
                     const int64_t *dim, int32_t rank);
/* Adds a constant whose elements are all `value`; negative: it failed. */
cnr_value imp_filled(imp_net *net, const char *name, const char *suffix, float value,
                     const int64_t *dim, int32_t rank);
/* Adds a constant number; negative: it failed. */
cnr_value imp_scalar(imp_net *net, const char *name, const char *suffix, double value);
/* Returns x * factor + shift, adding only the nodes that change something. */
cnr_value imp_affine(imp_net *net, const char *name, cnr_value x, double factor, double shift);
/* Adds a reshape of x to n sizes; returns its output, negative: it failed. */
cnr_value imp_reshape(imp_net *net, const char *name, const char *suffix, cnr_value x,
                      const int64_t *shape, int64_t n);
/* Adds a transpose of x: axis i of the result is axis perm[i]. */
cnr_value imp_transpose(imp_net *net, const char *name, const char *suffix, cnr_value x,
                        const int64_t *perm, int64_t n);
/* Adds x[from:to] along one axis. */
cnr_value imp_slice(imp_net *net, const char *name, const char *suffix, cnr_value x, int64_t axis,
                    int64_t from, int64_t to);
/* Adds a concatenation of n values along an axis. */
cnr_value imp_concat(imp_net *net, const char *name, const cnr_value *in, int32_t n, int64_t axis);
/* Adds a resize that multiplies the spatial sizes by `scale`: nearest or, with `bilinear`, bilinear
 * with aligned corners. */
cnr_value imp_upscale(imp_net *net, const char *name, cnr_value x, int64_t scale, int bilinear);
/* Adds adaptive average pooling to size[0] x size[1] outputs; negative: it failed. */
cnr_value imp_adaptive_average(imp_net *net, const char *name, cnr_value x, const int64_t size[2]);
/* The type of a value, owned by the graph; NULL: none. */
const cnr_tensor *imp_type(const imp_net *net, cnr_value v);

/* Adds input `name` as f32. `dim`: sizes of one sample; the batch is open. open_size: height and
 * width are open too, with those in `dim` as defaults (0: none). Negative: it failed. */
cnr_value imp_input(imp_net *net, const char *name, const int64_t *dim, int32_t rank,
                    int open_size);
/* Sets metadata "input.NAME.KEY" of an input. */
void imp_input_meta(imp_net *net, const char *input, const char *key, const char *text);
/* Sets the mean of an input: one number a channel, or a whole image. */
void imp_input_mean(imp_net *net, const char *input, const float *mean, int64_t n);
/* Sets a text of the graph's metadata; net->status: out of memory. */
void imp_meta(imp_net *net, const char *key, const char *text);

#endif
