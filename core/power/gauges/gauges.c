/* Meters and knobs: finds, opens and reads them, sets knobs within their bounds, and restores
 * them. */
#include "gauges/gauges.h"
#include <string.h>

enum { MAX_DOMAINS = 256 };

/* Fills err: no memory for domains. */
static cnr_status no_memory(cnr_error *err, const char *name) {
    return cnri_fail(err, CNR_E_MEMORY, name, "no memory for its domains");
}

/* ---- opening ---- */

/* Text of a row of the board's list `domains`; NULL: none. */
static const char *board_says(int32_t row, const char *what) {
    char path[64];
    snprintf(path, sizeof path, "domains.%d.%s", (int)row, what);
    return cnri_board_text(path);
}

/* Applies what a board file says of the domains of this machine, which takes precedence over the
 * plugin: domains = { { match = "ina231*-0040", name = "a15", feeds = "cpu:big" }, ... } */
static void as_board_says(char name[64], char feeds[64]) {
    for (int32_t row = 1; row <= cnri_board_count("domains"); row++) {
        const char *match = board_says(row, "match"), *text;
        if (!match || !cnri_matches_pattern(match, name)) continue;
        if ((text = board_says(row, "feeds"))) snprintf(feeds, 64, "%s", text);
        if ((text = board_says(row, "name"))) snprintf(name, 64, "%s", text);
        return;
    }
}

/* Lets a meter describe its domains, and adds what the board says of them. */
static cnr_status describe_meter(cnri_meter_set *m, cnr_error *err) {
    const char *name = m->meter->name;
    m->domains = cnri_alloc_zero(((size_t)m->n + 1) * sizeof *m->domains);
    if (!m->domains) return no_memory(err, name);
    for (int32_t i = 0; i < m->n; i++) {
        cnr_meter_domain *d = &m->domains[i];
        d->size = sizeof *d;
        const cnr_status status = cnri_plugin_status(err, m->meter->describe(m->state, i, d, err),
                                                     name, "describing a domain");
        if (status) return status;
        d->name[sizeof d->name - 1] = d->device[sizeof d->device - 1] = 0;
        as_board_says(d->name, d->device);
        if (d->quantity < CNR_QUANTITY_ENERGY || d->quantity > CNR_QUANTITY_TEMPERATURE)
            return cnri_fail(err, CNR_E_UNSUPPORTED, name, "domain \"%s\" is of no known quantity",
                             d->name);
        if (d->parent < 0 || d->parent > m->n || d->parent == i + 1) d->parent = 0;
    }
    return CNR_OK;
}

/* Lets a knob describe its domains, and adds what the board says of them. */
static cnr_status describe_knob(cnri_knob_set *k, cnr_error *err) {
    const char *name = k->knob->name;
    k->domains = cnri_alloc_zero(((size_t)k->n + 1) * sizeof *k->domains);
    k->set_ns = cnri_alloc_zero(((size_t)k->n + 1) * sizeof *k->set_ns);
    if (!k->domains || !k->set_ns) return no_memory(err, name);
    for (int32_t i = 0; i < k->n; i++) {
        cnr_knob_domain *d = &k->domains[i];
        d->size = sizeof *d;
        const cnr_status status = cnri_plugin_status(err, k->knob->describe(k->state, i, d, err),
                                                     name, "describing a domain");
        if (status) return status;
        d->name[sizeof d->name - 1] = d->devices[sizeof d->devices - 1] = 0;
        as_board_says(d->name, d->devices);
        if (d->n_steps > 0 && !CNRI_HAS(k->knob, step))
            return cnri_fail(err, CNR_E_UNSUPPORTED, name, "has steps and no hook step");
        if (d->min_hz > d->max_hz || d->n_steps < 0 || d->min_cores < 0 ||
            d->min_cores > d->max_cores)
            return cnri_fail(err, CNR_E_FORMAT, name, "domain \"%s\" has bounds that cross",
                             d->name);
    }
    return CNR_OK;
}

/* Leaves a meter or knob out. It is logged only if the machine has it and it can't be opened. */
static void leave_out(const char *name, cnr_status status, const cnr_error *why) {
    cnri_log(status == CNR_E_NOT_FOUND ? CNR_LOG_DEBUG : CNR_LOG_WARN, name, "left out: %s",
             why->text);
}

