/* Ensembles of decision trees (TreeEnsembleRegressor, TreeEnsembleClassifier) as nodes of ours: all
 * trees go down a level at a time, by tables of all their nodes.
 *
 *     at      i64, N trees: the node that each row has come to in each tree
 *     x'      gather_elements(x, gather(feature, at)), beside gather(limit, at)
 *     at      where(x' <= limit', gather(yes, at), gather(no, at)); a leaf leads to itself
 *     y       the sum over trees of gather(values, at)
 */
#include "ml.h"

#include <stdio.h>

enum { MAX_LEVELS = 1000, MAX_VALUES = 1 << 26 };

/* The decision trees of a node. */
typedef struct forest {
    int64_t n, trees, levels, columns; /* columns: numbers in each leaf */
    const int64_t *tree, *id, *feature_of, *yes_of, *no_of, *missing_of; /* as the file has them */
    /* by node: tested column, and indices of the nodes for yes and no; roots by tree; level by
     * node */
    int64_t *feature, *yes, *no, *roots, *level;
    uint8_t *missing;      /* whether a NaN goes to `yes`; NULL: in no node */
    float *limit, *values; /* by node: number to compare with; values: n columns of a leaf */
    const char *compare;   /* comparison of all inner nodes */
    onnx_names places;     /* index of (tree, id) */
} forest;

/* Notes the place of node i, by tree and number. */
static cnr_status remember(forest *f, int64_t i) {
    const int64_t key[] = {f->tree[i], f->id[i]};
    return imp_host->map_set(&f->places, (const char *)key, sizeof key, (void *)((intptr_t)i + 1));
}
/* index of a node; -1: there is none */
static int64_t place_of(const forest *f, int64_t tree, int64_t id) {
    const int64_t key[] = {tree, id};
    return (intptr_t)imp_host->map_get(f->places, (const char *)key, sizeof key) - 1;
}

/* ---- the tables ---- */

/* Our operator for a mode of comparing; NULL: unknown. */
static const char *compare_of(const char *mode) {
    static const char *const rows[][2] = {{"BRANCH_LEQ", "less_or_equal"},
                                          {"BRANCH_LT", "less"},
                                          {"BRANCH_GTE", "greater_or_equal"},
                                          {"BRANCH_GT", "greater"},
                                          {"BRANCH_EQ", "equal"}};
    for (size_t i = 0; i < CNR_ROWS(rows); i++)
        if (strcmp(rows[i][0], mode) == 0) return rows[i][1];
    return NULL;
}

/* 1: node i is a leaf; 0: an inner node; -1: it is refused. */
static int is_leaf(onnx_job *j, forest *f, const Onnx__AttributeProto *modes, int64_t i) {
    const char *mode = onnx_text(j, modes->strings[i]);
    if (!mode) return -1;
    if (strcmp(mode, "LEAF") == 0) return 1;
    const char *compare = compare_of(mode);
    if (compare && (!f->compare || strcmp(f->compare, compare) == 0)) {
        f->compare = compare;
        return 0;
    }
    onnx_problem(j,
                 compare ? "modes that differ (%s among others) are not supported"
                         : "mode %s is not supported",
                 mode);
    return -1;
}

/* Reads the lists nodes_... (leaves are nodes too; their values: read_values), checks their lengths
 * and allocates the tables. */
static void read_lists(onnx_job *j, forest *f) {
    int64_t n[6], count;
    f->tree = ml_ints(j, "nodes_treeids", &n[0]);
    f->id = ml_ints(j, "nodes_nodeids", &n[1]);
    f->feature_of = ml_ints(j, "nodes_featureids", &n[2]);
    f->yes_of = ml_ints(j, "nodes_truenodeids", &n[3]);
    f->no_of = ml_ints(j, "nodes_falsenodeids", &n[4]);
    const float *limits = ml_floats(j, "nodes_values", &n[5]);
    f->missing_of = ml_ints(j, "nodes_missing_value_tracks_true", &count);
    f->n = n[0];
    for (int i = 1; i < 6; i++)
        if (n[i] != f->n) return onnx_problem(j, "its lists of nodes differ in length%s", "");
    if (!f->n) return onnx_problem(j, "it has no nodes%s", "");
    if (f->missing_of && count != f->n)
        return onnx_problem(j, "its lists of nodes differ in length%s", "");
    const size_t bytes = (size_t)f->n * sizeof(int64_t);
    f->feature = (int64_t *)onnx_own(j, bytes);
    f->yes = (int64_t *)onnx_own(j, bytes);
    f->no = (int64_t *)onnx_own(j, bytes);
    f->roots = (int64_t *)onnx_own(j, bytes);
    f->level = (int64_t *)onnx_own(j, bytes);
    f->limit = (float *)onnx_own(j, (size_t)f->n * sizeof(float));
    if (f->missing_of) f->missing = (uint8_t *)onnx_own(j, (size_t)f->n);
    if (!j->failed) memcpy(f->limit, limits, (size_t)f->n * sizeof(float));
}

