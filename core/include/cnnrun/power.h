/* Energy, meters, knobs and frequency policies. Long work, with progress and cancelling. */
#ifndef CNNRUN_POWER_H
#define CNNRUN_POWER_H

#include <cnnrun/engine.h>

CNR_BEGIN_EXPORTS

/* ---- long work: each function takes options, an observer (may be NULL) and a result. Options that
 * are 0 or NULL have their default. What a result points at is freed by the function of its name.
 * ---- */

typedef struct cnr_progress {
    uint32_t size;
    const char *what;    /* "evaluating" */
    int64_t done, total; /* total 0: unknown */
    int64_t epoch;       /* of training, from 1; else 0 */
    double top1, loss;   /* so far; NaN: none */
} cnr_progress;

typedef struct cnr_observer {
    uint32_t size;
    void *arg;
    /* (optional) now and then, on the caller's thread; not 0 stops the work */
    int32_t (*progress)(void *arg, const cnr_progress *progress);
    /* (optional) something is finished: kind is CNR_EVENT_..., `of` its struct; not 0 stops */
    int32_t (*event)(void *arg, int32_t kind, const void *of);
    /* (optional) stops the work while not 0, a run in its middle too; any thread or a signal
     * handler may set it */
    const volatile int32_t *cancel;
} cnr_observer;

/* ---- meters and knobs: what they read now. A reading is of the whole machine. ---- */

typedef struct cnr_gauge {
    uint32_t size;
    /* of a meter: 1 energy (uJ), 2 power (uW), 3 temperature (m degrees C); of a knob 0 */
    int32_t quantity;
    const char *plugin;       /* the meter's or knob's name */
    char name[64], feeds[64]; /* of the domain; of the device it feeds or clocks ("": unknown) */
    int32_t estimated, period_ms, status; /* not 0: it could not be read, and `why` says why */
    int64_t value;                        /* of a meter */
    uint64_t time_ns;
    uint64_t hz, min_hz, max_hz; /* of a knob, and the rest too */
    int32_t writable, load_percent, cores, max_cores, temperature_mc; /* -1, INT32_MIN: not told */
    char why[128];
} cnr_gauge;
typedef struct cnr_gauge_list {
    uint32_t size;
    int32_t n;
    cnr_gauge *at;
} cnr_gauge_list;
/* root: a tree to look in, or NULL: the runtime's; address: NULL, or of what is no file there. */
cnr_status cnr_gauges(cnr_runtime *rt, const char *root, const char *address, cnr_gauge_list *out,
                      cnr_error *err);
/* Frees what cnr_gauges put into the list, and empties it; the struct stays the caller's. NULL:
 * nothing. */
void cnr_gauges_free(cnr_gauge_list *list);

/* ---- energy: what the domains of meters took while something ran. Of the whole machine, so
 * nothing else should run. What can't be told is NaN, never 0. ---- */

typedef struct cnr_energy_domain {
    uint32_t size;
    int32_t quantity; /* 1: a counter's difference; 2: power, integrated */
    const char *meter;
    char name[64], feeds[64]; /* as cnr_gauge */
    int32_t estimated, period_ms;
    int32_t within; /* 1 + the domain of this list that holds this one's energy too; 0: none */
    int32_t summed; /* 1: counted in the whole's joules */
    int32_t status; /* not 0: unmeasured, and `why` says why */
    double joules, joules_net, watts, edp; /* of a round; net of what was drawn before it began */
    double idle_watts, idle_spread;        /* before it began: mean and standard deviation */
    int64_t samples;                       /* readings in all rounds */
    char why[128]; /* at status 0 not empty: why joules_net and idle_watts are not told */
} cnr_energy_domain;
enum {
    CNR_ENERGY_UNMEASURED = 0,
    CNR_ENERGY_MEASURED = 1,
    CNR_ENERGY_ESTIMATED = 2,
    CNR_ENERGY_SIMULATED = 3 /* by a plugin's clock: joules and seconds are a made-up machine's */
};
typedef struct cnr_energy {
    uint32_t size;
    /* CNR_ENERGY_..., of the sums: measured domains are never summed with estimated ones */
    int32_t source;
    /* n: domains (0: there is no meter); unmeasured: those of them that can't be told */
    int32_t n, unmeasured;
    int64_t rounds, samples; /* all numbers are of one round, but samples */
    double seconds, joules, joules_net, watts, idle_watts, edp; /* edp: joules * seconds */
    double sampler_share; /* of a processor, that taking the samples took */
    cnr_energy_domain *at;
    /* why domains are told but not their sum ("no meter feeds cpu"), or why joules_net is not (the
     * baseline was under load); else "" */
    char why[80];
    /* domains that the sums lack, since they could not be read from the beginning on. One that
     * fails in the middle leaves no sums: all is unmeasured then */
    char missing[80];
} cnr_energy;
void cnr_energy_free(cnr_energy *energy);
typedef struct cnr_energy_options {
    uint32_t size;
    int32_t no_idle;   /* 1: idle power is not measured (else for a second or so, once a runtime) */
    int64_t rounds;    /* of cnr_energy_of, at least (0: 1) */
    double idle_watts; /* idle power of all that is summed, if the caller knows it; 0: unknown */
    /* idle_behind: 1, idle power is measured after the region too: if it is lower then, the machine
     * was not idle before */
    int32_t idle_behind;
} cnr_energy_options;
/* Begins to take samples; to be ended on any thread. Several may be open. */
typedef struct cnr_energy_region cnr_energy_region;
cnr_status cnr_energy_begin(cnr_runtime *rt, const cnr_energy_options *options,
                            const cnr_observer *observer, cnr_energy_region **out, cnr_error *err);
