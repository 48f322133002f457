/* initial: the first values of weights that a net comes without. */
#ifndef CNRI_INITIAL_H
#define CNRI_INITIAL_H

#include "graph/graph.h"

/* Lets models be loaded with random weights. Any thread may call it, more than once. */
void cnri_initial_register(void);
/* Fills every unfilled weight by its initialiser from `seed`. The deviation follows from the
 * fan-in and from the values that reach it (spread.c), so that activations neither vanish nor
 * overflow. */
cnr_status cnri_fill_random(cnr_graph *g, uint64_t seed, cnr_error *err);

#endif
