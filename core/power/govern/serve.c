/* The helper of who is not root: readings and clamped settings over a Unix socket, and nothing
 * else.
 *
 * A line each way, in decimal numbers; meters and knobs count from 0 through all plugins.
 *     hello             ok METERS KNOBS
 *     meter I           ok QUANTITY PERIOD_MS ESTIMATED WRAPS_AT WITHIN COVERS name<tab>feeds
 *     read I            ok VALUE TIME_NS
 *     knob I            ok STEPS WRITABLE PERIOD_MS MIN_HZ MAX_HZ MIN_CORES MAX_CORES
 * name<tab>feeds step I K          ok HZ look I            ok HZ LOAD CORES TEMPERATURE_MC TIME_NS
 *     set I HZ CORES    ok
 *     restore           ok
 * What fails is "no CODE text". One client sets at a time; when it goes, all is put back. A line
 * has two seconds to arrive. Where all places are taken, the longest idle client of the user with
 * most goes. */
#define _GNU_SOURCE
#include "govern/govern.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_CLIENTS = 64, MAX_LINE = 160, ROOM = 512 };
static const uint64_t LINE_NS = 2000000000, IDLE_NS = 1000000000;

/* Meters and knobs, served to clients at a socket. */
struct cnri_serving {
    cnri_gauges gauges;
    struct {
        int fd;
        int64_t user;
        uint64_t heard_ns,
            began_ns; /* ns: when its last line was complete, and when the unfinished one began */
        size_t n;
        char line[MAX_LINE];
    } clients[MAX_CLIENTS];
    int32_t n_clients, owner; /* descriptor of the client that set something; -1: none */
    cnri_socket socket;
};

/* ---- one line ---- */

/* Parses n whole numbers behind a word, with nothing else. False: it failed. */
static bool numbers(const char *text, int32_t n, int64_t *out) {
    char word[32];
    for (int32_t i = 0; i < n; i++) {
        if (*text++ != ' ') return false;
        const size_t length = strcspn(text, " ");
        if (length == 0 || length >= sizeof word) return false;
        memcpy(word, text, length);
        word[length] = 0;
        if (!cnri_parse_int(word, &out[i])) return false;
        text += length;
    }
    return *text == 0;
}

/* Set and domain of meter i of all; NULL: there is none. */
static const cnri_meter_set *meter_of(const cnri_serving *s, int64_t i, int32_t *domain) {
    for (int32_t m = 0; m < s->gauges.meters.n && i >= 0; m++) {
        if (i < s->gauges.meters.at[m].n) {
            *domain = (int32_t)i;
            return &s->gauges.meters.at[m];
        }
        i -= s->gauges.meters.at[m].n;
    }
    return NULL;
}

/* Set and domain of knob i of all; NULL: there is none. */
static cnri_knob_set *knob_of(cnri_serving *s, int64_t i, int32_t *domain) {
    for (int32_t m = 0; m < s->gauges.knobs.n && i >= 0; m++) {
        if (i < s->gauges.knobs.at[m].n) {
            *domain = (int32_t)i;
            return &s->gauges.knobs.at[m];
        }
        i -= s->gauges.knobs.at[m].n;
    }
    return NULL;
}

/* The number of the domain that contains this one, counted from 1 through all meters; 0: none
 * does. */
static int32_t within(const cnri_serving *s, const cnri_meter_set *m, int32_t domain) {
    int32_t before = 0;
    for (const cnri_meter_set *k = s->gauges.meters.at; k < m; k++) before += k->n;
    return m->domains[domain].parent ? before + m->domains[domain].parent : 0;
}

/* Answers with the number of meters and knobs. */
static cnr_status say_hello(cnri_serving *s, const int64_t *a, char *out, cnr_error *err) {
    int32_t meters = 0, knobs = 0;
    (void)a, (void)err;
    for (int32_t i = 0; i < s->gauges.meters.n; i++) meters += s->gauges.meters.at[i].n;
    for (int32_t i = 0; i < s->gauges.knobs.n; i++) knobs += s->gauges.knobs.at[i].n;
    snprintf(out, ROOM, "ok %d %d\n", (int)meters, (int)knobs);
    return CNR_OK;
}

