/* Microkernels for x86-64 with AVX2. */
#define INT8_ISA avx2
#include "template.h"
