/* Attention as exporters write it becomes one node, and answers as the nodes did: drawn sizes in
 * five spellings, on each instruction set. */
#include "run/run.h"
#include "tap.h"
#include <math.h>

enum { MOST = 1 << 19 }; /* elements of a tensor */

static uint64_t drawn = 29;

/* A whole number from low to high, at random. */
static int64_t draw(int64_t low, int64_t high) {
    drawn = drawn * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return low + (int64_t)((drawn >> 33) % (uint64_t)(high - low + 1));
}

/* A list and its length. */
#define LIST(...) \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[]) { __VA_ARGS__ }

/* Adds a node of n inputs. */
static cnr_value node(cnr_graph *g, const char *op, int32_t n, const cnr_value *in,
                      const cnr_attr *attr, int32_t attrs) {
    cnr_value out = -1;
    const cnr_attr *list[4] = {NULL};
    for (int32_t i = 0; i < attrs; i++) list[i] = &attr[i];
    cnri_graph_node(g, op, NULL, NULL, in, n, list, attrs, &out, 1);
    return out;
}

/* Adds a node of one input. */
static cnr_value of(cnr_graph *g, const char *op, cnr_value x) {
    return node(g, op, 1, &x, NULL, 0);
}
/* Adds a node of two inputs. */
static cnr_value of2(cnr_graph *g, const char *op, cnr_value x, cnr_value y) {
    return node(g, op, 2, (const cnr_value[]){x, y}, NULL, 0);
}
/* Adds a node of one input with one attribute, a list of n whole numbers. Returns its output; -1:
 * failed. */
static cnr_value with_list(cnr_graph *g, const char *op, const char *name, cnr_value x, int32_t n,
                           const int64_t *list) {
    const cnr_attr attr = {.name = name, .type = CNR_ATTR_INTS, .set = 1, .n = n, .ints = list};
    return node(g, op, 1, &x, &attr, 1);
}
/* Adds a reshape. */
#define RESHAPE(x, ...) with_list(g, "reshape", "shape", x, LIST(__VA_ARGS__))
/* Adds a transpose. */
#define TURN(x, ...) with_list(g, "transpose", "perm", x, LIST(__VA_ARGS__))

/* Adds a constant at random. */
static cnr_value constant(cnr_graph *g, int32_t rank, const int64_t *dim, double range) {
    static int count;
    char name[16];
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = rank};
    if (rank) memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
    const int64_t n = cnr_count(&t);
    if (n < 1 || n > MOST) return -1;
    float *data = calloc((size_t)n, sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = (float)(range * (double)draw(-1000, 1000) / 1000);
    t.data = data;
    snprintf(name, sizeof name, "c%d", count++);
    const cnr_value v = cnri_graph_constant(g, name, &t);
    free(data);
    return v;
}
/* Adds a constant of this shape. */
#define CONSTANT(range, ...) constant(g, LIST(__VA_ARGS__), range)

/* Adds a slice along an axis. */
static cnr_value cut(cnr_graph *g, cnr_value x, int64_t axis, int64_t begin, int64_t end) {
    const cnr_attr attrs[] =
        {{.name = "starts", .type = CNR_ATTR_INTS, .set = 1, .n = 1, .ints = &begin},
         {.name = "ends", .type = CNR_ATTR_INTS, .set = 1, .n = 1, .ints = &end},
         {.name = "axes", .type = CNR_ATTR_INTS, .set = 1, .n = 1, .ints = &axis}};
    return node(g, "slice", 1, &x, attrs, 3);
}

/* Adds a constant number. */
static cnr_value number(cnr_graph *g, float value) {
    static int count;
    char name[16];
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 0, .data = &value};
    snprintf(name, sizeof name, "n%d", count++);
    return cnri_graph_constant(g, name, &t);
}

/* ---- spellings: q [b h m e], k turned [b h e n], v [b h n e] of x [b m 3 h e] ---- */

/* Sizes of an attention. */
typedef struct sizes {
    int64_t b, h, m, n, e;
} sizes;

/* Adds part i of x. */
static cnr_value picked(cnr_graph *g, cnr_value x, int64_t i) {
    const cnr_value y = cut(g, x, 0, i, i + 1);
    return with_list(g, "squeeze", "axes", y, LIST(0));
}

/* Makes qkv as timm does: one product for all, its axes turned, and three parts of the first
 * axis. */
