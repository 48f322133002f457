/* Names of cores, and groups of equal cores: the clusters of big.LITTLE processors. */
#define _GNU_SOURCE
#include "clusters.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text files below the root ("", or a test's tree) ---- */

/* Reads a small file below root; 0: it can't, and out is "". */
static int read_text(const char *root, const char *path, char *out, size_t room) {
    char whole[600];
    out[0] = 0;
    if ((size_t)snprintf(whole, sizeof whole, "%s%s", root, path) >= sizeof whole) return 0;
    FILE *file = fopen(whole, "re");
    if (!file) return 0;
    const size_t n = fread(out, 1, room - 1, file);
    fclose(file);
    out[n] = 0;
    return n > 0;
}

static long long read_number(const char *root, int32_t cpu, const char *name) {
    char path[160], text[64], *end;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", (int)cpu, name);
    if (!read_text(root, path, text, sizeof text)) return -1;
    const long long value = strtoll(text, &end, 10);
    return end == text || value < 0 ? -1 : value;
}

int neon_cpu_text(const char *root, int32_t cpu, const char *name, int number, char *out,
                  size_t room) {
    char path[160];
    const char *at = strstr(name, "%d");
    if (!at) return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%.*s%d%s", (int)cpu,
             (int)(at - name), name, number, at + 2);
    return read_text(root, path, out, room);
}

/* ---- names ---- */

/* Marketing names of cores, from Arm's manuals and other makers. */
static const struct part {
    int32_t implementer, part;
    const char *name;
} parts[] = {
    {0x41, 0xc07, "Cortex-A7"},   {0x41, 0xc09, "Cortex-A9"},  {0x41, 0xc0f, "Cortex-A15"},
    {0x41, 0xc0e, "Cortex-A17"},  {0x41, 0xd03, "Cortex-A53"}, {0x41, 0xd04, "Cortex-A35"},
    {0x41, 0xd05, "Cortex-A55"},  {0x41, 0xd07, "Cortex-A57"}, {0x41, 0xd08, "Cortex-A72"},
    {0x41, 0xd09, "Cortex-A73"},  {0x41, 0xd0a, "Cortex-A75"}, {0x41, 0xd0b, "Cortex-A76"},
    {0x41, 0xd0c, "Neoverse-N1"}, {0x41, 0xd0d, "Cortex-A77"}, {0x41, 0xd40, "Neoverse-V1"},
    {0x41, 0xd41, "Cortex-A78"},  {0x41, 0xd44, "Cortex-X1"},  {0x41, 0xd46, "Cortex-A510"},
    {0x41, 0xd47, "Cortex-A710"}, {0x41, 0xd48, "Cortex-X2"},  {0x41, 0xd49, "Neoverse-N2"},
    {0x41, 0xd4d, "Cortex-A715"}, {0x41, 0xd4e, "Cortex-X3"},  {0x41, 0xd4f, "Neoverse-V2"},
    {0x51, 0x201, "Kryo Silver"}, {0x51, 0x205, "Kryo Gold"},  {0x51, 0x211, "Kryo"},
    {0x4e, 0x004, "Carmel"},      {0x4e, 0x003, "Denver 2"},
};

/* The text behind "KEY : ", inside the line; NULL: the line has another key. */
static const char *value_of(const char *line, const char *key) {
    const size_t n = strlen(key);
    if (strncmp(line, key, n) != 0 || !(line[n] == ' ' || line[n] == '\t' || line[n] == ':'))
        return NULL;
    const char *colon = strchr(line, ':');
    return colon ? colon + 1 + strspn(colon + 1, " \t") : NULL;
}

/* Name of a core by its implementer and part numbers. */
static void part_name(long implementer, long part, char *out, size_t room) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].implementer == implementer && parts[i].part == part) {
            snprintf(out, room, "%s", parts[i].name);
            return;
        }
    snprintf(out, room, "implementer 0x%02lx part 0x%03lx", implementer, part);
}

/* Appends a name, as in "A + B", unless it is contained already. */
static void add_name(char *out, size_t room, const char *name) {
    const size_t n = strlen(out);
    const char *at = strstr(out, name);
    const size_t length = strlen(name);
    if (at && (at[length] == 0 || at[length] == ' ') && (at == out || at[-1] == ' ')) return;
    snprintf(out + n, room - n, "%s%s", n ? " + " : "", name);
}

