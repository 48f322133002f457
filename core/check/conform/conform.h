/* conform: judges what a plugin brings besides kernels and operators: devices, encodings, meters,
 * knobs, sources, importers; each judgement in a process of its own, so that a crash or a hang is a
 * finding with a name.
 *
 *     subjects (a device, an encoding ...) x judgements of their kind --(a child each)--> findings
 */
#ifndef CNRI_CONFORM_H
#define CNRI_CONFORM_H

#include "judge/judge.h"

typedef enum cnri_verdict {
    CNRI_VERDICT_FAILS,
    CNRI_VERDICT_HOLDS,
    CNRI_VERDICT_SKIPPED /* it could not be judged here */
} cnri_verdict;

/* One judgement of one subject. */
typedef struct cnri_finding {
    const char *kind, *name; /* "device", "npu:0" */
    const char *device;      /* of a kernel; NULL elsewhere */
    const char *judgement;   /* "copies" */
    cnri_verdict verdict;
    const char *why; /* it fails, or is skipped; NULL */
    int64_t cases;   /* that were tried */
    double seconds;  /* NaN: not timed */
} cnri_finding;

typedef struct cnri_conform_options {
    const cnri_plugin *plugin;  /* all that it brings; NULL: `device` alone */
    const char *device;         /* "npu:0" */
    const char *only;           /* (optional) the judgement of this name alone */
    const char *const *nets;    /* files of nets to judge regions and rewrites on; up to a NULL */
    struct cnr_runtime *rt;     /* to load them with */
    const char *const *samples; /* files or specs for importers and sources; up to a NULL */
    const char *sysfs_root, *meter_address; /* (optional) as gauges have them */
    bool leaves_knobs;                      /* knobs are read and never set */
    cnri_check_options check; /* seed, cases, timeout, words, cancelled; of kernels too */
    void *arg;
    void (*found)(void *arg, const cnri_finding *finding);
} cnri_conform_options;

typedef struct cnri_conform_totals {
    int32_t findings, failed, skipped;
    int64_t cases;
} cnri_conform_totals;

/* A failure of what is judged is no error; nothing to judge is. */
cnr_status cnri_conform_run(const cnri_conform_options *o, cnri_conform_totals *sum,
                            cnr_error *err);
/* What the program does in a child, with the words behind --worker. */
cnr_status cnri_conform_work(const cnri_conform_options *o, const char *work, cnr_error *err);
/* Judgements in the order of their table: kind, name and what is asked; false past the last. */
bool cnri_conform_judgement(int32_t index, const char **kind, const char **name,
                            const char **summary);

#endif
