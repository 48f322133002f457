/* What a session is made of; inside run/ only.
 *
 *   session.c   opens, closes, inputs              execute.c   runs the steps, outputs
 *   transfer.c  copies and layout conversions      floats.c    the processor's float modes
 *   fallback.c  goes on on another device          hang.c      gives up a device that hangs
 *   bind.c      inputs and outputs in an application's own memory */
#ifndef CNRI_SESSION_H
#define CNRI_SESSION_H

#include "run/run.h"

typedef struct cnri_call { /* one step as this session calls it */
    cnr_node view;
    const cnr_tensor **inputs;
    cnr_tensor **outputs;
    cnr_mem workspace;
    bool has_workspace, viewed; /* viewed: the workspace is a view to give back */
    bool dynamic;               /* shapes of its outputs follow from those at run */
    void *event;
} cnri_call;

typedef struct cnri_listener {
    cnri_event_fn fn;  /* NULL: the listener is an application's, */
    cnr_run_fn run_fn; /* which gets cnr_run_event instead */
    void *arg;
    int32_t id;
    bool sync;
} cnri_listener;

typedef cnr_status (*cnri_session_fn)(cnr_session *s, cnr_error *err);

/* Host memory of an input or output. */
typedef struct cnri_end {
    void *memory;
    const cnr_device *device; /* whose host_alloc gave it; NULL: the heap's */
} cnri_end;

enum { CNRI_GIVEN = 1, CNRI_BOUND = 2 };

struct cnr_session {
    cnr_plan *plan;
    cnr_model *model;
    cnr_stream *streams; /* by device; opened is how many */
    int32_t opened;
    cnr_mem *mems;               /* by storage; constants are the plan's */
    cnr_tensor *tensors, *flats; /* by home; flats: block hidden */
    bool *viewed;                /* by home: mem is a view to give back */
    cnri_call *calls;            /* by step */
    void **inputs;               /* host copies, by graph input */
    uint8_t *given;              /* by graph input: CNRI_GIVEN ... */
    int32_t *bound; /* by home that owns its bytes: 0, or which input (1 + i) or output (-1 - i) is
                       bound to memory of the caller's that stands for them */
    cnr_tensor *outputs; /* host, by graph output */
    void **output_data;  /* own memory of those that live elsewhere */
    cnri_end *ends;      /* what inputs and output_data point to */
    int32_t n_ends;
    void *staging[2];  /* for conversions on devices without host memory */
    int32_t *finished; /* by device: its steps up to this one are known to have run */
    bool *pending;     /* by device: queued work was not flushed yet */
    CNRI_VEC(cnri_listener) listeners;
    int32_t last_listener; /* id */
    int32_t n_bound;
    bool timed; /* streams that can are opened for timing */
    cnr_tap_fn tap;
    void *tap_arg;
    bool running, sync, done;             /* done: outputs are there */
    bool lost;                            /* given up: nothing of it is freed */
    cnri_worker *worker;                  /* that its calls run on; NULL: none yet */
    cnri_session_fn fn;                   /* what it runs now */
    uint64_t began_ns, last_run_ns;       /* of this run; of the last that succeeded, its length */
    int32_t wanted;                       /* the output that is read */
    const volatile int32_t *outer_cancel; /* somebody else's flag that cancels too; NULL: none */
    /* last: other threads write it, even while a session becomes another */
    volatile int32_t cancel;
};

/* session.c: the home lies in `whole` (NULL: in its storage) from `offset` on. */
cnr_status cnri_session_place(cnr_session *s, int32_t home, const cnr_mem *whole, uint64_t offset,
                              cnr_error *err);
/* The input or output of that index; value (may be NULL) is of its type. */
cnr_status cnri_session_end(const cnr_session *s, bool is_output, int32_t index,
                            const cnr_tensor *value, const cnri_value **out, cnr_error *err);

/* listen.c: tells all listeners. */
void cnri_session_notify(const cnr_session *s, cnri_event_kind kind, int32_t step, uint64_t took_ns,
                         const char *counters);

/* session.c: a session of the plan, or an error: no other device is tried. */
cnr_status cnri_session_open(cnr_plan *plan, cnr_session **out, cnr_error *err);
/* fallback.c: after a failure of the plan's device, where another is allowed, this session becomes
 * one on that, with its inputs. False: none is allowed, or it failed too. */
bool cnri_session_move_to_fallback(cnr_session *s, cnr_status status, const cnr_error *why);

/* hang.c: fn(s), which is given up when a call of a device does not return; the session is lost
 * then. */
cnr_status cnri_session_call(cnr_session *s, cnri_session_fn fn, cnr_error *err);

/* transfer.c */
cnr_status cnri_transfer(cnr_session *s, const cnri_step *step, cnr_error *err);
/* Bytes of home `home`, plain, into host memory; the stream is synced. */
cnr_status cnri_download(cnr_session *s, int32_t home, void *to, cnr_error *err);
/* Bytes that conversions of this plan need beside the homes. */
uint64_t cnri_staging_bytes(const cnr_plan *plan);

/* floats.c: denormals flushed and rounding to nearest on this thread, and back. */
typedef struct cnri_floats {
    uint64_t control;
} cnri_floats;
void cnri_floats_enter(cnri_floats *saved);
void cnri_floats_leave(const cnri_floats *saved);

#endif
