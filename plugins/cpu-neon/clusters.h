/* Cores and clusters of cores, from /proc and /sys below a root ("": the machine's). */
#ifndef NEON_CLUSTERS_H
#define NEON_CLUSTERS_H

#include <stddef.h>
#include <stdint.h>

enum { NEON_MOST_CLUSTERS = 8, NEON_MOST_CORES = 256 };

/* Cores of one speed. */
typedef struct neon_cluster {
    char name[24];   /* name in the device: "big", "little" */
    long long speed; /* cpu_capacity, else the highest clock in kHz; higher is faster */
    int32_t n, cpus[NEON_MOST_CORES];
} neon_cluster;

/* Lists clusters of cores that this process may use, fastest first. 0: all cores are equal, or
 * unknown. */
int32_t neon_clusters(const char *root, neon_cluster list[NEON_MOST_CLUSTERS]);

/* Writes the name of these cores, "Cortex-A73", into out; n_cpus 0: of all cores, "Cortex-A73 +
 * Cortex-A53". "" if /proc/cpuinfo doesn't tell. */
void neon_cpu_name(const char *root, const int32_t *cpus, int32_t n_cpus, char *out, size_t room);

/* Reads a sysfs file of a core, as "cache/index%d/size" with `number` inserted; 0: there is
 * none. */
int neon_cpu_text(const char *root, int32_t cpu, const char *name, int number, char *out,
                  size_t room);

#endif
