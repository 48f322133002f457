/* Placement while it is made: shared by place.c, place_told.c and predict.c. */
#ifndef CNRI_PLACE_H
#define CNRI_PLACE_H

#include "work/work.h"

enum { CNRI_PLACE_DEVICES = CNRI_MAX_PLACED };

/* What a copy between two devices takes: any, and each byte in it. */
typedef struct cnri_place_link {
    double fixed_ns, byte_ns;
} cnri_place_link;

/* What a part of a layer costs beside its share: what no share saves, and what a part adds. */
typedef struct cnri_place_division {
    double launch_ns, split_ns, split_joules;
} cnri_place_division;

typedef struct cnri_place_job {
    cnr_model *model;
    const cnri_place_options *o;
    const cnr_observer *observer;
    cnri_plan_options original_options; /* the model's, before anything was changed */
    const char *names[CNRI_PLACE_DEVICES + 1];
    int32_t n;
    cnr_timing alone[CNRI_PLACE_DEVICES], divided; /* by step */
    /* of a step by itself, which the whole net does not wait */
    double waited_ns[CNRI_PLACE_DEVICES];
    /* for the prediction: plans that were measured, their steps' times one by one, what those don't
     * tell */
    cnr_plan *plan_alone[CNRI_PLACE_DEVICES], *plan_divided;
    double *raw_ns[CNRI_PLACE_DEVICES]; /* of each step of `alone` */
    /* until what is queued begins; below 0: what a call adds */
    double latency_ns[CNRI_PLACE_DEVICES];
    double least_share[CNRI_PLACE_DEVICES]; /* of a raw time, that stays without the latency */
    cnri_place_division division[CNRI_PLACE_DEVICES]; /* by raw times */
    cnri_place_link links[CNRI_PLACE_DEVICES][CNRI_PLACE_DEVICES];
    bool in_host[CNRI_PLACE_DEVICES]; /* its memory is the program's */
    /* of a wait between devices; of a byte that is copied, above idle */
    double wait_ns, byte_joules;
    CNRI_VEC(char *) words; /* settings of the policy */
    const char *objective;  /* as it says; or NULL */
    cnri_placing *out;
} cnri_place_job;

/* ---- predict.c ---- */
/* The step that computes (a part of) the node there; NULL: none does. */
const cnr_step_timing *cnri_place_step_of(const cnr_timing *t, const char *node,
                                          const char *device);

/* What that step took by itself, ns; NaN: there is none. */
double cnri_place_raw_ns(const cnri_place_job *j, int32_t device, const char *node);

/* Latencies and waits, by what whole nets took; then what a plan will take. */
cnr_status cnri_place_settle(cnri_place_job *j, cnr_error *err);
cnr_status cnri_place_predict(const cnri_place_job *j, const cnr_plan *plan, cnri_place_row *out,
                              cnr_error *err);

/* place_told.c: all that was measured becomes job->words, the caller's settings behind it. */
cnr_status cnri_place_tell(cnri_place_job *j, cnr_error *err);

#endif
