/* The machine, out of the board's numbers: scripts/boards/README.md says what they mean. */
#define _GNU_SOURCE
#include "sim.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- reading the board: the host has checked its keys, ranges and names ---- */

typedef struct reader {
    sim_machine *m;
    char why[160]; /* "": all could be read */
} reader;

static double number(const char *list, int32_t i, const char *key, double otherwise) {
    char path[128];
    double value = otherwise;
    if (i) snprintf(path, sizeof path, "%s.%d.%s", list, (int)i, key);
    else snprintf(path, sizeof path, "%s.%s", list, key);
    return sim_host->board_number(path, &value) && isfinite(value) ? value : otherwise;
}

static const char *text(const char *list, int32_t i, const char *key) {
    char path[128];
    if (i && key) snprintf(path, sizeof path, "%s.%d.%s", list, (int)i, key);
    else snprintf(path, sizeof path, "%s.%d", list, (int)i);
    const char *is = sim_host->board_text(path);
    return is ? is : "";
}

static void *list_of(reader *r, int32_t n, size_t bytes) {
    void *at = sim_host->alloc((size_t)(n > 0 ? n : 1) * bytes);
    if (at) memset(at, 0, (size_t)(n > 0 ? n : 1) * bytes);
    else snprintf(r->why, sizeof r->why, "out of memory");
    return at;
}

static void name_of(const char *list, int32_t i, char *out) {
    const char *name = text(list, i, "name");
    snprintf(out, SIM_NAME, "%s", name);
}

static void read_rails(reader *r) {
    sim_machine *m = r->m;
    const int32_t n = sim_host->board_count("rails");
    if (!(m->rails = list_of(r, n, sizeof *m->rails))) return;
    for (m->n_rails = 0; m->n_rails < n; m->n_rails++) {
        const int32_t i = m->n_rails + 1;
        name_of("rails", i, m->rails[i - 1].name);
        m->rails[i - 1].idle = number("rails", i, "idle", 0);
        m->rails[i - 1].per_byte = number("rails", i, "per_byte", 0);
    }
}

static void read_clock(reader *r, int32_t i, sim_clock *c) {
    char list[64];
    snprintf(list, sizeof list, "clocks.%d.steps", (int)i);
    name_of("clocks", i, c->name);
    const int32_t n = sim_host->board_count(list);
    if (!(c->steps = list_of(r, n, sizeof *c->steps))) return;
    for (c->n = 0; c->n < n; c->n++) {
        sim_step *s = &c->steps[c->n];
        s->hz = number(list, c->n + 1, "mhz", 0) * 1e6;
        s->volts = number(list, c->n + 1, "volts", 1);
    }
    c->cap = c->asked = c->n - 1;
    for (int32_t k = 0; k < c->n; k++)
        if (c->steps[k].hz * 1e-6 == number("clocks", i, "at", 0)) c->asked = k;
}

static void read_clocks(reader *r) {
    sim_machine *m = r->m;
    const int32_t n = sim_host->board_count("clocks");
    if (!(m->clocks = list_of(r, n, sizeof *m->clocks))) return;
    for (m->n_clocks = 0; m->n_clocks < n; m->n_clocks++)
        read_clock(r, m->n_clocks + 1, &m->clocks[m->n_clocks]);
}

static void read_classes(reader *r, int32_t i, sim_unit *u) {
    char list[64];
    snprintf(list, sizeof list, "units.%d.classes", (int)i);
    const int32_t n = sim_host->board_count(list);
    if (!(u->classes = list_of(r, n, sizeof *u->classes))) return;
    for (u->n_classes = 0; u->n_classes < n; u->n_classes++) {
        const int32_t k = u->n_classes + 1;
        sim_class *c = &u->classes[k - 1];
        snprintf(c->op, sizeof c->op, "%s", text(list, k, "op"));
        c->flops = number(list, k, "gflops", -1) * 1e9;
        c->bytes = number(list, k, "gbytes", 0) * 1e9;
        c->activity = number(list, k, "activity", 1);
    }
}

/* Members stand before the units that are made of them, so that nothing goes in circles. */
static void read_members(reader *r, int32_t i, sim_unit *u) {
    char list[64];
    snprintf(list, sizeof list, "units.%d.members", (int)i);
    const int32_t n = sim_host->board_count(list);
    for (int32_t k = 0; k < n && u->n_members < SIM_MOST_MEMBERS; k++) {
        const char *name = text(list, k + 1, NULL);
        int32_t at = 0;
        while (at < r->m->n_units && strcmp(r->m->units[at].name, name) != 0) at++;
        if (at >= i - 1) continue;
        r->m->units[at].is_member = 1;
        u->members[u->n_members++] = at;
    }
}

