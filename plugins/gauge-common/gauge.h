/* gauge-common: sysfs attributes, and sensors made of them; for meters and knobs. */
#ifndef GAUGE_H
#define GAUGE_H

#include <cnnrun/plugin.h>

/* Loops over i from 0 to n - 1. */
#define GAUGE_EACH(i, n) for (int32_t i = 0; i < (n); i++)
enum { GAUGE_PATH = 512, GAUGE_TEXT = 128 };

/* Set by the plugin's init. */
extern const cnr_host *gauge_host;

/* The exports of a plugin with one meter or knob; needs cnnrun/kit.h. */
#define GAUGE_PLUGIN(NAME, SUMMARY, KIND, GAUGE) \
    static cnr_status start(const cnr_host *host, struct cnr_registrar *registrar, \
                            cnr_error *err) { \
        (void)err; \
        gauge_host = host; \
        return host->add(registrar, KIND, &GAUGE); \
    } \
    CNR_PLUGIN(NAME, "1", SUMMARY, "MIT", start, CNR_TOUCHES_DEVICES)

/* ---- state.c ---- */

/* Memory of a gauge's own, all zeros; NULL and an error of `what`: there is none. */
void *gauge_state(size_t bytes, const char *what, cnr_error *err);
/* Ends a gauge's open: *state and *n receive what was opened, with its number of domains; after a
 * failure, `close` frees it. Returns status. */
cnr_status gauge_state_opened(cnr_status status, void *own, const int32_t *count,
                              void (*close)(void *), void **state, int32_t *n);
/* Copies the description of a domain to *out, as many bytes as its first member says: its size,
 * which stays. */
cnr_status gauge_tell(void *out, const void *own, uint32_t bytes);

/* ---- sysfs.c ---- */

/* Paths below `root` that match a pattern, in numeric order; free by gauge_found_free, even after
 * an error. No match is not an error. */
typedef struct gauge_found {
    char **at;
    int32_t n;
} gauge_found;
/* Finds the files below root whose paths match a pattern of glob(3). No match, or no permission to
 * look: CNR_OK, and out->n is 0. Free *out with gauge_found_free, after a failure too. */
cnr_status gauge_find(const char *root, const char *pattern, gauge_found *out, cnr_error *err);
void gauge_found_free(gauge_found *found); /* frees paths and list */
/* Calls `add` for each matching path until one fails. */
cnr_status gauge_each(const char *root, const char *pattern,
                      cnr_status (*add)(void *list, const char *path, cnr_error *err), void *list,
                      cnr_error *err);
const char *gauge_last(const char *path); /* the part after the last slash */

/* An attribute that stays open between readings. Its path is folder/name. */
typedef struct gauge_file {
    char path[GAUGE_PATH];
    int fd; /* descriptor; -1: not open */
} gauge_file;
/* Sets the path; the first reading opens the file. */
void gauge_name(gauge_file *file, const char *folder, const char *name);
/* 1 if the path is set and names a regular file, else 0. */
int gauge_is_there(const gauge_file *file);
void gauge_close(gauge_file *file); /* closes it if it is open */
/* Reads the file's text into out, cut to the room and without surrounding white space; opens it if
 * need be. */
cnr_status gauge_read_text(gauge_file *file, char *out, size_t room, cnr_error *err);
/* Reads the number at its begin: 5.1 from "5.1000 W", 37 from "37@585000000Hz". */
cnr_status gauge_read_number(gauge_file *file, double *out, cnr_error *err);
/* Writes a text to a file of /sys. */
cnr_status gauge_write_text(const char *path, const char *text, cnr_error *err);
/* gauge_write_text for signal handlers: returns 0, or errno */
int gauge_order(const char *path, const char *text);
/* Reads an attribute once. False: missing or unreadable; out is "". */
int gauge_look(const char *folder, const char *name, char *out, size_t room);
/* Reads a number, without an error: 0: there is none. */
int gauge_look_number(const char *folder, const char *name, double *out);

/* ---- cpus.c ---- */

enum { GAUGE_CPUS = 256 };
/* A set of processors, and their ticks so far. */
typedef struct gauge_cpus {
    int32_t at[GAUGE_CPUS], n;
    uint64_t busy, all; /* ticks, at the last reading */
} gauge_cpus;
/* Adds the numbers in a text such as "0 1 2 3" or "0-3" to *out. */
void gauge_cpus_of(const char *text, gauge_cpus *out);
/* *out: the load of the CPUs since the last reading, 0 to 1, by /proc/stat; below 0: not known
 * yet. */
cnr_status gauge_cpus_load(const char *root, gauge_cpus *cpus, double *out, cnr_error *err);

/* ---- library.c ---- */

/* Loads a system library and returns dlopen's handle; for a root other than "/", ROOT/usr/lib/NAME.
 * NULL with CNR_E_NOT_FOUND: none. It is never unloaded, since such libraries have threads and
 * handlers. */
void *gauge_library(const char *root, const char *name, cnr_error *err);
/* Looks a function up; `to` points to a function pointer. 0: not found. */
int gauge_symbol(void *library, const char *name, void *to);

/* ---- sensors.c: domains with one attribute, or the product of two ---- */

/* A sensor: its files and units. */
typedef struct gauge_sensor {
    cnr_meter_domain domain;
    gauge_file value, factor; /* files of value and factor; factor.path "": none */
    double scale;  /* factor from the value (or product) to millionths of domain.quantity's unit */
    int magnitude; /* take the absolute value: currents have a sign */
} gauge_sensor;
/* The sensors of a meter. */
typedef struct gauge_sensors {
    gauge_sensor *at;
    int32_t n;
} gauge_sensors;
/* Adds a sensor; makes `name` unique by `address`, then by a number. NULL: out of memory. */
gauge_sensor *gauge_add(gauge_sensors *list, const char *name, const char *address);
/* A meter's hooks; `state` is a gauge_sensors from gauge_sensors_new, never NULL. */
gauge_sensors *gauge_sensors_new(cnr_error *err);
/* Copies a sensor's description, at most out->size bytes. Never fails; `domain` must be below the
 * count that opening gave. */
cnr_status gauge_describe(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err);
/* Reads a sensor in millionths of its unit; `domain` as above. CNR_E_FORMAT: the number is out of
 * range. */
cnr_status gauge_read(void *state, int32_t domain, cnr_reading *out, cnr_error *err);
void gauge_free(void *state); /* closes files, frees the list */
/* The end of a meter's `open`: passes the list (*state) and its length *n to the host, or frees it
 * after a failure; CNR_E_NOT_FOUND if it is empty. */
cnr_status gauge_opened(gauge_sensors *list, cnr_status status, const char *what, void **state,
                        int32_t *n, cnr_error *err);
/* The device that a rail of this name feeds, "cpu" or "opencl:0"; "": unknown, or both. */
const char *gauge_feeds(const char *name);

#endif
