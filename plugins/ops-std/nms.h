/* Non-maximum suppression: of overlapping boxes, keeps the one with the best score. */
#ifndef STD_NMS_H
#define STD_NMS_H

#include "ops_kit.h"

/* A box by its two corners. */
typedef struct nms_box {
    double x0, y0, x1, y1;
} nms_box;

/* Sorts `order` (indices of scores), best first; of equal scores the lower index first. */
void nms_sort(int64_t *order, int64_t n, const double *scores);
/* Keeps entries of `order` that overlap no kept one by more than `threshold`; at most `most`.
 * Returns how many; they are moved to the front of `order`. eta < 1: the threshold is multiplied by
 * it after each kept box while above 0.5. */
int64_t nms_keep(int64_t *order, int64_t n, const nms_box *boxes, double threshold, double eta,
                 int64_t most);

#endif
