/* Kernels that multiply in halves, which are emulated, on long sums of ones: halves alone hold no
 * more than 2048 of them. */
#include "plugins/opencl-mali/oclcall.h"

/* A tensor of ones with these flags. */
static cnr_tensor *ones(const char *dims, uint32_t flags) {
    cnr_tensor *t = t_random(CNR_f32, dims, 1);
    for (int64_t i = 0; i < cnr_count(t); i++) cnri_element_set(t->dtype, t->data, i, 1);
    t->flags |= flags;
    return t;
}

int main(void) {
    const uint32_t constant = CNR_TENSOR_CONST;
    int32_t n = 0;
    setenv("CNNRUN_OPENCL_HALF", "emulated", 1);
    ocl_open("opencl-mali");
    for (int32_t i = 0; i < ocl_state.n_kernels; i++)
        if (ocl_state.kernels[i]->flags & CNR_KERNEL_F16_MATH)
            ocl_state.kernels[n++] = ocl_state.kernels[i];
    ok(n >= 9, "there are such kernels");
    ocl_state.n_kernels = n;
    OCL_EACH_DEVICE {
        ocl_check("dense", "", "relu", 3, ones("1x5000", 0), ones("6x5000", constant),
                  ones("6", constant));
        ocl_check("gemm", "", "", 2, ones("5x4099", 0), ones("4099x3", constant));
        ocl_check("conv", "", "", 3, ones("1x4096x2x24", 0), ones("5x4096x1x1", constant),
                  ones("5", constant));
        ocl_check("conv", "pads=1", "", 2, ones("1x500x5x5", 0), ones("4x500x3x3", constant));
    }
    return ocl_done();
}
