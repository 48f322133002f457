/* Vector code for any processor: 128-bit vectors, which are NEON on Arm and SSE2 on x86-64. */
#define TLD_ISA generic
#define TLD_VL 4
#include "template.h"
