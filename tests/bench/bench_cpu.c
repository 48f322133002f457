/* Times kernels of cpu-neon: matrix products and a dense layer's (beside OpenBLAS and oneDNN where
 * they are installed), and layers.
 *
 *     bench_cpu [threads [part of a row's name [fp16 or bf16]]]
 *
 * Each row is the least of many runs: machines that others use too are noisy. */
#include "plugins/cpu-neon/neoncall.h"
#include <time.h>

/* Seconds by the monotonic clock. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Minimum seconds of fn(arg): at least 5 runs, then as many as half a second holds. */
static double least(void (*fn)(void *), void *arg) {
    double best = 1e9;
    const double begin = now();
    for (int i = 0; i < 5 || (i < 2000 && now() - begin < 0.5); i++) {
        const double t = now();
        fn(arg);
        const double took = now() - t;
        if (took < best) best = took;
    }
    return best;
}

/* ---- a kernel, ready to run ---- */

/* A kernel that was planned for a node, ready to run. */
typedef struct ready {
    const cnr_kernel *kernel;
    cnr_run run;
    cnr_tensor out;
    cnr_tensor *outs[1];
} ready;

static cnr_device device;
static cnr_stream stream;
static uint32_t stores; /* kernels that do are taken where there is one */

/* The kernel's score, by which the best is chosen. */
static int32_t worth(const cnr_kernel *k, const cnr_accept *a) {
    const uint32_t so = kernel_stores(k);
    return so & ~stores ? 0 : a->score + (so ? 1000 : 0);
}

/* Plans the node's best kernel; 0: there is none. */
static int make_ready(ready *r, const cnr_node *node) {
    cnr_error err = CNR_ERROR_INIT;
    int32_t layout[4][16] = {{0}}, best = 0;
    cnr_space blob = {.size = sizeof blob}, space = {.size = sizeof space};
    for (int32_t i = 0; i < neon_state.n_kernels; i++) {
        const cnr_kernel *k = neon_state.kernels[i];
        cnr_accept a = {.size = sizeof a,
                        .in_block = layout[0],
                        .out_block = layout[1],
                        .in_class = layout[2],
                        .out_class = layout[3]};
        if (strcmp(k->op, node->desc->name) != 0 && strcmp(k->op, CNR_ANY_OP) != 0) continue;
        if (k->accepts(&device, node, &a) != CNR_OK || a.score <= 0 || worth(k, &a) <= best)
            continue;
        best = worth(k, &a);
        r->kernel = k;
    }
    if (!best) return 0;
    r->out = *node->outputs[0];
    r->outs[0] = &r->out;
    r->out.data = kernel_memory(cnr_dense_bytes(&r->out));
    r->run = (cnr_run){.size = sizeof r->run,
                       .range_axis = -1,
                       .node = node,
                       .outputs = r->outs,
                       .stream = &stream};
    if (r->kernel->prepare_size) r->kernel->prepare_size(&device, node, &blob, &err);
    if (blob.bytes) {
        r->run.blob_data = kernel_memory(blob.bytes);
        r->kernel->prepare(&device, node, r->run.blob_data, &err);
    }
    if (r->kernel->plan && r->kernel->plan(&device, node, &space, &r->run.state, &err) != CNR_OK)
        return 0;
    if (space.bytes) r->run.workspace_data = kernel_memory(space.bytes);
    return 1;
}

/* Runs a planned kernel once. */
static void run_ready(void *arg) {
    ready *r = arg;
    cnr_error err = CNR_ERROR_INIT;
    if (r->kernel->run(&r->run, &err) != CNR_OK) exit(1);
}

/* A node of operator `name` with these attributes and inputs, and its output's type; NULL: it can't
 * be made. */
static cnr_node *node_of(const char *name, const char *attrs, int32_t n,
                         const cnr_tensor *const *inputs) {
    const cnr_op *op = op_find(name);
    cnr_attr room[32];
    const cnr_attr *given[32];
    if (!op) return NULL;
    const int32_t n_attrs = op_parse(op, attrs, room, 32);
    for (int32_t i = 0; i < n_attrs; i++) given[i] = &room[i];
    return op_node(op, given, n_attrs, inputs, n, 1);
}

/* ---- products ---- */

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *,
                         int, float, float *, int);

typedef void (*sgemv_fn)(int, int, int, int, float, const float *, int, const float *, int, float,
                         float *, int);

