/* Builds the machine from the board's numbers; core/docs/boards.md explains them. */
#define _GNU_SOURCE
#include "sim.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- reading the board: the host has checked its keys, ranges and names ---- */

enum { MAX_LISTED = 20000 };

/* The values of a machine that does not come from the board in force, by path, while it is built.
 * NULL: use the board in force. */
static struct cnr_map *given;

/* Number at a path of the board; 0: there is none. */
static int number_at(const char *path, double *out) {
    const char *value = given ? sim_host->map_get(given, path, strlen(path)) : NULL;
    return value ? sim_host->parse_number(value, NULL, out)
                 : !given && sim_host->board_number(path, out);
}

/* Text at a path of the board; NULL: there is none. */
static const char *text_at(const char *path) {
    return given ? sim_host->map_get(given, path, strlen(path)) : sim_host->board_text(path);
}

int32_t sim_count(const char *list) {
    double n = 0;
    if (!given) return sim_host->board_count(list);
    return number_at(list, &n) && n >= 1 && n <= MAX_LISTED ? (int32_t)n : 0;
}

double sim_number(const char *list, int32_t i, const char *key, double otherwise) {
    char path[128];
    double value = otherwise;
    if (i) snprintf(path, sizeof path, "%s.%d.%s", list, (int)i, key);
    else snprintf(path, sizeof path, "%s%s%s", list, *list ? "." : "", key);
    return number_at(path, &value) && isfinite(value) ? value : otherwise;
}

const char *sim_text(const char *list, int32_t i, const char *key) {
    char path[128];
    if (i && key) snprintf(path, sizeof path, "%s.%d.%s", list, (int)i, key);
    else snprintf(path, sizeof path, "%s.%d", list, (int)i);
    const char *is = text_at(path);
    return is ? is : "";
}

/* A list of n entries, all 0; NULL: out of memory, noted in m->failed. */
static void *list_of(sim_machine *m, int32_t n, size_t bytes) {
    void *at = sim_host->alloc((size_t)(n > 0 ? n : 1) * bytes);
    if (at) memset(at, 0, (size_t)(n > 0 ? n : 1) * bytes);
    else m->failed = 1;
    return at;
}

/* Copies the name of entry i of a list, of SIM_NAME bytes. */
static void name_of(const char *list, int32_t i, char *out) {
    const char *name = sim_text(list, i, "name");
    snprintf(out, SIM_NAME, "%s", name);
}

/* Reads the power rails of the board into m; m->failed: out of memory. */
static void read_rails(sim_machine *m) {
    const int32_t n = sim_count("rails");
    if (!(m->rails = list_of(m, n, sizeof *m->rails))) return;
    for (m->n_rails = 0; m->n_rails < n; m->n_rails++) {
        const int32_t i = m->n_rails + 1;
        name_of("rails", i, m->rails[i - 1].name);
        m->rails[i - 1].idle = sim_number("rails", i, "idle", 0);
        m->rails[i - 1].per_byte = sim_number("rails", i, "per_byte", 0);
    }
}

/* Reads clock i (from 1) and its steps into c; m->failed: out of memory. */
static void read_clock(sim_machine *m, int32_t i, sim_clock *c) {
    char list[64];
    snprintf(list, sizeof list, "clocks.%d.steps", (int)i);
    name_of("clocks", i, c->name);
    const int32_t n = sim_count(list);
    if (!(c->steps = list_of(m, n, sizeof *c->steps))) return;
    for (c->n = 0; c->n < n; c->n++) {
        sim_step *s = &c->steps[c->n];
        s->hz = sim_number(list, c->n + 1, "mhz", 0) * 1e6;
        s->volts = sim_number(list, c->n + 1, "volts", 1);
    }
    c->cap = c->asked = c->n - 1;
    for (int32_t k = 0; k < c->n; k++)
        if (c->steps[k].hz * 1e-6 == sim_number("clocks", i, "at", 0)) c->asked = k;
}

/* Reads all clocks. */
static void read_clocks(sim_machine *m) {
    const int32_t n = sim_count("clocks");
    if (!(m->clocks = list_of(m, n, sizeof *m->clocks))) return;
    for (m->n_clocks = 0; m->n_clocks < n; m->n_clocks++)
        read_clock(m, m->n_clocks + 1, &m->clocks[m->n_clocks]);
}

