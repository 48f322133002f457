/* Times a sparse matrix by a vector beside the dense one, in turns: cold, with 1 GiB read between
 * runs, and warm, behind three other runs of the same (caches that take what others drop fill by
 * the second).
 *
 *     bench_sparse [--json] [rows columns keep [rounds [threads]]]       4096 9216 0.15 9 1
 *
 * Each number is the least of the rounds, the median beside it; "over" is dense by sparse, of the
 * least. */
#include "plugins/int8/int8call.h"
#include <sys/mman.h>
#include <time.h>

enum { SWEEP = 1 << 30, MOST = 64, FORMS = 6 };

/* What is measured: sizes of the weight and its kept part. */
typedef struct shape {
    int64_t rows, columns;
    double keep;
    int rounds, threads;
    bool json;
} shape;

/* A kernel that was planned, and its times with cold and warm caches. */
typedef struct ready {
    const char *name;
    const cnr_kernel *kernel;
    cnr_node *node;
    cnr_run run;
    cnr_tensor out, *outs[1];
    cnr_mem blob;
    double cold[MOST], warm[MOST]; /* milliseconds of each round */
} ready;

static cnr_device device;
static cnr_stream stream;
static char *sweep;

/* Seconds by the monotonic clock. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Memory as the device gives it to blobs: both sides read large pages. */
static void *room(cnr_mem *mem, uint64_t bytes) {
    cnr_error err = CNR_ERROR_INIT;
    *mem = (cnr_mem){.bytes = bytes};
    if (device.cls->alloc(&device, mem, &err) != CNR_OK) exit(1);
    return (char *)mem->handle + mem->offset;
}

/* Plans `kernel` for a weight and input. */
static void make_ready(ready *r, const char *name, const cnr_kernel *kernel, const cnr_tensor *x,
                       const cnr_tensor *w) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_space blob = {.size = sizeof blob}, space = {.size = sizeof space};
    const cnr_tensor *in[] = {x, w};
    *r = (ready){.name = name,
                 .kernel = kernel,
                 .node = op_node(op_find("dense"), NULL, 0, in, 2, 1)};
    r->out = *r->node->outputs[0];
    r->outs[0] = &r->out;
    r->out.data = kernel_memory(cnr_dense_bytes(&r->out));
    r->run = (cnr_run){.size = sizeof r->run,
                       .range_axis = -1,
                       .node = r->node,
                       .outputs = r->outs,
                       .stream = &stream};
    if (kernel->prepare_size && kernel->prepare_size(&device, r->node, &blob, &err) != CNR_OK)
        exit(1);
    if (blob.bytes) {
        r->run.blob_data = room(&r->blob, blob.bytes);
        if (kernel->prepare(&device, r->node, r->run.blob_data, &err) != CNR_OK) exit(1);
    }
    if (kernel->plan && kernel->plan(&device, r->node, &space, &r->run.state, &err) != CNR_OK)
        exit(1);
    if (space.bytes) r->run.workspace_data = kernel_memory(space.bytes);
}

/* Runs the kernel once and returns the milliseconds that it took; exits on an error. */
static double timed(ready *r) {
    cnr_error err = CNR_ERROR_INIT;
    const double t = now();
    if (r->kernel->run(&r->run, &err) != CNR_OK) exit(1);
    return (now() - t) * 1e3;
}

static volatile long swept; /* stored so that the compiler keeps the reads */

/* Reads enough memory to empty the caches. */
static void read_all(void) {
    long sum = 0;
    for (int64_t i = 0; i < SWEEP; i += 64) sum += sweep[i];
    swept = sum;
}