/* oneDNN's, of row-major matrices; sizes and strides in 64 bits. */
typedef int (*dnnl_fn)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t,
                       const float *, int64_t, float, float *, int64_t);

/* A product m x k by k x n, and the peers' functions that compute it (NULL: not there). */
typedef struct blas_call {
    sgemm_fn sgemm;
    sgemv_fn sgemv;
    dnnl_fn dnnl;
    int m, n, k;
    const float *a, *b;
    float *c;
} blas_call;

/* One product by the BLAS library. */
static void run_blas(void *arg) {
    const blas_call *p = arg;
    p->sgemm(101, 111, 111, p->m, p->n, p->k, 1.0f, p->a, p->k, p->b, p->n, 0.0f, p->c, p->n);
}

/* One product by oneDNN. */
static void run_dnnl(void *arg) {
    const blas_call *p = arg;
    p->dnnl('N', 'N', p->m, p->n, p->k, 1.0f, p->a, p->k, p->b, p->n, 0.0f, p->c, p->n);
}

/* Rows of b, as a dense layer has them. */
static void run_gemv(void *arg) {
    const blas_call *p = arg;
    p->sgemv(101, 111, p->n, p->k, 1.0f, p->b, p->k, p->a, 1, 0.0f, p->c, 1);
}

/* The library that the variable or else `name` names, whose `set_threads` it calls with `threads`;
 * NULL: none. */
static void *open_library(const char *variable, const char *name, const char *set_threads,
                          int threads) {
    const char *path = getenv(variable);
    void *library = dlopen(path ? path : name, RTLD_NOW | RTLD_LOCAL);
    void (*set)(int) = NULL;
    if (library) *(void **)&set = dlsym(library, set_threads);
    if (set) set(threads);
    return library;
}

/* The functions of $OPENBLAS and $ONEDNN, or the system's libraries, set to `threads`; NULL where
 * there is none. */
static blas_call open_blas(int threads) {
    void *dnnl = open_library("ONEDNN", "libdnnl.so.2", "omp_set_num_threads", threads);
    void *library =
        open_library("OPENBLAS", "libopenblas.so.0", "openblas_set_num_threads", threads);
    blas_call call = {0};
    if (dnnl) *(void **)&call.dnnl = dlsym(dnnl, "dnnl_sgemm");
    if (!library) return call;
    *(void **)&call.sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&call.sgemv = dlsym(library, "cblas_sgemv");
    return call;
}

/* Prints a peer's GFLOPS (its time in seconds) and the part of them that ours reaches. */
static void print_peer(const char *name, double ours, double theirs, double flops) {
    printf("   %s %.1f, of which %.0f%%", name, flops / theirs * 1e-9, 100 * theirs / ours);
}

/* Times matrix products. */
static void products(const blas_call *blas, const char *only) {
    static const int sizes[][3] = {{1024, 1024, 1024}, {256, 729, 2400}, {384, 169, 2304},
                                   {512, 512, 1024},   {64, 3136, 576},  {512, 49, 4608},
                                   {2048, 2048, 2048}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        char a_dims[32], b_dims[32], name[64];
        ready r = {0};
        snprintf(name, sizeof name, "gemm %d,%d,%d", m, n, k);
        if (only && !strstr(name, only)) continue;
        snprintf(a_dims, sizeof a_dims, "%dx%d", m, k);
        snprintf(b_dims, sizeof b_dims, "%dx%d", k, n);
        const cnr_tensor *in[2] = {t_random(CNR_f32, a_dims, 1), t_random(CNR_f32, b_dims, 2)};
        cnr_node *node = node_of("gemm", "", 2, in);
        if (!node || !make_ready(&r, node)) continue;
        blas_call call = {blas->sgemm, NULL,        blas->dnnl,  m,         n,
                          k,           in[0]->data, in[1]->data, r.out.data};
        const double flops = 2.0 * m * n * k, before = least(run_ready, &r);
        const double dnnl = call.dnnl ? least(run_dnnl, &call) : 0, again = least(run_ready, &r);
        const double ours = before < again ? before : again;
        printf("%-28s %9.3f ms %7.1f GFLOP/s", name, ours * 1e3, flops / ours * 1e-9);
        if (call.dnnl) print_peer("oneDNN", ours, dnnl, flops);
        if (call.sgemm) print_peer("OpenBLAS", ours, least(run_blas, &call), flops);
        printf("\n");
    }
}

