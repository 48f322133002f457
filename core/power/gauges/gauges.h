/* gauges: the meters and knobs of this machine, and what processes that were killed left in
 * knobs. */
#ifndef CNRI_GAUGES_H
#define CNRI_GAUGES_H

#include "host/host.h"

typedef struct cnri_meter_set {
    const cnr_meter *meter;
    void *state;
    cnr_meter_domain *domains;
    int32_t n;
} cnri_meter_set;
typedef struct cnri_knob_set {
    const cnr_knob *knob;
    void *state;
    cnr_knob_domain *domains;
    int32_t n;
    uint64_t *set_ns; /* by domain: when it was last set; 0: never */
    const char *root; /* the gauges' */
    char *keeps;
    int lock; /* putback.c: where what was found is kept; NULL: nothing is, yet */
} cnri_knob_set;
typedef struct cnri_gauges {
    CNRI_VEC(cnri_meter_set) meters;
    CNRI_VEC(cnri_knob_set) knobs;
    char *root;
} cnri_gauges;
/* Those that this machine has; what fails for another reason is left out, and logged. */
cnr_status cnri_gauges_open(cnri_gauges *g, const cnr_gauge_options *options, cnr_error *err);
/* Knobs that were set are put back; failing is the last word, told and logged. */
cnr_status cnri_gauges_close(cnri_gauges *g, cnr_error *err);
cnr_status cnri_meter_read(const cnri_meter_set *m, int32_t domain, cnr_reading *out,
                           cnr_error *err);
cnr_status cnri_knob_read(const cnri_knob_set *k, int32_t domain, cnr_knob_state *out,
                          cnr_error *err);
/* Within the bounds found, at a step where there are steps (the highest not above hz), and no
 * sooner after the last setting than the knob's period. hz 0, cores -1: as it is. */
cnr_status cnri_knob_set_to(cnri_knob_set *k, int32_t domain, uint64_t hz, int32_t cores,
                            cnr_error *err);
/* Where knobs were found, if they were set: cnri_gauges_close without the closing. */
cnr_status cnri_knobs_restore(cnri_gauges *g, cnr_error *err);

/* ---- putback.c: for processes that are killed before they restore ---- */
/* Puts back what such ones left behind, of every knob; *brought: of how many. */
cnr_status cnri_knobs_recover(const cnr_gauge_options *options, int32_t *brought, cnr_error *err);
/* Between open and describe: 1: what a killed process left was put back; -1: it could not be; 0:
 * none. */
int32_t cnri_knob_bring_back(const cnr_knob *knob, void *state, const char *root, cnr_error *err);
/* Before the first setting: what was found is kept, and nobody else sets this knob. */
cnr_status cnri_knob_keep(cnri_knob_set *k, cnr_error *err);
void cnri_knob_kept(cnri_knob_set *k, bool restored); /* it ends */

#endif
