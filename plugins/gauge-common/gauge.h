/* gauge-common: attributes below /sys, and sensors made of them; for meters and knobs. */
#ifndef GAUGE_H
#define GAUGE_H

#include <cnnrun/plugin.h>

#define GAUGE_EACH(i, n) for (int32_t i = 0; i < (n); i++)
enum { GAUGE_PATH = 512, GAUGE_TEXT = 128 };

/* Set once, by the plugin's init. */
extern const cnr_host *gauge_host;

/* What a plugin of one kind of meter or knob exports; needs cnnrun/kit.h. */
#define GAUGE_PLUGIN(NAME, SUMMARY, KIND, GAUGE) \
    static cnr_status start(const cnr_host *host, struct cnr_registrar *registrar, \
                            cnr_error *err) { \
        (void)err; \
        gauge_host = host; \
        return host->add(registrar, KIND, &GAUGE); \
    } \
    CNR_PLUGIN_TOUCHES(NAME, "1", SUMMARY, "MIT", start, CNR_TOUCHES_DEVICES)

/* ---- sysfs.c ---- */

/* Paths below `root` that a pattern finds, in order: gauge_found_free, after an error too. None is
 * no error. What matches "hwmon*" begins alike, so numbers in it are put in their order. */
typedef struct gauge_found {
    char **at;
    int32_t n;
} gauge_found;
cnr_status gauge_find(const char *root, const char *pattern, gauge_found *out, cnr_error *err);
void gauge_found_free(gauge_found *found);
/* `add` for each path found, until one fails. */
cnr_status gauge_each(const char *root, const char *pattern,
                      cnr_status (*add)(void *list, const char *path, cnr_error *err), void *list,
                      cnr_error *err);
const char *gauge_last(const char *path); /* behind the last slash */

/* An attribute, kept open from one reading to the next. Its path is folder/name. */
typedef struct gauge_file {
    char path[GAUGE_PATH];
    int fd; /* -1: not open (yet, or any more) */
} gauge_file;
/* Names it; it is opened when it is read. */
void gauge_name(gauge_file *file, const char *folder, const char *name);
int gauge_is_there(const gauge_file *file);
void gauge_close(gauge_file *file);
/* What it holds, without spaces and newlines around. */
cnr_status gauge_read_text(gauge_file *file, char *out, size_t room, cnr_error *err);
/* A number at its begin: "5.1000 W", "37@585000000Hz" are 5.1 and 37. */
cnr_status gauge_read_number(gauge_file *file, double *out, cnr_error *err);
cnr_status gauge_write_text(const char *path, const char *text, cnr_error *err);
int gauge_order(const char *path, const char *text); /* the same for signal handlers: 0, or errno */
/* One that is only looked at once. False: it is not there, or can't be read; out is "". */
int gauge_look(const char *folder, const char *name, char *out, size_t room);
int gauge_look_number(const char *folder, const char *name, double *out);

/* ---- cpus.c ---- */

enum { GAUGE_CPUS = 256 };
/* Processors, and what they have done so far. */
typedef struct gauge_cpus {
    int32_t at[GAUGE_CPUS], n;
    uint64_t busy, all; /* ticks, at the last reading */
} gauge_cpus;
void gauge_cpus_of(const char *text, gauge_cpus *out); /* "0 1 2 3", "0-3" */
/* The part of 1 that they were busy since the last reading, by /proc/stat; below 0: not known yet.
 */
cnr_status gauge_cpus_load(const char *root, gauge_cpus *cpus, double *out, cnr_error *err);

/* ---- library.c ---- */

/* A library of the system's; below another root than "/" it is ROOT/usr/lib/NAME. NULL:
 * CNR_E_NOT_FOUND. It stays loaded: such libraries have threads and handlers of their own. */
void *gauge_library(const char *root, const char *name, cnr_error *err);
int gauge_symbol(void *library, const char *name,
                 void *to); /* a pointer to function; 0: it has none */

/* ---- sensors.c: a domain that is one attribute, or the product of two ---- */

typedef struct gauge_sensor {
    cnr_meter_domain domain;
    gauge_file value, factor; /* factor.path "": there is none */
    double scale;             /* of the value, or of the product: to micro */
    int magnitude;            /* currents have a sign: what counts is how much flows */
} gauge_sensor;
typedef struct gauge_sensors {
    gauge_sensor *at;
    int32_t n;
} gauge_sensors;
/* With `name` made unlike those before it, by `address` and then by number. NULL: out of memory. */
gauge_sensor *gauge_add(gauge_sensors *list, const char *name, const char *address);
/* A meter's hooks; `state` is a gauge_sensors from gauge_sensors_new, never NULL. */
gauge_sensors *gauge_sensors_new(cnr_error *err);
cnr_status gauge_describe(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err);
cnr_status gauge_read(void *state, int32_t domain, cnr_reading *out, cnr_error *err);
void gauge_free(void *state);
/* How a meter's `open` ends: the list is handed over, or freed; none is CNR_E_NOT_FOUND. */
cnr_status gauge_opened(gauge_sensors *list, cnr_status status, const char *what, void **state,
                        int32_t *n, cnr_error *err);
/* What a rail of this name feeds, if the name says so: "cpu", "opencl:0", or "". */
const char *gauge_feeds(const char *name);

#endif
