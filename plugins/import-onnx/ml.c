/* Converts the domain ai.onnx.ml (scikit-learn and others): linear models, preprocessing of their
 * inputs, postprocessing of scores. There are no text tensors here: classes are given by number,
 * and their names become the net's labels. */
#include "ml.h"

#include <stdio.h>

/* ---- shared by the operators ---- */

const float *ml_floats(const onnx_job *j, const char *name, int64_t *n) {
    const Onnx__AttributeProto *a = onnx_proto(j, name);
    *n = a ? (int64_t)a->n_floats : 0;
    return *n ? a->floats : NULL;
}

/* List of whole numbers of an attribute, and its length *n; NULL and 0: there is none. */
const int64_t *ml_ints(const onnx_job *j, const char *name, int64_t *n) {
    const Onnx__AttributeProto *a = onnx_proto(j, name);
    *n = a ? (int64_t)a->n_ints : 0;
    return *n ? a->ints : NULL;
}

const char *ml_text(onnx_job *j, const char *name, const char *fallback) {
    const Onnx__AttributeProto *a = onnx_proto(j, name);
    const char *text = a && a->has_s ? onnx_text(j, a->s) : fallback;
    return text ? text : fallback;
}

cnr_value ml_cast(onnx_job *j, cnr_value x, int32_t dtype) {
    const cnr_tensor *type = imp_type(&j->net->imp, x);
    imp_attrs attrs = {.n = 0};
    if (type && type->dtype == dtype) return x;
    imp_dtype(&attrs, "to", dtype);
    return onnx_step(j, "cast", &x, 1, &attrs);
}

cnr_value ml_two(onnx_job *j, const char *op, cnr_value a, cnr_value b) {
    return onnx_step(j, op, (cnr_value[]){a, b}, 2, NULL);
}

cnr_value ml_list(onnx_job *j, const float *values, int64_t n) {
    return onnx_constant(j, CNR_f32, values, &n, 1);
}

cnr_value ml_rows(onnx_job *j, int32_t dtype) {
    const cnr_tensor *x = j->n_in ? imp_type(&j->net->imp, j->in[0]) : NULL;
    if (!x || x->rank < 1 || x->rank > 2) {
        onnx_problem(j, "its input must have one or two dimensions%s", "");
        return -1;
    }
    const int64_t axis = 0;
    imp_attrs attrs = {.n = 0};
    const int alone = x->rank == 1;
    const cnr_value v = ml_cast(j, j->in[0], dtype);
    imp_ints(&attrs, "axes", &axis, 1);
    return alone ? onnx_step(j, "unsqueeze", &v, 1, &attrs) : v;
}

/* Restores the shape of input 0: a single row without N stays without it. */
static cnr_value as_given(onnx_job *j, cnr_value y) {
    const cnr_tensor *x = j->n_in ? imp_type(&j->net->imp, j->in[0]) : NULL;
    const int64_t axis = 0;
    imp_attrs attrs = {.n = 0};
    imp_ints(&attrs, "axes", &axis, 1);
    return x && x->rank == 1 ? onnx_step(j, "squeeze", &y, 1, &attrs) : y;
}

cnr_value ml_post(onnx_job *j, cnr_value scores) {
    const char *name = ml_text(j, "post_transform", "NONE");
    imp_attrs attrs = {.n = 0};
    imp_int(&attrs, "axis", -1);
    if (strcmp(name, "NONE") == 0) return scores;
    if (strcmp(name, "LOGISTIC") == 0) return onnx_step(j, "sigmoid", &scores, 1, NULL);
    if (strcmp(name, "SOFTMAX") == 0) return onnx_step(j, "softmax", &scores, 1, &attrs);
    onnx_problem(j, "post_transform %s is not supported", name);
    return -1;
}

/* Adds the post_transform as ml_post does; a problem if n is 1 and there is one. -1: failed. */
cnr_value ml_post_several(onnx_job *j, cnr_value scores, int64_t n) {
    const char *name = ml_text(j, "post_transform", "NONE");
    if (n > 1 || strcmp(name, "NONE") == 0) return ml_post(j, scores);
    onnx_problem(j, "post_transform %s of one number is not supported", name);
    return -1;
}

int64_t ml_classes(const onnx_job *j) {
    int64_t n;
    const Onnx__AttributeProto *a = onnx_proto(j, "classlabels_strings");
    if (a && a->n_strings) return (int64_t)a->n_strings;
    ml_ints(j, "classlabels_ints", &n);
    if (!n) ml_ints(j, "classlabels_int64s", &n);
    return n;
}

