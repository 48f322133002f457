/* Microkernels in plain C, for any processor. */
#define INT8_ISA generic
#include "template.h"
