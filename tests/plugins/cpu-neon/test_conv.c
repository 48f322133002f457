/* conv, its gradients and conv_transpose of cpu-neon against the references, on awkward shapes. */
#include "plugins/cpu-neon/neoncall.h"

static uint64_t seed = 7;

/* A tensor at random; constant: a weight. */
static cnr_tensor *draw(const char *dims, int constant) {
    cnr_tensor *t = t_random(CNR_f32, dims, seed++);
    if (constant) t->flags |= CNR_TENSOR_CONST;
    return t;
}

/* A convolution. */
typedef struct shape {
    const char *x, *weight, *attrs;
    int beside; /* a window lies in the padding alone: the reference makes the weight's gradient */
} shape;

static const shape shapes[] = {
    {"1x1x1x1", "1x1x1x1", "", 0},
    {"1x3x9x9", "8x3x3x3", "pads=1", 0},
    {"2x3x8x7", "9x3x3x2", "strides=2,1", 0},
    {"1x4x13x13", "7x4x1x1", "", 0},
    {"3x5x4x5", "6x5x1x1", "strides=2", 0},
    {"1x17x14x14", "17x17x3x3", "pads=1; strides=2", 0},
    {"1x3x35x35", "10x3x11x11", "strides=4; pads=2", 0},
    {"1x8x12x11", "12x2x3x3", "group=4; pads=1,0,2,1", 0},
    {"2x6x9x10", "6x1x3x3", "group=6; pads=1", 0},
    {"1x5x17x33", "10x1x3x3", "group=5; strides=2; pads=1", 0},
    {"1x2x9x9", "2x1x2x3", "group=2; dilations=2,3; pads=3", 1},
    {"1x3x12x12", "5x3x3x3", "dilations=2; auto_pad=SAME_UPPER", 0},
    {"1x2x11x7", "4x2x2x2", "strides=3; auto_pad=SAME_LOWER", 0},
    {"8x2x7x7", "5x2x3x3", "pads=1", 0},
    {"12x3x9x9", "16x3x5x5", "", 0},
    {"2x4x31", "6x4x5", "pads=2; strides=3", 0},
    {"1x6x20", "6x1x3", "group=6; pads=1", 0},
    {"2x3x5x6x7", "4x3x2x3x2", "pads=1; strides=1,2,1", 0},
    {"1x4x4x5x6", "4x1x3x3x3", "group=4; pads=1", 0},
    {"1x40x9x9", "33x40x3x3", "pads=1", 0},
    {"1x3x3x400", "49x3x3x3", "", 0},
    {"1x2x5x5", "3x2x1x1", "pads=2", 1},
    {"1x1x28x28", "20x1x5x5", "", 0},
    /* gradients: several images of a block, several blocks of an image, x read in place */
    {"9x4x6x7", "8x1x3x3", "group=4; pads=1", 0},
    {"2x2x40x40", "2x1x3x3", "group=2; pads=2,1; dilations=2,1", 0},
    {"1x5x40x40", "6x5x1x1", "", 0},
    {"2x7x40x40", "9x7x3x3", "pads=1", 0},
    {"2x3x6x6", "4x3x3x3", "strides=5", 0},
    /* small windows of many channels: whole tiles, pieces of them, pads, several blocks and images
     */
    {"1x16x14x14", "32x16x3x3", "pads=1", 0},
    {"2x24x9x17", "40x24x3x3", "pads=1,0,2,1", 0},
    {"1x16x8x8", "16x16x3x3", "", 0},
    {"1x8x5x6", "8x8x3x3", "pads=1", 0}, /* variable weights */
    {"3x32x3x31", "8x32x3x3", "pads=2", 0},
    {"1x64x45x34", "48x64x3x3", "pads=1", 0},
    {"4x8x30x29", "24x8x3x3", "auto_pad=SAME_UPPER", 0},
    {"1x8x5x5", "8x8x3x3", "pads=1", 0}, /* variable weights */
    {"2x32x13x14", "48x16x3x3", "group=2; pads=1", 0},
    /* taps that lie far apart: whole rows and columns of a window are in the padding */
    {"1x16x14x14", "16x16x3x3", "dilations=12; pads=12", 0},
    {"1x16x14x14", "32x16x3x3", "dilations=12,5; pads=12,3,9,7", 0},
    {"1x16x14x14", "16x16x3x3", "dilations=9; pads=9", 0}, /* variable weights */
    {"2x32x29x20", "16x32x3x3", "dilations=6; strides=2; pads=6", 0},
    {"1x16x9x33", "48x16x3x3", "dilations=3,14; strides=2,3; pads=2,14,4,11", 0},
    /* most taps lie in the padding, and each is multiplied alone */
    {"1x64x14x15", "40x64x3x3", "dilations=12; pads=12", 0},
    {"1x64x4x4", "32x64x1x5", "pads=0,2", 0}, /* variable weights */
    /* Winograd's method on planes: bands of an image, several images, rests of tiles and channels
     */
    {"3x20x9x11", "18x20x5x5", "pads=2", 0},
    {"17x33x6x7", "34x33x3x3", "pads=1", 0},
    {"2x32x13x6", "40x16x5x5", "group=2; pads=1,2,2,0", 0},
    {"1x16x50x37", "16x16x3x3", "pads=0,1,2,1", 0},
    {"2x272x5x7", "8x272x3x3", "dilations=6,5; strides=1,2; pads=6,2,6,5", 0},
    {"1x128x5x4", "32x64x5x1", "group=2; dilations=2,1; pads=4,0", 0},
};

