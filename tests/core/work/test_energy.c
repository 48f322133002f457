/* Energy of work: profiles, evaluation, training, a command; a log, and a counter for others. */
#include "work/work.h"
#include "tests/tap.h"
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define GAUGES CNRT_BUILD_DIR "/tests/core/host/gauges/gauges.so"

static char folder[] = "/tmp/cnnrun-energy-XXXXXX";
/* Path in the test's folder, valid for three more calls. */
static const char *in_folder(const char *name) {
    static char path[4][128];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "%s/%s", folder, name);
    return path[at];
}

/* By the machine's clock a sensor of 6 W in a tree, however late it is read; by the made-up one the
 * made-up counter, which goes through its range every 167 ms. That one is of "opencl:0"; a board
 * says that it feeds the processor. */
static bool fed = true;
/* Opens the library with real or made-up clocks. */
static cnr_runtime *open_runtime(const char *clock) {
    static const char *const real[] = {CNRT_BUILD_DIR "/plugins", NULL};
    static const char *const made_up[] = {GAUGES, CNRT_BUILD_DIR "/plugins", NULL};
    cnr_error err = CNR_ERROR_INIT;
    const cnr_open_options o = {.size = sizeof o,
                                .plugin_dirs = clock ? made_up : real,
                                .no_default_dirs = 1,
                                .log_level = CNR_LOG_ERROR,
                                .clock = clock,
                                .board = clock && fed ? in_folder("board.lua") : NULL,
                                .sysfs_root = clock ? "/no/such/tree" : folder};
    cnr_runtime *rt = NULL;
    ok(cnr_open(&rt, &o, &err) == CNR_OK, "a runtime %s", err.text);
    return rt;
}

