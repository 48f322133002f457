/* Attributes against a schema: defaults, conversions, spatial lists, and every mistake reported. */
#include "host/host.h"
#include "tests/tap.h"

static const char *const choices[] = {"NOTSET", "SAME_UPPER", "VALID", NULL};
static const cnr_attr_spec rows[] = {
    {"count", CNR_ATTR_INT, CNR_ATTR_REQUIRED | CNR_ATTR_BOUNDED, "out", "how many", 1, 1e300, 0, 0,
     0, NULL, NULL},
    {"alpha", CNR_ATTR_FLOAT, CNR_ATTR_BOUNDED, NULL, NULL, 0, 1, 0, 0, 0.25, NULL, NULL},
    {"bias", CNR_ATTR_BOOL, 0, NULL, NULL, 0, 0, 1, 0, 0, NULL, NULL},
    {"auto_pad", CNR_ATTR_ENUM, 0, NULL, NULL, 0, 0, 0, 0, 0, "NOTSET", choices},
    {"label", CNR_ATTR_STRING, 0, NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL},
    {"strides", CNR_ATTR_INTS, CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED, "stride", NULL, 1, 1000, 0, 1,
     0, NULL, NULL},
    {"pads", CNR_ATTR_INTS, CNR_ATTR_SPATIAL_PAIRS, "pad", NULL, 0, 0, 0, 0, 0, NULL, NULL},
    {"scales", CNR_ATTR_FLOATS, 0, NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL},
    {"to", CNR_ATTR_DTYPE, 0, NULL, NULL, 0, 0, CNR_f32, 0, 0, NULL, NULL},
    {"axes", CNR_ATTR_INTS, 0, NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL},
};
enum { COUNT, ALPHA, BIAS, AUTO_PAD, LABEL, STRIDES, PADS, SCALES, TO, AXES, N };

static char problems[4096];
static int n_problems;
/* Keeps a problem. */
static void note_problem(void *arg, const char *path, const char *text) {
    (void)arg;
    n_problems++;
    const size_t used = strlen(problems);
    snprintf(problems + used, sizeof problems - used, "%s: %s\n", path, text);
}

/* Checks attributes against the test's schema; NULL: there are problems. */
static cnr_attr **resolve(const cnr_attr *given, int32_t n, int32_t spatial) {
    const cnr_attr *list[32];
    cnr_attr **out = NULL;
    for (int32_t i = 0; i < n; i++) list[i] = &given[i];
    problems[0] = 0;
    n_problems = 0;
    const cnr_status status =
        cnri_attrs_resolve(rows, sizeof *rows, N, list, n, spatial, note_problem, NULL, &out);
    if ((status == CNR_OK) != (out != NULL) || (status == CNR_OK) != (n_problems == 0))
        ok(0, "status, result and problems agree");
    return out;
}
/* Checks these attributes. */
#define RESOLVE(spatial, ...) \
    resolve((const cnr_attr[]){__VA_ARGS__}, \
            (int32_t)(sizeof((const cnr_attr[]){__VA_ARGS__}) / sizeof(cnr_attr)), spatial)

/* A whole attribute. */
#define INT(key, value) \
    { .name = key, .type = CNR_ATTR_INT, .i = value }
/* A float attribute. */
#define FLOAT(key, value) \
    { .name = key, .type = CNR_ATTR_FLOAT, .f = value }
/* A bool attribute. */
#define BOOL(key, value) \
    { .name = key, .type = CNR_ATTR_BOOL, .i = value }
/* A text attribute. */
#define TEXT(key, value) \
    { .name = key, .type = CNR_ATTR_STRING, .s = value }
/* A list of whole numbers. */
#define INTS(key, ...) \
    { \
        .name = key, .type = CNR_ATTR_INTS, \
        .n = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .ints = (const int64_t[]) { \
            __VA_ARGS__ \
        } \
    }
/* A list of floats. */
#define FLOATS(key, ...) \
    { \
        .name = key, .type = CNR_ATTR_FLOATS, \
        .n = sizeof((const double[]){__VA_ARGS__}) / sizeof(double), .floats = (const double[]) { \
            __VA_ARGS__ \
        } \
    }

/* A test: the list in the attribute. */
static void list_is(const cnr_attr *a, const char *want, const char *what) {
    cnri_text text = {0};
    cnri_text_add(&text, "%s", "");
    cnri_attr_print(a, &text);
    is_text(text.at, want, what);
    cnri_text_free(&text);
}

