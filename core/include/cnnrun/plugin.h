/* Plugins: the one function that a plugin exports, and the host functions that it may call. */
#pragma once

#include <cnnrun/codec.h>
#include <cnnrun/device.h>
#include <cnnrun/import.h>
#include <cnnrun/kernel.h>
#include <cnnrun/meter.h>
#include <cnnrun/op.h>
#include <cnnrun/source.h>
#include <cnnrun/version.h>

/* An object with state and methods on tensors, such as a tracker, for computations that are no pure
 * function of their inputs.
 *
 * A method is described by its signature, "track(picture) -> box, score": the words after the arrow
 * name the results. Arguments are tensors on the host: a number is f64 of rank 0, a list of numbers
 * f64 of rank 1, a text u8 of rank 1. Results use the same forms. A call sets dtype, rank, dim and
 * data of each result. The data comes from host->alloc and passes to the caller, even after an
 * error (NULL: none). Options are BOOL, INT, FLOAT, STRING or FLOATS; for INT, f is set as well as
 * i. One thread at a time uses an object. */
typedef struct cnr_object {
    uint32_t size;
    int32_t n_methods;
    const char *name;
    const char *summary;
    /* signatures of the methods, also shown as help: "init(picture, box)" */
    const char *const *methods;
    cnr_status (*create)(const cnr_attr *const *options, int32_t n, void **state, cnr_error *err);
    cnr_status (*call)(void *state, int32_t method, const cnr_tensor *const *in, int32_t n_in,
                       cnr_tensor *const *out, int32_t n_out, cnr_error *err);
    void (*destroy)(void *state);
    /* (optional) Returns what an object with these options touches (CNR_TOUCHES_...). Writes to
     * `name` the address or device in the user's spelling: "http://host/path", "0.0.0.0:8080".
     * Without this hook scripts need --trust if the plugin touches more than files. */
    int32_t (*touches)(const cnr_attr *const *options, int32_t n, char *name, size_t room);
} cnr_object;

/* A clock for all measuring and waiting, such as virtual time for simulated devices.
 * cnr_open_options.clock selects it by name. Any thread may call it. */
typedef struct cnr_clock {
    uint32_t size;
    const char *name;
    const char *summary;
    uint64_t (*now_ns)(void); /* monotonic */
    void (*wait_until)(uint64_t ns);
} cnr_clock;

/* ---- groups: several processes of one job that train, evaluate and sweep together, started by a
 * launcher such as mpirun ---- */

/* How a process joins its group. */
typedef struct cnr_group_options {
    uint32_t size;
    /* If *cancel is not 0, the process is asked to end: half a second later, calls that wait for
     * other ranks fail with CNR_E_CANCELLED. NULL: no such request is possible. */
    const volatile int32_t *cancel;
} cnr_group_options;

/* A group of processes, numbered by rank from 0. The plugin owns this constant struct, which stays
 * valid until exit. All ranks must make the same calls in the same order, on one thread at a time.
 * Network errors are CNR_E_IO. */
