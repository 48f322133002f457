/* energy: meters over the time that somebody follows them, or that a command of the system's runs. */
#ifndef CNRI_ENERGY_H
#define CNRI_ENERGY_H

#include "core/work/work.h"

/* ---- follow.c: every domain, each 50 ms, until the time is over or the observer stops it ---- */
typedef struct cnri_follow_options {
    double seconds;      /* 0: until it is stopped, which is no error */
    const char *csv;     /* a line for each reading of all: time, watts of each, joules of each; or NULL */
    const char *counter; /* a file that holds the joules of each so far, for whoever reads it; or NULL */
    const char *const *taken; /* files that those must not be, NULL-terminated; or NULL */
} cnri_follow_options;
/* Of CNRI_EVENT_ENERGY: what the domains do now; NaN: one can't be read. */
typedef struct cnri_energy_row {
    double seconds;              /* since the beginning */
    int32_t n;
    const double *watts, *joules;
    const char *const *names;
} cnri_energy_row;
enum { CNRI_EVENT_ENERGY = 1001 };
/* out: what it came to in all. CNR_E_NOT_FOUND: no plugin finds a meter. */
cnr_status cnri_energy_follow(cnr_runtime *rt, const cnri_follow_options *options,
                              const cnr_observer *observer, cnr_energy *out, cnr_error *err);

/* ---- command.c: what a command takes, with all that it starts ---- */
/* argv ends in NULL. *exit_code: the command's, 128 and the signal that ended it, or 127 when it can't be
 * started (CNR_E_NOT_FOUND). Stopping passes the signal on, and waits. */
cnr_status cnri_energy_command(cnr_runtime *rt, char *const *argv, const cnr_observer *observer,
                               cnr_energy *out, int *exit_code, cnr_error *err);

#endif
