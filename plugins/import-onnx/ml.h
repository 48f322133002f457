/* What ml.c and trees.c share: operators of the domain ai.onnx.ml. */
#ifndef ML_H
#define ML_H

#include "onnx.h"

/* ---- ml.c: attributes ---- */
const float *ml_floats(const onnx_job *j, const char *name, int64_t *n); /* NULL, n 0: none */
const int64_t *ml_ints(const onnx_job *j, const char *name, int64_t *n);
const char *ml_text(onnx_job *j, const char *name, const char *fallback);

/* ---- ml.c: nodes ---- */
cnr_value ml_cast(onnx_job *j, cnr_value x, int32_t dtype);
cnr_value ml_two(onnx_job *j, const char *op, cnr_value a, cnr_value b);
cnr_value ml_list(onnx_job *j, const float *values, int64_t n); /* a constant of rank 1 */
/* Input 0 as rows of that type: N C, also where it is one row without N. */
cnr_value ml_rows(onnx_job *j, int32_t dtype);

/* ---- ml.c: scores (N classes, f32) and what is told of them ---- */
cnr_value ml_post(onnx_job *j, cnr_value scores);                    /* post_transform */
cnr_value ml_post_several(onnx_job *j, cnr_value scores, int64_t n); /* refused where n is 1 */
int64_t ml_classes(const onnx_job *j);            /* names of classes that the node has */
cnr_value ml_best(onnx_job *j, cnr_value scores); /* i64, N: the first largest of each row */
/* i64, N: 1 where the only score of a row is above the limit, else 0. */
cnr_value ml_above(onnx_job *j, cnr_value scores, float limit);
cnr_value ml_both(onnx_job *j, cnr_value no, cnr_value yes); /* two columns as one */
/* The classes' whole numbers instead of their index; texts become the net's labels. */
cnr_value ml_named(onnx_job *j, cnr_value index);

/* ---- trees.c ---- */
void ml_tree_regressor(onnx_job *j);
void ml_tree_classifier(onnx_job *j);
#define ML_TREE_TAKES \
    " nodes_treeids nodes_nodeids nodes_featureids nodes_values nodes_hitrates nodes_modes " \
    "nodes_truenodeids nodes_falsenodeids nodes_missing_value_tracks_true base_values " \
    "post_transform aggregate_function n_targets target_treeids target_nodeids target_ids " \
    "target_weights class_treeids class_nodeids class_ids class_weights classlabels_int64s " \
    "classlabels_strings "

#endif
