/* Meters and knobs: judges that their readings are plausible, and that settings read back. */
#include "conform/judging.h"
#include <cnnrun/cnnrun.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_DOMAINS = 64, READINGS = 5 };

/* Options for opening meters and knobs: folder of /sys, "/" by default, and address. */
static cnr_gauge_options options_of(const cnri_judging *j) {
    const char *root = j->o->sysfs_root;
    return (cnr_gauge_options){.size = sizeof(cnr_gauge_options),
                               .root = root && *root ? root : "/",
                               .address = j->o->meter_address};
}

/* A reading as the engine presets it before a plugin's read: value 0, time now. */
static cnr_reading blank_reading(void) {
    return (cnr_reading){.size = sizeof(cnr_reading), .time_ns = cnri_now_ns()};
}
/* Knob state as the engine presets it before a plugin's read: load, cores and temperature unknown,
 * frequency 0, time now. */
static cnr_knob_state blank_state(void) {
    return (cnr_knob_state){.size = sizeof(cnr_knob_state),
                            .load_percent = -1,
                            .cores = -1,
                            .temperature_mc = INT32_MIN,
                            .time_ns = cnri_now_ns()};
}

/* Judges the answer of open. Having no domains is fine; having some that are not counted is not.
 * True: go on; else *verdict is the result. */
static bool has_opened(cnri_judging *j, cnr_status status, int32_t n, const cnr_error *err,
                       bool *verdict) {
    *verdict = true;
    if (status == CNR_E_NOT_FOUND && j->o->sysfs_root) { /* a tree that was made for it */
        *verdict = cnri_judging_fail(j, "nothing below --sysfs-root: %.300s", err->text);
        return false;
    }
    if (status == CNR_E_NOT_FOUND) {
        *verdict = cnri_judging_spoke(j, "open", status, err) &&
                   cnri_judging_skip(j, "this machine has none: %.300s", err->text);
        return false;
    }
    if (!cnri_judging_ok(j, "open", status, err)) return *verdict = false;
    if (n >= 1 && n <= MOST_DOMAINS) return true;
    return *verdict = cnri_judging_fail(j, "open found %d domains", (int)n);
}

/* True if no earlier domain has the name of domain n. */
static bool is_new_name(cnri_judging *j, char names[][64], int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (strcmp(names[i], names[n]) == 0)
            return cnri_judging_fail(j, "domains %d and %d are both called \"%s\"", (int)i, (int)n,
                                     names[n]);
    return true;
}

/* ---- meters ---- */

/* False, with a finding: what meter m says of domain n is malformed. */
static bool judge_meter_domain(cnri_judging *j, const cnr_meter_domain *d, int32_t n) {
    if (!cnri_judging_name(j, "name of a domain", d->name, sizeof d->name)) return false;
    if (!memchr(d->device, 0, sizeof d->device)) return cnri_judging_fail(j, "feeds has no end");
    if (d->quantity < CNR_QUANTITY_ENERGY || d->quantity > CNR_QUANTITY_TEMPERATURE)
        return cnri_judging_fail(j, "%s: quantity %d is none", d->name, (int)d->quantity);
    if (d->period_ms < 0)
        return cnri_judging_fail(j, "%s: period_ms is %d", d->name, (int)d->period_ms);
    if ((d->is_estimated | d->is_whole_machine) & ~1)
        return cnri_judging_fail(j, "%s: is_estimated and is_whole_machine are 0 or 1", d->name);
    if (d->parent < 0 || d->parent > n)
        return cnri_judging_fail(j, "%s: within %d, and there are %d domains", d->name,
                                 (int)d->parent, (int)n);
    return true;
}

