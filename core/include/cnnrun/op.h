/* Operators: attribute schema, nodes as operators and kernels see them, and the descriptor that
 * tells the core all it may know of an operator. */
#ifndef CNNRUN_OP_H
#define CNNRUN_OP_H

#include <cnnrun/tensor.h>

CNR_BEGIN_C

struct cnr_host;
struct cnr_op;
struct cnr_run;

/* ---- attributes ---------------------------------------------------------------------------- */

typedef enum cnr_attr_type {
    CNR_ATTR_INT = 1,
    CNR_ATTR_FLOAT,
    CNR_ATTR_BOOL,   /* i: 0 or 1 */
    CNR_ATTR_ENUM,   /* s: the choice; i: its index in spec->choices */
    CNR_ATTR_STRING, /* s */
    CNR_ATTR_INTS,   /* n, ints */
    CNR_ATTR_FLOATS, /* n, floats */
    CNR_ATTR_DTYPE,  /* i: a data type; written as its name, "f32" */
    CNR_ATTR_TYPE_FORCE_32_ = 0x7fffffff
} cnr_attr_type;

/* One attribute's value. Strings and lists belong to whoever made it; a graph keeps copies. */
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
    /* INTS with one entry a spatial axis (rank of input 0, less 2): a single number is repeated,
     * and an omitted one is filled from `fill`. */
    CNR_ATTR_SPATIAL = 1 << 1,
    /* INTS with two entries a spatial axis, all begins then all ends (ONNX pads): a single number
     * is repeated; one entry an axis stands for both ends. */
    CNR_ATTR_SPATIAL_PAIRS = 1 << 2,
    CNR_ATTR_BOUNDED = 1 << 3 /* min and max hold, for each entry of a list too */
};

/* One row of an operator's schema; checks, defaults and help text all come from it. */
typedef struct cnr_attr_spec {
    const char *name;
    int32_t type;
    uint32_t flags;
    const char *alias; /* (optional) a second name that scripts may use, "kernel" */
    const char *help;
    double min, max;         /* with CNR_ATTR_BOUNDED */
    int64_t default_i, fill; /* INT, BOOL, DTYPE; each missing entry of a spatial list */
    double default_f;        /* FLOAT */
    const char *default_s;   /* ENUM, STRING; NULL: "" */
    /* ENUM: NULL-terminated. STRING (optional): texts that make sense, likewise, for
     * help and for who draws nodes; others are welcome. */
    const char *const *choices;
} cnr_attr_spec;

/* ---- nodes --------------------------------------------------------------------------------- */

/* One operator behind a node that a kernel computes before it stores (bias, activation, residual
 * add, requantise, pool). */
typedef struct cnr_epilogue {
    const struct cnr_node *node; /* the operator with its attributes and tensors */
    int32_t chain_port;          /* the input of `node` that is the value so far */
    int32_t operand;             /* host node's inputs[] index of the other operand, or -1 */
} cnr_epilogue;

/* A node, as every hook below sees it. At build time dims may be negative and data NULL; at plan
 * time dims are known; at run data and mem are set. inputs[i] is NULL for an omitted optional. */
typedef struct cnr_node {
    uint32_t size; /* sizeof(cnr_node) */
    cnr_id op;
    const struct cnr_op *desc;
    const char *name;
    int32_t n_attrs; /* in the order of the schema; every row present, defaults filled */
    int32_t n_inputs, n_outputs, n_epilogue;
    const cnr_attr *const *attrs;
    const cnr_tensor *const *inputs;  /* operands of the epilogue come after the operator's own */
    const cnr_tensor *const *outputs; /* with an epilogue: the chain's last outputs */
    const cnr_epilogue *const *epilogue;
    /* of a region: what is in it. Only nodes that kernels for CNR_REGION are given have the field.
     */
    const struct cnr_subgraph *subgraph;
} cnr_node;

/* Nodes with the values that go between them. Values are numbered: those that come from outside
 * first, of which constants are the last, then what the nodes compute. */