typedef struct cnr_group {
    uint32_t size;
    const char *name;
    const char *summary;
    /* Returns the number of processes that the launcher started, and this one's rank. It reads only
     * environment variables. 0: no launcher of this group started the process. */
    int32_t (*launched)(int32_t *rank);
    /* Joins the group, once per process, and sets this process' rank and the number of ranks. */
    cnr_status (*open)(const cnr_group_options *options, void **state, int32_t *rank,
                       int32_t *ranks, cnr_error *err);
    /* Begins to sum n numbers over all ranks, in place; dtype is CNR_f32 or CNR_f64. The caller
     * must not touch `data` until sum_wait. Several sums may be in progress. All ranks get bitwise
     * equal results. */
    cnr_status (*sum_begin)(void *state, void *data, int64_t n, int32_t dtype, cnr_error *err);
    /* Waits for the sum that began with this `data`. Returns at once if there is none. */
    cnr_status (*sum_wait)(void *state, void *data, cnr_error *err);
    /* Copies rank 0's bytes to all ranks. */
    cnr_status (*broadcast)(void *state, void *data, uint64_t bytes, cnr_error *err);
    /* Returns when all ranks have called it. */
    cnr_status (*barrier)(void *state, cnr_error *err);
    /* Ends all processes of the job. It returns only if that fails. */
    void (*abort)(void *state, int32_t code);
    /* Leaves the group. All ranks must call it. */
    void (*close)(void *state);
    /* Operators that sum within a graph, so that communication overlaps with computation of other
     * gradients. sum_begin_op takes any number of tensors, all f32 or all f64, multiplies them by
     * its attribute `multiplier` and begins to sum them; its output is [elements of all inputs].
     * sum_wait_op waits for that value, and copies elements from its attribute `offset` on to a
     * tensor of its attribute `dims`. */
    const char *sum_begin_op, *sum_wait_op;
    /* (optional) Lets the sums in progress advance, and returns at once. The thread that computes
     * calls it between operators, for groups whose sums advance only within their own calls. */
    void (*advance)(void *state);
} cnr_group;

/* ---- registration ---- */

/* The kinds of descriptors that a plugin registers, and the struct that `add` expects for each. */
/* clang-format off */
#define CNR_KIND_LIST(X) \
    X(OPERATOR, 1, "operator", cnr_op)         X(KERNEL, 2, "kernel", cnr_kernel) \
    X(DEVICE, 3, "device", cnr_device_class)   X(ENCODING, 4, "encoding", cnr_encoding) \
    X(REWRITE, 5, "rewrite", cnr_rewrite)      X(IMPORTER, 6, "importer", cnr_importer) \
    X(EXPORTER, 7, "exporter", cnr_exporter)   X(SOURCE, 8, "source", cnr_source) \
    X(METER, 9, "meter", cnr_meter)            X(KNOB, 10, "knob", cnr_knob) \
    X(OBJECT, 11, "object", cnr_object)        X(CLOCK, 12, "clock", cnr_clock) \
    X(IMPORT_ROW, 13, "import row", cnr_import_row) \
    X(GROUP, 14, "group", cnr_group)           X(CODEC, 15, "codec", cnr_codec)
/* clang-format on */

/* Kinds of descriptors that plugins register. */
typedef enum cnr_kind {
/* One kind. */
#define X(NAME, value, text, type) CNR_KIND_##NAME = value,
    CNR_KIND_LIST(X)
#undef X
} cnr_kind;

enum { CNR_LOG_ERROR = 0, CNR_LOG_WARN = 1, CNR_LOG_INFO = 2, CNR_LOG_DEBUG = 3 };

typedef struct cnr_registrar cnr_registrar;
typedef struct cnr_output cnr_output; /* a file that is being written */
typedef struct cnr_map cnr_map;       /* a map from names to pointers */

/* Flags of output_begin. PRIVATE: only this user may read the file (mode 0600), as for data kept
 * between runs. It replaces any file of that name, a symbolic link too. */
enum { CNR_OUTPUT_PRIVATE = 1 };

/* Lets the compiler check a format (argument f) and its arguments (from a on) */
#define CNR_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Functions that a plugin may call. Later minor versions append functions. They are safe from any
 * thread unless a comment says otherwise. One thread at a time may use a graph. The host copies
 * names that it is given. Pointers from graph getters are valid until the graph changes. */
