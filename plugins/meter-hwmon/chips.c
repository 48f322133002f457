/* Chips below /sys/class/hwmon: prefers energy counters to power, and power to voltage times
 * current. */
#include "hwmon.h"
#include <cnnrun/kit.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST_CHANNELS = 160 }; /* amd_energy has one for each core */

/* Writes the chip's address on its bus, such as "4-0040", to `out`; the last part of the folder's
 * name where it has no link. */
static void address_of(const char *folder, char *out, size_t room) {
    char link[GAUGE_PATH], to[GAUGE_PATH];
    snprintf(link, sizeof link, "%.500s/device", folder);
    const ssize_t n = readlink(link, to, sizeof to - 1);
    to[n > 0 ? n : 0] = 0;
    snprintf(out, room, "%.*s", (int)room - 1, n > 0 ? gauge_last(to) : gauge_last(folder));
}

/* A chip of hwmon: its folder, name, address, and the time between its readings in ms. */
typedef struct chip {
    const char *folder;
    char name[GAUGE_TEXT], address[32];
    int32_t period_ms;
} chip;

/* Adds a sensor for `kind` and channel, named by its label, else by chip and channel. NULL: no
 * memory. */
static gauge_sensor *add(gauge_sensors *list, const chip *c, const char *kind, int channel) {
    char file[32], name[2 * GAUGE_TEXT];
    snprintf(file, sizeof file, "%s%d_label", kind, channel);
    if (!gauge_look(c->folder, file, name, GAUGE_TEXT)) {
        const int n = snprintf(name, sizeof name, "%s %s", c->name, c->address);
        if (channel > 1) snprintf(name + n, sizeof name - (size_t)n, " %d", channel);
    }
    gauge_sensor *s = gauge_add(list, name, c->address);
    if (!s) return NULL;
    snprintf(s->domain.device, sizeof s->domain.device, "%s", gauge_feeds(s->domain.name));
    s->domain.period_ms = c->period_ms;
    return s;
}

/* 1 if the chip has that file of a channel. */
static int has(const chip *c, const char *kind, int channel, const char *what, gauge_file *out) {
    char file[32];
    snprintf(file, sizeof file, "%s%d_%s", kind, channel, what);
    gauge_name(out, c->folder, file);
    return gauge_is_there(out);
}

/* Whether the counter is a core's, which is part of its socket's. */
static int is_core(const chip *c, int channel) {
    char file[32], label[GAUGE_TEXT];
    snprintf(file, sizeof file, "energy%d_label", channel);
    return gauge_look(c->folder, file, label, sizeof label) && strncmp(label, "Ecore", 5) == 0;
}

/* Adds a channel: energy, power, or voltage times current. */
static cnr_status add_channel(gauge_sensors *list, const chip *c, int channel, cnr_error *err) {
    gauge_file value, factor;
    const char *kind = "power";
    int energy = 0, product = 0;
    memset(&factor, 0, sizeof factor);
    if (has(c, "energy", channel, "input", &value)) {
        if (is_core(c, channel)) return CNR_OK;
        energy = 1;
        kind = "energy";
    } else if (!has(c, "power", channel, "input", &value) &&
               !has(c, "power", channel, "average", &value)) {
        /* only for these chips is it known that in1 and curr1 belong together, up to the third */
        if (strncmp(c->name, "ina", 3) != 0 || channel > 3) return CNR_OK;
        if (!has(c, "curr", channel, "input", &value) || !has(c, "in", channel, "input", &factor))
            return CNR_OK;
        product = 1;
        kind = "in";
    }
    gauge_sensor *s = add(list, c, kind, channel);
    if (!s) return gauge_host->fail(err, CNR_E_MEMORY, c->folder, "out of memory");
    s->value = value;
    if (product) s->factor = factor; /* mA times mV */
    s->magnitude = !energy;
    if (energy) s->domain.quantity = CNR_QUANTITY_ENERGY;
    s->domain.is_whole_machine =
        strcmp(c->name, "power_meter") == 0 || strcmp(s->domain.name, "VDD_IN") == 0;
    return CNR_OK;
}

/* Adds all channels of power, or of current and voltage, of the chip in `folder`. */
static cnr_status add_chip(void *list, const char *folder, cnr_error *err) {
    chip c = {.folder = folder};
    double ms;
    cnr_status status = CNR_OK;
    if (!gauge_look(folder, "name", c.name, sizeof c.name)) return CNR_OK;
    address_of(folder, c.address, sizeof c.address);
    if ((gauge_look_number(folder, "update_interval", &ms) ||
         gauge_look_number(folder, "power1_average_interval", &ms)) &&
        ms > 0 && ms < 60000)
        c.period_ms = (int32_t)(ms + 0.5);
    for (int i = 1; i <= MOST_CHANNELS && !status; i++) status = add_channel(list, &c, i, err);
    return status;
}

cnr_status hwmon_chips(const char *root, gauge_sensors *list, cnr_error *err) {
    return gauge_each(root, "/sys/class/hwmon/hwmon*", add_chip, list, err);
}
