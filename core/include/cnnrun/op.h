/* Operators: attribute schemas, nodes as operators and kernels see them, and the descriptor, from
 * which the core knows an operator. */
#pragma once

#include <cnnrun/tensor.h>

/* A net under construction; the host has its functions (plugin.h). */
typedef struct cnr_graph cnr_graph;
struct cnr_host;
struct cnr_run;

/* ---- attributes ---------------------------------------------------------------------------- */

/* Types of attributes, and the member that holds the value. */
typedef enum cnr_attr_type {
    CNR_ATTR_INT = 1,
    CNR_ATTR_FLOAT,
    CNR_ATTR_BOOL,   /* i is 0 or 1 */
    CNR_ATTR_ENUM,   /* s is the choice; i is its index in spec->choices */
    CNR_ATTR_STRING, /* s is the text */
    CNR_ATTR_INTS,   /* ints has n entries */
    CNR_ATTR_FLOATS, /* floats has n entries */
    CNR_ATTR_DTYPE,  /* i is a data type; it is written by name, "f32" */
} cnr_attr_type;

/* Value of one attribute. Strings and lists belong to the maker of the struct; a graph keeps
 * copies. */
typedef struct cnr_attr {
    const char *name;
    int32_t type;
    int32_t set; /* 1: given; 0: the schema's default */
    int64_t i;
    double f;
    const char *s;
    int64_t n;
    const int64_t *ints;
    const double *floats;
} cnr_attr;

enum {
    CNR_ATTR_REQUIRED = 1 << 0,
    /* INTS with one entry per spatial axis (rank of input 0, less 2). A single number is repeated;
     * an omitted list is filled with `fill`. */
    CNR_ATTR_SPATIAL = 1 << 1,
    /* INTS with two entries per spatial axis, first all begins, then all ends (ONNX pads). A single
     * number is repeated; with one entry per axis, each is used for both ends. */
    CNR_ATTR_SPATIAL_PAIRS = 1 << 2,
    CNR_ATTR_BOUNDED = 1 << 3 /* min and max limit the value, and each entry of a list */
};

/* One row of an operator's schema, the source of checks, defaults and help. */
typedef struct cnr_attr_spec {
    const char *name;
    int32_t type;
    uint32_t flags;
    const char *alias; /* (optional) second name that scripts may use: "kernel" */
    const char *help;
    double min, max; /* limits, with CNR_ATTR_BOUNDED */
    /* default_i: INT, BOOL, DTYPE; fill: missing entries of a spatial list */
    int64_t default_i, fill;
    double default_f;      /* default of a FLOAT */
    const char *default_s; /* default of an ENUM or STRING; NULL: "" */
    /* ENUM: the choices, NULL-terminated. STRING (optional): example texts, NULL-terminated, for
     * help and for generators of random nodes; other texts are allowed. */
    const char *const *choices;
} cnr_attr_spec;

/* ---- nodes --------------------------------------------------------------------------------- */

/* An operator that follows a node and is fused with it: a kernel computes it before it stores
 * (bias, activation, residual add, requantise, pool). */
typedef struct cnr_epilogue {
    const struct cnr_node *node; /* the operator with its attributes and tensors */
    int32_t chain_port;          /* the input of `node` that takes the intermediate value */
    /* index of the other operand in the inputs[] of the node that the kernel computes, or -1 */
    int32_t operand;
} cnr_epilogue;

/* A node as all hooks see it. While a graph is built, dims may be negative and data NULL. While
 * planning, dims are known. In a run, data and mem are set. inputs[i] is NULL for an omitted
 * optional input. */
typedef struct cnr_node {
    uint32_t size; /* sizeof(cnr_node) */
    cnr_id op;
    const struct cnr_op *desc;
    const char *name;
    int32_t n_attrs; /* attrs are in the order of the schema, complete, with defaults */
    int32_t n_inputs, n_outputs, n_epilogue;
    const cnr_attr *const *attrs;
    const cnr_tensor *const *inputs;  /* the operator's own inputs, then operands of the epilogue */
    const cnr_tensor *const *outputs; /* with an epilogue: the outputs of its last operator */
    const cnr_epilogue *const *epilogue;
    /* Contents of a region. Only nodes for CNR_REGION kernels have this field. */
    const struct cnr_subgraph *subgraph;
} cnr_node;

/* A node of a subgraph. Values are numbered: first the values from outside, of which the last are
 * constants, then the results of nodes. */
typedef struct cnr_subnode {
    const cnr_node *node;
    const int32_t *inputs;  /* node->n_inputs values; -1: omitted */
    const int32_t *outputs; /* node->n_outputs values */
} cnr_subnode;