/* False, with a finding: two consecutive readings of a domain are implausible. */
static bool judge_reading(cnri_judging *j, const cnr_meter_domain *d, const cnr_reading *was,
                          const cnr_reading *is, uint64_t now) {
    const long long value = (long long)is->value;
    if (d->quantity == CNR_QUANTITY_TEMPERATURE && (value < -273150 || value > 400000))
        return cnri_judging_fail(j, "%s reads %.3f degrees Celsius", d->name, (double)value * 1e-3);
    if (d->quantity == CNR_QUANTITY_POWER && (value < 0 || value > INT64_C(100000000000)))
        return cnri_judging_fail(j, "%s reads %.6g watts", d->name, (double)value * 1e-6);
    if (is->time_ns > now)
        return cnri_judging_fail(j, "%s was read %llu ns from now", d->name,
                                 (unsigned long long)(is->time_ns - now));
    if (was && is->time_ns < was->time_ns)
        return cnri_judging_fail(j, "%s: a reading is older than the one before", d->name);
    if (d->quantity != CNR_QUANTITY_ENERGY) return true;
    if (value < 0 || (d->wraps_at && (uint64_t)value >= d->wraps_at))
        return cnri_judging_fail(j, "%s reads %lld microjoules; it wraps at %llu", d->name, value,
                                 (unsigned long long)d->wraps_at);
    if (was && !d->wraps_at && is->value < was->value)
        return cnri_judging_fail(j, "%s: energy fell from %lld to %lld microjoules and never wraps",
                                 d->name, (long long)was->value, value);
    return true;
}

/* Takes some readings of a domain; false, with a finding: time or counters go back. */
static bool judge_readings(cnri_judging *j, const cnr_meter *m, void *state, int32_t domain,
                           const cnr_meter_domain *d) {
    cnr_reading was, is;
    for (int32_t i = 0; i < READINGS; i++) {
        cnr_error err = CNR_ERROR_INIT;
        is = blank_reading();
        cnri_judging_case(j, "reading %s", d->name);
        const cnr_status status = m->read(state, domain, &is, &err);
        if (!cnri_judging_spoke(j, "read", status, &err)) return false;
        if (status) return true; /* a sensor that can't be read is an error, and says so */
        if (!judge_reading(j, d, i ? &was : NULL, &is, cnri_now_ns())) return false;
        was = is;
    }
    return true;
}

/* Judges all n domains of an open meter: descriptions, unique names and readings; false, with a
 * finding. */
static bool judge_meter_state(cnri_judging *j, const cnr_meter *m, void *state, int32_t n) {
    static char names[MOST_DOMAINS][64];
    for (int32_t i = 0; i < n; i++) {
        cnr_error err = CNR_ERROR_INIT;
        cnr_meter_domain d = {.size = sizeof d};
        cnri_judging_case(j, "describing domain %d", (int)i);
        if (!cnri_judging_ok(j, "describe", m->describe(state, i, &d, &err), &err)) return false;
        if (!judge_meter_domain(j, &d, n)) return false;
        memcpy(names[i], d.name, sizeof d.name);
        if (!is_new_name(j, names, i) || !judge_readings(j, m, state, i, &d)) return false;
    }
    return true;
}

/* Judges a meter's domains and readings. False: a finding says why it isn't so. */
bool cnri_judge_meter(cnri_judging *j) {
    const cnr_meter *m = j->descriptor;
    const cnr_gauge_options options = options_of(j);
    bool good = true;
    for (int32_t turn = 0; turn < 2 && good && !j->is_skipped; turn++) { /* opened again, too */
        cnr_error err = CNR_ERROR_INIT;
        void *state = NULL;
        int32_t n = 0;
        cnri_judging_case(j, "open");
        const cnr_status status = m->open(&options, &state, &n, &err);
        if (!has_opened(j, status, n, &err, &good)) return good;
        good = judge_meter_state(j, m, state, n);
        m->close(state);
    }
    return good;
}

/* ---- below a root where nothing is ---- */

/* Judges what open (reads: of a meter or knob that looked below the root) says where there is
 * nothing to measure: CNR_E_NOT_FOUND is right. False, with a finding. */