/* Makes the class names the net's labels, one a line. */
static void keep_names(onnx_job *j, const Onnx__AttributeProto *a) {
    size_t bytes = 0, n = 0;
    for (size_t i = 0; i < a->n_strings; i++) bytes += a->strings[i].len + 1;
    char *lines = (char *)onnx_own(j, bytes);
    if (!lines) return;
    for (size_t i = 0; i < a->n_strings; i++) {
        for (size_t k = 0; k < a->strings[i].len; k++) {
            const char c = (char)a->strings[i].data[k];
            lines[n++] = c == '\n' || c == '\r' || !c ? ' ' : c;
        }
        lines[n++] = '\n';
    }
    lines[n - 1] = 0;
    imp_meta(&j->net->imp, "labels", lines);
}

cnr_value ml_named(onnx_job *j, cnr_value index) {
    const Onnx__AttributeProto *a = onnx_proto(j, "classlabels_strings");
    int64_t n, usual = 1;
    const int64_t *labels = ml_ints(j, "classlabels_ints", &n);
    if (!labels) labels = ml_ints(j, "classlabels_int64s", &n);
    if (a && a->n_strings) keep_names(j, a);
    if ((a && a->n_strings) || !n) return index;
    for (int64_t i = 0; i < n; i++) usual &= labels[i] == i;
    if (usual) return index;
    return ml_two(j, "gather", onnx_constant(j, CNR_i64, labels, &n, 1), index);
}

cnr_value ml_best(onnx_job *j, cnr_value scores) {
    imp_attrs attrs = {.n = 0};
    imp_int(&attrs, "axis", 1);
    imp_bool(&attrs, "keepdims", 0);
    return onnx_step(j, "arg_max", &scores, 1, &attrs);
}

cnr_value ml_above(onnx_job *j, cnr_value scores, float limit) {
    const int64_t axis = 1;
    imp_attrs attrs = {.n = 0};
    imp_ints(&attrs, "axes", &axis, 1);
    const cnr_value yes =
        ml_two(j, "greater", scores, imp_scalar(&j->net->imp, j->name, ".limit", limit));
    return ml_cast(j, onnx_step(j, "squeeze", &yes, 1, &attrs), CNR_i64);
}

cnr_value ml_both(onnx_job *j, cnr_value no, cnr_value yes) {
    imp_attrs attrs = {.n = 0};
    imp_int(&attrs, "axis", 1);
    return onnx_step(j, "concat", (cnr_value[]){no, yes}, 2, &attrs);
}

/* ---- linear models ---- */

/* Adds x times the transposed coefficients (n rows), plus the intercepts if there are any. A row
 * has as many as x has columns; surplus coefficients are ignored, as in ONNX Runtime. -1:
 * failed. */
static cnr_value linear(onnx_job *j, int64_t n) {
    int64_t count, n_intercepts;
    const cnr_tensor *x = j->n_in ? imp_type(&j->net->imp, j->in[0]) : NULL;
    const int64_t known = x && x->rank ? x->dim[x->rank - 1] : -1;
    const float *coefficients = ml_floats(j, "coefficients", &count);
    const float *intercepts = ml_floats(j, "intercepts", &n_intercepts);
    imp_attrs attrs = {.n = 0};
    if (n < 1 || count < n || (known < 0 && count % n) || known > count / n ||
        (n_intercepts && n_intercepts != n)) {
        onnx_problem(j, "its coefficients or intercepts do not fit its input or its classes%s", "");
        return -1;
    }
    const int64_t dim[] = {n, known < 0 ? count / n : known};
    const cnr_value in[] =
        {ml_rows(j, CNR_f32),
         imp_weight(&j->net->imp, j->name, ".coefficients", coefficients, dim, 2),
         n_intercepts ? imp_weight(&j->net->imp, j->name, ".intercepts", intercepts, &n, 1) : -1};
    imp_bool(&attrs, "transB", 1);
    return j->failed ? -1 : onnx_step(j, "gemm", in, n_intercepts ? 3 : 2, &attrs);
}

/* Converts LinearRegressor. */
static void linear_regressor(onnx_job *j) {
    const int64_t n = onnx_int(j, "targets", 1);
    const cnr_value y = linear(j, n);
    if (!j->failed) j->out[0] = ml_post_several(j, y, n);
    j->done = 1;
}

/* One row of coefficients for two classes gives the second's score; the first gets 1 minus it, or
 * its opposite. */
