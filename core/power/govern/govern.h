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

/* ---- what a policy sees at a tick; NaN: not told ---- */
typedef struct cnri_seen_knob {
    char name[64], feeds[64];
    uint64_t steps[CNRI_MAX_STEPS]; /* rising, within the bounds */
    int32_t n_steps;                /* 0: any frequency from min to max */
    int32_t writable, min_cores, max_cores;
    uint64_t min_hz, max_hz, hz; /* the last: now */
    uint64_t asked;              /* what was set last; 0: nothing yet */
    double load, temperature;    /* part of 1 since the last tick; degrees */
    int32_t cores;
} cnri_seen_knob;
typedef struct cnri_seen_meter {
    char name[64], feeds[64];
    int32_t quantity;                  /* CNR_QUANTITY_... */
    int32_t whole, part;               /* the whole machine; part of another's */
    double watts, joules, temperature; /* since the last tick; so far; now */
} cnri_seen_meter;
typedef struct cnri_seen_runs { /* passes of a net, or of a scene's loop */
    int64_t count, fresh;       /* ended so far; since the last tick */
    double seconds;             /* the last one, from begin to end */
    double cycle, joules; /* of those that are fresh: from one's end to the next one's; a mean */
} cnri_seen_runs;
typedef struct cnri_seen {
    double time, period; /* seconds since the first tick; since the last */
    int32_t n_knobs, n_meters;
    cnri_seen_knob knobs[CNRI_MAX_KNOBS];
    cnri_seen_meter meters[CNRI_MAX_METERS];
    double watts, joules, temperature; /* of all; the hottest */
    cnri_seen_runs runs;
    char device[64]; /* devices that passes run on, with commas between; "": none ran yet */
} cnri_seen;
typedef struct cnri_wish { /* for a knob */
    double hz;             /* 0: as it is */
    int32_t cores;         /* -1: as they are */
} cnri_wish;

typedef struct cnri_frequency_policy {
    void *arg;
    /* Fills wishes[knob], and *period in seconds, which are as they are when it says nothing. */
    cnr_status (*step)(void *arg, const cnri_seen *seen, cnri_wish *wishes, double *period,
                       cnr_error *err);
    const char *(*why)(void *arg); /* what it last said of itself; NULL: it says nothing */
    void (*close)(void *arg);      /* NULL: there is nothing to close */
} cnri_frequency_policy;

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
/* What a governor did so far. */
typedef struct cnri_governor_stats {
    /* switches: settings that changed; faults: of the policy; lapses: of reading the machine */
    int64_t ticks, switches, faults, lapses;
    bool off, advises; /* turned off after three faults; knobs are there that can't be set */
    double seconds, watts_seconds; /* looked at; joules by the meters in that time, NaN: no meter */
    /* of the policy and the setting: processor time; the longest tick */
    double cpu_seconds, longest;
    double throttled; /* share of ticks in which the limit of temperature held frequencies down */
    cnr_error fault;  /* the first */
} cnri_governor_stats;
typedef struct cnri_governor {
    cnri_machine machine;
    cnri_frequency_policy policy;
    double limit;   /* degrees: above, each tick goes a step down, whatever is wished; NaN: none */
    double period;  /* until the next tick */
    cnri_seen seen; /* of the last */
    cnri_governor_stats stats;
    int32_t capped[CNRI_MAX_KNOBS]; /* steps that heat takes off the top */
    int32_t driven; /* by a plugin's clock: what runs moves time by now, so a tick may wait in it */
} cnri_governor;
/* One tick: looks, asks, sets. An error is the machine's: it can't be looked at. */
cnr_status cnri_governor_tick(cnri_governor *g, cnr_error *err);
/* The highest of the knob's steps that is not above hz, the lowest where all are; without steps, hz
 * within the bounds. */
uint64_t cnri_step_below(const cnri_seen_knob *k, double hz);

/* Whether it feeds a device that passes run on. */
bool cnri_seen_feeds(const cnri_seen *s, int32_t knob);
/* The knob that matters where none is named: the first that feeds a device that passes run on, -1
 * where none does; before any pass the last that feeds a device and switches no cores, as
 * processors do; else the first. */
int32_t cnri_seen_main(const cnri_seen *s);

/* ---- live.c: this machine ---- */
typedef struct cnri_live cnri_live;
cnr_status cnri_live_open(const cnr_gauge_options *options, cnri_live **out, cnr_error *err);
cnri_machine cnri_live_machine(cnri_live *l);
int32_t cnri_live_knobs(const cnri_live *l);
/* A pass began, ended: from any thread, at once. */
void cnri_live_run(cnri_live *l, bool begins, uint64_t now_ns, const char *device);
/* When the last pass ended, in seconds as ticks have them; negative: none did. */
double cnri_live_last_end(cnri_live *l);
/* All is put back. */
cnr_status cnri_live_close(cnri_live *l, cnr_error *err);

