/* A simulated machine: units that compute, the rails that feed them, the clocks they follow, in a
 * time of its own.
 *
 *   board.c   the machine, out of the board's numbers     time.c    virtual time, who waits in it
 *   model.c   what a piece of work takes: seconds, watts  heat.c    temperature and throttling
 *   device.c  units as devices   kernel.c  one kernel for all operators
 *   meter.c   rails as meters    knob.c    clocks as knobs */
#ifndef SIM_H
#define SIM_H

#include <cnnrun/plugin.h>

extern const cnr_host *sim_host;

enum { SIM_NAME = 24, SIM_MOST_UNITS = 32, SIM_MOST_MEMBERS = 8 };

/* Work of one class of operators: the larger of arithmetic and memory counts. */
typedef struct sim_class {
    char op[64];      /* a pattern: "conv*", "*" */
    double flops;     /* a second, at the clock's fastest step; 0: no bound; below 0: not known */
    double bytes;     /* a second, at any step; 0: no bound */
    double activity;  /* of the dynamic power */
} sim_class;

typedef struct sim_step { double hz, volts; } sim_step;

typedef struct sim_clock {
    char name[SIM_NAME];
    sim_step *steps; /* rising */
    int32_t n, asked, cap; /* indices: what was set, what heat allows */
    uint64_t read_ns, read_busy; /* when the load was last asked for */
} sim_clock;

typedef struct sim_span { uint64_t from, to; double watts; } sim_span;

/* What a sensor sees. */
typedef struct sim_rail {
    char name[SIM_NAME];
    double idle, joules;  /* watts always there; joules of the spans that are folded */
    double per_byte;      /* joules for each byte that any unit moves: memory */
    sim_span *spans;      /* of the time that is not over yet */
    int32_t n, room;
} sim_rail;

typedef struct sim_unit {
    char name[SIM_NAME], title[96];
    int32_t cores, host;          /* host: the program's own memory is its memory */
    int32_t rail, clock;          /* indices; clock -1: it has none */
    sim_class *classes; int32_t n_classes;
    double launch;                /* seconds before a kernel begins */
    double latency;               /* until what is queued reaches it: not seen behind other work */
    double split_seconds, split_joules; /* a part of a layer costs that as well */
    double transfer_bytes, transfer_seconds; /* a second; for each; 0: free */
    double statics, dynamics;     /* watts while it works: at any step; at the fastest */
    int32_t members[SIM_MOST_MEMBERS], n_members; /* units that this one is made of */
    int32_t is_member;
    uint64_t free_at, busy_ns;
} sim_unit;

typedef struct sim_machine {
    struct sim_machine *older; /* of a board that was in force before */
    char digest[32];
    int32_t dry;
    sim_unit *units; int32_t n_units;
    sim_rail *rails; int32_t n_rails;
    sim_clock *clocks; int32_t n_clocks;
    uint64_t born, heat_at;
    double ambient, ohms, tau, limit, slack; /* heat: degrees, degrees a watt, seconds; limit 0: none */
    double degrees, heat_joules;
    uint64_t cap_at;
} sim_machine;

/* ---- board.c ---- */
/* The machine of the board in force; NULL: none is simulated. Made when it is first asked for. */
sim_machine *sim_machine_now(void);
void sim_machines_free(void);

/* ---- time.c ---- */
extern const cnr_clock sim_time;
uint64_t sim_now(void);
void sim_advance(uint64_t ns);  /* the caller's work has got there */
void sim_lock(void);            /* of machines: any thread reads meters */
void sim_unlock(void);

/* ---- model.c; locked ---- */
/* products: of the flops those of multiply-accumulates. */
typedef struct sim_work { const char *op; double flops, products, bytes; int32_t part; } sim_work;
/* The unit has no figures for such operators: the time is by those of its nearest class. */
int32_t sim_extrapolates(const sim_machine *m, int32_t unit, const sim_work *work);
double sim_hz(const sim_machine *m, const sim_unit *u, double *v2f); /* of the fastest: parts of 1 */
/* Queues the work behind `ready`; returns when it is done. */
uint64_t sim_work_on(sim_machine *m, int32_t unit, uint64_t ready, const sim_work *work);
uint64_t sim_move_on(sim_machine *m, int32_t unit, uint64_t ready, double bytes);
double sim_joules(sim_machine *m, const sim_rail *r, uint64_t at);
void sim_fold(sim_machine *m, uint64_t before); /* nobody asks about earlier times again */

/* ---- heat.c; locked ---- */
void sim_heat(sim_machine *m, uint64_t at);

/* ---- device.c, kernel.c, meter.c, knob.c ---- */
extern const cnr_device_class sim_devices;
extern const cnr_kernel sim_kernel;
extern const cnr_meter sim_meter;
extern const cnr_knob sim_knob;
typedef struct sim_stream { uint64_t ready; } sim_stream;
static inline sim_machine *sim_of(const cnr_device *d) { return d->state; }

#endif
