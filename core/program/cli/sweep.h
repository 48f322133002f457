/* The points of a sweep: values for names, from lists and ranges, or drawn at random. */
#ifndef CNRI_SWEEP_H
#define CNRI_SWEEP_H

#include "cli/cli.h"
#include "lua/script.h"

/* An axis: one name with its values. */
typedef struct cnri_sweep_axis {
    char *name;
    CNRI_VEC(char *) values; /* values of a list or a range, as text */
    double low, high;        /* ends of a range */
    bool is_range, is_log;   /* is_log: ratios between values are equal; seeds are a list */
} cnri_sweep_axis;
typedef CNRI_VEC(cnri_sweep_axis) cnri_sweep_axes;

/* Adds an axis such as "keep=.05,.1,.2", "rate=log:1e-3:1e-1:5" or "width=lin:8:64:8". Ranges
 * include both ends. */
cnr_status cnri_axis_parse(const char *text, cnri_sweep_axes *axes, cnr_error *err);
/* Adds the last axis, "seed": "1..5", or a list of whole numbers. */
cnr_status cnri_seeds_parse(const char *text, cnri_sweep_axes *axes, cnr_error *err);
/* Frees the axes with their names and values, not the struct. */
void cnri_sweep_axes_free(cnri_sweep_axes *axes);

/* Number of points. drawn 0: all combinations; else that many draws, each with every seed. -1:
 * too many. */
int64_t cnri_points(const cnri_sweep_axes *axes, int64_t drawn);
/* The values of point i, in the order of the axes, followed by a row of zeros. Seeds change
 * fastest. A draw depends only on `draw_seed`, its number and the axis. `room` holds the drawn
 * texts; both arrays have axes->n + 1 rows. */
typedef char cnri_drawn[32];
/* Fills `out` with the arguments of point i; `room` holds drawn numbers. */
void cnri_point(const cnri_sweep_axes *axes, int64_t drawn, uint64_t draw_seed, int64_t i,
                cnri_lua_named *out, cnri_drawn *room);
/* Appends a point as JSON, {"keep":0.05,"seed":1}; false: out of memory. */
bool cnri_point_json(const cnri_lua_named *point, cnri_text *out);
/* A file name for the point: "keep=0.05,seed=1", or a fingerprint if that would be long or have
 * unusual characters. Free with cnri_free; NULL: out of memory. */
char *cnri_point_name(const cnri_lua_named *point);

#endif
