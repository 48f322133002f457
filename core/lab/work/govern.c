/* Runs a frequency policy: on a simulated machine, on a recording, on this machine, or while
 * other work runs. */
#include "work/scene.h"
#include "people/people.h"
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_TRACES = 64, MAX_TICKS = 1 << 22 };
#define LEAST_RESULT offsetof(cnr_governed, simulated) /* size of the struct in version 1.2 */

/* One use of a frequency policy: the machine (live, scene or recording), the governor, and the
 * ticks kept. */
struct cnr_governing {
    cnr_runtime *rt;
    cnr_govern_options options;
    cnri_frequency_policy policy;
    cnri_governor governor;
    cnri_trace traces[MAX_TRACES], replayed;
    char *names[MAX_TRACES];
    int32_t n_traces, knob; /* knob: the one whose values ticks report */
    cnri_live *live;
    cnri_scene scene; /* the simulated machine, if there is one */
    cnri_replay replay;
    cnri_pacer *pacer;
    CNRI_VEC(cnr_tick) ticks;
    cnri_text record;
    bool out_of_memory, replays;
    int32_t begun; /* while other work runs: the first pass has begun, or it is not waited for */
    char *spec;
};

/* ---- what it may learn from ---- */

/* True for a name that ends in .csv. */
static bool is_trace(const char *name) {
    const size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".csv") == 0;
}

/* Compares two names, for qsort. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds the installed recordings, in order of their names. */
static cnr_status find_traces(cnr_governing *g, cnr_error *err) {
    char *folder = cnri_governors_folder(),
         *path = folder ? cnri_path_join(folder, "traces") : NULL;
    DIR *dir = path ? opendir(path) : NULL;
    cnr_status status = CNR_OK;
    for (struct dirent *e; dir && !status && g->n_traces < MAX_TRACES && (e = readdir(dir));)
        if (is_trace(e->d_name) && !(g->names[g->n_traces++] = cnri_path_join(path, e->d_name)))
            status = cnri_out_of_memory(err, path);
    if (dir) closedir(dir);
    cnri_free(folder);
    cnri_free(path);
    if (!status) qsort(g->names, (size_t)g->n_traces, sizeof *g->names, by_name);
    return status;
}

/* Lists the recordings that the policy learns from. */
static cnr_status name_traces(cnr_governing *g, const char *const *list, cnr_error *err) {
    if (!list) return find_traces(g, err);
    for (; *list; list++) {
        if (g->n_traces == MAX_TRACES)
            return cnri_fail(err, CNR_E_LIMIT, *list, "more recordings than %d", (int)MAX_TRACES);
        if (!(g->names[g->n_traces++] = cnri_strdup(*list))) return cnri_out_of_memory(err, *list);
    }
    return CNR_OK;
}

/* Reads the recordings to learn from and opens the policy with them. */
static cnr_status open_policy(cnr_governing *g, cnr_error *err) {
    cnr_status status = name_traces(g, g->options.traces, err);
    for (int32_t i = 0; i < g->n_traces && !status; i++)
        status = cnri_trace_read(g->names[i], &g->traces[i], err);
    if (status) return status;
    const cnri_learns from = {g->traces, (const char *const *)g->names, g->n_traces};
    g->spec = cnri_strdup(g->options.policy);
    if (!g->spec) return cnri_out_of_memory(err, "govern");
    status = cnri_frequency_policy_open(g->spec, &from, &g->policy, err);
    g->governor.policy = g->policy;
    return status;
}

/* ---- what is governed ---- */

/* Path and options of a scene. "loop,seed=3" is an installed scene; a text that looks like a
 * path is a path. Free with cnri_free. */
static char *scene_spec(const char *spec) {
    const size_t n = strcspn(spec, ",");
    if (memchr(spec, '/', n) || (n > 4 && strncmp(spec + n - 4, ".lua", 4) == 0))
        return cnri_strdup(spec);
    char *folder = cnri_governors_folder();
    char *path =
        folder ? cnri_format("%s/scenes/%.*s.lua%s", folder, (int)n, spec, spec + n) : NULL;
    cnri_free(folder);
    return path;
}