/* Tests: convolutions. */
static void convolutions(void) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i];
        cnr_tensor *x = draw(s->x, 0), *w = draw(s->weight, i % 4 != 3), *b;
        char dims[32];
        snprintf(dims, sizeof dims, "%lld", (long long)w->dim[0]);
        b = draw(dims, 1);
        neon_check("conv", s->attrs, "", 3, x, w, b);
        neon_check("conv", s->attrs, i % 3 ? "relu" : "add; leaky_relu alpha=0.1; tanh", 2, x, w);
        neon_check("conv", s->attrs, i % 2 ? "add; clip min=-1 max=2" : "add; sigmoid", 3, x, w, b);
    }
}

/* Tests: gradients. */
static void gradients(void) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i];
        cnr_tensor *x = draw(s->x, 0), *w = draw(s->weight, i % 2), *y[1];
        op_call("conv", s->attrs, y, 1, 2, x, w);
        cnr_tensor *dy = t_random(CNR_f32, "", seed++);
        *dy = *t_copy(y[0]);
        for (int64_t e = 0; e < cnr_count(dy); e++)
            t_set(dy, e, (double)(e * 7919 % 201) / 100 - 1);
        neon_check("conv_grad_input", s->attrs, "", 3, dy, w, x);
        if (!s->beside) neon_check("conv_grad_weight", s->attrs, "", 3, dy, x, w);
    }
}

/* Tests: transposed convolutions. */
static void transposed(void) {
    static const shape cases[] = {
        {"1x4x5x5", "4x3x3x3", "strides=2; pads=1; output_padding=1", 0},
        {"2x6x4x7", "6x2x4x4", "strides=2; pads=1; group=2", 0},
        {"1x3x5x5", "3x8x2x2", "strides=2", 0},
        {"1x3x6x5", "3x2x3x3", "auto_pad=SAME_UPPER; strides=2", 0},
        {"1x3x6x5", "3x2x3x3", "auto_pad=SAME_LOWER; strides=3", 0},
        {"1x3x6x5", "3x2x3x3", "output_shape=13,11; strides=2", 0},
        {"1x2x9", "2x5x4", "dilations=2; pads=2", 0},
        {"1x2x3x4x5", "2x3x2x2x2", "strides=2", 0},
        {"1x16x20x20", "16x21x4x4", "strides=2; pads=1", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cnr_tensor *x = draw(cases[i].x, 0), *w = draw(cases[i].weight, i % 2);
        neon_check("conv_transpose", cases[i].attrs, i % 3 ? "" : "relu", 2, x, w);
    }
}

/* A NaN or infinity in the windows that hold it, whatever is fused behind, and nowhere else:
 * channels that fill up a block or a panel are multiplied by nothing. */
static void not_numbers(void) {
    static const char *const chains[] =
        {"",           "relu",      "relu6", "clip min=-1 max=2", "leaky_relu alpha=0.1",
         "hard_swish", "add; relu", "tanh"};
    static const char *const xs[] = {"2x3x9x11", "1x16x9x11", "1x8x9x11", "1x19x9x11"};
    static const char *const ws[] = {"5x3x1x1", "16x16x1x1", "24x8x1x1", "33x19x1x1"};
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        cnr_tensor *x = draw(xs[i % 4], 0), *w = draw(ws[i % 4], 1);
        for (int64_t e = 3; e < cnr_count(x); e += 97) t_set(x, e, e % 2 ? NAN : INFINITY);
        neon_check("conv", "", chains[i], 2, x, w);
        neon_check("conv", "strides=2", chains[i], 2, x, w);
    }
    /* a window that is wider than an infinity may spread */
    cnr_tensor *x = draw("1x1x40x40", 0);
    t_set(x, 5 * 40, INFINITY);
    neon_check("conv_grad_weight", "", "", 3, draw("1x1x38x25", 0), x, draw("1x1x3x16", 0));
}

/* One case more after another: sizes round the tiles' edges. */
static void edges(void) {
    for (int out = 1; out <= 26; out += 5)
        for (int wide = 1; wide <= 50; wide += 7) {
            char xs[64], ws[64];
            snprintf(xs, sizeof xs, "1x3x3x%d", wide + 2);
            snprintf(ws, sizeof ws, "%dx3x3x3", out);
            cnr_tensor *w = draw(ws, 1);
            neon_check("conv", "", "relu", 2, draw(xs, 0), w);
        }
    neon_check("conv_grad_weight", "pads=1,0", "", 3, draw("3x2x0", 0), draw("3x1x0", 0),
               draw("2x1x3", 0)); /* no positions to sum over */
    /* several blocks of the summed axis and of columns */
    cnr_tensor *w = draw("9x70x3x3", 1);
    neon_check("conv", "pads=1", "sigmoid", 2, draw("1x70x19x19", 0), w);
    w = draw("19x300x1x1", 1);
    neon_check("conv", "", "relu", 2, draw("1x300x16x17", 0), w);
}

int main(void) {
    neon_open();
    kernel_cases.keeps = 1;
    NEON_EACH_ISA {
        seed = 7; /* the same cases, so that the reference runs once */
        convolutions();
        gradients();
        transposed();
        edges();
        not_numbers();
    }
    return op_done();
}
