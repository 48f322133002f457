/* The microkernels for any processor: 128-bit vectors, which is NEON on Arm and SSE2 on x86-64. */
#define NEON_ISA generic
#define NEON_VL 4
#if defined(__aarch64__)
#define NEON_REGISTERS 32
#else
#define NEON_REGISTERS 16
#endif
#include "template.h"
