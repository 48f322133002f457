/* What the files of this plugin share: the host, the chosen microkernels, the kernel tables. */
#ifndef NEON_H
#define NEON_H

#include "ukernel/ukernel.h"

#include <cnnrun/kit.h>

extern const cnr_host *neon_host;    /* set by init */
extern const neon_ukernels *neon_uk; /* set by init, from what the processor can do */
extern const cnr_device_class neon_device_class;

cnr_status neon_facts(int32_t index, cnr_stream *stream, cnr_property_fn tell, void *arg,
                      cnr_error *err); /* the device class's */

/* How many cores this process may keep busy. */
int32_t neon_cores(void);
/* fn(arg, i, thread) for all i < n on the threads of a device, where there is no stream: in
 * prepare. */
void neon_parallel(const cnr_device *device, int64_t n, void (*fn)(void *, int64_t, int32_t),
                   void *arg);
/* The best microkernels that this processor runs. CNNRUN_CPU_ISA may name a lesser set. */
const neon_ukernels *neon_widest_isa(void);
/* What was asked for instead, when a device is opened; CNR_E_ARG: it is not there. */
cnr_status neon_wanted_isa(cnr_error *err);
const char *neon_isa_name(void); /* in use, or what would be */
void neon_isa_unused(void);      /* the device is closed */

#endif