/* Checks the number of domains that a plugin says it has. */
static cnr_status counted(const char *name, int32_t n, cnr_error *err) {
    if (n >= 0 && n <= MAX_DOMAINS) return CNR_OK;
    return cnri_fail(err, CNR_E_LIMIT, name, "tells %d domains, want 0 to %d", (int)n, MAX_DOMAINS);
}

/* Opens a meter with all domains; one that is not there is left out. */
static cnr_status open_meter(cnri_gauges *g, const cnr_meter *meter,
                             const cnr_gauge_options *options, cnr_error *err) {
    cnri_meter_set m = {.meter = meter};
    cnr_error why = CNR_ERROR_INIT;
    cnr_status status = cnri_plugin_status(&why, meter->open(options, &m.state, &m.n, &why),
                                           meter->name, "opening it");
    if (status) {
        leave_out(meter->name, status, &why);
        return status == CNR_E_MEMORY ? cnri_fail(err, status, meter->name, "%s", why.text)
                                      : CNR_OK;
    }
    status = counted(meter->name, m.n, &why);
    if (!status) status = describe_meter(&m, &why);
    cnri_meter_set *slot = status ? NULL : cnri_push(&g->meters);
    if (slot) {
        *slot = m;
        return CNR_OK;
    }
    meter->close(m.state);
    cnri_free(m.domains);
    if (status && status != CNR_E_MEMORY) leave_out(meter->name, status, &why);
    return status && status != CNR_E_MEMORY ? CNR_OK : no_memory(err, meter->name);
}

/* Opens a knob with all domains; one that is not there is left out. */
static cnr_status open_knob(cnri_gauges *g, const cnr_knob *knob, const cnr_gauge_options *options,
                            cnr_error *err) {
    cnri_knob_set k = {.knob = knob, .root = g->root};
    cnr_error why = CNR_ERROR_INIT;
    cnr_status status = cnri_plugin_status(&why, knob->open(options, &k.state, &k.n, &why),
                                           knob->name, "opening it");
    if (status) {
        leave_out(knob->name, status, &why);
        return status == CNR_E_MEMORY ? cnri_fail(err, status, knob->name, "%s", why.text) : CNR_OK;
    }
    if (cnri_knob_bring_back(knob, k.state, g->root, &why) < 0)
        cnri_log(CNR_LOG_WARN, knob->name, "%s: %s", why.where, why.text);
    status = counted(knob->name, k.n, &why);
    if (!status) status = describe_knob(&k, &why);
    cnri_knob_set *slot = status ? NULL : cnri_push(&g->knobs);
    if (slot) {
        *slot = k;
        return CNR_OK;
    }
    knob->close(k.state);
    cnri_free(k.domains);
    cnri_free(k.set_ns);
    if (status && status != CNR_E_MEMORY) leave_out(knob->name, status, &why);
    return status && status != CNR_E_MEMORY ? CNR_OK : no_memory(err, knob->name);
}

cnr_status cnri_gauges_open(cnri_gauges *g, const cnr_gauge_options *options, cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    cnr_gauge_options own = {.size = sizeof own};
    cnr_status status = CNR_OK;
    *g = (cnri_gauges){0};
    if (options) memcpy(&own, options, options->size < sizeof own ? options->size : sizeof own);
    own.size = sizeof own;
    if (!own.root) own.root = "/";
    g->root = cnri_strdup(own.root);
    if (!g->root) return no_memory(err, "gauges");
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_METER) && !status; i++)
        status = open_meter(g, cnri_descriptor_at(CNR_KIND_METER, i), &own, err);
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_KNOB) && !status; i++)
        status = open_knob(g, cnri_descriptor_at(CNR_KIND_KNOB, i), &own, err);
    status = cnri_alloc_verdict(before, status, "gauges", err);
    if (status) cnri_gauges_close(g, NULL);
    return status;
}

/* Gives a knob's domains their settings from before, if they were changed. */
static cnr_status restore(cnri_knob_set *k, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    bool touched = false;
    for (int32_t d = 0; d < k->n; d++) touched = touched || k->set_ns[d];
    if (!touched) {
        cnri_knob_kept(k, true);
        return CNR_OK;
    }
    const cnr_status status = cnri_plugin_status(&why, k->knob->restore(k->state, &why),
                                                 k->knob->name, "putting it back");
    cnri_knob_kept(k, !status);
    if (!status) {
        memset(k->set_ns, 0, (size_t)k->n * sizeof *k->set_ns);
        return CNR_OK;
    }
    cnri_log(CNR_LOG_ERROR, k->knob->name, "is not as it was found: %s", why.text);
    return cnri_fail(err, status, k->knob->name, "is not as it was found: %s", why.text);
}

