/* Infers the input size, which Torch files do not give. Layers give the number of channels that
 * they read; a Linear or View after the convolutions gives the number of elements left. Square
 * sizes that lead to this number are candidates; imp_fits_best selects one. */
#include "torch7.h"

enum { MOST = 1024, STEPS = 4096 };

/* What became of a size that is tried: go on, it fits, it does not, or unknown. */
typedef enum verdict { GO_ON, FITS, NO_FIT, UNKNOWN } verdict;

/* A size that is tried on the modules. */
typedef struct trial {
    int64_t c, h, w, joined;               /* joined: sum of the channels of all branches */
    int flat, exact, closed, steps, depth; /* closed: sizes must be known, but any will do */
} trial;

/* 1 if the list has the word. */
static int is_one_of(const char *kind, const char *const *list) {
    for (; *list; list++)
        if (strcmp(kind, *list) == 0) return 1;
    return 0;
}

static const char *const same_size[] = {"ReLU",
                                        "ReLU6",
                                        "Tanh",
                                        "Sigmoid",
                                        "Abs",
                                        "Threshold",
                                        "PReLU",
                                        "LeakyReLU",
                                        "RReLU",
                                        "ELU",
                                        "HardTanh",
                                        "Clamp",
                                        "SoftPlus",
                                        "SoftSign",
                                        "Dropout",
                                        "SpatialDropout",
                                        "Identity",
                                        "Copy",
                                        "Contiguous",
                                        "SpatialBatchNormalization",
                                        "BatchNormalization",
                                        "SpatialCrossMapLRN",
                                        "MulConstant",
                                        "AddConstant",
                                        "Mul",
                                        "Square",
                                        "Sqrt",
                                        "Power",
                                        "CAddTable",
                                        "CMulTable",
                                        "CMaxTable",
                                        "SoftMax",
                                        "LogSoftMax",
                                        "SpatialSoftMax",
                                        "InstanceNormalization",
                                        "TotalVariation",
                                        "ClippedReLU",
                                        NULL};

static const char *const in_a_row[] = {"Sequential", "Inception", "SpatialLPPooling",
                                       "Decorator",  "DontCast",  NULL};

/* Number of windows of a module along an axis ('W' or 'H') of n pixels; 0: none fits. */
static int64_t windows(trial *t, const t7_value *m, char axis, int64_t n) {
    char k[] = "kW", d[] = "dW", pad[] = "padW", dil[] = "dilationW";
    k[1] = d[1] = pad[3] = dil[8] = axis;
    const int64_t size = (t7_int(m, k, 1) - 1) * t7_int(m, dil, 1) + 1, stride = t7_int(m, d, 1);
    const int64_t room = n + 2 * t7_int(m, pad, t7_int(m, "padding", 0)) - size;
    if (room < 0 || stride < 1) return 0;
    if (room % stride) t->exact = 0;
    const int up = t7_bool(m, "ceil_mode", 0) && room % stride;
    return room / stride + 1 + up;
}

static verdict walk(const t7_value *m, trial *t);

/* Tries the modules of a list in turn, changing t; the first verdict other than GO_ON ends it. */
static verdict walk_list(const t7_value *m, trial *t) {
    const t7_value *modules = t7_field(m, "modules"), *one;
    for (int64_t i = 1; (one = t7_item(modules, i)) != NULL; i++) {
        const verdict v = walk(one, t);
        if (v != GO_ON) return v;
    }
    return GO_ON;
}

/* Tries a module that joins branches, and sums their channels; the first branch decides everything
 * else. */
static verdict walk_branches(const t7_value *m, trial *t) {
    const t7_value *modules = t7_field(m, "modules"), *one;
    trial first = *t;
    int64_t joined = 0;
    for (int64_t i = 1; (one = t7_item(modules, i)) != NULL; i++) {
        trial own = *t;
        const verdict v = walk(one, &own);
        if (v != GO_ON) return v;
        if (i > 1 && (own.h != first.h || own.w != first.w)) return NO_FIT;
        if (i == 1) first = own;
        else first.exact = first.exact && own.exact;
        t->steps = own.steps;
        joined += own.c;
    }
    first.steps = t->steps;
    *t = first;
    t->joined = joined;
    return joined ? GO_ON : UNKNOWN;
}

