/* Files are hostile: random types, dims and attributes through every hook that runs before a
 * kernel does. Nothing may crash, overflow (see the sanitised build) or claim impossible shapes. */
#include "opcall.h"

static uint64_t state;

/* A number below `sides`, at random. */
static uint64_t dice(uint64_t sides) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % sides;
}

static int tame; /* this case draws mostly numbers that may fit together */

/* A whole number, often an extreme. */
static int64_t awkward(void) {
    if (tame && dice(30)) return (int64_t)(1 + dice(2));
    static const int64_t list[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   5,
                                   7,
                                   8,
                                   -1,
                                   -2,
                                   -3,
                                   16,
                                   224,
                                   1 << 20,
                                   INT32_MAX,
                                   (int64_t)1 << 40,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MAX / 2,
                                   -8};
    /* Mostly small, so that some calls get past the first check. */
    return list[dice(5) ? dice(8) : dice(sizeof list / sizeof list[0])];
}

/* Draws an attribute. */
static void random_attr(const cnr_attr_spec *spec, cnr_attr *a) {
    static int64_t ints[32][12];
    static double floats[32][12];
    static int32_t turn;
    turn = (turn + 1) % 32;
    *a = (cnr_attr){.name = spec->name,
                    .type = spec->type,
                    .set = 1,
                    .s = "",
                    .i = awkward(),
                    .ints = ints[turn],
                    .floats = floats[turn],
                    .n = (int64_t)dice(9)};
    if (tame) a->n = (int64_t)(1 + dice(4));
    a->f = dice(4) ? (double)a->i : dice(2) ? NAN : INFINITY;
    for (int i = 0; i < 12; i++) {
        ints[turn][i] = awkward();
        floats[turn][i] = (double)awkward();
    }
    int32_t n = 0;
    while (spec->type == CNR_ATTR_ENUM && spec->choices && spec->choices[n]) n++;
    if (n) a->s = spec->choices[a->i = (int64_t)dice((uint64_t)n)];
    if (spec->type == CNR_ATTR_BOOL) a->i &= 1;
    if (spec->type == CNR_ATTR_DTYPE) {
        a->i = (int64_t)(1 + dice(15));
        a->s = cnr_dtype_name((int32_t)a->i);
    }
}

/* Draws *t: now and then like `model`, so that shapes agree by more than luck; now and then with
 * the data. */
static void random_tensor(cnr_tensor *t, const cnr_tensor *model, int64_t *data) {
    *t = (cnr_tensor){.size = sizeof *t};
    t->dtype = dice(5) ? CNR_f32 : (int32_t)(1 + dice(15));
    t->rank = (int32_t)dice(CNR_MAX_RANK + 1);
    if (dice(3) == 0) t->rank = 4;
    for (int32_t i = 0; i < t->rank; i++) t->dim[i] = awkward();
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] < -9) t->dim[i] = CNR_DIM_UNKNOWN;
    if (model && dice(2)) {
        t->dtype = model->dtype;
        t->rank = dice(3) ? model->rank : 1;
        for (int32_t i = 0; i < t->rank; i++)
            if (dice(4)) t->dim[i] = model->dim[dice(3) ? i : 1];
    }
    if (dice(tame ? 40 : 4)) return;
    t->dtype = dice(2) ? CNR_i64 : CNR_f64; /* eight numbers */
    t->rank = 1;
    t->dim[0] = (int64_t)dice(9);
    t->data = data;
    for (int i = 0; i < 8; i++) {
        const double v = (double)awkward();
        data[i] = awkward();
        if (t->dtype == CNR_f64) memcpy(&data[i], &v, sizeof v);
    }
    t->bytes = cnr_dense_bytes(t);
}

