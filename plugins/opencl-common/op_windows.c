/* Stages of a detector that slides windows: their variance, ferns, correlation of patches. */
#include "support.h"

#include "correlation.cl.h"
#include "windows.cl.h"

enum { LINE = 128, TM = 4, TN = 4 };

/* What plan keeps for run: up to three codes, launched one after the other. */
typedef struct windows_state {
    const ocl_code *code[3];
} windows_state;

/* 1: the inputs that are given are dense and have these types, one for each port, and no number of
 * elements exceeds an int. */
static int typed(const cnr_node *node, const int32_t *dtypes) {
    if (cnr_count(node->outputs[0]) > INT32_MAX / 8) return 0;
    for (int32_t i = 0; i < cnr_own_inputs(node); i++) {
        const cnr_tensor *t = node->inputs[i];
        if (t && (!cnr_is_plain(t, 1u << dtypes[i]) || cnr_count(t) > INT32_MAX / 8)) return 0;
    }
    return 1;
}

/* Takes a node whose inputs are dense and of these types; else out tells why not. */
static cnr_status take(const cnr_node *node, const int32_t *dtypes, cnr_accept *out) {
    if (!typed(node, dtypes))
        return cnr_refuse(out, "dense inputs are wanted, of sizes that fit an int");
    cnr_take(node, out, 500);
    out->ranges = 1;
    return CNR_OK;
}

/* Finds n device codes of `source` by name; *state keeps them in this order. */
static cnr_status codes_of(const cnr_device *device, const cnr_node *node, const ocl_source *source,
                           const char *const *names, int32_t n, void **state, cnr_error *err) {
    ocl_plan p;
    windows_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    for (int32_t i = 0; i < n; i++) ocl_plan_code(&p, source, names[i], &s->code[i]);
    return ocl_plan_end(&p, state);
}

/* *begin and *end receive the run's range along the output's axis 0: all of it where the run has
 * none. */
static void range_of(const cnr_run *run, int64_t *begin, int64_t *end) {
    *begin = run->range_axis < 0 ? 0 : run->range_begin;
    *end = run->range_axis < 0 ? run->outputs[0]->dim[0] : run->range_end;
}

static const ocl_source windows_source = OCL_SOURCE("common/windows.cl", windows_cl);
static const ocl_source correlation_source = OCL_SOURCE("common/correlation.cl", correlation_cl);

/* ---- window_variance ---- */

/* Takes window_variance of at most 2^26 elements; for others out->why says why. */
static cnr_status accepts_variance(const cnr_device *device, const cnr_node *node,
                                   cnr_accept *out) {
    static const int32_t dtypes[] = {CNR_u8, CNR_i32};
    (void)device;
    if (cnr_count(node->inputs[0]) > 1 << 26) return cnr_refuse(out, "a smaller picture is wanted");
    return take(node, dtypes, out);
}

/* Finds the three codes of window_variance and the bytes of workspace for its sums. */
static cnr_status plan_variance(const cnr_device *device, const cnr_node *node,
                                cnr_space *workspace, void **state, cnr_error *err) {
    static const char *const names[] = {"sum_rows", "sum_columns", "window_variance"};
    const cnr_tensor *x = node->inputs[0];
    workspace->bytes = (uint64_t)((x->dim[0] + 1) * (x->dim[1] + 1)) * 12;
    workspace->alignment = 64;
    return codes_of(device, node, &windows_source, names, 3, state, err);
}

