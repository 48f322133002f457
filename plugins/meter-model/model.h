/* meter-model: power estimated from frequency, voltage and load, where nothing measures it:
 *
 * P = A * (C * V^2 * f + V * I_short) + V * I_leak + static
 *
 * The board file has the coefficients and the paths of frequency and load. */
#ifndef METER_MODEL_H
#define METER_MODEL_H

#include "gauge.h"

/* A step of a clock and its voltage. */
typedef struct model_step {
    double ghz, volts;
} model_step;

/* A unit whose power is estimated. */
typedef struct model_unit {
    cnr_meter_domain domain;
    gauge_file frequency, load; /* load.path "": load of the processors below, or always 1 */
    double ghz_per;             /* gigahertz of one unit of `frequency` */
    /* C in watts per V^2 GHz; watts: static power */
    double capacitance, short_amperes, leak_amperes, watts;
    model_step *steps;
    int32_t n_steps;
    gauge_cpus cpus;
} model_unit;

/* units.c: reads unit `row` (from 1) of the board's list "model"; CNR_E_NOT_FOUND: not on this
 * machine. */
cnr_status model_unit_read(const char *root, int32_t row, model_unit *out, cnr_error *err);
/* Closes the unit's files and frees its steps, not the unit. */
void model_unit_free(model_unit *unit);
/* Volts at a frequency in GHz, interpolated linearly between steps; the first or last step's beyond
 * them. */
double model_volts(const model_unit *unit, double ghz);

#endif
