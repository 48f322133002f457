/* Containers, and modules that read or give tables of values. */
#include "torch7.h"

#include <stdio.h>

static const t7_value *modules_of(const t7_job *j) { return t7_field(j->m, "modules"); }

/* Writes the path of a child: of child 3 of "1.2" it is "1.2.3". */
static void path_of(const t7_job *j, int64_t index, char *out, size_t room) {
    /* length of the path, with its dot, or 0 */
    const size_t own = strlen(j->name) - strlen(j->kind);
    snprintf(out, room, "%.*s%lld", own > 140 ? 140 : (int)own, j->name, (long long)index);
}

/* The one value of a branch; -1: it gives a table, a problem is noted. */
static cnr_value single(t7_job *j, const t7_flow *flow) {
    if (!flow->is_table) return flow->at[0];
    t7_problem(j, "a branch gives a table");
    return -1;
}

/* Converts Sequential and similar containers: their modules one after the other; what does not fit
 * is noted as a problem and sets j->failed. */
static void sequential(t7_job *j) {
    const t7_value *modules = modules_of(j), *m;
    char path[256];
    t7_flow flow[2];
    int now = 0;
    if (strcmp(j->kind, "Sequential") != 0 && !t7_item(modules, 1))
        return t7_problem(j, "it holds no modules");
    flow[0] = *j->in;
    for (int64_t i = 1; (m = t7_item(modules, i)) != NULL; i++, now ^= 1) {
        path_of(j, i, path, sizeof path);
        t7_module(j->net, m, path, &flow[now], &flow[now ^ 1]);
    }
    *j->out = flow[now];
}

/* DataParallelTable: its modules are copies for several devices; only the first is converted. */
static void first_only(t7_job *j) {
    const t7_value *m = t7_item(modules_of(j), 1);
    char path[256];
    if (!m) return t7_problem(j, "it holds no modules");
    path_of(j, 1, path, sizeof path);
    t7_module(j->net, m, path, j->in, j->out);
}

/* Converts every branch, on the whole input or (split) on its own item of the table; 0: the job
 * failed. */
static int branches(t7_job *j, int split, t7_flow *out) {
    const t7_value *modules = modules_of(j), *m;
    char path[256];
    int good = 1;
    out->n = 0;
    out->is_table = 1;
    for (int64_t i = 1; (m = t7_item(modules, i)) != NULL; i++) {
        t7_flow one = {.n = 1}, result;
        if (out->n == T7_MAX_BRANCHES) return t7_problem(j, "it has too many branches"), 0;
        if (split && j->in->is_table && i > j->in->n)
            return t7_problem(j, "it has more branches than its input has values"), 0;
        one.at[0] = split && j->in->is_table ? j->in->at[i - 1] : -1;
        path_of(j, i, path, sizeof path);
        t7_module(j->net, m, path, split ? &one : j->in, &result);
        out->at[out->n] = single(j, &result);
        good = good && out->at[out->n++] >= 0;
    }
    if (out->n == 0) t7_problem(j, "it holds no modules");
    return good && !j->failed;
}

/* Our axis for a dimension counted from 1: the channels are first in nets for one sample, second in
 * nets for batches. -1: x is unknown. */
static int64_t joined_axis(t7_job *j, cnr_value x, int64_t dimension, int64_t inner) {
    const cnr_tensor *t = imp_type(&j->net->b, x);
    if (!t) return -1;
    int64_t axis = inner > 0 ? dimension - 1 + t->rank - inner : dimension - 1;
    if (axis == 0) axis = 1;
    if (axis >= 1 && axis < t->rank) return axis;
    t7_problem(j, "dimension %lld is out of range", (long long)dimension);
    return -1;
}

/* Sets the output to the values of a table, joined along a dimension. */
static void join(t7_job *j, const t7_flow *flow, int64_t dimension, int64_t inner) {
    const int64_t axis = joined_axis(j, flow->at[0], dimension, inner);
    if (axis > 0) t7_give(j, imp_concat(&j->net->b, j->name, flow->at, flow->n, axis));
}

/* Converts Concat: branches that read the same, joined. */
static void concat(t7_job *j) {
    t7_flow flow;
    if (branches(j, 0, &flow)) join(j, &flow, t7_int(j->m, "dimension", 1), 0);
}

/* Converts DepthConcat: like Concat along the channels; smaller pictures are centred in the size of
 * the largest. */
