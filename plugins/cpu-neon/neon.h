/* Shared by this plugin's files: the host, the selected microkernels, the kernel tables. */
#ifndef NEON_H
#define NEON_H

#include "shapes.h"
#include "ukernel/ukernel.h"

#include <cnnrun/kit.h>

extern const cnr_host *neon_host;    /* set by init */
extern const neon_ukernels *neon_uk; /* set by init, from the processor's features */
extern const cnr_device_class neon_device_class;

/* Implements cnr_device_class.properties for device `index`; with a stream it also times the
 * cores. */
cnr_status neon_facts(int32_t index, cnr_stream *stream, cnr_property_fn tell, void *arg,
                      cnr_error *err);

/* The number of cores that this process may use. */
int32_t neon_cores(void);
/* Calls fn(arg, i, thread) for all i < n on a device's threads where there is no stream: in
 * prepare. */
void neon_parallel(const cnr_device *device, int64_t n, void (*fn)(void *, int64_t, int32_t),
                   void *arg);
/* The widest microkernels that this processor supports; CNNRUN_CPU_ISA may select narrower ones. */
const neon_ukernels *neon_widest_isa(void);
/* Applies the requested instruction set when a device is opened; CNR_E_ARG: not available. */
cnr_status neon_wanted_isa(cnr_error *err);
/* Whether this processor multiplies bf16 by conv_pairs of the microkernels in use. */
int neon_multiplies_bf16(void);
/* Name of the instruction set in use, or of the one that will be, such as "avx2". */
const char *neon_isa_name(void);
void neon_isa_unused(void); /* counts a device off that was closed */

#endif
