/* How large random weights are to be; inside initial/ only. */
#ifndef CNRI_SPREAD_H
#define CNRI_SPREAD_H

#include "initial/initial.h"

/* Next number of a normal distribution (mean 0, deviation 1). */
double cnri_random_normal(uint64_t *state);
/* Computes for each weight the deviation that suits the values which reach its node. */
cnr_status cnri_spread_find(const cnr_graph *g, uint64_t seed, double *deviation, cnr_error *err);

#endif
