/* Whether the machine's OpenCL drivers can be asked at all. */
#ifndef OCL_PROBE_H
#define OCL_PROBE_H

#include "ocl.h"

/* Lets a child ask them first, and has the loader leave out those that end it. 0: nothing is to be
 * asked. Before the first call into the library, which ocl_api_open has opened. */
int ocl_probe(void);

#endif