static void packed(cnr_graph *g, cnr_value x, const sizes *s, cnr_value *qkv) {
    const cnr_value all = TURN(RESHAPE(x, s->b, s->m, 3, s->h, s->e), 2, 0, 3, 1, 4);
    for (int i = 0; i < 3; i++) qkv[i] = picked(g, all, i);
    qkv[1] = TURN(qkv[1], 0, 1, 3, 2);
}
/* Makes qkv as Torchvision and Transformers do: three values, each turned. */
static void apart(cnr_graph *g, cnr_value x, const sizes *s, cnr_value *qkv) {
    static const char *const made[] = {"tanh", "sin", "cos"};
    for (int i = 0; i < 3; i++) {
        const cnr_value part = cut(g, of(g, made[i], x), 2, 0, s->h * s->e);
        qkv[i] = TURN(RESHAPE(part, s->b, s->m, s->h, s->e), 0, 2, 1, 3);
    }
    qkv[1] = TURN(qkv[1], 0, 1, 3, 2);
}
/* Makes qkv of chunks of the last axis; k is turned at once. */
static void chunked(cnr_graph *g, cnr_value x, const sizes *s, cnr_value *qkv) {
    const int64_t c = s->h * s->e;
    for (int i = 0; i < 3; i++) {
        const cnr_value part = RESHAPE(cut(g, x, 2, i * c, i * c + c), s->b, s->m, s->h, s->e);
        qkv[i] = i == 1 ? TURN(part, 0, 2, 3, 1) : TURN(part, 0, 2, 1, 3);
    }
}
/* Makes qkv of channels: rows are channels, columns positions. */
static void channels(cnr_graph *g, cnr_value x, const sizes *s, cnr_value *qkv) {
    const cnr_value all = TURN(RESHAPE(x, s->b, s->m, 3, s->h, s->e), 2, 0, 3, 4, 1);
    for (int i = 0; i < 3; i++) qkv[i] = picked(g, all, i);
    qkv[1] = TURN(qkv[1], 0, 1, 3, 2);
}
/* Makes qkv of other rows, which are constant. */
static void crossed(cnr_graph *g, cnr_value x, const sizes *s, cnr_value *qkv) {
    apart(g, x, s, qkv);
    qkv[1] = CONSTANT(1, s->b, s->h, s->e, s->n);
    qkv[2] = CONSTANT(1, 1, s->h, s->n, s->e);
}

/* Windows: the scores' batch axis is divided before the mask is added. */
static cnr_value masked(cnr_graph *g, cnr_value scores, const sizes *s, int64_t m, int64_t n) {
    const cnr_value parts = RESHAPE(scores, 1, s->b, s->h, m, n);
    return RESHAPE(of2(g, "add", parts, CONSTANT(1, s->b, 1, m, n)), s->b, s->h, m, n);
}

/* Whether the last net that was made can be one node with the same answers. */
static int fuses;

/* Whether what is no number is replaced by 0 behind the softmax. */
static int guarded;

/* Scores are replaced where a condition is true, or where it is false; whole rows may be. Scores
 * could be less than -1e4, so that stays. */
static cnr_value replaced(cnr_graph *g, cnr_value scores, int64_t m, int64_t n) {
    static const float low[] = {-1e4f, -1e9f, -3.4e38f, -INFINITY};
    const int which = (int)draw(0, 2 + guarded);
    fuses = fuses && which > 0;
    const cnr_value condition = of2(g, "greater", CONSTANT(1, m, n), number(g, -0.3f));
    const cnr_value least = number(g, low[which]);
    const int swapped = draw(0, 1);
    cnr_value in[] = {condition, swapped ? least : scores, swapped ? scores : least};
    return node(g, "where", 3, in, NULL, 0);
}

/* The softmax of scores; `guarded`: with 0 in the place of what is no number. */
static cnr_value softmax_of(cnr_graph *g, cnr_value scores) {
    const cnr_attr axis = {.name = "axis", .type = CNR_ATTR_INT, .set = 1, .i = -1};
    const cnr_value y = node(g, "softmax", 1, &scores, &axis, 1);
    const cnr_value in[] = {guarded ? of(g, "is_nan", y) : -1, number(g, 0), y};
    return guarded ? node(g, "where", 3, in, NULL, 0) : y;
}

/* Adds an attention that is spelt in nodes. */
static cnr_value attention_of_nodes(cnr_graph *g, cnr_value x, sizes *s, int spelling) {
    static void (*const spell[])(cnr_graph *, cnr_value, const sizes *,
                                 cnr_value *) = {packed, apart, chunked, channels, crossed};
    const int turned = spelling == 3;
    cnr_value qkv[3] = {-1, -1, -1};
    guarded = (int)draw(0, 1);
    spell[spelling](g, x, s, qkv);
    const int64_t m = turned ? s->e : s->m, n = spelling == 4 ? s->n : m;
    if (draw(0, 1)) qkv[0] = of2(g, "mul", qkv[0], number(g, .5f));
    cnr_value scores = of2(g, "matmul", qkv[0], qkv[1]);
    if (draw(0, 1)) scores = of2(g, "div", scores, number(g, 2.5f));
    if (draw(0, 2) == 0) scores = of2(g, "mul", CONSTANT(2, s->h, 1, 1), scores);
    const int64_t bias = draw(0, 1), mask = draw(0, 3), later = draw(0, 3) == 0;
    fuses = mask != 2 || (!bias && !later);
    if (bias) scores = of2(g, "add", CONSTANT(2, s->h, m, n), scores);
    if (mask == 1) scores = masked(g, scores, s, m, n);
    if (mask == 2) scores = replaced(g, scores, m, n);
    if (mask == 2 && later) scores = of2(g, "add", CONSTANT(1, m, n), scores);
    const cnr_value y = of2(g, "matmul", softmax_of(g, scores), qkv[2]);
    if (draw(0, 3) == 0) return y;
    return RESHAPE(TURN(y, 0, 2, 1, 3), s->b, -1, s->h * (turned ? s->m : s->e));
}

