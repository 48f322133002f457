/* Data for a policy beside the candidates: the net as measured on each device, costs of
 * dividing, and copies. */
#include "work/place.h"
#include "people/people.h"
#include <math.h>

typedef cnri_place_job job;

/* Adds the word "WHAT@DEVICE@NODE=VALUE"; leaves out what is not known. */
static cnr_status tell(job *j, const char *what, const char *device, const char *node, double value,
                       cnr_error *err) {
    char number[40];
    if (!(value >= 0)) return CNR_OK; /* not known */
    cnri_print_double(number, sizeof number, value);
    char **slot = cnri_push(&j->words);
    if (slot)
        *slot = cnri_format("%s%s%s%s%s=%s", what, device ? "@" : "", device ? device : "",
                            node ? "@" : "", node ? node : "", number);
    return slot && *slot ? CNR_OK : cnri_out_of_memory(err, "place");
}

/* Tells whose time "ns@DEVICE@NODE" is, so that the candidate's row can have it. */
static cnr_status tell_kernel(job *j, const char *device, const cnr_step_timing *s,
                              cnr_error *err) {
    char **slot = cnri_push(&j->words);
    if (slot) *slot = cnri_format("kernel@%s@%s=%s", device, s->node, s->kernel);
    return slot && *slot ? CNR_OK : cnri_out_of_memory(err, "place");
}

/* Tells the policy what running alone took on device d: seconds, joules and steps. */
static cnr_status tell_device(job *j, int32_t d, cnr_error *err) {
    const cnri_place_row *row = &j->out->alone.at[d];
    const char *name = j->names[d];
    cnr_status status = tell(j, "seconds", name, NULL, row->seconds, err);
    if (!status) status = tell(j, "joules", name, NULL, row->joules, err);
    if (!status) status = tell(j, "watts", name, NULL, row->watts, err);
    for (int32_t i = 0; i < j->alone[d].n_steps && !status; i++) {
        const cnr_step_timing *s = &j->alone[d].steps[i];
        if (s->from || strcmp(s->device, name) != 0) continue;
        status = tell(j, "ns", name, s->node, s->ms * 1e6, err);
        if (!status) status = tell(j, "joules", name, s->node, s->joules, err);
        if (!status) status = tell_kernel(j, name, s, err);
    }
    return status;
}

/* ---- steps as they are in the whole net ---- */

/* Sum in ms of all step times after changing each by `more`, where none falls below `share` of
 * itself; *n: number of steps, copies left out. */
static double sum_of(const cnr_timing *t, double more, double share, int32_t *n) {
    double ms = 0;
    *n = 0;
    for (int32_t i = 0; i < t->n_steps; i++)
        if (!t->steps[i].from) {
            ms += fmax(t->steps[i].ms + more, share * t->steps[i].ms);
            ++*n;
        }
    return ms;
}

/* Milliseconds that each step of a device with a queue waits when it is timed by itself; the whole
 * net waits only once. Negative on other devices, where the whole takes longer than its steps, by
 * calls and copies. *share: the part of its time that each step keeps at least. */
static double waited_of(const cnr_timing *t, double *share) {
    int32_t n;
    const double sum = sum_of(t, 0, 1, &n);
    *share = 0.5 * fmin(1, t->ms_median / sum);
    if (n == 0 || t->ms_median >= sum) return n ? (sum - t->ms_median) / n : 0;
    double low = 0, high = sum;
    for (int32_t i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (sum_of(t, -middle, *share, &n) > t->ms_median) low = middle;
        else high = middle;
    }
    return high;
}

/* Changes the steps so that together they take the time and joules of the whole net. Returns the
 * ns by which each became shorter. */
static double settle(cnr_timing *t) {
    double share;
    const double waited = waited_of(t, &share), idle = t->energy ? t->energy->idle_watts : NAN;
    for (int32_t i = 0; i < t->n_steps; i++) {
        cnr_step_timing *s = &t->steps[i];
        if (s->from) continue;
        const double ms = fmax(s->ms - waited, share * s->ms);
        if (t->joules_by && strcmp(t->joules_by, "time") == 0)
            s->joules = t->energy->joules * ms / t->ms_median;
        else if (idle > 0) s->joules -= idle * (s->ms - ms) * 1e-3;
        s->ms = ms;
    }
    return fmax(0, waited) * 1e6;
}

/* ---- what a division costs ---- */

/* A part of a layer: the device's time for the whole layer, the part's share, and the time
 * beyond that. */
typedef struct part {
    double whole_ns, share, more_ns, more_joules, watts;
} part;

