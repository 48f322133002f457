/* Microkernels for x86-64 with AVX-512 F, VL, BW and DQ. */
#define NEON_ISA avx512
#define NEON_VL 16
#define NEON_REGISTERS 32
#include "template.h"
