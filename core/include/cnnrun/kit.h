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

/* Defines the plugin's entry. INIT should end with cnr_add_all. TOUCHES is CNR_TOUCHES_... */
#define CNR_PLUGIN(NAME, VERSION, SUMMARY, LICENCE, INIT, TOUCHES) \
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

/* ---- sliding windows (convolution, pooling), for operators and kernels: evaluates ONNX's
 * kernel_shape, strides, pads, dilations, auto_pad and ceil_mode ---- */

#define CNR_MAX_SPATIAL 3

/* A sliding window: sizes of input, output and kernel, stride, dilation and padding by axis. */
typedef struct cnr_window {
    int32_t spatial; /* number of spatial axes, 1 to 3 */
    int64_t in[CNR_MAX_SPATIAL], out[CNR_MAX_SPATIAL];
    int64_t kernel[CNR_MAX_SPATIAL], stride[CNR_MAX_SPATIAL], dilation[CNR_MAX_SPATIAL];
    int64_t pad_begin[CNR_MAX_SPATIAL], pad_end[CNR_MAX_SPATIAL];
} cnr_window;

/* Returns the number of positions of a window of extent `reach` over the padded input. ceil_mode as
 * in Caffe and ONNX: the last window must start inside the input or its begin padding. */
static inline int64_t cnr_window_count(int64_t in, int64_t reach, int64_t stride, int64_t begin,
                                       int64_t end, int ceil_mode) {
    const int64_t room = in + begin + end - reach;
    if (room < 0)
        return ceil_mode && -room < stride && in + begin > 0; /* a part of one window, rounded up */
    int64_t n = room / stride + 1;
    if (ceil_mode && room % stride != 0) {
        n++;
        if ((n - 1) * stride >= in + begin) n--;
    }
    return n;
}

/* Fills `w` for input x and window extents `kernel` (NULL: attribute kernel_shape, which pooling
 * operators have). For unknown spatial dims, out is CNR_DIM_UNKNOWN. Returns NULL, or a static text
 * that says what does not fit. */
static inline const char *cnr_window_resolve(const cnr_node *node, const cnr_tensor *x,
                                             const int64_t *kernel, cnr_window *w) {
    const int64_t most = 1 << 20;
    int64_t nk = x->rank - 2, ns, nd, np;
    const int64_t *strides = cnr_attr_ints(node, "strides", &ns);
    const int64_t *dilations = cnr_attr_ints(node, "dilations", &nd);
    const int64_t *pads = cnr_attr_ints(node, "pads", &np);
    const int valid = cnr_attr_is(node, "auto_pad", "VALID");
    const int lower = cnr_attr_is(node, "auto_pad", "SAME_LOWER");
    const int same = lower || cnr_attr_is(node, "auto_pad", "SAME_UPPER");
    const int ceil_mode = cnr_attr_int(node, "ceil_mode") != 0;
    memset(w, 0, sizeof *w);
    if (!kernel) kernel = cnr_attr_ints(node, "kernel_shape", &nk);
    if (nk != x->rank - 2) return "kernel_shape and the rank of x differ";
    if (nk < 1 || nk > CNR_MAX_SPATIAL) return "rank 3, 4 or 5 wanted (N C spatial)";
    w->spatial = (int32_t)nk;
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t in = w->in[i] = x->dim[2 + i], extent = w->kernel[i] = kernel[i];
        const int64_t stride = w->stride[i] = i < ns ? strides[i] : 1;
        const int64_t dilation = w->dilation[i] = i < nd ? dilations[i] : 1;
        int64_t begin = valid || i >= np ? 0 : pads[i];
        int64_t end = valid || i + nk >= np ? 0 : pads[i + nk];
        if (stride < 1 || dilation < 1 || extent < 1)
            return "kernel, stride and dilation must be 1 or more";
        if (extent > most || dilation > most || stride > most)
            return "kernel, stride and dilation must be 1048576 or less";
        if (begin > most || end > most || begin < -most || end < -most)
            return "pads must be 1048576 or less";
        const int64_t reach = (extent - 1) * dilation + 1;
        w->out[i] = CNR_DIM_UNKNOWN;
        if (in >= 0 && same) {
            w->out[i] = (in + stride - 1) / stride;
            const int64_t pad = cnr_max((w->out[i] - 1) * stride + reach - in, 0);
            begin = lower ? pad - pad / 2 : pad / 2;
            end = pad - begin;
        } else if (in >= 0) {
            w->out[i] = cnr_window_count(in, reach, stride, begin, end, ceil_mode);
            if (w->out[i] < 1 && in > 0) return "the window is larger than the padded input";
        }
        w->pad_begin[i] = begin;
        w->pad_end[i] = end;
    }
    return NULL;
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

/* True if a link (one fused operator) is element-wise on f32 of this shape, and so is its other
 * operand, if any. */
static inline int cnr_link_fits(const cnr_epilogue *link, int32_t rank, const int64_t *dim) {
    const cnr_node *node = link->node;
    if (!(node->desc->flags & CNR_OP_ELEMENTWISE) || node->n_outputs != 1) return 0;
    if (link->chain_port < 0 || link->chain_port > 1) return 0;
    for (int32_t i = -1; i < node->n_inputs; i++) {
        const cnr_tensor *t = i < 0 ? node->outputs[0] : node->inputs[i];
        if (i == link->chain_port || !t) continue;
        if (i > 1 || (i >= 0 && link->operand < 0)) return 0;
        if (!cnr_is_plain(t, 1u << CNR_f32) || t->block > 1 || t->rank != rank ||
            memcmp(t->dim, dim, (size_t)rank * sizeof *dim) != 0)
            return 0;
    }
    return 1;
}

/* Returns how many links of node->epilogue, from the first and at most `max`, fit a result of this
 * shape and are accepted. accepts NULL: links with apply_f32 are accepted, as cnr_chain_run
 * needs. */
static inline int32_t cnr_chain_length(const cnr_node *node, int32_t rank, const int64_t *dim,
                                       int32_t max, int (*accepts)(const cnr_epilogue *link)) {
    int32_t n = 0;
    for (; n < node->n_epilogue && n < max; n++) {
        const cnr_epilogue *link = node->epilogue[n];
        if (!cnr_link_fits(link, rank, dim)) break;
        if (accepts ? !accepts(link) : !CNR_HAS(link->node->desc, apply_f32)) break;
    }
    return n;
}

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