/* ---- layers ---- */

/* A layer of a known net. */
typedef struct layer {
    const char *name, *op, *x, *weight, *attrs;
} layer;

static const layer layers[] = {
    {"alexnet conv1 11x11 s4", "conv", "1x3x227x227", "96x3x11x11", "strides=4"},
    {"alexnet conv2 5x5 g2", "conv", "1x96x27x27", "256x48x5x5", "pads=2; group=2"},
    {"alexnet conv3 256-384 13", "conv", "1x256x13x13", "384x256x3x3", "pads=1"},
    {"3x3 64-64 56x56", "conv", "1x64x56x56", "64x64x3x3", "pads=1"},
    {"3x3 64-64 224x224", "conv", "1x64x224x224", "64x64x3x3", "pads=1"},
    {"3x3 512-512 28x28", "conv", "1x512x28x28", "512x512x3x3", "pads=1"},
    {"3x3 512-512 7x7", "conv", "1x512x7x7", "512x512x3x3", "pads=1"},
    {"1x1 256-64 56x56", "conv", "1x256x56x56", "64x256x1x1", ""},
    {"1x1 512-512 14x14", "conv", "1x512x14x14", "512x512x1x1", ""},
    {"depthwise 3x3 32 112", "conv", "1x32x112x112", "32x1x3x3", "pads=1; group=32"},
    {"depthwise 3x3 s2 64 112", "conv", "1x64x112x112", "64x1x3x3", "pads=1; strides=2; group=64"},
    {"squeezenet conv1 3x3 s2", "conv", "1x3x227x227", "64x3x3x3", "strides=2"},
    {"squeezenet expand 3x3 16-64", "conv", "1x16x56x56", "64x16x3x3", "pads=1"},
    {"squeezenet conv10 1x1", "conv", "1x512x14x14", "1000x512x1x1", ""},
    {"lenet conv1 batch 64", "conv", "64x1x28x28", "20x1x5x5", ""},
    {"lenet conv2 batch 64", "conv", "64x20x12x12", "50x20x5x5", ""},
    {"lenet conv1 grad weight", "conv_grad_weight", "64x1x28x28", "20x1x5x5", ""},
    {"lenet conv2 grad weight", "conv_grad_weight", "64x20x12x12", "50x20x5x5", ""},
    {"lenet conv2 grad input", "conv_grad_input", "64x20x12x12", "50x20x5x5", ""},
    {"grad weight 3x3 16 32x32", "conv_grad_weight", "64x16x32x32", "16x16x3x3", "pads=1"},
    {"grad weight 3x3 64 8x8", "conv_grad_weight", "64x64x8x8", "64x64x3x3", "pads=1"},
    {"grad weight 3x3 s2 16-32", "conv_grad_weight", "64x16x32x32", "32x16x3x3",
     "pads=1; strides=2"},
    {"grad weight 1x1 64 32x32", "conv_grad_weight", "64x64x32x32", "16x64x1x1", ""},
    {"grad weight 3x3 depthwise 64", "conv_grad_weight", "64x64x32x32", "64x1x3x3",
     "pads=1; group=64"},
    {"grad input 3x3 16 32x32", "conv_grad_input", "64x16x32x32", "16x16x3x3", "pads=1"},
    {"grad input 3x3 64 8x8", "conv_grad_input", "64x64x8x8", "64x64x3x3", "pads=1"},
    {"grad input 3x3 s2 16-32", "conv_grad_input", "64x16x32x32", "32x16x3x3", "pads=1; strides=2"},
    {"grad input 1x1 64 32x32", "conv_grad_input", "64x64x32x32", "16x64x1x1", ""},
    {"grad input 3x3 depthwise 64", "conv_grad_input", "64x64x32x32", "64x1x3x3",
     "pads=1; group=64"},
    {"dense 9216-4096", "dense", "1x9216", "4096x9216", ""},
    {"dense 9216-4096 batch 16", "dense", "16x9216", "4096x9216", ""},
    {"max_pool 3x3 s2 64 113", "max_pool", "1x64x113x113", NULL, "kernel_shape=3; strides=2"},
    {"max_pool_grad lenet", "max_pool_grad", "64x20x24x24", NULL, "kernel_shape=2; strides=2"},
    {"global_average_pool 1000 14", "global_average_pool", "1x1000x14x14", NULL, ""},
    {"lrn 96 55", "lrn", "1x96x55x55", NULL, "size=5; alpha=0.0001; beta=0.75"},
    {"softmax 1000", "softmax", "1x1000", NULL, ""},
    {"relu 64 112", "relu", "1x64x112x112", NULL, ""},
    {"tanh 64 112", "tanh", "1x64x112x112", NULL, ""},
    {"add 64 112", "add", "1x64x112x112", "1x64x112x112", ""},
    {"add channel", "add", "1x64x112x112", "64x1x1", ""},
};

