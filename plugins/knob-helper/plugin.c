/* knob-helper: meters and knobs that need root, through `cnnrun helper`, which runs as root. */
#define _GNU_SOURCE
#include "gauge.h"
#include <cnnrun/kit.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ROOM = 512, MOST_WAIT_MS = 2000 };
/* A connection to the helper: its socket (-1: none), the number of domains and the address. */
typedef struct client {
    int fd, n, has_set; /* has_set: the helper restores its settings when the connection closes */
    struct sockaddr_un at;
} client;

/* ---- requests ---- */

/* Fails with CNR_E_IO: `what`, and errno's text. */
static cnr_status gone(cnr_error *err, const char *what) {
    return gauge_host->fail(err, CNR_E_IO, "helper", "%s: %s", what, strerror(errno));
}

/* Closes the old connection and makes a new one. 0: nobody listens. */
static int dial(client *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return c->fd >= 0 && connect(c->fd, (const struct sockaddr *)&c->at, sizeof c->at) == 0;
}

/* Whether the helper closed the connection: with many clients it closes idle ones. */
static int was_closed(const client *c) {
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Sends one line and reads the answer; "no CODE text" is an error. */
static cnr_status ask(client *c, char out[ROOM], cnr_error *err, const char *line) {
    size_t n = 0;
    if (!c->has_set && was_closed(c) && !dial(c)) return gone(err, "can't be asked again");
    if (send(c->fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line))
        return gone(err, "can't be asked");
    while (n == 0 || out[n - 1] != '\n') {
        struct pollfd at = {.fd = c->fd, .events = POLLIN};
        if (poll(&at, 1, MOST_WAIT_MS) <= 0) return gone(err, "does not answer");
        const ssize_t got = recv(c->fd, out + n, ROOM - 1 - n, 0);
        if (got <= 0) return gone(err, "is gone");
        n += (size_t)got;
        if (n == ROOM - 1)
            return gauge_host->fail(err, CNR_E_FORMAT, "helper", "answers more than a line");
    }
    out[n - 1] = 0;
    if (strncmp(out, "ok", 2) == 0 && (out[2] == ' ' || !out[2])) return CNR_OK;
    int code = 0, text = 0;
    if (sscanf(out, "no %d %n", &code, &text) == 1 && text && code < 0 && code > -100)
        return gauge_host->fail(err, code, "helper", "%s", out + text);
    return gauge_host->fail(err, CNR_E_FORMAT, "helper", "answers what was not asked");
}

/* Fails with CNR_E_FORMAT: the helper's answer is not understood. */
static cnr_status strange(cnr_error *err) {
    return gauge_host->fail(err, CNR_E_FORMAT, "helper",
                            "answers with other numbers than are wanted");
}

/* Parses "name<tab>feeds", the end of an answer, into both texts, cut to 63 letters. */
static void take_names(const char *text, char name[64], char feeds[64]) {
    const size_t n = strcspn(text, "\t");
    snprintf(name, 64, "%.*s", (int)(n < 63 ? n : 63), text);
    snprintf(feeds, 64, "%.63s", text[n] ? text + n + 1 : "");
}

/* Connects to the helper at CNNRUN_HELPER, or else (unless the process is root) below root;
 * CNR_E_NOT_FOUND: there is none, CNR_E_UNSUPPORTED: no right. */
static cnr_status connect_to(client *c, const char *root, cnr_error *err) {
    const char *asked = secure_getenv("CNNRUN_HELPER");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (!asked && geteuid() == 0)
        return gauge_host->fail(err, CNR_E_NOT_FOUND, "helper", "root needs none");
    const int n = asked ? snprintf(at.sun_path, sizeof at.sun_path, "%s", asked)
                        : snprintf(at.sun_path, sizeof at.sun_path, "%s/run/cnnrun/helper.sock",
                                   strcmp(root, "/") == 0 ? "" : root);
    if (n < 0 || (size_t)n >= sizeof at.sun_path)
        return gauge_host->fail(err, CNR_E_LIMIT, "helper", "the socket's path is too long");
    c->at = at;
    if (!dial(c))
        return gauge_host->fail(err, errno == EACCES ? CNR_E_UNSUPPORTED : CNR_E_NOT_FOUND,
                                at.sun_path, "%s", strerror(errno));
    return CNR_OK;
}

/* Closes a connection and frees the client. */
static void close_client(void *state) {
    client *c = state;
    if (c->fd >= 0) close(c->fd); /* the helper then restores the settings */
    gauge_host->free(c);
}

/* Connects, and asks how many domains there are of meters or (knobs) of clocks: *n; *state is for
 * close_client. Fails where nobody answers. */
static cnr_status open_client(const cnr_gauge_options *options, int knobs, void **state, int32_t *n,
                              cnr_error *err) {
    char line[ROOM];
    int meters, all;
    client *c = gauge_host->alloc(sizeof *c);
    if (!c) return gauge_host->fail(err, CNR_E_MEMORY, "helper", "out of memory");
    *c = (client){.fd = -1};
    cnr_status status = connect_to(c, options->root, err);
    if (!status) status = ask(c, line, err, "hello\n");
    if (!status && sscanf(line, "ok %d %d", &meters, &all) != 2) status = strange(err);
    if (!status) *n = c->n = knobs ? all : meters;
    if (!status && c->n <= 0)
        status = gauge_host->fail(err, CNR_E_NOT_FOUND, "helper", "it has none");
    if (status) close_client(c);
    else *state = c;
    return status;
}

/* ---- meters ---- */

/* Connects to the helper for its meters; *n: their number. Fails where nobody answers. */
static cnr_status open_meter(const cnr_gauge_options *options, void **state, int32_t *n,
                             cnr_error *err) {
    return open_client(options, 0, state, n, err);
}

/* Asks the helper what a meter domain measures, and fills *out; fails where the answer does not
 * come or is not understood. */
static cnr_status describe_meter(void *state, int32_t domain, cnr_meter_domain *out,
                                 cnr_error *err) {
    char line[ROOM], ask_for[64];
    unsigned long long wraps;
    int at = 0;
    snprintf(ask_for, sizeof ask_for, "meter %d\n", (int)domain);
    CNR_TRY(ask(state, line, err, ask_for));
    if (sscanf(line, "ok %d %d %d %llu %d %d %n", &out->quantity, &out->period_ms,
               &out->is_estimated, &wraps, &out->parent, &out->is_whole_machine, &at) != 6 ||
        !at)
        return strange(err);
    out->wraps_at = wraps;
    take_names(line + at, out->name, out->device);
    return CNR_OK;
}

/* Asks the helper for a reading of a domain; fails as describe_meter does. */
static cnr_status read_meter(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    char line[ROOM], ask_for[64];
    long long value;
    unsigned long long time;
    snprintf(ask_for, sizeof ask_for, "read %d\n", (int)domain);
    CNR_TRY(ask(state, line, err, ask_for));
    if (sscanf(line, "ok %lld %llu", &value, &time) != 2) return strange(err);
    out->value = value;
    out->time_ns = time;
    return CNR_OK;
}

/* ---- knobs ---- */

/* Connects to the helper for its knobs; *n: their number. Fails where nobody answers. */
static cnr_status open_knob(const cnr_gauge_options *options, void **state, int32_t *n,
                            cnr_error *err) {
    return open_client(options, 1, state, n, err);
}

/* Asks the helper what a clock is, and fills *out; fails as describe_meter does. */
static cnr_status describe_knob(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err) {
    char line[ROOM], ask_for[64];
    unsigned long long low, high;
    int at = 0;
    snprintf(ask_for, sizeof ask_for, "knob %d\n", (int)domain);
    CNR_TRY(ask(state, line, err, ask_for));
    if (sscanf(line, "ok %d %d %d %llu %llu %d %d %n", &out->n_steps, &out->is_writable,
               &out->period_ms, &low, &high, &out->min_cores, &out->max_cores, &at) != 7 ||
        !at)
        return strange(err);
    out->min_hz = low;
    out->max_hz = high;
    take_names(line + at, out->name, out->devices);
    return CNR_OK;
}

/* Asks the helper for the frequency of a step, in Hz; fails as describe_meter does. */
static cnr_status step_at(void *state, int32_t domain, int32_t index, uint64_t *hz,
                          cnr_error *err) {
    char line[ROOM], ask_for[64];
    unsigned long long value;
    snprintf(ask_for, sizeof ask_for, "step %d %d\n", (int)domain, (int)index);
    CNR_TRY(ask(state, line, err, ask_for));
    if (sscanf(line, "ok %llu", &value) != 1) return strange(err);
    *hz = value;
    return CNR_OK;
}

/* Asks the helper for a clock's frequency (Hz), load, cores, temperature and time; fails as
 * describe_meter does. */
static cnr_status read_knob(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err) {
    char line[ROOM], ask_for[64];
    unsigned long long hz, time;
    snprintf(ask_for, sizeof ask_for, "look %d\n", (int)domain);
    CNR_TRY(ask(state, line, err, ask_for));
    if (sscanf(line, "ok %llu %d %d %d %llu", &hz, &out->load_percent, &out->cores,
               &out->temperature_mc, &time) != 5)
        return strange(err);
    out->hz = hz;
    out->time_ns = time;
    return CNR_OK;
}

/* Asks the helper to set a clock to `hz` (0: as it was) and a number of cores; fails with its
 * reason. */
static cnr_status set(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err) {
    char line[ROOM], ask_for[96];
    snprintf(ask_for, sizeof ask_for, "set %d %llu %d\n", (int)domain, (unsigned long long)hz,
             (int)cores);
    ((client *)state)->has_set = 1;
    return ask(state, line, err, ask_for);
}

/* Asks to restore what this connection has set. */
static cnr_status restore(void *state, cnr_error *err) {
    char line[ROOM];
    return ask(state, line, err, "restore\n");
}

static const cnr_meter meter = {.size = sizeof(cnr_meter),
                                .name = "as-root",
                                .summary = "what only root may read, by cnnrun helper",
                                .open = open_meter,
                                .describe = describe_meter,
                                .read = read_meter,
                                .close = close_client};
static const cnr_knob knob = {.size = sizeof(cnr_knob),
                              .name = "as-root",
                              .summary = "what only root may set, by cnnrun helper",
                              .open = open_knob,
                              .describe = describe_knob,
                              .step = step_at,
                              .read = read_knob,
                              .set = set,
                              .restore = restore,
                              .close = close_client};

/* Registers meter and knob. */
static cnr_status start(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    gauge_host = host;
    const cnr_status status = host->add(registrar, CNR_KIND_METER, &meter);
    return status ? status : host->add(registrar, CNR_KIND_KNOB, &knob);
}

CNR_PLUGIN("knob-helper", "1", "meters and knobs that only root may touch, by cnnrun helper", "MIT",
           start, CNR_TOUCHES_DEVICES)