static void depth_concat(t7_job *j) {
    t7_flow flow;
    imp_net *b = &j->net->b;
    int64_t most[2] = {0, 0};
    if (!branches(j, 0, &flow)) return;
    for (int32_t i = 0; i < flow.n; i++) {
        const cnr_tensor *t = imp_type(b, flow.at[i]);
        if (!t || t->rank != 4) return t7_problem(j, "its branches give no pictures");
        for (int a = 0; a < 2; a++) {
            if (flow.n > 1 && t->dim[2 + a] < 0)
                return t7_problem(j, "it wants the input's size: give --option shape=C,H,W");
            if (t->dim[2 + a] > most[a]) most[a] = t->dim[2 + a];
        }
    }
    for (int32_t i = 0; i < flow.n; i++) {
        const cnr_tensor *t = imp_type(b, flow.at[i]);
        const int64_t h = most[0] - t->dim[2], w = most[1] - t->dim[3];
        const int64_t pads[] = {0, 0, h / 2, w / 2, 0, 0, h - h / 2, w - w / 2};
        char suffix[32];
        imp_attrs l = {.n = 0};
        imp_ints(&l, "pads", pads, 8);
        snprintf(suffix, sizeof suffix, ".pad%d", (int)i + 1);
        if (h || w) flow.at[i] = imp_node(b, "pad", j->name, suffix, &flow.at[i], 1, &l);
    }
    t7_give(j, imp_concat(b, j->name, flow.at, flow.n, 1));
}

/* *parts receives the slices of j->x along one axis (from 0), without that axis. 0: the axis is
 * the batch's, out of range, of unknown size or above T7_MAX_BRANCHES, which is noted as the job's
 * problem. */
static int items_of(t7_job *j, int64_t axis, t7_flow *parts) {
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    imp_attrs l = {.n = 0};
    parts->n = 0;
    parts->is_table = 1;
    if (!x || axis < 1 || axis >= x->rank || x->dim[axis] < 1 || x->dim[axis] > T7_MAX_BRANCHES)
        return t7_problem(j, "its dimension is the batch's or not of a known size"), 0;
    imp_ints(&l, "axes", &axis, 1);
    for (int64_t i = 0; i < x->dim[axis]; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, ".part%lld", (long long)i + 1);
        const cnr_value v = imp_slice(&j->net->b, j->name, suffix, j->x, axis, i, i + 1);
        snprintf(suffix, sizeof suffix, ".item%lld", (long long)i + 1);
        parts->at[parts->n++] = imp_node(&j->net->b, "squeeze", j->name, suffix, &v, 1, &l);
    }
    return 1;
}

/* Passes slice i of one axis to branch i and joins the results along another axis. */
static void parallel(t7_job *j) {
    const t7_flow *whole = j->in;
    t7_flow parts, flow;
    if (!whole->is_table) {
        if ((j->x = whole->at[0]) < 0) return;
        if (!items_of(j, t7_int(j->m, "inputDimension", 0) - 1, &parts)) return;
        j->in = &parts;
    }
    const int good = branches(j, 1, &flow);
    j->in = whole;
    if (good) join(j, &flow, t7_int(j->m, "outputDimension", 1), 0);
}

/* Converts ConcatTable: branches that read the same, as a table. */
static void concat_table(t7_job *j) {
    t7_flow flow;
    branches(j, 0, &flow);
    if (!j->failed) *j->out = flow;
}

/* Converts ParallelTable: branch i reads value i of the table. */
static void parallel_table(t7_job *j) {
    t7_flow flow;
    branches(j, 1, &flow);
    if (!j->failed) *j->out = flow;
}

/* ---- from a table to one value ---- */

/* Whether the input is a table whose values all exist. */
static int whole_table(t7_job *j) {
    if (!j->in->is_table) {
        if (j->in->at[0] >= 0) t7_problem(j, "its input is no table");
        return 0;
    }
    for (int32_t i = 0; i < j->in->n; i++)
        if (j->in->at[i] < 0) return 0;
    return j->in->n > 0;
}

/* Converts CAddTable, CMulTable and so on: combines the values of a table one by one. */
static void arithmetic(t7_job *j) {
    static const char *const ops[][2] = {{"CAddTable", "add"}, {"CSubTable", "sub"},
                                         {"CMulTable", "mul"}, {"CDivTable", "div"},
                                         {"CMaxTable", "max"}, {"CMinTable", "min"}};
    const char *op = "";
    if (!whole_table(j)) return;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i][0], j->kind) == 0) op = ops[i][1];
    cnr_value y = j->in->at[0];
    for (int32_t i = 1; i < j->in->n; i++) {
        char suffix[32] = "";
        if (i + 1 < j->in->n) snprintf(suffix, sizeof suffix, ".part%d", (int)i);
        y = imp_node(&j->net->b, op, j->name, suffix, (cnr_value[]){y, j->in->at[i]}, 2, NULL);
    }
    t7_give(j, y);
}

