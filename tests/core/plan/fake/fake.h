/* Shared by the files of the made-up plugin. */
#ifndef CNRT_FAKE_H
#define CNRT_FAKE_H

#include <cnnrun/plugin.h>

extern const cnr_host *fake_host;

/* near.c: a device in host memory; far.c: two devices with memory of their own, which work only
 * while somebody waits for them, so that a missing wait gives wrong data. */
extern const cnr_device_class fake_near, fake_far;

/* Queues fn(arg copy) on a far stream. */
typedef void (*fake_fn)(void *arg);
/* Queues fn with a copy of `bytes` of arg. */
cnr_status fake_queue(cnr_stream *stream, fake_fn fn, const void *arg, size_t bytes,
                      cnr_error *err);
/* The bytes behind far memory, NULL: it is not far memory; only for work that runs on the
 * device. */
void *fake_bytes(const cnr_mem *mem);

extern const cnr_op fake_ops[];
extern const int32_t fake_n_ops;
extern const cnr_kernel fake_kernels[];
extern const int32_t fake_n_kernels;
extern const cnr_encoding fake_halves;

#endif
