/* Placement while it is made: shared by place.c, place_told.c and predict.c. */
#ifndef CNRI_PLACE_H
#define CNRI_PLACE_H

#include "work/work.h"

enum { CNRI_PLACE_DEVICES = CNRI_MAX_PLACED };

/* Cost of a copy between two devices: of any copy, and of each byte. */
typedef struct cnri_place_link {
    double fixed_ns, byte_ns;
} cnri_place_link;

/* Costs of a part of a layer beside its share: the launch, which no share reduces, and the
 * division. */
typedef struct cnri_place_division {
    double launch_ns, split_ns, split_joules;
} cnri_place_division;

/* A placement that is being made. */
typedef struct cnri_place_job {
    cnr_model *model;
    const cnri_place_options *o;
    const cnr_observer *observer;
    cnri_plan_options original_options; /* the model's options before any change */
    const char *names[CNRI_PLACE_DEVICES + 1];
    int32_t n;
    /* Timings by step: on each device alone, and divided. */
    cnr_timing alone[CNRI_PLACE_DEVICES], divided;
    /* ns that steps timed one by one wait, and that the whole net does not. */
    double waited_ns[CNRI_PLACE_DEVICES];
    /* For predictions: the measured plans, the times of their steps, and costs beside those. */
    cnr_plan *plan_alone[CNRI_PLACE_DEVICES], *plan_divided;
    double *raw_ns[CNRI_PLACE_DEVICES]; /* ns of each step of `alone` */
    /* ns until queued work begins; negative: what each call adds instead. */
    double latency_ns[CNRI_PLACE_DEVICES];
    /* Least part of a raw time that remains without the latency. */
    double least_share[CNRI_PLACE_DEVICES];
    /* by device: what dividing costs, from raw times */
    cnri_place_division division[CNRI_PLACE_DEVICES];
    cnri_place_link links[CNRI_PLACE_DEVICES][CNRI_PLACE_DEVICES];
    bool in_host[CNRI_PLACE_DEVICES]; /* the device uses host memory */
    /* ns of a wait between devices; joules, above idle, of a copied byte. */
    double wait_ns, byte_joules;
    CNRI_VEC(char *) words; /* settings for the policy */
    const char *objective;  /* as the policy declares it; NULL: not declared */
    cnri_placing *out;
} cnri_place_job;

/* ---- predict.c ---- */
/* The step that computes (a part of) the node on that device; NULL: none does. */
const cnr_step_timing *cnri_place_step_of(const cnr_timing *t, const char *node,
                                          const char *device);

/* ns of that step timed by itself; NaN: there is none. */
double cnri_place_raw_ns(const cnri_place_job *j, int32_t device, const char *node);

/* Sets what cnri_place_predict uses, j->latency_ns and j->least_share of each device and
 * j->wait_ns, from the measured medians of whole nets (j->alone, j->divided) and the single steps'
 * j->raw_ns. Needs j->plan_alone; without j->plan_divided wait_ns stays. Fails only if memory is
 * out. */
cnr_status cnri_place_settle(cnri_place_job *j, cnr_error *err);
/* Predicts time and joules of a plan from what was measured. */
cnr_status cnri_place_predict(const cnri_place_job *j, const cnr_plan *plan, cnri_place_row *out,
                              cnr_error *err);

/* place_told.c: turns all measurements into job->words, followed by the caller's settings. */
cnr_status cnri_place_tell(cnri_place_job *j, cnr_error *err);

#endif
