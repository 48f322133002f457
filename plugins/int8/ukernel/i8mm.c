/* Microkernels for AArch64 with SDOT and SMMLA (FEAT_I8MM). */
#define INT8_ISA i8mm
#define INT8_NEON 1
#include "template.h"
