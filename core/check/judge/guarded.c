/* Gives kernels of a plan's steps guarded workspaces and prepared weights; a plan itself lays them
 * beside other memory. */
#include "judge/fence.h"
#include "judge/trial.h"
#include "plan/plan.h"

/* A step whose kernel is called with a guarded workspace. */
typedef struct watched {
    cnri_step *step;
    const cnr_kernel *kernel; /* the original kernel */
    cnr_kernel guarded;
} watched;
static CNRI_VEC(watched *) all; /* of the only plan of this process */

/* The watched step of a node; NULL: none. */
static const watched *watched_of(const cnr_node *node) {
    for (int32_t i = 0; i < all.n; i++)
        if (all.at[i]->step->view.name == node->name) return all.at[i];
    return NULL;
}

/* Stands for a kernel's run: calls it with a workspace between fences. */
static cnr_status run_guarded(const cnr_run *run, cnr_error *err) {
    const watched *w = watched_of(run->node);
    const cnr_device_class *cls = run->stream->device->cls;
    cnri_piece room = {0};
    cnri_text why = {0};
    cnr_run with = *run;
    bool good = cnri_piece_make(&room, run->stream, &w->step->workspace_space, 0, &why) &&
                cnri_piece_fill(&room, NULL, 0xff, &why);
    with.workspace = &room.mem;
    with.workspace_data = room.host;
    cnr_status status = good ? w->kernel->run(&with, err) : CNR_OK;
    if (good && !status) status = cls->sync(run->stream, err);
    good = good && (status || cnri_piece_check(&room, false, "the workspace", NULL, &why));
    if (!good) status = cnri_fail(err, CNR_E_STATE, run->node->name, "%s", why.at ? why.at : "");
    cnri_piece_free(&room);
    cnri_text_free(&why);
    return status;
}

/* Prepares weights between fences, in memory full of `poison`. False: `why` says what is wrong, or
 * *status is the kernel's. */
static bool prepare_between(const watched *w, const cnr_device *device, const cnr_node *node,
                            cnri_fence *room, uint8_t poison, cnr_status *status, cnri_text *why,
                            cnr_error *err) {
    const cnr_space *space = &w->step->blob_space;
    if (!cnri_fence_make(room, space->bytes, space->alignment ? space->alignment : 64)) {
        *status = cnri_out_of_memory(err, node->name);
        return true;
    }
    cnri_fence_fill(room, NULL, poison);
    *status = w->kernel->prepare(device, node, room->data, err);
    return *status || cnri_fence_check(room, false, "the blob", why);
}

/* Stands for a kernel's prepare: calls it twice, between fences. Both results must be equal in all
 * bytes, since blobs are stored and made again. */
static cnr_status prepare_guarded(const cnr_device *device, const cnr_node *node, void *blob,
                                  cnr_error *err) {
    const watched *w = watched_of(node);
    cnri_fence first = {0}, second = {0};
    cnri_text why = {0};
    cnr_status status = CNR_OK;
    bool good = prepare_between(w, device, node, &first, 0x5a, &status, &why, err);
    if (good && !status) good = prepare_between(w, device, node, &second, 0xa5, &status, &why, err);
    for (uint64_t i = 0; i < first.bytes && good && !status; i++) {
        good = first.data[i] == second.data[i];
        if (!good)
            cnri_text_add(&why,
                          "prepare leaves byte %llu of %llu as it was, or changes it each time",
                          (unsigned long long)i, (unsigned long long)first.bytes);
    }
    if (!good) status = cnri_fail(err, CNR_E_STATE, node->name, "%s", why.at ? why.at : "");
    if (!status) memcpy(blob, first.data, (size_t)first.bytes);
    cnri_fence_free(&first);
    cnri_fence_free(&second);
    cnri_text_free(&why);
    return status;
}

bool cnri_guard_workspaces(cnr_plan *plan) {
    for (int32_t i = 0; i < plan->steps.n; i++) {
        cnri_step *step = &plan->steps.at[i];
        const bool works = step->workspace >= 0, prepares = step->blob >= 0 && !step->slices;
        if (!step->kernel || !(works || prepares) || !step->view.name) continue;
        watched **slot = cnri_push(&all), *w = slot ? cnri_alloc_zero(sizeof *w) : NULL;
        if (!w) return false;
        *slot = w;
        w->step = step;
        w->kernel = step->kernel;
        w->guarded = *step->kernel;
        if (works) w->guarded.run = run_guarded;
        if (prepares) w->guarded.prepare = prepare_guarded;
        step->kernel = &w->guarded;
    }
    return true;
}

void cnri_unguard_workspaces(void) {
    for (int32_t i = 0; i < all.n; i++) {
        if (all.at[i]) all.at[i]->step->kernel = all.at[i]->kernel;
        cnri_free(all.at[i]);
    }
    cnri_vec_free(&all);
}