static void read_unit(reader *r, int32_t i, sim_unit *u) {
    static const char list[] = "units";
    const sim_machine *m = r->m;
    name_of(list, i, u->name);
    snprintf(u->title, sizeof u->title, "%s", text(list, i, "title"));
    u->cores = (int32_t)number(list, i, "cores", 1);
    u->host = number(list, i, "host", 0) != 0;
    u->launch = number(list, i, "launch", 0);
    u->latency = number(list, i, "latency", 0);
    u->split_seconds = number(list, i, "split.seconds", 0);
    u->split_joules = number(list, i, "split.joules", 0);
    u->transfer_bytes = number(list, i, "transfer.gbytes", 0) * 1e9;
    u->transfer_seconds = number(list, i, "transfer.seconds", 0);
    u->statics = number(list, i, "power.static", 0);
    u->dynamics = number(list, i, "power.dynamic", 0);
    read_members(r, i, u);
    read_classes(r, i, u);
    const char *rail = text(list, i, "rail"), *clock = text(list, i, "clock");
    u->rail = u->n_members ? m->units[u->members[0]].rail : -1;
    u->clock = -1;
    for (int32_t k = 0; k < m->n_rails; k++)
        if (strcmp(m->rails[k].name, rail) == 0) u->rail = k;
    for (int32_t k = 0; k < m->n_clocks; k++)
        if (strcmp(m->clocks[k].name, clock) == 0) u->clock = k;
}

static void read_heat(sim_machine *m) {
    m->ambient = m->degrees = number("heat", 0, "ambient", 25);
    m->ohms = number("heat", 0, "ohms", 0);
    m->tau = fmax(number("heat", 0, "tau", 30), 1e-3);
    m->limit = number("heat", 0, "limit", 0);
    m->slack = fmax(number("heat", 0, "slack", 5), 0);
}

static void free_machine(sim_machine *m) {
    for (int32_t i = 0; i < m->n_units; i++) sim_host->free(m->units[i].classes);
    for (int32_t i = 0; i < m->n_clocks; i++) sim_host->free(m->clocks[i].steps);
    for (int32_t i = 0; i < m->n_rails; i++) sim_host->free(m->rails[i].spans);
    sim_host->free(m->units);
    sim_host->free(m->clocks);
    sim_host->free(m->rails);
    sim_host->free(m);
}

static sim_machine *build(const char *digest) {
    double flag = 0;
    reader r = {.m = sim_host->alloc(sizeof *r.m)};
    sim_machine *m = r.m;
    if (!m) return NULL;
    *m = (sim_machine){0};
    snprintf(m->digest, sizeof m->digest, "%s", digest);
    m->dry = sim_host->board_number("dry", &flag) && flag != 0;
    read_rails(&r);
    if (!r.why[0]) read_clocks(&r);
    const int32_t n = sim_host->board_count("units");
    if (!r.why[0]) m->units = list_of(&r, n, sizeof *m->units);
    for (int32_t i = 1; i <= n && !r.why[0]; i++) {
        m->n_units = i;
        read_unit(&r, i, &m->units[i - 1]);
    }
    read_heat(m);
    m->born = m->heat_at = m->cap_at = sim_now();
    if (!r.why[0]) return m;
    sim_host->log(CNR_LOG_ERROR, "device-sim", "the board cannot be simulated: %s", r.why);
    free_machine(m);
    return NULL;
}

/* ---- is there anything to simulate ---- */

/* The machine is what the board describes: then it needs no simulating. */
static int is_this_machine(void) {
    const char *pattern = sim_host->board_text("machine");
    const char *given = secure_getenv("CNNRUN_SYSFS_ROOT");
    const char *root = given && strcmp(given, "/") != 0 ? given : "";
    char path[4096];
    void *model = NULL;
    uint64_t n;
    if (!pattern || !*pattern) return 0;
    snprintf(path, sizeof path, "%s/proc/device-tree/model", root);
    if (sim_host->file_read(path, 4096, &model, &n, NULL)) return 0;
    const int same = strncmp(model, pattern, strlen(pattern)) == 0;
    sim_host->free(model);
    return same;
}

static int wanted(void) {
    double flag;
    if (sim_host->board_count("units") < 1 || !sim_host->board_text("clock")) return 0;
    const char *word = sim_host->board_text("simulate"); /* "auto" */
    if (sim_host->board_number("simulate", &flag)) return flag != 0;
    return !(word && strcmp(word, "auto") == 0 && is_this_machine());
}

/* ---- the one in force ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sim_machine *machines; /* the newest first; all stay: devices of older ones may be open */
static char judged[32];       /* the board that was last looked at */
static sim_machine *in_force;

sim_machine *sim_machine_now(void) {
    const char *digest = sim_host->board_text("");
    pthread_mutex_lock(&lock);
    if (!digest) digest = "";
    if (strcmp(digest, judged) != 0) {
        in_force = NULL;
        snprintf(judged, sizeof judged, "%s", digest);
        for (sim_machine *m = machines; m; m = m->older)
            if (strcmp(m->digest, digest) == 0) in_force = m;
        if (*digest && !in_force && wanted() && (in_force = build(digest))) {
            in_force->older = machines;
            machines = in_force;
        }
    }
    sim_machine *m = in_force;
    pthread_mutex_unlock(&lock);
    return m;
}

void sim_machines_free(void) {
    while (machines) {
        sim_machine *m = machines;
        machines = m->older;
        free_machine(m);
    }
    in_force = NULL;
    judged[0] = 0;
}
