/* Declarations shared by the files of this plugin. */
#ifndef MALI_H
#define MALI_H

#include "support.h"

extern const ocl_tune mali_tunes[]; /* the last row fits all */
extern const int32_t mali_n_tunes;

#endif