static void linear_classifier(onnx_job *j) {
    int64_t rows;
    const int64_t classes = ml_classes(j);
    ml_floats(j, "intercepts", &rows);
    if (!rows) rows = classes;
    cnr_value scores = linear(j, rows), label;
    j->done = 1;
    if (j->failed) return;
    if (classes != rows && !(rows == 1 && classes == 2))
        return onnx_problem(j, "its classes are not as many as its intercepts%s", "");
    if (rows > 1) label = ml_best(j, scores);
    else label = ml_above(j, scores, 0);
    if (classes > rows) {
        const char *post = ml_text(j, "post_transform", "NONE");
        const cnr_value one = imp_scalar(&j->net->imp, j->name, ".one", 1);
        if (strcmp(post, "NONE") != 0 && strcmp(post, "LOGISTIC") != 0)
            return onnx_problem(j, "post_transform %s of one score is not supported", post);
        scores = ml_post(j, scores);
        scores = ml_both(j, ml_two(j, "sub", one, scores), scores);
    } else scores = ml_post(j, scores);
    /* a single class: whether the row belongs to it */
    j->out[0] = classes > 1 ? ml_named(j, label) : label;
    j->out[1] = scores;
}

/* ---- preprocessing ---- */

/* (x - offset) * scale, with one value each, or one for each column */
static void scaler(onnx_job *j) {
    int64_t n;
    cnr_value x = ml_rows(j, CNR_f32);
    const float *offset = ml_floats(j, "offset", &n);
    if (offset) x = ml_two(j, "sub", x, ml_list(j, offset, n));
    const float *scale = ml_floats(j, "scale", &n);
    if (scale) x = ml_two(j, "mul", x, ml_list(j, scale, n));
    j->out[0] = as_given(j, x);
    j->done = 1;
}

/* Converts Normalizer; what does not fit is noted as a problem and sets j->failed. */
static void normalizer(onnx_job *j) {
    const char *norm = ml_text(j, "norm", "MAX");
    const cnr_value x = ml_rows(j, CNR_f32);
    const int64_t axis = 1;
    imp_attrs attrs = {.n = 0};
    j->done = 1;
    if (j->failed) return;
    if (norm[0] == 'L' && (norm[1] == '1' || norm[1] == '2') && !norm[2]) {
        imp_int(&attrs, "axis", axis);
        imp_int(&attrs, "p", norm[1] - '0');
        j->out[0] = as_given(j, onnx_step(j, "lp_normalization", &x, 1, &attrs));
        return;
    }
    if (strcmp(norm, "MAX") != 0) return onnx_problem(j, "norm %s is not supported", norm);
    imp_ints(&attrs, "axes", &axis, 1);
    const cnr_value most = onnx_step(j, "reduce_max", &x, 1, &attrs);
    const cnr_value none = imp_scalar(&j->net->imp, j->name, ".none", 0),
                    one = imp_scalar(&j->net->imp, j->name, ".one", 1);
    const cnr_value by[] = {ml_two(j, "equal", most, none), one, most};
    j->out[0] = as_given(j, ml_two(j, "div", x, onnx_step(j, "where", by, 3, NULL)));
}

/* Converts Binarizer. */
static void binarizer(onnx_job *j) {
    const Onnx__AttributeProto *limit = onnx_proto(j, "threshold");
    const cnr_value x = ml_cast(j, j->n_in ? j->in[0] : -1, CNR_f32); /* any shape */
    const cnr_value by =
        imp_scalar(&j->net->imp, j->name, ".threshold", limit ? (double)limit->f : 0);
    const cnr_value yes = ml_two(j, "greater", x, by);
    j->out[0] = ml_cast(j, yes, CNR_f32);
    j->done = 1;
}

/* replaces missing numbers by one value, or one for each column */
static void imputer(onnx_job *j) {
    int64_t n, n_ints;
    const float *floats = ml_floats(j, "imputed_value_floats", &n);
    const int64_t *ints = ml_ints(j, "imputed_value_int64s", &n_ints);
    const Onnx__AttributeProto *gone = onnx_proto(j, "replaced_value_float");
    const float missing = gone ? gone->f : 0;
    const int64_t missing_int = onnx_int(j, "replaced_value_int64", 0);
    j->done = 1;
    if (!floats && !ints) return onnx_problem(j, "there is no imputed value%s", "");
    const cnr_value x = ml_rows(j, floats ? CNR_f32 : CNR_i64);
    cnr_value is;
    if (floats && missing != missing) is = onnx_step(j, "is_nan", &x, 1, NULL);
    else
        is = ml_two(j, "equal", x,
                    floats ? onnx_constant(j, CNR_f32, &missing, NULL, 0)
                           : onnx_constant(j, CNR_i64, &missing_int, NULL, 0));
    const cnr_value in[] = {is,
                            floats ? ml_list(j, floats, n)
                                   : onnx_constant(j, CNR_i64, ints, &n_ints, 1),
                            x};
    j->out[0] = as_given(j, onnx_step(j, "where", in, 3, NULL));
}

