/* Calls operators of ops-std directly, without graph or plan: loads the plugin with a host table of
 * its own, resolves attributes, infers, runs the reference; and checks gradients and splits.
 *
 *     op_open();
 *     cnr_tensor *x = t_of(CNR_f32, "1x1x2x2", (double[]){1, 2, 3, 4}), *y[1];
 *     op_call("max_pool", "kernel_shape=2,2; strides=1", y, 1, 1, x);
 *     t_near(y[0], (double[]){4}, 1e-6, "the largest");
 *     return op_done();
 */
#ifndef OPCALL_H
#define OPCALL_H

#include "tap.h"
#include "host/host.h"
#include <dlfcn.h>
#include <math.h>
#include <cnnrun/half.h>

#define OP_ROOM 512
static struct {
    const cnr_op *ops[OP_ROOM];
    int32_t n_ops;
    cnr_tensor *values[4 * OP_ROOM]; /* of the eager graph */
    int32_t n_values;
    void **kept;
    int32_t n_kept, kept_room;
    char problem[2048]; /* of the last call */
    cnr_host host;
} op_state;

#define OP_UNUSED __attribute__((unused)) static

/* ---- memory: all of it lives until op_done ---- */

/* Keeps a block until the test's end. */
static void *op_keep(void *block) {
    if (op_state.n_kept == op_state.kept_room) {
        op_state.kept_room = op_state.kept_room ? 2 * op_state.kept_room : 256;
        op_state.kept = realloc(op_state.kept, (size_t)op_state.kept_room * sizeof(void *));
    }
    return op_state.kept[op_state.n_kept++] = block;
}

/* ---- tensors ---- */

/* "2x3x4"; "" or "scalar" is rank 0. No data. */
static cnr_tensor *t_type(int32_t dtype, const char *dims) {
    cnr_tensor *t = op_keep(calloc(1, sizeof *t));
    t->size = sizeof *t;
    t->dtype = dtype;
    for (const char *p = dims; (*p >= '0' && *p <= '9') || *p == '-'; p += *p == 'x') {
        char *end;
        t->dim[t->rank++] = strtoll(p, &end, 10);
        p = end;
    }
    return t;
}

/* Element i as a double. */
static double t_get(const cnr_tensor *t, int64_t i) {
    switch (t->dtype) {
    case CNR_f32: return ((float *)t->data)[i];
    case CNR_f64: return ((double *)t->data)[i];
    case CNR_f16: return cnr_f16_to_f32(((uint16_t *)t->data)[i]);
    case CNR_bf16: return cnr_bf16_to_f32(((uint16_t *)t->data)[i]);
    case CNR_i8: return ((int8_t *)t->data)[i];
    case CNR_u8:
    case CNR_bool: return ((uint8_t *)t->data)[i];
    case CNR_i16: return ((int16_t *)t->data)[i];
    case CNR_u16: return ((uint16_t *)t->data)[i];
    case CNR_i32: return ((int32_t *)t->data)[i];
    case CNR_u32: return ((uint32_t *)t->data)[i];
    case CNR_i64: return (double)((int64_t *)t->data)[i];
    case CNR_u64: return (double)((uint64_t *)t->data)[i];
    default: return NAN;
    }
}

/* Writes element i. */
static void t_set(cnr_tensor *t, int64_t i, double v) {
    switch (t->dtype) {
    case CNR_f32: ((float *)t->data)[i] = (float)v; break;
    case CNR_f64: ((double *)t->data)[i] = v; break;
    case CNR_f16: ((uint16_t *)t->data)[i] = cnr_f32_to_f16((float)v); break;
    case CNR_bf16: ((uint16_t *)t->data)[i] = cnr_f32_to_bf16((float)v); break;
    case CNR_i8: ((int8_t *)t->data)[i] = (int8_t)v; break;
    case CNR_u8:
    case CNR_bool: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
    case CNR_i16: ((int16_t *)t->data)[i] = (int16_t)v; break;
    case CNR_u16: ((uint16_t *)t->data)[i] = (uint16_t)v; break;
    case CNR_i32: ((int32_t *)t->data)[i] = (int32_t)v; break;
    case CNR_u32: ((uint32_t *)t->data)[i] = (uint32_t)v; break;
    case CNR_i64: ((int64_t *)t->data)[i] = (int64_t)v; break;
    case CNR_u64: ((uint64_t *)t->data)[i] = (uint64_t)v; break;
    default: break;
    }
}

