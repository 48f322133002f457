/* What a plugin exports (one function) and what it is given (the host table). */
#ifndef CNNRUN_PLUGIN_H
#define CNNRUN_PLUGIN_H

#include <cnnrun/device.h>
#include <cnnrun/encoding.h>
#include <cnnrun/import.h>
#include <cnnrun/kernel.h>
#include <cnnrun/knob.h>
#include <cnnrun/group.h>
#include <cnnrun/meter.h>
#include <cnnrun/op.h>
#include <cnnrun/source.h>
#include <cnnrun/version.h>

CNR_BEGIN_C

/* An object has state and methods on tensors (a tracker): for what is no function of its inputs.
 *
 * A method is told by its signature, "track(picture) -> box, score": the words behind the arrow are
 * its results. A call gets tensors on the host: a number is f64 of rank 0, a list of numbers f64 of
 * rank 1, a text u8 of rank 1; results are read so, too. It fills dtype, rank, dim and data of
 * each; the data is from host->alloc and passes to the caller, after an error too (NULL: none).
 * Options are BOOL, INT, FLOAT, STRING or FLOATS, with f set beside i. One thread at a time. */
typedef struct cnr_object {
    uint32_t size;
    int32_t n_methods;
    const char *name;
    const char *summary;
    const char *const *methods; /* names, with their signature as help: "init(picture, box)" */
    cnr_status (*create)(const cnr_attr *const *options, int32_t n, void **state, cnr_error *err);
    cnr_status (*call)(void *state, int32_t method, const cnr_tensor *const *in, int32_t n_in,
                       cnr_tensor *const *out, int32_t n_out, cnr_error *err);
    void (*destroy)(void *state);
    /* (optional) What an object with these options touches (CNR_TOUCHES_...), and in
     * `name` the address or device as users name it: "http://host/path", "0.0.0.0:8080". Without it
     * nobody knows, and scripts need --trust where the plugin touches more than files. */
    int32_t (*touches)(const cnr_attr *const *options, int32_t n, char *name, size_t room);
} cnr_object;

/* A clock for all that is measured and waited for: virtual time, when the devices are simulated.
 * In force when it is asked for by name (cnr_open_options.clock). Any thread calls it. */
typedef struct cnr_clock {
    uint32_t size;
    const char *name;
    const char *summary;
    uint64_t (*now_ns)(void); /* never goes back */
    void (*wait_until)(uint64_t ns);
} cnr_clock;

/* The kinds of things a plugin brings, and the descriptor that `add` expects for each. */
/* clang-format off */
#define CNR_KIND_LIST(X) \
    X(OPERATOR, 1, "operator", cnr_op)         X(KERNEL, 2, "kernel", cnr_kernel) \
    X(DEVICE, 3, "device", cnr_device_class)   X(ENCODING, 4, "encoding", cnr_encoding) \
    X(REWRITE, 5, "rewrite", cnr_rewrite)      X(IMPORTER, 6, "importer", cnr_importer) \
    X(EXPORTER, 7, "exporter", cnr_exporter)   X(SOURCE, 8, "source", cnr_source) \
    X(METER, 9, "meter", cnr_meter)            X(KNOB, 10, "knob", cnr_knob) \
    X(OBJECT, 11, "object", cnr_object)        X(CLOCK, 12, "clock", cnr_clock) \
    X(IMPORT_ROW, 13, "import row", cnr_import_row) \
    X(GROUP, 14, "group", cnr_group)
/* clang-format on */

typedef enum cnr_kind {
#define X(NAME, value, text, type) CNR_KIND_##NAME = value,
    CNR_KIND_LIST(X)
#undef X
        CNR_KIND_FORCE_32_ = 0x7fffffff
} cnr_kind;

enum { CNR_LOG_ERROR = 0, CNR_LOG_WARN = 1, CNR_LOG_INFO = 2, CNR_LOG_DEBUG = 3 };

struct cnr_registrar;
struct cnr_graph;
struct cnr_output; /* a file being written */
struct cnr_map;    /* from names to pointers */

/* Flags of output_begin. PRIVATE: kept between runs for this user alone (mode 0600); replaces
 * whatever has the name, a symbolic link too. */
enum { CNR_OUTPUT_PRIVATE = 1 };

#if defined(__GNUC__)
#define CNR_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define CNR_PRINTF(f, a)
#endif

/* Functions that a plugin may call. Later minor versions append functions. Safe from any thread
 * unless a comment says otherwise. Graph calls: one thread a graph. Names passed in are copied.
 * Graph getters return pointers that live until the graph changes. */
