/* Inline helpers for authors of operators and kernels; there is nothing to link. */
#pragma once

#include <cnnrun/plugin.h>

/* ---- descriptors ---- */

/* True if `field` lies within the size that `object` was built with, and is not 0. Check this
 * before using an optional field, or a field of a later minor version, of a struct from another
 * module. */
#define CNR_HAS(object, field) \
    ((object)->size >= offsetof(__typeof__(*(object)), field) + sizeof((object)->field) && \
     (object)->field)
/* Number of rows of an array. */
#define CNR_ROWS(rows) ((int32_t)(sizeof(rows) / sizeof((rows)[0])))
/* For a cnr_op's initialiser: sizes and first version; schema; ports. */
#define CNR_OP_SIZES \
    .size = sizeof(cnr_op), .version = 1, .attr_spec_size = sizeof(cnr_attr_spec), \
    .port_size = sizeof(cnr_port)
/* Members of a cnr_op for its attribute rows. */
#define CNR_OP_ATTRS(rows) .n_attrs = CNR_ROWS(rows), .attrs = (rows)
/* Members of a cnr_op for its tables of inputs and outputs. */
#define CNR_OP_PORTS(in, out) \
    .n_inputs = CNR_ROWS(in), .inputs = (in), .n_outputs = CNR_ROWS(out), .outputs = (out)

/* Defines the plugin's entry. INIT should end with cnr_add_all. TOUCHES is CNR_TOUCHES_... The host
 * reads the name from its section without opening the library. */
#define CNR_PLUGIN(NAME, VERSION, SUMMARY, LICENCE, INIT, TOUCHES) \
    __attribute__((section(".cnnrun.name"), used)) static const char cnr_name_[] = NAME; \
    CNR_PLUGIN_ENTRY { \
        static const cnr_plugin plugin = {CNR_PLUGIN_HEAD, NAME, VERSION, SUMMARY, \
                                          LICENCE,         INIT, NULL,    TOUCHES}; \
        (void)host_abi; \
        return &plugin; \
    }

/* A descriptor to register: its kind, CNR_KIND_..., and the struct of that kind. */
typedef struct cnr_item {
    int32_t kind;
    const void *descriptor;
} cnr_item;

/* Registers all items in order, and stops at the first one that is refused. */
static inline cnr_status cnr_add_all(const cnr_host *host, cnr_registrar *registrar,
                                     const cnr_item *items, int32_t n) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n && status == CNR_OK; i++)
        status = host->add(registrar, items[i].kind, items[i].descriptor);
    return status;
}

/* Returns from the function with the status of `call` if it failed. */
#define CNR_TRY(call) \
    do { \
        const cnr_status status_ = (call); \
        if (status_ != CNR_OK) return status_; \
    } while (0)

/* ---- numbers: divisors are positive, and no result overflows if it fits a tensor ---- */

static inline int64_t cnr_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t cnr_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t cnr_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t cnr_round_up(int64_t a, int64_t b) { return cnr_div_up(a, b) * b; }

/* ---- tensors of a node ---- */

/* Number of the operator's own inputs. In a kernel's node the operands of the epilogue follow
 * them. */
static inline int32_t cnr_own_inputs(const cnr_node *node) {
    int32_t n = node->n_inputs;
    for (int32_t i = 0; i < node->n_epilogue; i++) {
        const int32_t operand = node->epilogue[i]->operand;
        if (operand >= 0 && operand < n) n = operand;
    }
    return n;
}

/* Returns the operator's own input `i` (>= 0), or NULL if it is omitted. */
static inline const cnr_tensor *cnr_own_input(const cnr_node *node, int32_t i) {
    return i < cnr_own_inputs(node) ? node->inputs[i] : NULL;
}

/* True if t is dense, has a known size, and has one of the types (1u << CNR_f32 | ...). */
static inline int cnr_is_plain(const cnr_tensor *t, uint32_t dtypes) {
    return dtypes >> t->dtype & 1u && !t->encoding && !(t->flags & CNR_TENSOR_DYNAMIC);
}

/* True if all own inputs and outputs that are present are plain. */
static inline int cnr_all_plain(const cnr_node *node, uint32_t dtypes) {
    const int32_t n = cnr_own_inputs(node);
    for (int32_t i = 0; i < n; i++)
        if (node->inputs[i] && !cnr_is_plain(node->inputs[i], dtypes)) return 0;
    for (int32_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && !cnr_is_plain(node->outputs[i], dtypes)) return 0;
    return 1;
}

