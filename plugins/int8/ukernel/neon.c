/* Microkernels for AArch64 and ARMv7 with NEON. */
#define INT8_ISA neon
#define INT8_NEON 1
#include "template.h"
