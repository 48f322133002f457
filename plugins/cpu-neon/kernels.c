/* The list of this plugin's kernels; at equal scores the earlier is taken. */
#include "kernels.h"

const cnr_kernel *const neon_kernels[] = {
    NULL,
};