/* Fails, with the nearest name, unless the file of the scene exists. */
static cnr_status check_scene(const char *spec, const char *full, cnr_error *err) {
    char near[4096] = "";
    char *file = cnri_format("%.*s", (int)strcspn(full, ","), full);
    if (!file) return cnri_out_of_memory(err, spec);
    const bool there = access(file, R_OK) == 0;
    const char *name =
        !there && cnri_nearest_path(file, near, sizeof near) ? strrchr(near, '/') : NULL;
    const int n = name ? (int)strcspn(++name, ".") : 0;
    cnri_free(file);
    if (there) return CNR_OK;
    return cnri_fail(err, CNR_E_NOT_FOUND, spec,
                     "no such scene: neither a file nor an installed one%s%.*s",
                     n ? "; did you mean " : "", n, n ? name : "");
}

/* Reads a scene by installed name or path into *out, to be freed as a board. */
static cnr_status read_scene(const char *spec, cnri_board **out, cnr_error *err) {
    char *full = scene_spec(spec);
    cnr_status status = full ? check_scene(spec, full, err)
                             : cnri_fail(err, CNR_E_NOT_FOUND, spec, "no scenes are installed");
    if (!status) status = cnri_board_read(full, true, out, err);
    cnri_free(full);
    return status;
}

/* Opens board and scene as a machine that is simulated in virtual time. */
static cnr_status open_play(cnr_governing *g, cnr_error *err) {
    cnri_board *board = NULL, *scene = NULL;
    cnr_status status =
        g->options.board ? cnri_board_read(g->options.board, false, &board, err) : CNR_OK;
    if (!status && g->options.scene) status = read_scene(g->options.scene, &scene, err);
    if (!status) status = cnri_scene_open(g->rt, board, scene, &g->scene, err);
    cnri_board_free(board);
    cnri_board_free(scene);
    g->scene.late_after = g->options.late_after;
    g->governor.machine = cnri_scene_machine(&g->scene);
    return status;
}

/* Opens the recording to replay as the governor's machine. */
static cnr_status open_replay(cnr_governing *g, cnr_error *err) {
    cnr_status status = cnri_trace_read(g->options.replay, &g->replayed, err);
    if (!status) status = cnri_replay_open(&g->replayed, &g->replay, err);
    g->replays = !status;
    g->governor.machine = cnri_replay_machine(&g->replay);
    return status;
}

/* Opens this machine's meters and knobs; fails if a policy has no knob to set. */
static cnr_status open_live(cnr_governing *g, cnr_error *err) {
    const cnr_gauge_options options = {.size = sizeof options,
                                       .root = g->rt->sysfs_root,
                                       .address = g->rt->meter_address};
    cnr_status status = cnri_live_open(&options, &g->live, err);
    if (!status && cnri_live_knobs(g->live) == 0 && g->options.policy)
        status = cnri_fail(err, CNR_E_NOT_FOUND, "govern",
                           "no plugin finds a knob on this machine, so no frequency can be set; "
                           "expected a machine with cpufreq or devfreq, --board NAME or --scene "
                           "NAME for a simulated one, or --replay FILE");
    if (!status) g->governor.machine = cnri_live_machine(g->live);
    return status;
}

/* The policy's step when only recording: wishes nothing. */
static cnr_status leave(void *arg, const cnri_seen *seen, cnri_wish *wishes, double *period,
                        cnr_error *err) {
    (void)arg, (void)seen, (void)wishes, (void)period, (void)err;
    return CNR_OK;
}

/* Opens everything that the options name; *out is to be closed also after an error. */
static cnr_status open_all(cnr_runtime *rt, const cnr_govern_options *options, cnr_governing **out,
                           cnr_error *err) {
    cnr_governing *g = cnri_alloc_zero(sizeof *g);
    *out = g;
    if (!g) return cnri_out_of_memory(err, "govern");
    g->rt = rt;
    CNRI_COPY_OPTIONS(g->options, options);
    g->governor.limit = g->options.limit > 0 ? g->options.limit : (double)NAN;
    g->governor.period = g->options.period > 0 ? g->options.period : CNRI_TICK_DEFAULT;
    g->governor.policy = (cnri_frequency_policy){.step = leave};
    if (g->options.replay && (g->options.board || g->options.scene))
        return cnri_fail(err, CNR_E_ARG, "govern",
                         "a recording is replayed, or a scene played, not both: a recording has no "
                         "model "
                         "of power, and joules want --scene NAME with --board NAME");
    cnr_status status = g->options.policy ? open_policy(g, err) : CNR_OK;
    if (status) return status;
    if (g->options.replay) return open_replay(g, err);
    return g->options.board || g->options.scene ? open_play(g, err) : open_live(g, err);
}

