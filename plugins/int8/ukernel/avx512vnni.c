/* Microkernels for x86-64 with AVX-512 F, VL, BW, DQ and VNNI. */
#define INT8_ISA avx512vnni
#include "template.h"