static bool is_absent(cnri_judging *j, cnr_status status, bool reads, const cnr_error *err) {
    if (status == CNR_OK && !reads)
        return cnri_judging_fail(j, "where nothing can be read, open succeeds; CNR_E_NOT_FOUND is "
                                    "right");
    if (status == CNR_OK)
        return cnri_judging_skip(j, "it looks below no root: it is there all the same");
    if (!cnri_judging_spoke(j, "open", status, err)) return false;
    return status == CNR_E_NOT_FOUND ||
           cnri_judging_fail(j, "where no sensor is, open says \"%s\"; CNR_E_NOT_FOUND is right",
                             cnr_status_text(status));
}

/* Makes an empty folder; false: it can't. */
static bool make_empty(cnri_judging *j, char *folder, size_t room) {
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, room, "%s/cnnrun-empty-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    if (!mkdtemp(folder)) return cnri_judging_fail(j, "%s: no folder can be made", folder);
    char inside[600];
    snprintf(inside, sizeof inside, "%s/none", folder);
    cnri_work_tell("temp", 0, inside);
    return true;
}

/* Judges that open fails below an empty folder, where there is nothing to measure. False: a finding
 * says why it isn't so. */
bool cnri_judge_meter_absent(cnri_judging *j) {
    const cnr_meter *m = j->descriptor;
    char folder[512];
    cnr_error err = CNR_ERROR_INIT;
    void *state = NULL;
    int32_t n = 0;
    if (!make_empty(j, folder, sizeof folder)) return false;
    const cnr_gauge_options options = {.size = sizeof options, .root = folder};
    cnri_judging_case(j, "open below an empty folder");
    const cnr_status status = m->open(&options, &state, &n, &err);
    cnr_reading reading = {.size = sizeof reading};
    const bool reads = status == CNR_OK && n > 0 && m->read(state, 0, &reading, &err) == CNR_OK;
    if (status == CNR_OK) m->close(state);
    rmdir(folder);
    return is_absent(j, status, reads, &err);
}

/* Judges that open fails below an empty folder, where there is no knob. False: a finding says why
 * it isn't so. */
bool cnri_judge_knob_absent(cnri_judging *j) {
    const cnr_knob *k = j->descriptor;
    char folder[512];
    cnr_error err = CNR_ERROR_INIT;
    void *state = NULL;
    int32_t n = 0;
    if (!make_empty(j, folder, sizeof folder)) return false;
    const cnr_gauge_options options = {.size = sizeof options, .root = folder};
    cnri_judging_case(j, "open below an empty folder");
    const cnr_status status = k->open(&options, &state, &n, &err);
    cnr_knob_state is = blank_state();
    const bool reads = status == CNR_OK && n > 0 && k->read(state, 0, &is, &err) == CNR_OK;
    if (status == CNR_OK) k->close(state);
    rmdir(folder);
    return is_absent(j, status, reads, &err);
}

/* ---- knobs ---- */

/* An open knob and its domains. */
typedef struct knob {
    cnri_judging *j;
    const cnr_knob *k;
    void *state;
    cnr_knob_domain domains[MOST_DOMAINS];
    int32_t n;
} knob;

/* False, with a finding: what a knob says of a domain is malformed. */
static bool judge_knob_domain(cnri_judging *j, const cnr_knob_domain *d) {
    if (!cnri_judging_name(j, "name of a domain", d->name, sizeof d->name)) return false;
    if (!memchr(d->devices, 0, sizeof d->devices)) return cnri_judging_fail(j, "feeds has no end");
    if (d->min_hz > d->max_hz)
        return cnri_judging_fail(j, "%s: min_hz %llu is above max_hz %llu", d->name,
                                 (unsigned long long)d->min_hz, (unsigned long long)d->max_hz);
    if (d->is_writable & ~1) return cnri_judging_fail(j, "%s: is_writable is 0 or 1", d->name);
    if (d->is_writable && !d->n_steps && !d->max_cores && (!d->min_hz || !d->max_hz))
        return cnri_judging_fail(j, "%s: it can be set, and has no bounds: %llu to %llu Hz",
                                 d->name, (unsigned long long)d->min_hz,
                                 (unsigned long long)d->max_hz);
    if (d->n_steps < 0 || d->period_ms < 0 || d->max_cores < 0 || d->min_cores < 0 ||
        (d->max_cores && d->min_cores > d->max_cores))
        return cnri_judging_fail(j, "%s: steps, period or cores are out of range", d->name);
    return true;
}

