/* Non-maximum suppression: of boxes that overlap, the one with the best score stays. */
#ifndef STD_NMS_H
#define STD_NMS_H

#include "ops_kit.h"

typedef struct nms_box {
    double x0, y0, x1, y1;
} nms_box;

/* Sorts `order` (indices of scores), best first, of equals the lower index first. */
void nms_sort(int64_t *order, int64_t n, const double *scores);
/* Keeps of `order` those that overlap none kept before by more than `threshold`; at most `most`.
 * Returns how many; they come first in `order`. eta < 1 lowers the threshold at each step while it
 * is above a half. */
int64_t nms_keep(int64_t *order, int64_t n, const nms_box *boxes, double threshold, double eta,
                 int64_t most);

#endif
