/* conv by OpenCL against the reference: packed in buffers and images, depthwise, as stored. */
#include "plugins/opencl-mali/oclcall.h"

static uint64_t seed = 7;

/* A tensor at random; constant: a weight. */
static cnr_tensor *draw(const char *dims, int constant) {
    cnr_tensor *t = t_random(CNR_f32, dims, seed++);
    if (constant) t->flags |= CNR_TENSOR_CONST;
    return t;
}

/* A convolution. */
typedef struct shape {
    const char *x, *weight, *attrs, *chain;
} shape;

/* Few windows, for each is a program to build; many sizes. */
static const shape shapes[] = {
    {"1x1x1x1", "1x1x1x1", "", ""},
    {"1x3x9x9", "8x3x3x3", "pads=1", "relu"},
    {"2x3x8x7", "9x3x3x2", "strides=2,1", ""},
    {"1x4x13x13", "7x4x1x1", "", ""},
    {"3x5x4x5", "6x5x1x1", "", "add; leaky_relu alpha=0.1; tanh"},
    {"1x17x14x14", "17x17x3x3", "pads=1; strides=2", ""},
    {"1x3x35x35", "10x3x11x11", "strides=4; pads=2", ""},
    {"1x8x12x11", "12x2x3x3", "group=4; pads=1,0,2,1", ""},
    {"1x6x9x10", "10x3x3x3", "group=2; pads=1", "relu"},
    {"2x6x9x10", "6x1x3x3", "group=6; pads=1", "relu"},
    {"1x5x17x33", "10x1x3x3", "group=5; strides=2; pads=1", ""},
    {"1x2x9x9", "2x1x2x3", "group=2; dilations=2,3; pads=3", ""},
    {"1x3x12x12", "5x3x3x3", "dilations=2; auto_pad=SAME_UPPER", ""},
    {"1x2x11x7", "4x2x2x2", "strides=3; auto_pad=SAME_LOWER", ""},
    {"12x3x9x9", "16x3x5x5", "", "~sub; mul"},
    {"2x4x31", "6x4x5", "pads=2; strides=3", ""},
    {"1x4x31", "6x4x1", "", ""},
    {"2x3x5x6x7", "4x3x2x3x2", "pads=1; strides=1,2,1", ""},
    {"2x3x3x4x5", "4x3x1x1x1", "", ""},
    {"2x16x1x1x31", "6x16x1x1x1", "pads=0,0,2,1,1,0", ""},               /* deep by padding alone */
    {"3x5x1x3x24", "15x5x1x1x1", "strides=4,4,2; pads=1,0,1,1,3,3", ""}, /* reads only padding */
    {"1x6x1x7x9", "6x1x1x3x3", "group=6; pads=1", ""},
    {"1x40x9x9", "33x40x3x3", "pads=1", ""},
    {"1x2x5x5", "3x2x1x1", "pads=2", ""},
    {"1x1x28x28", "20x1x5x5", "", ""},
    {"1x3x1x20", "4x3x1x1", "", ""},
};

int main(void) {
    ocl_open("opencl-mali");
    OCL_EACH_DEVICE
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i];
        cnr_tensor *x = draw(s->x, 0), *w = draw(s->weight, 1), *b;
        char dims[32];
        snprintf(dims, sizeof dims, "%lld", (long long)w->dim[0]);
        b = draw(dims, 1);
        ocl_check("conv", s->attrs, s->chain, i % 3 ? 3 : 2, x, w, b);
        if (i % 3) continue;            /* each is compiled anew, which takes a driver long */
        w->flags = CNR_TENSOR_VARIABLE; /* one that training changes */
        ocl_check("conv", s->attrs, s->chain, 3, x, w, b);
    }
    return ocl_done();
}
