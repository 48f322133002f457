/* Microkernels for ARMv7 with NEON; AArch64 uses generic.c. */
#define NEON_ISA neon
#define NEON_VL 4
#define NEON_REGISTERS 16
#include "template.h"
