/* A pool of threads that share out the indices of a loop. */
#ifndef NEON_THREADS_H
#define NEON_THREADS_H

#include <stdint.h>

typedef struct neon_threads neon_threads;

/* Up to `n` threads, the caller of neon_threads_run being one; NULL when out of memory. Fewer when
 * the system gives no more: *got says. With `cpus`, n_cpus of them, the threads stay on those
 * cores, and the caller, who may be anywhere, only waits. */
neon_threads *neon_threads_open(int32_t n, const int32_t *cpus, int32_t n_cpus, int32_t *got);
void neon_threads_close(neon_threads *pool);
/* fn(arg, i, thread) for all i < n. Called from several threads at once, one gets the pool and the
 * others work alone, so no caller ever waits for another. */
void neon_threads_run(neon_threads *pool, int64_t n,
                      void (*fn)(void *arg, int64_t i, int32_t thread), void *arg);

#endif
