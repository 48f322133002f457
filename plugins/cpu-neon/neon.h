/* What the files of this plugin share: the host, the chosen microkernels, the kernel tables. */
#ifndef NEON_H
#define NEON_H

#include "ukernel/ukernel.h"

#include <cnnrun/plugin.h>

extern const cnr_host *neon_host;     /* set by init */
extern const neon_ukernels *neon_uk;  /* set by init, from what the processor can do */
extern const cnr_device_class neon_device_class;

/* How many cores this process may keep busy. */
int32_t neon_cores(void);
/* The best microkernels that this processor runs. CNNRUN_CPU_ISA may name a lesser set. */
const neon_ukernels *neon_choose_isa(void);

/* Calls fn for all i < n on the stream's threads. */
static inline void neon_parallel(cnr_stream *stream, int64_t n,
                                 void (*fn)(void *arg, int64_t i, int32_t thread), void *arg) {
    if (stream->parallel) stream->parallel(stream, n, fn, arg);
    else
        for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
}

static inline int64_t neon_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t neon_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t neon_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t neon_round_up(int64_t a, int64_t b) { return neon_div_up(a, b) * b; }

#endif
