/* Sums over the group as operators: one starts when its inputs are ready, others wait for parts of
 * it. Without an open group they copy. */
#include "group.h"

static const cnr_attr_spec begin_attrs[] = {{.name = "multiplier",
                                             .type = CNR_ATTR_FLOAT,
                                             .default_f = 1,
                                             .help = "factor of each element before the sum"}};
static const cnr_port begin_in[] = {{.name = "x",
                                     .flags = CNR_PORT_VARIADIC,
                                     .min = 1,
                                     .help = "all f32 or all f64, of any shapes"}};
static const cnr_port begin_out[] = {
    {.name = "y", .help = "the elements of all inputs, one after another, while they are summed"}};

/* Output: one vector with all inputs, one behind the other. */
static cnr_status begin_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int64_t n = 0;
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const int64_t count = cnr_count(node->inputs[i]);
        const int32_t dtype = node->inputs[i]->dtype;
        if ((dtype != CNR_f32 && dtype != CNR_f64) || dtype != node->inputs[0]->dtype)
            return group_host->fail(err, CNR_E_SHAPE, node->name,
                                    "input %d: want f32 or f64, as input 0", (int)i);
        n = n < 0 || count < 0 || count > INT32_MAX - n ? -1 : n + count;
        if (count >= 0 && n < 0)
            return group_host->fail(err, CNR_E_LIMIT, node->name,
                                    "more than 2147483647 elements in one sum");
    }
    outputs[0]->dtype = node->inputs[0]->dtype;
    outputs[0]->rank = 1;
    outputs[0]->dim[0] = n;
    return CNR_OK;
}

/* A single input is summed where it is: gives one in-place alias, else none. (CNR_ALIAS_JOIN would
 * leave this node out of the plan.) */
static int32_t begin_aliases(const cnr_node *node, cnr_alias *to, int32_t max) {
    if (max < 1 || node->n_inputs != 1) return 0;
    to[0] = (cnr_alias){.kind = CNR_ALIAS_INPLACE};
    return 1;
}

/* y *= by, n elements. */
static void scale_floats(float *restrict y, float by, int64_t n) {
    for (int64_t k = 0; k < n; k++) y[k] *= by;
}
static void scale_doubles(double *restrict y, double by, int64_t n) {
    for (int64_t k = 0; k < n; k++) y[k] *= by;
}

/* Copies all scaled inputs to the output, and begins its sum over the group; a group of one process
 * sums nothing. */
static cnr_status begin_reference(const cnr_run *run, cnr_error *err) {
    const double scale = cnr_attr_float(run->node, "multiplier");
    const group_calls *calls = group_opened();
    const int32_t dtype = run->outputs[0]->dtype;
    const size_t each = dtype == CNR_f64 ? sizeof(double) : sizeof(float);
    char *y = run->outputs[0]->data;
    for (int32_t i = 0; i < run->node->n_inputs; i++) {
        const int64_t n = cnr_max(0, cnr_count(run->node->inputs[i])); /* known by now */
        const char *x = run->node->inputs[i]->data;
        if (x != y) memcpy(y, x, (size_t)n * each);
        if (dtype == CNR_f64) scale_doubles((double *)(void *)y, scale, n);
        else scale_floats((float *)(void *)y, (float)scale, n);
        y += (size_t)n * each;
    }
    return calls ? calls->sum_begin(run->outputs[0]->data, cnr_count(run->outputs[0]), dtype, err)
                 : CNR_OK;
}

const cnr_op group_sum_begin = {
    CNR_OP_SIZES,
    .name = "group_sum_begin",
    .summary = "Begins to sum its inputs over the processes of the group.",
    CNR_OP_ATTRS(begin_attrs),
    CNR_OP_PORTS(begin_in, begin_out),
    .infer = begin_infer,
    .buffer_aliases = begin_aliases,
    .reference = begin_reference,
};

static const cnr_attr_spec wait_attrs[] = {{.name = "offset",
                                            .type = CNR_ATTR_INT,
                                            .flags = CNR_ATTR_BOUNDED,
                                            .min = 0,
                                            .max = INT32_MAX,
                                            .help = "index of the first element of the part"},
                                           {.name = "dims",
                                            .type = CNR_ATTR_INTS,
                                            .flags = CNR_ATTR_BOUNDED,
                                            .min = 0,
                                            .max = INT32_MAX,
                                            .help = "dimensions of the output; none: rank 0"}};
static const cnr_port wait_in[] = {{.name = "x", .help = "the output of a group_sum_begin"}};
static const cnr_port wait_out[] = {{.name = "y", .help = "a part of the sum"}};

/* Shape: the part of the sum that `dims` and `offset` name. */
static cnr_status wait_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int64_t n, count = 1;
    const int64_t *shape = cnr_attr_ints(node, "dims", &n);
    const int64_t offset = cnr_attr_int(node, "offset"), all = cnr_count(node->inputs[0]);
    const int32_t dtype = node->inputs[0]->dtype;
    if ((dtype != CNR_f32 && dtype != CNR_f64) || node->inputs[0]->rank != 1 || n > CNR_MAX_RANK)
        return group_host->fail(err, CNR_E_SHAPE, node->name,
                                "want x as f32 or f64 of rank 1, and at most %d axes",
                                (int)CNR_MAX_RANK);
    outputs[0]->dtype = dtype;
    outputs[0]->rank = (int32_t)n;
    for (int64_t i = 0; i < n; i++) {
        outputs[0]->dim[i] = shape[i];
        count =
            shape[i] && count > INT32_MAX / shape[i] ? (int64_t)INT32_MAX + 1 : count * shape[i];
    }
    if (all >= 0 && (count > INT32_MAX || offset + count > all))
        return group_host->fail(err, CNR_E_SHAPE, node->name,
                                "wants elements %lld to %lld of a sum of %lld", (long long)offset,
                                (long long)(offset + count), (long long)all);
    return CNR_OK;
}

/* The sum of a single gradient is that gradient: gives one in-place alias, else none. */
static int32_t wait_aliases(const cnr_node *node, cnr_alias *to, int32_t max) {
    if (max < 1 || cnr_count(node->inputs[0]) != cnr_count(node->outputs[0])) return 0;
    to[0] = (cnr_alias){.kind = CNR_ALIAS_INPLACE};
    return 1;
}

/* Waits for the sum, and copies the part of it that begins at `offset` to the output. */
static cnr_status wait_reference(const cnr_run *run, cnr_error *err) {
    const group_calls *calls = group_opened();
    char *x = run->node->inputs[0]->data;
    const size_t each = run->outputs[0]->dtype == CNR_f64 ? sizeof(double) : sizeof(float);
    if (calls) CNR_TRY(calls->sum_wait(x, err));
    x += (size_t)cnr_attr_int(run->node, "offset") * each;
    if (run->outputs[0]->data != x)
        memcpy(run->outputs[0]->data, x, (size_t)cnr_max(0, cnr_count(run->outputs[0])) * each);
    return CNR_OK;
}

const cnr_op group_sum_wait = {
    CNR_OP_SIZES,
    .name = "group_sum_wait",
    .summary = "Waits for a sum over the group and takes a part of it.",
    CNR_OP_ATTRS(wait_attrs),
    CNR_OP_PORTS(wait_in, wait_out),
    .infer = wait_infer,
    .buffer_aliases = wait_aliases,
    .reference = wait_reference,
};
