/* meter-model: watts worked out from frequency, voltage and load, where nothing measures them:
 *     P = A * (C * V^2 * f + V * I_short) + V * I_leak + static
 * The board file has the numbers and where this machine tells frequency and load. */
#ifndef METER_MODEL_H
#define METER_MODEL_H

#include "gauge.h"

typedef struct model_step {
    double ghz, volts;
} model_step;

typedef struct model_unit {
    cnr_meter_domain domain;
    gauge_file frequency, load; /* load.path "": of the processors below, or always all */
    double ghz_per;             /* of what `frequency` tells */
    double capacitance, short_amperes, leak_amperes, watts; /* C in watts per V^2 GHz; static */
    model_step *steps;
    int32_t n_steps;
    gauge_cpus cpus;
} model_unit;

/* units.c: unit `row` (from 1) of the board's list "model"; CNR_E_NOT_FOUND: this machine lacks it.
 */
cnr_status model_unit_read(const char *root, int32_t row, model_unit *out, cnr_error *err);
void model_unit_free(model_unit *unit);
/* Volts at a frequency: by the steps, and between two of them in proportion. */
double model_volts(const model_unit *unit, double ghz);

#endif
