/* Inside the room: runs a net on pictures, before and after quantising, and records its values. */
#ifndef CNRI_CALIBRATE_H
#define CNRI_CALIBRATE_H

#include "work/work.h"

/* A value of the float net, and how well the quantised net reproduces it. */
typedef struct cnri_answer {
    /* Real: the value in the float net; stored: in the quantised net; scale 0: it is float in
     * both. */
    cnri_quantised_value as;
    double signal, noise; /* sums of squares */
    double high;          /* bound of the quantised value by the node behind it; infinite: none */
    bool has_function;    /* the layer's kernel also computes a function behind it */
    float *kept;          /* its numbers for the current picture */
    int64_t n;
    double *off; /* by channel: sum of the errors, and their number; NULL: not wanted */
    int64_t channels;
} cnri_answer;
/* The values of a net that are compared. */
typedef struct cnri_answers {
    cnri_answer *at;
    int32_t n, capacity;
} cnri_answers;

/* ranges.c: how a range is computed from the values that were seen. */
typedef enum cnri_method {
    CNRI_METHOD_AUTO, /* the method that makes the least noise in the net's outputs */
    CNRI_METHOD_MINMAX,
    CNRI_METHOD_PERCENTILE,
    CNRI_METHOD_MSE,
    CNRI_METHOD_KL,
    CNRI_METHODS
} cnri_method;
/* Counts of how many numbers fall into each of BINS equal parts of a range. */
typedef struct cnri_histogram {
    double *bin; /* counts over the full range; NULL: nothing was counted */
    double n;
} cnri_histogram;
/* Finds a method by its name; NULL: minmax. */
cnr_status cnri_range_method(const char *name, cnri_method *out, cnr_error *err);
/* Name of a method of choosing ranges, "mse". */
const char *cnri_range_method_name(cnri_method method);
/* Counts the numbers of a tensor. `all`: the full range over all its tensors. */
void cnri_histogram_add(cnri_histogram *h, const cnri_range *all, const cnr_tensor *t);
/* Computes a value's range from its histogram by a method. careful: keeps the full range `all` if
 * clipping to the computed one would damage the value. */
cnri_range cnri_range_by(cnri_method method, bool careful, const cnri_histogram *h,
                         const cnri_range *all);
/* Range of a value that only `function` reads, a node that applies a function of one input to each
 * element: `given` without the ends where its results differ by less than half a step of 8 bits,
 * as what is below -3 before a hard swish. `given` if the function only bounds. */
cnri_range cnri_range_before(const cnr_node *function, const cnri_range *given);

/* Weights of a layer, rounded to what 8 bits hold, and what is added to its bias. */
typedef struct cnri_rounded {
    cnr_value w, bias; /* of the net; bias -1: none */
    float *weights;    /* owned; NULL: the layer's weights are rounded to the nearest */
    double *shift;     /* by row of the weight, in units of the output; owned */
} cnri_rounded;

/* State of calibrating a net: pictures, ranges and histograms of its values, and corrections of
 * weights. */
typedef struct cnri_calibration {
    cnr_load_options how; /* load options of all nets that are made */
    const cnr_observer *observer;
    cnr_runtime *rt;
    cnri_samples *samples;
    int64_t pictures;
    bool holds_back;         /* every CNRI_HELD_BACK-th picture is for judging only */
    bool compares_held_back; /* cnri_compare runs on the held-back pictures, not on the others */
    const cnr_graph *net;    /* float and rewritten, as plans would have it */
    cnri_range *ranges;      /* by value of net: the ranges to quantise by */
    cnri_range *all;         /* by value of net: least and largest number that was seen */
    cnri_histogram *counts;  /* by value of net; NULL: not counted */
    double **shifts;         /* by node of net, then channel: added to its bias; NULL: none */
    cnri_rounded *rounded;   /* by node of net; NULL: none */
    cnr_status failed;       /* set by a tap */
} cnri_calibration;

enum { CNRI_HELD_BACK = 4 };
/* Whether a picture is for judging answers, and whether it is for ranges and corrections;
 * without held-back pictures it is both. */
static inline bool cnri_judges(const cnri_calibration *c, int64_t picture) {
    return !c->holds_back || picture % CNRI_HELD_BACK == CNRI_HELD_BACK - 1;
}
/* True if a picture is used to calibrate. */
static inline bool cnri_calibrates(const cnri_calibration *c, int64_t picture) {
    return !c->holds_back || !cnri_judges(c, picture);
}
/* Fills `all` from the pictures; with `count`, `counts` too. */
cnr_status cnri_calibrate(cnri_calibration *c, bool count, cnr_error *err);
/* Computes `ranges` of all values from `counts` by `method`; without counts it copies `all`.
 * careful: as in cnri_range_by. */
