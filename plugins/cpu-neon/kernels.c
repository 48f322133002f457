/* The list of this plugin's kernels. */
#include "kernels.h"

const cnr_kernel *const neon_kernels[] = {
/* Address of one kernel, for the list. */
#define X(name) &name,
    NEON_KERNEL_LIST(X)
#undef X
        NULL,
};
