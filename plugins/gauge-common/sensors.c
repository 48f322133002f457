/* Sensors: domains whose reading is an attribute, or the product of two. */
#include "gauge.h"
#include <cnnrun/kit.h>
#include <stdio.h>
#include <strings.h>

gauge_sensors *gauge_sensors_new(cnr_error *err) {
    return gauge_state(sizeof(gauge_sensors), "meter", err);
}

/* 1 if a sensor has that name. */
static int taken(const gauge_sensors *list, const char *name) {
    GAUGE_EACH(i, list->n)
    if (strcmp(list->at[i].domain.name, name) == 0) return 1;
    return 0;
}

gauge_sensor *gauge_add(gauge_sensors *list, const char *name, const char *address) {
    gauge_sensor *at = gauge_host->resize(list->at, (size_t)(list->n + 1) * sizeof *at);
    if (!at) return NULL;
    list->at = at;
    gauge_sensor *s = &at[list->n];
    memset(s, 0, sizeof *s);
    char *own = s->domain.name;
    const size_t room = sizeof s->domain.name;
    snprintf(own, room, "%.40s", name);
    if (taken(list, own) && *address) snprintf(own, room, "%.40s@%.16s", name, address);
    for (int i = 2; taken(list, own); i++) snprintf(own, room, "%.40s#%d", name, i);
    s->domain.size = sizeof s->domain;
    s->domain.quantity = CNR_QUANTITY_POWER;
    s->value.fd = s->factor.fd = -1;
    s->scale = 1;
    list->n++;
    return s;
}

const char *gauge_feeds(const char *name) {
    int cpu = 0, gpu = 0;
    for (const char *p = name; *p; p++) {
        cpu = cpu || strncasecmp(p, "cpu", 3) == 0;
        gpu = gpu || strncasecmp(p, "gpu", 3) == 0;
    }
    return cpu == gpu ? "" : cpu ? "cpu" : "opencl:0";
}

/* ---- a meter's hooks ---- */

/* The end of a meter's `open`: passes the list (*state) and its length *n to the host, or frees it
 * after a failure; CNR_E_NOT_FOUND if it is empty. */
cnr_status gauge_opened(gauge_sensors *list, cnr_status status, const char *what, void **state,
                        int32_t *n, cnr_error *err) {
    if (!status && list->n == 0)
        status = gauge_host->fail(err, CNR_E_NOT_FOUND, what, "this machine has none");
    return gauge_state_opened(status, list, &list->n, gauge_free, state, n);
}

cnr_status gauge_describe(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err) {
    (void)err;
    return gauge_tell(out, &((const gauge_sensors *)state)->at[domain].domain, sizeof *out);
}

cnr_status gauge_read(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    gauge_sensor *s = &((gauge_sensors *)state)->at[domain];
    double value, factor = 1;
    CNR_TRY(gauge_read_number(&s->value, &value, err));
    if (*s->factor.path) CNR_TRY(gauge_read_number(&s->factor, &factor, err));
    value *= factor * s->scale;
    if (s->magnitude && value < 0) value = -value;
    if (value < -0x1p62 || value > 0x1p62)
        return gauge_host->fail(err, CNR_E_FORMAT, s->value.path, "tells more than can be");
    out->value = (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
    return CNR_OK;
}

/* Closes the sensors' files and frees the list. */
void gauge_free(void *state) {
    gauge_sensors *list = state;
    GAUGE_EACH(i, list->n) {
        gauge_close(&list->at[i].value);
        gauge_close(&list->at[i].factor);
    }
    gauge_host->free(list->at);
    gauge_host->free(list);
}
