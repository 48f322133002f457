/* Energy, meters, knobs and frequency policies; progress and cancellation of long work. */
#pragma once

#include <cnnrun/engine.h>

CNR_BEGIN_EXPORTS

/* ---- long work: each function takes options, an observer (may be NULL) and a result. Options that
 * are 0 or NULL take their defaults. The cnr_..._free function of a result frees the memory that it
 * owns. ---- */

/* Progress report of long work, for a callback; borrowed during the call. */
typedef struct cnr_progress {
    uint32_t size;
    const char *what;    /* name of the activity: "evaluating" */
    int64_t done, total; /* number of steps; total 0: unknown */
    int64_t epoch;       /* epoch of training, from 1; 0: no training */
    double top1, loss;   /* accuracy (0 to 1) and loss so far; NaN: none */
} cnr_progress;

/* Watches work, and can stop it. */
typedef struct cnr_observer {
    uint32_t size;
    void *arg;
    /* (optional) Called from time to time on the caller's thread. A non-zero result stops the
     * work. */
    int32_t (*progress)(void *arg, const cnr_progress *progress);
    /* (optional) Called when a part of the work is finished. `of` is the struct that belongs to
     * kind, a CNR_EVENT_... value. A non-zero result stops the work. */
    int32_t (*event)(void *arg, int32_t kind, const void *of);
    /* (optional) While *cancel is not 0, the work stops, even in the middle of a run. Any thread or
     * a signal handler may set it. */
    const volatile int32_t *cancel;
} cnr_observer;

/* ---- meters and knobs: present readings, which are of the whole machine ---- */

/* A domain of a meter or knob, as read now. */
typedef struct cnr_gauge {
    uint32_t size;
    /* For a meter: 1 energy (uJ), 2 power (uW), 3 temperature (thousandths of a degree C). For a
     * knob: 0. */
    int32_t quantity;
    const char *plugin; /* name of the meter or knob */
    /* name: the domain; feeds: the device that it supplies or clocks ("": unknown) */
    char name[64], feeds[64];
    /* status not 0: the read failed, `why` has the reason; period_ms: as in cnr_meter_domain */
    int32_t estimated, period_ms, status;
    int64_t value; /* the meter's reading, in the unit of `quantity` */
    uint64_t time_ns;
    uint64_t hz, min_hz, max_hz; /* of a knob, as are the next four fields */
    /* -1 (temperature_mc: INT32_MIN): unknown */
    int32_t writable, load_percent, cores, max_cores, temperature_mc;
    char why[128];
} cnr_gauge;
/* Domains of all meters and knobs. */
typedef struct cnr_gauge_list {
    uint32_t size;
    int32_t n;
    cnr_gauge *at;
} cnr_gauge_list;
/* Reads all meters and knobs. root: folder below which /sys is looked for; NULL: the runtime's.
 * address: a sensor that is not a file below root; NULL: none. */
cnr_status cnr_gauges(cnr_runtime *rt, const char *root, const char *address, cnr_gauge_list *out,
                      cnr_error *err);
/* Frees what cnr_gauges put into the list, and empties it; the struct stays the caller's. NULL:
 * nothing. */
void cnr_gauges_free(cnr_gauge_list *list);

/* ---- energy: consumption of meter domains during a region of work. Readings are of the whole
 * machine, so nothing else should run. Unknown values are NaN, never 0. ---- */