/* Reads what a part of a divided step took. False: the step is no usable part. */
static bool read_part(const job *j, const cnr_step_timing *s, int32_t d, part *out) {
    if (s->from || strcmp(s->device, j->names[d]) != 0) return false;
    const cnr_step_timing *whole = cnri_place_step_of(&j->alone[d], s->node, j->names[d]);
    if (!whole || whole->flops <= 0 || s->flops <= 0 || s->flops > 0.99 * whole->flops)
        return false;
    const cnr_energy *e = j->divided.energy;
    const double idle = e && e->idle_watts > 0 ? e->idle_watts : 0, share = s->flops / whole->flops;
    const double joules = whole->joules - idle * whole->ms * 1e-3;
    *out = (part){whole->ms * 1e6, share, (s->ms - share * whole->ms) * 1e6, NAN,
                  joules / (whole->ms * 1e-3)};
    if (e) out->more_joules = s->joules - idle * s->ms * 1e-3 - share * joules;
    return true;
}

/* Ns of a layer's time that no share reduces: the median slope between any two of n parts. scratch:
 * room for n * n numbers. */
static double launch_of(const part *parts, int32_t n, double *scratch) {
    int32_t pairs = 0;
    double minimum = INFINITY;
    for (int32_t i = 0; i < n; i++) {
        minimum = fmin(minimum, parts[i].whole_ns);
        for (int32_t k = 0; k < i; k++) {
            const double apart = parts[k].share - parts[i].share;
            if (fabs(apart) > 0.05)
                scratch[pairs++] = (parts[i].more_ns - parts[k].more_ns) / apart;
        }
    }
    return pairs ? fmin(fmax(0, cnri_median(scratch, pairs)), minimum) : 0;
}

/* Computes the costs of dividing for device d, by the present step times. False: no part was
 * measured. */
static bool divide(const job *j, int32_t d, cnri_place_division *out, cnr_error *err,
                   cnr_status *status) {
    enum { MOST = 512 };
    const cnr_timing *t = &j->divided;
    part *parts = cnri_alloc(MOST * sizeof *parts);
    double *scratch = cnri_alloc((size_t)MOST * MOST / 2 * sizeof *scratch);
    int32_t n = 0, m = 0;
    *status = parts && scratch ? CNR_OK : cnri_out_of_memory(err, "place");
    for (int32_t i = 0; i < t->n_steps && !*status && n < MOST; i++)
        n += read_part(j, &t->steps[i], d, &parts[n]);
    *out = (cnri_place_division){0, 0, NAN};
    if (n) {
        out->launch_ns = launch_of(parts, n, scratch);
        for (int32_t i = 0; i < n; i++)
            scratch[i] = parts[i].more_ns - out->launch_ns * (1 - parts[i].share);
        out->split_ns = fmax(0, cnri_median(scratch, n));
    }
    for (int32_t i = 0; i < n; i++) {
        const double launched = parts[i].watts * out->launch_ns * 1e-9 * (1 - parts[i].share);
        if (isfinite(parts[i].more_joules)) scratch[m++] = parts[i].more_joules - launched;
    }
    if (m) out->split_joules = fmax(0, cnri_median(scratch, m));
    cnri_free(parts);
    cnri_free(scratch);
    return n > 0;
}

/* Tells the policy what dividing costs on device d, if that can be computed: launch_ns, split_ns
 * and split_joules. */
static cnr_status tell_division(job *j, int32_t d, cnr_error *err) {
    cnri_place_division of;
    cnr_status status;
    if (!divide(j, d, &of, err, &status)) return status;
    if (of.split_joules >= 0) j->division[d].split_joules = of.split_joules;
    status = tell(j, "launch_ns", j->names[d], NULL, of.launch_ns, err);
    if (!status) /* as copies have it */
        status =
            tell(j, "split_ns", j->names[d], NULL, fmax(0, of.split_ns - j->waited_ns[d]), err);
    return status ? status : tell(j, "split_joules", j->names[d], NULL, of.split_joules, err);
}

/* The divided net's time beyond its steps, as devices wait for each other, for each copy. */
static cnr_status tell_waits(job *j, cnr_error *err) {
    const cnr_timing *t = &j->divided;
    double ms = 0, maximum = 0;
    int32_t copies = 0;
    const char *node = "";
    for (int32_t i = 0; i < t->n_steps; i++) {
        const cnr_step_timing *s = &t->steps[i];
        if (s->from) {
            copies++;
            ms += s->ms;
            continue;
        }
        if (strcmp(node, s->node) != 0) {
            ms += maximum; /* parts of a node run at the same time */
            maximum = 0;
        }
        node = s->node;
        maximum = fmax(maximum, s->ms);
    }
    const double more = (t->ms_median - ms - maximum) * 1e6;
    return copies && more > 0 ? tell(j, "wait_ns", NULL, NULL, more / copies, err) : CNR_OK;
}

/* ---- links ---- */