/* Several nodes that one kernel computes. */
typedef struct cnr_subgraph {
    uint32_t size;
    int32_t n_nodes, n_values;
    int32_t n_inputs; /* number of values from outside */
    /* Number of the subgraph's inputs that vary, which come first; the others are constants. */
    int32_t n_varying;
    int32_t n_outputs;
    const cnr_subnode *nodes;        /* in an order in which they can be computed */
    const cnr_tensor *const *values; /* types; the data of constants may be set in prepare only */
    const int32_t *outputs;          /* values that are used outside */
} cnr_subgraph;

#define CNR_MAX_SPATIAL 3

/* A sliding window (convolution, pooling): sizes of input, output and kernel, stride, dilation and
 * padding by axis. The host's window_resolve fills it. */
typedef struct cnr_window {
    int32_t spatial; /* number of spatial axes, 1 to 3 */
    int64_t in[CNR_MAX_SPATIAL], out[CNR_MAX_SPATIAL];
    int64_t kernel[CNR_MAX_SPATIAL], stride[CNR_MAX_SPATIAL], dilation[CNR_MAX_SPATIAL];
    int64_t pad_begin[CNR_MAX_SPATIAL], pad_end[CNR_MAX_SPATIAL];
} cnr_window;

/* ---- the descriptor ------------------------------------------------------------------------ */

enum {
    CNR_PORT_OPTIONAL = 1 << 0,
    CNR_PORT_VARIADIC = 1 << 1,  /* last port only: any number of values, at least `min` */
    CNR_PORT_PARAMETER = 1 << 2, /* a weight: made by `parameters` if a script omits it */
    /* its data must be known while planning (a shape, a list of axes) */
    CNR_PORT_CONST = 1 << 3,
    /* With PARAMETER: measured, not learned; parameter counts skip it. For an output: training
     * takes its gradient as 0. */
    CNR_PORT_STATISTIC = 1 << 4
};

/* An input or output of an operator. */
typedef struct cnr_port {
    const char *name; /* such as "x", "weight" or "bias" */
    uint32_t flags;
    int32_t min; /* variadic ports: minimal number of values */
    const char *help;
} cnr_port;

/* Properties that the core derives from the flags, so that an operator needs no hooks for them:
 * ELEMENTWISE  each output element depends on the input elements at the same place, and
 *              operands broadcast. Such a node can work in place (same bytes per element), be
 *              split on any axis, and pass any channel block if the operands have the output's
 *              shape.
 * EPILOGUE     may be fused with the node before it.
 * PASS         output 0 is input 0 at inference (dropout); such nodes are removed.
 * PURE         equal inputs give equal outputs, without state: constants may be folded.
 * ADDS         output 0 is the sum of any number of inputs of one shape. Training adds
 *              gradients with the first such operator.
 * LOSS         inputs are the net's output and the labels, output 0 is the scalar that training
 *              minimises.
 * RANGES       `reference` respects the range in cnr_run: it computes and stores [range_begin,
 *              range_end) on range_axis of output 0, and touches no other element of it. This
 *              applies to nodes with one output. The axis is one of split_axes (ELEMENTWISE
 *              without that hook: any axis). A range begins at a multiple of the axis'
 *              alignment, and ends at another or at the axis' end. Several calls for one node
 *              may run in parallel, each with its own range and workspace. Their elements must
 *              equal those of a single call, and they read no more of the inputs than
 *              `input_range` returns. Without this flag `reference` always computes all
 *              outputs.
 * MULTIPLIES   output 0 is the product of two inputs. Training masks gradients with the first
 *              such operator.
 * ROUNDS       output 0 is input 0 rounded to 256 values, in the same type; the gradient passes
 *              unchanged. Quantisation-aware training uses the first such operator. Attributes:
 *              `step` and `low` of the values, or, without a step, `axis`: each slice along it
 *              gets a symmetric scale from its contents.
 * OPTIMIZER    one step of an optimiser for one weight. Inputs: the learning rate and the
 *              number of the step (from 1), both f32 of rank 0; the weight; its gradient; then
 *              state tensors with the weight's shape, 0 at first. Outputs: the new weight, then
 *              the new state, with CNR_ALIAS_UPDATE. Common attributes have these names:
 *              momentum, nesterov, weight_decay, beta1, beta2, epsilon. */
enum {
    CNR_OP_ELEMENTWISE = 1 << 0,
    CNR_OP_EPILOGUE = 1 << 1,
    CNR_OP_PASS = 1 << 2,
    CNR_OP_PURE = 1 << 3,
    CNR_OP_ADDS = 1 << 4,
    CNR_OP_LOSS = 1 << 5,
    CNR_OP_RANGES = 1 << 6,
    CNR_OP_OPTIMIZER = 1 << 7,
    CNR_OP_MULTIPLIES = 1 << 8,
    CNR_OP_ROUNDS = 1 << 9
};