/* Closes everything; clocks get their old frequencies back. */
static cnr_status close_all(cnr_governing *g, cnr_error *err) {
    const cnr_status status = cnri_live_close(g->live, err);
    if (g->policy.close) g->policy.close(g->policy.arg);
    for (int32_t i = 0; i < g->n_traces; i++) {
        cnri_trace_free(&g->traces[i]);
        cnri_free(g->names[i]);
    }
    cnri_scene_close(&g->scene);
    cnri_trace_free(&g->replayed);
    cnri_vec_free(&g->ticks);
    cnri_text_free(&g->record);
    cnri_free(g->spec);
    cnri_free(g);
    return status;
}

/* ---- ticks ---- */

/* True if the times are those of a simulated machine. */
static bool is_simulated(const cnr_governing *g) {
    return g->scene.machine || !cnri_clock_is_real() ||
           (g->replays && g->replayed.note && strstr(g->replayed.note, "simulated"));
}

/* Writes the head of a record: the columns, and a note on where rows come from if the caller's
 * note lacks it. */
static void begin_record(cnr_governing *g, const cnri_seen *seen) {
    if (g->options.note && strstr(g->options.note, is_simulated(g) ? "simulated" : "measured")) {
        cnri_trace_header(seen, g->options.note, &g->record);
        return;
    }
    const char *scene = g->options.scene ? g->options.scene : g->options.board;
    char *own = g->scene.machine
                    ? cnri_format("simulated: %s%s", g->options.scene ? "scene: " : "board ", scene)
                : g->replays
                    ? cnri_format("%s: replayed from %s",
                                  is_simulated(g) ? "simulated" : "measured", g->options.replay)
                    : cnri_strdup(is_simulated(g) ? "simulated: by a plugin's clock" : "measured");
    char *note = own ? cnri_format("%s%s%s", g->options.note ? g->options.note : "",
                                   g->options.note && *g->options.note ? "\n" : "", own)
                     : NULL;
    if (note) cnri_trace_header(seen, note, &g->record);
    else g->out_of_memory = true;
    cnri_free(note);
    cnri_free(own);
}

/* Keeps a tick in the result and in the recording. */
static void keep_tick(void *arg, const cnri_governor *governor) {
    cnr_governing *g = arg;
    const cnri_seen *s = &governor->seen;
    if (g->options.record) {
        if (g->record.n == 0) begin_record(g, s);
        cnri_trace_row(s, &g->record);
    }
    if (!g->options.keep_ticks || g->ticks.n >= MAX_TICKS) return;
    cnr_tick *t = cnri_push(&g->ticks);
    if (!t) {
        g->out_of_memory = true;
        return;
    }
    const int32_t main = cnri_seen_main(s);
    *t = (cnr_tick){.size = sizeof *t,
                    .seconds = s->time,
                    .hz = main >= 0 ? (double)s->knobs[main].hz : (double)NAN,
                    .load = main >= 0 ? s->knobs[main].load : (double)NAN,
                    .watts = s->watts,
                    .temperature = s->temperature};
}

