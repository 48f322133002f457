/* Cores and clusters of cores, as /proc and /sys below a root ("": the machine's) tell. */
#ifndef NEON_CLUSTERS_H
#define NEON_CLUSTERS_H

#include <stddef.h>
#include <stdint.h>

enum { NEON_MOST_CLUSTERS = 8, NEON_MOST_CORES = 256 };

/* Cores of one speed. */
typedef struct neon_cluster {
    char name[24];   /* "big", "little" */
    long long speed; /* cpu_capacity, else the highest clock in kHz; higher is faster */
    int32_t n, cpus[NEON_MOST_CORES];
} neon_cluster;

/* Fastest first; 0 where all cores are alike, or the system does not say. Only cores that this
 * process may use. */
int32_t neon_clusters(const char *root, neon_cluster list[NEON_MOST_CLUSTERS]);

/* What these cores are called, "Cortex-A73"; n_cpus 0: all, "Cortex-A73 + Cortex-A53". */
void neon_cpu_name(const char *root, const int32_t *cpus, int32_t n_cpus, char *out, size_t room);

/* A text that the system has of a core, "cache/index%d/size" with the number put in; 0: it has
 * none. */
int neon_cpu_text(const char *root, int32_t cpu, const char *name, int number, char *out,
                  size_t room);

#endif
