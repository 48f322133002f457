/* Online tuning: the first runs of a net measure kernels, devices and placements, and the cheapest
 * configuration is kept. Shared by adapt*.c.
 *
 *   way      a configuration to run the net in: kernels by name, devices, or a policy's placement
 *   trial    a run of a way other than the default; cancelled after `stop` times the default's time
 *   round    a way in which many nodes try another kernel at once; each node is timed by itself
 *   contest  whole runs of the best ways and of the default in turns; their costs decide */
#ifndef CNRI_ADAPT_H
#define CNRI_ADAPT_H

#include "profile/profile.h"
#include "watch/watch.h"
#include "work/work.h"

/* Parameters, from the placement policy's table `adapt`; adapt_kept.c has names and defaults. */
typedef struct cnri_adapt_rules {
    double stop;  /* a trial is cancelled after this multiple of the default's time */
    double worth; /* a way is not run if its rehearsal takes this multiple of the best way's time */
    /* a kernel is not tried if its estimate is this multiple of the node's default time */
    double unlikely;
    double margin;  /* fraction of the default's cost that another choice must save */
    double change;  /* fraction by which a run's time must change to measure again */
    double repeats; /* runs of each trial */
    double contest; /* runs of each way in the contest */
    double window;  /* number of later runs that are compared with the decision */
} cnri_adapt_rules;

/* Measurements of a way. They outlive its plan and, in the record, the process. */
typedef struct cnri_adapt_runs {
    bool rehearsed, judged;    /* judged: the rehearsal was so slow that no run follows */
    bool stopped, failed;      /* cancelled as too slow; failed, or answers were wrong */
    int32_t stopped_at;        /* if `stopped`: index of the step at which it was cancelled */
    CNRI_VEC(double) ns, cost; /* by run, with timed steps; cost: EDP in J s, or ns */
    CNRI_VEC(double) raced_ns, raced_cost; /* by run, without timed steps (contest) */
    CNRI_VEC(cnri_step_time) steps;        /* from the closed profile: the run, then its steps */
} cnri_adapt_runs;

/* Stored measurements of the way with this index in `ways`, from an earlier process. */
typedef struct cnri_adapt_record {
    int32_t index;
    char name[96];
    cnri_adapt_runs runs;
} cnri_adapt_record;

/* A configuration (kernels, devices, placement) that is tried, with its plan, session and
 * measurements. */
typedef struct cnri_adapt_way {
    char name[96];
    CNRI_VEC(char *) kernels;        /* NODE@DEVICE=KERNEL, in addition to the model's own */
    CNRI_VEC(char *) devices;        /* empty: the model's own */
    char *placement;                 /* a placement policy's text, owned; NULL: none */
    CNRI_VEC(cnri_placement) wishes; /* divided layers; the way owns names and parts */
    bool keeps_times;                /* step times of the rehearsal are kept, and no run follows */
    const char **tries; /* in a round: by node, the kernel to try or NULL; NULL: no round */
    cnr_plan *plan;
    cnr_session *session; /* NULL: not opened */
    cnri_profile *profile;
    int32_t heard;  /* the session's listener that times steps; 0: none */
    bool warm;      /* the first run is over; only for the default */
    bool looked_up; /* the earlier process's records were searched for it */
    int32_t part;   /* number of splits that led to this round; 0: none */
    cnri_adapt_runs runs;
} cnri_adapt_way;

/* A kernel that a node may use instead of its default. */
typedef struct cnri_adapt_choice {
    const char *kernel;     /* interned name */
    double estimate_ns, ns; /* ns: least measured time; 0: not measured */
} cnri_adapt_choice;

/* A kernel step of the default plan: its node and the nodes fused into it. Texts are interned. */
typedef struct cnri_adapt_node {
    const char *name, *op, *device, *kernel;
    double ns; /* least time by default */
    CNRI_VEC(cnri_adapt_choice) choices;
} cnri_adapt_node;

/* What is measured now: default, kernels, devices, sets, contest; settled: nothing more. */
typedef enum cnri_adapt_phase {
    CNRI_ADAPT_DEFAULT,
    CNRI_ADAPT_KERNELS,
    CNRI_ADAPT_DEVICES,
    CNRI_ADAPT_SETS,
    CNRI_ADAPT_CONTEST,
    CNRI_ADAPT_SETTLED
} cnri_adapt_phase;

