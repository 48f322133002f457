/* Knobs with two attributes, minimum and maximum: keeps the values found, sets both within them,
 * reads back, restores. */
#include "bounds.h"
#include <cnnrun/kit.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- finding ---- */

bounds_domain *bounds_add(bounds *list, const char *name, double unit, cnr_error *err) {
    bounds_domain **at = gauge_host->resize(list->at, (size_t)(list->n + 1) * sizeof *at);
    if (at) list->at = at;
    bounds_domain *d = at ? gauge_host->alloc(sizeof *d) : NULL;
    if (!d) {
        gauge_host->fail(err, CNR_E_MEMORY, name, "out of memory");
        return NULL;
    }
    memset(d, 0, sizeof *d);
    d->domain.size = sizeof d->domain;
    snprintf(d->domain.name, sizeof d->domain.name, "%.60s", name);
    d->unit = unit;
    d->now.fd = d->temperature.fd = d->loads[0].fd = d->loads[1].fd = -1;
    list->at[list->n++] = d;
    return d;
}

void bounds_step(bounds_domain *d, double hz) {
    const uint64_t step = hz > 0 && hz < 1e15 ? (uint64_t)(hz + 0.5) : 0;
    int32_t i = d->domain.n_steps;
    if (step == 0 || i == BOUNDS_STEPS) return;
    while (i > 0 && d->steps[i - 1] > step) i--;
    if (i > 0 && d->steps[i - 1] == step) return;
    memmove(&d->steps[i + 1], &d->steps[i], (size_t)(d->domain.n_steps - i) * sizeof *d->steps);
    d->steps[i] = step;
    d->domain.n_steps++;
}

void bounds_steps_of(bounds_domain *d, const char *text) {
    double value;
    while (text += strspn(text, " \t\r\n"), gauge_host->parse_number(text, &text, &value))
        bounds_step(d, value * d->unit);
}

/* A frequency in Hz from a file's text, a number in the domain's unit or a level; 0: invalid. */
static uint64_t hz_of(const bounds_domain *d, const char *text) {
    const char *end;
    double value;
    if (!gauge_host->parse_number(text, &end, &value) || !(value >= 0) || value > 1e15) return 0;
    if (!d->levels) return (uint64_t)(value * d->unit + 0.5);
    const int32_t level = (int32_t)value, n = d->domain.n_steps;
    return value < n ? d->steps[n - 1 - level] : 0;
}

/* A frequency as the file wants it: in its unit, or as index of a step. */
static void text_of(const bounds_domain *d, uint64_t hz, char out[32]) {
    if (!d->levels) {
        snprintf(out, 32, "%llu", (unsigned long long)((double)hz / d->unit + 0.5));
        return;
    }
    int32_t level = d->domain.n_steps - 1;
    for (int32_t i = 0; i < d->domain.n_steps; i++)
        if (d->steps[i] <= hz) level = d->domain.n_steps - 1 - i;
    snprintf(out, 32, "%d", (int)level);
}

/* Fills *file with the path and present text of folder/name; 0: there is no such file. */
static int name_file(bounds_file *file, const char *folder, const char *name) {
    gauge_file look;
    gauge_name(&look, folder, name);
    if (!gauge_is_there(&look)) return 0;
    memcpy(file->path, look.path, sizeof file->path);
    gauge_look(folder, name, file->found, sizeof file->found);
    return 1;
}

/* Takes the values found as bounds. Steps outside are listed but never set. 0: invalid. */
static int take_bounds(bounds_domain *d) {
    int32_t on = d->fixed_cores;
    GAUGE_EACH(i, d->n_cores) on += *d->cores[i].found == '1';
    d->domain.max_cores = d->n_cores ? on : 0;
    d->domain.min_cores = d->n_cores ? 1 : 0;
    d->domain.min_hz = hz_of(d, d->least.found);
    d->domain.max_hz = hz_of(d, d->most.found);
    if (d->domain.max_hz > 0 && d->domain.min_hz <= d->domain.max_hz) {
        d->domain.is_writable = access(d->least.path, W_OK) == 0 && access(d->most.path, W_OK) == 0;
        return 1;
    }
    d->domain.is_writable = 0;
    d->domain.min_hz = d->domain.n_steps ? d->steps[0] : 0;
    d->domain.max_hz = d->domain.n_steps ? d->steps[d->domain.n_steps - 1] : 0;
    return 0;
}

int bounds_files(bounds_domain *d, const char *folder, const char *least, const char *most) {
    name_file(&d->least, folder, least);
    name_file(&d->most, folder, most);
    return take_bounds(d);
}

