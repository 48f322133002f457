/* Knobs with two attributes, minimum and maximum: clocks of cpufreq, devfreq and kgsl. */
#ifndef GAUGE_BOUNDS_H
#define GAUGE_BOUNDS_H

#include "gauge.h"

enum { BOUNDS_STEPS = 128 };

/* A writable attribute, and its value when the knob was opened. */
typedef struct bounds_file {
    char path[GAUGE_PATH], found[32];
} bounds_file;

struct bounds;
/* A clock that files with bounds set. */
typedef struct bounds_domain {
    cnr_knob_domain domain;
    uint64_t steps[BOUNDS_STEPS]; /* frequencies in Hz, rising */
    double unit;                  /* hertz of one unit in the files */
    int levels;                   /* 1: the files hold indices of steps, where 0 is the highest */
    bounds_file least, most;
    gauge_file now;         /* the frequency, in units */
    gauge_file temperature; /* millidegrees; path "": none */
    /* fills state->load_percent (optional); own is the plugin's, by host->alloc, freed at the
     * end */
    void (*load)(const struct bounds *list, struct bounds_domain *d, cnr_knob_state *state);
    gauge_file loads[2];
    void *own;
    bounds_file *cores;           /* switches of cores: "1" or "0" */
    int32_t n_cores, fixed_cores; /* fixed: cores without a switch, which are always on */
} bounds_domain;

/* The clocks of a knob. */
typedef struct bounds {
    bounds_domain **at;
    int32_t n;
    char root[GAUGE_PATH];
} bounds;

/* Opens a list that `find` fills by adding domains; the knob's other hooks work on it. */
cnr_status bounds_open(const char *what, const cnr_gauge_options *options,
                       cnr_status (*find)(bounds *list, cnr_error *err), void **state, int32_t *n,
                       cnr_error *err);
/* Adds a domain with a name and a unit; NULL with err: out of memory. */
bounds_domain *bounds_add(bounds *list, const char *name, double unit, cnr_error *err);
/* Names the files in `folder` and reads the bounds; call after adding steps and cores. 0: missing
 * or invalid, and the domain is read-only. */
int bounds_files(bounds_domain *d, const char *folder, const char *least, const char *most);
/* Adds a step, in any order; duplicates are ignored. */
void bounds_step(bounds_domain *d, double hz);
/* Reads the domain's steps from text such as "585000000 490000000", in its units. */
void bounds_steps_of(bounds_domain *d, const char *text);

/* Implements cnr_knob.describe: copies a clock's description, at most out->size bytes. */
cnr_status bounds_describe(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err);
/* Implements cnr_knob.step: *hz is step `index` of a clock. */
cnr_status bounds_step_at(void *state, int32_t domain, int32_t index, uint64_t *hz, cnr_error *err);
/* Implements cnr_knob.read: reads a clock's Hz, load, cores and temperature from its files. */
cnr_status bounds_read(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err);
/* cnr_knob's set: writes both bounds, and turns cores on or off. */
cnr_status bounds_set(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err);
/* cnr_knob's restore: writes what was found at open. */
cnr_status bounds_restore(void *state, cnr_error *err);
/* cnr_knob's save_state: what was found, as text; returns its length. */
int32_t bounds_found(void *state, char *text, size_t room);
/* Implements cnr_knob.load_state: writes back the attributes that a text of bounds_found names,
 * only to our files. */
cnr_status bounds_bring_back(void *state, const char *text, cnr_error *err);
/* Implements cnr_knob.restore_in_signal: writes back what was found, with calls that signal
 * handlers may make. */
void bounds_restore_now(void *state);
void bounds_close(void *state); /* closes files, frees the list */

#define BOUNDS_HOOKS \
    .describe = bounds_describe, .step = bounds_step_at, .read = bounds_read, .set = bounds_set, \
    .restore = bounds_restore, .close = bounds_close, .save_state = bounds_found, \
    .load_state = bounds_bring_back, .restore_in_signal = bounds_restore_now

/* Defines the plugin knob-WORD, whose domains `find` adds. */
#define BOUNDS_PLUGIN(word, what, about) \
    static cnr_status open_knob(const cnr_gauge_options *options, void **state, int32_t *n, \
                                cnr_error *err) { \
        return bounds_open(word, options, find, state, n, err); \
    } \
    static const cnr_knob knob = {.size = sizeof(cnr_knob), \
                                  .name = word, \
                                  .summary = what, \
                                  .open = open_knob, \
                                  BOUNDS_HOOKS}; \
    GAUGE_PLUGIN("knob-" word, about, CNR_KIND_KNOB, knob)

#endif
