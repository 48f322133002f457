/* The points of a sweep: values for names, from lists and ranges or drawn at random. */
#ifndef CNRI_SWEEP_H
#define CNRI_SWEEP_H

#include "cli/cli.h"
#include "lua/script.h"

/* One name with the values that it takes. */
typedef struct cnri_sweep_axis {
    char *name;
    CNRI_VEC(char *) values; /* of a list or a range, as text */
    double low, high;        /* of a range */
    bool is_range, is_log;   /* log: equal ratios between values; seeds are a list */
} cnri_sweep_axis;
typedef CNRI_VEC(cnri_sweep_axis) cnri_sweep_axes;

/* "keep=.05,.1,.2", "rate=log:1e-3:1e-1:5", "width=lin:8:64:8". Ranges have both ends. */
cnr_status cnri_axis_parse(const char *text, cnri_sweep_axes *axes, cnr_error *err);
/* The last axis, "seed": "1..5", or a list of whole numbers. */
cnr_status cnri_seeds_parse(const char *text, cnri_sweep_axes *axes, cnr_error *err);
void cnri_sweep_axes_free(cnri_sweep_axes *axes);

/* How many points there are. drawn 0: all combinations; else so many draws, each with every seed.
 * -1: too many. */
int64_t cnri_points(const cnri_sweep_axes *axes, int64_t drawn);
/* The values of point i, in the order of the axes: a row each and a last one of zeros. Seeds change
 * first. Draws depend on `draw_seed`, the draw's number and the axis alone. `room` holds what is
 * drawn; both have axes->n + 1 rows. */
typedef char cnri_drawn[32];
void cnri_point(const cnri_sweep_axes *axes, int64_t drawn, uint64_t draw_seed, int64_t i,
                cnri_lua_named *out, cnri_drawn *room);
/* {"keep":0.05,"seed":1}; false: no memory. */
bool cnri_point_json(const cnri_lua_named *point, cnri_text *out);
/* A name for files: "keep=0.05,seed=1", or a fingerprint where that is long or has odd characters.
 * cnri_free; NULL: no memory. */
char *cnri_point_name(const cnri_lua_named *point);

#endif