/* Marks `child` as having a parent. 0, with a problem: there is no such node, or it has one
 * already. */
static int adopt(onnx_job *j, forest *f, int64_t child) {
    if (child >= 0 && f->level[child] == 0) {
        f->level[child] = -1;
        return 1;
    }
    onnx_problem(j,
                 child < 0 ? "a branch leads to a node that is not there%s"
                           : "a node has two parents%s",
                 "");
    return 0;
}

/* Links nodes to their children by mode; a wrong link is a problem. */
static void link_nodes(onnx_job *j, forest *f) {
    const Onnx__AttributeProto *modes = onnx_proto(j, "nodes_modes");
    if (!modes || (int64_t)modes->n_strings != f->n)
        return onnx_problem(j, "its lists of nodes differ in length%s", "");
    for (int64_t i = 0; i < f->n && !j->failed; i++) {
        if (place_of(f, f->tree[i], f->id[i]) >= 0)
            return onnx_problem(j, "two nodes of a tree have one number%s", "");
        if (remember(f, i)) j->net->imp.status = CNR_E_MEMORY, j->failed = 1;
    }
    for (int64_t i = 0; i < f->n && !j->failed; i++) {
        const int leaf = is_leaf(j, f, modes, i);
        f->yes[i] = leaf ? i : place_of(f, f->tree[i], f->yes_of[i]);
        f->no[i] = leaf ? i : place_of(f, f->tree[i], f->no_of[i]);
        f->feature[i] = leaf ? 0 : f->feature_of[i];
        if (f->missing) f->missing[i] = !leaf && f->missing_of[i] != 0;
        if (f->feature[i] < 0) return onnx_problem(j, "a feature has a negative number%s", "");
        if (!leaf && adopt(j, f, f->yes[i])) adopt(j, f, f->no[i]);
    }
}

/* Finds the roots (nodes without parent) and the depth of all nodes. */
static void find_levels(onnx_job *j, forest *f) {
    int64_t *order = (int64_t *)onnx_own(j, (size_t)f->n * sizeof *order), n = 0;
    if (!order) return;
    for (int64_t i = 0; i < f->n; i++)
        if (f->level[i] == 0) f->roots[f->trees++] = order[n++] = i;
    for (int64_t at = 0; at < n; at++) {
        const int64_t i = order[at], level = f->level[i] + 1;
        if (f->yes[i] == i) continue;
        f->level[f->yes[i]] = f->level[f->no[i]] = level;
        order[n++] = f->yes[i];
        order[n++] = f->no[i];
        if (level > f->levels) f->levels = level;
    }
    if (n < f->n) onnx_problem(j, "nodes are their own parents%s", "");
    else if (f->levels > MAX_LEVELS) onnx_problem(j, "its trees are too deep%s", "");
}

/* Reads the leaves' values (PREFIX_treeids and so on) into `columns` columns; column -1: all into
 * column 0. */
static void read_values(onnx_job *j, forest *f, const char *prefix, int64_t columns, int one) {
    char name[4][32];
    int64_t n[4];
    static const char *const of[] = {"treeids", "nodeids", "ids", "weights"};
    for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "%s_%s", prefix, of[i]);
    const int64_t *tree = ml_ints(j, name[0], &n[0]), *node = ml_ints(j, name[1], &n[1]),
                  *id = ml_ints(j, name[2], &n[2]);
    const float *weight = ml_floats(j, name[3], &n[3]);
    if (n[1] != n[0] || n[2] != n[0] || n[3] != n[0])
        return onnx_problem(j, "its lists of leaves differ in length%s", "");
    f->columns = one ? 1 : columns;
    if (columns < 1 || f->columns > MAX_VALUES / f->n)
        return onnx_problem(j, "its leaves hold no number, or too many%s", "");
    f->values = (float *)onnx_own(j, (size_t)(f->n * f->columns) * sizeof(float));
    for (int64_t i = 0; f->values && i < n[0]; i++) {
        const int64_t at = place_of(f, tree[i], node[i]);
        if (at < 0 || id[i] < 0 || id[i] >= columns)
            return onnx_problem(j, "a leaf's weight is of a node or a class that is not there%s",
                                "");
        f->values[at * f->columns + (one ? 0 : id[i])] += weight[i];
    }
}