/* Reads the classes of operators of unit i. */
static void read_classes(sim_machine *m, int32_t i, sim_unit *u) {
    char list[64];
    snprintf(list, sizeof list, "units.%d.classes", (int)i);
    const int32_t n = sim_count(list);
    if (!(u->classes = list_of(m, n, sizeof *u->classes))) return;
    for (u->n_classes = 0; u->n_classes < n; u->n_classes++) {
        const int32_t k = u->n_classes + 1;
        sim_class *c = &u->classes[k - 1];
        snprintf(c->op, sizeof c->op, "%s", sim_text(list, k, "op"));
        c->flops = sim_number(list, k, "gflops", -1) * 1e9;
        c->bytes = sim_number(list, k, "gbytes", 0) * 1e9;
        c->activity = sim_number(list, k, "activity", 1);
    }
}

/* Reads a unit's members and marks them as members. Skips names of no earlier unit, which excludes
 * cycles, and what exceeds SIM_MOST_MEMBERS. */
static void read_members(sim_machine *m, int32_t i, sim_unit *u) {
    char list[64];
    snprintf(list, sizeof list, "units.%d.members", (int)i);
    const int32_t n = sim_count(list);
    for (int32_t k = 0; k < n && u->n_members < SIM_MOST_MEMBERS; k++) {
        const char *name = sim_text(list, k + 1, NULL);
        int32_t at = 0;
        while (at < m->n_units && strcmp(m->units[at].name, name) != 0) at++;
        if (at >= i - 1) continue;
        m->units[at].is_member = 1;
        u->members[u->n_members++] = at;
    }
}

/* Reads unit i (from 1) into u: rail, clock, classes, members and costs. */
static void read_unit(sim_machine *m, int32_t i, sim_unit *u) {
    static const char list[] = "units";
    name_of(list, i, u->name);
    snprintf(u->title, sizeof u->title, "%s", sim_text(list, i, "title"));
    u->cores = (int32_t)sim_number(list, i, "cores", 1);
    u->host = sim_number(list, i, "host", 0) != 0;
    u->launch = sim_number(list, i, "launch", 0);
    u->latency = sim_number(list, i, "latency", 0);
    u->split_seconds = sim_number(list, i, "split.seconds", 0);
    u->split_joules = sim_number(list, i, "split.joules", 0);
    u->transfer_bytes = sim_number(list, i, "transfer.gbytes", 0) * 1e9;
    u->transfer_seconds = sim_number(list, i, "transfer.seconds", 0);
    u->statics = sim_number(list, i, "power.static", 0);
    u->dynamics = sim_number(list, i, "power.dynamic", 0);
    read_members(m, i, u);
    read_classes(m, i, u);
    const char *rail = sim_text(list, i, "rail"), *clock = sim_text(list, i, "clock");
    u->rail = u->n_members ? m->units[u->members[0]].rail : -1;
    u->clock = -1;
    for (int32_t k = 0; k < m->n_rails; k++)
        if (strcmp(m->rails[k].name, rail) == 0) u->rail = k;
    for (int32_t k = 0; k < m->n_clocks; k++)
        if (strcmp(m->clocks[k].name, clock) == 0) u->clock = k;
}

/* Reads from the board how the machine heats up: degrees C, seconds, K per watt. */
static void read_heat(sim_machine *m) {
    m->ambient = m->degrees = sim_number("heat", 0, "ambient", 25);
    m->ohms = sim_number("heat", 0, "ohms", 0);
    m->tau = fmax(sim_number("heat", 0, "tau", 30), 1e-3);
    m->limit = sim_number("heat", 0, "limit", 0);
    m->slack = fmax(sim_number("heat", 0, "slack", 5), 0);
}

/* Frees the machine with all its lists. */
void sim_machine_free(sim_machine *m) {
    for (int32_t i = 0; i < m->n_units; i++) sim_host->free(m->units[i].classes);
    for (int32_t i = 0; i < m->n_clocks; i++) sim_host->free(m->clocks[i].steps);
    for (int32_t i = 0; i < m->n_rails; i++) sim_host->free(m->rails[i].spans);
    sim_host->free(m->scene.phases);
    sim_host->free(m->scene.ends);
    sim_host->free(m->units);
    sim_host->free(m->clocks);
    sim_host->free(m->rails);
    sim_host->free(m);
}

