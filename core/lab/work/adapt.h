/* Choices that make themselves, while they are made: shared by adapt*.c.
 *
 *   way      one manner of running the net: kernels by name, devices, or a policy's placement
 *   trial    a run of a way that is not the default; it is cut short past `stop` times the default
 *   round    one way in which many nodes try another kernel at once: each node is timed by itself
 *   contest  whole passes of the best ways and of the default in turns, which decides */
#ifndef CNRI_ADAPT_H
#define CNRI_ADAPT_H

#include "profile/profile.h"
#include "watch/watch.h"
#include "work/work.h"

/* Numbers of the placement policy's table `adapt`; adapt_kept.c has their names and defaults. */
typedef struct cnri_adapt_rules {
    double stop;     /* times the default after which a trial is cut short */
    double worth;    /* a rehearsal that takes so many times the default is all that is tried */
    double unlikely; /* a candidate is not tried if its estimate is so many times the default's */
    double margin;   /* part of the default's cost that another choice has to save */
    double change;   /* part of its time by which a run has to change to be learnt anew */
    double repeats;  /* runs of each trial */
    double contest;  /* whole passes of each way that reaches the contest */
    double window;   /* runs that are compared with what was learnt */
} cnri_adapt_rules;

/* What runs of a way have measured, which outlives its plan and the process. */
typedef struct cnri_adapt_runs {
    bool rehearsed, judged;                /* judged: its rehearsal told enough: no run follows */
    bool stopped, failed;                  /* cut short, or wrong */
    int32_t stopped_at;                    /* the step, if `stopped` */
    CNRI_VEC(double) ns, cost;             /* of whole runs with step times; cost: EDP, or ns */
    CNRI_VEC(double) raced_ns, raced_cost; /* of those without: the contest's */
    CNRI_VEC(cnri_step_time) steps;        /* as a profile that was closed had them */
} cnri_adapt_runs;

/* Runs of the way that was added as the `index`th, kept between starts. */
typedef struct cnri_adapt_record {
    int32_t index;
    char name[96];
    cnri_adapt_runs runs;
} cnri_adapt_record;

typedef struct cnri_adapt_way {
    char name[96];
    CNRI_VEC(char *) kernels;        /* NODE@DEVICE=KERNEL, besides the model's own */
    CNRI_VEC(char *) devices;        /* instead of the model's; empty: those */
    char *placement;                 /* a policy's text; NULL: none */
    CNRI_VEC(cnri_placement) wishes; /* layers that are divided; names and parts are its own */
    bool keeps_times;                /* of the rehearsal */
    const char **tries; /* by node: the kernel that it tries, or NULL; NULL: no round */
    cnr_plan *plan;
    cnr_session *session; /* NULL: not opened */
    cnri_profile *profile;
    int32_t heard;
    bool warm;      /* the default's first run is over */
    bool looked_up; /* its record of earlier starts was taken over, if there was one */
    int32_t part;   /* of a round that was cut short: how often */
    cnri_adapt_runs runs;
} cnri_adapt_way;

typedef struct cnri_adapt_choice {
    const char *kernel;     /* interned */
    double estimate_ns, ns; /* ns: least time that was measured; 0: none */
} cnri_adapt_choice;

/* A step of the default plan: a node and what is computed along with it. Texts are interned. */
typedef struct cnri_adapt_node {
    const char *name, *op, *device, *kernel;
    double ns;
    CNRI_VEC(cnri_adapt_choice) choices;
} cnri_adapt_node;

typedef enum cnri_adapt_phase {
    CNRI_ADAPT_DEFAULT,
    CNRI_ADAPT_KERNELS,
    CNRI_ADAPT_DEVICES,
    CNRI_ADAPT_SETS,
    CNRI_ADAPT_CONTEST,
    CNRI_ADAPT_SETTLED
} cnri_adapt_phase;

/* What is kept of a decision between starts. */
typedef struct cnri_adapt_kept {
    char way[96], by[8];
    CNRI_VEC(char *) kernels, devices;
    char *placement;
    double default_ns, chosen_ns, default_cost, chosen_cost;
    int64_t runs, trials;    /* until it was settled */
    double window_ns;        /* median of the first full window; 0: not known yet */
    CNRI_VEC(double) window; /* ns of the runs since */
} cnri_adapt_kept;

typedef struct cnri_adapt {
    cnr_model *model;
    cnr_tensor *types;
    const cnr_tensor **list;
    int32_t n_inputs;
    cnri_plan_options original; /* the model's, before anything was learnt */
    uint64_t version;           /* of the model's options, as this left them */
    cnri_adapt_rules rules;
    char *path; /* where the decision is kept; NULL: nowhere */
    char environment[33];
    cnri_sampler *sampler;           /* NULL: there is no meter */
    bool sampling;                   /* it reads them now */
    CNRI_VEC(cnri_adapt_way *) ways; /* the first is the default */
    CNRI_VEC(cnri_adapt_node) nodes;
    cnri_map node_of;        /* name of a graph's node -> 1 + index of `nodes` */
    cnri_adapt_way *divided; /* one of `ways`: the run that told what divisions cost; or NULL */
    cnri_adapt_phase phase;
    int32_t current, round, turn; /* turn: of the contest */
    CNRI_VEC(int32_t) racing;     /* ways in the contest */
    CNRI_VEC(char *) others;      /* devices besides the default's */
    double limit_ns;              /* after which a trial is cut short */
    uint64_t begun_ns;
    cnri_adapt_way *running;
    bool cut;
    cnr_session *answered; /* its outputs are the last answer */
    cnr_tensor *inputs,
        *answers;  /* copies of the last run by default, which trials are judged by */
    bool judges;   /* those are there */
    bool rests;    /* plans and sessions are closed: weights change */
    bool relearns; /* from the next run on: what was learnt is out of date */
    bool goes_on;  /* after an earlier start, which ended while it learnt */
    CNRI_VEC(cnri_adapt_record) records; /* of that start */
    cnri_adapt_kept kept;
    cnr_adapt_report report;
    char trying[96], decided[96], reason[96];
} cnri_adapt;