/* Writes the recording to options.record; without that, nothing. */
static cnr_status save(cnr_governing *g, cnr_error *err) {
    cnri_writer w;
    if (!g->options.record) return CNR_OK;
    if (g->record.failed) return cnri_out_of_memory(err, g->options.record);
    cnr_status status = cnri_write_begin(&w, g->options.record, 0, err);
    if (status) return status;
    status = cnri_write(&w, g->record.at ? g->record.at : "", g->record.n, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

/* Computes means over ticks. While other work runs, only ticks within it count: the first tick
 * is before any setting, and after the last pass a device rests. */
static void take_means(cnr_governing *g, cnr_governed *out) {
    const bool beside = g->live && g->pacer && g->governor.seen.device[0];
    const double end = beside ? cnri_live_last_end(g->live) : INFINITY;
    double load = 0, hz = 0;
    int64_t n = 0, n_loads = 0;
    for (int32_t i = beside; i < g->ticks.n && g->ticks.at[i].seconds <= end; i++) {
        const cnr_tick *t = &g->ticks.at[i];
        if (!isnan(t->load)) {
            load += t->load;
            n_loads++;
        }
        if (!isnan(t->hz)) {
            hz += t->hz;
            n++;
        }
    }
    out->load = n_loads ? load / (double)n_loads : (double)NAN;
    out->hz = n ? hz / (double)n : (double)NAN;
    if (!n && out->ticks && g->options.keep_ticks)
        snprintf(out->hz_why, sizeof out->hz_why, "%s",
                 cnri_seen_main(&g->governor.seen) < 0
                     ? "no knob feeds a device that ran"
                     : "no reading falls into the runs, which were too short");
}

/* Lists the knobs that a wish without a name sets; before anything runs, the one that it would
 * set. */
static void name_knobs(const cnri_seen *seen, cnr_governed *out) {
    const int32_t main = seen->n_knobs ? cnri_seen_main(seen) : -1;
    size_t n = 0;
    snprintf(out->devices, sizeof out->devices, "%s", seen->device);
    if (main >= 0) snprintf(out->feeds, sizeof out->feeds, "%s", seen->knobs[main].feeds);
    for (int32_t i = 0; i < seen->n_knobs && n < sizeof out->knob; i++)
        if (i == main || cnri_seen_feeds(seen, i))
            n += (size_t)snprintf(out->knob + n, sizeof out->knob - n, "%s%s", n ? "," : "",
                                  seen->knobs[i].name);
}

/* Fills the result from what was counted, in seconds, joules and Hz; NaN: not measured. */
static void fill_result(cnr_governing *g, cnr_governed *out) {
    const cnri_governor_stats *s = &g->governor.stats;
    const cnri_seen *seen = &g->governor.seen;
    out->seconds = s->seconds;
    out->ticks = s->ticks;
    out->joules = s->ticks ? s->watts_seconds : (double)NAN;
    out->runs = seen->runs.count;
    const cnri_scene *scene = g->scene.machine ? &g->scene : NULL;
    if (scene) { /* whole passes only, as in a measured region */
        out->runs = scene->runs.count;
        out->late = scene->late;
        out->hot_share = s->seconds > 0 ? scene->held / s->seconds : 0;
        out->longest_run = scene->longest_run;
    }
    const double end =
        scene ? scene->last_end : out->seconds; /* end of the last pass, since passes are whole */
    const double joules = scene ? scene->last_joules : out->joules;
    out->watts = out->seconds > 0 ? out->joules / out->seconds : (double)NAN;
    out->fps = end > 0 ? (double)out->runs / end : (double)NAN;
    out->run_seconds = out->runs ? end / (double)out->runs : (double)NAN;
    out->run_joules = out->runs ? joules / (double)out->runs : (double)NAN;
    out->edp = out->run_seconds * out->run_joules;
    take_means(g, out);
    out->switches = s->switches;
    out->switches_a_minute = s->seconds > 0 ? 60 * (double)s->switches / s->seconds : 0;
    out->faults = s->faults;
    out->off = s->off;
    out->advises = s->advises;
    out->cpu_seconds = s->cpu_seconds;
    out->longest_tick = s->longest;
    out->limited_share = s->throttled;
    snprintf(out->fault, sizeof out->fault, "%.60s%s%.180s", s->fault.where,
             s->fault.where[0] ? ": " : "", s->faults ? s->fault.text : "");
    snprintf(out->why, sizeof out->why, "%s", g->policy.why ? g->policy.why(g->policy.arg) : "");
    name_knobs(seen, out);
    out->simulated = is_simulated(g);
}

/* Fills the result, writes the recording and closes all. */
static cnr_status finish(cnr_governing *g, cnr_status status, cnr_governed *out, cnr_error *err) {
    if (!status && out) {
        cnr_governed got = {.size = sizeof got};
        fill_result(g, &got);
        got.ticks_at = g->ticks.at;
        got.n_ticks = g->ticks.n;
        g->ticks.at = NULL;
        CNRI_COPY_RESULT(out, got);
    }
    if (!status && g->out_of_memory) status = cnri_out_of_memory(err, "govern");
    if (!status) status = save(g, err);
    const cnr_status closed = close_all(g, status ? NULL : err);
    if (status && out) cnr_governed_free(out);
    return status ? status : closed;
}

/* ---- played, replayed, live ---- */

/* Lets time pass: in the scene, the recording, or in real. */
static cnr_status pass(cnr_governing *g, double seconds, cnr_error *err) {
    if (g->scene.machine) return cnri_scene_pass(&g->scene, seconds, err);
    if (g->replays) cnri_replay_pass(&g->replay, seconds);
    else cnri_wait_until(cnri_now_ns() + (uint64_t)(seconds * 1e9));
    return CNR_OK;
}

/* True if the recording or the wanted time is over. */
static bool is_over(const cnr_governing *g, double maximum) {
    const cnri_governor *p = &g->governor;
    if (g->replays && g->replay.over) return true;
    return maximum > 0 && p->seen.time >= maximum - 1e-9 && p->stats.ticks > 0;
}

cnr_status cnr_govern(cnr_runtime *rt, const cnr_govern_options *options,
                      const cnr_observer *observer, cnr_governed *out, cnr_error *err) {
    cnr_governing *g;
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "options", options, NULL);
    if (!status && out && out->size < LEAST_RESULT)
        status = cnri_fail(err, CNR_E_ARG, "out", "its size is to be set before the call");
    if (status) return status;
    status = open_all(rt, options, &g, err);
    double maximum = !status ? g->options.seconds : 0;
    if (!status && g->scene.machine && !(maximum > 0)) maximum = 60;
    while (!status && !is_over(g, maximum)) {
        status = cnri_governor_tick(&g->governor, err);
        if (!status) keep_tick(g, &g->governor);
        if (!status && is_over(g, maximum)) break;
        if (!status && g->scene.machine && maximum - g->governor.seen.time < g->governor.period)
            g->governor.period = maximum - g->governor.seen.time;
        if (!status) status = pass(g, g->governor.period, err);
        if (cnri_stopped(observer)) {
            if (g->live) break; /* what was seen until then is the result */
            status = cnri_fail(err, CNR_E_CANCELLED, "govern", "stopped");
        }
    }
    return g ? finish(g, status, out, err) : status;
}

/* ---- beside what runs ---- */

/* Starts the thread that calls the governor at every tick. */
static cnr_status start(cnr_governing *g, cnr_error *err) {
    return cnri_pacer_start(&g->governor, keep_tick, g, &g->pacer, err);
}

/* Starts the ticks once the devices in use are known. The first tick sets their knobs before the
 * first pass; later ticks run on the pacer's thread. */
static void begin_ticks(cnr_governing *g) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = cnri_governor_tick(&g->governor, &err);
    if (!status) keep_tick(g, &g->governor);
    if (!status) status = start(g, &err);
    if (status) cnri_log(CNR_LOG_WARN, "govern", "%s: nothing is governed", err.text);
    else if (cnri_seen_main(&g->governor.seen) < 0)
        cnri_log(CNR_LOG_WARN, "govern",
                 "no knob here feeds %s: none is set unless the policy names it",
                 g->governor.seen.device);
}

