/* govern: frequencies by a policy. A machine is looked at, the policy says what it would have, and
 * that is set within what was found; the machine is this one's knobs and meters, a recording, or
 * what the caller brings (a played scene: work/scene.c).
 *
 *     cnri_machine  look, set        live.c (knobs, meters)   trace.c (a recording)
 *     cnri_governor one tick         governor.c: seen -> wishes -> clamped -> set
 *     cnri_pacer    a tick each 0.1 s by the clock in force, on a thread of its own   pacer.c
 *     dtw.c         how unlike two series are
 *
 * The policy and what runs come in from above: the room knows no script and no net. */
#ifndef CNRI_GOVERN_H
#define CNRI_GOVERN_H

#include "gauges/gauges.h"

enum { CNRI_MAX_KNOBS = 16, CNRI_MAX_METERS = 32, CNRI_MAX_STEPS = 128 };

/* ---- what a policy sees at a tick; NaN: not known ---- */
/* A knob as a policy sees it; NaN: not known. */
typedef struct cnri_seen_knob {
    char name[64], feeds[64];
    uint64_t steps[CNRI_MAX_STEPS]; /* Hz, rising, within the bounds */
    int32_t n_steps;                /* number of steps; 0: any frequency from min_hz to max_hz */
    int32_t writable, min_cores, max_cores;
    uint64_t min_hz, max_hz, hz; /* hz: the present frequency */
    uint64_t asked;              /* Hz of the last setting; 0: none yet */
    /* Load: 0 to 1, since the last tick; temperature in degrees Celsius. */
    double load, temperature;
    int32_t cores;
} cnri_seen_knob;
/* A meter as a policy sees it. */
typedef struct cnri_seen_meter {
    char name[64], feeds[64];
    /* What the meter reads: CNR_QUANTITY_ENERGY, _POWER or _TEMPERATURE. */
    int32_t quantity;
    int32_t whole, part;               /* the whole machine; part of another's */
    double watts, joules, temperature; /* since the last tick; so far; now */
} cnri_seen_meter;
typedef struct cnri_seen_runs { /* passes: runs of a net, or of a scene's loop */
    int64_t count, fresh;       /* count: passes so far; fresh: passes since the last tick */
    double seconds;             /* of the last pass, from begin to end */
    /* Of fresh passes: mean seconds from the end of one to the end of the next; mean joules. */
    double cycle, joules;
} cnri_seen_runs;
/* All that a policy sees at a tick. */
typedef struct cnri_seen {
    double time, period; /* seconds since the first tick, and since the last */
    int32_t n_knobs, n_meters;
    cnri_seen_knob knobs[CNRI_MAX_KNOBS];
    cnri_seen_meter meters[CNRI_MAX_METERS];
    double watts, joules, temperature; /* watts and joules of all meters; the highest temperature */
    cnri_seen_runs runs;
    char device[64]; /* devices that run passes, separated by commas; "": none ran yet */
} cnri_seen;
typedef struct cnri_wish { /* wish for one knob */
    double hz;             /* frequency that is wanted; 0: unchanged */
    int32_t cores;         /* cores that are wanted; -1: unchanged */
} cnri_wish;

/* A policy of frequencies: called at each tick with what is seen, it answers a wish for each
 * knob. */
typedef struct cnri_frequency_policy {
    void *arg;
    /* Fills wishes[knob], and *period in seconds. Both keep their values if the policy sets
     * nothing. */
    cnr_status (*step)(void *arg, const cnri_seen *seen, cnri_wish *wishes, double *period,
                       cnr_error *err);
    /* The reason that it last gave for its wishes; NULL: it gives none. */
    const char *(*why)(void *arg);
    void (*close)(void *arg); /* NULL: there is nothing to close */
} cnri_frequency_policy;

/* Where a governor reads and sets: this machine, a recording, or a scene. */
typedef struct cnri_machine {
    void *arg;
    cnr_status (*look)(void *arg, cnri_seen *seen, cnr_error *err);
    cnr_status (*set)(void *arg, int32_t knob, uint64_t hz, int32_t cores, cnr_error *err);
} cnri_machine;