/* Frequency of step `index` of a domain. False: it failed. */
static bool step_of(const knob *k, int32_t domain, int32_t index, uint64_t *hz) {
    cnr_error err = CNR_ERROR_INIT;
    if (!CNRI_HAS(k->k, step)) return cnri_judging_fail(k->j, "it has steps, and no step");
    return cnri_judging_ok(k->j, "step", k->k->step(k->state, domain, index, hz, &err), &err);
}

/* False, with a finding: the frequency steps of a domain don't rise. */
static bool judge_steps(const knob *k, int32_t domain) {
    const cnr_knob_domain *d = &k->domains[domain];
    uint64_t was = 0, hz = 0;
    for (int32_t i = 0; i < d->n_steps; i++, was = hz) {
        if (!step_of(k, domain, i, &hz)) return false;
        if (hz <= was)
            return cnri_judging_fail(k->j, "%s: step %d is %llu Hz, behind %llu: steps rise",
                                     d->name, (int)i, (unsigned long long)hz,
                                     (unsigned long long)was);
    }
    return true;
}

/* Reads a domain and judges the state. False: it failed. */
static bool read_knob(const knob *k, int32_t domain, cnr_knob_state *out) {
    cnr_error err = CNR_ERROR_INIT;
    const char *name = k->domains[domain].name;
    *out = blank_state();
    if (!cnri_judging_ok(k->j, "read", k->k->read(k->state, domain, out, &err), &err)) return false;
    if (out->load_percent < -1 || out->load_percent > 100)
        return cnri_judging_fail(k->j, "%s: load is %d percent", name, (int)out->load_percent);
    if (out->cores < -1) return cnri_judging_fail(k->j, "%s: %d cores", name, (int)out->cores);
    if (out->temperature_mc != INT32_MIN &&
        (out->temperature_mc < -273150 || out->temperature_mc > 400000))
        return cnri_judging_fail(k->j, "%s reads %.3f degrees Celsius", name,
                                 out->temperature_mc * 1e-3);
    return true;
}

/* Opens the knob and describes its domains. False: return *verdict. */
static bool open_knob(knob *k, cnri_judging *j, bool *verdict) {
    static char names[MOST_DOMAINS][64];
    const cnr_gauge_options options = options_of(j);
    cnr_error err = CNR_ERROR_INIT;
    *k = (knob){.j = j, .k = j->descriptor};
    cnri_judging_case(j, "open");
    const cnr_status status = k->k->open(&options, &k->state, &k->n, &err);
    if (!has_opened(j, status, k->n, &err, verdict)) return false;
    for (int32_t i = 0; i < k->n && *verdict; i++) {
        cnr_knob_domain *d = &k->domains[i];
        d->size = sizeof *d;
        cnri_judging_case(j, "describing domain %d", (int)i);
        *verdict = cnri_judging_ok(j, "describe", k->k->describe(k->state, i, d, &err), &err) &&
                   judge_knob_domain(j, d);
        memcpy(names[i], d->name, sizeof d->name);
        *verdict = *verdict && is_new_name(j, names, i) && judge_steps(k, i);
    }
    if (!*verdict) k->k->close(k->state);
    return *verdict;
}

/* True if what save_state gives can be loaded and is then saved the same; without the method
 * true. */