/* Queues the sums of rows and columns, and the variance of each window in the range. */
static cnr_status run_variance(const cnr_run *run, cnr_error *err) {
    const windows_state *s = run->state;
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t h = x->dim[0], w = x->dim[1];
    int64_t begin, end;
    ocl_call call;
    range_of(run, &begin, &end);
    ocl_begin(&call, run->stream, s->code[0]);
    ocl_arg_buffer(&call, &x->mem);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_int(&call, w);
    ocl_arg_int(&call, h);
    CNR_TRY(ocl_launch(&call, LINE, h, 1, LINE, err));
    ocl_begin(&call, run->stream, s->code[1]);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_int(&call, w);
    ocl_arg_int(&call, h);
    CNR_TRY(ocl_launch(&call, w + 1, 1, 1, 32, err));
    ocl_begin(&call, run->stream, s->code[2]);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_buffer(&call, &run->node->inputs[1]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_int(&call, w);
    ocl_arg_int(&call, h);
    ocl_arg_int(&call, begin);
    ocl_arg_int(&call, end);
    return ocl_launch(&call, end - begin, 1, 1, LINE, err);
}

OCL_KERNEL(ocl_window_variance, "window_variance_u8", "window_variance",
           .accepts = accepts_variance, .plan = plan_variance, .run = run_variance);

/* ---- random_ferns ---- */

/* Takes random_ferns of the types that its operator has. */
static cnr_status accepts_ferns(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    static const int32_t dtypes[] = {CNR_u8, CNR_i32, CNR_f32, CNR_f32, CNR_f32};
    (void)device;
    return take(node, dtypes, out);
}

/* Builds the code of random_ferns. */
static cnr_status plan_ferns(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                             void **state, cnr_error *err) {
    static const char *const names[] = {"random_ferns"};
    (void)workspace;
    return codes_of(device, node, &windows_source, names, 1, state, err);
}

/* Queues random_ferns over the run's range of windows. */
static cnr_status run_ferns(const cnr_run *run, cnr_error *err) {
    const windows_state *s = run->state;
    const cnr_tensor *const *in = run->node->inputs, *gate = cnr_own_input(run->node, 4);
    const union {
        cl_float f;
        cl_int i;
    } least = {(cl_float)cnr_attr_float(run->node, "least")};
    int64_t begin, end;
    ocl_call call;
    range_of(run, &begin, &end);
    const int64_t size[4] = {in[0]->dim[1], in[0]->dim[0], begin, end};
    const int64_t ferns[4] = {in[2]->dim[0], in[2]->dim[1], in[3]->dim[1], gate != NULL};
    ocl_begin(&call, run->stream, s->code[0]);
    for (int32_t i = 0; i < 4; i++) ocl_arg_buffer(&call, &in[i]->mem);
    ocl_arg_buffer(&call, gate ? &gate->mem : &in[3]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, size, 4);
    ocl_arg_longs(&call, ferns, 4);
    ocl_arg_ints(&call, &least.i, 1);
    return ocl_launch(&call, end - begin, 1, 1, LINE, err);
}

OCL_KERNEL(ocl_random_ferns, "random_ferns_u8", "random_ferns", .accepts = accepts_ferns,
           .plan = plan_ferns, .run = run_ferns);

/* ---- normalized_cross_correlation ---- */

/* Takes correlation of f32 rows. */
static cnr_status accepts_correlation(const cnr_device *device, const cnr_node *node,
                                      cnr_accept *out) {
    static const int32_t dtypes[] = {CNR_f32, CNR_f32};
    (void)device;
    return take(node, dtypes, out);
}

/* Finds the two codes of correlation and the bytes of workspace for the moments. */
static cnr_status plan_correlation(const cnr_device *device, const cnr_node *node,
                                   cnr_space *workspace, void **state, cnr_error *err) {
    static const char *const names[] = {"row_moments", "correlation"};
    workspace->bytes =
        (uint64_t)(node->inputs[0]->dim[0] + node->inputs[1]->dim[0]) * 2 * sizeof(float);
    return codes_of(device, node, &correlation_source, names, 2, state, err);
}

/* Queues the moments of the rows of both inputs, and their correlations in the range. */
static cnr_status run_correlation(const cnr_run *run, cnr_error *err) {
    const windows_state *s = run->state;
    const cnr_tensor *a = run->node->inputs[0], *b = run->node->inputs[1];
    const int64_t m = a->dim[0], n = b->dim[0], k = a->dim[1];
    int64_t begin, end;
    ocl_call call;
    range_of(run, &begin, &end);
    if (m == 0 || n == 0) return CNR_OK;
    for (int32_t i = 0; i < 2; i++) {
        ocl_begin(&call, run->stream, s->code[i]);
        ocl_arg_buffer(&call, &a->mem);
        ocl_arg_buffer(&call, &b->mem);
        ocl_arg_buffer(&call, run->workspace);
        if (i) ocl_arg_buffer(&call, &run->outputs[0]->mem);
        ocl_arg_int(&call, m);
        ocl_arg_int(&call, n);
        ocl_arg_int(&call, k);
        if (i == 0) {
            CNR_TRY(ocl_launch(&call, m + n, 1, 1, 32, err));
            continue;
        }
        ocl_arg_int(&call, begin);
        ocl_arg_int(&call, end);
    }
    return ocl_launch(&call, cnr_div_up(n, TN), cnr_div_up(end - begin, TM), 1, 32, err);
}

OCL_KERNEL(ocl_correlation, "correlation_f32", "normalized_cross_correlation",
           .accepts = accepts_correlation, .plan = plan_correlation, .run = run_correlation);
