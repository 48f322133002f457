/* Inside the room: a net watched while it runs on pictures, before and after quantising. What is
 * asked and answered through metadata is told at cnr_rewrite, in import.h. */
#ifndef CNRI_CALIBRATE_H
#define CNRI_CALIBRATE_H

#include "core/cli/cli.h"

typedef struct cnri_range { double low, high; bool seen; } cnri_range;

/* One value that whole numbers stand for now, and how well. */
typedef struct cnri_answer {
    cnr_value real;   /* in the net as it was */
    cnr_value stored; /* in the quantised one */
    double scale, zero, low;
    double signal, noise; /* sums of squares */
    float *kept;          /* of the picture under way */
    int64_t n;
} cnri_answer;

typedef CNRI_VEC(cnri_answer) cnri_answers;

typedef struct cnri_calibration {
    const cnri_args *args;
    const cnr_observer *observer;
    cnr_runtime *rt;
    cnri_samples samples;
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
/* Removes what was asked and answered. */
void cnri_quantized_clean(cnr_graph *g);
void cnri_answers_free(cnri_answers *answers);
/* A model of a copy of `g`, with its own or no fusing of steps. */
cnr_status cnri_model_of(const cnri_args *args, cnr_runtime *rt, const cnr_graph *g, bool fuse,
                         cnr_model **out, cnr_error *err);

#endif
