/* rnn, gru, lstm: one step by hand, directions against each other, lengths, refusals. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

static double s(double v) { return 1 / (1 + exp(-v)); }

/* One number goes in, one is kept; h and c before are 0.5 and -0.25. */
static void by_hand(void) {
    cnr_tensor *y[3], *x = t_of(CNR_f64, "1x1x1", (double[]){2});
    cnr_tensor *h = t_of(CNR_f64, "1x1x1", (double[]){0.5});
    cnr_tensor *c = t_of(CNR_f64, "1x1x1", (double[]){-0.25});
    op_call("rnn", "", y, 2, 6, x, t_of(CNR_f64, "1x1x1", (double[]){0.3}),
            t_of(CNR_f64, "1x1x1", (double[]){-0.7}), t_of(CNR_f64, "1x2", (double[]){0.1, 0.05}),
            NULL, h);
    t_near(y[0], (double[]){tanh(0.6 - 0.35 + 0.15)}, 1e-12, "rnn");

    cnr_tensor *w = t_of(CNR_f64, "1x3x1", (double[]){0.1, 0.2, 0.3});
    cnr_tensor *r = t_of(CNR_f64, "1x3x1", (double[]){0.4, 0.5, 0.6});
    cnr_tensor *b = t_of(CNR_f64, "1x6", (double[]){0, 0, 0.01, 0, 0, 0.02});
    const double z = s(0.2 + 0.2), reset = s(0.4 + 0.25);
    op_call("gru", "", y, 2, 6, x, w, r, b, NULL, h);
    t_near(y[1], (double[]){(1 - z) * tanh(0.61 + 0.6 * reset * 0.5 + 0.02) + z * 0.5}, 1e-12,
           "gru: the reset before the product");
    op_call("gru", "linear_before_reset=1", y, 2, 6, x, w, r, b, NULL, h);
    t_near(y[1], (double[]){(1 - z) * tanh(0.61 + reset * (0.3 + 0.02)) + z * 0.5}, 1e-12,
           "and behind it, with its bias");

    const double i = s(0.2 + 0.25 + 0.3 * -0.25), f = s(0.6 + 0.35 + 0.2 * -0.25);
    const double cell = f * -0.25 + i * tanh(0.8 + 0.4), o = s(0.4 + 0.3 + 0.1 * cell);
    op_call("lstm", "", y, 3, 8, x, t_of(CNR_f64, "1x4x1", (double[]){0.1, 0.2, 0.3, 0.4}),
            t_of(CNR_f64, "1x4x1", (double[]){0.5, 0.6, 0.7, 0.8}), NULL, NULL, h, c,
            t_of(CNR_f64, "1x3", (double[]){0.3, 0.1, 0.2}));
    t_near(y[0], (double[]){o * tanh(cell)}, 1e-12, "lstm: gates i o f c, with peepholes");
    t_near(y[2], (double[]){cell}, 1e-12, "its cell");
}

/* A cell without peepholes is not multiplied by any, so that an infinite one stays so. */
static void infinite(void) {
    cnr_tensor *y[3], *x = t_of(CNR_f64, "1x1x1", (double[]){1});
    cnr_tensor *w = t_of(CNR_f64, "1x4x1", (double[]){0, 0, 0, 0});
    op_call("lstm", "", y, 3, 7, x, w, w, NULL, NULL, NULL,
            t_of(CNR_f64, "1x1x1", (double[]){-INFINITY}));
    t_near(y[0], (double[]){-0.5}, 1e-12, "lstm: half of the tanh of an infinite cell");
}

/* Direction `which` of `t`, the row of its last but one axes, as a tensor of its own. */
static cnr_tensor *half(const cnr_tensor *t, int which) {
    cnr_tensor *out = t_type(t->dtype, t->rank == 2 ? "1x40" : "1x20x4");
    if (t->rank == 3) out->dim[2] = t->dim[2];
    out->bytes = cnr_dense_bytes(out);
    out->data = op_keep(malloc(out->bytes));
    memcpy(out->data, (char *)t->data + (size_t)which * out->bytes, out->bytes);
    return out;
}

/* Tests: directions. */
static void directions(void) {
    cnr_tensor *both[3], *one[3], *other[3], *x = t_random(CNR_f64, "6x3x4", 1);
    cnr_tensor *w = t_random(CNR_f64, "2x20x4", 2), *r = t_random(CNR_f64, "2x20x5", 3);
    cnr_tensor *b = t_random(CNR_f64, "2x40", 4);
    cnr_tensor *lengths = t_of(CNR_i32, "3", (double[]){6, 2, 0});
    op_call("lstm", "direction=bidirectional;hidden_size=5", both, 3, 5, x, w, r, b, lengths);
    op_call("lstm", "", one, 3, 5, x, half(w, 0), half(r, 0), half(b, 0), lengths);
    op_call("lstm", "direction=reverse", other, 3, 5, x, half(w, 1), half(r, 1), half(b, 1),
            lengths);
    double wrong = 0, beyond = 0;
    for (int64_t t = 0; t < 6; t++)
        for (int64_t i = 0; i < 15; i++) {
            const double f = t_get(both[0], t * 30 + i), back = t_get(both[0], t * 30 + 15 + i);
            wrong += fabs(f - t_get(one[0], t * 15 + i)) + fabs(back - t_get(other[0], t * 15 + i));
            if (i >= 10 || (i >= 5 && t >= 2)) beyond += fabs(f) + fabs(back);
        }
    ok(wrong == 0, "both directions are one and the other");
    ok(beyond == 0, "behind a sequence's end there is 0");
    ok(t_get(both[1], 5) == t_get(both[0], 30 + 5), "the last h is where the sequence ends");
    ok(t_get(both[1], 20) == t_get(both[0], 20), "read backwards it is at the begin");
    op_refused("lstm", "hidden_size=4", "hidden_size", 3, IN(x, half(w, 0), half(r, 0)));
    op_refused("lstm", "", "w", 3, IN(x, w, r));
    op_refused("gru", "", "w", 3, IN(x, half(w, 0), half(r, 0)));
    op_refused("lstm", "layout=1", "layout", 3, IN(x, half(w, 0), half(r, 0)));
}

int main(void) {
    op_open();
    by_hand();
    infinite();
    directions();
    return op_done();
}