/* Fills err: there is no meter, knob or step of that number. */
static cnr_status none(cnr_error *err, const char *what, int64_t i) {
    return cnri_fail(err, CNR_E_NOT_FOUND, "", "there is no %s %lld", what, (long long)i);
}

/* Replies with the description of meter a[0]; say_reading replies with its value. */
static cnr_status say_meter(cnri_serving *s, const int64_t *a, char *out, cnr_error *err) {
    int32_t i;
    const cnri_meter_set *m = meter_of(s, a[0], &i);
    if (!m) return none(err, "meter", a[0]);
    const cnr_meter_domain *d = &m->domains[i];
    snprintf(out, ROOM, "ok %d %d %d %llu %d %d %s\t%s\n", (int)d->quantity, (int)d->period_ms,
             (int)d->is_estimated, (unsigned long long)d->wraps_at, (int)within(s, m, i),
             (int)d->is_whole_machine, d->name, d->device);
    return CNR_OK;
}

/* Answers "ok VALUE TIME" with a reading of meter a[0] into out. */
static cnr_status say_reading(cnri_serving *s, const int64_t *a, char *out, cnr_error *err) {
    int32_t i;
    cnr_reading r;
    const cnri_meter_set *m = meter_of(s, a[0], &i);
    if (!m) return none(err, "meter", a[0]);
    const cnr_status status = cnri_meter_read(m, i, &r, err);
    if (!status)
        snprintf(out, ROOM, "ok %lld %llu\n", (long long)r.value, (unsigned long long)r.time_ns);
    return status;
}

/* Answers with the description of knob a[0] into out. */
static cnr_status say_knob(cnri_serving *s, const int64_t *a, char *out, cnr_error *err) {
    int32_t i;
    const cnri_knob_set *k = knob_of(s, a[0], &i);
    if (!k) return none(err, "knob", a[0]);
    const cnr_knob_domain *d = &k->domains[i];
    snprintf(out, ROOM, "ok %d %d %d %llu %llu %d %d %s\t%s\n", (int)d->n_steps,
             (int)d->is_writable, (int)d->period_ms, (unsigned long long)d->min_hz,
             (unsigned long long)d->max_hz, (int)d->min_cores, (int)d->max_cores, d->name,
             d->devices);
    return CNR_OK;
}

/* Answers with the frequency of step a[1] of knob a[0]. */
static cnr_status say_step(cnri_serving *s, const int64_t *a, char *out, cnr_error *err) {
    int32_t i;
    uint64_t hz = 0;
    const cnri_knob_set *k = knob_of(s, a[0], &i);
    if (!k) return none(err, "knob", a[0]);
    if (a[1] < 0 || a[1] >= k->domains[i].n_steps) return none(err, "step", a[1]);
    const cnr_status status =
        cnri_plugin_status(err, k->knob->step(k->state, i, (int32_t)a[1], &hz, err), k->knob->name,
                           "a step");
    if (!status) snprintf(out, ROOM, "ok %llu\n", (unsigned long long)hz);
    return status;
}

/* Answers with the state of knob a[0] (Hz, load, cores, temperature, time) into out. */
static cnr_status say_state(cnri_serving *s, const int64_t *a, char *out, cnr_error *err) {
    int32_t i;
    cnr_knob_state state;
    const cnri_knob_set *k = knob_of(s, a[0], &i);
    if (!k) return none(err, "knob", a[0]);
    const cnr_status status = cnri_knob_read(k, i, &state, err);
    if (!status)
        snprintf(out, ROOM, "ok %llu %d %d %d %llu\n", (unsigned long long)state.hz,
                 (int)state.load_percent, (int)state.cores, (int)state.temperature_mc,
                 (unsigned long long)state.time_ns);
    return status;
}

/* Sets knob a[0] to a[1] hertz (0: unchanged) and a[2] cores (-1: unchanged) */
static cnr_status set(cnri_serving *s, const int64_t *a, char *out, cnr_error *err) {
    int32_t i;
    cnri_knob_set *k = knob_of(s, a[0], &i);
    if (!k) return none(err, "knob", a[0]);
    if (a[1] < 0 || a[2] < -1 || a[2] > INT32_MAX)
        return cnri_fail(err, CNR_E_ARG, "", "want hertz, or 0, and cores, or -1");
    const uint64_t period =
        (uint64_t)(k->domains[i].period_ms > 0 ? k->domains[i].period_ms : 0) * 1000000u;
    /* Fails at once, so that other clients do not wait. */
    if (k->set_ns[i] && cnri_now_ns() < k->set_ns[i] + period)
        return cnri_fail(err, CNR_E_LIMIT, "", "too soon after the last setting");
    const cnr_status status = cnri_knob_set_to(k, i, (uint64_t)a[1], (int32_t)a[2], err);
    if (!status) snprintf(out, ROOM, "ok\n");
    return status;
}