typedef struct cnr_host {
    uint32_t size;
    uint32_t abi; /* CNR_ABI of the host */

    /* Registers `descriptor` (its kind's struct) for as long as the process lives. Only during
     * init; takes effect only when init succeeds. CNR_OK too when another plugin holds its name:
     * then this descriptor alone is left out, with a warning. */
    cnr_status (*add)(struct cnr_registrar *registrar, int32_t kind, const void *descriptor);

    cnr_id (*intern)(const char *name);
    const char *(*name_of)(cnr_id id);

    /* alloc: 64-byte aligned, uninitialised; NULL when out of memory. free takes NULL. */
    void *(*alloc)(size_t bytes);
    void *(*resize)(void *block, size_t bytes);
    void (*free)(void *block);

    /* Fills err (may be NULL) and returns `code`, so that "return host->fail(...)" reads well. */
    cnr_status (*fail)(cnr_error *err, int32_t code, const char *where, const char *format, ...)
        CNR_PRINTF(4, 5);
    void (*log)(int32_t level, const char *plugin, const char *format, ...) CNR_PRINTF(3, 4);
    uint64_t (*now_ns)(void);        /* monotonic; by the clock in force */
    void (*wait_until)(uint64_t ns); /* by the clock in force */
    void (*sha256)(const void *data, uint64_t bytes, uint8_t digest[32]);
    const cnr_op *(*find_op)(const char *name); /* by name or alias; NULL: none */
    const char *(*cpu_isa)(void); /* cnr_open_options.cpu_isa, CNNRUN_CPU_ISA, or NULL */

    /* ---- building a graph. cnr_value -1 (none) is accepted wherever an optional input is, and is
     * returned on an error, which the graph remembers as a problem. ---- */

    /* An input; dims may be CNR_DIM_SYMBOL(graph_symbol(...)). */
    cnr_value (*graph_input)(struct cnr_graph *graph, const char *name, const cnr_tensor *type);
    int32_t (*graph_symbol)(struct cnr_graph *graph, const char *name);
    /* A constant or weight. data != NULL is copied; NULL makes a weight yet to be filled. name
     * NULL: one is found. */
    cnr_value (*graph_constant)(struct cnr_graph *graph, const char *name, const cnr_tensor *type);
    /* Adds a node; outputs[0 .. n_outputs) receives its values. attrs may hold any subset of the
     * schema. Parameter ports given as -1 are created by the operator. where: the place in the
     * user's file, for messages ("net.lua:14"), or NULL. */
    cnr_status (*graph_node)(struct cnr_graph *graph, const char *op, const char *name,
                             const char *where, const cnr_value *inputs, int32_t n_inputs,
                             const cnr_attr *const *attrs, int32_t n_attrs, cnr_value *outputs,
                             int32_t n_outputs);
    cnr_status (*graph_output)(struct cnr_graph *graph, cnr_value value, const char *name);
    /* Metadata: "labels", "input.0.mean", whatever; text. NULL removes. */
    cnr_status (*graph_set_meta)(struct cnr_graph *graph, const char *key, const char *text);
    const char *(*graph_meta)(const struct cnr_graph *graph, const char *key); /* NULL: none */
    /* Remembers a problem; building goes on and the whole list is shown at the end. */
    void (*graph_problem)(struct cnr_graph *graph, const char *where, const char *format, ...)
        CNR_PRINTF(3, 4);

    /* ---- looking at a graph and changing it (exporters, rewrites, gradients) ---- */

    int32_t (*graph_node_count)(const struct cnr_graph *graph); /* in topological order */
    /* inputs, outputs (may be NULL) point at as many values as the node has. */
    const cnr_node *(*graph_node_at)(const struct cnr_graph *graph, int32_t index,
                                     const cnr_value **inputs, const cnr_value **outputs);
    int32_t (*graph_input_count)(const struct cnr_graph *graph);
    cnr_value (*graph_input_at)(const struct cnr_graph *graph, int32_t index);
    int32_t (*graph_output_count)(const struct cnr_graph *graph);
    cnr_value (*graph_output_at)(const struct cnr_graph *graph, int32_t index);
    const cnr_tensor *(*graph_type)(const struct cnr_graph *graph, cnr_value value);
    const char *(*graph_value_name)(const struct cnr_graph *graph, cnr_value value);
    int32_t (*graph_producer)(const struct cnr_graph *graph, cnr_value value); /* node, or -1 */
    int32_t (*graph_use_count)(const struct cnr_graph *graph,
                               cnr_value value); /* inputs and outputs */
    /* All uses of `from` become `to`; the graph's outputs too, which keep their names. */
    cnr_status (*graph_replace)(struct cnr_graph *graph, cnr_value from, cnr_value to);
    /* The node must have no uses left. Indices of later nodes fall by one. */
    cnr_status (*graph_remove)(struct cnr_graph *graph, int32_t node);
    /* Where the next graph_node goes: before this node (-1: at the end). */
    void (*graph_insert_before)(struct cnr_graph *graph, int32_t node);
    const char *(*graph_symbol_name)(const struct cnr_graph *graph, int32_t symbol);

    /* ---- writing files: exporters, sources, caches. A file appears whole under its
     * name or not at all, whatever ends the process; one that is there keeps its mode and owner.
     * ---- */

    cnr_status (*output_begin)(const char *path, uint32_t flags, struct cnr_output **out,
                               cnr_error *err);
    cnr_status (*output_write)(struct cnr_output *output, const void *data, uint64_t bytes,
                               cnr_error *err);
    /* The next write goes to this offset: headers that are known last. */
    cnr_status (*output_seek)(struct cnr_output *output, uint64_t offset, cnr_error *err);
    /* Releases it. status CNR_OK: the file takes its place. Else it is removed, and the same status
     * returned with err as it was. */
    cnr_status (*output_end)(struct cnr_output *output, int32_t status, cnr_error *err);

    /* ---- calibration: what a rewrite that quantises is asked, and answers ---- */

    /* 1: this node is to work on whole numbers, if it can. */
    int32_t (*graph_should_quantise)(const struct cnr_graph *graph, int32_t node);
    /* What the value was seen to hold. 0: it was not seen. */
    int32_t (*graph_value_range)(const struct cnr_graph *graph, cnr_value value, double *low,
                                 double *high);
    /* The answer: the whole numbers of `stored` now stand for what `real` was, where that is above
     * `low`, as scale * (stored - zero). */
    cnr_status (*graph_set_quantised)(struct cnr_graph *graph, cnr_value real, cnr_value stored,
                                      double scale, double zero, double low);

    /* ---- reading files: regular ones only. Pipes and devices are refused and never
     * waited for, so nothing else should open what a user or a model names. ---- */

    /* The whole file, at most `limit` bytes, a NUL behind them; data passes to the caller. */
    cnr_status (*file_read)(const char *path, uint64_t limit, void **data, uint64_t *bytes,
                            cnr_error *err);
    /* A descriptor to read from, which the caller closes, for files that are not wanted whole and
     * libraries that take one; -1: not opened. bytes (may be NULL): how large it is. */
    int (*file_open)(const char *path, uint64_t *bytes, cnr_error *err);
    /* Where a file lies that the file `from` names: a relative path that, links followed, stays in
     * from's folder (or in the one that `from` is a link into, and of the same owner). The path
     * passes to the caller. CNR_E_NOT_FOUND: there is none. CNR_E_FORMAT: it leads out. */
    cnr_status (*file_beside)(const char *from, const char *name, char **path, cnr_error *err);
    /* An error if the calling script may not read (write) the file or folder. The host's own calls
     * check it. Plugins call it before they open a file in another way, in the thread that called
     * them. */
    cnr_status (*may_open)(const char *path, int32_t writes, cnr_error *err);

    /* ---- the cache between runs: blocks by name ("0123ab.clbin") in a folder: a device's
     * cache_dir, or NULL, the user's own. A load returns the whole block as it was saved. A file
     * that others could have written, or that is damaged, is refused. CNR_E_NOT_FOUND: there is
     * none. A name that ends in "bin" marks data that can be made again: it counts in the limit of
     * the folder, and is evicted. ---- */

    cnr_status (*cache_load)(const char *folder, const char *name, uint64_t limit, void **data,
                             uint64_t *bytes, cnr_error *err);
    cnr_status (*cache_save)(const char *folder, const char *name, const void *data, uint64_t bytes,
                             cnr_error *err);

    /* ---- what importers, sources and references would write again ---- */

    /* The decimal number at the begin of `text`, "-1.5e3", "inf" or "nan", read alike in every
     * locale. *end: behind it (NULL: nothing may follow). 0: there is none, and *out is as it
     * was. */
    int32_t (*parse_number)(const char *text, const char **end, double *out);
    /* The shortest text that reads back as the same f32 or f64, as dtype says: 32 bytes hold any.
     * Returns its length, as snprintf does. */
    int32_t (*print_number)(char *text, size_t room, int32_t dtype, double value);
    /* A map of names. map_set copies the key, `length` bytes without a NUL; *map NULL: a new map is
     * made. CNR_E_MEMORY: nothing has changed. map_get takes a NULL map; NULL: there is no such
     * key. map_free does not touch what the values are. */
    cnr_status (*map_set)(struct cnr_map **map, const char *key, size_t length, void *value);
    void *(*map_get)(const struct cnr_map *map, const char *key, size_t length);
    void (*map_free)(struct cnr_map *map);
    /* n elements of dense data of any type, from `first` on and `stride` apart, as numbers of type
     * `as`: CNR_f64, CNR_i64 or CNR_u64. Floats become whole numbers by truncation, kept in range;
     * NaN is 0. */
    void (*elements_read)(int32_t dtype, const void *data, int64_t first, int64_t stride, int64_t n,
                          int32_t as, void *out);
    /* The reverse, side by side. From f64 as above, and kept in the type's range; whole numbers are
     * cut to the type's bits; bool is "not 0". */
    void (*elements_write)(int32_t dtype, void *data, int64_t first, int64_t n, int32_t as,
                           const void *in);
    /* ---- the board: what the file says that describes the machine (cnr_open_options.
     * board), by path, "units.2.name"; lists count from 1. Nothing is there without one. ---- */

    int32_t (*board_count)(const char *path); /* entries of the list there; 0: none, or no list */
    int32_t (*board_number)(const char *path, double *out); /* 1: there is one, and in *out */
    const char *(*board_text)(const char *path); /* NULL: none. "" is for a digest of all of it */

    /* ---- operators of model formats that other plugins import (cnr_import_row) ---- */

    /* The row of the newest version that is not above `version` (0: of any); NULL: no plugin has
     * one. domain NULL: the format's own. */
    const cnr_import_row *(*find_import_row)(const char *format, const char *domain,
                                             const char *type, int32_t version);
    /* Adds what the row for this node makes of it; outputs[0 .. n_outputs) receives its values.
     * CNR_E_NOT_FOUND, err untouched: no plugin has a row for it. */
    cnr_status (*import_node)(struct cnr_graph *graph, const cnr_import_node *node,
                              cnr_value *outputs, cnr_error *err);
    /* The first row of the format whose `op` that is, for exporters; NULL: none. */
    const cnr_import_row *(*find_export_row)(const char *format, const char *op);
} cnr_host;