/* Gives *t host data, every byte poisoned, so that an unwritten element shows. */
static void t_alloc(cnr_tensor *t) {
    const uint64_t bytes = cnr_dense_bytes(t);
    if (bytes > (uint64_t)1 << 30) {
        note("a test tensor is too large");
        exit(1);
    }
    t->bytes = bytes;
    t->data = op_keep(malloc(bytes ? bytes : 1));
    memset(t->data, 0xab, bytes ? bytes : 1);
}

OP_UNUSED cnr_tensor *t_of(int32_t dtype, const char *dims, const double *values) {
    cnr_tensor *t = t_type(dtype, dims);
    t_alloc(t);
    for (int64_t i = 0; i < cnr_count(t); i++) t_set(t, i, values[i]);
    return t;
}

/* Uniform in [-1, 1); integers in [-8, 8) or [0, 16). */
OP_UNUSED cnr_tensor *t_random(int32_t dtype, const char *dims, uint64_t seed) {
    cnr_tensor *t = t_type(dtype, dims);
    uint64_t s = seed * 0x9e3779b97f4a7c15u + 1;
    t_alloc(t);
    for (int64_t i = 0; i < cnr_count(t); i++) {
        uint64_t z = (s += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        const double u = (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
        const char kind = cnr_dtype_name(dtype)[0];
        t_set(t, i,
              kind == 'i'         ? floor(u * 16) - 8
              : kind == 'u'       ? floor(u * 16)
              : dtype == CNR_bool ? floor(u * 2)
                                  : 2 * u - 1);
    }
    return t;
}

/* A copy of a tensor. */
static cnr_tensor *t_copy(const cnr_tensor *t) {
    cnr_tensor *copy = op_keep(malloc(sizeof *copy));
    *copy = *t;
    if (t->data) {
        t_alloc(copy);
        memcpy(copy->data, t->data, cnr_dense_bytes(t));
    }
    return copy;
}

/* |got - want| <= tolerance * max(1, |want|) everywhere; NaN only where NaN is wanted. */
OP_UNUSED int t_near(const cnr_tensor *got, const double *want, double tolerance,
                     const char *what) {
    const int64_t n = cnr_count(got);
    for (int64_t i = 0; i < n; i++) {
        const double g = t_get(got, i), w = want[i];
        if (g == w || (isnan(g) && isnan(w))) continue;
        if (isinf(w) || !(fabs(g - w) <= tolerance * fmax(1, fabs(w)))) {
            ok(0, "%s", what);
            note("element %lld of %lld: got %.9g, want %.9g", (long long)i, (long long)n, g, w);
            return 0;
        }
    }
    return ok(1, "%s", what);
}

OP_UNUSED int t_same(const cnr_tensor *got, const cnr_tensor *want, double tolerance,
                     const char *what) {
    if (!cnr_same_shape(got, want)) {
        ok(0, "%s", what);
        note("shapes differ: rank %d and %d, first %lld and %lld", got->rank, want->rank,
             (long long)got->dim[0], (long long)want->dim[0]);
        return 0;
    }
    const int64_t n = cnr_count(want);
    double *values = op_keep(malloc((size_t)(n + 1) * sizeof *values));
    for (int64_t i = 0; i < n; i++) values[i] = t_get(want, i);
    return t_near(got, values, tolerance, what);
}

OP_UNUSED int t_shape(const cnr_tensor *t, const char *dims, const char *what) {
    const cnr_tensor *want = t_type(t->dtype, dims);
    const int good = ok(cnr_same_shape(t, want), "%s", what);
    if (!good) {
        char got[256] = "";
        for (int32_t i = 0; i < t->rank; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld", i ? "x" : "",
                     (long long)t->dim[i]);
        note("got %s, want %s", got, dims);
    }
    return good;
}

/* ---- nodes ---- */

/* Keeps a problem's text. */
static void op_problem(void *arg, const char *path, const char *text) {
    (void)arg;
    const size_t n = strlen(op_state.problem);
    snprintf(op_state.problem + n, sizeof op_state.problem - n, "%s: %s; ", path, text);
}

OP_UNUSED const cnr_op *op_find(const char *name) {
    for (int32_t i = 0; i < op_state.n_ops; i++) {
        if (strcmp(op_state.ops[i]->name, name) == 0) return op_state.ops[i];
        const char *const *alias = op_state.ops[i]->aliases;
        for (; alias && *alias; alias++)
            if (strcmp(*alias, name) == 0) return op_state.ops[i];
    }
    note("no operator %s", name);
    return NULL;
}

/* "kernel_shape=2,2; auto_pad=VALID; alpha=0.5" by the schema's types. */
static int32_t op_parse(const cnr_op *op, const char *text, cnr_attr *room, int32_t max) {
    int32_t n = 0;
    char *copy = op_keep(strdup(text ? text : "")), *state = NULL;
    for (char *part = strtok_r(copy, ";", &state); part && n < max;
         part = strtok_r(NULL, ";", &state)) {
        while (*part == ' ') part++;
        char *value = strchr(part, '=');
        if (!value) continue;
        *value++ = 0;
        cnr_attr *a = &room[n++];
        *a = (cnr_attr){.name = part, .type = CNR_ATTR_INT, .set = 1};
        for (int32_t i = 0; i < op->n_attrs; i++) {
            const cnr_attr_spec *spec = &op->attrs[i];
            if (strcmp(spec->name, part) == 0 || (spec->alias && strcmp(spec->alias, part) == 0))
                a->type = spec->type;
        }
        a->i = a->type == CNR_ATTR_DTYPE ? cnri_dtype_of(value) : strtoll(value, NULL, 0);
        a->f = strtod(value, NULL);
        a->s = value;
        int64_t *ints = op_keep(calloc(64, sizeof *ints));
        double *floats = op_keep(calloc(64, sizeof *floats));
        for (char *p = value; *p && a->n < 64; a->n++) {
            ints[a->n] = strtoll(p, NULL, 0);
            floats[a->n] = strtod(p, &p);
            while (*p == ',' || *p == ' ') p++;
        }
        a->ints = ints;
        a->floats = floats;
    }
    return n;
}

/* A node with resolved attributes and inferred output types, or NULL with op_state.problem. */
static cnr_node *op_node(const cnr_op *op, const cnr_attr *const *given, int32_t n_given,
                         const cnr_tensor *const *inputs, int32_t n_inputs, int32_t n_outputs) {
    cnr_node *node = op_keep(calloc(1, sizeof *node));
    cnr_tensor **outs = op_keep(calloc((size_t)n_outputs + 1, sizeof *outs));
    const cnr_tensor **ins = op_keep(calloc((size_t)n_inputs + 1, sizeof *ins));
    cnr_attr **attrs = NULL;
    cnr_error err = CNR_ERROR_INIT;
    op_state.problem[0] = 0;
    const int32_t rank = n_inputs && inputs[0] ? inputs[0]->rank : 0;
    const int32_t spatial = rank >= 2 ? rank - 2 : -1;
    cnr_status status = cnri_attrs_resolve(op->attrs, op->attr_spec_size, op->n_attrs, given,
                                           n_given, spatial, op_problem, NULL, &attrs);
    if (status != CNR_OK) return NULL;
    for (int32_t i = 0; i < n_inputs; i++) ins[i] = inputs[i];
    for (int32_t i = 0; i < n_outputs; i++) {
        outs[i] = op_keep(calloc(1, sizeof **outs));
        outs[i]->size = sizeof **outs;
    }
    *node = (cnr_node){.size = sizeof *node,
                       .desc = op,
                       .name = op->name,
                       .n_attrs = op->n_attrs,
                       .n_inputs = n_inputs,
                       .n_outputs = n_outputs,
                       .attrs = (const cnr_attr *const *)attrs,
                       .inputs = ins,
                       .outputs = (const cnr_tensor *const *)outs};
    if (op->infer(node, outs, &err) == CNR_OK) return node;
    snprintf(op_state.problem, sizeof op_state.problem, "%s: %s", err.where, err.text);
    cnri_free(attrs);
    return NULL;
}

static void op_node_free(cnr_node *node) { cnri_free((void *)(uintptr_t)node->attrs); }

/* Runs the reference on a range. */
static cnr_status op_reference(const cnr_node *node, int32_t axis, int64_t begin, int64_t end) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_op *op = node->desc;
    const uint64_t bytes = op->reference_workspace ? op->reference_workspace(node) : 0;
    cnr_mem space = {.bytes = bytes};
    cnr_stream stream = {.size = sizeof stream};
    cnr_run run = {.size = sizeof run,
                   .range_axis = axis,
                   .range_begin = begin,
                   .range_end = end,
                   .node = node,
                   .outputs = (cnr_tensor *const *)(uintptr_t)node->outputs,
                   .stream = &stream};
    if (bytes) {
        run.workspace_data = space.handle = op_keep(malloc(bytes));
        run.workspace = &space;
    }
    const cnr_status status = op->reference(&run, &err);
    if (status != CNR_OK)
        snprintf(op_state.problem, sizeof op_state.problem, "%s: %s", err.where, err.text);
    return status;
}

/* Resolve, infer, allocate, run. `outputs` gets the tensors. */
static cnr_status op_eager(const cnr_op *op, const cnr_attr *const *attrs, int32_t n_attrs,
                           const cnr_tensor *const *inputs, int32_t n_inputs, cnr_tensor **outputs,
                           int32_t n_outputs) {
    cnr_node *node = op_node(op, attrs, n_attrs, inputs, n_inputs, n_outputs);
    if (!node) return CNR_E_ARG;
    for (int32_t i = 0; i < n_outputs; i++) {
        outputs[i] = (cnr_tensor *)(uintptr_t)node->outputs[i];
        if (outputs[i]->data) cnri_free(outputs[i]->data); /* a constant that infer knew already */
        t_alloc(outputs[i]);
    }
    const cnr_status status = op_reference(node, -1, 0, 0);
    op_node_free(node);
    return status;
}

/* The same by name and attribute text; a failure is not reported, see op_state.problem. */
OP_UNUSED cnr_status op_try(const char *name, const char *attrs, cnr_tensor **outputs,
                            int32_t n_outputs, int32_t n_inputs, const cnr_tensor *const *inputs) {
    const cnr_op *op = op_find(name);
    cnr_attr room[32];
    const cnr_attr *given[32];
    if (!op) return CNR_E_NOT_FOUND;
    const int32_t n = op_parse(op, attrs, room, 32);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    return op_eager(op, given, n, inputs, n_inputs, outputs, n_outputs);
}

OP_UNUSED int op_called(cnr_status status, const char *name, const char *attrs) {
    if (status == CNR_OK) return 1;
    ok(0, "%s runs with %s", name, attrs ? attrs : "its defaults");
    note("%s", op_state.problem);
    exit(done());
}

/* op_call(name, attrs, outputs, n_outputs, n_inputs, x, w, ...): ends the test on a failure. */
#define op_call(name, attrs, outputs, n_outputs, n_inputs, ...) \
    op_called(op_try(name, attrs, outputs, n_outputs, n_inputs, \
                     (const cnr_tensor *[]){__VA_ARGS__}), \
              name, attrs)

/* Tests that the call is refused, with a message that contains `part`. */
OP_UNUSED int op_refused(const char *name, const char *attrs, const char *part, int32_t n_inputs,
                         const cnr_tensor *const *inputs) {
    const cnr_op *op = op_find(name);
    cnr_attr room[32];
    const cnr_attr *given[32];
    if (!op) return ok(0, "%s is there", name);
    const int32_t n = op_parse(op, attrs, room, 32);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    cnr_node *node = op_node(op, given, n, inputs, n_inputs, op->n_outputs);
    if (node) op_node_free(node);
    char what[512];
    snprintf(what, sizeof what, "%s refuses %s", name, attrs && *attrs ? attrs : "these inputs");
    return node ? ok(0, "%s", what) : has_text(op_state.problem, part, what);
}

/* ---- an eager graph: adding a node runs it ---- */

/* Adds a value to the made-up graph; -1: it is full. */
static cnr_value op_value(cnr_tensor *t) {
    if (op_state.n_values == 4 * OP_ROOM) return -1;
    op_state.values[op_state.n_values] = t;
    return op_state.n_values++;
}

/* The made-up graph's constant. */
static cnr_value op_graph_constant(struct cnr_graph *graph, const char *name,
                                   const cnr_tensor *type) {
    (void)graph, (void)name;
    return op_value(t_copy(type));
}

/* The made-up graph's type of a value; NULL: no such value. */
static const cnr_tensor *op_graph_type(const struct cnr_graph *graph, cnr_value value) {
    (void)graph;
    return value < 0 || value >= op_state.n_values ? NULL : op_state.values[value];
}

/* The made-up graph's node: infers and computes at once; `outputs` receives its values. */
static cnr_status op_graph_node(struct cnr_graph *graph, const char *op, const char *name,
                                const char *where, const cnr_value *inputs, int32_t n_inputs,
                                const cnr_attr *const *attrs, int32_t n_attrs, cnr_value *outputs,
                                int32_t n_outputs) {
    const cnr_tensor *in[64] = {NULL};
    cnr_tensor *out[16];
    (void)graph, (void)name, (void)where;
    const cnr_op *desc = op_find(op);
    if (!desc || n_inputs > 64 || n_outputs > 16) return CNR_E_NOT_FOUND;
    for (int32_t i = 0; i < n_inputs; i++)
        in[i] = inputs[i] < 0 ? NULL : op_state.values[inputs[i]];
    const cnr_attr *given[64];
    int32_t n = 0; /* defaults need not be passed on, as a graph does not */
    for (int32_t i = 0; i < n_attrs; i++)
        if (attrs[i]->set) given[n++] = attrs[i];
    const cnr_status status = op_eager(desc, given, n, in, n_inputs, out, n_outputs);
    if (status != CNR_OK) note("%s: %s", op, op_state.problem);
    for (int32_t i = 0; i < n_outputs; i++) outputs[i] = status == CNR_OK ? op_value(out[i]) : -1;
    return status;
}

/* ---- checks that hold for every operator ---- */

/* Sum of products. */
static double op_dot(const cnr_tensor *a, const cnr_tensor *b) {
    double sum = 0;
    for (int64_t i = 0; i < cnr_count(a); i++) sum += t_get(a, i) * t_get(b, i);
    return sum;
}

/* The gradient hook against central differences of output 0, for f64 input `port`. */
OP_UNUSED int op_gradcheck(const char *name, const char *attrs, int32_t port, int32_t n_inputs,
                           const cnr_tensor *const *inputs) {
    const cnr_op *op = op_find(name);
    cnr_attr room[32];
    const cnr_attr *given[32];
    cnr_value in[16], out[16], grad_out[16], grad_in[16];
    int32_t want[16] = {0};
    cnr_tensor *y[1], *copies[16];
    cnr_error err = CNR_ERROR_INIT;
    char what[512];
    snprintf(what, sizeof what, "%s (%s): gradient of input %d", name, attrs ? attrs : "", port);
    if (!op || !op->gradient) return ok(0, "%s is there", what);
    const int32_t n = op_parse(op, attrs, room, 32);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    for (int32_t i = 0; i < n_inputs; i++) copies[i] = inputs[i] ? t_copy(inputs[i]) : NULL;
    const cnr_tensor *const *ins = (const cnr_tensor *const *)copies;
    if (op_eager(op, given, n, ins, n_inputs, y, 1) != CNR_OK) {
        note("%s", op_state.problem);
        return ok(0, "%s", what);
    }
    cnr_tensor *g = t_copy(y[0]), *noise = t_random(CNR_f64, "4096", 77);
    for (int64_t i = 0; i < cnr_count(g); i++) t_set(g, i, t_get(noise, i % 4096));
    for (int32_t i = 0; i < 16; i++) in[i] = out[i] = grad_out[i] = grad_in[i] = -1;
    for (int32_t i = 0; i < n_inputs; i++) in[i] = copies[i] ? op_value(copies[i]) : -1;
    out[0] = op_value(y[0]);
    grad_out[0] = op_value(g);
    want[port] = 1;
    cnr_node *node = op_node(op, given, n, ins, n_inputs, 1);
    const cnr_status status =
        op->gradient(&op_state.host, NULL, node, in, out, grad_out, want, grad_in, &err);
    op_node_free(node);
    if (status != CNR_OK || grad_in[port] < 0) {
        note("%s: %s", err.where, err.text);
        return ok(0, "%s", what);
    }
    cnr_tensor *got = op_state.values[grad_in[port]], *x = copies[port];
    cnr_tensor *wanted = t_copy(x);
    const double step = 1e-5;
    for (int64_t i = 0; i < cnr_count(x); i++) {
        const double keep = t_get(x, i);
        double side[2];
        for (int s = 0; s < 2; s++) {
            t_set(x, i, s ? keep - step : keep + step);
            if (op_eager(op, given, n, ins, n_inputs, y, 1) != CNR_OK) return ok(0, "%s", what);
            side[s] = op_dot(y[0], g);
        }
        t_set(x, i, keep);
        t_set(wanted, i, (side[0] - side[1]) / (2 * step));
    }
    return t_same(got, wanted, 2e-6, what);
}

/* Makes everything of `t` outside the region unusable. */
static void op_poison(cnr_tensor *t, const cnr_input_range *r) {
    if (r->axis < 0) return;
    const int64_t inner = cnr_span(t, r->axis + 1, t->rank), d = t->dim[r->axis];
    for (int64_t i = 0; i < cnr_count(t); i++) {
        const int64_t at = i / inner % d;
        if (at < r->begin || at >= r->end)
            t_set(t, i, cnr_dtype_name(t->dtype)[0] == 'f' ? NAN : 99);
    }
}

/* Every split axis the operator offers: computing two ranges, each with only the regions of the
 * inputs that it says it reads, gives what the whole does. */
OP_UNUSED int op_splitcheck(const char *name, const char *attrs, int32_t n_inputs,
                            const cnr_tensor *const *inputs) {
    const cnr_op *op = op_find(name);
    cnr_attr room[32];
    const cnr_attr *given[32];
    cnr_split_axis axes[8];
    cnr_tensor *whole[1], *copies[16];
    int good = 1;
    if (!op || !op->split_axes) return ok(0, "%s splits", name);
    const int32_t n = op_parse(op, attrs, room, 32);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    op_called(op_eager(op, given, n, inputs, n_inputs, whole, 1), name, attrs);
    cnr_node *probe = op_node(op, given, n, inputs, n_inputs, 1);
    const int32_t n_axes = op->split_axes(probe, axes, 8);
    for (int32_t a = 0; a < n_axes && good; a++) {
        const int32_t axis = axes[a].axis;
        const int64_t d = whole[0]->dim[axis], step = axes[a].alignment;
        const int64_t middle = step > 0 ? d / 2 / step * step : 0;
        cnr_tensor *y = t_copy(whole[0]);
        memset(y->data, 0xab, cnr_dense_bytes(y));
        for (int half = 0; half < 2; half++) {
            const int64_t begin = half ? middle : 0, end = half ? d : middle;
            for (int32_t p = 0; p < n_inputs; p++) {
                cnr_input_range r = {.axis = -1};
                copies[p] = inputs[p] ? t_copy(inputs[p]) : NULL;
                if (!inputs[p] || !op->input_range) continue;
                op->input_range(probe, axis, begin, end, p, &r);
                good &= r.axis < 0 || (r.begin >= 0 && r.end <= inputs[p]->dim[r.axis]);
                op_poison(copies[p], &r);
            }
            cnr_node *node = op_node(op, given, n, (const cnr_tensor *const *)copies, n_inputs, 1);
            ((cnr_tensor *)(uintptr_t)node->outputs[0])->data = y->data;
            if (begin < end) good &= op_reference(node, axis, begin, end) == CNR_OK;
            op_node_free(node);
        }
        good &= memcmp(y->data, whole[0]->data, cnr_dense_bytes(y)) == 0;
        if (!good) note("axis %d", axis);
    }
    op_node_free(probe);
    return ok(good && n_axes > 0, "%s (%s): %d axes split with their halos", name,
              attrs ? attrs : "", n_axes);
}

/* ---- begin and end ---- */

/* Keeps what the plugin registers. */
static cnr_status op_add(struct cnr_registrar *registrar, int32_t kind, const void *descriptor) {
    (void)registrar;
    if (kind == CNR_KIND_OPERATOR && op_state.n_ops < OP_ROOM)
        op_state.ops[op_state.n_ops++] = descriptor;
    return CNR_OK;
}

OP_UNUSED void op_open(void) {
    cnr_error err = CNR_ERROR_INIT;
    void *library = dlopen(CNRT_BUILD_DIR "/plugins/ops-std.so", RTLD_NOW | RTLD_LOCAL);
    cnr_plugin_query_fn query = NULL;
    if (library) *(void **)&query = dlsym(library, "cnr_plugin_query");
    if (!query) {
        ok(0, "ops-std.so loads");
        note("%s", library ? "no cnr_plugin_query" : dlerror());
        exit(done());
    }
    op_state.host = cnri_host;
    op_state.host.add = op_add;
    op_state.host.find_op = op_find;
    op_state.host.graph_constant = op_graph_constant;
    op_state.host.graph_node = op_graph_node;
    op_state.host.graph_type = op_graph_type;
    if (query(CNR_ABI)->init(&op_state.host, NULL, &err) != CNR_OK) {
        ok(0, "ops-std starts");
        exit(done());
    }
}

OP_UNUSED int op_done(void) {
    for (int32_t i = 0; i < op_state.n_kept; i++) free(op_state.kept[i]);
    free(op_state.kept);
    return done();
}

#endif
