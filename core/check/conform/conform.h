/* conform: judges what a plugin brings besides kernels and operators: devices, encodings, meters,
 * knobs, sources, importers; each judgement in a process of its own, so that a crash or a hang is a
 * finding with a name.
 *
 *     subjects (a device, an encoding ...) x judgements of their kind --(a child each)--> findings
 */
#ifndef CNRI_CONFORM_H
#define CNRI_CONFORM_H

#include "judge/judge.h"

/* Result of a judgement: it fails, it holds, or it was skipped. */
typedef enum cnri_verdict {
    CNRI_VERDICT_FAILS,
    CNRI_VERDICT_HOLDS,
    CNRI_VERDICT_SKIPPED /* it could not be judged here */
} cnri_verdict;

/* The result of one judgement of one subject. */
typedef struct cnri_finding {
    const char *kind, *name; /* kind "device", name "npu:0" */
    const char *device;      /* device of a kernel; NULL for other kinds */
    const char *judgement;   /* name of the judgement, "copies" */
    cnri_verdict verdict;
    const char *why; /* why it fails or is skipped; NULL: it passed */
    int64_t cases;   /* number of cases that were tried */
    double seconds;  /* NaN: not timed */
} cnri_finding;

/* What to judge (plugin, one device, one judgement), with which samples and nets, and whom to tell
 * of findings. */
typedef struct cnri_conform_options {
    const cnri_plugin *plugin; /* judges everything that it brings; NULL: `device` only */
    const char *device;        /* "npu:0" */
    const char *only;          /* (optional) only the judgement of this name */
    /* Files of nets on which regions and rewrites are judged; ends in NULL. */
    const char *const *nets;
    struct cnr_runtime *rt;     /* runtime that loads them */
    const char *const *samples; /* files or specs for importers and sources; ends in NULL */
    const char *sysfs_root, *meter_address; /* (optional) as in cnr_gauge_options */
    bool leaves_knobs;                      /* knobs are read and never set */
    cnri_check_options check; /* seed, cases, timeout, words and cancelled; kernels use it too */
    void *arg;
    void (*found)(void *arg, const cnri_finding *finding);
} cnri_conform_options;

/* Number of findings and cases. */
typedef struct cnri_conform_totals {
    int32_t findings, failed, skipped;
    int64_t cases;
} cnri_conform_totals;

/* Runs the judgements. A failed judgement is no error; it is one if there is nothing to judge. */
cnr_status cnri_conform_run(const cnri_conform_options *o, cnri_conform_totals *sum,
                            cnr_error *err);
/* Does the work of a child process; `work` is the word behind --worker. */
cnr_status cnri_conform_work(const cnri_conform_options *o, const char *work, cnr_error *err);
/* Kind, name and summary of judgement `index`; false past the last. */
bool cnri_conform_judgement(int32_t index, const char **kind, const char **name,
                            const char **summary);

#endif
