/* Placement by measuring, for applications. */
#include "work/work.h"

/* Memory that a result points into. */
typedef struct behind {
    cnri_placing placing;
    CNRI_VEC(cnr_share_part) parts;
} behind;

/* Lists all parts of the placement. False: out of memory. */
static bool list_parts(behind *b) {
    for (int32_t i = 0; i < b->placing.nodes.n; i++) {
        const cnri_place_node *node = &b->placing.nodes.at[i];
        for (int32_t k = 0; k < node->n; k++) {
            cnr_share_part *to = cnri_push(&b->parts);
            if (!to) return false;
            *to = (cnr_share_part){node->node, node->parts[k].device, node->parts[k].ratio};
        }
    }
    return true;
}

/* Places the model by the options' policy, devices and settings; b->placing holds the result. */
static cnr_status place(cnr_model *model, const cnr_share_options *o, const cnr_observer *observer,
                        behind *b, cnr_error *err) {
    const cnri_place_options options = {.policy = o->policy,
                                        .settings = o->settings,
                                        .devices = o->devices,
                                        .runs = o->runs > 0 ? o->runs : 5,
                                        .batch = o->batch > 0 ? o->batch : 1,
                                        .guard = !o->accept_slower_plan,
                                        .folder = o->folder,
                                        .again = o->again != 0};
    const cnr_status status = cnri_place(model, &options, observer, &b->placing, err);
    if (status) return status;
    return list_parts(b) ? CNR_OK : cnri_out_of_memory(err, "place");
}

cnr_status cnr_share(cnr_model *model, const cnr_share_options *options,
                     const cnr_observer *observer, cnr_sharing *out, cnr_error *err) {
    cnr_share_options o;
    cnr_sharing got = {.size = sizeof got};
    CNRI_COPY_OPTIONS(o, options);
    cnr_status status =
        cnri_require_arguments(err, "model", model, "options.policy", o.policy, "out", out, NULL);
    if (!status) status = CNRI_CHECK_RESULT_SIZE(out, got, err);
    if (status) return status;
    behind *b = got.state = cnri_alloc_zero(sizeof *b);
    if (!b) return cnri_out_of_memory(err, "place");
    status = place(model, &o, observer, b, err);
    if (status) {
        cnr_sharing_free(&got);
        return status;
    }
    const cnri_placing *p = &b->placing;
    got.n_alone = p->alone.n;
    got.alone = p->alone.at;
    got.n_parts = b->parts.n;
    got.parts = b->parts.at;
    got.found = p->found;
    got.predicted = p->predicted;
    got.measured = p->measured;
    got.chosen = p->chosen;
    memcpy(got.kept, p->kept, sizeof got.kept);
    got.notes = p->notes;
    got.file = p->file;
    *out = got;
    return CNR_OK;
}

void cnr_sharing_free(cnr_sharing *s) {
    behind *b = s ? s->state : NULL;
    if (!b) return;
    cnri_placing_free(&b->placing);
    cnri_vec_free(&b->parts);
    cnri_free(b);
    *s = (cnr_sharing){.size = s->size};
}
