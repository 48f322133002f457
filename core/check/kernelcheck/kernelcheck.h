/* kernelcheck: the command, in a program of its own and among those of cnnrun. */
#ifndef CNRI_KERNELCHECK_H
#define CNRI_KERNELCHECK_H

#include "front/front.h"

extern const cnri_command cnri_cmd_kernelcheck;

/* ---- check_net.c: --net, in a child ---- */
/* The net of --net, on whose nodes kernels are judged. */
typedef struct cnri_checked_net {
    cnr_runtime *rt;
    const char *path, *weights, *weights_type, *arithmetic; /* all but the path may be NULL */
    cnri_shapes shapes; /* this and `plan` are filled by cnri_checked_open */
    cnr_plan *plan;
} cnri_checked_net;

/* Implements cnri_check_options.open_net, with a cnri_checked_net as `arg`: loads and plans the
 * net. *on: the device to check, owned by the plan. */
cnr_status cnri_checked_open(void *arg, const char *device, cnr_plan **plan, const cnr_device **on,
                             cnr_error *err);
/* Runs the net as planned and plainly, and compares all values. False: they differ, see why. */
bool cnri_checked_whole(void *arg, int64_t number, cnri_text *why);

#endif