typedef struct cnr_host {
    uint32_t size;
    uint32_t abi; /* CNR_ABI of the host */

    /* Registers `descriptor`, the struct of this kind, for the lifetime of the process. Only init
     * may call this; the registration takes effect when init succeeds. If another plugin holds the
     * name, only this descriptor is skipped, with a warning, and the status is CNR_OK. */
    cnr_status (*add)(cnr_registrar *registrar, int32_t kind, const void *descriptor);

    cnr_id (*intern)(const char *name);
    const char *(*name_of)(cnr_id id);

    /* Memory of the host. alloc returns a block, aligned to 64 bytes and uninitialised, or NULL
     * when out of memory. free accepts NULL. */
    void *(*alloc)(size_t bytes);
    void *(*resize)(void *block, size_t bytes);
    void (*free)(void *block);

    /* Fills err (may be NULL) and returns `code`, for use as "return host->fail(...)". */
    cnr_status (*fail)(cnr_error *err, int32_t code, const char *where, const char *format, ...)
        CNR_PRINTF(4, 5);
    void (*log)(int32_t level, const char *plugin, const char *format, ...) CNR_PRINTF(3, 4);
    uint64_t (*now_ns)(void);        /* monotonic time of the clock in force */
    void (*wait_until)(uint64_t ns); /* waits by the clock in force */
    void (*sha256)(const void *data, uint64_t bytes, uint8_t digest[32]);
    const cnr_op *(*find_op)(const char *name); /* finds by name or alias; NULL: none */
    const char *(*cpu_isa)(void); /* cnr_open_options.cpu_isa, else CNNRUN_CPU_ISA, else NULL */

    /* ---- building a graph. Optional inputs may be -1 (no value). After an error the result is -1,
     * and the graph records a problem. ---- */

    /* Adds an input; its dims may be CNR_DIM_SYMBOL(graph_symbol(...)). */
    cnr_value (*graph_input)(cnr_graph *graph, const char *name, const cnr_tensor *type);
    int32_t (*graph_symbol)(cnr_graph *graph, const char *name);
    /* Adds a constant or weight. Non-NULL data is copied; data NULL makes a weight without data.
     * name NULL: the host chooses a name. */
    cnr_value (*graph_constant)(cnr_graph *graph, const char *name, const cnr_tensor *type);
    /* Adds a node and stores its values in outputs[0 .. n_outputs). attrs may be any subset of the
     * schema. Parameter ports that are -1 are created by the operator. where: place in the user's
     * file, for messages ("net.lua:14"), or NULL. */
    cnr_status (*graph_node)(cnr_graph *graph, const char *op, const char *name, const char *where,
                             const cnr_value *inputs, int32_t n_inputs,
                             const cnr_attr *const *attrs, int32_t n_attrs, cnr_value *outputs,
                             int32_t n_outputs);
    cnr_status (*graph_output)(cnr_graph *graph, cnr_value value, const char *name);
    /* Sets metadata, any key with a text: "labels", "input.0.mean". text NULL removes the key. */
    cnr_status (*graph_set_meta)(cnr_graph *graph, const char *key, const char *text);
    /* NULL: there is no such key */
    const char *(*graph_meta)(const cnr_graph *graph, const char *key);
    /* Records a problem. Building continues, and all problems are shown together at the end. */
    void (*graph_problem)(cnr_graph *graph, const char *where, const char *format, ...)
        CNR_PRINTF(3, 4);

    /* ---- inspecting and changing a graph (exporters, rewrites, gradients) ---- */

    int32_t (*graph_node_count)(const cnr_graph *graph); /* nodes are in topological order */
    /* Returns a node. *inputs and *outputs (may be NULL) point to the node's values. */
    const cnr_node *(*graph_node_at)(const cnr_graph *graph, int32_t index,
                                     const cnr_value **inputs, const cnr_value **outputs);
    int32_t (*graph_input_count)(const cnr_graph *graph);
    cnr_value (*graph_input_at)(const cnr_graph *graph, int32_t index);
    int32_t (*graph_output_count)(const cnr_graph *graph);
    cnr_value (*graph_output_at)(const cnr_graph *graph, int32_t index);
    const cnr_tensor *(*graph_type)(const cnr_graph *graph, cnr_value value);
    const char *(*graph_value_name)(const cnr_graph *graph, cnr_value value);
    /* index of the node, or -1 */
    int32_t (*graph_producer)(const cnr_graph *graph, cnr_value value);
    /* uses as node inputs and graph outputs */
    int32_t (*graph_use_count)(const cnr_graph *graph, cnr_value value);
    /* Replaces all uses of `from` by `to`. The graph's outputs keep their names. */
    cnr_status (*graph_replace)(cnr_graph *graph, cnr_value from, cnr_value to);
    /* Removes a node without uses. Indices of later nodes decrease by one. */
    cnr_status (*graph_remove)(cnr_graph *graph, int32_t node);
    /* Sets where graph_node inserts: before this node (-1: at the end). */
    void (*graph_insert_before)(cnr_graph *graph, int32_t node);
    const char *(*graph_symbol_name)(const cnr_graph *graph, int32_t symbol);

    /* ---- writing files: exporters, sources, caches. A file appears completely or not at all, even
     * if the process is killed. A file that is replaced keeps its mode and owner. ---- */

    cnr_status (*output_begin)(const char *path, uint32_t flags, cnr_output **out, cnr_error *err);
    cnr_status (*output_write)(cnr_output *output, const void *data, uint64_t bytes,
                               cnr_error *err);
    /* Sets the offset of the next write, for headers that are known last. */
    cnr_status (*output_seek)(cnr_output *output, uint64_t offset, cnr_error *err);
    /* Ends and releases the output. status CNR_OK: the file takes its place. Otherwise it is
     * removed, and the same status is returned with err unchanged. */
    cnr_status (*output_end)(cnr_output *output, int32_t status, cnr_error *err);

    /* ---- calibration: input and result of a rewrite that quantises ---- */

    /* Returns 1 if this node should compute in integers where it can. */
    int32_t (*graph_should_quantise)(const cnr_graph *graph, int32_t node);
    /* Gives the range of the value that calibration observed. Returns 0 if there is none. */
    int32_t (*graph_value_range)(const cnr_graph *graph, cnr_value value, double *low,
                                 double *high);
    /* Sets how the integers of `stored` represent the values of `real`, where those are above
     * `low`: real = scale * (stored - zero). */
    cnr_status (*graph_set_quantised)(cnr_graph *graph, cnr_value real, cnr_value stored,
                                      double scale, double zero, double low);

    /* ---- reading files: regular files only. Pipes and devices are refused without waiting for
     * them. Open files that a user or a model names only by these functions. ---- */

    /* Reads the whole file, at most `limit` bytes, and appends a NUL. The data passes to the
     * caller. */
    cnr_status (*file_read)(const char *path, uint64_t limit, void **data, uint64_t *bytes,
                            cnr_error *err);
    /* Opens a descriptor for reading, for partial reads and for libraries that take one. The caller
     * closes it. -1: not opened. *bytes (may be NULL): size of the file. */
    int (*file_open)(const char *path, uint64_t *bytes, cnr_error *err);
    /* Finds a file that the file `from` refers to by a relative path. With links followed, the path
     * must stay in from's folder, or in the folder that holds the target of the link `from`, with
     * the same owner. The path passes to the caller. CNR_E_NOT_FOUND: no such file. CNR_E_FORMAT:
     * the path leads out of the folder. */
    cnr_status (*file_beside)(const char *from, const char *name, char **path, cnr_error *err);
    /* Returns an error if the calling script may not read (write) the file or folder. The host's
     * own functions check this. Plugins must call it before they open a file in any other way, on
     * the thread that called them. */
    cnr_status (*may_open)(const char *path, int32_t writes, cnr_error *err);

    /* ---- the cache between runs: named blocks ("0123ab.clbin") in a folder, which is a device's
     * cache_dir or, for NULL, the user's own. A load returns a block as it was saved. Damaged files
     * and files that other users could have written are refused. CNR_E_NOT_FOUND: no such block. A
     * name that ends in "bin" marks data that can be made again: it counts towards the folder's
     * limit and may be evicted. ---- */

    cnr_status (*cache_load)(const char *folder, const char *name, uint64_t limit, void **data,
                             uint64_t *bytes, cnr_error *err);
    cnr_status (*cache_save)(const char *folder, const char *name, const void *data, uint64_t bytes,
                             cnr_error *err);

    /* ---- utilities for importers, sources and references ---- */

    /* Parses the decimal number at the start of `text`, "-1.5e3", "inf" or "nan", in any locale.
     * *end: the rest of the text (end NULL: there must be none). Returns 0, and leaves *out
     * unchanged, if there is no number. */
    int32_t (*parse_number)(const char *text, const char **end, double *out);
    /* Prints the shortest text that reads back as the same f32 or f64 (dtype). 32 bytes always
     * suffice. Returns the length, as snprintf does. */
    int32_t (*print_number)(char *text, size_t room, int32_t dtype, double value);
    /* A map of names. map_set copies the key, `length` bytes without a NUL; with *map NULL it makes
     * a map. CNR_E_MEMORY: the map is unchanged. map_get returns NULL if the key or the map (NULL)
     * does not exist. map_free does not free the values. */
    cnr_status (*map_set)(cnr_map **map, const char *key, size_t length, void *value);
    void *(*map_get)(const cnr_map *map, const char *key, size_t length);
    void (*map_free)(cnr_map *map);
    /* Reads n elements of dense data of any type, starting at `first`, `stride` apart, and converts
     * them to type `as`: CNR_f32, CNR_f64, CNR_i64 or CNR_u64. Floats are truncated to integers and
     * clamped to their range; NaN becomes 0. */
    void (*elements_read)(int32_t dtype, const void *data, int64_t first, int64_t stride, int64_t n,
                          int32_t as, void *out);
    /* Writes n contiguous elements, converted from type `as`. f32 and f64 are truncated and clamped
     * to the range as above. Integers are cut to the type's bits. bool is 1 if the number is not 0.
     */
    void (*elements_write)(int32_t dtype, void *data, int64_t first, int64_t n, int32_t as,
                           const void *in);
    /* ---- the board: entries of the description that cnr_open_options.board selects, by path,
     * "units.2.name"; list entries count from 1. Without a board there are none. ---- */

    int32_t (*board_count)(const char *path); /* entries of the list at path; 0: none, or no list */
    /* 1: path holds a number, now in *out */
    int32_t (*board_number)(const char *path, double *out);
    /* NULL: no such text; path "": a digest of the whole description */
    const char *(*board_text)(const char *path);

    /* ---- operators of model formats that other plugins import (cnr_import_row) ---- */

    /* Finds the row of the newest version that is not above `version` (0: any version). domain
     * NULL: the format's own. NULL: no plugin has such a row. */
    const cnr_import_row *(*find_import_row)(const char *format, const char *domain,
                                             const char *type, int32_t version);
    /* Imports a node by its row, and stores its values in outputs[0 .. n_outputs). CNR_E_NOT_FOUND,
     * with err unchanged: no plugin has a row for it. */
    cnr_status (*import_node)(cnr_graph *graph, const cnr_import_node *node, cnr_value *outputs,
                              cnr_error *err);
    /* Finds the first row of the format for operator `op`, for exporters; NULL: none. */
    const cnr_import_row *(*find_export_row)(const char *format, const char *op);
    /* Like graph_constant; `read` writes `bytes` bytes of the data from `offset` on to `out`, one
     * piece after another from 0 on, so that a large weight need never be in memory whole. */
    cnr_value (*graph_constant_read)(
        struct cnr_graph *graph, const char *name, const cnr_tensor *type,
        cnr_status (*read)(void *state, uint64_t offset, void *out, uint64_t bytes), void *state);

    /* ---- what operators and kernels share ---- */

    /* Fills `w` for a node that slides a window over x, by ONNX's attributes kernel_shape, strides,
     * pads, dilations, auto_pad and ceil_mode. kernel: extents of the window; NULL: kernel_shape,
     * which pooling operators have. For unknown spatial dims, out is CNR_DIM_UNKNOWN. Returns NULL,
     * or a static text that says what does not fit. */
    const char *(*window_resolve)(const cnr_node *node, const cnr_tensor *x, const int64_t *kernel,
                                  cnr_window *w);
    /* Returns 1 if a link (one fused operator) is element-wise on f32 of this shape, and so is its
     * other operand, if any. */
    int (*link_fits)(const cnr_epilogue *link, int32_t rank, const int64_t *dim);
    /* Returns how many links of node->epilogue, from the first and at most `max`, fit a result of
     * this shape and have apply_f32, as cnr_chain_run needs. */
    int32_t (*chain_length)(const cnr_node *node, int32_t rank, const int64_t *dim, int32_t max);
} cnr_host;

