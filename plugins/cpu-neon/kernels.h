/* The kernels that this plugin registers. */
#ifndef NEON_KERNELS_H
#define NEON_KERNELS_H

#include <cnnrun/kernel.h>

extern const cnr_kernel *const neon_kernels[]; /* NULL-terminated */

#endif
