/* meter-hwmon: power sensors of boards: INA2xx and INA3221 of the mainline kernel, the drivers of
 * ODROID-XU3 and Jetson, and all other hwmon chips with power or energy. */
#include "hwmon.h"
#include <cnnrun/kit.h>

/* Sensors of a machine, and those that were switched on. */
typedef struct state {
    gauge_sensors *sensors;
    hwmon_switches switched;
} state;

/* Switches sensors off that were off, and frees all. */
static void close_meter(void *opened) {
    state *s = opened;
    hwmon_switch_off(&s->switched);
    gauge_free(s->sensors);
    gauge_host->free(s);
}

/* Finds all sensors: *opened receives them, *n their number. Fails where the machine has none. */
static cnr_status open_meter(const cnr_gauge_options *options, void **opened, int32_t *n,
                             cnr_error *err) {
    state *s = gauge_host->alloc(sizeof *s);
    if (!s) return gauge_host->fail(err, CNR_E_MEMORY, "hwmon", "out of memory");
    *s = (state){.sensors = gauge_sensors_new(err)};
    if (!s->sensors) {
        gauge_host->free(s);
        return CNR_E_MEMORY;
    }
    cnr_status status = hwmon_odroid(options->root, s->sensors, &s->switched, err);
    if (!status) status = hwmon_jetson(options->root, s->sensors, err);
    if (!status) status = hwmon_chips(options->root, s->sensors, err);
    if (!status && s->sensors->n == 0)
        status = gauge_host->fail(err, CNR_E_NOT_FOUND, "hwmon", "this machine has none");
    if (status) {
        close_meter(s);
        return status;
    }
    *opened = s;
    *n = s->sensors->n;
    return CNR_OK;
}

/* Fills *out with the description of a sensor. */
static cnr_status describe(void *opened, int32_t domain, cnr_meter_domain *out, cnr_error *err) {
    return gauge_describe(((state *)opened)->sensors, domain, out, err);
}

/* Reads a sensor into *out; fails where its file can't be read. */
static cnr_status read_meter(void *opened, int32_t domain, cnr_reading *out, cnr_error *err) {
    return gauge_read(((state *)opened)->sensors, domain, out, err);
}

static const cnr_meter meter = {.size = sizeof(cnr_meter),
                                .name = "hwmon",
                                .summary = "power sensors of boards: INA2xx, INA3221 ...",
                                .open = open_meter,
                                .describe = describe,
                                .read = read_meter,
                                .close = close_meter};

GAUGE_PLUGIN("meter-hwmon", "power sensors of boards, as hwmon and vendors' kernels have them",
             CNR_KIND_METER, meter)