void cnri_calibrate_by(cnri_calibration *c, cnri_method method, bool careful);
void cnri_calibration_close(cnri_calibration *c); /* frees what it holds, not the net */
/* Copies the net, which must outlive the copy, and lets rewrites quantise the nodes marked in
 * `wanted` (by index). `answers`: how values were quantised, in the net's order. */
cnr_status cnri_quantized(const cnri_calibration *c, const bool *wanted, cnr_graph **out,
                          cnri_answers *answers, cnr_error *err);
/* Adds an empty answer for each f32 value that `watched` (by value) marks and that has none.
 * Runs nothing. */
cnr_status cnri_answers_add_watched(const cnri_calibration *c, const cnr_graph *quantized,
                                    const bool *watched, cnri_answers *answers, cnr_error *err);
/* The float net, ready to run. Close it after an error too. */
typedef struct cnri_float_net {
    cnr_model *model;
    cnri_runner runner;
} cnri_float_net;
/* Makes a model of the calibration's float net and a runner for it in *net, which is zeroed first.
 * Close it after an error too. */
cnr_status cnri_float_net_open(cnri_calibration *c, cnri_float_net *net, cnr_error *err);
void cnri_float_net_close(cnri_float_net *net);
/* As cnri_compare, with a float net that serves several comparisons. */
cnr_status cnri_compare_with(cnri_calibration *c, cnri_float_net *net, const cnr_graph *quantized,
                             cnri_answers *answers, int64_t maximum, cnr_error *err);
/* Fills signal and noise by running the same pictures (at most `maximum`) through both nets. */
cnr_status cnri_compare(cnri_calibration *c, const cnr_graph *quantized, cnri_answers *answers,
                        int64_t maximum, cnr_error *err);
/* Adds the noise of one element. If only the quantised net's number is NaN, the noise becomes
 * infinite. */
void cnri_add_noise(cnri_answer *a, double real, double got);
/* Signal over noise in decibels, from sums of squares; infinite without noise. */
double cnri_decibels(const cnri_answer *a);
static inline bool cnri_is_quantised(const cnri_answer *a) { return a->as.scale > 0; }
/* Number of the node of the float net that computes an answer's value; of a quantised value, its
 * layer, which may have a function behind it. */
int32_t cnri_answer_node(const cnr_graph *net, const cnri_answer *a);
void cnri_answers_free(cnri_answers *answers); /* frees the answers; the list is empty then */
/* Runs the net on the first pictures and calls `tap` for its input (node NULL) and its values. */
cnr_status cnri_calibration_watch(cnri_calibration *c, int64_t pictures, cnr_tap_fn tap, void *arg,
                                  cnr_error *err);
/* The value that a call of a tap is about; node NULL: the input; -1: not found. */
cnr_value cnri_tapped_value(const cnr_graph *g, const char *node, int32_t output);
/* Makes a model in *out of a copy of `g`, with or without fusing of operators (fuse). */
cnr_status cnri_calibration_model(const cnri_calibration *c, const cnr_graph *g, bool fuse,
                                  cnr_model **out, cnr_error *err);

/* ---- sensitivity.c: how much noise each layer makes when it is quantised alone ---- */
/* How much noise each layer makes when it is quantised alone. */
typedef struct cnri_sensitivity {
    cnri_calibration *c;
    const bool *watched;
    double **alone; /* by node of the net, then by value: noise / signal; NULL: not measured yet */
    int64_t measured; /* number of layers measured so far */
} cnri_sensitivity;

/* Takes layers out of `wanted` whose noise reaches the value `at`, the noisiest first and at
 * least one, until the others make less than `maximum` (noise / signal) there. */
cnr_status cnri_drop_noisiest(cnri_sensitivity *s, const cnri_answers *answers, cnr_value at,
                              double maximum, bool *wanted, cnr_error *err);
/* Sorts the layers in `answers`, the noisiest first, by the noise that each alone makes in the
 * watched values that are no layers (if there are none, in all watched values). order: as long
 * as the answers. */
cnr_status cnri_noisiest_first(cnri_sensitivity *s, const cnri_answers *answers, int32_t *order,
                               int32_t *n, cnr_error *err);
void cnri_sensitivity_free(cnri_sensitivity *s); /* frees its lists */
/* Finds the values behind the last layers in `answers` that the outputs are computed from, up to
 * any operator without a gradient, which selects instead of computing. By value of the net;
 * NULL: out of memory. */
