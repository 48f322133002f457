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
    int32_t axis; /* of the input, that counts pictures: 0, or -1 */
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

/* All but one axis are 1, behind the batch: scores of classes. */
bool cnri_is_classes(const cnr_tensor *sample);

#endif
