/* Vector code for x86-64 with AVX-512 F, VL, BW and DQ. */
#define TLD_ISA avx512
#define TLD_VL 16
#include "template.h"
