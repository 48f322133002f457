/* Internals of object-tld: a tracker of one object that learns while it tracks (tracking, learning,
 * detection).
 *
 * For each frame: tld_view (computed from the picture once) -> tld_flow (motion of the box) and
 * tld_detect (variance, ferns, nearest neighbour over all windows) -> the integrator combines both
 * -> learning corrects the detector (track.c). */
#ifndef OBJECT_TLD_TLD_H
#define OBJECT_TLD_TLD_H

#include "vector.h"
#include <cnnrun/kit.h>
#include <stdbool.h>

extern const cnr_host *tld_host;
extern const cnr_object tld_object;

enum {
    TLD_LEVELS = 6, /* maximum of pyramid levels */
    TLD_MOST_SCALES = 41,
    TLD_MOST_FERNS = 32,
    TLD_MOST_BITS = 15, /* comparisons of a fern */
    TLD_MOST_SIDE = 16384
};

/* A rectangle in pixels: left upper corner, width and height. */
typedef struct tld_box {
    double x, y, w, h;
} tld_box; /* in pixels; x, y: top left corner */

/* State of Splitmix64, which draws the same sequence on every machine. */
typedef struct tld_dice {
    uint64_t state;
} tld_dice;

/* ---- options.c ---- */
/* Calls X for each option: name, default, least, most, help. */
#define TLD_OPTIONS(X) \
    X(seed, 1, 0, 4294967295., "of all that is drawn: the same seed gives the same boxes") \
    X(ferns, 10, 1, TLD_MOST_FERNS, "ferns of the ensemble (document and authors: 10)") \
    X(comparisons, 13, 1, TLD_MOST_BITS, "comparisons of a fern (document and authors: 13)") \
    X(blur, 2, 0.3, 8, \
      "deviation of the blur before them, in pixels (document and authors: a Gauss)") \
    X(scales, 10, 0, 20, \
      "windows of scales 1.2^-N to 1.2^N of the box (document and authors: 10)") \
    X(scale_step, 1.2, 1.01, 4, "ratio of neighbouring scales (document and authors: 1.2)") \
    X(shift, 0.1, 0.01, 1, "between windows, by their shorter side (document and authors: 0.1)") \
    X(smallest, 24, 4, 4096, "shortest side of a window, in pixels (authors: 24)") \
    X(shrink, 0.7, 0.1, 1, \
      "windows of a small object, whose area is below the square of `smallest`, go down to this " \
      "part of its sides (authors: 1)") \
    X(variance, 0.5, 0, 10, "windows below this part of the target's are dropped (both: 0.5)") \
    X(fern_threshold, 0.5, 0, 1, "mean posterior of a window that goes on (both: 0.5)") \
    X(nn_threshold, 0.65, 0, 1, \
      "relative similarity of what is the object (authors: 0.65; document: 0.6)") \
    X(valid_threshold, 0.7, 0, 1, \
      "similarity from which a path is trusted and learnt (authors: 0.7)") \
    X(learn_floor, 0.5, 0, 1, "a path that falls below is no more learnt (authors: 0.5)") \
    X(learn_below, 0.8, 0, 1, \
      "a trusted path's patch is kept if it is less similar than that (authors: nn_threshold)") \
    X(patience, 0.7, 0, 1e6, \
      "how much flatter than any window that is let pass a path's frames are, in " \
      "parts and added up, until it is given up; twice as fast if it is unlike the object " \
      "(authors: never)") \
    X(pull, 1, 0.1, 1e6, "weight of a path beside that of each detection near it (authors: 10)") \
    X(align, 0.5, 0, 1, \
      "part of the way to where a path's box looks most like what was learnt (authors: 0)") \
    X(anchor, 0.5, 0, 1, \
      "correlation with the first frame's patch from which a path's box is moved to where that " \
      "fits best, in place of align (authors: never, 1)") \
    X(search, 1, 0, 1, \
      "1: the box as a whole is searched for beside its points, which follow small or fast " \
      "things " \
      "badly (authors: 0)") \
    X(predict, 1, 0, 1, \
      "1: that search also begins where the box would be if it went on as before (authors: 0)") \
    X(rivalry, 3, 1, 1000, \
      "frames in a row in which the detector sees something more like the object elsewhere, " \
      "until " \
      "a path is left for that (authors: 1)") \
    X(surprise, 3, 0, 1e6, \
      "by how many deviations, added up, a path may be followed worse than usual until it is " \
      "given up (authors: never)") \
    X(probation, 4, 1, 1000, \
      "frames in which what was found again is more like the object than like anything else, " \
      "until it is reported (authors: 1)") \
    X(report_likeness, 0.55, -1, 1, \
      "correlation with a learned patch below which a path's box is not reported (authors: any)") \
    X(report_surprise, 2, 0, 1e6, \
      "deviations, added up as for `surprise`, above which a path's box is not reported unless " \
      "its similarity is above valid_threshold (authors: any)") \
    X(agreement, 10, 1, 1e6, \
      "frames in which the detector sees it there and nowhere else, until a path is trusted " \
      "(authors: never)") \
    X(same, 0.95, 0.5, 1, "correlation of two patches from which they are one (authors: 0.95)") \
    X(positives, 100, 2, 5000, "patches of the object, at most (document and authors: no bound)") \
    X(negatives, 300, 2, 5000, "patches of what it is not, at most (both: no bound)") \
    X(candidates, 100, 1, 2000, "windows past the ferns that are compared (authors: 100)") \
    X(points, 10, 2, 32, "points a side of the median flow's grid (authors: 10)") \
    X(random_points, 0, 0, 1, \
      "1: as many points at random, and those are kept that err by less than half the mean " \
      "(document; authors: 0)") \
    X(flow_fails, 10, 0.1, 100, \
      "median forward-backward error, in pixels, that ends a path (both)") \
    X(growth, 1.2, 1.01, 1e6, \
      "ratio of a box's sides in two frames; beyond, they stay as they are (authors: any)") \
    X(closest, 10, 1, 50, "windows around the box that are learnt (authors: 10)") \
    X(warps_first, 20, 0, 200, "warped views of each, at the first frame (authors: 20)") \
    X(warps, 10, 0, 200, "warped views of each, later (authors: 10)") \
    X(tracking, 1, 0, 1, "0: no median flow, the detector alone") \
    X(learning, 1, 0, 1, "0: what is known stays as it is") \
    X(threads, 1, 1, 64, "of the detector; the boxes are the same with any number")

