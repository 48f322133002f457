/* Processors: parses lists of them, and measures their load by /proc/stat. */
#include "gauge.h"
#include <cnnrun/kit.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROC_STAT = 1 << 20 };

/* Appends the numbers in a text such as "0 1 2 3" or "0-3" to *out, GAUGE_CPUS in all. */
void gauge_cpus_of(const char *text, gauge_cpus *out) {
    for (char *end; *text; text = end) {
        end = (char *)text + 1;
        if (!isdigit((unsigned char)*text)) continue;
        const long first = strtol(text, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last && out->n < GAUGE_CPUS; cpu++)
            out->at[out->n++] = (int32_t)cpu;
    }
}

/* Adds busy and total ticks from the line "cpu3 user nice system idle iowait irq softirq steal". */
static void add_line(const char *line, const gauge_cpus *c, uint64_t *busy, uint64_t *all) {
    char *at;
    int mine = 0;
    const long cpu = strncmp(line, "cpu", 3) == 0 && isdigit((unsigned char)line[3])
                         ? strtol(line + 3, &at, 10)
                         : -1;
    if (cpu < 0) return;
    GAUGE_EACH(i, c->n) mine = mine || c->at[i] == cpu;
    for (int i = 0; mine && i < 8; i++) {
        char *end;
        const unsigned long long ticks = strtoull(at, &end, 10);
        if (end == at) break;
        at = end;
        *all += ticks;
        if (i != 3 && i != 4) *busy += ticks;
    }
}

/* *out: the load of the CPUs since the last reading, 0 to 1, by /proc/stat; below 0: not known
 * yet. */
cnr_status gauge_cpus_load(const char *root, gauge_cpus *c, double *out, cnr_error *err) {
    char path[GAUGE_PATH];
    uint64_t busy = 0, all = 0, bytes;
    void *text;
    snprintf(path, sizeof path, "%.490s/proc/stat", strcmp(root, "/") == 0 ? "" : root);
    CNR_TRY(gauge_host->file_read(path, PROC_STAT, &text, &bytes, err));
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        add_line(line, c, &busy, &all);
    gauge_host->free(text);
    *out = c->all && all > c->all && busy >= c->busy
               ? (double)(busy - c->busy) / (double)(all - c->all)
               : -1;
    c->busy = busy;
    c->all = all;
    return CNR_OK;
}
