/* Microkernels for AArch64 with SDOT (FEAT_DotProd). */
#define INT8_ISA dotprod
#define INT8_NEON 1
#include "template.h"
