/* lstm, gru and rnn of cpu-neon against the references: directions, lengths, sizes, what may be
 * left out, weights that change. */
#include "plugins/cpu-neon/neoncall.h"

static uint64_t seed = 17;

/* A tensor a x b, or with c a x b x c, at random; constant: a weight. */
static cnr_tensor *draw(int constant, int a, int b, int c) {
    char dims[64];
    snprintf(dims, sizeof dims, c ? "%dx%dx%d" : "%dx%d", a, b, c);
    cnr_tensor *t = t_random(CNR_f32, dims, seed++);
    if (constant) t->flags |= CNR_TENSOR_CONST;
    return t;
}

/* The number of each sequence's times, for a batch, between none and all. */
static cnr_tensor *lengths_of(int batch, int times) {
    double at[64];
    char dims[16];
    for (int i = 0; i < batch; i++) at[i] = i % 3 == 0 ? times : (i * 5) % (times + 1);
    snprintf(dims, sizeof dims, "%d", batch);
    return t_of(CNR_i32, dims, at);
}

/* A recurrent layer. */
typedef struct layer {
    const char *op, *attrs;
    int gates, directions;
} layer;

/* Tests a layer of these sizes: times, batch, inputs, hidden; with all inputs, or only those that
 * must be there; constant: weights are known. */
static void one(const layer *l, const int *size, int all, int constant) {
    const int t = size[0], n = size[1], i = size[2], h = size[3], d = l->directions;
    cnr_tensor *x = draw(0, t, n, i), *w = draw(constant, d, l->gates * h, i);
    cnr_tensor *r = draw(constant, d, l->gates * h, h);
    const double shrink = 1.0 / h; /* or chaos makes much of little */
    for (int64_t k = 0; k < cnr_count(r); k++) t_set(r, k, t_get(r, k) * shrink);
    if (!all) {
        neon_check(l->op, l->attrs, "", 3, x, w, r);
        return;
    }
    cnr_tensor *b = draw(constant, d, 2 * l->gates * h, 0), *lengths = lengths_of(n, t);
    cnr_tensor *first = draw(0, d, n, h);
    if (l->gates == 4)
        neon_check(l->op, l->attrs, "", 8, x, w, r, b, lengths, first, draw(0, d, n, h),
                   draw(1, d, 3 * h, 0));
    else neon_check(l->op, l->attrs, "", 6, x, w, r, b, lengths, first);
}

/* Tests: recurrent layers. */
static void layers(void) {
    static const layer all[] = {{"lstm", "", 4, 1},
                                {"lstm", "direction=reverse", 4, 1},
                                {"lstm", "direction=bidirectional", 4, 2},
                                {"gru", "", 3, 1},
                                {"gru", "direction=bidirectional", 3, 2},
                                {"gru", "direction=reverse; linear_before_reset=1", 3, 1},
                                {"gru", "direction=bidirectional; linear_before_reset=1", 3, 2},
                                {"rnn", "", 1, 1},
                                {"rnn", "direction=reverse", 1, 1},
                                {"rnn", "direction=bidirectional", 1, 2}};
    static const int sizes[][4] = {{1, 1, 1, 1},
                                   {5, 1, 7, 16},
                                   {7, 3, 17, 33},
                                   {3, 20, 5, 9},
                                   {4, 9, 3, 50}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            one(&all[i], sizes[k], 1, k % 2 == 0);
            one(&all[i], sizes[k], 0, k % 2 == 1);
        }
    /* so many gates that a sequence is read in several stretches */
    one(&all[2], (int[]){6, 40, 3, 300}, 1, 1);
    one(&all[4], (int[]){9, 40, 2, 150}, 1, 1);
}

int main(void) {
    neon_open();
    NEON_EACH_ISA { layers(); }
    return op_done();
}
