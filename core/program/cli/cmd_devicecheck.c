/* cnnrun devicecheck: judges a device by what the ABI requires, as TAP. */
#include "cli/conform.h"

/* Options of devicecheck. */
typedef struct settings {
    cnri_conform_call c;
} settings;

static const cnri_option options[] = {
    CNRI_CONFORM_OPTIONS(settings, c),
};

/* The command devicecheck. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    settings *s = values;
    s->c.o.device = s->c.o.check.device = call->operands.at[0]; /* children read this, too */
    s->c.o.check.cases = 2; /* of a kernel, which may be compiled */
    return cnri_conform_command(call, &s->c, err);
}

const cnri_command cnri_cmd_devicecheck = {
    .name = "devicecheck",
    .example = "cnnrun devicecheck opencl:0",
    .operands = "DEVICE",
    .summary = "Holds a device to what the ABI says of devices, and tries a few kernels on it.\n"
               "Prints TAP: one test a judgement.",
    .details =
        "Each judgement runs in a process of its own, so that a crash or a hang costs that one\n"
        "alone, and is told with what was being tried. A device without a hook that is optional\n"
        "is not judged by it (# SKIP).\n"
        "Judgements: copies at every offset and size class; views and mapped memory; the order\n"
        "of what is queued; marks that another stream or the host waits for; transfers outside\n"
        "memory, and allocations that fail, which a call or the next sync must say; two\n"
        "threads; a cancel; a close while it works; fork. Kernels find that their cnr_run is\n"
        "gone when run has returned, and compute ranges, with more threads than cores.",
    .results = CNRI_RESULTS(&cnri_conform_record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(settings, .c = CNRI_CONFORM_DEFAULTS(20)),
    .min_operands = 1,
    .max_operands = 1,
    .opens = cnri_call_open,
    .wrong = cnri_conform_wrong,
    .run = run,
};