/* Options of a tracker; TLD_OPTIONS has their meaning. */
typedef struct tld_options {
/* a member for an option */
#define X(name, standard, least, most, help) double name;
    TLD_OPTIONS(X)
#undef X
} tld_options;
/* Sets *out to the defaults, changed by the list; fails for an unknown name, or a number out of
 * range. */
cnr_status tld_options_read(const cnr_attr *const *list, int32_t n, tld_options *out,
                            cnr_error *err);
/* A line "name  default  help" for each option; freed by host->free. NULL: out of memory. */
char *tld_options_text(void);

/* ---- view.c: what is computed from a picture once ---- */
typedef struct tld_level { /* with a border of TLD_PAD repeated pixels */
    int32_t w, h;
    int64_t pitch;
    uint8_t *at; /* pixel (0, 0) */
} tld_level;
/* A frame in grey, blurred and in smaller sizes. */
typedef struct tld_view {
    int32_t w, h, n_levels;
    /* 0: the grey picture; each level is half as large as the one before */
    tld_level levels[TLD_LEVELS];
    uint8_t *blurred; /* w * h, minus 128: compared as signed bytes */
    uint32_t *sum;    /* integral images, (w + 1) * (h + 1) */
    uint64_t *squares;
    void *block; /* memory of all of it */
    size_t bytes;
} tld_view;
/* Reuses the view's memory. The picture is u8 H W C, C 1 or 3. */
cnr_status tld_view_make(tld_view *v, const cnr_tensor *picture, double blur, cnr_error *err);
void tld_view_free(tld_view *v); /* Frees the view's memory and clears v. */
/* Variance of the grey pixels of a rectangle inside the view, from its integral images. */
double tld_variance(const tld_view *v, int32_t x, int32_t y, int32_t w, int32_t h);
/* Writes the TLD_PATCH values of the box's patch, mean 0 and norm 1, to out. Returns the variance
 * of its pixels. */