static bool keeps_state(const knob *k) {
    char was[1024] = "", is[1024] = "";
    cnr_error err = CNR_ERROR_INIT;
    if (!CNRI_HAS(k->k, save_state)) return true;
    cnri_judging_case(k->j, "saving and loading the state");
    int32_t n = k->k->save_state(k->state, was, sizeof was);
    if (n < 0 || n >= (int32_t)sizeof was || !memchr(was, 0, sizeof was))
        return cnri_judging_fail(k->j, "save_state gives %d characters", (int)n);
    if (!CNRI_HAS(k->k, load_state)) return cnri_judging_fail(k->j, "it saves, and never loads");
    if (!cnri_judging_ok(k->j, "load_state", k->k->load_state(k->state, was, &err), &err))
        return false;
    n = k->k->save_state(k->state, is, sizeof is);
    if (strcmp(was, is) != 0)
        return cnri_judging_fail(k->j,
                                 "\"%.100s\" was saved and loaded, and \"%.100s\" is saved then",
                                 was, is);
    const cnr_status status = k->k->load_state(k->state, "?", &err);
    if (!cnri_judging_spoke(k->j, "load_state", status, &err)) return false;
    if (!status) return cnri_judging_fail(k->j, "load_state takes \"?\", which was never saved");
    return true;
}

/* Judges a knob's domains, steps and saved state, without setting anything. False: a finding says
 * why it isn't so. */
bool cnri_judge_knob(cnri_judging *j) {
    static knob k;
    bool good;
    if (!open_knob(&k, j, &good)) return good;
    for (int32_t i = 0; i < k.n && good; i++) {
        cnr_knob_state state;
        cnri_judging_case(j, "reading %s", k.domains[i].name);
        good = read_knob(&k, i, &state);
    }
    good = good && keeps_state(&k);
    k.k->close(k.state);
    return good;
}

/* Sets a frequency, no sooner than the knob's period allows; false, with a finding: it doesn't read
 * back. */
static bool reads_back(const knob *k, int32_t domain, uint64_t hz, int32_t cores) {
    const cnr_knob_domain *d = &k->domains[domain];
    cnr_knob_state state;
    cnr_error err = CNR_ERROR_INIT;
    cnri_judging_case(k->j, "%s: setting %llu Hz, %d cores", d->name, (unsigned long long)hz,
                      (int)cores);
    cnri_host.wait_until(cnri_now_ns() + (uint64_t)d->period_ms * 1000000);
    const cnr_status status = k->k->set(k->state, domain, hz, cores, &err);
    if (!cnri_judging_ok(k->j, "set", status, &err) || !read_knob(k, domain, &state)) return false;
    if (hz && state.hz != hz && d->n_steps > 0)
        return cnri_judging_fail(k->j, "%s was set to %llu Hz and reads %llu Hz", d->name,
                                 (unsigned long long)hz, (unsigned long long)state.hz);
    if (state.hz && (state.hz < d->min_hz || state.hz > d->max_hz))
        return cnri_judging_fail(k->j, "%s was set to %llu Hz and reads %llu Hz, out of its bounds",
                                 d->name, (unsigned long long)hz, (unsigned long long)state.hz);
    if (cores >= 0 && state.cores != cores)
        return cnri_judging_fail(k->j, "%s was set to %d cores and reads %d", d->name, (int)cores,
                                 (int)state.cores);
    return true;
}

/* Sets a domain to some frequencies and reads them back. False: it failed. */
static bool set_domain(const knob *k, int32_t domain) {
    const cnr_knob_domain *d = &k->domains[domain];
    uint64_t list[4] = {d->min_hz, d->max_hz, 0, 0};
    bool good = true;
    if (d->n_steps > 0)
        for (int32_t i = 0; i < 3 && good; i++)
            good = step_of(k, domain, i * (d->n_steps - 1) / 2, &list[i]);
    for (int32_t i = 0; i < 4 && good; i++)
        if (list[i] && list[i] >= d->min_hz && list[i] <= d->max_hz)
            good = reads_back(k, domain, list[i], -1);
    cnr_knob_state was, is;
    cnr_error err = CNR_ERROR_INIT;
    cnri_judging_case(k->j, "%s: setting 0 Hz and -1 cores, which changes nothing", d->name);
    good = good && read_knob(k, domain, &was) &&
           cnri_judging_ok(k->j, "set", k->k->set(k->state, domain, 0, -1, &err), &err) &&
           read_knob(k, domain, &is);
    if (good && d->n_steps > 0 && is.hz != was.hz)
        good = cnri_judging_fail(k->j,
                                 "%s was set to 0 Hz, which is to be left as it is, and "
                                 "reads %llu Hz, %llu before",
                                 d->name, (unsigned long long)is.hz, (unsigned long long)was.hz);
    if (good && d->max_cores > 0 && is.cores != was.cores)
        good = cnri_judging_fail(k->j,
                                 "%s was set to -1 cores, which are to be left as they are, and "
                                 "reads %d, %d before",
                                 d->name, (int)is.cores, (int)was.cores);
    if (good && d->max_cores > d->min_cores)
        good = reads_back(k, domain, 0, (int32_t)cnr_max(d->min_cores, 1)) &&
               reads_back(k, domain, 0, d->max_cores);
    return good;
}