/* Restores all knobs of the machine, and answers "ok". */
static cnr_status restore(cnri_serving *s, const int64_t *a, char *out, cnr_error *err) {
    (void)a;
    const cnr_status status = cnri_knobs_restore(&s->gauges, err);
    if (!status) snprintf(out, ROOM, "ok\n");
    return status;
}

/* Requests by their word; the names of some words alone would be operators. */
static const struct {
    const char *text;
    int32_t n;
    bool sets;
    cnr_status (*say)(cnri_serving *s, const int64_t *a, char *out, cnr_error *err);
} requests[] = {{"hello who", 0, false, say_hello},
                {"meter that", 1, false, say_meter},
                {"read one", 1, false, say_reading},
                {"knob that", 1, false, say_knob},
                {"step of", 2, false, say_step},
                {"look at", 1, false, say_state},
                {"set it", 3, true, set},
                {"restore all", 0, true, restore}};

/* Answers one line of a client in `out`. */
static cnr_status answer(cnri_serving *s, int client, const char *line, char *out, cnr_error *err) {
    const size_t n = strcspn(line, " ");
    for (size_t i = 0; i < CNRI_COUNT(requests); i++) {
        int64_t a[3] = {0};
        if (strcspn(requests[i].text, " ") != n || strncmp(line, requests[i].text, n) != 0)
            continue;
        if (!numbers(line + n, requests[i].n, a))
            return cnri_fail(err, CNR_E_FORMAT, "", "want %d whole numbers behind it",
                             (int)requests[i].n);
        if (requests[i].sets && s->owner >= 0 && s->owner != client)
            return cnri_fail(err, CNR_E_STATE, "", "another client sets the knobs");
        const cnr_status status = requests[i].say(s, a, out, err);
        if (requests[i].sets && !status) s->owner = client;
        return status;
    }
    return cnri_fail(err, CNR_E_FORMAT, "",
                     "want hello, meter, read, knob, step, look, set or restore");
}

void cnri_serving_answer(cnri_serving *s, int client, const char *line,
                         char out[CNRI_SERVING_ROOM]) {
    cnr_error err = CNR_ERROR_INIT;
    out[0] = 0;
    const cnr_status status = answer(s, client, line, out, &err);
    if (!status) return;
    snprintf(out, ROOM, "no %d %.200s\n", (int)status, err.text);
    for (char *p = out; *p && p[1]; p++)
        if ((unsigned char)*p < ' ') *p = ' '; /* keeps a plugin's text on one line */
}

void cnri_serving_gone(cnri_serving *s, int client) {
    if (s->owner != client) return;
    s->owner = -1;
    cnri_knobs_restore(&s->gauges, NULL);
}

/* ---- opening ---- */

cnr_status cnri_serving_open(const cnr_gauge_options *options, cnri_serving **out, cnr_error *err) {
    cnri_serving *s = cnri_alloc_zero(sizeof *s);
    *out = NULL;
    if (!s) return cnri_fail(err, CNR_E_MEMORY, "helper", "out of memory");
    s->owner = s->socket.fd = -1;
    const cnr_status status = cnri_gauges_open(&s->gauges, options, err);
    if (status) cnri_free(s);
    else *out = s;
    return status;
}

/* Closes the gauges and frees s; NULL: nothing. */
void cnri_serving_close(cnri_serving *s) {
    if (!s) return;
    cnri_gauges_close(&s->gauges, NULL);
    cnri_free(s);
}

/* ---- clients ---- */

/* Closes a client's connection and restores what it has set. */
static void drop(cnri_serving *s, int32_t i) {
    cnri_serving_gone(s, s->clients[i].fd);
    close(s->clients[i].fd);
    s->clients[i] = s->clients[--s->n_clients];
}