/* ---- adapt_way.c ---- */
cnri_adapt_way *cnri_adapt_add_way(cnri_adapt *a, const char *name);
void cnri_adapt_free_ways(cnri_adapt *a);
void cnri_adapt_close_way(cnri_adapt_way *w);
/* The model's options with those of the way. Texts stay the model's, the way's and the caller's
 * `words`, which is to be freed; options->policy is to be released. */
cnr_status cnri_adapt_options(const cnri_adapt *a, const cnri_adapt_way *w, const char ***words,
                              cnri_plan_options *options, cnr_error *err);
/* Whether its trial is over, but for the contest. */
bool cnri_adapt_is_tried(const cnri_adapt *a, const cnri_adapt_way *w);
/* Opens a way and runs it once on the copy of the last inputs, so that it is warm and its answers
 * are known to be the default's. What fails or is cut short is marked so, which is no error. */
cnr_status cnri_adapt_prepare(cnri_adapt *a, cnri_adapt_way *w, cnr_error *err);
/* Whether steps are timed from now on. */
cnr_status cnri_adapt_listen(cnri_adapt *a, cnri_adapt_way *w, bool on, cnr_error *err);
/* One run on `inputs`. A trial that is cut short or fails leaves CNR_OK and a->answered NULL. */
cnr_status cnri_adapt_run_way(cnri_adapt *a, cnri_adapt_way *w, const cnr_tensor *const *inputs,
                              cnr_error *err);
/* Copies the inputs and answers of a run by default. */
cnr_status cnri_adapt_keep_answers(cnri_adapt *a, const cnr_tensor *const *inputs, cnr_error *err);
void cnri_adapt_drop_answers(cnri_adapt *a);
double cnri_adapt_median(const double *values, int32_t n);

/* ---- adapt_nodes.c ---- */
/* Nodes of the default plan with their times, and the candidates that are worth a trial. */
cnr_status cnri_adapt_find_nodes(cnri_adapt *a, cnr_error *err);
void cnri_adapt_free_nodes(cnri_adapt *a);
/* The next round of kernels; *out NULL: there is none. */
cnr_status cnri_adapt_next_round(cnri_adapt *a, cnri_adapt_way **out, cnr_error *err);
/* Times of a round's steps become those of its candidates. Of one that was cut short what did not
 * make it slow becomes a round of its own; of one that failed the halves do. */
cnr_status cnri_adapt_take_round(cnri_adapt *a, cnri_adapt_way *w, cnr_error *err);
/* The way with the fastest kernel of each node; *out NULL: that is the default. */
cnr_status cnri_adapt_best_kernels(cnri_adapt *a, cnri_adapt_way **out, cnr_error *err);

/* ---- adapt_sets.c ---- */
/* The devices to be tried: what the options or the policy list, else those that `place` takes. */
cnr_status cnri_adapt_find_devices(cnri_adapt *a, cnr_error *err);
/* Ways of sets of devices, by the placement policy, from the times of each device alone. */
cnr_status cnri_adapt_add_sets(cnri_adapt *a, cnr_error *err);

/* ---- adapt_kept.c ---- */
void cnri_adapt_rules_of(cnri_adapt *a);
/* The file and the environment's digest, by the model's original options. */
cnr_status cnri_adapt_find_path(cnri_adapt *a, cnr_error *err);
/* *stale: something is kept, for another environment. */
cnr_status cnri_adapt_load(cnri_adapt *a, bool *found, bool *stale, cnr_error *err);
cnr_status cnri_adapt_save(const cnri_adapt *a, cnr_error *err);
cnr_status cnri_adapt_write(const cnri_adapt *a, const cnri_text *text, cnr_error *err);
bool cnri_adapt_take_two(const char *text, double *first, double *second);
void cnri_adapt_add_numbers(cnri_text *out, const char *key, double first, double second);
void cnri_adapt_forget(cnri_adapt_kept *k);

/* ---- adapt_records.c: what was measured before it was settled, for the next start ---- */
void cnri_adapt_free_runs(cnri_adapt_runs *r);
void cnri_adapt_free_records(cnri_adapt *a);
/* The times of a profile, before it is closed; and back into one of the same plan. */
void cnri_adapt_note_steps(cnri_adapt_way *w);
void cnri_adapt_put_steps(cnri_adapt_way *w);
/* Takes over what an earlier start measured of the way; false: it measured nothing. */
bool cnri_adapt_take_record(cnri_adapt *a, cnri_adapt_way *w);
/* Reads the records of a->path; *found: there are some, of this environment. */
cnr_status cnri_adapt_load_records(cnri_adapt *a, bool *found, cnr_error *err);
/* Writes those of all ways. */
cnr_status cnri_adapt_save_records(cnri_adapt *a, cnr_error *err);

#endif