/* The name of these cores, "Cortex-A73"; n_cpus 0: of all cores. x86 gives "model name" for each
 * core; Arm's kernels give implementer and part number. */
void neon_cpu_name(const char *root, const int32_t *cpus, int32_t n_cpus, char *out, size_t room) {
    char path[600], line[512], name[128];
    long cpu = -1, implementer = -1;
    out[0] = 0;
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *text;
        line[strcspn(line, "\n")] = 0;
        if ((text = value_of(line, "processor")) != NULL) cpu = strtol(text, NULL, 10);
        if ((text = value_of(line, "CPU implementer")) != NULL)
            implementer = strtol(text, NULL, 16);
        int32_t wanted = n_cpus == 0;
        for (int32_t i = 0; i < n_cpus; i++) wanted = wanted || cpus[i] == cpu;
        if (!wanted) continue;
        if ((text = value_of(line, "model name")) != NULL) {
            add_name(out, room, text);
        } else if ((text = value_of(line, "CPU part")) != NULL && implementer >= 0) {
            part_name(implementer, strtol(text, NULL, 16), name, sizeof name);
            add_name(out, room, name);
        }
    }
    if (file) fclose(file);
    if (!out[0]) snprintf(out, room, "CPU");
}

/* ---- clusters ---- */

/* Writes the numbers of a text such as "0-3", "0 1 2 3" or "0-3,6" to cpus, at most `most`; returns
 * how many. */
static int parse_list(const char *text, int32_t *cpus, int32_t most) {
    int32_t n = 0;
    while (*text) {
        char *end;
        if (!isdigit((unsigned char)*text)) {
            text++;
            continue;
        }
        const long first = strtol(text, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last && n < most; cpu++) cpus[n++] = (int32_t)cpu;
        text = end;
    }
    return n;
}

/* Higher is faster; -1: unknown. */
static long long speed(const char *root, int32_t cpu) {
    const long long capacity = read_number(root, cpu, "cpu_capacity");
    return capacity >= 0 ? capacity : read_number(root, cpu, "cpufreq/cpuinfo_max_freq");
}

/* The cluster of cores within a tenth of this speed; a new one (in order of speed, *n grows) if
 * need be; NULL: there are too many. Highest clocks of equal cores differ by as much. */
static neon_cluster *cluster_of(neon_cluster *list, int32_t *n, long long speed_of_it) {
    int32_t at = 0;
    while (at < *n && list[at].speed - speed_of_it > list[at].speed / 10) at++;
    if (at < *n && speed_of_it - list[at].speed <= speed_of_it / 10) return &list[at];
    if (*n == NEON_MOST_CLUSTERS) return NULL;
    memmove(&list[at + 1], &list[at], (size_t)(*n - at) * sizeof *list);
    ++*n;
    list[at] = (neon_cluster){.speed = speed_of_it};
    return &list[at];
}

/* Names the n clusters, sorted by speed: big, middle and little. */
static void name_clusters(neon_cluster *list, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (i == 0) snprintf(list[i].name, sizeof list[i].name, "big");
        else if (i == n - 1) snprintf(list[i].name, sizeof list[i].name, "little");
        else if (n == 3) snprintf(list[i].name, sizeof list[i].name, "middle");
        else snprintf(list[i].name, sizeof list[i].name, "middle%d", (int)i);
    }
}

int32_t neon_clusters(const char *root, neon_cluster list[NEON_MOST_CLUSTERS]) {
    char text[1024];
    int32_t cpus[NEON_MOST_CORES], n = 0;
    cpu_set_t allowed;
    if (!read_text(root, "/sys/devices/system/cpu/possible", text, sizeof text)) return 0;
    const int32_t count = parse_list(text, cpus, NEON_MOST_CORES);
    const int real = root[0] == 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    for (int32_t i = 0; i < count; i++) {
        const long long s = speed(root, cpus[i]);
        if (s < 0 || (real && !CPU_ISSET((size_t)cpus[i], &allowed))) continue;
        neon_cluster *c = cluster_of(list, &n, s);
        if (c && c->n < NEON_MOST_CORES) c->cpus[c->n++] = cpus[i];
    }
    if (n < 2) return 0; /* all cores are equal: only the device "cpu" */
    name_clusters(list, n);
    return n;
}
