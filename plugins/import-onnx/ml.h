/* Shared by ml.c and trees.c: operators of the domain ai.onnx.ml. */
#ifndef ML_H
#define ML_H

#include "onnx.h"

/* ---- ml.c: attributes ---- */
/* the attribute's *n floats, owned by the message; NULL, n 0: none */
const float *ml_floats(const onnx_job *j, const char *name, int64_t *n);
/* List of whole numbers of an attribute, and its length *n; NULL and 0: there is none. */
const int64_t *ml_ints(const onnx_job *j, const char *name, int64_t *n);
/* Text of an attribute; `fallback`: there is none. */
const char *ml_text(onnx_job *j, const char *name, const char *fallback);

/* ---- ml.c: nodes ---- */
/* Adds a cast of x to dtype; returns x if it has that type. */
cnr_value ml_cast(onnx_job *j, cnr_value x, int32_t dtype);
/* Adds a node of two inputs. */
cnr_value ml_two(onnx_job *j, const char *op, cnr_value a, cnr_value b);
cnr_value ml_list(onnx_job *j, const float *values, int64_t n); /* adds a constant of rank 1 */
/* Input 0 as rows (N C) of that type; a single row without N gets it. -1 with a problem: another
 * rank. */
cnr_value ml_rows(onnx_job *j, int32_t dtype);

/* ---- ml.c: scores (N classes, float32) and results made of them ---- */
/* Adds the node's post_transform to the scores; an unknown one is a problem. */
cnr_value ml_post(onnx_job *j, cnr_value scores);
/* Adds the post_transform as ml_post does; a problem if n is 1 and there is one. -1: failed. */
cnr_value ml_post_several(onnx_job *j, cnr_value scores, int64_t n);
int64_t ml_classes(const onnx_job *j); /* number of class names of the node */
/* int64, N: index of the first maximum of each row */
cnr_value ml_best(onnx_job *j, cnr_value scores);
/* int64, N: 1 where a row's only score exceeds the limit, else 0. */
cnr_value ml_above(onnx_job *j, cnr_value scores, float limit);
/* Joins two columns (N 1) to scores of two classes (N 2); -1: failed. */
cnr_value ml_both(onnx_job *j, cnr_value no, cnr_value yes);
/* Replaces indices by the class numbers; class names become the net's labels. */
cnr_value ml_named(onnx_job *j, cnr_value index);

/* ---- trees.c ---- */
/* Converts TreeEnsembleRegressor. */
void ml_tree_regressor(onnx_job *j);
/* Converts TreeEnsembleClassifier. */
void ml_tree_classifier(onnx_job *j);
#define ML_TREE_TAKES \
    " nodes_treeids nodes_nodeids nodes_featureids nodes_values nodes_hitrates nodes_modes " \
    "nodes_truenodeids nodes_falsenodeids nodes_missing_value_tracks_true base_values " \
    "post_transform aggregate_function n_targets target_treeids target_nodeids target_ids " \
    "target_weights class_treeids class_nodeids class_ids class_weights classlabels_int64s " \
    "classlabels_strings "

#endif
