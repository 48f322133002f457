/* Microkernels for x86-64 with AVX2, FMA and F16C. */
#define NEON_ISA avx2
#define NEON_VL 8
#define NEON_REGISTERS 16
#include "template.h"
