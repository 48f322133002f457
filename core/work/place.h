/* Placement while it is made: shared by place.c and place_told.c. */
#ifndef CNRI_PLACE_H
#define CNRI_PLACE_H

#include "core/work/work.h"

enum { CNRI_PLACE_DEVICES = CNRI_MOST_PLACED };

typedef struct cnri_place_job {
    cnr_model *model;
    const cnri_place_options *o;
    const cnr_observer *observer;
    cnri_plan_options usual; /* the model's, before anything was changed */
    const char *names[CNRI_PLACE_DEVICES + 1];
    int32_t n;
    cnr_timing alone[CNRI_PLACE_DEVICES], divided; /* by step */
    double waited_ns[CNRI_PLACE_DEVICES]; /* of a step by itself, which the whole net does not wait */
    CNRI_VEC(char *) words; /* settings of the policy */
    const char *objective;  /* as it says; or NULL */
    cnri_placing *out;
} cnri_place_job;

/* The step that computes (a part of) the node there; NULL: none does. */
const cnr_step_timing *cnri_place_step_of(const cnr_timing *t, const char *node, const char *device);

/* place_told.c: all that was measured becomes job->words, the caller's settings behind it. */
cnr_status cnri_place_tell(cnri_place_job *j, cnr_error *err);

#endif
