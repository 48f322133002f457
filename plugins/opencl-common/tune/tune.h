/* The numbers of families of devices, a table for each plugin; the last row of a table fits all. */
#ifndef OCL_TUNE_H
#define OCL_TUNE_H

#include "support.h"

extern const ocl_tune ocl_mali_tunes[], ocl_adreno_tunes[], ocl_desktop_tunes[];
extern const int32_t ocl_n_mali_tunes, ocl_n_adreno_tunes, ocl_n_desktop_tunes;

#endif
