/* The Adreno plugin drives what there is, when asked, by kernels of its own. */
#include "plugins/opencl-mali/oclcall.h"

static uint64_t seed = 5;

/* A tensor at random with these flags. */
static cnr_tensor *draw(const char *dims, uint32_t flags) {
    cnr_tensor *t = t_random(CNR_f32, dims, seed++);
    t->flags |= flags;
    return t;
}

int main(void) {
    ocl_open("opencl-adreno");
    OCL_EACH_DEVICE {
        const uint32_t constant = CNR_TENSOR_CONST;
        ocl_check("conv", "pads=1", "relu", 3, draw("2x5x9x11", 0), draw("7x5x3x3", constant),
                  draw("7", constant));
        /* padding alone makes the output deep */
        ocl_check("conv", "pads=0,0,2,1,1,0", "", 2, draw("2x16x1x1x31", 0),
                  draw("6x16x1x1x1", constant));
        /* or is all that the one output of an axis reads */
        ocl_check("conv", "strides=4,4,2; pads=1,0,1,1,3,3", "", 2, draw("3x5x1x3x24", 0),
                  draw("15x5x1x1x1", constant));
        ocl_check("dense", "", "relu", 3, draw("3x70", 0), draw("21x70", constant),
                  draw("21", constant));
        ocl_check("max_pool", "kernel_shape=2; strides=2", "", 1, draw("1x3x8x8", 0));
    }
    return ocl_done();
}