/* The node of a layer with made-up operands, in the order that the operator has them; NULL: it
 * can't be made. */
static cnr_node *layer_node(const layer *l) {
    cnr_tensor *x = t_random(CNR_f32, l->x, 3);
    cnr_tensor *w = l->weight ? t_random(CNR_f32, l->weight, 4) : NULL;
    const cnr_tensor *in[3] = {x, w, NULL};
    if (w) w->flags |= CNR_TENSOR_CONST;
    if (!strstr(l->op, "_grad")) return node_of(l->op, l->attrs, w ? 2 : 1, in);
    cnr_node *forward = node_of(w ? "conv" : "max_pool", l->attrs, w ? 2 : 1, in);
    if (!forward) return NULL;
    cnr_tensor *dy = t_copy(forward->outputs[0]);
    t_alloc(dy);
    for (int64_t i = 0; i < cnr_count(dy); i++) t_set(dy, i, (double)(i % 7) - 3);
    in[0] = dy;
    in[1] = strcmp(l->op, "conv_grad_input") == 0 ? w : x;
    in[2] = strcmp(l->op, "conv_grad_input") == 0 ? x : w;
    return node_of(l->op, l->attrs, w ? 3 : 2, in);
}

/* Times the layers. */
static void all_layers(const blas_call *blas, const char *only) {
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        ready r = {0};
        cnr_cost cost = {0};
        if (only && !strstr(layers[i].name, only)) continue;
        cnr_node *node = layer_node(&layers[i]);
        if (!node || !make_ready(&r, node)) {
            printf("%-28s no kernel\n", layers[i].name);
            continue;
        }
        if (node->desc->cost) node->desc->cost(node, &cost);
        const double t = least(run_ready, &r);
        const double flops = 2.0 * (double)cost.macs + (double)cost.flops;
        printf("%-28s %9.3f ms %7.1f GFLOP/s   %s", layers[i].name, t * 1e3, flops / t * 1e-9,
               r.kernel->name);
        const cnr_tensor *x = node->inputs[0], *w = node->inputs[node->n_inputs - 1];
        blas_call call = {NULL,           blas->sgemv, NULL,    1,         (int)w->dim[0],
                          (int)x->dim[1], x->data,     w->data, r.out.data};
        if (blas->sgemv && strcmp(layers[i].op, "dense") == 0 && x->dim[0] == 1)
            print_peer("OpenBLAS", t, least(run_gemv, &call), flops);
        printf("\n");
    }
}

int main(int argc, char **argv) {
    cnr_error err = CNR_ERROR_INIT;
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const char *only = argc > 2 ? argv[2] : NULL, *isa = getenv("CNNRUN_CPU_ISA");
    const char *type = argc > 3 ? argv[3] : "";
    stores = !strcmp(type, "fp16") ? CNR_KERNEL_F16 : !strcmp(type, "bf16") ? CNR_KERNEL_BF16 : 0;
    neon_open();
    if (!isa || !*isa || !neon_use_isa(isa[0] == 'g' ? 0 : strcmp(isa, "avx2") ? 2 : 1))
        if (!neon_use_isa(2) && !neon_use_isa(1)) neon_use_isa(0);
    cnr_device_options options = {.size = sizeof options, .threads = threads};
    device = (cnr_device){.size = sizeof device, .cls = neon_state.cls, .name = "cpu"};
    neon_state.cls->open(&device, &options, &err);
    neon_state.cls->stream_open(&device, &stream, &err);
    printf("%s, %d threads\n", neon_state.isa, threads);
    const blas_call blas = open_blas(threads);
    products(&blas, only);
    all_layers(&blas, only);
    neon_state.cls->close(&device);
    return 0;
}
