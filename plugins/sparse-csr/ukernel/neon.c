/* Microkernels for ARMv7 with NEON; AArch64 uses generic.c. */
#define CSR_ISA neon
#include "generic.c"