/* ---- pacer.c ---- */
typedef struct cnri_pacer cnri_pacer;
/* `each` (may be NULL) hears of each tick, on the thread. g is the thread's until the end. */
cnr_status cnri_pacer_start(cnri_governor *g, void (*each)(void *arg, const cnri_governor *g),
                            void *arg, cnri_pacer **out, cnr_error *err);
void cnri_pacer_stop(cnri_pacer *p);

/* ---- trace.c: recordings, as CSV ----
 *     # measured on ...
 *     time,gpu.hz,gpu.load,gpu.temperature,gpu.cores,NAME.watts,runs
 * A column may be left out; an empty cell was not told. */
typedef struct cnri_trace_column {
    char name[64];
    int32_t what;
    double *at;
} cnri_trace_column;
typedef struct cnri_trace {
    char *note;          /* the comment lines */
    int32_t n, capacity; /* rows */
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
cnr_status cnri_trace_read(const char *path, cnri_trace *out, cnr_error *err);
void cnri_trace_free(cnri_trace *t);
/* NULL: there is none; name NULL: the first of the sort. */
const cnri_trace_column *cnri_trace_column_of(const cnri_trace *t, const char *name, int32_t what);
/* A line of the header (before the first row), and of what is seen. */
void cnri_trace_header(const cnri_seen *seen, const char *note, cnri_text *out);
void cnri_trace_row(const cnri_seen *seen, cnri_text *out);
/* The recorded work at the frequencies that a policy asks for: what was not done in time is done
 * later. */
typedef struct cnri_replay {
    const cnri_trace *trace;
    double time, period, backlog[CNRI_MAX_KNOBS], asked[CNRI_MAX_KNOBS];
    double runs, joules;
    int32_t n_knobs;
    bool over;
} cnri_replay;
cnr_status cnri_replay_open(const cnri_trace *t, cnri_replay *out, cnr_error *err);
cnri_machine cnri_replay_machine(cnri_replay *r);
void cnri_replay_pass(cnri_replay *r, double seconds);

/* ---- socket.c: a Unix socket that listens, and its file ---- */
typedef struct cnri_socket {
    int fd;                 /* -1: none */
    uint64_t device, inode; /* of its file */
} cnri_socket;
/* The group's (-1: its owner's alone). A stale socket of ours is replaced; anything else there is
 * an error. */
cnr_status cnri_socket_listen(const char *path, int64_t group, cnri_socket *out, cnr_error *err);
void cnri_socket_close(const char *path,
                       cnri_socket *s); /* its file goes, if it is still this one's */

/* ---- serve.c: readings and settings for who is not root ---- */
typedef struct cnri_serving cnri_serving;
enum { CNRI_SERVING_ROOM = 512 };
cnr_status cnri_serving_open(const cnr_gauge_options *options, cnri_serving **out, cnr_error *err);
void cnri_serving_close(cnri_serving *s);
/* Until *cancel; the socket is the group's (-1: its owner's alone). */
cnr_status cnri_serve(cnri_serving *s, const char *path, int64_t group,
                      const volatile int32_t *cancel, cnr_error *err);
/* What the socket does, without one: a line of a client's, without its newline; a client went. */
void cnri_serving_answer(cnri_serving *s, int client, const char *line,
                         char out[CNRI_SERVING_ROOM]);
void cnri_serving_gone(cnri_serving *s, int client);

/* A policy in a file, or an installed one, with options: "fixed,at=lowest"; traces, which stay the
 * caller's as spec does, are what it may learn from. Its steps may run on another thread, one at a
 * time. */
typedef struct cnri_learns {
    const cnri_trace *traces;
    const char *const *names;
    int32_t n;
} cnri_learns;
/* What a scripting library registers here: who reads policies, and the folder of installed policies
 * and recordings (NULL: there is none; cnri_free). Both are required; the struct is constant. */
typedef struct cnri_governor_scripts {
    cnr_status (*policy_open)(const char *spec, const cnri_learns *from, cnri_frequency_policy *out,
                              cnr_error *err);
    char *(*folder)(void);
} cnri_governor_scripts;
void cnri_governor_scripts_register(const cnri_governor_scripts *scripts); /* any thread */
/* The functions of cnri_governor_scripts; CNR_E_UNSUPPORTED or NULL: none are registered. */
cnr_status cnri_frequency_policy_open(const char *spec, const cnri_learns *from,
                                      cnri_frequency_policy *out, cnr_error *err);
char *cnri_governors_folder(void);

/* ---- dtw.c ---- */
/* Dynamic time warping of two series, |a - b| apart: the least sum along a path through both. band:
 * how far the path may stray from the diagonal, as a part of the longer one (1: anywhere). INFINITY
 * as soon as it is known to be above `most`. NaN: out of memory, or one is empty. */
double cnri_dtw(const double *a, int32_t n, const double *b, int32_t m, double band, double most);

#endif