cnr_status bounds_open(const char *what, const cnr_gauge_options *options,
                       cnr_status (*find)(bounds *list, cnr_error *err), void **state, int32_t *n,
                       cnr_error *err) {
    bounds *list = gauge_state(sizeof *list, what, err);
    if (!list) return CNR_E_MEMORY;
    snprintf(list->root, sizeof list->root, "%s", options->root);
    cnr_status status = find(list, err);
    if (!status && list->n == 0)
        status = gauge_host->fail(err, CNR_E_NOT_FOUND, what, "this machine has none");
    return gauge_state_opened(status, list, &list->n, bounds_close, state, n);
}

/* Closes all files and frees the list. */
void bounds_close(void *state) {
    bounds *list = state;
    GAUGE_EACH(i, list->n) {
        bounds_domain *d = list->at[i];
        gauge_close(&d->now);
        gauge_close(&d->temperature);
        gauge_close(&d->loads[0]);
        gauge_close(&d->loads[1]);
        gauge_host->free(d->own);
        gauge_host->free(d->cores);
        gauge_host->free(d);
    }
    gauge_host->free(list->at);
    gauge_host->free(list);
}

/* ---- reading ---- */

static bounds_domain *at(void *state, int32_t domain) { return ((bounds *)state)->at[domain]; }

cnr_status bounds_describe(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err) {
    (void)err;
    return gauge_tell(out, &at(state, domain)->domain, sizeof *out);
}

cnr_status bounds_step_at(void *state, int32_t domain, int32_t index, uint64_t *hz,
                          cnr_error *err) {
    (void)err;
    *hz = at(state, domain)->steps[index];
    return CNR_OK;
}

/* Number of the clock's cores that are on, read from their files; those without a switch are. */
static int32_t cores_on(const bounds_domain *d) {
    int32_t n = d->fixed_cores;
    GAUGE_EACH(i, d->n_cores) {
        char text[8];
        gauge_file file = {.fd = -1};
        memcpy(file.path, d->cores[i].path, sizeof file.path);
        if (gauge_read_text(&file, text, sizeof text, NULL) == CNR_OK) n += *text == '1';
        gauge_close(&file);
    }
    return n;
}

cnr_status bounds_read(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err) {
    bounds_domain *d = at(state, domain);
    double value;
    CNR_TRY(gauge_read_number(&d->now, &value, err));
    out->hz = value > 0 && value < 1e15 ? (uint64_t)(value * d->unit + 0.5) : 0;
    if (d->load) d->load(state, d, out);
    if (d->domain.max_cores) out->cores = cores_on(d);
    if (*d->temperature.path && gauge_read_number(&d->temperature, &value, NULL) == CNR_OK &&
        value > -1e6 && value < 1e6)
        out->temperature_mc = (int32_t)value;
    return CNR_OK;
}

/* ---- setting ---- */

/* The present value of a bound, which another process or the kernel may have changed. 0:
 * unreadable. */
static uint64_t bound_now(const bounds_domain *d, const bounds_file *f) {
    char text[GAUGE_TEXT];
    gauge_file file = {.fd = -1};
    memcpy(file.path, f->path, sizeof file.path);
    const cnr_status status = gauge_read_text(&file, text, sizeof text, NULL);
    gauge_close(&file);
    return status ? 0 : hz_of(d, text);
}

/* Sets both bounds to hz, in the order that keeps minimum <= maximum. If the maximum ends below hz,
 * the kernel has limited it (heat), which is accepted; if above, the write was refused. */
static cnr_status set_hz(bounds_domain *d, uint64_t hz, cnr_error *err) {
    char text[32];
    text_of(d, hz, text);
    const int raise = hz > bound_now(d, &d->most);
    CNR_TRY(gauge_write_text(raise ? d->most.path : d->least.path, text, err));
    CNR_TRY(gauge_write_text(raise ? d->least.path : d->most.path, text, err));
    const uint64_t is = bound_now(d, &d->most);
    if (is <= hz) return CNR_OK;
    return gauge_host->fail(err, CNR_E_STATE, d->most.path, "was set to %s, and is %llu Hz still",
                            text, (unsigned long long)is);
}

/* Switches on the first `cores` of those that were found on, and the others of these off. */
static cnr_status set_cores(bounds_domain *d, int32_t cores, cnr_error *err) {
    int32_t on = d->fixed_cores;
    GAUGE_EACH(i, d->n_cores) {
        if (*d->cores[i].found != '1') continue;
        CNR_TRY(gauge_write_text(d->cores[i].path, on++ < cores ? "1" : "0", err));
    }
    return CNR_OK;
}