/* Converts JoinTable: joins the values of the table that it reads. */
static void join_table(t7_job *j) {
    if (whole_table(j)) join(j, j->in, t7_int(j->m, "dimension", 1), t7_int(j->m, "nInputDims", 0));
}

/* Converts SelectTable: one value of the table, from 1, or from the end; what does not fit is noted
 * as a problem and sets j->failed. */
static void select_table(t7_job *j) {
    const int64_t index = t7_int(j->m, "index", 1);
    if (!whole_table(j)) return;
    const int64_t at = index < 0 ? j->in->n + index : index - 1;
    if (at < 0 || at >= j->in->n) return t7_problem(j, "its input has no such value");
    t7_give(j, j->in->at[at]);
}

static void flatten_table(t7_job *j) { *j->out = *j->in; /* nested tables were refused before */ }

/* Converts NarrowTable: a stretch of the table's values; what does not fit is noted as a problem
 * and sets j->failed. */
static void narrow_table(t7_job *j) {
    const int64_t offset = t7_int(j->m, "offset", 1), length = t7_int(j->m, "length", 1);
    if (!whole_table(j)) return;
    if (offset < 1 || length < 1 || offset - 1 + length > j->in->n)
        return t7_problem(j, "its input has no such values");
    j->out->n = (int32_t)length;
    j->out->is_table = 1;
    memcpy(j->out->at, j->in->at + offset - 1, (size_t)length * sizeof j->out->at[0]);
}

/* The slices along one axis, as a table. */
static void split_table(t7_job *j) {
    t7_flow parts;
    j->x = j->in->is_table ? -1 : j->in->at[0];
    if (j->in->is_table) return t7_problem(j, "its input is a table");
    const int64_t axis =
        j->x < 0 ? -1 : t7_axis(j, t7_int(j->m, "dimension", 0), t7_int(j->m, "nInputDims", 0));
    if (axis > 0 && items_of(j, axis, &parts)) *j->out = parts;
}

/* Converts nn.MM: the matrix product of two values; what does not fit is noted as a problem and
 * sets j->failed. */
static void product(t7_job *j) {
    static const char *const keys[] = {"transA", "transB"}, *const suffixes[] = {".a", ".b"};
    cnr_value in[2];
    if (!whole_table(j)) return;
    if (j->in->n != 2) return t7_problem(j, "two values are wanted");
    for (int i = 0; i < 2; i++) {
        const cnr_tensor *t = imp_type(&j->net->b, j->in->at[i]);
        const int64_t perm[] = {0, 2, 1};
        in[i] = j->in->at[i];
        if (!t || t->rank != 3) return t7_problem(j, "matrices are wanted");
        if (t7_bool(j->m, keys[i], 0))
            in[i] = imp_transpose(&j->net->b, j->name, suffixes[i], in[i], perm, 3);
    }
    t7_give(j, t7_op(j, "matmul", "", in, 2, NULL));
}

const t7_row *t7_table_row(const char *kind) {
    static const t7_row rows[] = {
        IMP_LAYER("Sequential", sequential),
        IMP_LAYER("Inception", sequential),
        IMP_LAYER("SpatialLPPooling", sequential),
        IMP_LAYER("Decorator", sequential),
        IMP_LAYER("DontCast", sequential),
        IMP_LAYER("DataParallelTable", first_only),
        IMP_LAYER("Concat", concat),
        IMP_LAYER("DepthConcat", depth_concat),
        IMP_LAYER("Parallel", parallel),
        IMP_LAYER("ConcatTable", concat_table),
        IMP_LAYER("ParallelTable", parallel_table),
        IMP_LAYER("gModule", t7_graph),
        IMP_LAYER("CAddTable", arithmetic),
        IMP_LAYER("CSubTable", arithmetic),
        IMP_LAYER("CMulTable", arithmetic),
        IMP_LAYER("CDivTable", arithmetic),
        IMP_LAYER("CMaxTable", arithmetic),
        IMP_LAYER("CMinTable", arithmetic),
        IMP_LAYER("JoinTable", join_table),
        IMP_LAYER("SelectTable", select_table),
        IMP_LAYER("FlattenTable", flatten_table),
        IMP_LAYER("NarrowTable", narrow_table),
        IMP_LAYER("SplitTable", split_table),
        IMP_LAYER("MM", product),
    };
    return IMP_ROW_OF(rows, kind);
}