/* Whether it lasted 20 periods of the slowest sensor by now; below that it tells little. NULL:
 * 0. */
int32_t cnr_energy_long_enough(cnr_energy_region *region);
/* Ends the region and frees it in every case. out: the result, freed by cnr_energy_free; its `size`
 * is set before the call; NULL: no result. rounds: how often the work was repeated; below 1 means
 * once. */
cnr_status cnr_energy_end(cnr_energy_region *region, int64_t rounds, cnr_energy *out,
                          cnr_error *err);
/* Does `work` as often as it takes to be long enough. Its error is the result's. */
typedef cnr_status (*cnr_work_fn)(void *arg, cnr_error *err);
cnr_status cnr_energy_of(cnr_runtime *rt, cnr_work_fn work, void *arg,
                         const cnr_energy_options *options, const cnr_observer *observer,
                         cnr_energy *out, cnr_error *err);

/* ---- frequencies by a policy: a Lua file, evaluated every 0.1 s during other work, on a recording
 * or on a simulated machine. core/docs/governors.md says what it sees and may answer. ---- */

typedef struct cnr_govern_options {
    uint32_t size;
    int32_t keep_ticks; /* 1: the result has them */
    /* a file, or an installed one's name, with options: "fixed,at=lowest"; NULL: nothing is set,
     * only observed */
    const char *policy;
    /* a simulated machine and the work it does, as cnr_open_options.board takes them */
    const char *board, *scene;
    const char *replay; /* a recording: CSV */
    /* recordings to learn from, up to a NULL; NULL: the installed ones */
    const char *const *traces;
    const char *record, *note; /* CSV to be written, and the lines of its head */
    double seconds; /* at most; 0: 60 of a scene, all of a recording, live until stopped */
    /* seconds between ticks (0: 0.1); temperature in degrees C that is kept whatever a policy
     * wishes (0: none) */
    double period, limit;
    double late_after; /* of a played scene: passes that take longer are late; 0: none is */
    /* at_once: 1, cnr_govern_begin does not wait for the first pass in the runtime, since what runs
     * is elsewhere */
    int32_t at_once;
} cnr_govern_options;
typedef struct cnr_tick {
    uint32_t size;
    double seconds, hz, load, watts, temperature; /* of the knob that matters; NaN: not told */
} cnr_tick;
typedef struct cnr_governed {
    uint32_t size;
    int32_t off, advises; /* turned off after three faults; knobs could not be set: it was advice */
    int32_t n_ticks;
    const cnr_tick *ticks_at;
    int64_t runs, late, ticks, switches, faults;
    double seconds, joules, watts, fps; /* NaN: there is no meter, or no pass */
    /* of a pass: total seconds and joules by the number of passes; edp: their product */
    double run_seconds, run_joules, edp;
    double load, hz;                                     /* means over ticks, where they are kept */
    double switches_a_minute, cpu_seconds, longest_tick; /* the last two: of the policy's thread */
    /* shares of ticks that the limit held down, and of time that the simulated hardware throttled;
     * seconds of the longest pass */
    double limited_share, hot_share, longest_run;
    /* the knob that matters; what the policy last said; the first fault */
    char knob[64], why[80], fault[256];
    /* simulated: 1, by a scene, a board or a plugin's clock; no figure here was measured */
    int32_t simulated;
    /* feeds: the devices of that knob (`knob` may name several, with commas); devices: those that
     * passes ran on */
    char feeds[64], devices[64];
    char hz_why[80]; /* why hz is NaN though there were ticks: none falls into what ran; or "" */
} cnr_governed;
void cnr_governed_free(cnr_governed *governed);
/* Plays, replays, or governs this machine until then. out may be NULL. */
cnr_status cnr_govern(cnr_runtime *rt, const cnr_govern_options *options,
                      const cnr_observer *observer, cnr_governed *out, cnr_error *err);
/* Beside what runs in rt: begun before, ended (and freed, all put back) after. One at a time. */
typedef struct cnr_governing cnr_governing;
cnr_status cnr_govern_begin(cnr_runtime *rt, const cnr_govern_options *options, cnr_governing **out,
                            cnr_error *err);
cnr_status cnr_govern_end(cnr_governing *governing, cnr_governed *out, cnr_error *err);
/* Puts back what a process that was killed had set; cnr_open does so, too. *brought: how many
 * knobs. */
cnr_status cnr_knobs_restore(cnr_runtime *rt, int32_t *brought, cnr_error *err);

CNR_END_EXPORTS
#endif