/* A net with random weights. */
static cnr_model *load(cnr_runtime *rt) {
    const cnr_load_options o = {.size = sizeof o, .weights = "random:1", .device = "cpu"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *model = NULL;
    ok(cnr_load(rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", &o, &model, &err) == CNR_OK,
       "a net %s", err.text);
    return model;
}

/* True if the region must be measured again, because a loaded machine left the sensor unread for
 * seconds; counts the tries. */
static bool again(const cnr_energy *e, int *tries) {
    return e && !e->source && e->n && strstr(e->at[0].why, "it was not read for long") &&
           --*tries > 0;
}

/* ---- profiles ---- */

/* Joules of a profile, with this clock. */
static void test_profile(const char *clock) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime(clock);
    cnr_model *model = load(rt);
    const cnr_profile_options o = {.size = sizeof o, .steps = 1, .runs = 3, .energy = 1};
    cnr_timing t = {.size = sizeof t};
    int tries = 5;
    do {
        cnr_timing_free(&t);
        is_int(cnr_profile(model, &o, NULL, &t, &err), CNR_OK,
               clock ? "a profile, counted" : "a profile");
    } while (again(t.energy, &tries));
    const cnr_energy *e = t.energy;
    is_int(e ? e->source : -1, clock ? CNR_ENERGY_SIMULATED : CNR_ENERGY_MEASURED,
           "of a real machine or not");
    ok(e && fabs(e->watts - 6) < 0.5, "6 W");
    if (!e) return;
    ok(clock || e->rounds * e->seconds > 0.4, "runs go on for 20 periods (%d of %.6f s)",
       (int)e->rounds, e->seconds);
    ok(fabs(e->joules - e->watts * e->seconds) < 1e-9, "joules are a run's");
    double all = 0;
    for (int32_t i = 0; i < t.n_steps; i++) all += t.steps[i].joules;
    is_text(t.joules_by, clock ? "counted" : "time", "how a step's were told");
    ok(clock ? all > 0 : fabs(all / e->joules - 1) < 1e-6, "and the steps' are shares of them");
    cnr_timing_free(&t);
    ok(!t.energy, "it is freed");
    const cnr_profile_options alone = {.size = sizeof alone,
                                       .steps = 1,
                                       .runs = 3,
                                       .energy = 1,
                                       .repeat = 1};
    bool good = false;
    for (tries = 5; tries > 0 && !good;
         tries--) { /* while a machine is busy a round may take seconds */
        cnr_timing_free(&t);
        is_int(cnr_profile(model, &alone, NULL, &t, &err), CNR_OK, "steps that are repeated");
        good = t.n_steps > 0 && strcmp(t.joules_by, clock ? "counted" : "repeated") == 0;
        for (int32_t i = 0; i < t.n_steps;
             i++) /* at 6 W; a region is of a second, in many rounds */
            good = good && t.steps[i].joules > 0 && (clock || t.steps[i].joules < 1);
    }
    is_text(t.joules_by, clock ? "counted" : "repeated", "are told so, unless counted");
    ok(good, "and have joules of their own");
    cnr_timing_free(&t);
    const cnr_profile_options none = {.size = sizeof none, .runs = 1, .steps = 1};
    is_int(cnr_profile(model, &none, NULL, &t, &err), CNR_OK,
           "energy is told when it is asked for");
    ok(!t.energy && isnan(t.steps[0].joules) && !t.joules_by, "and not else");
    cnr_timing_free(&t);
    cnr_close(rt);
}

/* A step, or a whole session, is run again alone, once it has run. */
static void test_repeat(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime(NULL);
    cnr_model *model = load(rt);
    cnr_plan *plan = NULL;
    cnr_session *session = NULL;
    cnr_plan_for(model, NULL, 0, &plan, &err);
    cnr_session_open(plan, &session, &err);
    is_int(cnri_session_repeat(session, 0, 1, &err), CNR_E_STATE,
           "what has not run can't be repeated");
    cnr_tensor in = *cnr_input_type(model, 0);
    in.dim[0] = 1;
    in.bytes = cnr_dense_bytes(&in);
    in.data = cnri_alloc_zero((size_t)in.bytes);
    cnr_session_set_input(session, 0, &in, &err);
    is_int(cnr_session_run(session, &err), CNR_OK, "once it has");
    is_int(cnri_session_repeat(session, 0, 100, &err), CNR_OK, "a step runs alone");
    is_int(cnr_session_run(session, &err), CNR_OK, "and the net again");
    cnri_free(in.data);
    cnr_session_close(session);
    cnr_plan_release(plan);
    cnr_close(rt);
}

static volatile int32_t cancel;

/* Work is stopped while it asks what is drawn at rest. */
static void test_cancelled(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime(NULL);
    cnr_model *model = load(rt);
    const cnr_observer o = {.size = sizeof o, .cancel = &cancel};
    const cnr_profile_options p = {.size = sizeof p, .energy = 1};
    cnr_timing t = {.size = sizeof t};
    cancel = 1;
    is_int(cnr_profile(model, &p, &o, &t, &err), CNR_E_CANCELLED,
           "stopped while it asks what is idle");
    cancel = 0;
    cnr_close(rt);
}

/* ---- evaluation and training ---- */

/* Joules of evaluation and training. */
static void test_long_work(void) {
    if (access(CNRT_SOURCE_DIR "/../shared/data/mnist", R_OK) != 0) {
        skip("evaluating and training", "../shared/data/mnist");
        return;
    }
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime(NULL);
    cnr_model *model = load(rt);
    const char *data = "mnist:" CNRT_SOURCE_DIR "/../shared/data/mnist";
    const cnr_evaluate_options o = {.size = sizeof o, .data = data, .limit = 200, .energy = 1};
    cnr_evaluation e = {.size = sizeof e};
    int tries = 5;
    do {
        cnr_evaluation_free(&e);
        is_int(cnr_evaluate(model, &o, NULL, &e, &err), CNR_OK, "pictures are judged");
    } while (again(e.energy, &tries));
    ok(e.energy && e.energy->rounds >= 200 && e.energy->rounds % 200 == 0 &&
           fabs(e.energy->watts - 6) < 1,
       "energy is of a picture, in as many rounds as the sensor wants");
    ok(e.energy && e.energy->rounds * e.energy->seconds > 0.4, "which go on for 20 periods");
    cnr_evaluation_free(&e);
    cnr_train_options t;
    memset(&t, 0, sizeof t);
    t.size = sizeof t;
    cnr_train_options_default(&t);
    t.data = data;
    t.output = in_folder("trained.cnr");
    t.epochs = 1;
    t.limit = 400;
    t.energy = 1;
    cnr_train_result r = {.size = sizeof r};
    tries = 5;
    do {
        cnr_train_result_free(&r);
        is_int(cnr_train(rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", NULL, &t, NULL, &r, &err),
               CNR_OK, "a net is trained");
    } while (again(r.energy, &tries));
    ok(r.energy && fabs(r.energy->watts - 6) < 1 && r.energy->rounds == 1,
       "energy is of all of it");
    cnr_train_result_free(&r);
    ok(!r.energy, "it is freed");
    cnr_close(rt);
}

/* ---- a command ---- */

/* Joules of a command, and its exit code. */
static void test_command(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime(NULL);
    cnr_energy e = {.size = sizeof e};
    char *nap[] = {"sh", "-c", "sleep 0.3; exit 7", NULL}, *none[] = {"/no/such/program", NULL};
    char *killed[] = {"sh", "-c", "kill -TERM $$", NULL}, *long_one[] = {"sleep", "30", NULL};
    const cnr_energy_options without = {.size = sizeof without, .no_idle = 1, .idle_behind = 1};
    int code = -1;
    double around = 0;
    for (int tries = 5; tries > 0 && (e.samples < 5 || !e.source);
         tries--) { /* of a thread that gets its turn */
        cnr_energy_free(&e);
        const uint64_t begin = cnri_now_ns();
        is_int(cnri_energy_command(rt, nap, NULL, NULL, &e, &code, &err), CNR_OK, "a command");
        around = (double)(cnri_now_ns() - begin) * 1e-9;
        is_int(code, 7, "its exit code");
    }
    ok(e.seconds > 0.29 && e.seconds <= around && fabs(e.watts - 6) < 1,
       "its time and power (%.3f s, %.3f W)", e.seconds, e.watts);
    ok(e.samples >= 5 && fabs(e.idle_watts - 6) < 1, "samples, and what was drawn before");
    cnr_energy_free(&e);
    is_int(cnri_energy_command(rt, killed, &without, NULL, &e, &code, &err), CNR_OK,
           "one that is killed");
    is_int(code, 128 + SIGTERM, "as shells tell it");
    cnr_energy_free(&e);
    is_int(cnri_energy_command(rt, none, NULL, NULL, &e, &code, &err), CNR_E_NOT_FOUND,
           "one that isn't there");
    has_text(err.text, "can't be started", "is told");
    is_int(code, 127, "as shells tell it");
    const cnr_observer o = {.size = sizeof o, .cancel = &cancel};
    cancel = SIGTERM;
    is_int(cnri_energy_command(rt, long_one, NULL, &o, &e, &code, &err), CNR_OK,
           "one that is stopped");
    is_int(code, 128 + SIGTERM, "gets the signal");
    ok(e.seconds < 10, "and is waited for");
    cancel = 0;
    cnr_energy_free(&e);
    cnr_close(rt);
}

/* ---- a baseline that was taken under load ---- */

static void draw(const char *micro) { /* in place, and as many digits as before: it is open */
    FILE *f = fopen(in_folder("sys/class/hwmon/hwmon0/power1_input"), "r+");
    if (f) fprintf(f, "%s\n", micro);
    if (f) fclose(f);
}
/* Work during which the sensor calms down. */
static cnr_status calm_down(void *arg, cnr_error *err) {
    (void)err;
    draw("2000000");
    cnri_wait_until(cnri_now_ns() + *(uint64_t *)arg);
    return CNR_OK;
}

/* What load before the work does to the watts at rest. */
static void test_loaded(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime(NULL);
    cnr_energy e = {.size = sizeof e};
    uint64_t long_enough = 1200000000, slow = 600000000;
    is_int(cnr_energy_of(rt, calm_down, &long_enough, NULL, NULL, &e, &err), CNR_OK,
           "less is drawn than before");
    ok(e.source == CNR_ENERGY_MEASURED && e.joules > 0 && isnan(e.joules_net) &&
           isnan(e.idle_watts),
       "then nothing is net of that");
    has_text(e.why, "the baseline was taken under load: 6 W before the run, ",
             "and it is told why");
    ok(!e.at[0].status && isnan(e.at[0].joules_net) && strstr(e.at[0].why, "under load"),
       "of the domain, too");
    cnr_energy_free(&e);
    is_int(cnr_energy_of(rt, calm_down, &slow, NULL, NULL, &e, &err), CNR_OK, "the next region");
    ok(fabs(e.idle_watts - 2) < 1e-6 && e.joules_net == 0 && !*e.why, "has a baseline of its own");
    cnr_energy_free(&e);
    draw("6000000");
    const cnr_energy_options told = {.size = sizeof told, .idle_watts = 1};
    is_int(cnr_energy_of(rt, calm_down, &slow, &told, NULL, &e, &err), CNR_OK,
           "or what the caller says");
    ok(fabs(e.idle_watts - 1) < 1e-9 && fabs(e.joules_net - (e.watts - 1) * e.seconds) < 1e-9,
       "of the sum");
    cnr_energy_free(&e);
    draw("6000000");
    cnr_close(rt);
}

/* ---- a log, and a counter ---- */

/* Rows that were told. */
typedef struct seen {
    int rows;
    double seconds, joules;
} seen;
/* An observer: keeps the rows' count and the last one's figures in *arg; 1 (stop) at the 30th. */
static int32_t see(void *arg, int32_t kind, const void *of) {
    const cnri_energy_row *row = of;
    seen *s = arg;
    if (kind != CNRI_EVENT_ENERGY) return 0;
    s->rows++;
    s->seconds = row->seconds;
    s->joules = row->joules[0];
    return s->rows == 30;
}

/* The text of a file, which the caller frees. */
static char *text_of(const char *path) {
    char *text = NULL;
    size_t n = 0;
    cnr_error err = CNR_ERROR_INIT;
    ok(cnri_read_file(path, 1 << 20, &text, &n, &err) == CNR_OK, "%s is there %s", path, err.text);
    return text ? text : cnri_strdup("");
}

/* Following meters tells rows until it is stopped. */
static void test_follow(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = open_runtime("fake-time");
    cnr_energy e = {.size = sizeof e};
    seen s = {0};
    const cnr_observer o = {.size = sizeof o, .arg = &s, .event = see};
    cnri_follow_options f = {.seconds = 1,
                             .csv = in_folder("log.csv"),
                             .counter = in_folder("counter.json")};
    is_int(cnri_energy_follow(rt, &f, &o, &e, &err), CNR_OK, "a second is followed");
    ok(s.rows >= 18 && s.rows <= 21 && s.seconds >= 1, "every 50 ms (%d rows)", s.rows);
    ok(fabs(e.joules - s.joules) < 1e-9 && fabs(s.joules / s.seconds - 6) < 0.1, "and adds up");
    cnr_energy_free(&e);
    char *csv = text_of(f.csv), *counter = text_of(f.counter);
    ok(strncmp(csv, "time_s,gpu_W,gpu_J,simulated\n", 29) == 0, "the log begins with names");
    int lines = 0;
    for (const char *p = csv; *p; p++) lines += *p == '\n';
    is_int(lines, s.rows + 1, "and has a line for each row");
    ok(strstr(counter, "\"running\":false") &&
           strstr(counter, "{\"meter\":\"fake-meter\",\"name\":\"gpu\",\"joules\":"),
       "the counter is what it came to");
    cnri_free(csv);
    cnri_free(counter);
    s = (seen){0};
    f = (cnri_follow_options){0};
    is_int(cnri_energy_follow(rt, &f, &o, &e, &err), CNR_OK, "until the observer has enough");
    is_int(s.rows, 30, "which is no error");
    cnr_energy_free(&e);
    f.csv = "/no/such/folder/log.csv";
    is_int(cnri_energy_follow(rt, &f, &o, &e, &err), CNR_E_NOT_FOUND,
           "a log that can't be written");
    cnr_close(rt);
}

/* A net on a device without an energy domain: there is no sum, and the reason is given. */
static void test_unfed(void) {
    cnr_error err = CNR_ERROR_INIT;
    fed = false;
    cnr_runtime *rt = open_runtime("fake-time");
    fed = true;
    cnr_model *model = load(rt);
    const cnr_profile_options o = {.size = sizeof o, .runs = 3, .energy = 1};
    cnr_timing t = {.size = sizeof t};
    is_int(cnr_profile(model, &o, NULL, &t, &err), CNR_OK, "a profile of what no meter feeds");
    const cnr_energy *e = t.energy;
    ok(e && e->source == CNR_ENERGY_UNMEASURED && isnan(e->joules) && isnan(e->edp),
       "has no joules");
    if (e) is_text(e->why, "no meter feeds cpu", "and says why");
    ok(e && e->n > 0 && e->at[0].joules > 0 && !e->at[0].summed, "though a domain is told");
    cnr_timing_free(&t);
    cnr_release(model);
    cnr_close(rt);
}

/* Makes the tree sys/class/hwmon/hwmon0 with its files, or (make: false) removes it. */
static void tree(bool make) {
    static const char *const folders[] = {"sys", "sys/class", "sys/class/hwmon",
                                          "sys/class/hwmon/hwmon0"};
    static const char *const files[][2] = {{"sys/class/hwmon/hwmon0/name", "ina226"},
                                           {"sys/class/hwmon/hwmon0/power1_input", "6000000"}};
    for (int i = 0; i < 4 && make; i++) mkdir(in_folder(folders[i]), 0700);
    for (int i = 0; i < 2; i++) {
        FILE *f = make ? fopen(in_folder(files[i][0]), "w") : NULL;
        if (f) fprintf(f, "%s\n", files[i][1]);
        if (f) fclose(f);
        if (!make) unlink(in_folder(files[i][0]));
    }
    for (int i = 3; i >= 0 && !make; i--) rmdir(in_folder(folders[i]));
}

int main(void) {
    if (!mkdtemp(folder)) abort();
    tree(true);
    test_profile(NULL);
    test_repeat();
    test_cancelled();
    test_long_work();
    test_command();
    test_loaded();
    FILE *board = fopen(in_folder("board.lua"), "w");
    if (board) fputs("return { domains = { { match = \"gpu\", feeds = \"cpu\" } } }\n", board);
    if (board) fclose(board);
    test_profile(
        "fake-time"); /* plugins stay loaded: the made-up meter would be in the sums above */
    test_unfed();
    test_follow();
    unlink(in_folder("board.lua"));
    unlink(in_folder("log.csv"));
    unlink(in_folder("counter.json"));
    unlink(in_folder("trained.cnr"));
    tree(false);
    rmdir(folder);
    return done();
}