double tld_patch(const tld_view *v, tld_box box, float *out);

/* ---- grid.c: the windows of the detector ---- */
/* Windows of one size: their width and height in pixels, the step between them, how many there are
 * across and down, and the first one's index. */
typedef struct tld_scale {
    int32_t w, h, step, nx, ny;
    int64_t first; /* index of its first window */
} tld_scale;
/* All windows in which the object is looked for. */
typedef struct tld_grid {
    int32_t n, width, height;
    int64_t windows;
    tld_scale scales[TLD_MOST_SCALES];
} tld_grid;
/* Makes the grid for a box and a picture. */
void tld_grid_make(tld_grid *g, const tld_options *o, double box_w, double box_h, int32_t width,
                   int32_t height);
/* The window of an index, in pixels. */
tld_box tld_window(const tld_grid *g, int64_t index);
/* Index of the scale that a window belongs to. */
int32_t tld_scale_of(const tld_grid *g, int64_t index);
/* Area of the intersection over that of the union; 0: they don't touch. */
double tld_overlap(tld_box a, tld_box b);
/* Writes the windows with the highest overlap with the box, at least `least`, best first, to out,
 * at most `most`. Returns how many. */
int32_t tld_closest(const tld_grid *g, tld_box box, double least, int32_t most, int64_t *out);

/* ---- ferns.c ---- */
/* The ferns of the detector and what they have learned. */
typedef struct tld_ferns {
    int32_t n, bits;
    float place[TLD_MOST_FERNS][TLD_MOST_BITS][4]; /* x1 y1 x2 y2, as fractions of the window */
    float *posterior;                              /* n << bits numbers: by fern, then by code */
    uint16_t *hits; /* 2 * (n << bits): counts of positives and of negatives */
} tld_ferns;
/* Draws the comparisons of all ferns and forgets what was learned. */
cnr_status tld_ferns_make(tld_ferns *f, const tld_options *o, tld_dice *dice, cnr_error *err);
void tld_ferns_free(tld_ferns *f); /* Frees the tables and clears f. */
/* A window's codes, rotated, shifted and scaled by `warp` (NULL: not at all). */
typedef struct tld_warp {
    double a, b, c, d, dx, dy, noise;
} tld_warp;
/* codes: the code of each fern for a box of a view, warped if warp is not NULL; dice: for the
 * warp's noise. */
void tld_codes(const tld_ferns *f, const tld_view *v, tld_box box, const tld_warp *warp,
               tld_dice *dice, uint16_t *codes);
/* mean posterior of the codes, one for each fern: 0 to 1 */
double tld_vote(const tld_ferns *f, const uint16_t *codes);
/* Counts the codes, one for each fern, as those of the object, or not, and updates their
 * posteriors. */
void tld_ferns_learn(tld_ferns *f, const uint16_t *codes, bool positive);

/* A window that may hold the object. */
typedef struct tld_candidate {
    int64_t window;
    float vote;
} tld_candidate;
/* Runs stages one and two over all windows. *n: windows whose vote exceeds `threshold`, in order;
 * *past: how many passed the variance test. list: the caller's room for g->windows entries. */