/* Tries a module that reshapes: whether its sizes fit those of t. */
static verdict reshape(const t7_value *m, trial *t) {
    int64_t size[CNR_MAX_RANK];
    const int32_t n = t7_ints(t7_field(m, "size"), size, CNR_MAX_RANK);
    const int64_t total = t->c * t->h * t->w;
    int hole = 0;
    if (n < 1) return UNKNOWN;
    const int32_t from = n > 1 && size[0] == -1 && !t7_field(m, "numInputDims");
    for (int32_t i = from; i < n; i++) hole |= size[i] == -1;
    if (!hole) return imp_count(size + from, n - from) == total ? FITS : NO_FIT;
    if (n - from > 1) return UNKNOWN;
    t->flat = 1;
    return GO_ON;
}

/* Tries a module by its class: changes the sizes in t, or gives a verdict. */
static verdict walk_kind(const t7_value *m, const char *kind, trial *t) {
    if (is_one_of(kind, same_size)) return GO_ON;
    if (is_one_of(kind, in_a_row)) return walk_list(m, t);
    if (strcmp(kind, "ConcatTable") == 0) return walk_branches(m, t);
    if (strcmp(kind, "Concat") == 0 || strcmp(kind, "DepthConcat") == 0) {
        const verdict v = walk_branches(m, t);
        t->c = t->joined;
        t->closed |= strcmp(kind, "DepthConcat") == 0; /* it needs to know the largest input */
        return v;
    }
    if (strcmp(kind, "JoinTable") == 0) {
        t->c = t->joined;
        return GO_ON;
    }
    if (strcmp(kind, "View") == 0 || strcmp(kind, "Reshape") == 0) return reshape(m, t);
    if (strcmp(kind, "Linear") == 0) {
        const t7_value *w = t7_field(m, "weight");
        if (!w || w->kind != T7_TENSOR || w->rank != 2) return UNKNOWN;
        return w->dim[1] == t->c * t->h * t->w ? FITS : NO_FIT;
    }
    if (strcmp(kind, "SpatialZeroPadding") == 0 || strcmp(kind, "SpatialReflectionPadding") == 0) {
        t->h += t7_int(m, "pad_t", 0) + t7_int(m, "pad_b", 0);
        t->w += t7_int(m, "pad_l", 0) + t7_int(m, "pad_r", 0);
        return t->h > 0 && t->w > 0 ? GO_ON : NO_FIT;
    }
    if (strcmp(kind, "ShaveImage") == 0) {
        t->h -= 2 * t7_int(m, "size", 0);
        t->w -= 2 * t7_int(m, "size", 0);
        return t->h > 0 && t->w > 0 ? GO_ON : NO_FIT;
    }
    if (strncmp(kind, "SpatialUpSampling", 17) == 0) {
        t->h *= t7_int(m, "scale_factor", 1);
        t->w *= t7_int(m, "scale_factor", 1);
        return t->h < 1 << 20 && t->h > 0 ? GO_ON : UNKNOWN;
    }
    if (strncmp(kind, "SpatialAdaptive", 15) == 0) {
        t->h = t7_int(m, "H", 1), t->w = t7_int(m, "W", 1);
        t->closed |= t->h != 1 || t->w != 1;
        return GO_ON;
    }
    static const char *const windowed[] = {"SpatialConvolution",        "SpatialConvolutionMM",
                                           "SpatialDilatedConvolution", "SpatialMaxPooling",
                                           "SpatialAveragePooling",     NULL};
    if (!is_one_of(kind, windowed)) return UNKNOWN;
    t->h = windows(t, m, 'H', t->h);
    t->w = windows(t, m, 'W', t->w);
    if (strstr(kind, "Convolution")) t->c = t7_int(m, "nOutputPlane", 0);
    return t->h > 0 && t->w > 0 && t->c > 0 ? GO_ON : NO_FIT;
}