typedef struct cnr_subnode {
    const cnr_node *node;
    const int32_t *inputs;  /* values, node->n_inputs; -1: omitted */
    const int32_t *outputs; /* values, node->n_outputs */
} cnr_subnode;

typedef struct cnr_subgraph {
    uint32_t size;
    int32_t n_nodes, n_values;
    int32_t n_inputs;  /* values from outside */
    int32_t n_varying; /* the first so many of them change; the others are constants */
    int32_t n_outputs;
    const cnr_subnode *nodes;        /* in an order in which they can be computed */
    const cnr_tensor *const *values; /* types; the data of constants may come with prepare only */
    const int32_t *outputs;          /* values that are read outside */
} cnr_subgraph;

/* ---- the descriptor ------------------------------------------------------------------------ */

enum {
    CNR_PORT_OPTIONAL = 1 << 0,
    CNR_PORT_VARIADIC = 1 << 1,  /* last port only: any number, at least `min` */
    CNR_PORT_PARAMETER = 1 << 2, /* a weight: made by `parameters` when a script omits it */
    CNR_PORT_CONST = 1 << 3,     /* its data must be known at plan (a shape, an axis list) */
    /* With PARAMETER: measured, not learned; parameter counts skip it. Of an output:
     * nothing is learned through it, its gradient is taken for 0. */
    CNR_PORT_STATISTIC = 1 << 4
};

typedef struct cnr_port {
    const char *name; /* "x", "weight", "bias" */
    uint32_t flags;
    int32_t min; /* variadic: least number */
    const char *help;
} cnr_port;

/* What the core takes from the flags, so that such an operator need not write hooks for it:
 * ELEMENTWISE  every output element depends on the inputs' elements at the same place, operands
 *              broadcast; gives in-place (same bytes an element), splitting on any axis, and that
 *              any channel block passes through when the operands have the output's shape.
 * EPILOGUE     may be computed behind another node before it stores.
 * PASS         output 0 is input 0 at inference (dropout); such nodes are removed.
 * PURE         same inputs, same outputs, no state: constants may be folded through it.
 * ADDS         output 0 is the sum of any number of inputs of one shape; training adds gradients up
 *              with the first such operator.
 * LOSS         inputs are what the net says and the labels, output 0 is the scalar that training
 *              makes small.
 * RANGES       `reference` keeps to the range that cnr_run gives: it computes and stores
 *              [range_begin, range_end) on range_axis of output 0 and touches no other element of
 * it. Only nodes with one output are asked so. A range is of an axis that split_axes tells
 *              (ELEMENTWISE without it: of any), begins at a multiple of the alignment told with
 * it, and ends at another or at the axis' end. Several calls for one node may be under way at once,
 * each with a range and a workspace of its own; element for element they give what the whole gives,
 * from no more of the inputs than `input_range` tells. Without this flag a reference is only ever
 * asked for all of its outputs.
 * MULTIPLIES   output 0 is the product of two inputs; training masks gradients with the
 *              first such operator.
 * ROUNDS       output 0 is input 0 as 256 values hold it, in the same type, and the gradient passes
 *              straight through: training for whole numbers uses the first such operator.
 *              Attributes: `step` and `low` of the values, or without a step `axis`: each slice
 *              has a symmetric scale by what it holds.
 * OPTIMIZER    one step of an optimiser for one weight. Inputs: the learning rate and the
 *              number of the step (from 1 on), both f32 of rank 0; the weight; its gradient; then
 * what it remembers, each of the weight's shape and 0 at first. Outputs: the new weight, then the
 * new memories, with CNR_ALIAS_UPDATE. Attributes that mean the same in all of them have the same
 * names: momentum, nesterov, weight_decay, beta1, beta2, epsilon. */
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
    CNR_INIT_HE = 2, /* normal; variance 2 / fan_in behind a relu, less where larger values come */
    CNR_INIT_CONST = 3, /* `value` everywhere */
};

typedef struct cnr_init {
    int32_t kind;
    int64_t fan_in;
    double value;
} cnr_init;