/* ---- governor.c ---- */
#define CNRI_TICK_LEAST 0.02
#define CNRI_TICK_DEFAULT 0.1
#define CNRI_TICK_MOST 5.0
enum { CNRI_MAX_FAULTS = 3 };
/* Counters of a governor. */
typedef struct cnri_governor_stats {
    /* switches: settings that changed; faults: of the policy; lapses: failed readings of the
     * machine. */
    int64_t ticks, switches, faults, lapses;
    bool off, advises; /* off: turned off after three faults; advises: some knobs can't be set */
    /* Seconds governed; joules by the meters in that time (NaN: no meter). */
    double seconds, watts_seconds;
    /* Processor time of policy and settings in seconds; the longest tick in seconds. */
    double cpu_seconds, longest;
    double throttled; /* share of ticks in which the temperature limit held frequencies down */
    cnr_error fault;  /* the first fault */
} cnri_governor_stats;
/* A policy at work on a machine. */
typedef struct cnri_governor {
    cnri_machine machine;
    cnri_frequency_policy policy;
    /* Degrees Celsius; above it each tick lowers the frequency a step, whatever is wished; NaN:
     * no limit. */
    double limit;
    double period;  /* seconds until the next tick */
    cnri_seen seen; /* as of the last tick */
    cnri_governor_stats stats;
    int32_t capped[CNRI_MAX_KNOBS]; /* steps below the highest that heat allows */
    /* Under a plugin's clock: the workload advances the clock now, so a tick may wait for it. */
    int32_t driven;
} cnri_governor;
/* One tick: reads the machine, asks the policy, sets knobs. Fails only if the machine can't be
 * read. */
cnr_status cnri_governor_tick(cnri_governor *g, cnr_error *err);
/* The knob's highest step not above hz, or its lowest step if all are above. Without steps: hz
 * within the bounds. */
uint64_t cnri_step_below(const cnri_seen_knob *k, double hz);

/* True if the knob feeds a device that runs passes. */
bool cnri_seen_feeds(const cnri_seen *s, int32_t knob);
/* The knob that a wish without a name sets: the first that feeds a device that runs passes, -1
 * if none does. Before any pass: the last that feeds a device and does not switch cores (as
 * processors do), else the first. */
int32_t cnri_seen_main(const cnri_seen *s);

/* ---- live.c: this machine ---- */
typedef struct cnri_live cnri_live;
/* Opens the meters and knobs of this machine. Free *out with cnri_live_close. */
cnr_status cnri_live_open(const cnr_gauge_options *options, cnri_live **out, cnr_error *err);
/* This machine as a governor's machine; it borrows l. */
cnri_machine cnri_live_machine(cnri_live *l);
/* Number of knobs that were found. */
int32_t cnri_live_knobs(const cnri_live *l);
/* Notes that a pass begins or ends now, on a device; any thread may call it. */
void cnri_live_run(cnri_live *l, bool begins, uint64_t now_ns, const char *device);
/* Time at which the last pass ended, in seconds since the first tick; negative: none did. */
double cnri_live_last_end(cnri_live *l);
/* Restores all knobs, closes the gauges and frees l; NULL: nothing. */
cnr_status cnri_live_close(cnri_live *l, cnr_error *err);

/* ---- pacer.c ---- */
typedef struct cnri_pacer cnri_pacer;
/* Starts a thread in *out that ticks. `each` (may be NULL) is called there after each tick. The
 * thread owns g until cnri_pacer_stop. */
cnr_status cnri_pacer_start(cnri_governor *g, void (*each)(void *arg, const cnri_governor *g),
                            void *arg, cnri_pacer **out, cnr_error *err);
/* Stops the ticks, waits for the thread and frees; NULL: does nothing. */
void cnri_pacer_stop(cnri_pacer *p);

/* ---- trace.c: recordings, as CSV ----
 *     # measured on ...
 *     time,gpu.hz,gpu.load,gpu.temperature,gpu.cores,NAME.watts,runs
 * A column may be left out; an empty cell was not told. */
/* One column of a recording: a number for each row, NaN where the cell is empty. */
typedef struct cnri_trace_column {
    char name[64];
    int32_t what;
    double *at;
} cnri_trace_column;
/* A recording: columns of numbers over time. */
typedef struct cnri_trace {
    char *note;          /* the comment lines at the file's head */
    int32_t n, capacity; /* number of rows */
    CNRI_VEC(cnri_trace_column) columns;
} cnri_trace;
enum {
    CNRI_COLUMN_TIME,
    CNRI_COLUMN_HZ,
    CNRI_COLUMN_LOAD,
    CNRI_COLUMN_TEMPERATURE,
    CNRI_COLUMN_CORES,
    CNRI_COLUMN_WATTS,
    CNRI_COLUMN_RUNS
};
/* Reads a recording from a .csv file. Free *out with cnri_trace_free. */
cnr_status cnri_trace_read(const char *path, cnri_trace *out, cnr_error *err);
void cnri_trace_free(cnri_trace *t); /* frees columns and note */
/* The column of that name and kind; name NULL: the first of the kind; NULL: there is none. */
const cnri_trace_column *cnri_trace_column_of(const cnri_trace *t, const char *name, int32_t what);
/* Append the CSV header (before the first row), and a row with what is seen. */
void cnri_trace_header(const cnri_seen *seen, const char *note, cnri_text *out);
/* Appends what is seen at a tick as a row of a recording. */
void cnri_trace_row(const cnri_seen *seen, cnri_text *out);
/* Replays recorded work at the frequencies that a policy asks for. Work that does not finish in
 * time is done later. */