/* True if t has data that `prepare` may read and that does not change later. t may be NULL. */
static inline int cnr_is_constant(const cnr_tensor *t) {
    return t && t->flags & CNR_TENSOR_CONST && !(t->flags & CNR_TENSOR_VARIABLE) && t->data;
}

/* ---- a kernel's answers: accepts returns cnr_refuse(out, "why"), or calls cnr_take and then sets
 * the fields that differ ---- */

/* Refuses the node. `why` is static text that users see. */
static inline cnr_status cnr_refuse(cnr_accept *out, const char *why) {
    out->score = 0;
    out->why = why;
    return CNR_OK;
}

/* Accepts the node in plain form: no channel blocks, memory class 0, whole outputs, no epilogue. */
static inline cnr_status cnr_take(const cnr_node *node, cnr_accept *out, int32_t score) {
    out->score = score;
    for (int32_t i = 0; i < node->n_inputs; i++) out->in_block[i] = out->in_class[i] = 0;
    for (int32_t i = 0; i < node->n_outputs; i++) out->out_block[i] = out->out_class[i] = 0;
    return CNR_OK;
}

/* ---- epilogues: operators fused with a node, computed before it stores ---- */

/* Applies one link to x[0 .. n): elements of output 0 in storage order, from element `first` on. */
static inline void cnr_link_run(const cnr_node *node, const cnr_epilogue *link, float *x,
                                int64_t first, int64_t n) {
    const float *y =
        link->operand < 0 ? NULL : (const float *)node->inputs[link->operand]->data + first;
    link->node->desc->apply_f32(link->node, link->chain_port == 0 ? x : y,
                                link->chain_port == 0 ? y : x, x, n);
}

/* Applies all links of the node in order. */
static inline void cnr_chain_run(const cnr_node *node, float *x, int64_t first, int64_t n) {
    for (int32_t i = 0; i < node->n_epilogue; i++)
        cnr_link_run(node, node->epilogue[i], x, first, n);
}

/* ---- execution ---- */

/* Allocates a zeroed state for `plan` to return; plan_free must pass it to host->free. Returns NULL
 * with err set when out of memory. */
static inline void *cnr_state(const cnr_host *host, const cnr_node *node, size_t bytes,
                              cnr_error *err) {
    void *state = host->alloc(bytes);
    if (state) memset(state, 0, bytes);
    else host->fail(err, CNR_E_MEMORY, node->name, "no memory for a plan");
    return state;
}

/* Calls fn(arg, i, thread) for 0 <= i < n, on the stream's threads if it has some. */
static inline void cnr_parallel(cnr_stream *stream, int64_t n,
                                void (*fn)(void *arg, int64_t i, int32_t thread), void *arg) {
    if (stream->parallel) stream->parallel(stream, n, fn, arg);
    else
        for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
}

/* Computes the part of output 0 that a run must compute: lo[a] <= index < hi[a] on each axis a. */
static inline void cnr_range_of(const cnr_run *run, int64_t *lo, int64_t *hi) {
    const cnr_tensor *y = run->outputs[0];
    for (int32_t a = 0; a < y->rank; a++) {
        lo[a] = a == run->range_axis ? run->range_begin : 0;
        hi[a] = a == run->range_axis ? run->range_end : y->dim[a];
    }
}

/* The same part as contiguous pieces: n pieces of `length` elements, piece i at first + i *
 * pitch. */
typedef struct cnr_pieces {
    int64_t n, first, length, pitch;
} cnr_pieces;

/* The pieces of output 0 that a run for a range has to compute, in elements. */
static inline cnr_pieces cnr_pieces_of(const cnr_run *run) {
    const cnr_tensor *y = run->outputs[0];
    const int32_t a = run->range_axis;
    cnr_pieces p = {1, 0, cnr_count(y), 0};
    if (a < 0) return p;
    const int64_t inner = cnr_span(y, a + 1, y->rank);
    p.n = cnr_span(y, 0, a);
    p.first = run->range_begin * inner;
    p.length = (run->range_end - run->range_begin) * inner;
    p.pitch = y->dim[a] * inner;
    return p;
}