bool *cnri_values_behind(const cnr_graph *net, const cnri_answers *answers);

/* ---- faster.c: layers that are faster in floats ---- */
/* Measured time of a layer, in floats and quantised. */
typedef struct cnri_layer_ns {
    /* Float, quantised: ns of the layer and of the steps behind it up to the next layer; 0: not
     * timed. */
    double ns[2];
} cnri_layer_ns;
/* Takes layers out of `wanted` until the quantised net is the fastest that was measured; all of
 * them if the float net is fastest. report: times by node of the net, of the layers that were
 * in. */
cnr_status cnri_drop_slower(cnri_calibration *c, bool *wanted, cnri_layer_ns *report,
                            cnr_error *err);

/* ---- equalise.c: channels between layers ---- */
/* Lets rewrites equalise channels between layers, by the values that `c` measures; c->net must
 * be `net`. */
cnr_status cnri_equalise(cnri_calibration *c, cnr_graph *net, cnr_error *err);

/* ---- bias.c: outputs that are off on average ---- */
/* Computes into c->shifts what the biases of the layers in `wanted` (by node) have to be corrected
 * by, from at most so many pictures. */
cnr_status cnri_correct_biases(cnri_calibration *c, const bool *wanted, int64_t pictures,
                               cnr_error *err);

/* ---- rounding.c: weights whose errors cancel on the pictures ---- */
/* Fills c->rounded with adaptively rounded weights for the layers of `answers`. */
cnr_status cnri_round_weights(cnri_calibration *c, const cnri_answers *answers, cnr_error *err);

/* shifts.c: frees the rounded weights */
void cnri_rounded_free(cnri_calibration *c);
/* The bias of a node if no other node uses it; else -1. */
cnr_value cnri_bias_of(const cnr_graph *g, const cnri_node *node);
/* Gives a copy of the net the rounded weights, and adds the shifts to its biases, before it is
 * quantised. */
cnr_status cnri_apply_shifts(const cnri_calibration *c, cnr_graph *g, const bool *wanted,
                             cnr_error *err);
/* Adds the error of element k of the value to its channel. */
void cnri_add_off(cnri_answer *a, const cnr_tensor *value, int64_t k, double off);
void cnri_shifts_free(cnri_calibration *c); /* frees the shifts of biases */

/* ---- aware.c ---- */
/* Trains the layers of `answers` as if they were quantised, by the options' epochs; the net, which
 * has weights of its own, gets those of the best epoch where it is better than the net as it is.
 * trained: accuracy before and after, on the validation part. */
cnr_status cnri_train_for_bytes(const cnri_calibration *c, const cnri_quantise_options *o,
                                const cnri_answers *answers, cnr_graph *net, int64_t *best_epoch,
                                double trained[2], cnr_error *err);
/* Lists the pictures of `count` that this training judges by and does not train on: the first *n of
 * *order, for cnri_free. */
cnr_status cnri_unseen_by_training(int64_t count, int64_t **order, int64_t *n, cnr_error *err);

/* ---- accuracy.c: answers on calibration pictures, those held back if any are ---- */
/* The net's answer for one picture: its class, the right label, and perhaps the n classes'
 * shares. */
typedef struct cnri_verdict {
    int64_t class, label; /* -1: the answer is no class; -1: there is no label */
    float *shares;        /* by class, summing to 1; NULL: not kept */
    int64_t n;
} cnri_verdict;
typedef CNRI_VEC(cnri_verdict) cnri_verdicts;
/* Runs the net on the pictures and lists its answers in *out, with all shares if keep_shares. Free
 * them after an error too. */
cnr_status cnri_verdicts_of(cnri_calibration *c, const cnr_graph *net, bool keep_shares,
                            cnri_verdicts *out, cnr_error *err);
void cnri_verdicts_free(cnri_verdicts *v); /* frees the verdicts and their shares */
/* Points of accuracy lost. Without labels: of agreement. With labels: of top-1, the larger of
 * the counted loss and of the loss that the float net's own shares predict, because a count of
 * few pictures is coarse. NaN: the answers are no classes. */
double cnri_points_lost(const cnri_verdicts *before, const cnri_verdicts *after);
/* Takes as few layers as possible out of `wanted`, in the given order, until no more than
 * `points` are lost. *lost: the points lost then. */
cnr_status cnri_keep_within(cnri_calibration *c, const cnri_verdicts *before, double points,
                            const int32_t *order, int32_t n, bool *wanted, double *lost,
                            cnr_error *err);

#endif