/* A decision, as it is stored between processes. */
typedef struct cnri_adapt_kept {
    char way[96], by[8];
    CNRI_VEC(char *) kernels, devices;
    char *placement;
    double default_ns, chosen_ns, default_cost, chosen_cost;
    int64_t runs, trials;    /* number of each until the decision */
    double window_ns;        /* median run time in the first full window; 0: not known yet */
    CNRI_VEC(double) window; /* ns of later runs */
} cnri_adapt_kept;

/* State of a model that adapts. */
typedef struct cnri_adapt {
    cnr_model *model;
    cnr_tensor *types;
    const cnr_tensor **list;
    int32_t n_inputs;
    cnri_plan_options original; /* the model's options before adaptation changed them */
    uint64_t version;           /* version of the options that adaptation last set */
    cnri_adapt_rules rules;
    char *path;                      /* file of the decision; NULL: it is not stored */
    char environment[33];            /* digest of machine and drivers in hexadecimal */
    cnri_sampler *sampler;           /* NULL: the machine has no energy meter */
    bool sampling;                   /* the energy sampler runs */
    CNRI_VEC(cnri_adapt_way *) ways; /* the first is the default */
    CNRI_VEC(cnri_adapt_node) nodes;
    cnri_map node_of;        /* name of a graph's node -> 1 + index into `nodes` */
    cnri_adapt_way *divided; /* one of `ways`, which measured divided layers; or NULL */
    cnri_adapt_phase phase;
    int32_t current, round, turn; /* turn: next of `others` */
    CNRI_VEC(int32_t) racing;     /* indices of the ways in the contest */
    CNRI_VEC(char *) others;      /* devices to try, other than the default's */
    double limit_ns;              /* time after which a trial is cancelled; 0: none */
    uint64_t begun_ns;            /* start of the current run */
    cnri_adapt_way *running;
    bool cut;                     /* the current run was cancelled */
    cnr_session *answered;        /* its outputs are the results of the last run; NULL: none */
    cnr_tensor *inputs, *answers; /* copies from a run of the default, to compare trials with */
    bool judges;                  /* `inputs` and `answers` are set */
    bool rests;                   /* plans and sessions are closed while weights change */
    bool relearns;                /* the next run starts measuring again */
    bool goes_on;                 /* continues the measurements of an earlier process */
    CNRI_VEC(cnri_adapt_record) records; /* measurements of that process */
    cnri_adapt_kept kept;
    cnr_adapt_report report;
    char trying[96], decided[96], reason[96];
} cnri_adapt;

/* ---- adapt_way.c ---- */
/* Adds an empty way, owned by a->ways; NULL: out of memory. The name is cut to 95 bytes. */
cnri_adapt_way *cnri_adapt_add_way(cnri_adapt *a, const char *name);
/* Closes and frees all ways. */
void cnri_adapt_free_ways(cnri_adapt *a);
/* Closes session, profile and plan; measurements stay. */
void cnri_adapt_close_way(cnri_adapt_way *w);
/* Combines the model's original options with those of the way. *options borrows texts from both and
 * uses the list *words; the caller frees *words and releases options->policy. */
cnr_status cnri_adapt_options(const cnri_adapt *a, const cnri_adapt_way *w, const char ***words,
                              cnri_plan_options *options, cnr_error *err);
/* Whether the way needs no more runs before the contest. */
bool cnri_adapt_is_tried(const cnri_adapt *a, const cnri_adapt_way *w);
/* Opens a way and rehearses it: runs it on the copied inputs, so that it is warm, and compares its
 * outputs with the default's. A way that fails or is cancelled is marked so; that is no error. */
cnr_status cnri_adapt_prepare(cnri_adapt *a, cnri_adapt_way *w, cnr_error *err);
/* Turns the timing of steps on or off. */
cnr_status cnri_adapt_listen(cnri_adapt *a, cnri_adapt_way *w, bool on, cnr_error *err);
/* Runs the way on `inputs`. If a trial is cancelled or fails, returns CNR_OK and sets a->answered
 * to NULL. */
cnr_status cnri_adapt_run_way(cnri_adapt *a, cnri_adapt_way *w, const cnr_tensor *const *inputs,
                              cnr_error *err);