/* Tells the governor that a run begins or ends on a device. */
static void tell_pass(void *arg, bool begins, const char *device) {
    cnr_governing *g = arg;
    cnri_live_run(g->live, begins, cnri_now_ns(), device);
    if (!__atomic_exchange_n(&g->begun, 1, __ATOMIC_ACQ_REL)) begin_ticks(g);
    __atomic_store_n(&g->governor.driven, 1, __ATOMIC_RELEASE);
}

cnr_status cnr_govern_begin(cnr_runtime *rt, const cnr_govern_options *options, cnr_governing **out,
                            cnr_error *err) {
    cnr_governing *g;
    cnr_status status =
        cnri_require_arguments(err, "runtime", rt, "options", options, "out", out, NULL);
    if (status) return status;
    *out = NULL;
    status = open_all(rt, options, &g, err);
    if (!status && !g->live)
        status = cnri_fail(err, CNR_E_ARG, "govern",
                           "what runs is governed live, not as a recording or a scene");
    if (!status && (g->begun = g->options.at_once)) status = start(g, err);
    if (status) {
        if (g) close_all(g, NULL);
        return status;
    }
    rt->passes.arg = g;
    rt->passes.tell = tell_pass;
    *out = g;
    return CNR_OK;
}

cnr_status cnr_govern_end(cnr_governing *g, cnr_governed *out, cnr_error *err) {
    const cnr_status given = cnri_require_arguments(err, "governing", g, NULL);
    if (given) return given;
    g->rt->passes.tell = NULL;
    cnri_pacer_stop(g->pacer);
    const cnr_status capacity =
        out && out->size < LEAST_RESULT
            ? cnri_fail(err, CNR_E_ARG, "out", "its size is to be set before the call")
            : CNR_OK;
    return finish(g, capacity, capacity ? NULL : out, err);
}

void cnr_governed_free(cnr_governed *out) {
    if (!out) return;
    cnri_free((void *)out->ticks_at);
    out->ticks_at = NULL;
    out->n_ticks = 0;
}

cnr_status cnri_govern_restore(cnr_runtime *rt, int32_t *brought, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "brought", brought, NULL);
    const cnr_gauge_options options = {.size = sizeof options,
                                       .root = rt ? rt->sysfs_root : NULL,
                                       .address = rt ? rt->meter_address : NULL};
    if (!status) status = cnri_knobs_recover(&options, brought, err);
    if (!status) *brought += rt->brought_back;
    return status;
}
