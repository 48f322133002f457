/* Adds the loaders of this room to those that cnr_open knows. */
#include "core/run/run.h"

void cnri_front_ends_add(void) {
}