/* Tries a module with the sizes in t; UNKNOWN for too many steps or levels. */
static verdict walk(const t7_value *m, trial *t) {
    char kind[64];
    if (!t7_class(m, kind, sizeof kind) || t->depth > T7_MAX_NESTED || t->steps++ > STEPS)
        return UNKNOWN;
    t->depth++;
    const verdict v = walk_kind(m, kind, t);
    t->depth--;
    return v;
}

/* Writes the sizes of a View or Reshape, without a -1 for the batch, to out; returns how many, 0:
 * not fixed. */
static int32_t fixed_sizes(const t7_value *m, int64_t *out) {
    int64_t size[CNR_MAX_RANK];
    const int32_t n = t7_ints(t7_field(m, "size"), size, CNR_MAX_RANK - 1);
    const int32_t from = n > 1 && size[0] == -1;
    for (int32_t i = from; i < n; i++) out[i - from] = size[i];
    return n > from && imp_count(size + from, n - from) > 0 ? n - from : 0;
}

/* The first module that determines its input's shape; NULL: none. */
static const t7_value *first_reader(const t7_value *m, int depth, int *steps) {
    static const char *const readers[] = {"SpatialConvolution",
                                          "SpatialConvolutionMM",
                                          "SpatialDilatedConvolution",
                                          "SpatialFullConvolution",
                                          "SpatialBatchNormalization",
                                          "Linear",
                                          NULL};
    const t7_value *modules = t7_field(m, "modules"), *one;
    int64_t size[CNR_MAX_RANK];
    char kind[64];
    if (!t7_class(m, kind, sizeof kind) || depth > T7_MAX_NESTED || ++*steps > STEPS) return NULL;
    if (is_one_of(kind, readers)) return m;
    if (strcmp(kind, "View") == 0 || strcmp(kind, "Reshape") == 0)
        return fixed_sizes(m, size) ? m : NULL;
    for (int64_t i = 1; (one = t7_item(modules, i)) != NULL; i++) {
        const t7_value *found = first_reader(one, depth + 1, steps);
        if (found || *steps > STEPS) return found;
    }
    return NULL;
}

/* Tries square pictures from 1 pixel on; *out: the best size that fits, and whether any size
 * does. */
static void try_squares(const t7_value *m, int64_t channels, t7_size *out) {
    imp_fits sizes = {.low = 0};
    for (int64_t s = 1; s <= MOST; s++) {
        trial t = {.c = channels, .h = s, .w = s, .exact = 1};
        const verdict v = walk(m, &t);
        if (v == UNKNOWN) return;
        if (v == GO_ON && t.closed) return;
        if (v == GO_ON) { /* no module after it fixes a number of pixels */
            out->open = 1;
            out->rank = 3;
            out->dim[0] = channels, out->dim[1] = out->dim[2] = 0;
            return;
        }
        if (v == FITS) imp_fits_add(&sizes, s, t.exact);
    }
    out->low = sizes.low, out->high = sizes.high;
    out->dim[0] = channels;
    out->dim[1] = out->dim[2] = imp_fits_best(&sizes);
    out->rank = out->dim[1] ? 3 : 0;
}

void t7_find_size(const t7_value *m, t7_size *out) {
    int steps = 0;
    const t7_value *reader = first_reader(m, 0, &steps);
    char kind[64] = "";
    memset(out, 0, sizeof *out);
    if (!reader || !t7_class(reader, kind, sizeof kind)) return;
    const t7_value *w = t7_field(reader, "weight");
    if (strcmp(kind, "Linear") == 0) {
        out->rank = w && w->kind == T7_TENSOR && w->rank == 2 && w->dim[1] > 0;
        out->dim[0] = out->rank ? w->dim[1] : 0;
    } else if (strcmp(kind, "View") == 0 || strcmp(kind, "Reshape") == 0) {
        out->rank = fixed_sizes(reader, out->dim);
    } else {
        const int64_t c =
            strstr(kind, "Convolution") ? t7_int(reader, "nInputPlane", 0) : t7_count(w);
        if (c > 0) try_squares(m, c, out);
    }
}