/* What a plugin opens outside the process, beyond its own libraries and their settings. Scripts
 * without --trust get no more of it than their command line names: files by the host's calls,
 * the rest by the hooks `touches`. */
enum {
    CNR_TOUCHES_NOTHING = 1,
    CNR_TOUCHES_FILES = 2,   /* only by the host's calls, or where may_open agrees */
    CNR_TOUCHES_NETWORK = 4, /* calls addresses, or listens */
    CNR_TOUCHES_DEVICES = 8  /* processors' and other devices' files, cameras, standard input */
};

/* What a plugin says of itself. */
typedef struct cnr_plugin {
    uint32_t size;
    uint32_t magic;     /* CNR_PLUGIN_MAGIC */
    uint32_t abi;       /* CNR_ABI_WANTED */
    uint32_t signature; /* CNR_SIGNATURE: pointer and size widths, byte order */
    const char *name;   /* "cpu-neon"; the first plugin of a name wins */
    const char *version;
    const char *summary;
    const char *licence;
    /* Registers what the plugin brings. Fails with an error, never by exiting. */
    cnr_status (*init)(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err);
    /* (optional) at exit; the library itself stays loaded */
    void (*fini)(void);
    int32_t touches; /* CNR_TOUCHES_...; 0: unknown, which counts as everything */
} cnr_plugin;