typedef struct cnr_cost {
    uint64_t macs;  /* multiply-accumulates, as the field counts them */
    uint64_t flops; /* other arithmetic, one an operation */
} cnr_cost;

enum {
    CNR_ALIAS_INPLACE = 1, /* the output may overwrite the input, same bytes */
    CNR_ALIAS_VIEW = 2,    /* the output is the input's bytes from `offset` on (reshape, slice) */
    CNR_ALIAS_JOIN = 3,    /* the input may be produced at `offset` in the output (concat) */
    /* The output is what the input is to be from now on. In training, an input that is
     * VARIABLE is overwritten with it, when all that read it have run; such a node is never dead
     * and is not split. Else the same as INPLACE. */
    CNR_ALIAS_UPDATE = 4
};

typedef struct cnr_alias {
    int32_t kind, input, output;
    uint64_t offset; /* elements */
} cnr_alias;

/* How output channel c (axis 1 of output 0, or its last axis for rank 2) depends on parameters:
 * y[c] = f(weight[..., c, ...]) + bias[c], f linear. Lets the core fold a following per-channel
 * affine operator into the weights. */
typedef struct cnr_linear {
    int32_t weight_port, bias_port, weight_axis;
} cnr_linear;

typedef struct cnr_split_axis {
    int32_t axis;      /* of output 0 */
    int64_t alignment; /* ranges begin at multiples of this */
} cnr_split_axis;

/* What an output range reads of one input: [begin, end) on `axis`; -1: all of it. */
typedef struct cnr_input_range {
    int32_t axis;
    int64_t begin, end;
} cnr_input_range;

/* A value of a graph: >= 0; -1 is none. */
typedef int32_t cnr_value;
struct cnr_graph;

/* What an operator's `training` gets to work with. */
typedef struct cnr_training {
    uint32_t size;
    cnr_value step; /* its number, from 1 on: f32, rank 0 */
    uint64_t seed;  /* another for each node */
    /* The first sample of this process in the batch that several processes share. What is drawn
     * for a sample follows from its place in the whole batch. */
    int64_t first;
} cnr_training;

