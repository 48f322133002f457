/* Kernels: how one device computes one operator, in stages: accepts, prepare, plan, run. Encodings
 * of the weights that kernels read. */
#pragma once

#include <cnnrun/device.h>
#include <cnnrun/op.h>

/* A kernel's answer to whether it can run a node. The host presets all fields: block lists to what
 * the neighbours offer (0 or 1: plain), classes to the device's class 0, epilogue to 0. */
typedef struct cnr_accept {
    uint32_t size;
    int32_t score; /* 0: no; 1 to 1000: yes, higher is preferred at equal cost */
    /* number of fused operators: the first entries of node->epilogue that the kernel computes
     * itself */
    int32_t epilogue;
    uint32_t ranges;   /* bit a: run accepts a range on axis a of output 0 */
    uint32_t prepared; /* bit i: prepare consumes input i (i < 32), and run does not need it */
    uint32_t flags;    /* CNR_ACCEPT_... */
    double cost_ns;    /* estimated time of a run; 0: unknown */
    /* Channel block that the kernel needs for each input, and produces for each output. */
    int32_t *in_block, *out_block;
    int32_t *in_class, *out_class; /* memory class of each, on this device */
    const char *why;               /* (optional) static text: reason for a score of 0 */
} cnr_accept;

/* The kernel's time is simulated from figures for other operators: results say
 * "extrapolated". */
enum { CNR_ACCEPT_EXTRAPOLATED = 1 << 0 };

/* Memory that a prepared blob or a workspace needs. */
typedef struct cnr_space {
    uint32_t size;
    uint32_t alignment; /* in bytes; 0: that of the memory class */
    uint64_t bytes;     /* 0: no memory */
    int32_t memory_class;
    int64_t width, height; /* pixels, for image classes */
} cnr_space;

/* One call of a kernel. Its contents are valid during the call only. */
typedef struct cnr_run {
    uint32_t size;
    /* Axis of a partial run: only [range_begin, range_end) on it is computed. -1: all of output
     * 0. */
    int32_t range_axis;
    int64_t range_begin, range_end;
    const cnr_node *node;       /* tensors have data (host memory) and mem (device memory) */
    cnr_tensor *const *outputs; /* as node->outputs; run may lower dim[] of DYNAMIC ones */
    const cnr_mem *blob;        /* the prepared blob, on the device; NULL: there is none */
    const cnr_mem *workspace;   /* NULL: there is none */
    /* host addresses of blob and workspace, if the memory is host-visible */
    void *blob_data, *workspace_data;
    void *state; /* the state that plan returned */
    /* Stream for the kernel's work. On a CPU the work is finished when run returns. */
    cnr_stream *stream;
} cnr_run;

/* Value of cnr_kernel.op for a kernel that may compute nodes of any operator. It is asked after the
 * operator's own kernels. Its accepts decides by the operator's descriptor, such as ELEMENTWISE
 * with apply_f32. */
#define CNR_ANY_OP "*"

/* Value of cnr_kernel.op for a kernel that computes regions, which the class of its device claims.
 * Its node has a subgraph. The node's inputs are the subgraph's first n_inputs values, and its
 * outputs are the values that other nodes read. All of them are plain and in class 0 unless accepts
 * sets otherwise. A kernel with prepare consumes all constants there. The nodes' own references
 * serve as the reference of a region. */
#define CNR_REGION "(region)"

enum {
    /* A baseline for comparison: it runs only if an option, a policy or a placement names it. */
    CNR_KERNEL_BY_NAME_ONLY = 1 << 0,
    /* prepare stores weights in this type. Such a kernel is a candidate only if
     * cnr_load_options.weights_type selects the type, or a user names the kernel. It is then
     * preferred to kernels that store weights unchanged. */
    CNR_KERNEL_F16 = 1 << 1,
    CNR_KERNEL_BF16 = 1 << 2,
    /* The kernel stores weights in f16 and multiplies in f16. Sums of up to CNR_F16_TERMS products
     * are f16; these sums are added in f32. The error of a result is at most (CNR_F16_TERMS + 2) *
     * 2^-11 times the sum of the products' absolute values. Such a kernel is a candidate only if
     * cnr_load_options.arithmetic selects the type, or a user names the kernel. */
    CNR_KERNEL_F16_MATH = 1 << 3,
    /* The kernel was never run on its hardware; the commands `show` and `run` tell the user. */
    CNR_KERNEL_UNTESTED = 1 << 4,
    /* Rules for NaN and infinity. By default a result is NaN where the reference's is NaN, infinite
     * where it is infinite, and finite elsewhere. Denormals may be read and written as 0. Constant
     * weights are finite, so kernels may multiply them by padding. This flag relaxes the rules if
     * inputs hold NaN or infinities, since Winograd transforms mix the positions of a tile. Results
     * up to CNR_SPREAD_POSITIONS positions away, in any channel of the same sample, may then be NaN
     * or infinite too, and infinities may become NaN. */
    CNR_KERNEL_SPREADS_NAN = 1 << 5,
    /* The kernel may skip products with a weight of 0, so that 0 times NaN or infinity is 0. */
    CNR_KERNEL_SKIPS_ZEROS = 1 << 6,
    /* Operands are rounded to bf16 and multiplied; sums are f32, denormals may be 0. The error of a
     * result is at most 2^-7 times the sum of the products' absolute values. Selected in the same
     * way as CNR_KERNEL_F16_MATH. */
    CNR_KERNEL_BF16_MATH = 1 << 7
};
enum { CNR_F16_TERMS = 16, CNR_SPREAD_POSITIONS = 8 };

