/* Vector code for x86-64 with AVX2 and FMA. */
#define TLD_ISA avx2
#define TLD_VL 8
#include "template.h"
