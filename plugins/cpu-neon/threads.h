/* A pool of threads that shares the indices of a loop. */
#ifndef NEON_THREADS_H
#define NEON_THREADS_H

#include <stdint.h>

typedef struct neon_threads neon_threads;

/* Opens up to `n` threads; the caller of neon_threads_run is one of them. NULL: out of memory.
 * *got: how many; the system may give fewer. cpus: the threads stay on these n_cpus cores, and the
 * caller, who may be on any core, only waits. */
neon_threads *neon_threads_open(int32_t n, const int32_t *cpus, int32_t n_cpus, int32_t *got);
void neon_threads_close(neon_threads *pool); /* NULL: nothing */
/* Calls fn(arg, i, thread) for all i < n. If several threads call it at once, one uses the pool and
 * the others work alone, so that no caller waits for another. */
void neon_threads_run(neon_threads *pool, int64_t n,
                      void (*fn)(void *arg, int64_t i, int32_t thread), void *arg);

#endif