/* Resources that a plugin opens outside the process, except its own libraries and their settings.
 * Scripts without --trust may only use the resources that their command line names. Files are
 * checked by the host's functions, all others by the `touches` hooks. */
enum {
    CNR_TOUCHES_NOTHING = 1,
    CNR_TOUCHES_FILES = 2,   /* only by the host's functions, or after may_open allowed it */
    CNR_TOUCHES_NETWORK = 4, /* connects to addresses, or listens */
    CNR_TOUCHES_DEVICES = 8  /* device files, processors' files, cameras, standard input */
};

/* A plugin's description of itself. */
typedef struct cnr_plugin {
    uint32_t size;
    uint32_t magic;     /* CNR_PLUGIN_MAGIC */
    uint32_t abi;       /* CNR_ABI_WANTED */
    uint32_t signature; /* CNR_SIGNATURE: pointer and size widths, byte order */
    const char *name;   /* such as "cpu-neon"; of plugins with one name the first wins */
    const char *version;
    const char *summary;
    const char *licence;
    /* Registers the plugin's descriptors. After a failure it returns an error and must not exit. */
    cnr_status (*init)(const cnr_host *host, cnr_registrar *registrar, cnr_error *err);
    /* (optional) Called at exit; the library stays loaded. */
    void (*fini)(void);
    int32_t touches; /* CNR_TOUCHES_...; 0: unknown, which means all of them */
} cnr_plugin;

