/* What corrects the detector. */
#ifndef OBJECT_TLD_LEARN_H
#define OBJECT_TLD_LEARN_H

#include "tld.h"

/* The P-expert: where the path is, the detector should have seen the object; the N-expert: nowhere
 * else. May find that the path is none any more (t->valid). */
void tld_learn(tld_tracker *t);
/* votes as tld_finish has them. */
cnr_status tld_detect(tld_tracker *t, const float *votes, cnr_error *err);

#endif