cnr_status cnri_knobs_restore(cnri_gauges *g, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < g->knobs.n; i++) {
        const cnr_status one = restore(&g->knobs.at[i], err);
        if (one) status = one;
    }
    return status;
}

cnr_status cnri_gauges_close(cnri_gauges *g, cnr_error *err) {
    const cnr_status status = cnri_knobs_restore(g, err);
    for (int32_t i = 0; i < g->meters.n; i++) {
        g->meters.at[i].meter->close(g->meters.at[i].state);
        cnri_free(g->meters.at[i].domains);
    }
    for (int32_t i = 0; i < g->knobs.n; i++) {
        cnri_knob_set *k = &g->knobs.at[i];
        k->knob->close(k->state);
        cnri_free(k->domains);
        cnri_free(k->set_ns);
    }
    cnri_vec_free(&g->meters);
    cnri_vec_free(&g->knobs);
    cnri_free(g->root);
    g->root = NULL;
    return status;
}

/* ---- reading and setting ---- */

cnr_status cnri_meter_read(const cnri_meter_set *m, int32_t domain, cnr_reading *out,
                           cnr_error *err) {
    *out = (cnr_reading){.size = sizeof *out, .time_ns = cnri_now_ns()};
    return cnri_plugin_status(err, m->meter->read(m->state, domain, out, err), m->meter->name,
                              "reading it");
}

cnr_status cnri_knob_read(const cnri_knob_set *k, int32_t domain, cnr_knob_state *out,
                          cnr_error *err) {
    *out = (cnr_knob_state){.size = sizeof *out,
                            .load_percent = -1,
                            .cores = -1,
                            .temperature_mc = INT32_MIN,
                            .time_ns = cnri_now_ns()};
    return cnri_plugin_status(err, k->knob->read(k->state, domain, out, err), k->knob->name,
                              "reading it");
}

/* Sets *hz to the highest step within the bounds that is not above it, else to the lowest step
 * there. */
static cnr_status nearest_step(const cnri_knob_set *k, int32_t domain, uint64_t *hz,
                               cnr_error *err) {
    const cnr_knob_domain *d = &k->domains[domain];
    uint64_t best = 0, lowest = UINT64_MAX;
    for (int32_t i = 0; i < d->n_steps; i++) {
        uint64_t at = 0;
        const cnr_status status =
            cnri_plugin_status(err, k->knob->step(k->state, domain, i, &at, err), k->knob->name,
                               "a step");
        if (status) return status;
        if (at < d->min_hz || at > d->max_hz) continue;
        if (at <= *hz && at > best) best = at;
        if (at < lowest) lowest = at;
    }
    *hz = best ? best : lowest;
    return lowest == UINT64_MAX
               ? cnri_fail(err, CNR_E_STATE, d->name, "none of its steps lies within its bounds")
               : CNR_OK;
}

cnr_status cnri_knob_set_to(cnri_knob_set *k, int32_t domain, uint64_t hz, int32_t cores,
                            cnr_error *err) {
    const cnr_knob_domain *d = &k->domains[domain];
    if (!d->is_writable)
        return cnri_fail(err, CNR_E_UNSUPPORTED, d->name, "can't be set here: it is only read");
    if (hz && hz < d->min_hz) hz = d->min_hz;
    if (hz && hz > d->max_hz) hz = d->max_hz;
    if (hz && d->n_steps > 0) {
        const cnr_status status = nearest_step(k, domain, &hz, err);
        if (status) return status;
    }
    if (cores >= 0 && cores < d->min_cores) cores = d->min_cores;
    if (cores > d->max_cores) cores = d->max_cores;
    if (d->max_cores == 0) cores = -1;
    const cnr_status kept = cnri_knob_keep(k, err);
    if (kept) return kept;
    if (k->set_ns[domain])
        cnri_wait_until(k->set_ns[domain] +
                        (uint64_t)(d->period_ms > 0 ? d->period_ms : 0) * 1000000u);
    const uint64_t now = cnri_now_ns();
    k->set_ns[domain] = now ? now : 1;
    return cnri_plugin_status(err, k->knob->set(k->state, domain, hz, cores, err), k->knob->name,
                              "setting it");
}