typedef struct tld_scan {
    const tld_grid *grid;
    const tld_view *view;
    const tld_ferns *ferns;
    double least_variance, threshold;
    tld_candidate *list;
    int64_t room, n, past;
    void *scratch[64];
    size_t scratch_bytes[64];
    uint64_t ns_variance, ns_votes; /* of the last run, without preparing the plane */
} tld_scan;
/* call first: allocates an entry for every window */
cnr_status tld_scan_room(tld_scan *s, cnr_error *err);
/* Scans all windows on up to `threads` threads. */
cnr_status tld_scan_run(tld_scan *s, int32_t threads, cnr_error *err);
void tld_scan_free(tld_scan *s); /* Frees the scratch memory and the list, and clears s. */

/* ---- nearest.c ---- */
typedef struct tld_shelf { /* patches of one class; the first is never removed */
    float *at;             /* pixels: n * TLD_PATCH_PITCH */
    double *used;          /* how often each was the nearest; decays */
    uint64_t *born;
    int32_t n, most;
} tld_shelf;
/* Patches that are the object, and that are not. */
typedef struct tld_nearest {
    tld_shelf positive, negative;
    uint64_t clock;
} tld_nearest;
/* How similar a patch is to learned ones, by correlations: -1 to 1; relative and conservative ones:
 * 0 to 1. */
typedef struct tld_similar {
    float relative, conservative;   /* 0 to 1; the second uses the first half of the positives */
    float to_positive, to_negative; /* highest correlations, -1 to 1 */
    int32_t nearest_positive;
} tld_similar;
/* Makes room for the patches and forgets all. */
cnr_status tld_nearest_make(tld_nearest *n, const tld_options *o, cnr_error *err);
void tld_nearest_free(tld_nearest *n); /* Frees both shelves, not n. */
/* Compares `count` patches with all that are remembered. */
void tld_compare(tld_nearest *n, const float *patches, int32_t count, tld_similar *out);
/* Judges `count` patches whose correlations were computed elsewhere: for each a row of
 * positive.most and then negative.most correlations, of which only those of existing patches
 * count. */
void tld_compared(tld_nearest *n, const float *products, int32_t count, tld_similar *out);
/* Remembers a patch of the object (positive) or of others, behind patch `behind` (-1: at the end);
 * a full shelf drops one. */
void tld_remember(tld_nearest *n, bool positive, const float *patch, int32_t behind);

/* ---- flow.c ---- */
/* medians over the points: backward error in pixels, correlation, spread of motions */
typedef struct tld_quality {
    float error, likeness, spread; /* of the backward error, in pixels; of 1 - similarity; of the
                                      distance from the box's motion */
} tld_quality;
/* Motion of the box between two views. False: lost. ahead: the motion expected, in pixels; dice:
 * only for random points */
bool tld_flow(const tld_view *from, const tld_view *to, tld_box box, const double *ahead,
              const tld_options *o, tld_dice *dice, tld_box *out, tld_quality *quality);

/* ---- usual.c: compares the quality of tracking with its recent average ---- */
enum { TLD_SIGNS = 4 };
/* How the object usually moves and looks: mean and variance of each sign, and the running
 * excess. */
typedef struct tld_usual {
    double mean[TLD_SIGNS], variance[TLD_SIGNS];
    double sum;     /* of the excess over the average */
    int32_t frames; /* frames in the average */
} tld_usual;
/* Returns how much worse than average recent frames were, in deviations: 0 to `most`, and updates
 * u. confidence NaN: unknown; hidden: the average does not change. */
double tld_unusual(tld_usual *u, const tld_quality *q, double confidence, bool hidden, double most);