enum {
    CNR_INIT_ZERO = 0,
    CNR_INIT_ONE = 1,
    /* normal; variance 2 / fan_in after a relu, less after operators with larger outputs */
    CNR_INIT_HE = 2,
    CNR_INIT_CONST = 3, /* `value` in all elements */
};

/* How a weight is filled at random: CNR_INIT_..., inputs of each output, constant. */
typedef struct cnr_init {
    int32_t kind;
    int64_t fan_in;
    double value;
} cnr_init;

/* Work of a node. */
typedef struct cnr_cost {
    uint64_t macs;  /* number of multiply-accumulates */
    uint64_t flops; /* number of other arithmetic operations */
} cnr_cost;

enum {
    CNR_ALIAS_INPLACE = 1, /* the output may overwrite the input, with the same bytes */
    CNR_ALIAS_VIEW = 2,    /* the output is the input's bytes from `offset` on (reshape, slice) */
    CNR_ALIAS_JOIN = 3,    /* the input may be produced at `offset` in the output (concat) */
    /* The output is the next value of the input. In training it overwrites a VARIABLE input after
     * all readers of the input have run. Such a node is never removed as unused and never split.
     * Otherwise the same as INPLACE. */
    CNR_ALIAS_UPDATE = 4
};

/* An output that may share memory with an input. */
typedef struct cnr_alias {
    int32_t kind, input, output;
    uint64_t offset; /* in elements */
} cnr_alias;

/* Linear dependence of output channel c on parameters (axis 1 of output 0, or its last axis for
 * rank 2): y[c] = f(weight[..., c, ...]) + bias[c], with f linear. The core uses it to fold a
 * following per-channel affine operator into the weights. */
typedef struct cnr_linear {
    int32_t weight_port, bias_port, weight_axis;
} cnr_linear;

/* An axis along which a node can be split. */
typedef struct cnr_split_axis {
    int32_t axis;      /* axis of output 0 */
    int64_t alignment; /* ranges begin at multiples of this */
} cnr_split_axis;

/* Part of an input that an output range reads: [begin, end) on `axis`; axis -1: all of it. */
typedef struct cnr_input_range {
    int32_t axis;
    int64_t begin, end;
} cnr_input_range;

/* A value of a graph, >= 0; -1: no value. */
typedef int32_t cnr_value;

/* Arguments of an operator's `training` hook. */
typedef struct cnr_training {
    uint32_t size;
    cnr_value step; /* value with the number of the step, from 1: f32, rank 0 */
    uint64_t seed;  /* different for each node */
    /* Index of this process' first sample in the batch that several processes share. Random draws
     * for a sample must depend on its index in the whole batch. */
    int64_t first;
    /* Operators that begin and end a sum over these processes, as cnr_group names them, for
     * statistics of the whole batch; NULL: each process takes those of its own samples. */
    const char *sum_begin_op, *sum_wait_op;
    double part; /* of the batch that this process has: above 0, up to 1 */
} cnr_training;

