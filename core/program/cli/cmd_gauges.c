/* cnnrun gauges: the meters and knobs of this machine, and their present readings. */
#include "cli/cli.h"
#include "people/people.h"
#include <math.h>

/* Result: a domain of a meter or knob. */
typedef struct gauge {
    cnr_gauge g;
    const char *quantity, *error;
    char now[32];
    int64_t value, time_ns, hz, min_hz, max_hz, load, cores, temperature; /* CNRI_NONE: not known */
    double low, high; /* MHz; NaN: it is no knob */
    bool estimated, writable;
} gauge;
static const cnri_field fields[] = {CNRI_KEY_IN(gauge, g, plugin),
                                    CNRI_KEY_IN(gauge, g, name),
                                    CNRI_KEY_IN(gauge, g, feeds),
                                    CNRI_KEY(gauge, quantity),
                                    CNRI_KEY_IN(gauge, g, period_ms),
                                    CNRI_KEY(gauge, estimated),
                                    CNRI_KEY(gauge, error),
                                    CNRI_MAYBE(gauge, "value", value),
                                    CNRI_MAYBE(gauge, "time_ns", time_ns),
                                    CNRI_MAYBE(gauge, "hz", hz),
                                    CNRI_MAYBE(gauge, "min_hz", min_hz),
                                    CNRI_MAYBE(gauge, "max_hz", max_hz),
                                    CNRI_KEY(gauge, writable),
                                    CNRI_MAYBE(gauge, "load_percent", load),
                                    CNRI_MAYBE(gauge, "cores", cores),
                                    CNRI_MAYBE(gauge, "temperature_mc", temperature),
                                    CNRI_ASIDE(gauge, "now", now),
                                    CNRI_ASIDE(gauge, "low", low),
                                    CNRI_ASIDE(gauge, "high", high)};
static const cnri_record record =
    CNRI_RECORD(fields, "{plugin:-16} {name:-16} {quantity:-11} {now:-14}{feeds? feeds "
                        "{feeds}}{estimated? (estimated)}"
                        "{low? {low:.0f} to {high:.0f} MHz}{error? {error}}\n");

/* The result row of a gauge, in MHz, J, W or degrees C; it borrows g's texts. */
static gauge row_of(const cnr_gauge *g) {
    static const char *const quantities[] = {"knob", "energy", "power", "temperature"};
    static const char *const units[] = {"MHz", "J", "W", "C"};
    const bool knob = g->quantity == 0, read = g->status == 0;
    const double whole = knob ? (double)g->hz : (double)g->value;
    const double scale = g->quantity == CNR_QUANTITY_TEMPERATURE ? 1e-3 : 1e-6;
    gauge row = {.g = *g,
                 .quantity = quantities[g->quantity],
                 .now = "unread",
                 .error = read ? NULL : g->why,
                 .value = read && !knob ? g->value : CNRI_NONE,
                 .time_ns = read ? (int64_t)g->time_ns : CNRI_NONE,
                 .hz = read && knob ? (int64_t)g->hz : CNRI_NONE,
                 .min_hz = knob ? (int64_t)g->min_hz : CNRI_NONE,
                 .max_hz = knob ? (int64_t)g->max_hz : CNRI_NONE,
                 .load = knob && g->load_percent >= 0 ? g->load_percent : CNRI_NONE,
                 .cores = knob && g->cores >= 0 ? g->cores : CNRI_NONE,
                 .temperature =
                     knob && g->temperature_mc != INT32_MIN ? g->temperature_mc : CNRI_NONE,
                 .low = knob ? (double)g->min_hz * 1e-6 : (double)NAN,
                 .high = (double)g->max_hz * 1e-6,
                 .estimated = g->estimated != 0,
                 .writable = knob && g->writable};
    if (read) snprintf(row.now, sizeof row.now, "%.6g %s", whole * scale, units[g->quantity]);
    return row;
}

/* The command gauges. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    (void)values;
    cnr_gauge_list list = {0};
    cnr_status status = cnr_gauges(call->rt, NULL, NULL, &list, err);
    for (int32_t i = 0; i < list.n && !status; i++) {
        const gauge row = row_of(&list.at[i]);
        status = cnri_tell(call, &record, &row, err);
    }
    if (!status && list.n == 0 && !call->common.json)
        cnri_say(stderr, "cnnrun gauges: no plugin finds a meter or a knob here\n");
    cnr_gauges_free(&list);
    return status;
}

const cnri_command cnri_cmd_gauges = {
    .name = "gauges",
    .example = "cnnrun gauges --sysfs-root /tmp/sys",
    .operands = "",
    .summary = "Lists the domains of meters and knobs that plugins find, with what they read now.",
    .details = "Readings are of the whole machine, not of this process.",
    .results = CNRI_RESULTS(&record),
    .opens = cnri_call_open,
    .run = run,
};