/* ---- track.c ---- */
/* A place where the object may be. */
typedef struct tld_found {
    tld_box box;
    float similarity, conservative;
} tld_found;
/* Milliseconds of the parts of a frame. */
typedef struct tld_times {
    double view, flow, variance, ferns, nearest, learning, all;
} tld_times;
/* A tracker: options, both views, what was learned, and where the object is. */
typedef struct tld_tracker {
    tld_options o;
    tld_dice dice;
    tld_view views[2]; /* of this frame and the previous */
    int32_t now;
    bool prepared;              /* tld_prepare was called, tld_finish must follow */
    bool picked;                /* tld_pick was called for this frame */
    bool begun, tracked, valid; /* the last frame can be tracked from; the path is trusted */
    bool doubted;               /* tracked worse than average: neither reported nor learned */
    bool fresh;                 /* started by the detector and never trusted yet */
    double doubts;              /* of a path with little texture; above `patience` it ends */
    double unlike; /* excess of similarity to negatives, over the frames since it was not */
    double likeness, relative; /* of the path: highest correlation with a positive patch, and
                                  relative similarity; 1 where it begins */
    tld_usual usual;
    int32_t seen;     /* frames with a box recently, minus those without */
    int32_t agreed;   /* successive frames in which the detector found it there, and nowhere else */
    tld_box rival;    /* where the detector found a better match */
    int32_t rivalled; /* successive frames of it; 0: no rival */
    int64_t frames;
    tld_box box, target; /* the last known; the first one, whose aspect ratio the windows have */
    double motion[2];    /* of the path's middle between the last two frames */
    double confidence, least_variance;
    double fern_threshold, nn_threshold, valid_threshold;
    tld_grid grid;
    tld_ferns ferns;
    tld_nearest nearest;
    tld_scan scan;
    float *patches; /* those of the candidates */
    tld_similar *similar;
    tld_found *found;
    int32_t n_candidates, n_found;
    tld_times times;
} tld_tracker;
/* After an error the tracker is unchanged; before the first init it stays uninitialised. */
cnr_status tld_init(tld_tracker *t, const cnr_tensor *picture, tld_box box, cnr_error *err);
/* Places the object at the box of a picture, like tld_init, but keeps what was learned before (from
 * another video); fails if nothing was. */
cnr_status tld_place(tld_tracker *t, const cnr_tensor *picture, tld_box box, cnr_error *err);
/* Sets t->box and t->confidence >= 0; -1: the object is absent. */
cnr_status tld_track(tld_tracker *t, const cnr_tensor *picture, cnr_error *err);
/* The two halves of tld_track. Between them the caller may run the detector's first two stages over
 * the windows of t->grid: `votes` has a number for each window, 0 if it is too flat. NULL:
 * tld_finish runs them. */
cnr_status tld_prepare(tld_tracker *t, const cnr_tensor *picture, cnr_error *err);
/* Ends a frame that tld_prepare began, with the votes of all windows. */
cnr_status tld_finish(tld_tracker *t, const float *votes, cnr_error *err);
/* Instead of tld_finish, if the third stage runs elsewhere as well: afterwards the candidates'
 * patches are in t->patches, and `products` are tld_compared's. */
cnr_status tld_pick(tld_tracker *t, const float *votes, cnr_error *err);
/* Ends a frame with the correlations of the patches that were picked. */
cnr_status tld_finish_compared(tld_tracker *t, const float *products, cnr_error *err);
void tld_tracker_free(tld_tracker *t); /* Frees all that the tracker has, not t. */
/* Makes room for as many candidates as options allow. */
cnr_status tld_make_room(tld_tracker *t, cnr_error *err);

/* ---- align.c ---- */
/* Returns the box moved and scaled to where it looks most like what was learned; `before`: the box
 * of the previous frame, whose size may be kept. */
tld_box tld_align(const tld_tracker *t, tld_box box, tld_box before);

/* ---- save.c ---- */
/* *data receives the tracker's state, which the caller frees. */
cnr_status tld_save(const tld_tracker *t, uint8_t **data, size_t *bytes, cnr_error *err);
/* Replaces what was learned: the next frame is searched as after a loss. */
cnr_status tld_load(tld_tracker *t, const uint8_t *data, size_t bytes, cnr_error *err);

/* The pixel at fraction `p` (0 to 1) of a side. In float, like kernels of other devices. */
static inline int32_t tld_pixel(float p, int32_t side) {
    const float at = p * (float)(side - 1);
    return (int32_t)(at + 0.5f);
}

/* the next number, 0 <= x < 1 */
static inline double tld_draw(tld_dice *d) {
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

#endif