/* An operator. The plugin owns this constant struct, which stays valid until exit. */
typedef struct cnr_op {
    uint32_t size;    /* sizeof(cnr_op) */
    uint32_t version; /* increases when the meaning of a stored node changes */
    const char *name; /* ONNX's name in snake case, if ONNX has the operator */
    const char *summary;
    const char *const *aliases; /* (optional) other names for scripts, NULL-terminated */
    uint32_t flags;
    uint32_t attr_spec_size, port_size;   /* sizeof of one row of attrs; of inputs and outputs */
    int32_t n_attrs, n_inputs, n_outputs; /* numbers of rows */
    const cnr_attr_spec *attrs;
    const cnr_port *inputs;
    const cnr_port *outputs;

    /* Sets dtype, rank and dim of each output from the inputs and attributes. Outputs are given
     * zeroed, with `size` set; unknown inputs give unknown outputs. It makes all checks that the
     * schema can't express. If a PURE operator computes a shape, it may set `data` when that is a
     * constant (memory from host->alloc). */
    cnr_status (*infer)(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
    /* (optional: 0) Computes the arithmetic cost of the node. */
    void (*cost)(const cnr_node *node, cnr_cost *out);
    /* (optional: none) Writes at most `max` entries and returns their number. */
    int32_t (*buffer_aliases)(const cnr_node *node, cnr_alias *out, int32_t max);
    /* (optional: not split) Lists the axes of output 0 along which kernels, and with RANGES the
     * reference, may compute a part. */
    int32_t (*split_axes)(const cnr_node *node, cnr_split_axis *out, int32_t max);
    /* (optional: all inputs whole) Computes the part of input `port` that the output range needs,
     * including the halo. */
    void (*input_range)(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                        int32_t port, cnr_input_range *out);
    /* (optional: not linear) Returns 1 and fills `out` if cnr_linear applies to the parameters. */
    int32_t (*linear)(const cnr_node *node, cnr_linear *out);
    /* (optional: not affine) Returns 1 if output = input 0 * scale[c] + shift[c] with constants.
     * Fills `channels` entries of each. */
    int32_t (*channel_affine)(const cnr_node *node, int64_t channels, float *scale, float *shift);
    /* (optional) Gives shape, dtype and initialisation of parameter `port`, from the attributes and
     * input 0. CNR_E_NOT_FOUND: the attributes exclude it (bias = false). */
    cnr_status (*parameters)(const cnr_node *node, int32_t port, cnr_tensor *out, cnr_init *init,
                             cnr_error *err);
    /* (optional: not differentiable) Adds nodes to `graph` that compute the gradients of the inputs
     * from those of the outputs. grad_out[i] is -1 if there is no gradient. grad_in[i] is preset to
     * -1 and is needed only if want[i] is not 0. `node` has the shapes of the training batch. */
    cnr_status (*gradient)(const struct cnr_host *host, cnr_graph *graph, const cnr_node *node,
                           const cnr_value *inputs, const cnr_value *outputs,
                           const cnr_value *grad_out, const int32_t *want, cnr_value *grad_in,
                           cnr_error *err);
    /* (optional) ELEMENTWISE operators on f32: out[i] = op(x[i], y[i]); y is NULL for one operand.
     * out may equal x or y. Any CPU kernel may call it as an epilogue. */
    void (*apply_f32)(const cnr_node *node, const float *x, const float *y, float *out, int64_t n);
    /* (optional) Writes the same function as an OpenCL C expression in float `x` (and `y`), for GPU
     * kernels with generated source: "fmax(x, 0.0f)". Returns its length, or -1 if it does not
     * fit. */
    int32_t (*expression)(const cnr_node *node, char *text, size_t bytes);
    /* Computes the outputs in plain C, with which all other kernels are compared. It accepts host
     * memory, dense and unblocked, and every dtype that infer accepts. It uses one thread and
     * accumulates in double. Without RANGES it computes all outputs. */
    cnr_status (*reference)(const struct cnr_run *run, cnr_error *err);
    /* (optional: 0) Returns the bytes of workspace that `reference` needs. */
    uint64_t (*reference_workspace)(const cnr_node *node);
    /* (optional) Operator that this one includes on its input 0. If that operator comes before this
     * one, it must be removed: a loss on logits includes the net's last softmax. */
    const char *absorbs;
    /* (optional: as at inference) Adds nodes that compute the outputs as in training, such as with
     * a random mask or with batch statistics. outputs[i] is preset to -1. Equal seeds and steps
     * must give equal results for any number of threads. */
    cnr_status (*training)(const struct cnr_host *host, cnr_graph *graph, const cnr_node *node,
                           const cnr_value *inputs, const cnr_training *training,
                           cnr_value *outputs, cnr_error *err);
} cnr_op;

/* ---- reading attributes -------------------------------------------------------------------- */

/* The attribute of that name; NULL: there is none. */
static inline const cnr_attr *cnr_attr_find(const cnr_node *node, const char *name) {
    for (int32_t i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attrs[i]->name, name) == 0) return node->attrs[i];
    return NULL;
}
/* Value of a whole-number or true-or-false attribute; 0: there is none. */
static inline int64_t cnr_attr_int(const cnr_node *node, const char *name) {
    const cnr_attr *a = cnr_attr_find(node, name);
    return a ? a->i : 0;
}
/* Value of a number attribute; 0: there is none. */
static inline double cnr_attr_float(const cnr_node *node, const char *name) {
    const cnr_attr *a = cnr_attr_find(node, name);
    return a ? a->f : 0;
}
/* Value of a text or choice; "": there is none. */
static inline const char *cnr_attr_string(const cnr_node *node, const char *name) {
    const cnr_attr *a = cnr_attr_find(node, name);
    return a && a->s ? a->s : "";
}
/* 1 if a text or choice has that value. */
static inline int cnr_attr_is(const cnr_node *node, const char *name, const char *value) {
    return strcmp(cnr_attr_string(node, name), value) == 0;
}
/* Returns the list, which the node owns, and its length in *n; NULL and 0 if there is none. */
static inline const int64_t *cnr_attr_ints(const cnr_node *node, const char *name, int64_t *n) {
    const cnr_attr *a = cnr_attr_find(node, name);
    *n = a ? a->n : 0;
    return a ? a->ints : NULL;
}
/* A list of numbers; *n: how many. NULL: there is none. */
static inline const double *cnr_attr_floats(const cnr_node *node, const char *name, int64_t *n) {
    const cnr_attr *a = cnr_attr_find(node, name);
    *n = a ? a->n : 0;
    return a ? a->floats : NULL;
}
