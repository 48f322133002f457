/* Inside the room: a net watched while it runs on pictures, before and after quantising. */
#ifndef CNRI_CALIBRATE_H
#define CNRI_CALIBRATE_H

#include "work/work.h"

/* A value of the float net, and how well the quantised net has it. */
typedef struct cnri_answer {
    cnri_quantised_value as; /* real: of the net as it was; stored: of the quantised one; scale 0:
                                the quantised net has it in floats, too */
    double signal, noise;    /* sums of squares */
    double high; /* where what stands behind it limits the quantised one; infinite: it does not */
    float *kept; /* of the picture under way */
    int64_t n;
    double *off; /* by channel: sum of what it is off by, and how often that was seen; NULL: nobody
                    asks */
    int64_t channels;
} cnri_answer;
typedef struct cnri_answers {
    cnri_answer *at;
    int32_t n, capacity;
} cnri_answers;

/* ranges.c: how a range is made of what was seen. */
typedef enum cnri_method {
    CNRI_METHOD_AUTO, /* the one with the least noise in the net's outputs */
    CNRI_METHOD_MINMAX,
    CNRI_METHOD_PERCENTILE,
    CNRI_METHOD_MSE,
    CNRI_METHOD_KL,
    CNRI_METHODS
} cnri_method;
typedef struct cnri_histogram {
    double *bin; /* over the range of all that was seen; NULL: nothing was counted */
    double n;
} cnri_histogram;
/* NULL: minmax. */
cnr_status cnri_range_method(const char *name, cnri_method *out, cnr_error *err);
const char *cnri_range_method_name(cnri_method method);
/* `all`: the least and the largest number that any tensor of it has. */
void cnri_histogram_add(cnri_histogram *h, const cnri_range *all, const cnr_tensor *t);
/* careful: the full range is kept where clipping to the chosen one would spoil the value. */
cnri_range cnri_range_by(cnri_method method, bool careful, const cnri_histogram *h,
                         const cnri_range *all);

typedef struct cnri_calibration {
    cnr_load_options how; /* of all nets that are made */
    const cnr_observer *observer;
    cnr_runtime *rt;
    cnri_samples *samples;
    int64_t pictures;
    bool holds_back;         /* each CNRI_HELD_BACK-th of them is for judging alone */
    bool compares_held_back; /* cnri_compare: on those, not on the others */
    const cnr_graph *net;    /* float, rewritten: what plans of it would be made of */
    cnri_range *ranges;      /* by value of net */
    cnri_range *all;         /* the same as they were seen */
    cnri_histogram *counts;  /* by value of net; NULL: none are kept */
    double **shifts;         /* by node of net, then channel: added to its bias; NULL: none */
    cnr_status failed;       /* in a tap */
} cnri_calibration;

enum { CNRI_HELD_BACK = 4 };
/* The picture is one to judge answers on, or to make ranges and corrections of, or both. */
static inline bool cnri_judges(const cnri_calibration *c, int64_t picture) {
    return !c->holds_back || picture % CNRI_HELD_BACK == CNRI_HELD_BACK - 1;
}
static inline bool cnri_calibrates(const cnri_calibration *c, int64_t picture) {
    return !c->holds_back || !cnri_judges(c, picture);
}
/* Fills `all` from the pictures; with `count`, also `counts`. */
cnr_status cnri_calibrate(cnri_calibration *c, bool count, cnr_error *err);
/* Computes `ranges` of all values from `counts` by `method`, or copies `all` if nothing was
 * counted. careful: as in cnri_range_by. */
void cnri_calibrate_by(cnri_calibration *c, cnri_method method, bool careful);
void cnri_calibration_close(cnri_calibration *c);
/* A copy of the net (which must outlive it) after rewrites were asked to quantise the nodes that
 * `wanted` holds, by index, and their answers in the net's order. */
cnr_status cnri_quantized(const cnri_calibration *c, const bool *wanted, cnr_graph **out,
                          cnri_answers *answers, cnr_error *err);
/* Adds an empty answer for each f32 value of the net that `watched` (by value) marks and that has
 * none yet. It runs nothing. */
cnr_status cnri_answers_add_watched(const cnri_calibration *c, const cnr_graph *quantized,
                                    const bool *watched, cnri_answers *answers, cnr_error *err);
/* Fills signal and noise: the same pictures (at most `maximum`) through both nets. */
cnr_status cnri_compare(cnri_calibration *c, const cnr_graph *quantized, cnri_answers *answers,
                        int64_t maximum, cnr_error *err);
/* One element more. What is no number in the quantised net alone is noise without end. */
void cnri_add_noise(cnri_answer *a, double real, double got);
double cnri_decibels(const cnri_answer *a); /* infinite without noise */
static inline bool cnri_is_quantised(const cnri_answer *a) { return a->as.scale > 0; }
void cnri_answers_free(cnri_answers *answers);
/* Runs the net on the first pictures and has `tap` look at its values. */
cnr_status cnri_calibration_watch(cnri_calibration *c, int64_t pictures, cnr_tap_fn tap, void *arg,
                                  cnr_error *err);