/* Everything a planner may ask before dims are bound; regions only when they are. */
static int ask(const cnr_op *op, cnr_node *node) {
    cnr_cost cost = {0};
    cnr_alias aliases[16];
    cnr_split_axis axes[8];
    cnr_linear linear;
    cnr_input_range region;
    int known = 1, good = 1;
    for (int32_t i = 0; i < node->n_outputs; i++) {
        const cnr_tensor *y = node->outputs[i];
        good &= y->rank >= 0 && y->rank <= CNR_MAX_RANK && cnr_dtype_bits(y->dtype) > 0;
        for (int32_t d = 0; d < y->rank; d++) known &= y->dim[d] >= 0;
    }
    for (int32_t i = 0; i < node->n_inputs; i++)
        for (int32_t d = 0; node->inputs[i] && d < node->inputs[i]->rank; d++)
            known &= node->inputs[i]->dim[d] >= 0;
    if (op->cost) op->cost(node, &cost);
    if (op->linear) op->linear(node, &linear);
    if (!known || cnr_count(node->outputs[0]) < 1) return good;
    if (op->buffer_aliases) good &= op->buffer_aliases(node, aliases, 16) <= 16;
    if (op->reference_workspace) op->reference_workspace(node);
    const int32_t n = op->split_axes ? op->split_axes(node, axes, 8) : 0;
    for (int32_t a = 0; a < n; a++) {
        const int64_t d = node->outputs[0]->dim[axes[a].axis];
        good &= axes[a].alignment > 0;
        for (int32_t p = 0; op->input_range && p < node->n_inputs; p++) {
            region = (cnr_input_range){.axis = -1};
            op->input_range(node, axes[a].axis, 0, d, p, &region);
            const cnr_tensor *x = node->inputs[p];
            good &= region.axis < 0 || !x ||
                    (region.axis < x->rank && region.begin >= 0 && region.begin <= region.end &&
                     region.end <= x->dim[region.axis]);
        }
    }
    return good;
}

/* Tests an operator with so many drawn attributes and shapes. */
static void attack(const cnr_op *op, int cases) {
    int64_t data[8][8];
    int good = 1, passed = 0;
    for (int c = 0; c < cases && good; c++) {
        const uint64_t seed = state;
        tame = c % 2;
        cnr_tensor inputs[8], outs[8];
        const cnr_tensor *in[8], *out[8];
        cnr_attr room[32], **attrs = NULL;
        const cnr_attr *given[32];
        cnr_error err = CNR_ERROR_INIT;
        int32_t n = 0, n_in = op->n_inputs;
        if (n_in > 0 && (op->inputs[n_in - 1].flags & CNR_PORT_VARIADIC)) n_in += (int32_t)dice(3);
        n_in = n_in > 8 ? 8 : n_in;
        for (int32_t i = 0; i < n_in; i++) {
            random_tensor(&inputs[i], i ? &inputs[0] : NULL, data[i]);
            const int optional = i < op->n_inputs && op->inputs[i].flags & CNR_PORT_OPTIONAL;
            in[i] = optional && dice(3) == 0 ? NULL : &inputs[i]; /* the graph sees to the others */
        }
        for (int32_t i = 0; i < op->n_attrs && i < 32; i++)
            if (dice(tame ? 9 : 3) == 0 || op->attrs[i].flags & CNR_ATTR_REQUIRED)
                random_attr(&op->attrs[i], &room[n]), given[n] = &room[n], n++;
        const int32_t rank = n_in && in[0] ? in[0]->rank : 0;
        op_state.problem[0] = 0;
        if (cnri_attrs_resolve(op->attrs, op->attr_spec_size, op->n_attrs, given, n,
                               rank >= 2 ? rank - 2 : -1, op_problem, NULL, &attrs) != CNR_OK)
            continue;
        for (int32_t i = 0; i < op->n_outputs && i < 8; i++) {
            outs[i] = (cnr_tensor){.size = sizeof outs[i]};
            out[i] = &outs[i];
        }
        cnr_tensor *writable[8];
        for (int i = 0; i < 8; i++) writable[i] = &outs[i];
        cnr_node node = {.size = sizeof node,
                         .desc = op,
                         .name = "hostile",
                         .n_attrs = op->n_attrs,
                         .n_inputs = n_in,
                         .n_outputs = op->n_outputs > 8 ? 8 : op->n_outputs,
                         .attrs = (const cnr_attr *const *)attrs,
                         .inputs = in,
                         .outputs = out};
        cnr_tensor made = {.size = sizeof made};
        cnr_init init;
        for (int32_t p = 0; op->parameters && in[0] && p < op->n_inputs; p++)
            if (op->inputs[p].flags & CNR_PORT_PARAMETER)
                op->parameters(&node, p, &made, &init, &err);
        if (op->infer(&node, writable, &err) == CNR_OK) {
            passed++;
            good = ask(op, &node);
        } else good = err.code != 0;
        for (int32_t i = 0; i < node.n_outputs; i++) cnri_free(outs[i].data);
        cnri_free(attrs);
        if (!good) note("case %d, seed %llx, error %s", c, (unsigned long long)seed, err.text);
    }
    ok(good, "%s: %d awkward nodes, %d of them fine", op->name, cases, passed);
}

int main(int argc, char **argv) {
    op_open();
    const int cases = argc > 1 ? atoi(argv[1]) : 2000;
    for (int32_t i = 0; i < op_state.n_ops; i++) {
        state = 1; /* each operator's cases are its own */
        attack(op_state.ops[i], cases);
    }
    return op_done();
}