/* What is left out has its default. */
static void test_defaults(void) {
    cnr_attr **a = RESOLVE(2, INT("count", 7));
    if (!ok(a != NULL, "only what is required")) return;
    ok(a[COUNT]->i == 7 && a[COUNT]->set == 1, "given");
    ok(a[ALPHA]->f == 0.25 && a[ALPHA]->set == 0, "a default, marked as such");
    ok(a[BIAS]->i == 1, "a default truth");
    ok(strcmp(a[AUTO_PAD]->s, "NOTSET") == 0 && a[AUTO_PAD]->i == 0, "a default choice");
    is_text(a[LABEL]->s, "", "no text is empty text");
    list_is(a[STRIDES], "1, 1", "a spatial list is filled");
    list_is(a[PADS], "0, 0, 0, 0", "in pairs too");
    ok(a[SCALES]->n == 0 && a[AXES]->n == 0, "other lists are empty");
    list_is(a[TO], "f32", "a default data type");
    int in_order = 1;
    for (int32_t i = 0; i < N; i++)
        in_order &= strcmp(a[i]->name, rows[i].name) == 0 && a[i]->type == rows[i].type;
    ok(in_order, "all rows, in the order of the schema");
    cnri_free(a);
}

/* Attributes given in other forms are converted. */
static void test_conversions(void) {
    cnr_attr **a =
        RESOLVE(2, FLOAT("out", 20), INT("alpha", 1), INT("bias", 0), TEXT("auto_pad", "VALID"),
                TEXT("label", "x y"), INT("stride", 2), INTS("pads", 1, 2), INTS("scales", 3, 4),
                TEXT("to", "i8"), FLOATS("axes", -1, 2));
    if (!ok(a != NULL, "all forms that mean the same")) return note("%s", problems);
    is_int(a[COUNT]->i, 20, "an integral float is an int; an alias is a name");
    ok(a[ALPHA]->f == 1, "an int is a float");
    ok(a[BIAS]->i == 0 && a[BIAS]->type == CNR_ATTR_BOOL, "0 is false");
    is_int(a[AUTO_PAD]->i, 2, "a choice knows its index");
    is_text(a[LABEL]->s, "x y", "texts are copied");
    list_is(a[STRIDES], "2, 2", "one number is repeated for each axis");
    list_is(a[PADS], "1, 2, 1, 2", "one entry an axis stands for both ends");
    list_is(a[SCALES], "3, 4", "ints are floats");
    is_int(a[TO]->i, CNR_i8, "a data type by name");
    list_is(a[AXES], "-1, 2", "integral floats are ints");
    cnri_free(a);

    a = RESOLVE(3, INT("count", 1), BOOL("bias", 1), INT("pad", 4), INTS("stride", 1, 2, 3));
    if (!ok(a != NULL, "three axes")) return note("%s", problems);
    list_is(a[PADS], "4, 4, 4, 4, 4, 4", "one number for all ends");
    list_is(a[STRIDES], "1, 2, 3", "one an axis");
    cnri_free(a);

    a = RESOLVE(2, INT("count", 1), INTS("pads", 1, 2, 3, 4), FLOATS("scales", 0.5));
    if (!ok(a != NULL, "full pairs")) return note("%s", problems);
    list_is(a[PADS], "1, 2, 3, 4", "pairs as they are");
    cnri_free(a);
}

/* Lists stay as given while the number of axes is unknown. */
static void test_unknown_rank(void) {
    cnr_attr **a = RESOLVE(-1, INT("count", 1), INTS("strides", 1, 2, 3));
    if (!ok(a != NULL, "axes not known yet")) return;
    list_is(a[STRIDES], "1, 2, 3", "a list stays as given");
    is_int(a[PADS]->n, 0, "an omitted one stays empty");
    const cnr_attr *again[N];
    cnr_attr **b = NULL;
    for (int32_t i = 0; i < N; i++) again[i] = a[i];
    ok(cnri_attrs_resolve(rows, sizeof *rows, N, again, N, 3, note_problem, NULL, &b) == CNR_OK,
       "what was resolved resolves again");
    if (b) list_is(b[PADS], "0, 0, 0, 0, 0, 0", "now with its axes");
    cnri_free(a);
    cnri_free(b);
}

/* A test: the problem is told so. */
static void mistake(cnr_attr **a, const char *want) {
    has_text(problems, want, "is told");
    cnri_free(a);
}