/* Sets a domain while no file can be written: that is an error, unless no file is needed. Only in a
 * tree that was made for tests. */
static bool tells_unwritten(const knob *k, int32_t domain) {
    const cnr_knob_domain *d = &k->domains[domain];
    cnr_knob_state state;
    cnr_error err = CNR_ERROR_INIT;
    struct rlimit was, none;
    uint64_t hz = d->min_hz;
    if (!k->j->o->sysfs_root) return true;
    if (!read_knob(k, domain, &state)) return false;
    if (d->n_steps > 0 && !step_of(k, domain, 0, &hz)) return false;
    if (state.hz == hz) hz = d->max_hz;
    if (!hz || getrlimit(RLIMIT_FSIZE, &was) != 0) return true;
    cnri_judging_case(k->j, "%s: setting %llu Hz while nothing can be written", d->name,
                      (unsigned long long)hz);
    none = was;
    none.rlim_cur = 0;
    cnri_host.wait_until(cnri_now_ns() + (uint64_t)d->period_ms * 1000000);
    if (setrlimit(RLIMIT_FSIZE, &none) != 0) return true;
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const cnr_status status = k->k->set(k->state, domain, hz, -1, &err);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, handler);
    if (!cnri_judging_spoke(k->j, "set", status, &err)) return false;
    state = blank_state();
    if (status || (k->k->read(k->state, domain, &state, &err) == CNR_OK && state.hz == hz))
        return true;
    return cnri_judging_fail(k->j, "%s: set could not write, and says that it did", d->name);
}

/* Judges that frequencies can be set, read back and restored; skipped if knobs are to be left.
 * False: a finding says why it isn't so. */
bool cnri_judge_knob_set(cnri_judging *j) {
    static knob k;
    static cnr_knob_state before[MOST_DOMAINS];
    cnr_error err = CNR_ERROR_INIT;
    bool good;
    int32_t set = 0;
    if (j->o->leaves_knobs) return cnri_judging_skip(j, "knobs are left as they are");
    if (!open_knob(&k, j, &good)) return good;
    for (int32_t i = 0; i < k.n && good; i++) good = read_knob(&k, i, &before[i]);
    for (int32_t i = 0; i < k.n && good; i++) {
        if (!k.domains[i].is_writable) continue;
        good = tells_unwritten(&k, i) && set_domain(&k, i);
        set++;
    }
    cnri_judging_case(j, "restore");
    const cnr_status status = k.k->restore(k.state, &err);
    good = good && cnri_judging_ok(j, "restore", status, &err);
    for (int32_t i = 0; i < k.n && good; i++) {
        cnr_knob_state after;
        if (!k.domains[i].is_writable) continue;
        good = read_knob(&k, i, &after);
        if (good && k.domains[i].n_steps > 0 && after.hz != before[i].hz)
            good = cnri_judging_fail(j, "%s was found at %llu Hz, and restore leaves it at %llu",
                                     k.domains[i].name, (unsigned long long)before[i].hz,
                                     (unsigned long long)after.hz);
        if (good && k.domains[i].max_cores && after.cores != before[i].cores)
            good = cnri_judging_fail(j, "%s was found with %d cores, and restore leaves %d",
                                     k.domains[i].name, (int)before[i].cores, (int)after.cores);
    }
    k.k->close(k.state);
    return good && set == 0 ? cnri_judging_skip(j, "no domain can be set here") : good;
}
