/* The microkernels for ARMv7 with NEON; on AArch64 generic.c has them. */
#define NEON_ISA neon
#define NEON_VL 4
#define NEON_REGISTERS 16
#include "template.h"