/* Compares two doubles, for qsort. */
static int order(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Prints a kernel's times beside the dense one's. */
static void tell(const shape *s, ready *r, const ready *dense, double bytes) {
    qsort(r->cold, (size_t)s->rounds, sizeof(double), order);
    qsort(r->warm, (size_t)s->rounds, sizeof(double), order);
    const double cold = dense->cold[0] / r->cold[0], warm = dense->warm[0] / r->warm[0];
    printf(s->json
               ? "{\"form\":\"%s\",\"kernel\":\"%s\",\"rows\":%lld,\"columns\":%lld,\"keep\":%g,"
                 "\"threads\":%d,\"megabytes\":%.1f,\"ms_cold\":%.3f,\"ms_cold_median\":%.3f,"
                 "\"ms_warm\":%.3f,\"ms_warm_median\":%.3f,\"over_cold\":%.2f,\"over_warm\":%.2f}\n"
               : "%-18s %-14s %lldx%lld at %g, %d threads  %7.1f MB  cold %7.3f (%7.3f)  warm "
                 "%7.3f "
                 "(%7.3f) ms  over dense %.2f cold, %.2f warm\n",
           r->name, r->kernel->name, (long long)s->rows, (long long)s->columns, s->keep, s->threads,
           bytes / 1e6, r->cold[0], r->cold[s->rounds / 2], r->warm[0], r->warm[s->rounds / 2],
           cold, warm);
}

/* Encodes the weight with these options. */
static cnr_tensor *encode(const cnr_encoding *e, const cnr_tensor *dense, double keep,
                          int64_t block, int64_t values) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_attr a[] = {{.type = CNR_ATTR_FLOAT, .set = 1, .f = keep},
                          {.set = 1, .i = block},
                          {.set = 1, .i = values},
                          {.set = 1, .i = 5},
                          {.set = 1}};
    const cnr_attr *attrs[] = {&a[0], &a[1], &a[2], &a[3], &a[4]};
    cnr_tensor *t = int8_const(t_copy(dense));
    if (e->encode_size(dense, attrs, &t->bytes, &err) != CNR_OK) exit(1);
    t->data = kernel_memory(t->bytes);
    t->encoding = cnri_intern("sparse-csr");
    if (e->encode(dense, attrs, t->data, t->bytes, &err) != CNR_OK) exit(1);
    return t;
}

/* The kernel of that name, or NULL. */
static const cnr_kernel *kernel_named(const char *name) {
    for (int32_t i = 0; i < neon_state.n_kernels; i++)
        if (strcmp(neon_state.kernels[i]->name, name) == 0) return neon_state.kernels[i];
    exit(1);
}

/* Times all forms of one weight. */
static void measure(const shape *s) {
    static const struct {
        const char *name;
        int64_t block, values;
    } forms[FORMS] = {{"rows, f32", 1, 0},        {"rows, f16", 1, 1},
                      {"rows, int8", 1, 2},       {"blocks of 4, f32", 4, 0},
                      {"blocks of 4, f16", 4, 1}, {"blocks of 4, int8", 4, 2}};
    static ready all[FORMS + 1];
    char text[64];
    cnr_mem dense_mem;
    snprintf(text, sizeof text, "1x%lld", (long long)s->columns);
    const cnr_tensor *x = t_random(CNR_f32, text, 1);
    snprintf(text, sizeof text, "%lldx%lld", (long long)s->rows, (long long)s->columns);
    cnr_tensor *w = int8_const(t_random(CNR_f32, text, 2));
    const cnr_kernel *dot = kernel_named("dense_f32_dot");
    int8_use(neon_state.isa);
    make_ready(&all[0], "dense", dot, x, w);
    for (int i = 0; i < FORMS; i++)
        make_ready(&all[i + 1], forms[i].name, kernel_named("dense_f32_csr"), x,
                   encode(int8_encodings[0], w, s->keep, forms[i].block, forms[i].values));
    void *copy = room(&dense_mem, cnr_dense_bytes(w));
    memcpy(copy, w->data, cnr_dense_bytes(w));
    w->data = copy;
    sweep = mmap(NULL, SWEEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sweep == MAP_FAILED) exit(1);
    memset(sweep, 1, SWEEP);
    for (int round = 0; round < s->rounds; round++)
        for (int i = 0; i <= FORMS; i++) {
            read_all();
            all[i].cold[round] = timed(&all[i]);
            for (int k = 0; k < 2; k++) timed(&all[i]);
            all[i].warm[round] = timed(&all[i]);
        }
    for (int i = 0; i <= FORMS; i++)
        tell(s, &all[i], &all[0], i ? (double)all[i].blob.bytes : (double)cnr_dense_bytes(w));
}

int main(int argc, char **argv) {
    cnr_error err = CNR_ERROR_INIT;
    shape s = {4096, 9216, 0.15, 9, 1, argc > 1 && strcmp(argv[1], "--json") == 0};
    argv += s.json;
    argc -= s.json;
    if (argc > 3) s = (shape){atoll(argv[1]), atoll(argv[2]), atof(argv[3]), 9, 1, s.json};
    if (argc > 4) s.rounds = atoi(argv[4]) < MOST ? atoi(argv[4]) : MOST;
    if (argc > 5) s.threads = atoi(argv[5]);
    int8_open("sparse-csr");
    if (!neon_use_isa(2) && !neon_use_isa(1)) neon_use_isa(0);
    cnr_device_options options = {.size = sizeof options, .threads = s.threads};
    device = (cnr_device){.size = sizeof device, .cls = neon_state.cls, .name = "cpu"};
    if (device.cls->open(&device, &options, &err) != CNR_OK) return 1;
    stream = (cnr_stream){.size = sizeof stream, .device = &device};
    if (device.cls->stream_open(&device, &stream, &err) != CNR_OK) return 1;
    measure(&s);
    return 0;
}