/* ---- the nodes ---- */

/* A constant with n limits, in the type of the input. */
static cnr_value limits_of(onnx_job *j, const float *limit, int64_t n, int32_t dtype) {
    if (dtype == CNR_f32) return ml_list(j, limit, n);
    double *wide = (double *)onnx_own(j, (size_t)n * sizeof *wide);
    for (int64_t i = 0; wide && i < n; i++) wide[i] = (double)limit[i];
    return wide ? onnx_constant(j, CNR_f64, wide, &n, 1) : -1;
}

/* The tables as constants: of all nodes, or of the roots. */
typedef struct tables {
    cnr_value feature, limit, missing, yes, no;
} tables;

/* Adds constants with what all nodes have, or (of_roots) only the roots. */
static tables tables_of(onnx_job *j, const forest *f, int32_t dtype, int of_roots) {
    const int64_t n = of_roots ? f->trees : f->n;
    int64_t *whole[3] = {f->feature, f->yes, f->no};
    float *limit = f->limit;
    uint8_t *missing = f->missing;
    if (of_roots) {
        limit = (float *)onnx_own(j, (size_t)n * sizeof *limit);
        if (missing) missing = (uint8_t *)onnx_own(j, (size_t)n);
        for (int k = 0; k < 3; k++) {
            int64_t *part = (int64_t *)onnx_own(j, (size_t)n * sizeof *part);
            for (int64_t i = 0; part && i < n; i++) part[i] = whole[k][f->roots[i]];
            whole[k] = part;
        }
        for (int64_t i = 0; !j->failed && i < n; i++) {
            limit[i] = f->limit[f->roots[i]];
            if (missing) missing[i] = f->missing[f->roots[i]];
        }
    }
    tables t = {-1, -1, -1, -1, -1};
    if (j->failed) return t;
    t.feature = onnx_constant(j, CNR_i64, whole[0], &n, 1);
    t.yes = onnx_constant(j, CNR_i64, whole[1], &n, 1);
    t.no = onnx_constant(j, CNR_i64, whole[2], &n, 1);
    t.limit = limits_of(j, limit, n, dtype);
    if (missing) t.missing = onnx_constant(j, CNR_bool, missing, &n, 1);
    return t;
}

/* Adds gathers of what the nodes at these places have. */
static tables at_nodes(onnx_job *j, const tables *all, cnr_value at) {
    tables t = {ml_two(j, "gather", all->feature, at), ml_two(j, "gather", all->limit, at), -1,
                ml_two(j, "gather", all->yes, at), ml_two(j, "gather", all->no, at)};
    if (all->missing >= 0) t.missing = ml_two(j, "gather", all->missing, at);
    return t;
}

/* Adds one level down the trees: the next node of each tree, for each row of x. */
static cnr_value go_down(onnx_job *j, const forest *f, cnr_value x, const tables *t,
                         const char *pick) {
    imp_attrs attrs = {.n = 0};
    imp_int(&attrs, "axis", 1);
    const cnr_value v = onnx_step(j, pick, (cnr_value[]){x, t->feature}, 2, &attrs);
    cnr_value yes = ml_two(j, f->compare ? f->compare : "less", v, t->limit);
    if (t->missing >= 0) {
        const cnr_value none = onnx_step(j, "is_nan", &v, 1, NULL);
        yes = ml_two(j, "or", yes, ml_two(j, "and", none, t->missing));
    }
    const cnr_value in[] = {yes, t->yes, t->no};
    return onnx_step(j, "where", in, 3, NULL);
}

/* Adds N columns: the leaves' values, reduced over all trees. */
static cnr_value scores(onnx_job *j, const forest *f, const char *reduce) {
    const cnr_tensor *type = j->n_in ? imp_type(&j->net->imp, j->in[0]) : NULL;
    const int32_t dtype = type && type->dtype == CNR_f64 ? CNR_f64 : CNR_f32;
    const int64_t dim[] = {f->n, f->columns}, axis = 1;
    imp_attrs attrs = {.n = 0};
    const cnr_value x = ml_rows(j, dtype);
    if (j->failed) return -1;
    const tables roots = tables_of(j, f, dtype, 1), all = tables_of(j, f, dtype, 0);
    cnr_value at = go_down(j, f, x, &roots, "gather");
    for (int64_t level = 1; level < f->levels && !j->failed; level++) {
        const tables here = at_nodes(j, &all, at);
        at = go_down(j, f, x, &here, "gather_elements");
    }
    const cnr_value leaves =
        ml_two(j, "gather", imp_weight(&j->net->imp, j->name, ".values", f->values, dim, 2), at);
    imp_ints(&attrs, "axes", &axis, 1);
    imp_bool(&attrs, "keepdims", 0);
    return onnx_step(j, reduce, &leaves, 1, &attrs);
}