typedef struct cnri_replay {
    const cnri_trace *trace;
    double time, period, backlog[CNRI_MAX_KNOBS], asked[CNRI_MAX_KNOBS];
    double runs, joules;
    int32_t n_knobs;
    bool over;
} cnri_replay;
/* Replays a recording as if it were a machine; the trace must stay. */
cnr_status cnri_replay_open(const cnri_trace *t, cnri_replay *out, cnr_error *err);
/* The replay as a governor's machine; it borrows r. */
cnri_machine cnri_replay_machine(cnri_replay *r);
/* Goes on in the recording by some seconds. */
void cnri_replay_pass(cnri_replay *r, double seconds);

/* ---- socket.c: a Unix socket that listens, and its file ---- */
/* A Unix socket that listens, and its file. */
typedef struct cnri_socket {
    int fd;                 /* descriptor of the socket; -1: not open */
    uint64_t device, inode; /* of the socket's file */
} cnri_socket;
/* Opens a socket for a group (-1: for its owner only). A left-over socket of this user is
 * replaced; any other file there is an error. */
cnr_status cnri_socket_listen(const char *path, int64_t group, cnri_socket *out, cnr_error *err);
/* Closes the socket, and removes its file if that is still the same one; not open: nothing. */
void cnri_socket_close(const char *path, cnri_socket *s);

/* ---- serve.c: gives readings and settings to processes without root's rights ---- */
typedef struct cnri_serving cnri_serving;
enum { CNRI_SERVING_ROOM = 512 };
/* Opens all meters and knobs, to serve them to other processes. *out is freed by
 * cnri_serving_close. */
cnr_status cnri_serving_open(const cnr_gauge_options *options, cnri_serving **out, cnr_error *err);
void cnri_serving_close(cnri_serving *s); /* closes gauges, frees it; NULL: nothing */
/* Serves until *cancel is not 0, on a socket for a group (-1: for its owner only). */
cnr_status cnri_serve(cnri_serving *s, const char *path, int64_t group,
                      const volatile int32_t *cancel, cnr_error *err);
/* The protocol without a socket: answers a client's line (without newline); forgets a client
 * that left. */
void cnri_serving_answer(cnri_serving *s, int client, const char *line,
                         char out[CNRI_SERVING_ROOM]);
/* Restores what a client has set, because it is gone. */
void cnri_serving_gone(cnri_serving *s, int client);

/* What a policy may learn from: recordings, owned by the caller, with their names. A policy is
 * given as a file or an installed name with options, "fixed,at=lowest". Its steps may run on
 * another thread, one at a time. */
typedef struct cnri_learns {
    const cnri_trace *traces;
    const char *const *names;
    int32_t n;
} cnri_learns;
/* Functions that a scripting library registers here: policy_open reads policies; folder returns
 * the folder of installed policies and recordings (free it with cnri_free; NULL: there is none).
 * Both are required; the struct is constant. */
typedef struct cnri_governor_scripts {
    cnr_status (*policy_open)(const char *spec, const cnri_learns *from, cnri_frequency_policy *out,
                              cnr_error *err);
    char *(*folder)(void);
} cnri_governor_scripts;
/* Sets the functions that open policies of scripts; kept, not copied. Any thread may call it. */
void cnri_governor_scripts_register(const cnri_governor_scripts *scripts);
/* Call the registered functions. CNR_E_UNSUPPORTED or NULL: none are registered. */
cnr_status cnri_frequency_policy_open(const char *spec, const cnri_learns *from,
                                      cnri_frequency_policy *out, cnr_error *err);
/* Path of the folder of installed policies, which need not exist, for cnri_free; NULL: nothing
 * here runs scripts, the scripts' folder is not found, or memory is out. */
char *cnri_governors_folder(void);

/* ---- dtw.c ---- */
/* Dynamic time warping distance of two series: the least sum of |a - b| along a path through
 * both. band: how far the path may leave the diagonal, as a part of the longer series (1:
 * anywhere). INFINITY as soon as the sum must exceed `most`. NaN: out of memory, or a series is
 * empty. */
double cnri_dtw(const double *a, int32_t n, const double *b, int32_t m, double band, double most);

#endif
