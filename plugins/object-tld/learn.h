/* Learning: corrects the detector. */
#ifndef OBJECT_TLD_LEARN_H
#define OBJECT_TLD_LEARN_H

#include "tld.h"

/* P-expert: the detector should have found the object on the path; N-expert: nowhere else. May
 * invalidate the path (t->valid). */
void tld_learn(tld_tracker *t);
/* Picks candidates by votes (as in tld_finish) and finds the object among them; fails with
 * CNR_E_MEMORY. */
cnr_status tld_detect(tld_tracker *t, const float *votes, cnr_error *err);

#endif
