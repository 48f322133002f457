/* Import rows: how models with nodes that become operators of ours load, and how ONNX files with
 * them are written. */
#include "template.h"

/* Importers ask for these where a model has such a node: com.example's Shrinkage of ONNX, whose
 * attribute "lambd" is our threshold; TensorFlow's and Caffe's layers of that type. */
static const char *const onnx_attrs[] = {"lambd=threshold", NULL};
const cnr_import_row template_from_onnx = {
    .size = sizeof(cnr_import_row),
    .version = 1,
    .name = "onnx com.example::Shrinkage",
    .summary = "soft_threshold",
    .format = "onnx",
    .domain = "com.example",
    .type = "Shrinkage",
    .op = "soft_threshold",
    .attrs = onnx_attrs,
};
const cnr_import_row template_from_tensorflow = {
    .size = sizeof(cnr_import_row),
    .name = "tensorflow Shrinkage",
    .summary = "soft_threshold",
    .format = "tensorflow",
    .type = "Shrinkage",
    .op = "soft_threshold",
    .attrs = onnx_attrs,
};
const cnr_import_row template_from_caffe = {
    .size = sizeof(cnr_import_row),
    .name = "caffe Shrinkage",
    .summary = "soft_threshold by its default threshold",
    .format = "caffe",
    .type = "Shrinkage",
    .op = "soft_threshold",
};