/* Number of connections of a user. */
static int32_t clients_of(const cnri_serving *s, int64_t user) {
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_clients; i++) n += s->clients[i].user == user;
    return n;
}

/* The client to close so that another of `user` fits; -1: none. It belongs to the user with most
 * clients, and is the one idle longest. The user's own active clients and any client that set
 * something stay. */
static int32_t to_evict(const cnri_serving *s, int64_t user) {
    int32_t found = -1, most = clients_of(s, user) + 1;
    const uint64_t now = cnri_now_ns();
    for (int32_t i = 0; i < s->n_clients; i++) {
        const int64_t his = s->clients[i].user;
        const int32_t n = clients_of(s, his) + (his == user);
        if (s->clients[i].fd == s->owner || n < most) continue;
        if (his == user && now - s->clients[i].heard_ns < IDLE_NS) continue;
        if (found >= 0 && n == most && s->clients[i].heard_ns >= s->clients[found].heard_ns)
            continue;
        most = n;
        found = i;
    }
    return found;
}

/* Accepts a connection; if there are too many, one is closed. */
static void take_in(cnri_serving *s) {
    static const char full[] = "no -9 too many clients ask: try again\n";
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t size = sizeof who;
    const int fd = accept4(s->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
    if (s->n_clients == MAX_CLIENTS) {
        const int32_t i = to_evict(s, (int64_t)who.uid);
        if (i < 0) {
            if (send(fd, full, sizeof full - 1, MSG_NOSIGNAL) < 0)
                cnri_log(CNR_LOG_DEBUG, "helper", "%s", full);
            close(fd);
            return;
        }
        drop(s, i);
    }
    s->clients[s->n_clients].n = 0;
    s->clients[s->n_clients].user = (int64_t)who.uid;
    s->clients[s->n_clients].heard_ns = cnri_now_ns();
    s->clients[s->n_clients++].fd = fd;
}

/* Reads from a client. False: close it, because it left, sent no valid line, or does not read
 * its answers. */
static bool hear(cnri_serving *s, int32_t i) {
    char *line = s->clients[i].line, out[CNRI_SERVING_ROOM];
    size_t *n = &s->clients[i].n;
    const ssize_t got = recv(s->clients[i].fd, line + *n, MAX_LINE - 1 - *n, 0);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    if (*n == 0) s->clients[i].began_ns = cnri_now_ns();
    *n += (size_t)got;
    for (char *end; (end = memchr(line, '\n', *n)) != NULL;) {
        *end = 0;
        if (strlen(line) != (size_t)(end - line)) return false;
        cnri_serving_answer(s, s->clients[i].fd, line, out);
        const size_t bytes = strlen(out);
        if (send(s->clients[i].fd, out, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) return false;
        *n -= (size_t)(end + 1 - line);
        memmove(line, end + 1, *n);
        s->clients[i].heard_ns = s->clients[i].began_ns = cnri_now_ns();
    }
    return *n < MAX_LINE - 1;
}

/* True if a client takes too long to send a line. */
static bool is_late(const cnri_serving *s, int32_t i) {
    return s->clients[i].n > 0 && cnri_now_ns() - s->clients[i].began_ns > LINE_NS;
}

cnr_status cnri_serve(cnri_serving *s, const char *path, int64_t group,
                      const volatile int32_t *cancel, cnr_error *err) {
    cnr_status status = cnri_socket_listen(path, group, &s->socket, err);
    while (!status && !*cancel) {
        struct pollfd at[MAX_CLIENTS + 1] = {{.fd = s->socket.fd, .events = POLLIN}};
        const int32_t n = s->n_clients;
        for (int32_t i = 0; i < n; i++)
            at[i + 1] = (struct pollfd){.fd = s->clients[i].fd, .events = POLLIN};
        if (poll(at, (nfds_t)n + 1, 250) < 0 && errno != EINTR)
            status = cnri_fail_errno(err, path, "can't be waited for");
        for (int32_t i = n - 1; i >= 0 && !status; i--)
            if ((at[i + 1].revents && !hear(s, i)) || is_late(s, i)) drop(s, i);
        if (!status && at[0].revents & POLLIN) take_in(s);
    }
    while (s->n_clients) drop(s, s->n_clients - 1);
    cnri_socket_close(path, &s->socket);
    return status;
}