/* An operator. Constant, owned by the plugin, valid until exit. */
typedef struct cnr_op {
    uint32_t size;    /* sizeof(cnr_op) */
    uint32_t version; /* rises when the meaning of a stored node changes */
    const char *name; /* ONNX's, in snake case, where ONNX has the operator */
    const char *summary;
    const char *const *aliases; /* (optional) other names for scripts, NULL-terminated */
    uint32_t flags;
    uint32_t attr_spec_size, port_size;   /* sizeof of the rows below */
    int32_t n_attrs, n_inputs, n_outputs; /* rows */
    const cnr_attr_spec *attrs;
    const cnr_port *inputs;
    const cnr_port *outputs;

    /* Fills dtype, rank and dim of each output (given size-stamped and zeroed) from the inputs
     * and attributes; unknown in, unknown out. All checks that the schema can't express are
     * here. A PURE shape-like operator may set `data` when it is a constant (host memory by
     * host->alloc). */
    cnr_status (*infer)(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
    /* (optional: 0) */
    void (*cost)(const cnr_node *node, cnr_cost *out);
    /* (optional: none) Writes at most `max`, returns how many. */
    int32_t (*buffer_aliases)(const cnr_node *node, cnr_alias *out, int32_t max);
    /* (optional: not split) The axes of output 0 that kernels, and with RANGES the reference, may
     * be asked to compute a part of. */
    int32_t (*split_axes)(const cnr_node *node, cnr_split_axis *out, int32_t max);
    /* (optional: all inputs whole) What input `port` must hold for the output range (halo). */
    void (*input_range)(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                        int32_t port, cnr_input_range *out);
    /* (optional: not linear) 1 and `out` filled when parameters are linear as described above. */
    int32_t (*linear)(const cnr_node *node, cnr_linear *out);
    /* (optional: not affine) 1 when output = input 0 * scale[c] + shift[c] with constants; fills
     * `channels` entries of each. */
    int32_t (*channel_affine)(const cnr_node *node, int64_t channels, float *scale, float *shift);
    /* (optional) Shape and dtype of parameter `port`, and how to initialise it, from attributes and
     * input 0. E_NOT_FOUND when the attributes say there is none (bias = false). */
    cnr_status (*parameters)(const cnr_node *node, int32_t port, cnr_tensor *out, cnr_init *init,
                             cnr_error *err);
    /* (optional: not differentiable) Adds nodes to `graph` that compute the gradients of the inputs
     * from those of the outputs. grad_out[i] is -1 where nothing flows; grad_in[i] is preset to
     * -1 (none wanted when want[i] is 0). Shapes of `node` are those of the training batch. */
    cnr_status (*gradient)(const struct cnr_host *host, struct cnr_graph *graph,
                           const cnr_node *node, const cnr_value *inputs, const cnr_value *outputs,
                           const cnr_value *grad_out, const int32_t *want, cnr_value *grad_in,
                           cnr_error *err);
    /* (optional) ELEMENTWISE operators on f32: out[i] = op(x[i], y[i]); y NULL for one operand.
     * out may equal x or y. Any CPU kernel may call it as an epilogue. */
    void (*apply_f32)(const cnr_node *node, const float *x, const float *y, float *out, int64_t n);
    /* (optional) The same as an OpenCL C expression in float `x` (and `y`), for GPU kernels that
     * build their source: "fmax(x, 0.0f)". Returns its length, or -1 when it does not fit. */
    int32_t (*expression)(const cnr_node *node, char *text, size_t bytes);
    /* The plain C kernel: host memory, dense, unblocked, every dtype that infer admits, one
     * thread; accumulates in double. The judge of all other kernels. All of the outputs, but
     * with RANGES. */
    cnr_status (*reference)(const struct cnr_run *run, cnr_error *err);
    /* (optional: 0) bytes of scratch that `reference` wants */
    uint64_t (*reference_workspace)(const cnr_node *node);
    /* (optional) The operator that this one includes on its input 0, so that one standing before it
     * must be left out: a loss on logits includes the net's last softmax. */
    const char *absorbs;
    /* (optional: as at inference) Adds nodes that compute the outputs as training does:
     * with a mask that is drawn, with the statistics of the batch. outputs[i] is preset to -1. The
     * same seed and step give the same, however many threads there are. */
    cnr_status (*training)(const struct cnr_host *host, struct cnr_graph *graph,
                           const cnr_node *node, const cnr_value *inputs,
                           const cnr_training *training, cnr_value *outputs, cnr_error *err);
} cnr_op;

/* ---- reading attributes -------------------------------------------------------------------- */

static inline const cnr_attr *cnr_attr_find(const cnr_node *node, const char *name) {
    for (int32_t i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attrs[i]->name, name) == 0) return node->attrs[i];
    return NULL;
}
static inline int64_t cnr_attr_int(const cnr_node *node, const char *name) {
    const cnr_attr *a = cnr_attr_find(node, name);
    return a ? a->i : 0;
}
static inline double cnr_attr_float(const cnr_node *node, const char *name) {
    const cnr_attr *a = cnr_attr_find(node, name);
    return a ? a->f : 0;
}
static inline const char *cnr_attr_string(const cnr_node *node, const char *name) {
    const cnr_attr *a = cnr_attr_find(node, name);
    return a && a->s ? a->s : "";
}
static inline int cnr_attr_is(const cnr_node *node, const char *name, const char *value) {
    return strcmp(cnr_attr_string(node, name), value) == 0;
}
/* The list and its length; *n 0 when there is none. */
static inline const int64_t *cnr_attr_ints(const cnr_node *node, const char *name, int64_t *n) {
    const cnr_attr *a = cnr_attr_find(node, name);
    *n = a ? a->n : 0;
    return a ? a->ints : NULL;
}
static inline const double *cnr_attr_floats(const cnr_node *node, const char *name, int64_t *n) {
    const cnr_attr *a = cnr_attr_find(node, name);
    *n = a ? a->n : 0;
    return a ? a->floats : NULL;
}

CNR_END_C
#endif