/* The value that a tap tells of; -1. */
cnr_value cnri_tapped_value(const cnr_graph *g, const char *node, int32_t output);
/* A model of a copy of `g`, with or without fusing of steps. */
cnr_status cnri_calibration_model(const cnri_calibration *c, const cnr_graph *g, bool fuse,
                                  cnr_model **out, cnr_error *err);

/* ---- sensitivity.c: how much noise each layer makes when it is quantised alone ---- */
typedef struct cnri_sensitivity {
    cnri_calibration *c;
    const bool *watched;
    double **alone; /* by node of the net, then by value: noise / signal; NULL: not measured yet */
    int64_t measured; /* layers */
} cnri_sensitivity;

/* Of the layers in `answers` those whose noise reaches the value `at`. From the noisiest on they
 * are taken out of `wanted`, one at least, until the others make less than `maximum` (noise /
 * signal). */
cnr_status cnri_drop_noisiest(cnri_sensitivity *s, const cnri_answers *answers, cnr_value at,
                              double maximum, bool *wanted, cnr_error *err);
/* The layers in `answers` by the noise that each alone makes in the watched values that are no
 * layers, or, without such, in all: the noisiest first. order: as long as the answers. */
cnr_status cnri_noisiest_first(cnri_sensitivity *s, const cnri_answers *answers, int32_t *order,
                               int32_t *n, cnr_error *err);
void cnri_sensitivity_free(cnri_sensitivity *s);
/* Values behind the last layers in `answers`, before anything that picks instead of computing
 * (it has no gradient): what the net's outputs are made of. By value of the net; NULL: out of
 * memory. */
bool *cnri_values_behind(const cnr_graph *net, const cnri_answers *answers);

/* ---- faster.c: layers that are faster in floats ---- */
typedef struct cnri_layer_ns {
    double ns[2]; /* float, quantised: with the steps behind it that are no layers; 0: not timed */
} cnri_layer_ns;
/* Takes layers out of `wanted` until the quantised net is the fastest that was measured here; all
 * of them where the float net is. report: by node of the net, of the layers that were in. */
cnr_status cnri_drop_slower(cnri_calibration *c, bool *wanted, cnri_layer_ns *report,
                            cnr_error *err);

/* ---- equalise.c: channels between layers ---- */
/* Has rewrites equalise the channels of the net, by what `c` sees them hold; c->net is `net`. */
cnr_status cnri_equalise(cnri_calibration *c, cnr_graph *net, cnr_error *err);

/* ---- bias.c: outputs that are off on average ---- */
/* Fills the shifts of the layers in `wanted`. */
cnr_status cnri_correct_biases(cnri_calibration *c, const bool *wanted, cnr_error *err);

/* ---- shifts.c ---- */
/* The bias of a node, if it has one of its own; -1. */
cnr_value cnri_bias_of(const cnr_graph *g, const cnri_node *node);
/* To a copy of the net, before it is quantised. */
cnr_status cnri_apply_shifts(const cnri_calibration *c, cnr_graph *g, const bool *wanted,
                             cnr_error *err);
/* Element k of the value is off by so much. */
void cnri_add_off(cnri_answer *a, const cnr_tensor *value, int64_t k, double off);
void cnri_shifts_free(cnri_calibration *c);

/* ---- aware.c ---- */
/* Trains the layers of `answers` as if they were quantised, by the options' epochs; the net, which
 * has weights of its own, gets those of the best epoch where it is better than the net as it is.
 * trained: accuracy before and after, on the validation part. */
cnr_status cnri_train_for_bytes(const cnri_calibration *c, const cnri_quantise_options *o,
                                const cnri_answers *answers, cnr_graph *net, int64_t *best_epoch,
                                double trained[2], cnr_error *err);

/* ---- accuracy.c: answers on calibration pictures, those held back if any are ---- */
typedef struct cnri_verdict {
    int64_t class, label; /* -1: the answer is no class; there is no label */
    float *shares;        /* by class, of 1; NULL: not kept */
    int64_t n;
} cnri_verdict;
typedef CNRI_VEC(cnri_verdict) cnri_verdicts;
/* To be freed after an error too. */
cnr_status cnri_verdicts_of(cnri_calibration *c, const cnr_graph *net, bool keep_shares,
                            cnri_verdicts *out, cnr_error *err);
void cnri_verdicts_free(cnri_verdicts *v);
/* Without labels: of agreement. With labels, of top-1: as counted, or as the float net's own shares
 * expect it, whichever is more, since few pictures count badly. NaN: answers are no classes. */
double cnri_points_lost(const cnri_verdicts *before, const cnri_verdicts *after);
/* Takes layers out of `wanted` in their order, as few as possible, until no more than `points` are
 * lost. *lost: by what is left. */
cnr_status cnri_keep_within(cnri_calibration *c, const cnri_verdicts *before, double points,
                            const int32_t *order, int32_t n, bool *wanted, double *lost,
                            cnr_error *err);

#endif
