/* Judges kernels on the nodes of a net; inside check/ only. */
#ifndef CNRI_CHECK_NET_H
#define CNRI_CHECK_NET_H

#include "judge/judge.h"
#include "plan/plan.h"

/* How nodes of a planned net are checked: seed, first case, and functions that choose kernels. */
typedef struct cnri_net_work {
    const cnr_plan *plan; /* of the net, on the device */
    const cnr_device *device;
    uint64_t seed;
    int64_t first, only; /* counted in pairs of a node and a kernel; only >= 0: just that one */
    void *arg;
    bool (*wants)(void *arg, const cnr_kernel *kernel, const char *op);
    void *whole_arg;
    bool (*whole)(void *arg, int64_t number, cnri_text *why); /* (optional) judges the whole plan */
} cnri_net_work;

/* Tells as lines on stdout, as the worker does, and besides
 *     spot 3 120       of so many nodes
 *     kernel 17        of the registry: what follows is of this one; -1: of the plan as a whole
 *     odd 40 WHY       a node that cannot be judged */
cnr_status cnri_net_run(const cnri_net_work *w, cnr_error *err);

#endif