#define CNR_PLUGIN_MAGIC 0x504e4e43u /* the bytes "CNNP" */
#define CNR_SIGNATURE \
    ((uint32_t)sizeof(void *) | (uint32_t)sizeof(size_t) << 8 | (uint32_t)sizeof(long) << 16 | \
     (uint32_t)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1u : 2u) << 24)

#define CNR_EXPORT __attribute__((visibility("default")))

/* The one function that a plugin exports. host_abi: the host's CNR_ABI. */
CNR_BEGIN_EXPORTS
const cnr_plugin *cnr_plugin_query(uint32_t host_abi);
CNR_END_EXPORTS
typedef const cnr_plugin *(*cnr_plugin_query_fn)(uint32_t host_abi);
/* Begins its definition. */
#define CNR_PLUGIN_ENTRY const cnr_plugin *cnr_plugin_query(uint32_t host_abi)
/* Values of the first members of a cnr_plugin. */
#define CNR_PLUGIN_HEAD sizeof(cnr_plugin), CNR_PLUGIN_MAGIC, CNR_ABI_WANTED, CNR_SIGNATURE

/* Processor features that the library needs to be opened at all: "avx512f fma", in the names of
 * /proc/cpuinfo. The host reads them from the section .cnnrun.needs of the file before dlopen. */
#define CNR_PLUGIN_NEEDS(text) \
    __attribute__((section(".cnnrun.needs"), used)) static const char cnr_needs_[] = text
