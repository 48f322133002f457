/* embed: functions of <cnnrun/engine.h> and <cnnrun/placement.h> that only put functions of the
 * engine together: easy calls, weights, layers and copies of models, devices and placements. */
#ifndef CNRI_EMBED_H
#define CNRI_EMBED_H

#include "run/run.h"

/* ---- facts.c ---- */
/* A property of a device, as in cnr_device_properties. */
typedef struct cnri_fact {
    const char *name, *text;
    double value;
} cnri_fact;
/* All properties of a device. */
typedef struct cnri_fact_list {
    cnri_fact *at;
    int32_t n, capacity;
    bool failed; /* memory was out */
} cnri_fact_list;
/* Lists the properties of a device; cnri_facts_free frees them. */
cnr_status cnri_device_facts(cnr_runtime *rt, const char *device, int32_t measure,
                             cnri_fact_list *out, cnr_error *err);
void cnri_facts_free(cnri_fact_list *list);

/* ---- easy.c ---- */
/* cnr_run_tensors of a model that does not adapt. */
cnr_status cnri_run_plainly(cnr_model *m, const cnr_tensor *const *inputs, int32_t n_inputs,
                            const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);

/* ---- change.c: models that change ---- */
/* Closes the model's own session and makes its plans invalid. CNR_E_STATE: somebody uses one. */
cnr_status cnri_model_idle(cnr_model *model, cnr_error *err);
/* Makes a model of this graph, which it owns, also on failure, in *out, with the options and masks
 * of another model. */
cnr_status cnri_model_like(const cnr_model *like, cnr_graph *graph, cnr_model **out,
                           cnr_error *err);

#endif
