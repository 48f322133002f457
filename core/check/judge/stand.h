/* A stand to ask an operator's reference on; inside check/ only. */
#ifndef CNRI_CHECK_STAND_H
#define CNRI_CHECK_STAND_H

#include "judge/fence.h"

/* A node like the case's, on fenced memory of its own. */
typedef struct cnri_stand {
    cnri_case *c;
    cnr_node node;
    cnr_tensor in[CNRI_CHECK_PORTS], out[CNRI_CHECK_PORTS], *writable[CNRI_CHECK_PORTS];
    const cnr_tensor *inputs[CNRI_CHECK_PORTS], *outputs[CNRI_CHECK_PORTS];
    cnri_fence in_at[CNRI_CHECK_PORTS], out_at[CNRI_CHECK_PORTS], work;
    bool works; /* it wants a workspace */
} cnri_stand;

/* One way of asking. */
typedef struct cnri_ask {
    uint8_t poison;
    int32_t in_place, output; /* the input whose memory the output takes; -1 */
    int32_t axis;             /* -1: whole */
    int64_t begin, end;
    const cnr_input_range *regions; /* (optional) by input: what is outside is spoilt */
    bool spoil_with_nan;            /* else with other elements of the same input */
} cnri_ask;

/* Room for the case's node, as its reference left it. To be closed in any event. */
bool cnri_stand_open(cnri_stand *s, cnri_case *c, cnri_text *why);
void cnri_stand_close(cnri_stand *s);
/* Inputs as in the case, outputs poisoned; then the call. */
void cnri_stand_fill(cnri_stand *s, const cnri_ask *a);
bool cnri_stand_call(cnri_stand *s, const cnri_ask *a, cnri_text *why);
/* Nothing was written but outputs and the workspace. */
bool cnri_stand_untouched(const cnri_stand *s, const cnri_ask *a, cnri_text *why);
/* Within its range an output is what the whole gave; outside of it, with `keeps`, what it was. */
bool cnri_stand_same(const cnri_stand *s, int32_t output, const cnri_ask *a, bool keeps,
                     cnri_text *why);

#endif
