/* The parsed equation of an Einstein sum: the label of each axis of each operand. */
#ifndef STD_EINSUM_H
#define STD_EINSUM_H

#include "ops_kit.h"

/* 26 lower and 26 upper case letters, then the axes of "..." in the result's order. */
enum { EINSUM_TERMS = 8, EINSUM_LABELS = 52 + CNR_MAX_RANK };

/* An equation that was read: the labels of each operand's axes and, last, the result's; sizes by
 * label. */
typedef struct einsum {
    int32_t n_terms;
    int8_t term[EINSUM_TERMS + 1][CNR_MAX_RANK]; /* the last term in use is the result's */
    int32_t rank[EINSUM_TERMS + 1];
    int64_t dim[EINSUM_LABELS];      /* of each label; 0: not used, < 0: unknown */
    uint64_t used[EINSUM_TERMS + 1]; /* bit l: the term has label l */
} einsum;

/* Reads the node's equation into *out, with the dots written out as labels; fails where it is
 * malformed or dimensions differ. */
cnr_status einsum_read(const cnr_node *node, einsum *out, cnr_error *err);

#endif
