/* Runs an operator's reference on guarded memory; inside check/ only. */
#ifndef CNRI_CHECK_STAND_H
#define CNRI_CHECK_STAND_H

#include "judge/fence.h"

/* A copy of the case's node on guarded memory. */
typedef struct cnri_stand {
    cnri_case *c;
    cnr_node node;
    cnr_tensor in[CNRI_CHECK_PORTS], out[CNRI_CHECK_PORTS], *writable[CNRI_CHECK_PORTS];
    const cnr_tensor *inputs[CNRI_CHECK_PORTS], *outputs[CNRI_CHECK_PORTS];
    cnri_fence in_at[CNRI_CHECK_PORTS], out_at[CNRI_CHECK_PORTS], work;
    bool works; /* it needs a workspace */
} cnri_stand;

/* One way of running the reference. */
typedef struct cnri_ask {
    uint8_t poison;
    /* in_place: index of the input whose memory output number `output` uses; -1: no output does,
     * and `output` is not used */
    int32_t in_place, output;
    int32_t axis; /* -1: the whole output */
    int64_t begin, end;
    const cnr_input_range *regions; /* (optional) by input: everything outside is spoilt */
    bool spoil_with_nan; /* true: spoils with NaN; false: with other elements of the same input */
} cnri_ask;

/* Prepares memory for the case's node, whose reference has run. Close it even after an error.
 * False: it failed. */
bool cnri_stand_open(cnri_stand *s, cnri_case *c, cnri_text *why);
void cnri_stand_close(cnri_stand *s); /* frees all memories */
/* Fills inputs as in the case and poisons outputs; cnri_stand_call runs the reference. */
void cnri_stand_fill(cnri_stand *s, const cnri_ask *a);
/* Calls the reference as asked. False: it failed, see why. */
bool cnri_stand_call(cnri_stand *s, const cnri_ask *a, cnri_text *why);
/* True if nothing but outputs and workspace was written. */
bool cnri_stand_untouched(const cnri_stand *s, const cnri_ask *a, cnri_text *why);
/* True if an output equals the whole node's within its range and, with `keeps`, its old contents
 * outside. */
bool cnri_stand_same(const cnri_stand *s, int32_t output, const cnri_ask *a, bool keeps,
                     cnri_text *why);

#endif
