/* meter-battery: power drawn from a battery, below /sys/class/power_supply. Slow, and for the whole
 * machine; while charging it does not show the machine's power. */
#include "gauge.h"
#include <cnnrun/kit.h>
#include <stdio.h>

enum { PERIOD_MS = 1000 }; /* batteries update their values about this often */

/* Batteries, and for each the file that tells whether it discharges. */
typedef struct batteries {
    gauge_sensors *sensors;
    gauge_file *status; /* one for each sensor */
} batteries;

/* Adds the battery in `folder`, if it is one and tells power, or current and voltage. */
static cnr_status add(void *of, const char *folder, cnr_error *err) {
    batteries *b = of;
    char text[GAUGE_TEXT];
    gauge_file power, current, volts;
    if (!gauge_look(folder, "type", text, sizeof text) || strcmp(text, "Battery") != 0)
        return CNR_OK;
    if (gauge_look(folder, "scope", text, sizeof text) && strcmp(text, "Device") == 0)
        return CNR_OK; /* the battery of a mouse */
    gauge_name(&power, folder, "power_now");
    gauge_name(&current, folder, "current_now");
    gauge_name(&volts, folder, "voltage_now");
    const int product = !gauge_is_there(&power);
    if (product && (!gauge_is_there(&current) || !gauge_is_there(&volts))) return CNR_OK;
    gauge_file *status =
        gauge_host->resize(b->status, (size_t)(b->sensors->n + 1) * sizeof *b->status);
    if (status) b->status = status;
    gauge_sensor *s = status ? gauge_add(b->sensors, gauge_last(folder), "") : NULL;
    if (!s) return gauge_host->fail(err, CNR_E_MEMORY, folder, "out of memory");
    gauge_name(&b->status[b->sensors->n - 1], folder, "status");
    s->value = product ? current : power;
    if (product) s->factor = volts;
    s->scale = product ? 1e-6 : 1; /* microamperes times microvolts */
    s->magnitude = 1;
    s->domain.period_ms = PERIOD_MS;
    s->domain.is_whole_machine = 1;
    return CNR_OK;
}

/* Closes the files and frees all. */
static void close_meter(void *state) {
    batteries *b = state;
    GAUGE_EACH(i, b->sensors->n) gauge_close(&b->status[i]);
    gauge_free(b->sensors);
    gauge_host->free(b->status);
    gauge_host->free(b);
}

/* Finds all batteries: *state receives them, *n their number. Fails where the machine has none. */
static cnr_status open_meter(const cnr_gauge_options *options, void **state, int32_t *n,
                             cnr_error *err) {
    batteries *b = gauge_host->alloc(sizeof *b);
    if (!b) return gauge_host->fail(err, CNR_E_MEMORY, "battery", "out of memory");
    *b = (batteries){.sensors = gauge_sensors_new(err)};
    if (!b->sensors) {
        gauge_host->free(b);
        return CNR_E_MEMORY;
    }
    cnr_status status = gauge_each(options->root, "/sys/class/power_supply/*", add, b, err);
    if (!status && b->sensors->n == 0)
        status = gauge_host->fail(err, CNR_E_NOT_FOUND, "battery", "this machine has none");
    if (status) {
        close_meter(b);
        return status;
    }
    *state = b;
    *n = b->sensors->n;
    return CNR_OK;
}

/* Fills *out with the description of a battery. */
static cnr_status describe(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err) {
    return gauge_describe(((batteries *)state)->sensors, domain, out, err);
}

/* The sign of the power differs between drivers; the status gives the direction. */
static cnr_status read_meter(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    batteries *b = state;
    char text[GAUGE_TEXT];
    CNR_TRY(gauge_read_text(&b->status[domain], text, sizeof text, err));
    if (strcmp(text, "Discharging") != 0)
        return gauge_host
            ->fail(err, CNR_E_STATE, b->status[domain].path,
                   "the battery's status is \"%s\": what flows is not what the machine "
                   "takes; unplug it",
                   text);
    return gauge_read(b->sensors, domain, out, err);
}

static const cnr_meter meter = {.size = sizeof(cnr_meter),
                                .name = "battery",
                                .summary = "what flows out of the battery",
                                .open = open_meter,
                                .describe = describe,
                                .read = read_meter,
                                .close = close_meter};

GAUGE_PLUGIN("meter-battery", "power out of a battery, of the whole machine", CNR_KIND_METER, meter)
