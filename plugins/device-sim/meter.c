/* Rails as energy counters, as exact as the model, and the board's temperature. */
#include "sim.h"
#include <stdio.h>

/* Opens the rails of the simulated machine, and its temperature, *n in all. CNR_E_NOT_FOUND: no
 * board is simulated. */
static cnr_status open_meter(const cnr_gauge_options *options, void **state, int32_t *n,
                             cnr_error *err) {
    sim_machine *m = sim_machine_now();
    (void)options;
    if (!m) return sim_host->fail(err, CNR_E_NOT_FOUND, "sim", "no board is simulated");
    *state = m;
    *n = m->n_rails + (m->ohms > 0);
    return CNR_OK;
}

/* Writes the name of the unit that the rail feeds to `out`, if it is the only one; else "". */
static void feeds(const sim_machine *m, int32_t rail, char *out, size_t room) {
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_units; i++) {
        if (m->units[i].rail != rail || m->units[i].n_members) continue;
        if (n++ == 0) snprintf(out, room, "sim:%s", m->units[i].name);
    }
    if (n != 1) out[0] = 0;
}

/* Describes a rail or the temperature. */
static cnr_status describe(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err) {
    const sim_machine *m = state;
    (void)err;
    const int heat = domain == m->n_rails;
    snprintf(out->name, sizeof out->name, "%s", heat ? "board" : m->rails[domain].name);
    if (!heat) feeds(m, domain, out->device, sizeof out->device);
    out->quantity = heat ? CNR_QUANTITY_TEMPERATURE : CNR_QUANTITY_ENERGY;
    return CNR_OK;
}

/* Reads a rail's joules or the temperature. */
static cnr_status read_meter(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    sim_machine *m = state;
    (void)err;
    const uint64_t now = sim_now();
    sim_lock();
    sim_heat(m, now);
    out->value = domain == m->n_rails ? (int64_t)(m->degrees * 1e3)
                                      : (int64_t)(sim_joules(m, &m->rails[domain], now) * 1e6);
    sim_unlock();
    out->time_ns = now;
    return CNR_OK;
}

static void close_meter(void *state) { (void)state; }

const cnr_meter sim_meter = {.size = sizeof(cnr_meter),
                             .name = "sim-meter",
                             .summary = "what the rails of a simulated board have given",
                             .open = open_meter,
                             .describe = describe,
                             .read = read_meter,
                             .close = close_meter};