/* ---- comparing ---- */

/* Nodes of an operator. */
static int32_t count_of(const cnr_graph *g, const char *op) {
    int32_t n = 0;
    for (int32_t i = 0; i < g->nodes.n; i++) n += strcmp(g->nodes.at[i]->view.desc->name, op) == 0;
    return n;
}

/* The n outputs of the graph, which the caller frees; NULL with a note. *one: whether it holds
 * attention as one node. */
static float *answer(cnr_runtime *rt, const cnr_graph *g, const cnr_load_options *o,
                     const cnr_tensor *in, int64_t *n, int *one) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *model = NULL;
    cnr_plan *plan = NULL;
    const cnr_tensor *outputs[1] = {NULL};
    float *kept = NULL;
    cnr_status status = cnri_model_from_graph(rt, cnri_graph_copy(g), o, &model, &err);
    if (!status) status = cnr_run_tensors(model, &in, 1, outputs, 1, &err);
    if (!status) status = cnr_plan_for(model, NULL, 0, &plan, &err);
    if (status) note("%s: %s", err.where, err.text);
    else {
        *n = cnr_min(MOST, cnr_count(outputs[0]));
        *one = count_of(plan->graph, "attention") == 1 && count_of(plan->graph, "softmax") == 0;
        kept = calloc(MOST, sizeof *kept);
        memcpy(kept, outputs[0]->data, (size_t)*n * sizeof *kept);
    }
    if (model) cnr_release(model);
    return kept;
}

/* A test: the net fused from that spelling gives the same numbers on the device as the one that
 * isn't. */
static void compare(cnr_runtime *rt, sizes s, int spelling, const char *device, const char *what) {
    static const char *const off[] = {"fuse-attention", NULL};
    const cnr_tensor type = {.size = sizeof type,
                             .dtype = CNR_f32,
                             .rank = 3,
                             .dim = {s.b, s.m, 3 * s.h * s.e}};
    cnr_tensor in = type;
    cnr_graph *g = cnri_graph_new("net");
    const cnr_value x = cnri_graph_input(g, "x", &type);
    cnri_graph_output(g, attention_of_nodes(g, x, &s, spelling), "y");
    float *input = calloc(MOST, sizeof *input);
    for (int64_t i = 0; i < cnr_count(&type); i++) input[i] = (float)sin(0.37 * (double)i);
    in.data = input;
    in.bytes = (uint64_t)cnr_count(&type) * sizeof *input;
    const cnr_load_options fused = {.size = sizeof fused, .device = device},
                           plain = {.size = sizeof plain, .no_rewrite = off, .device = "cpu"};
    int64_t n = 0, m = -1;
    int one = 0, none = 1;
    float *got = answer(rt, g, &fused, &in, &n, &one),
          *want = answer(rt, g, &plain, &in, &m, &none);
    double worst = got && want && n == m ? 0 : HUGE_VAL;
    for (int64_t i = 0; got && want && n == m && i < n; i++) {
        const double apart_by = fabs((double)got[i] - (double)want[i]);
        if (!(apart_by <= worst)) worst = apart_by;
    }
    ok(one == fuses && !none && worst < 2e-5,
       "%s: spelling %d, %d batches, %d heads, %d by %d rows of %d (%g)", what, spelling, (int)s.b,
       (int)s.h, (int)s.m, (int)(spelling == 4 ? s.n : s.m), (int)s.e, worst);
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *saved = cnri_graph_copy(g);
    ok(!cnri_graph_rewrite(saved, NULL, NULL, 0, &err) && count_of(saved, "softmax") == 1,
       "... and in a net that is to be saved the nodes stay");
    cnri_graph_free(saved);
    free(got);
    free(want);
    free(input);
    cnri_graph_free(g);
}

/* Tests: all on one instruction set. */
static void on_isa(const char *isa) {
    const char *const dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options o = {.size = sizeof o,
                                .plugin_dirs = dirs,
                                .no_default_dirs = 1,
                                .cpu_isa = isa};
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt;
    if (cnr_open(&rt, &o, &err)) {
        ok(0, "a runtime opens: %s", err.text);
        return;
    }
    for (int i = 0; i < 15; i++) {
        const sizes s = {draw(1, 3), draw(1, 4), draw(1, 60), draw(1, 60), draw(1, 40)};
        compare(rt, s, i % 5, "cpu", isa);
    }
    /* several blocks of rows, and more columns than a block of the products has */
    compare(rt, (sizes){1, 2, 300, 700, 20}, 4, "cpu", isa);
    compare(rt, (sizes){1, 1, 260, 260, 70}, 0, "cpu", isa);
    cnr_close(rt);
}

int main(void) {
    on_isa("generic");
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) on_isa("avx2");
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) on_isa("avx512");
#endif
    return done();
}
