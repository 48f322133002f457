/* Inside the room: a net run on pictures, in batches. */
#ifndef CNRI_RUNNER_H
#define CNRI_RUNNER_H

#include "core/cli/cli.h"

/* model -> plan for the batch's shape -> session; `input` is the host side of the only input. */
typedef struct cnri_runner {
    const cnri_args *args;
    cnr_model *model;
    cnr_plan *plan;
    cnr_session *session;
    cnri_preprocess preprocess;
    cnr_tensor input;
    int64_t batch;
} cnri_runner;

cnr_status cnri_runner_open(cnri_runner *r, const cnri_args *args, cnr_model *model,
                            cnr_error *err);
void cnri_runner_close(cnri_runner *r);
/* Makes plan and session for `batch` pictures like this one; cheap when nothing changed. A net made
 * for one batch size keeps it: r->batch tells. */
cnr_status cnri_runner_shape(cnri_runner *r, int64_t batch, const cnr_tensor *picture,
                             cnr_error *err);
cnr_status cnri_runner_put(cnri_runner *r, int64_t slot, const cnr_tensor *picture,
                           cnr_error *err);
/* *ns (may be NULL): from handing the input over to having the outputs on the host. */
cnr_status cnri_runner_run(cnri_runner *r, uint64_t *ns, cnr_error *err);
/* Sample `slot` of an output: a view into `whole`. False when the output isn't one per sample. */
bool cnri_runner_slice(const cnri_runner *r, const cnr_tensor *whole, int64_t slot,
                       cnr_tensor *out);

/* The shape that input `index` gets where it is open: --symbol, `batch` for axis 0, the size that
 * preprocessing fixes, the net's default, the picture's (may be NULL: 1). */
void cnri_input_shape(const cnri_args *args, const cnr_graph *g, int32_t index, int64_t batch,
                      const cnri_preprocess *p, const cnr_tensor *picture, cnr_tensor *out);
/* Of every input; preprocessing is the net's own, pictures are of 224 x 224 where nothing says
 * better. `shapes` and `list`, which points at them, have room for all. */
cnr_status cnri_input_shapes(const cnri_args *args, const cnr_model *model, int64_t batch,
                             cnr_tensor *shapes, const cnr_tensor **list, cnr_error *err);
/* All but one axis are 1, behind the batch: scores of classes. */
bool cnri_is_classes(const cnr_tensor *sample);

#endif
