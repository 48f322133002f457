/* A simulated machine: units that compute, the rails that feed them, the clocks they follow, in a
 * time of its own.
 *
 *   board.c   the machine, out of the board's numbers     time.c    virtual time, who waits in it
 *   model.c   what a piece of work takes: seconds, watts  heat.c    temperature and throttling
 *   device.c  units as devices   kernel.c  one kernel for all operators
 *   meter.c   rails as meters    knob.c    clocks as knobs
 *   object.c  a machine by itself, for scripts and governors   scene.c   the loop of work that it plays */
#ifndef SIM_H
#define SIM_H

#include <cnnrun/plugin.h>

extern const cnr_host *sim_host;

enum { SIM_NAME = 24, SIM_MOST_UNITS = 32, SIM_MOST_MEMBERS = 8 };

/* Work of one class of operators takes the larger of the times for arithmetic and memory. */
typedef struct sim_class {
    char op[64];     /* a pattern: "conv*", "*" */
    double flops;    /* a second, at the clock's fastest step; 0: unbounded; below 0: unknown */
    double bytes;    /* a second, at any step; 0: unbounded */
    double activity; /* factor of the dynamic power */
} sim_class;

/* A step of a clock. */
typedef struct sim_step {
    double hz, volts;
} sim_step;

/* A clock of the machine. */
typedef struct sim_clock {
    char name[SIM_NAME];
    sim_step *steps;             /* n steps, with rising Hz */
    int32_t n, asked, cap;       /* indices: the step that was set, the thermal cap */
    uint64_t read_ns, read_busy; /* time and busy time at the last reading of the load */
    /* for scenes: the name of what it feeds; fraction of dynamic power drawn while idle; busy
     * seconds since the last look */
    char feeds[64];
    double idle, busy;
} sim_clock;

/* A phase of a scene: seconds independent of clocks, then cycles of `clock` or of `bus`, whichever
 * takes longer. */
typedef struct sim_phase {
    int32_t clock, bus; /* indices of the clocks of cores and bus; -1: none */
    int32_t ends_pass;
    double seconds, cycles, bus_cycles, activity;
    double idle; /* like a clock's; below 0: use the clock's */
    double pace; /* waits until this many seconds after the pass began; 0: no wait */
} sim_phase;

/* The loop of phases and its current position. */
typedef struct sim_scene {
    sim_phase *phases;
    int32_t n, phase, stage;
    uint64_t wait, begun; /* wait: nanoseconds left of the stage; begun: start of the pass */
    double left;          /* fraction of the phase's work that is left */
    double vary, scale;   /* each loop's work varies by up to this fraction */
    uint64_t dice;
    double held;  /* seconds in which the thermal cap held clocks down */
    double *ends; /* finished passes: begin, end, joules until the end */
    int32_t n_ends;
} sim_scene;

/* A time in which a rail draws more power. */
typedef struct sim_span {
    uint64_t from, to;
    double watts;
} sim_span;

/* What a power sensor measures. */
typedef struct sim_rail {
    char name[SIM_NAME];
    double idle, joules; /* idle watts; joules of spans that were folded */
    double per_byte;     /* joules for each byte that any unit moves: memory */
    sim_span *spans;     /* spans that have not ended yet */
    int32_t n, room;
} sim_rail;

/* A unit that computes. */
typedef struct sim_unit {
    char name[SIM_NAME], title[96];
    int32_t cores, host; /* host: its memory is the program's */
    int32_t rail, clock; /* indices; clock -1: none */
    sim_class *classes;
    int32_t n_classes;
    double launch;  /* seconds before a kernel starts */
    double latency; /* seconds until queued work reaches the unit; hidden behind other work */
    double split_seconds, split_joules;      /* additional cost of a part of a layer */
    double transfer_bytes, transfer_seconds; /* bytes a second; seconds for each; 0: free */
    double statics, dynamics;                /* watts while busy: at any step; at the fastest */
    int32_t members[SIM_MOST_MEMBERS], n_members; /* indices of the units it is made of */
    int32_t is_member;
    uint64_t free_at, busy_ns;
} sim_unit;

/* A simulated machine. */
typedef struct sim_machine {
    struct sim_machine *older; /* of a board that was in force before */
    char digest[32];
    int32_t dry, failed; /* failed: out of memory while it was built */
    sim_unit *units;
    int32_t n_units;
    sim_rail *rails;
    int32_t n_rails;
    sim_clock *clocks;
    int32_t n_clocks;
    uint64_t born, heat_at;
    double ambient, ohms, tau, limit,
        slack; /* heat: degrees, degrees a watt, seconds; limit 0: none */
    double degrees, heat_joules;
    double contention,
        jitter; /* work's seconds: more for each other unit at work; drawn more or less */
    uint64_t dice;
    uint64_t cap_at;
    uint64_t now; /* virtual time of a machine of its own */
    sim_scene scene;
} sim_machine;

