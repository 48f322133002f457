/* Inside the room: a net watched while it runs on pictures, before and after quantising. */
#ifndef CNRI_CALIBRATE_H
#define CNRI_CALIBRATE_H

#include "core/work/work.h"

/* One value that whole numbers stand for now, and how well. */
typedef struct cnri_answer {
    cnri_quantised_value as; /* real: of the net as it was; stored: of the quantised one */
    double signal, noise;    /* sums of squares */
    float *kept;             /* of the picture under way */
    int64_t n;
} cnri_answer;
typedef struct cnri_answers { cnri_answer *at; int32_t n, room; } cnri_answers;

typedef struct cnri_calibration {
    cnr_load_options how; /* of all nets that are made */
    const cnr_observer *observer;
    cnr_runtime *rt;
    cnri_samples *samples;
    int64_t pictures;
    const cnr_graph *net; /* float, rewritten: what plans of it would be made of */
    cnri_range *ranges;   /* by value of net */
    cnr_status failed;    /* in a tap */
} cnri_calibration;

/* Fills the ranges from the pictures. */
cnr_status cnri_calibrate(cnri_calibration *c, cnr_error *err);
/* A copy of the net (which must outlive it) after rewrites were asked to quantise the nodes that
 * `wanted` holds, by index, and their answers in the net's order. */
cnr_status cnri_quantized(const cnri_calibration *c, const bool *wanted, cnr_graph **out,
                          cnri_answers *answers, cnr_error *err);
/* Fills signal and noise: the same pictures (at most `most`) through both nets. */
cnr_status cnri_compare(cnri_calibration *c, const cnr_graph *quantized, cnri_answers *answers,
                        int64_t most, cnr_error *err);
double cnri_decibels(const cnri_answer *a); /* infinite without noise */
void cnri_answers_free(cnri_answers *answers);
/* A model of a copy of `g`, with or without fusing of steps. */
cnr_status cnri_calibration_model(const cnri_calibration *c, const cnr_graph *g, bool fuse,
                                  cnr_model **out, cnr_error *err);

#endif
