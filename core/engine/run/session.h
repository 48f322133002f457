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
    bool has_workspace, viewed; /* viewed: the workspace is a view that must be released */
    bool dynamic;               /* shapes of its outputs are computed in each run */
    void *event;
} cnri_call;

/* A function that is told of events. */
typedef struct cnri_listener {
    cnri_event_fn fn;  /* NULL: an application's listener, called through run_fn */
    cnr_run_fn run_fn; /* gets a cnr_run_event */
    void *arg;
    int32_t id;
    bool sync;
} cnri_listener;

typedef cnr_status (*cnri_session_fn)(cnr_session *s, cnr_error *err);

/* Host memory of an input or output. */
typedef struct cnri_end {
    void *memory;
    const cnr_device *device; /* the device whose host_alloc returned it; NULL: the heap */
} cnri_end;

enum { CNRI_GIVEN = 1, CNRI_BOUND = 2 };

/* A session: memory, streams and state of runs of one plan. */
struct cnr_session {
    cnr_plan *plan;
    cnr_model *model;
    cnr_stream *streams; /* by device; the first `opened` are open */
    int32_t opened;
    cnr_mem *mems;               /* by storage; constant storages belong to the plan */
    cnr_tensor *tensors, *flats; /* by home; flats: with the channel block hidden */
    bool *viewed;                /* by home: its memory is a view that must be released */
    cnri_call *calls;            /* one for each step of the plan */
    void **inputs;               /* host copies, by graph input */
    uint8_t *given;              /* by graph input: CNRI_GIVEN ... */
    int32_t *bound; /* by home that owns its bytes: 0, or which input (1 + i) or output (-1 - i) is
                       bound to memory of the caller's that stands for them */
    cnr_tensor *outputs; /* host, by graph output */
    void **output_data;  /* own memory of those that live elsewhere */
    cnri_end *ends;      /* what inputs and output_data point to */
    int32_t n_ends;
    void *staging[2];  /* buffers for conversions on devices without host memory */
    int32_t *finished; /* by device: all its steps up to this index have run */
    bool *pending;     /* by device: it has queued work that was not flushed */
    CNRI_VEC(cnri_listener) listeners;
    int32_t last_listener; /* id of the newest listener */
    int32_t n_bound;
    bool timed; /* streams that can are opened for timing */
    cnr_tap_fn tap;
    void *tap_arg;
    bool running, sync, done;       /* done: the outputs are ready */
    bool lost;                      /* given up: none of its memory is freed */
    cnri_worker *worker;            /* thread that makes its calls; NULL: none yet */
    cnri_session_fn fn;             /* the function that the worker runs now */
    uint64_t began_ns, last_run_ns; /* start of this run; length of the last run that succeeded */
    int32_t wanted;                 /* index of the output that is read */
    const volatile int32_t *outer_cancel; /* a flag elsewhere that cancels runs too; NULL: none */
    /* Last, because other threads write it even while the session is moved to another device. */
    volatile int32_t cancel;
};

/* session.c: the home lies in `whole` (NULL: in its storage) from `offset` on. */
cnr_status cnri_session_place(cnr_session *s, int32_t home, const cnr_mem *whole, uint64_t offset,
                              cnr_error *err);
/* *out: the input or (is_output) output of that index; fails if there is none, or value (may be
 * NULL) isn't of its type. */
cnr_status cnri_session_end(const cnr_session *s, bool is_output, int32_t index,
                            const cnr_tensor *value, const cnri_value **out, cnr_error *err);

/* Tells an event to all listeners, in the order of their adding; step < 0: of the run. */
void cnri_session_notify(const cnr_session *s, cnri_event_kind kind, int32_t step, uint64_t took_ns,
                         const char *counters);

/* Opens a session of the plan in *out, or fails: no other device is tried (session.c). */
cnr_status cnri_session_open(cnr_plan *plan, cnr_session **out, cnr_error *err);
/* fallback.c: after a failure of the plan's device, where another is allowed, this session becomes
 * one on that, with its inputs. False: none is allowed, or it failed too. */
bool cnri_session_move_to_fallback(cnr_session *s, cnr_status status, const cnr_error *why);

/* hang.c: runs fn(s). If a device's call hangs, it is given up and the session is lost. */
cnr_status cnri_session_call(cnr_session *s, cnri_session_fn fn, cnr_error *err);

/* Does a step that copies a value to another device or layout. */
cnr_status cnri_transfer(cnr_session *s, const cnri_step *step, cnr_error *err);
/* Copies home `home` in plain layout into host memory, and waits for it. */
cnr_status cnri_download(cnr_session *s, int32_t home, void *to, cnr_error *err);
/* Bytes that conversions of this plan need beside the homes. */
uint64_t cnri_staging_bytes(const cnr_plan *plan);

/* floats.c: sets the thread's float modes (flush denormals, round to nearest) and restores them. */
typedef struct cnri_floats {
    uint64_t control;
} cnri_floats;
/* Sets flushing of denormals and rounding to nearest for this thread; *saved: what was set before.
 */
void cnri_floats_enter(cnri_floats *saved);
/* Restores what cnri_floats_enter saved. */
void cnri_floats_leave(const cnri_floats *saved);

#endif