/* Energy that one sensor saw in the region: joules, watts, samples, and why it is not measured. */
typedef struct cnr_energy_domain {
    uint32_t size;
    int32_t quantity; /* 1: difference of an energy counter; 2: integral of power */
    const char *meter;
    char name[64], feeds[64]; /* as in cnr_gauge */
    int32_t estimated, period_ms;
    /* 1 + index of the domain in this list whose energy includes this one's; 0: none */
    int32_t within;
    int32_t summed; /* 1: included in the sums of cnr_energy */
    int32_t status; /* not 0: unmeasured, and `why` has the reason */
    /* per round; joules_net: above idle power; edp: joules * seconds */
    double joules, joules_net, watts, edp;
    /* idle power before the region: mean and standard deviation */
    double idle_watts, idle_spread;
    int64_t samples; /* number of readings in all rounds */
    char why[128];   /* with status 0: why joules_net and idle_watts are NaN; "": they are known */
} cnr_energy_domain;
enum {
    CNR_ENERGY_UNMEASURED = 0,
    CNR_ENERGY_MEASURED = 1,
    CNR_ENERGY_ESTIMATED = 2,
    /* a plugin's clock is in force: joules and seconds are of a simulated machine */
    CNR_ENERGY_SIMULATED = 3
};
/* Energy of a region, over all summed domains. Free with cnr_energy_free. */
typedef struct cnr_energy {
    uint32_t size;
    /* CNR_ENERGY_..., origin of the sums. Measured and estimated domains are never summed
     * together. */
    int32_t source;
    /* n: number of domains (0: there is no meter); unmeasured: domains among them without a
     * result. */
    int32_t n, unmeasured;
    int64_t rounds, samples; /* samples: readings in all rounds; all other numbers are per round */
    double seconds, joules, joules_net, watts, idle_watts, edp; /* edp: joules * seconds */
    double sampler_share; /* processor time that sampling took, as a share of one processor */
    cnr_energy_domain *at;
    /* Why the sums are unknown although domains are known ("no meter feeds cpu"), or why joules_net
     * is (the idle power was measured under load). Else "". */
    char why[80];
    /* Domains that are missing from the sums, since they could not be read from the start on. A
     * domain that fails later makes all sums unmeasured. */
    char missing[80];
} cnr_energy;
/* Frees the domains; the struct is the caller's. NULL: nothing. */
void cnr_energy_free(cnr_energy *energy);
/* How energy is measured. */
typedef struct cnr_energy_options {
    uint32_t size;
    /* 1: do not measure idle power (default: once per runtime, for about a second) */
    int32_t no_idle;
    int64_t rounds;    /* minimal number of rounds of cnr_energy_of (0: 1) */
    double idle_watts; /* idle power of all summed domains, if the caller knows it; 0: unknown */
    /* 1: also measure idle power after the region. If it is lower, the machine was not idle
     * before. */
    int32_t idle_behind;
} cnr_energy_options;
/* A running measurement. Several may be open; any thread may end one. */
typedef struct cnr_energy_region cnr_energy_region;
/* Begins to measure. cnr_energy_end ends and frees *out. */
cnr_status cnr_energy_begin(cnr_runtime *rt, const cnr_energy_options *options,
                            const cnr_observer *observer, cnr_energy_region **out, cnr_error *err);
/* Returns 1 if the region has lasted at least 20 periods of the slowest sensor; shorter ones are
 * inaccurate. region NULL: 0. */
int32_t cnr_energy_long_enough(cnr_energy_region *region);
/* Ends the region and always frees it. out (may be NULL): receives the result, which
 * cnr_energy_free frees; its `size` must be set before the call. rounds: number of repetitions of
 * the work; values below 1 count as 1. */
cnr_status cnr_energy_end(cnr_energy_region *region, int64_t rounds, cnr_energy *out,
                          cnr_error *err);
/* Measures the energy of work(arg), repeated until the region is long enough. If `work` fails, its
 * status is returned. Free *out's members with cnr_energy_free. */
cnr_status cnr_energy_of(cnr_runtime *rt, cnr_status (*work)(void *arg, cnr_error *err), void *arg,
                         const cnr_energy_options *options, const cnr_observer *observer,
                         cnr_energy *out, cnr_error *err);

/* ---- frequency policies: a Lua file, evaluated every 0.1 s during other work, on a recording or
 * on a simulated machine. core/docs/governors.md describes its inputs and answers. ---- */