/* Mistakes are told with what is wanted. */
static void test_mistakes(void) {
    static const cnr_attr one = INT("count", 1);
    mistake(resolve(NULL, 0, 2), "count: is required: want a whole number, how many");
    mistake(RESOLVE(2, INT("count", 0)), "count: want >= 1, got 0");
    mistake(RESOLVE(2, FLOAT("count", 2.5)), "count: want a whole number, got 2.5");
    mistake(RESOLVE(2, TEXT("out", "many")), "out: want a whole number, got \"many\"");
    mistake(RESOLVE(2, one, FLOAT("alpha", 1.5)), "alpha: want 0 to 1, got 1.5");
    mistake(RESOLVE(2, one, FLOAT("alpha", __builtin_nan(""))), "alpha: want 0 to 1, got nan");
    mistake(RESOLVE(2, one, INT("bias", 2)), "bias: want true or false, got 2");
    mistake(RESOLVE(2, one, TEXT("auto_pad", "SAME_UPER")), "did you mean \"SAME_UPPER\"?");
    mistake(RESOLVE(2, one, INT("auto_pad", 1)), "want one of NOTSET, SAME_UPPER, VALID, got 1");
    mistake(RESOLVE(2, one, INT("label", 3)), "label: want a text, got 3");
    mistake(RESOLVE(2, one, TEXT("to", "f33")), "to: want a data type (f32 f64");
    mistake(RESOLVE(2, one, INTS("stride", 1, 2, 3)),
            "stride: want 1 or 2 numbers (one a spatial axis), got 3");
    mistake(RESOLVE(3, one, INTS("pads", 1, 2)), "want 1, 3 or 6 numbers (3 spatial axes), got 2");
    mistake(RESOLVE(2, one, INTS("strides", 1, 0)), "strides[2]: want 1 to 1000, got 0");
    mistake(RESOLVE(2, one, FLOATS("axes", 0, 1.5)), "axes[2]: want a whole number, got 1.5");
    mistake(RESOLVE(2, one, BOOL("axes", 1)), "axes: want whole numbers, got true");
    mistake(RESOLVE(2, one, INT("strid", 1)), "strid: unknown attribute; did you mean \"stride\"?");
    mistake(RESOLVE(2, one, INT("zzzzzzz", 1)), "unknown attribute; there are: count, alpha, bias");
    mistake(RESOLVE(2, one, INT("out", 2)), "out: given already, as \"count\"");
    mistake(RESOLVE(2, one, one), "count: given twice");
    mistake(RESOLVE(2, one, {.name = "axes", .type = CNR_ATTR_INTS, .n = 3}),
            "axes: want whole numbers, got a list of 3");
    mistake(RESOLVE(2, one, {.name = "axes", .type = CNR_ATTR_INTS, .n = -1}), "axes: want");
    mistake(RESOLVE(2, one, {.name = NULL, .type = CNR_ATTR_INT}), "an attribute without a name");
    mistake(RESOLVE(2, one, {.name = "alpha", .type = 77}), "got a value of another kind");
    cnri_free(
        RESOLVE(2, FLOAT("alpha", 2), INT("strides", 0), INT("nonsense", 1), TEXT("bias", "yes")));
    is_int(n_problems, 5, "all five mistakes are told at once");
}

/* A plugin built when rows were shorter still has its schema read. */
static void test_short_rows(void) {
    const uint32_t short_size = offsetof(cnr_attr_spec, default_s);
    char packed[2 * sizeof(cnr_attr_spec)];
    memcpy(packed, &rows[COUNT], short_size);
    memcpy(packed + short_size, &rows[STRIDES], short_size);
    const cnr_attr given = INT("count", 3);
    const cnr_attr *list[] = {&given};
    cnr_attr **a = NULL;
    const cnr_status status = cnri_attrs_resolve((const cnr_attr_spec *)(const void *)packed,
                                                 short_size, 2, list, 1, 1, note_problem, NULL, &a);
    if (ok(status == CNR_OK, "rows shorter than ours")) list_is(a[1], "1", "are read in full");
    cnri_free(a);
    const cnr_attr nothing = INT("x", 1);
    const cnr_attr *other[] = {&nothing};
    problems[0] = 0;
    ok(cnri_attrs_resolve(NULL, 0, 0, other, 1, 2, note_problem, NULL, &a) == CNR_E_ARG,
       "no rows, no attributes");
    has_text(problems, "there are none", "as it says");
    is_int(cnri_attrs_resolve(NULL, 0, 0, NULL, 0, 2, NULL, NULL, &a), CNR_OK, "nothing at all");
    cnri_free(a);
}

/* Resolving fails cleanly at each allocation. */
static void test_without_memory(void) {
    static const cnr_attr given[] = {INT("count", 3), TEXT("label", "some text")};
    const cnr_attr *list[] = {&given[0], &given[1]};
    cnr_attr **a = NULL;
    cnr_status status;
    int64_t n = 1;
    do {
        cnri_alloc_fail_at(n++);
        status = cnri_attrs_resolve(rows, sizeof *rows, N, list, 2, 2, NULL, NULL, &a);
        cnri_alloc_fail_at(0);
    } while (status == CNR_E_MEMORY && a == NULL);
    ok(status == CNR_OK && n > 2, "memory may run out at any point");
    cnri_free(a);
}

int main(void) {
    test_defaults();
    test_conversions();
    test_unknown_rank();
    test_mistakes();
    test_short_rows();
    test_without_memory();
    return done();
}
