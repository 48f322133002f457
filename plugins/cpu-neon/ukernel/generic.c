/* Microkernels for any processor: 128-bit vectors, which are NEON on AArch64 and SSE2 on x86-64. */
#define NEON_ISA generic
#define NEON_VL 4
#if defined(__aarch64__)
#define NEON_REGISTERS 32
#else
#define NEON_REGISTERS 16
#endif
#include "template.h"