/* A kernel. The plugin owns this constant struct, which stays valid until exit. The host finds it
 * by operator, device and encodings, and may offer it any node of the operator. */
typedef struct cnr_kernel {
    uint32_t size;
    uint32_t version; /* increases when the layout of prepared blobs changes */
    const char *name; /* such as "conv_f32_gemm" */
    const char *op;
    const char *device; /* device family or class: "cpu", "opencl", "opencl-mali" */
    /* (optional: all dense) Encodings that the inputs may have, in the order of the ports:
     * "sparse-csr", or "" for dense. NULL-terminated. */
    const char *const *encodings;
    uint32_t flags; /* CNR_KERNEL_... */
    cnr_status (*accepts)(const cnr_device *device, const cnr_node *node, cnr_accept *out);
    /* (optional: no blob) prepare_size gives the size of the blob; prepare writes its bytes from
     * the constant inputs, which are on the host, dense or in the encoding above. A blob is
     * position-independent and depends only on node, device and version: the host may store it,
     * evict it and make it again. */
    cnr_status (*prepare_size)(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err);
    cnr_status (*prepare)(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err);
    /* (optional) Sets the size of the workspace, and a state that all sessions of the plan share
     * read-only, such as precomputed geometry or a compiled program. The state comes from
     * host->alloc; plan_free releases it. */
    cnr_status (*plan)(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err);
    void (*plan_free)(const cnr_device *device, void *state);
    /* Computes the node. It must not allocate memory or take locks that block other sessions. */
    cnr_status (*run)(const cnr_run *run, cnr_error *err);
    /* (optional: the operator's cost) Number of operations that run does for a whole node, if its
     * algorithm differs from the definition: Winograd convolution multiplies less. A
     * multiply-accumulate is two. */
    double (*flops)(const cnr_device *device, const cnr_node *node);
} cnr_kernel;

/* ---- encodings: alternative storage of weights (compressed rows, quantised blocks) ---- */

/* The encoding only saves space: once decoded, any kernel reads it as dense. */
enum { CNR_ENCODING_STORED = 1 << 0 };

/* A way to store weights. */
typedef struct cnr_encoding {
    uint32_t size;
    uint32_t version;
    const char *name; /* such as "sparse-csr" */
    const char *summary;
    int32_t n_attrs; /* options of encode, described as an operator's attributes */
    uint32_t attr_spec_size;
    const cnr_attr_spec *attrs;
    /* encode_size computes the size in bytes of the encoded `dense` (host data), which may depend
     * on the data. encode writes that many bytes to `out`. `attrs` are in the order of the
     * schema. */
    cnr_status (*encode_size)(const cnr_tensor *dense, const cnr_attr *const *attrs,
                              uint64_t *bytes, cnr_error *err);
    cnr_status (*encode)(const cnr_tensor *dense, const cnr_attr *const *attrs, void *out,
                         uint64_t bytes, cnr_error *err);
    /* `encoded` has dtype and dim of the dense tensor, but data and bytes of the encoded form.
     * check refuses all data that decode or a kernel could fail on, since files may be malicious.
     * decode writes the dense data. */
    cnr_status (*check)(const cnr_tensor *encoded, cnr_error *err);
    cnr_status (*decode)(const cnr_tensor *encoded, void *dense, cnr_error *err);
    uint32_t flags; /* CNR_ENCODING_...; 0: for kernels that read the encoded data */
    /* (optional: all) Returns how many numbers of the dense tensor are stored. A kernel that reads
     * `encoded` multiplies only by these. */
    uint64_t (*stored_count)(const cnr_tensor *encoded);
} cnr_encoding;