/* Builds the machine of the board in force; NULL: out of memory. */
static sim_machine *build(const char *digest) {
    double flag = 0;
    sim_machine *m = sim_host->alloc(sizeof *m);
    if (!m) return NULL;
    *m = (sim_machine){0};
    snprintf(m->digest, sizeof m->digest, "%s", digest);
    m->dry = number_at("dry", &flag) && flag != 0;
    read_rails(m);
    read_clocks(m);
    const int32_t n = sim_count("units");
    m->units = list_of(m, n, sizeof *m->units);
    while (m->n_units < n && !m->failed) {
        const int32_t i = ++m->n_units;
        read_unit(m, i, &m->units[i - 1]);
    }
    read_heat(m);
    m->contention = fmax(sim_number("", 0, "contention", 0), 0);
    m->jitter = fmin(fmax(sim_number("", 0, "jitter", 0), 0), 1);
    m->dice = (uint64_t)sim_number("", 0, "seed", 1);
    m->born = m->heat_at = m->cap_at = given ? 0 : sim_now();
    if (!m->failed) return m;
    sim_host->log(CNR_LOG_ERROR, "device-sim", "the board cannot be simulated: out of memory");
    sim_machine_free(m);
    return NULL;
}

/* ---- whether to simulate ---- */

/* Whether this machine is the one that the board describes, so that nothing needs to be
 * simulated. */
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

/* 1 if the board in force is to be simulated. */
static int wanted(void) {
    double flag;
    if (sim_host->board_count("units") < 1 || !sim_host->board_text("clock")) return 0;
    const char *word = sim_host->board_text("simulate"); /* "auto" */
    if (sim_host->board_number("simulate", &flag)) return flag != 0;
    return !(word && strcmp(word, "auto") == 0 && is_this_machine());
}

/* ---- the machine of the board in force ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* the newest first; never freed, since devices of older ones may be open */
static sim_machine *machines;
static char judged[32]; /* the board that was checked last */
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
        sim_machine_free(m);
    }
    in_force = NULL;
    judged[0] = 0;
}

/* ---- machines of their own ---- */

/* Fills err: an entry of the board is wrong. */
static cnr_status wrong(cnr_error *err, const char *list, int32_t i, const char *want) {
    char where[64];
    snprintf(where, sizeof where, "%s.%d", list, (int)i);
    return sim_host->fail(err, CNR_E_FORMAT, where, "want %s", want);
}

/* Checks numbers that the host has not checked. */
static cnr_status check(const sim_machine *m, cnr_error *err) {
    for (int32_t i = 0; i < m->n_units; i++)
        if (m->units[i].rail < 0) return wrong(err, "units", i + 1, "the name of its rail");
    for (int32_t i = 0; i < m->n_clocks; i++) {
        const sim_clock *c = &m->clocks[i];
        int rises = c->n > 0;
        for (int32_t k = 0; k < c->n; k++)
            rises = rises && c->steps[k].hz > (k ? c->steps[k - 1].hz : 0) && c->steps[k].volts > 0;
        if (!rises) return wrong(err, "clocks", i + 1, "steps of rising mhz, and volts");
    }
    return CNR_OK;
}

/* Cuts lines "path=value" and puts them into a map. */
static cnr_status cut(char *text, struct cnr_map **map, cnr_error *err) {
    for (char *line = text, *next; line; line = next) {
        char *value = strchr(line, '=');
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        if (!value || (next && value >= next)) continue;
        *value++ = 0;
        if (sim_host->map_set(map, line, strlen(line), value))
            return sim_host->fail(err, CNR_E_MEMORY, "board", "out of memory");
    }
    return CNR_OK;
}

/* Builds a machine of its own in *out, without devices, meters and knobs, from lines
 * "units.1.name=gpu"; a list's own line is its length. Fails with a reason. */
cnr_status sim_machine_of(const char *text, sim_machine **out, cnr_error *err) {
    const size_t n = strlen(text) + 1;
    char *own = sim_host->alloc(n);
    struct cnr_map *map = NULL;
    if (!own) return sim_host->fail(err, CNR_E_MEMORY, "board", "out of memory");
    cnr_status status = cut(memcpy(own, text, n), &map, err);
    pthread_mutex_lock(&lock);
    given = map;
    *out = status || !map ? NULL : build("");
    if (!status && !*out)
        status = map ? sim_host->fail(err, CNR_E_MEMORY, "board", "out of memory")
                     : sim_host->fail(err, CNR_E_FORMAT, "board", "no board at all");
    if (!status) status = check(*out, err);
    if (!status) status = sim_scene_read(*out, err);
    given = NULL;
    pthread_mutex_unlock(&lock);
    if (status && *out) sim_machine_free(*out);
    sim_host->map_free(map);
    sim_host->free(own);
    return status;
}