/* Adds the base values to y; another number of them than columns is a problem. */
static cnr_value with_base(onnx_job *j, cnr_value y, int64_t columns) {
    int64_t n;
    const float *base = ml_floats(j, "base_values", &n);
    if (!base) return y;
    if (n == columns) return ml_two(j, "add", y, ml_list(j, base, n));
    onnx_problem(j, "its base_values do not fit its scores%s", "");
    return -1;
}

/* Reads all trees of the node into f; 0: failed, with a problem. */
static int read_forest(onnx_job *j, forest *f) {
    j->done = 1;
    read_lists(j, f);
    if (!j->failed) link_nodes(j, f);
    if (!j->failed) find_levels(j, f);
    return !j->failed;
}

void ml_tree_regressor(onnx_job *j) {
    const char *how = ml_text(j, "aggregate_function", "SUM");
    const int64_t n = onnx_int(j, "n_targets", 1);
    const int mean = strcmp(how, "AVERAGE") == 0, sum = mean || strcmp(how, "SUM") == 0;
    forest f = {.n = 0};
    if (!read_forest(j, &f)) goto out;
    read_values(j, &f, "target", n, 0);
    if (!sum && n != 1) onnx_problem(j, "%s of several targets is not supported", how);
    if (j->failed) goto out;
    const char *reduce = sum ? "reduce_sum" : strcmp(how, "MIN") == 0 ? "reduce_min" : "reduce_max";
    cnr_value y = scores(j, &f, reduce);
    if (mean && !j->failed)
        y = ml_two(j, "div", y, imp_scalar(&j->net->imp, j->name, ".trees", (double)f.trees));
    if (!j->failed) j->out[0] = ml_post_several(j, with_base(j, y, n), n);
out:
    imp_host->map_free(f.places);
}

/* The class of all weights, -1: there are several; *positive: no weight is negative. */
static int64_t only_class(const onnx_job *j, int *positive) {
    int64_t n, n_weights;
    const int64_t *id = ml_ints(j, "class_ids", &n);
    const float *weight = ml_floats(j, "class_weights", &n_weights);
    *positive = 1;
    for (int64_t i = 0; i < n_weights; i++) *positive &= weight[i] >= 0;
    for (int64_t i = 1; i < n; i++)
        if (id[i] != id[0]) return -1;
    return n ? id[0] : -1;
}

/* Gives a single score for two classes, which is the second class's although the file assigns it to
 * the first. The first class gets 1 minus it if it is a probability, else its opposite; positive:
 * no weight is negative. */
static void two_classes(onnx_job *j, cnr_value score, int positive) {
    const char *post = ml_text(j, "post_transform", "NONE");
    const int logistic = strcmp(post, "LOGISTIC") == 0;
    if (!logistic && strcmp(post, "NONE") != 0)
        return onnx_problem(j, "post_transform %s of one score is not supported", post);
    const cnr_value label = ml_above(j, score, positive ? 0.5f : 0);
    const cnr_value yes = ml_post(j, score),
                    one = imp_scalar(&j->net->imp, j->name, ".one", positive || logistic ? 1 : 0);
    j->out[0] = ml_named(j, label);
    j->out[1] = ml_both(j, ml_two(j, "sub", one, yes), yes);
}

void ml_tree_classifier(onnx_job *j) {
    const int64_t classes = ml_classes(j);
    int positive = 0;
    const int64_t only = only_class(j, &positive);
    const int one = classes == 2 && only == 0;
    forest f = {.n = 0};
    if (!read_forest(j, &f)) goto out;
    int64_t n_base;
    ml_floats(j, "base_values", &n_base);
    if (classes == 2 && (only == 1 || n_base == 2)) /* runtimes disagree on this case */
        onnx_problem(j,
                     "weights of the second of two classes alone, or base_values of both, are "
                     "not supported%s",
                     "");
    read_values(j, &f, "class", classes, one);
    if (j->failed) goto out;
    const cnr_value y = with_base(j, scores(j, &f, "reduce_sum"), f.columns);
    if (j->failed) goto out;
    if (one) two_classes(j, y, positive);
    else {
        j->out[0] = ml_named(j, ml_best(j, y));
        j->out[1] = ml_post(j, y);
    }
out:
    imp_host->map_free(f.places);
}
