/* Whether the machine's OpenCL drivers can be asked at all. */
#ifndef OCL_PROBE_H
#define OCL_PROBE_H

#include "ocl.h"

/* Lets a child process ask the drivers first, and has the loader leave out those that end it; the
 * cache keeps the result. 1: OpenCL may be asked; 0: not at all. To be called before the first call
 * into the library that ocl_api_open opened. */
int ocl_probe(void);

#endif