/* How frequencies are governed. */
typedef struct cnr_govern_options {
    uint32_t size;
    int32_t keep_ticks; /* 1: the result contains all ticks */
    /* File, or name of an installed policy, with options: "fixed,at=lowest". NULL: only observe,
     * set nothing. */
    const char *policy;
    /* Simulated machine and its work (scene), in the syntax of cnr_open_options.board. */
    const char *board, *scene;
    const char *replay; /* recording to replay, a CSV file */
    /* Recordings that a policy may learn from, NULL-terminated. NULL: the installed ones. */
    const char *const *traces;
    const char *record, *note; /* record: CSV file to write; note: lines for its head */
    double seconds; /* max. duration; 0: 60 for a scene, all of a recording, live: until stopped */
    /* period: seconds between ticks (0: 0.1). limit: temperature in degrees C that is enforced
     * whatever the policy requests (0: none). */
    double period, limit;
    double late_after; /* scenes: passes that take more seconds are late; 0: no pass is late */
    /* 1: cnr_govern_begin does not wait for the runtime's first pass, since the work runs
     * elsewhere. */
    int32_t at_once;
} cnr_govern_options;
/* State of the principal knob at one tick of the governor: seconds, Hz, watts, degrees Celsius;
 * NaN: unknown. */
typedef struct cnr_tick {
    uint32_t size;
    /* values of the principal knob; temperature in degrees C; NaN: unknown */
    double seconds, hz, load, watts, temperature;
} cnr_tick;
/* Result of governing: runs, ticks, joules and clock changes. Free with cnr_governed_free. */
typedef struct cnr_governed {
    uint32_t size;
    /* off 1: turned off after three faults; advises 1: knobs could not be set, so answers were
     * advice only */
    int32_t off, advises;
    int32_t n_ticks;
    const cnr_tick *ticks_at;
    int64_t runs, late, ticks, switches, faults;
    double seconds, joules, watts, fps; /* NaN: there is no meter, or no pass */
    /* Per pass: total seconds and joules divided by the number of passes; edp: their product. */
    double run_seconds, run_joules, edp;
    /* means over ticks during the work, if keep_ticks is 1; else NaN */
    double load, hz;
    /* cpu_seconds, longest_tick: seconds of the policy's thread */
    double switches_a_minute, cpu_seconds, longest_tick;
    /* limited_share: ticks in which `limit` lowered the frequency, as a share. hot_share: time in
     * which the simulated hardware throttled, as a share. longest_run: seconds of the longest
     * pass. */
    double limited_share, hot_share, longest_run;
    /* knob: the principal knob; why: the policy's last explanation; fault: the first fault. */
    char knob[64], why[80], fault[256];
    /* 1: by a scene, a board or a plugin's clock; no figure here was measured. */
    int32_t simulated;
    /* feeds: devices of the principal knob, separated by commas; devices: those that passes ran
     * on. */
    char feeds[64], devices[64];
    char hz_why[80]; /* why hz is NaN although there were ticks, as none falls into a pass; or "" */
} cnr_governed;
/* Frees the ticks; the struct is the caller's. NULL: nothing. */
void cnr_governed_free(cnr_governed *governed);
/* Plays a scene, replays a recording, or governs this machine for the given seconds. out may be
 * NULL. */
cnr_status cnr_govern(cnr_runtime *rt, const cnr_govern_options *options,
                      const cnr_observer *observer, cnr_governed *out, cnr_error *err);
/* Governs while other work runs in rt. Begin before that work; cnr_govern_end restores all settings
 * and frees it. One at a time. */
typedef struct cnr_governing cnr_governing;
/* Governs frequencies of this machine beside other work. cnr_govern_end ends and frees *out. */
cnr_status cnr_govern_begin(cnr_runtime *rt, const cnr_govern_options *options, cnr_governing **out,
                            cnr_error *err);
/* Ends it and restores the clocks; out: may be NULL, else free it with cnr_governed_free. */
cnr_status cnr_govern_end(cnr_governing *governing, cnr_governed *out, cnr_error *err);

CNR_END_EXPORTS
