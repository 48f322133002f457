/* policy: all candidates of a net as a table, and plans by the answer of a placement policy. */
#ifndef CNRI_POLICY_H
#define CNRI_POLICY_H

#include "plan/plan.h"

/* Lets plans have tables, and follow policies. Any thread may call it, more than once. */
void cnri_policies_register(void);

/* ---- measure.c ---- */
/* Measures kernels 0 to n - 1 on `segment`, a net of one node and its chain, and fills `costs`;
 * ns <= 0: the kernel refuses it. */
typedef cnr_status (*cnri_time_fn)(void *arg, const cnr_graph *segment, const char *device,
                                   const char *const *kernels, int32_t n, cnri_cost *costs,
                                   cnr_error *err);
/* The argument of cnri_measure_missing, in cnri_tuning.arg. */
typedef struct cnri_measuring {
    cnri_time_fn time;
    void *arg;
} cnri_measuring;
/* For cnri_tuning.measure: makes a small net of the chain, and has its kernels timed in that. */
cnr_status cnri_measure_missing(struct cnri_planner *p, const struct cnri_chain *chain,
                                int32_t device, const char *kernel, const char *key,
                                cnr_error *err);

/* All candidates of a net as it is planned, a row each. A policy sees nothing else, so a plan's
 * identity covers all that it decides by: record, estimates, guesses, constants. */
typedef struct cnri_table_row {
    /* Takes: number of nodes that it computes; score 0: the reference. */
    int32_t node, device, takes, score;
    const char *kernel, *layout_in, *layout_out, *encodings;
    /* of the nodes that it computes, together; ns is always set, if only by a guess */
    cnri_cost cost;
    double guess; /* ns, guessed from arithmetic and bytes alone */
    /* Bytes of inputs, weights and outputs; a multiply-accumulate counts as two flops. */
    uint64_t bytes, flops;
    bool splits;       /* the kernel can compute a range of the output */
    bool extrapolated; /* its time is simulated from figures for another class of operators */
    const char *by;    /* name of the rule that picked it; NULL: not picked */
    double share;      /* part of the node that it computes, if it was picked */
} cnri_table_row;
/* A node in the table: its rows first .. first + n_rows, inputs, sizes in bytes, and how it may be
 * split. */
typedef struct cnri_table_node {
    const char *name, *op;
    int32_t first, n_rows;
    const int32_t *inputs;
    int32_t n_inputs; /* nodes that compute the inputs; -1: no node does */
    uint64_t out_bytes, flops;
    uint32_t axes; /* bits of the axes along which it can be split */
    /* Most parts along the default axis (cnri_default_axis); 1: it can't be split. */
    int64_t pieces;
    const char *wished; /* the device where it was placed by hand; NULL: none */
    const char *forced; /* the kernel that the options force; NULL: none */
    const char *with;   /* the node that it is computed together with; NULL: none */
} cnri_table_node;
/* A device in the table: name, class, cores, watts at idle and busy, and clock in MHz. */
typedef struct cnri_table_device {
    const char *name, *cls;
    bool host, wanted; /* wanted: a policy sees its rows */
    int32_t units;
    double idle_watts, busy_watts, mhz; /* as measured; 0: not known */
} cnri_table_device;
/* Time of transfers between two devices of the table. */
typedef struct cnri_table_link {
    int32_t from, to; /* indices of devices in the table */
    double ns_per_byte, ns_fixed;
    cnri_source source;
} cnri_table_link;
/* The costs that a policy decides by, and that `candidates` shows; the plan owns it. */
typedef struct cnri_table {
    const char *net;
    CNRI_VEC(cnri_table_row) rows;
    CNRI_VEC(cnri_table_node) nodes;
    CNRI_VEC(cnri_table_device) devices;
    CNRI_VEC(cnri_table_link) links;
    const char *policy;          /* name of the policy that was asked; NULL: none */
    char *notes;                 /* JSON that the policy added to its answer; NULL: none */
    char *failure;               /* why the answer was not followed; NULL: it was */
    struct cnri_kept_rows *kept; /* the planner's candidates that the rows were made of */
} cnri_table;
/* Estimated ns to bring the output of row a to row b, its reader: conversion and transfer. */
double cnri_table_between(const cnri_table *t, int32_t a, int32_t b);

typedef struct cnri_policy_answer { /* for one node; blank (row -1, no parts): the default */
    int32_t row;                    /* index in the table; -1: none */
    int32_t n_parts, axis;          /* axis -1: any along which the node can be split */
    cnri_part parts[8]; /* a single part names a device; the rules pick one of its rows */
} cnri_policy_answer;

#endif