/* Measures transfers between all pairs of devices, of few and of many bytes, into j->links: fixed
 * ns, and ns of a byte. */
static cnr_status measure_links(job *j, cnr_error *err) {
    enum { FEW = CNRI_TUNING_BYTES_LESS, MANY = CNRI_TUNING_BYTES_MORE };
    const cnr_device *open[CNRI_PLACE_DEVICES];
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < j->n && !status; i++) {
        status = cnri_device_open(&j->model->rt->devices, j->names[i], &open[i], err);
        if (!status) j->in_host[i] = (open[i]->memory[0].flags & CNR_MEMORY_HOST) != 0;
    }
    for (int32_t a = 0; a < j->n; a++)
        for (int32_t b = 0; b < j->n && !status; b++) {
            double less, more;
            if (a == b) continue;
            status = cnri_copy_ns(open[a], open[b], FEW, &less, err);
            if (!status) status = cnri_copy_ns(open[a], open[b], MANY, &more, err);
            if (status) return status;
            const double byte = fmax(0, (more - less) / (MANY - FEW));
            j->links[a][b] = (cnri_place_link){fmax(0, less - byte * FEW), byte};
        }
    return status;
}

/* Adds "copy_ns@A@B", the cost of any copy, and "byte_ns@A@B", of each byte. After a copy the
 * queue starts anew. */
static cnr_status tell_links(job *j, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t a = 0; a < j->n; a++)
        for (int32_t b = 0; b < j->n && !status; b++) {
            if (a == b) continue;
            status = tell(j, "byte_ns", j->names[a], j->names[b], j->links[a][b].byte_ns, err);
            if (!status)
                status = tell(j, "copy_ns", j->names[a], j->names[b],
                              j->links[a][b].fixed_ns + j->waited_ns[b], err);
        }
    return status;
}

/* ---- for the prediction, before steps are changed to what they take in the whole net ---- */

/* Joules above idle of all copies; *bytes: what they moved. */
static double sum_copies(const cnr_timing *t, double idle, double *bytes) {
    double joules = 0;
    for (int32_t i = 0; i < t->n_steps; i++) {
        const cnr_step_timing *s = &t->steps[i];
        if (!s->from || !isfinite(s->joules)) continue;
        joules += fmax(0, s->joules - idle * s->ms * 1e-3);
        *bytes += (double)s->bytes;
    }
    return joules;
}

/* Keeps the devices' step times in ns as they were measured, and computes from them divisions,
 * joules of a copied byte and transfers. */
static cnr_status keep_raw(job *j, cnr_error *err) {
    cnr_status status = CNR_OK;
    const cnr_energy *e = j->alone[0].energy;
    const double idle = e && e->idle_watts > 0 ? e->idle_watts : 0;
    double bytes = 0, joules = sum_copies(&j->divided, idle, &bytes);
    for (int32_t d = 0; d < j->n && !status; d++) {
        const cnr_timing *t = &j->alone[d];
        j->raw_ns[d] = cnri_alloc(((size_t)t->n_steps + 1) * sizeof *j->raw_ns[d]);
        if (!j->raw_ns[d]) return cnri_out_of_memory(err, "place");
        for (int32_t i = 0; i < t->n_steps; i++) j->raw_ns[d][i] = t->steps[i].ms * 1e6;
        joules += sum_copies(t, idle, &bytes);
        divide(j, d, &j->division[d], err, &status);
        if (!(j->division[d].split_joules >= 0)) j->division[d].split_joules = 0;
    }
    j->byte_joules = bytes > 0 ? joules / bytes : 0;
    if (!status) status = measure_links(j, err);
    return status ? status : cnri_place_settle(j, err);
}

cnr_status cnri_place_tell(job *j, cnr_error *err) {
    const cnr_energy *e = j->alone[0].energy;
    cnr_status status = keep_raw(j, err);
    if (!status && e && e->source) status = tell(j, "idle_watts", NULL, NULL, e->idle_watts, err);
    for (int32_t d = 0; d < j->n && !status; d++) j->waited_ns[d] = settle(&j->alone[d]);
    for (int32_t d = 0; d < j->n && !status; d++) status = tell_device(j, d, err);
    if (!status) status = tell_links(j, err);
    for (int32_t d = 0; d < j->n && !status && j->divided.n_steps; d++)
        status = tell_division(j, d, err);
    if (!status && j->divided.n_steps) status = tell_waits(j, err);
    /* The last setting of a name counts. */
    for (const char *const *at = j->o->settings; at && *at && !status; at++) {
        char **slot = cnri_push(&j->words);
        if (!slot || !(*slot = cnri_strdup(*at))) status = cnri_out_of_memory(err, "place");
    }
    if (!status && !cnri_push(&j->words))
        status = cnri_out_of_memory(err, "place"); /* the final NULL */
    return status;
}
