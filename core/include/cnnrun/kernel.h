/* Kernels: how one device computes one operator, in stages: accepts, prepare, plan, run. */
#ifndef CNNRUN_KERNEL_H
#define CNNRUN_KERNEL_H

#include <cnnrun/device.h>
#include <cnnrun/op.h>

CNR_BEGIN_C

/* The answer to "would you run this node". The host presets everything: block lists to what the
 * neighbours offer (0 or 1: plain), classes to the device's class 0, epilogue to 0. */
typedef struct cnr_accept {
    uint32_t size;
    int32_t score;     /* 0: no; 1 to 1000, higher is preferred at equal cost */
    int32_t epilogue;  /* how many of node->epilogue, from the first, the kernel computes itself */
    uint32_t ranges;   /* bit a: run accepts a range on axis a of output 0 */
    uint32_t prepared; /* bit i: input i is consumed by prepare and not needed at run (i < 32) */
    uint32_t flags;    /* CNR_ACCEPT_... */
    double cost_ns;    /* estimate; 0: unknown */
    int32_t *in_block, *out_block; /* channel block wanted of each input, produced of each output */
    int32_t *in_class, *out_class; /* memory class of each, on this device */
    const char *why;               /* (optional) static text: why not */
} cnr_accept;

enum {
    /* what it takes there is made up, and of figures for other operators: results say
       "extrapolated" */
    CNR_ACCEPT_EXTRAPOLATED = 1 << 0
};

/* A prepared blob, or a workspace: what to allocate for it. */
typedef struct cnr_space {
    uint32_t size;
    uint32_t alignment; /* 0: the memory class's own */
    uint64_t bytes;     /* 0: none */
    int32_t memory_class;
    int64_t width, height; /* image classes, pixels */
} cnr_space;

/* One call of a kernel. Nothing in it outlives the call. */
typedef struct cnr_run {
    uint32_t size;
    int32_t range_axis; /* -1: all of output 0; else only [range_begin, range_end) on that axis */
    int64_t range_begin, range_end;
    const cnr_node *node;             /* tensors have data (host memory) and mem (device memory) */
    cnr_tensor *const *outputs;       /* as node->outputs; DYNAMIC ones may have dim[] lowered */
    const cnr_mem *blob;              /* the prepared blob, on the device; NULL without one */
    const cnr_mem *workspace;         /* NULL without one */
    void *blob_data, *workspace_data; /* host addresses of the two, in host-visible memory */
    void *state;                      /* what plan returned */
    cnr_stream *stream; /* queue here; the CPU's stream has finished when run returns */
} cnr_run;

/* cnr_kernel.op of a kernel that is asked for the nodes of every operator, after the operator's own
 * kernels. Its accepts goes by the descriptor (ELEMENTWISE with apply_f32, say). */
#define CNR_ANY_OP "*"

/* cnr_kernel.op of a kernel that computes regions which the class of its device claims. The node
 * that it is given has a subgraph; its inputs are the subgraph's first n_inputs values, its outputs
 * those that others read, all plain and in class 0 unless accepts says otherwise. With prepare, all
 * constants are consumed by it. There is no reference to write: the nodes are the reference. */
#define CNR_REGION "(region)"

enum {
    /* a baseline: runs only if an option, a policy or a placement names it */
    CNR_KERNEL_BY_NAME_ONLY = 1 << 0,
    /* prepare stores weights in that type: only chosen from where
     * cnr_load_options.weights_type says so, and then before what stores them as they are; or asked
     * for by name */
    CNR_KERNEL_F16 = 1 << 1,
    CNR_KERNEL_BF16 = 1 << 2,
    /* weights are stored in f16, and operands multiplied so: sums of at most
     * CNR_F16_TERMS products are of f16, sums of those of f32, so that a result lies within
     * (CNR_F16_TERMS + 2) * 2^-11 of the sum of the products' sizes, however many they are. Only
     * chosen from where cnr_load_options.arithmetic says so, as above */
    CNR_KERNEL_F16_MATH = 1 << 3,
    /* never run on the hardware that it is for: `show` and `run` say so */
    CNR_KERNEL_UNTESTED = 1 << 4,
    /* A result is NaN where the reference has NaN, infinite where that is, and nowhere else;
     * denormals may be read and written as 0. Constant weights are finite: kernels may multiply
     * them by padding. Two kinds of kernels may keep to less where inputs hold NaN or infinities:
     * results up to CNR_SPREAD_POSITIONS positions away, of any channel of the same sample, may
     * become NaN or infinite too, and infinities NaN: Winograd's transforms mix the positions of a
     * tile */
    CNR_KERNEL_SPREADS_NAN = 1 << 5,
    /* products with a weight of 0 may be left out: there 0 times NaN or infinity is 0 */
    CNR_KERNEL_SKIPS_ZEROS = 1 << 6,
    /* operands are rounded to bf16 and multiplied; sums are of f32, denormals may be 0. A result
     * lies within 2^-7 of the sum of the products' sizes. Chosen as CNR_KERNEL_F16_MATH is */
    CNR_KERNEL_BF16_MATH = 1 << 7
};
enum { CNR_F16_TERMS = 16, CNR_SPREAD_POSITIONS = 8 };

/* A kernel. Constant, owned by the plugin, valid until exit. It is found by (operator, device,
 * encodings) and may be asked for any node of that operator. */
typedef struct cnr_kernel {
    uint32_t size;
    uint32_t version; /* rises when the layout of prepared blobs changes */
    const char *name; /* "conv_f32_gemm" */
    const char *op;
    const char *device; /* device family or class name: "cpu", "opencl", "opencl-mali" */
    /* (optional: all dense) Names of the encodings that inputs may have, "sparse-csr",
     * NULL-terminated, in the order of the ports; "" for dense. */
    const char *const *encodings;
    uint32_t flags; /* CNR_KERNEL_... */
    cnr_status (*accepts)(const cnr_device *device, const cnr_node *node, cnr_accept *out);
    /* (optional: no blob) Size of the blob; then its bytes, from the constant inputs (host, dense
     * or in the encoding above). A blob is position-independent and depends on nothing but node,
     * device and version, so it can be stored, evicted and made again. */
    cnr_status (*prepare_size)(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err);
    cnr_status (*prepare)(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err);
    /* (optional) Workspace wanted, and a state (by host->alloc) shared read-only by all sessions of
     * the plan: geometry worked out once, a compiled program. plan_free releases it. */
    cnr_status (*plan)(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err);
    void (*plan_free)(const cnr_device *device, void *state);
    /* No allocation and no locks that other sessions could wait on. */
    cnr_status (*run)(const cnr_run *run, cnr_error *err);
    /* (optional: what the operator's cost says) Operations that run does for a whole
     * node, where its way takes others than the definition: a Winograd convolution multiplies less.
     * A multiply-add is two. */
    double (*flops)(const cnr_device *device, const cnr_node *node);
} cnr_kernel;

CNR_END_C
#endif