/* Step at which a clock runs: the one asked for, or what heat allows. */
static inline const sim_step *sim_step_of(const sim_clock *c) {
    return &c->steps[c->asked < c->cap ? c->asked : c->cap];
}

/* ---- board.c ---- */
/* The machine of the board in force, built at the first call; NULL: none is simulated. */
sim_machine *sim_machine_now(void);
/* Frees all machines, those of earlier boards too. */
void sim_machines_free(void);
/* Builds a machine of its own, without devices, meters and knobs, from lines "units.1.name=gpu"; a
 * list's own line is its length. */
cnr_status sim_machine_of(const char *text, sim_machine **out, cnr_error *err);
void sim_machine_free(sim_machine *m); /* frees m with its lists */
/* A number of the board while a machine is built. i 0: the path is list.key; from 1: list.i.key. */
double sim_number(const char *list, int32_t i, const char *key, double otherwise);
/* The text `key` of entry i of a list of the board; "": missing. */
const char *sim_text(const char *list, int32_t i, const char *key);
/* Number of entries of a list of the board; 0: no list. */
int32_t sim_count(const char *list);

/* ---- time.c ---- */
extern const cnr_clock sim_time;
/* Simulated time in ns, since the program began. */
uint64_t sim_now(void);
/* Moves the simulated time to ns, which the caller's work has reached. */
void sim_advance(uint64_t ns);
/* Locks the machines, which any thread may read. */
void sim_lock(void);
/* Unlocks the machines. */
void sim_unlock(void);

/* ---- model.c; locked ---- */
/* products: the flops that are multiply-accumulates. */
typedef struct sim_work {
    const char *op;
    double flops, products, bytes;
    int32_t part;
} sim_work;
/* True if the unit has no figures for the work's operator and uses those of the nearest class. */
int32_t sim_extrapolates(const sim_machine *m, int32_t unit, const sim_work *work);
/* The unit's clock as a part of its highest; *v2f receives V^2 f likewise; both 1 without a clock.
 */
double sim_hz(const sim_machine *m, const sim_unit *u, double *v2f);
/* Queues the work on a unit after `ready` (ns), with power and heat; returns its end in ns. */
uint64_t sim_work_on(sim_machine *m, int32_t unit, uint64_t ready, const sim_work *work);
/* Lets a unit move bytes from `ready` on; returns when it is done (ns) */
uint64_t sim_move_on(sim_machine *m, int32_t unit, uint64_t ready, double bytes);
/* Cost of the work alone, without queues: seconds, joules above idle. */
void sim_takes(const sim_machine *m, int32_t unit, const sim_work *work, double *seconds,
               double *joules);
/* Joules of a rail up to a time in ns, idle power included. */
double sim_joules(const sim_machine *m, const sim_rail *r, uint64_t at);
/* Joules of all rails up to a time. */
double sim_all_joules(const sim_machine *m, uint64_t at);
/* Adds what was drawn before a time to the joules; earlier times will not be asked for again. */
void sim_fold(sim_machine *m, uint64_t before);

/* ---- heat.c; locked ---- */
#define SIM_CAP_EVERY_NS UINT64_C(100000000)
/* Heats or cools the machine up to a time, and caps its clocks. */
void sim_heat(sim_machine *m, uint64_t at);

/* ---- scene.c ---- */
/* Reads "scene" of the board: its clocks' power figures, and phases. A board may have none. */
cnr_status sim_scene_read(sim_machine *m, cnr_error *err);
/* Plays the machine's scene for some simulated seconds. CNR_E_NOT_FOUND: it has none. */
cnr_status sim_scene_pass(sim_machine *m, double seconds, cnr_error *err);

/* ---- device.c, kernel.c, meter.c, knob.c, object.c ---- */
extern const cnr_device_class sim_devices;
extern const cnr_kernel sim_kernel;
extern const cnr_meter sim_meter;
extern const cnr_knob sim_knob;
extern const cnr_object sim_object;
void sim_set(sim_clock *c, uint64_t hz); /* selects the highest step not above hz */
/* When a queue's work is done (ns) */
typedef struct sim_stream {
    uint64_t ready;
} sim_stream;
static inline sim_machine *sim_of(const cnr_device *d) { return d->state; }

#endif