/* Converts FeatureVectorizer. */
static void feature_vectorizer(onnx_job *j) {
    imp_attrs attrs = {.n = 0};
    imp_int(&attrs, "axis", 1);
    for (int32_t i = 0; i < j->n_in; i++) j->in[i] = ml_cast(j, j->in[i], CNR_f32);
    j->out[0] = onnx_step(j, "concat", j->in, j->n_in, &attrs);
    j->done = 1;
}

static void feature_extractor(onnx_job *j) { /* selects columns by an index, which has any shape */
    const int64_t flat = -1;
    imp_attrs one = {.n = 0}, last = {.n = 0};
    const cnr_tensor *x = j->n_in == 2 ? imp_type(&j->net->imp, j->in[0]) : NULL;
    j->done = 1;
    if (!x || x->rank < 1) return onnx_problem(j, "an input is missing%s", "");
    imp_ints(&one, "shape", &flat, 1);
    imp_int(&last, "axis", -1);
    const cnr_value in[] = {x->rank == 1 ? ml_rows(j, x->dtype) : j->in[0],
                            onnx_step(j, "reshape", &j->in[1], 1, &one)};
    j->out[0] = onnx_step(j, "gather", in, 2, &last);
}

/* Converts OneHotEncoder of whole numbers; an unknown category gives zeros. */
static void one_hot(onnx_job *j) {
    int64_t n;
    const int64_t *ints = ml_ints(j, "cats_int64s", &n), last = -1;
    imp_attrs attrs = {.n = 0};
    j->done = 1;
    if (!ints) return onnx_problem(j, "categories that are %s are not supported", "texts");
    if (!onnx_int(j, "zeros", 1))
        return onnx_problem(j, "zeros = 0, which refuses unknown categories, is not supported%s",
                            "");
    imp_ints(&attrs, "axes", &last, 1);
    const cnr_value x = ml_cast(j, j->n_in ? j->in[0] : -1, CNR_i64);
    const cnr_value is = ml_two(j, "equal", onnx_step(j, "unsqueeze", &x, 1, &attrs),
                                onnx_constant(j, CNR_i64, ints, &n, 1));
    j->out[0] = ml_cast(j, is, CNR_f32);
}

/* A list of maps from names to scores; only the scores are kept. */
static void zip_map(onnx_job *j) {
    const Onnx__AttributeProto *a = onnx_proto(j, "classlabels_strings");
    if (a && a->n_strings) keep_names(j, a);
}

const onnx_form *onnx_ml_form(const char *name) {
    static const onnx_form rows[] = {
        IMP_LAYER("LinearRegressor", linear_regressor, .op = "gemm",
                  .takes = " coefficients intercepts targets post_transform "),
        IMP_LAYER("LinearClassifier", linear_classifier, .op = "gemm",
                  .takes = " coefficients intercepts multi_class post_transform classlabels_ints "
                           "classlabels_strings "),
        IMP_LAYER("TreeEnsembleRegressor", ml_tree_regressor, .op = "gather",
                  .takes = ML_TREE_TAKES),
        IMP_LAYER("TreeEnsembleClassifier", ml_tree_classifier, .op = "gather",
                  .takes = ML_TREE_TAKES),
        IMP_LAYER("Scaler", scaler, .op = "mul", .takes = " offset scale "),
        IMP_LAYER("Normalizer", normalizer, .op = "lp_normalization", .takes = " norm "),
        IMP_LAYER("Binarizer", binarizer, .op = "greater", .takes = " threshold "),
        IMP_LAYER("Imputer", imputer, .op = "where",
                  .takes = " imputed_value_floats imputed_value_int64s replaced_value_float "
                           "replaced_value_int64 "),
        IMP_LAYER("FeatureVectorizer", feature_vectorizer, .op = "concat",
                  .takes = " inputdimensions "),
        IMP_LAYER("ArrayFeatureExtractor", feature_extractor, .op = "gather"),
        IMP_LAYER("OneHotEncoder", one_hot, .op = "equal",
                  .takes = " cats_int64s cats_strings zeros "),
        IMP_LAYER("ZipMap", zip_map, .op = "identity",
                  .takes = " classlabels_strings classlabels_int64s "),
    };
    return IMP_ROW_OF(rows, name);
}
