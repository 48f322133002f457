/* Learning: corrects the detector. */
#ifndef OBJECT_TLD_LEARN_H
#define OBJECT_TLD_LEARN_H

#include "tld.h"

/* P-expert: the detector should have found the object on the path; N-expert: nowhere else. May
 * invalidate the path (t->valid). */
void tld_learn(tld_tracker *t);
/* votes: as in tld_finish. */
cnr_status tld_detect(tld_tracker *t, const float *votes, cnr_error *err);

#endif
