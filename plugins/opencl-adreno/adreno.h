/* Declarations shared by the files of this plugin. */
#ifndef ADRENO_H
#define ADRENO_H

#include "support.h"

extern const ocl_tune adreno_tunes[]; /* the last row fits all */
extern const int32_t adreno_n_tunes;

#endif