/* Copies the inputs and outputs of the run that a->answered made. */
cnr_status cnri_adapt_keep_answers(cnri_adapt *a, const cnr_tensor *const *inputs, cnr_error *err);
/* Drops the answers with which ways are compared. */
void cnri_adapt_drop_answers(cnri_adapt *a);
/* Median of n numbers; NAN: n is 0. */
double cnri_adapt_median(const double *values, int32_t n);

/* ---- adapt_nodes.c ---- */
/* Collects the nodes of the default plan, their times and the kernels to try. */
cnr_status cnri_adapt_find_nodes(cnri_adapt *a, cnr_error *err);
/* Frees the list of nodes. */
void cnri_adapt_free_nodes(cnri_adapt *a);
/* Adds the next round of kernels; *out NULL: there is none. */
cnr_status cnri_adapt_next_round(cnri_adapt *a, cnri_adapt_way **out, cnr_error *err);
/* Takes the times of a finished round's steps as those of the kernels that it tried. After a
 * cancelled round, adds a round without the slow nodes; after a failed one, adds two, one for each
 * half of its nodes. */
cnr_status cnri_adapt_take_round(cnri_adapt *a, cnri_adapt_way *w, cnr_error *err);
/* Adds the way with the fastest kernel of each node; marks it failed if it would be the default. */
cnr_status cnri_adapt_best_kernels(cnri_adapt *a, cnr_error *err);

/* ---- adapt_sets.c ---- */
/* Lists the devices to try in a->others: those of the options or the policy, else suitable ones.
 * Empty if the default plan needs several devices. */
cnr_status cnri_adapt_find_devices(cnri_adapt *a, cnr_error *err);
/* Adds ways for sets of devices, planned by policies from the times of each device alone. */
cnr_status cnri_adapt_add_sets(cnri_adapt *a, cnr_error *err);

/* ---- adapt_kept.c ---- */
/* Sets a->rules from the installed policy and the model's own. */
void cnri_adapt_rules_of(cnri_adapt *a);
/* Sets a->path and a->environment (a digest) from the model's original options. Without a cache
 * folder neither is set, and that is no error. */
cnr_status cnri_adapt_find_path(cnri_adapt *a, cnr_error *err);
/* Reads the stored decision. *stale: the file is damaged or belongs to another environment. */
cnr_status cnri_adapt_load(cnri_adapt *a, bool *found, bool *stale, cnr_error *err);
/* Saves what was learned to the cache folder, if there is one. */
cnr_status cnri_adapt_save(const cnri_adapt *a, cnr_error *err);
/* Replaces the file a->path with a text, in the cache folder, which is made if need be. */
cnr_status cnri_adapt_write(const cnri_adapt *a, const cnri_text *text, cnr_error *err);
/* Parses two numbers with a space between them. False: it failed. */
bool cnri_adapt_take_two(const char *text, double *first, double *second);
/* Appends the line "KEY FIRST SECOND". */
void cnri_adapt_add_numbers(cnri_text *out, const char *key, double first, double second);
/* Frees the lists of a decision and zeroes it. */
void cnri_adapt_forget(cnri_adapt_kept *k);

/* ---- adapt_records.c: measurements before the decision, stored for the next process ---- */
/* Frees the lists of measured runs and zeroes the struct. */
void cnri_adapt_free_runs(cnri_adapt_runs *r);
/* Frees the records that an earlier process left; the list is empty then. */
void cnri_adapt_free_records(cnri_adapt *a);
/* Copies step times from a way's profile into its runs, before the profile is closed. */
void cnri_adapt_note_steps(cnri_adapt_way *w);
/* Gives the way's profile the step times of its record. */
void cnri_adapt_put_steps(cnri_adapt_way *w);
/* Takes over the stored measurements of the way; false: there are none. */
bool cnri_adapt_take_record(cnri_adapt *a, cnri_adapt_way *w);
/* Reads the records in a->path; *found: there are some for this environment. */
cnr_status cnri_adapt_load_records(cnri_adapt *a, bool *found, cnr_error *err);
/* Writes the records of all ways to a->path, so that a later process goes on; without a path:
 * nothing. */
cnr_status cnri_adapt_save_records(cnri_adapt *a, cnr_error *err);

#endif