#define CNR_PLUGIN_MAGIC 0x504e4e43u /* "CNNP" */
#define CNR_SIGNATURE \
    ((uint32_t)sizeof(void *) | (uint32_t)sizeof(size_t) << 8 | (uint32_t)sizeof(long) << 16 | \
     (uint32_t)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1u : 2u) << 24)

#define CNR_EXPORT __attribute__((visibility("default")))

/* The one exported function. host_abi: the host's CNR_ABI. */
#ifdef __cplusplus
#define CNR_PLUGIN_ENTRY extern "C" CNR_EXPORT const cnr_plugin *cnr_plugin_query(uint32_t host_abi)
#else
#define CNR_PLUGIN_ENTRY \
    CNR_EXPORT const cnr_plugin *cnr_plugin_query(uint32_t host_abi); \
    const cnr_plugin *cnr_plugin_query(uint32_t host_abi)
#endif
typedef const cnr_plugin *(*cnr_plugin_query_fn)(uint32_t host_abi);

/* Processor features without which the library must not even be opened, "avx512f fma"; read from
 * the file's section .cnnrun.needs before dlopen. Names as in /proc/cpuinfo. */
#define CNR_PLUGIN_NEEDS(text) \
    __attribute__((section(".cnnrun.needs"), used)) static const char cnr_needs_[] = text

CNR_END_C
#endif
