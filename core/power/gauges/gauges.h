/* gauges: the meters and knobs of this machine, and settings that killed processes left in
 * knobs. */
#ifndef CNRI_GAUGES_H
#define CNRI_GAUGES_H

#include "host/host.h"

/* An open meter and its domains. */
typedef struct cnri_meter_set {
    const cnr_meter *meter;
    void *state;
    cnr_meter_domain *domains;
    int32_t n;
} cnri_meter_set;
/* An open knob and its domains. */
typedef struct cnri_knob_set {
    const cnr_knob *knob;
    void *state;
    cnr_knob_domain *domains;
    int32_t n;
    uint64_t *set_ns; /* by domain: ns of its last setting; 0: never */
    const char *root; /* root of the file tree, owned by the gauges */
    char *keeps;
    /* Putback.c: folder where the original settings are stored, and its lock; NULL: nothing is
     * stored yet. */
    int lock;
} cnri_knob_set;
/* All meters and knobs of a machine. */
typedef struct cnri_gauges {
    CNRI_VEC(cnri_meter_set) meters;
    CNRI_VEC(cnri_knob_set) knobs;
    char *root;
} cnri_gauges;
/* Opens the meters and knobs that this machine has. Those that fail are logged and left out. */
cnr_status cnri_gauges_open(cnri_gauges *g, const cnr_gauge_options *options, cnr_error *err);
/* Restores knobs that were set, and closes everything. A failure to restore is returned and
 * logged. */
cnr_status cnri_gauges_close(cnri_gauges *g, cnr_error *err);
/* Reads a domain of a meter, in the unit of its quantity. */
cnr_status cnri_meter_read(const cnri_meter_set *m, int32_t domain, cnr_reading *out,
                           cnr_error *err);
/* Reads frequency, load, cores and temperature of a domain. */
cnr_status cnri_knob_read(const cnri_knob_set *k, int32_t domain, cnr_knob_state *out,
                          cnr_error *err);
/* Sets a knob within the bounds that it had when opened; with steps, to the highest step not
 * above hz. Fails if less than the knob's period passed since the last setting. hz 0, cores -1:
 * unchanged. */
cnr_status cnri_knob_set_to(cnri_knob_set *k, int32_t domain, uint64_t hz, int32_t cores,
                            cnr_error *err);
/* Restores knobs that were set to what they were before; closes nothing. */
cnr_status cnri_knobs_restore(cnri_gauges *g, cnr_error *err);

/* ---- putback.c: for processes that are killed before they restore ---- */
/* Restores knobs that killed processes had set. *brought: number of knobs restored. */
cnr_status cnri_knobs_recover(const cnr_gauge_options *options, int32_t *brought, cnr_error *err);
/* Restores a knob between its open and describe hooks. 1: settings of a killed process were
 * undone; -1: that failed; 0: there were none. */
int32_t cnri_knob_bring_back(const cnr_knob *knob, void *state, const char *root, cnr_error *err);
/* Call before the first setting: stores the original settings, and locks the knob against other
 * processes. */
cnr_status cnri_knob_keep(cnri_knob_set *k, cnr_error *err);
/* Ends what cnri_knob_keep began: gives up lock and exit hook; `restored`: removes the stored
 * settings, too. */
void cnri_knob_kept(cnri_knob_set *k, bool restored);

#endif