cnr_status bounds_set(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err) {
    bounds_domain *d = at(state, domain);
    if (hz) CNR_TRY(set_hz(d, hz, err));
    return cores >= 0 && d->n_cores ? set_cores(d, cores, err) : CNR_OK;
}

/* ---- putting back ---- */

/* Restores the values found. They are wider, so the maximum comes first; once more if a narrow
 * minimum prevented it. */
static cnr_status restore(const bounds_domain *d, cnr_error *err) {
    cnr_status status = CNR_OK;
    GAUGE_EACH(i, d->n_cores) {
        const cnr_status one = gauge_write_text(d->cores[i].path, d->cores[i].found, err);
        if (one) status = one;
    }
    if (!d->domain.is_writable) return status;
    const cnr_status first = gauge_write_text(d->most.path, d->most.found, NULL);
    const cnr_status least = gauge_write_text(d->least.path, d->least.found, err);
    const cnr_status again = first ? gauge_write_text(d->most.path, d->most.found, err) : CNR_OK;
    return least ? least : again ? again : status;
}

cnr_status bounds_restore(void *state, cnr_error *err) {
    bounds *list = state;
    cnr_status status = CNR_OK;
    GAUGE_EACH(i, list->n) {
        const cnr_status one = restore(list->at[i], err);
        if (one) status = one;
    }
    return status;
}

void bounds_restore_now(void *state) {
    bounds *list = state;
    GAUGE_EACH(i, list->n) {
        const bounds_domain *d = list->at[i];
        GAUGE_EACH(c, d->n_cores) gauge_order(d->cores[c].path, d->cores[c].found);
        if (!d->domain.is_writable) continue;
        const int failed = gauge_order(d->most.path, d->most.found);
        gauge_order(d->least.path, d->least.found);
        if (failed) gauge_order(d->most.path, d->most.found);
    }
}

/* Appends the line "VALUE PATH" of an attribute to the text of n characters, as far as room goes;
 * returns the new length, which may exceed room. */
static int32_t put_line(char *text, size_t room, int32_t n, const bounds_file *f) {
    const size_t used = (size_t)n < room ? (size_t)n : room;
    return n + snprintf(text + used, room - used, "%s %s\n", f->found, f->path);
}

int32_t bounds_found(void *state, char *text, size_t room) {
    bounds *list = state;
    int32_t n = 0;
    GAUGE_EACH(i, list->n) {
        const bounds_domain *d = list->at[i];
        GAUGE_EACH(c, d->n_cores) n = put_line(text, room, n, &d->cores[c]);
        if (!d->domain.is_writable) continue;
        n = put_line(text, room, n, &d->most);
        n = put_line(text, room, n, &d->least);
    }
    return n;
}

/* Finds our file that the n bytes at `path` name, so that no line can write another one; NULL:
 * none. */
static bounds_file *file_of(const bounds *list, const char *path, size_t n) {
    GAUGE_EACH(i, list->n) {
        bounds_domain *d = list->at[i];
        bounds_file *own[2] = {&d->least, &d->most};
        GAUGE_EACH(k, 2)
        if (*own[k]->path && strlen(own[k]->path) == n && memcmp(own[k]->path, path, n) == 0)
            return own[k];
        GAUGE_EACH(c, d->n_cores)
        if (strlen(d->cores[c].path) == n && memcmp(d->cores[c].path, path, n) == 0)
            return &d->cores[c];
    }
    return NULL;
}

cnr_status bounds_bring_back(void *state, const char *text, cnr_error *err) {
    bounds *list = state;
    int is_whole = 1;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t value = strcspn(line, " \n"), all = strcspn(line, "\n");
        if (value == all) is_whole = 0;
        bounds_file *f = value < all && value < sizeof f->found
                             ? file_of(list, line + value + 1, all - value - 1)
                             : NULL;
        if (!f) continue; /* a file that no longer exists */
        memcpy(f->found, line, value);
        f->found[value] = 0;
    }
    GAUGE_EACH(i, list->n) take_bounds(list->at[i]);
    CNR_TRY(bounds_restore(list, err));
    if (is_whole) return CNR_OK;
    return gauge_host->fail(err, CNR_E_FORMAT, "the saved state",
                            "lines of a value and a file are "
                            "wanted; the others were restored");
}
