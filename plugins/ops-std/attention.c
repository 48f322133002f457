/* attention: scaled dot-product attention as one node; see attention.h. */
#include "attention.h"

#include "ops_kit.h"

static const cnr_attr_spec attrs[] =
    {{.name = "scale",
      .type = CNR_ATTR_FLOAT,
      .default_f = 1,
      .help = "factor of the products of q and k"},
     {.name = "sizes",
      .type = CNR_ATTR_INTS,
      .help = "three batch axes, rows of q, rows of k, columns of q, columns of v; none: those of "
              "the inputs"},
     {.name = "views",
      .type = CNR_ATTR_INTS,
      .help = "for each input its first element and the strides of its five axes, in elements; "
              "none: the inputs are dense"},
     {.name = "perm",
      .type = CNR_ATTR_INTS,
      .help = "order of the five axes of y; none: batch axes, rows, columns"},
     {.name = "zero_rows",
      .type = CNR_ATTR_BOOL,
      .help = "rows whose scores are all minus infinity, or not all numbers, have weights 0 "
              "instead of NaN"}};
static const cnr_port in[] = {{.name = "q", .help = "... M E"},
                              {.name = "k", .help = "... N E"},
                              {.name = "v", .help = "... N D"},
                              {.name = "bias",
                               .flags = CNR_PORT_OPTIONAL,
                               .help = "... M N, broadcast; added to the scaled products"},
                              {.name = "mask", .flags = CNR_PORT_OPTIONAL, .help = "like bias"}};
static const cnr_port out[] = {{.name = "y", .help = "... M D"}};

/* Rank of y: ATTENTION_RANK where sizes or an order are given, else the largest of the inputs', at
 * least 2. */
static int32_t rank_of(const cnr_node *node) {
    int32_t rank = 2;
    if (cnr_attr_find(node, "sizes")->n > 0 || cnr_attr_find(node, "perm")->n > 0)
        return ATTENTION_RANK;
    for (int32_t i = 0; i < cnr_own_inputs(node); i++)
        if (node->inputs[i] && node->inputs[i]->rank > rank) rank = node->inputs[i]->rank;
    return rank;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    attention a;
    cnr_tensor *y = outputs[0];
    int known = 1;
    for (int32_t i = 0; i < ATTENTION_INPUTS; i++) {
        if (i > ATTENTION_V && !cnr_own_input(node, i)) continue;
        CNR_TRY(ops_want(node, i, OPS_FLOATS, i > ATTENTION_V ? 0 : 1, CNR_MAX_RANK, err));
        if (node->inputs[i]->dtype != node->inputs[0]->dtype)
            return ops_fail(err, CNR_E_SHAPE, node, "%s must have the type of q", in[i].name);
        known &= kit_known(node->inputs[i]);
    }
    y->dtype = node->inputs[0]->dtype;
    y->rank = rank_of(node);
    for (int32_t i = 0; i < y->rank && i < CNR_MAX_RANK; i++) y->dim[i] = CNR_DIM_UNKNOWN;
    if (!known) return CNR_OK;
    const char *wrong = attention_of(node, &a);
    if (wrong) return ops_fail(err, CNR_E_SHAPE, node, "%s", wrong);
    const cnr_attr *perm = cnr_attr_find(node, "perm");
    const int64_t size[] = {a.batch[0], a.batch[1], a.batch[2], a.m, a.d};
    for (int32_t i = 0; i < y->rank; i++) {
        const int32_t axis = ATTENTION_RANK - y->rank + i;
        y->dim[i] = size[perm->n > 0 ? perm->ints[axis] : axis];
    }
    return CNR_OK;
}

/* Method cost: counts the multiply-adds of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    attention a;
    if (attention_of(node, &a)) return;
    c->macs = ops_mul(ops_mul((uint64_t)attention_batches(&a), (uint64_t)(a.m * a.n)),
                      (uint64_t)(a.e + a.d));
}

/* Method workspace: bytes of scratch that reference needs. */
static uint64_t workspace(const cnr_node *node) {
    attention a;
    return attention_of(node, &a) ? 0 : (uint64_t)a.n * sizeof(double);
}

/* One element of input `port`; 0 where it is not given. */
static double element(const cnr_run *run, const attention *a, int32_t port, int64_t b, int64_t row,
                      int64_t column) {
    const int64_t *step = a->step[port];
    if (!a->given[port]) return 0;
    return elem_f64(run->node->inputs[port],
                    a->at[port] + attention_first(a, step, b) + row * step[3] + column * step[4]);
}

/* p: the softmax of row `m` of the scores of batch `b`. */
static void weights(const cnr_run *run, const attention *a, int64_t b, int64_t m, double *p) {
    double best = -HUGE_VAL, sum = 0;
    for (int64_t n = 0; n < a->n; n++) {
        p[n] = 0;
        for (int64_t e = 0; e < a->e; e++)
            p[n] += element(run, a, ATTENTION_Q, b, m, e) * element(run, a, ATTENTION_K, b, n, e);
        p[n] = p[n] * (double)a->scale + element(run, a, ATTENTION_BIAS, b, m, n) +
               element(run, a, ATTENTION_MASK, b, m, n);
        if (p[n] > best || isnan(p[n])) best = p[n];
    }
    for (int64_t n = 0; n < a->n; n++) sum += p[n] = exp(p[n] - best);
    for (int64_t n = 0; n < a->n; n++) p[n] = a->zero_rows && isnan(sum) ? 0 : p[n] / sum;
}

/* Method reference of attention: scaled dot-product attention: softmax(scale q k' + bias + mask)
 * v. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *y = run->outputs[0];
    attention a;
    double *p = run->workspace_data;
    const char *wrong = attention_of(run->node, &a);
    if (wrong) return ops_fail(err, CNR_E_SHAPE, run->node, "%s", wrong);
    for (int64_t i = 0; i < attention_batches(&a) * a.m; i++) {
        const int64_t b = i / a.m, m = i % a.m;
        if (ops_cancelled(run)) return CNR_OK;
        weights(run, &a, b, m, p);
        for (int64_t d = 0; d < a.d; d++) {
            double sum = 0;
            for (int64_t n = 0; n < a.n; n++) sum += p[n] * element(run, &a, ATTENTION_V, b, n, d);
            ops_put(y->dtype, y->data, attention_first(&a, a.to, b) + m * a.to[3] + d * a.to[4],
                    sum);
        }
    }
    return CNR_OK;
}

const cnr_op ops_attention = {
    CNR_OP_SIZES,
    .name = "attention",
    .summary = "Scaled dot-product attention: softmax(scale q k' + bias + mask) v.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .reference_workspace = workspace,
};
