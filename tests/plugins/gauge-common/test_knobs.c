/* Knobs of cpufreq, devfreq, kgsl and NVML in trees of files: what is found, set, read back and put
 * back, by the process, by a signal's handler, and by the next one where a process was killed. */
#include "gauges/gauges.h"
#include "host/host.h"
#include "graph/graph.h"
#include "tests/tap.h"
#include "people/people.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU "sys/devices/system/cpu/"
#define GPU "sys/class/devfreq/11800000.mali/"
#define KGSL "sys/class/kgsl/kgsl-3d0/"

static char root[256];

/* Writes a file of the tree. */
static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = full + strlen(root) + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(full, 0755);
            *p = '/';
        }
    FILE *f = fopen(full, "w");
    if (!f || fputs(text, f) < 0) exit(2);
    fclose(f);
}

/* The text of a file, valid for seven more calls. */
static const char *text(const char *path) {
    static char at[8][64];
    static int turn;
    char full[512], *out = at[turn = (turn + 1) % 8];
    snprintf(full, sizeof full, "%s/%s", root, path);
    FILE *f = fopen(full, "r");
    const size_t n = f ? fread(out, 1, 63, f) : 0;
    if (f) fclose(f);
    out[n] = 0;
    out[strcspn(out, "\n")] = 0;
    return out;
}

/* Makes the tree. */
static void make_tree(void) {
    put("proc/stat", "cpu  9 9 9 9\ncpu0 100 0 0 300 0 0 0 0\ncpu4 50 0 0 50\n");
    put("proc/sys/kernel/random/boot_id", "11111111-2222\n");
    for (int cpu = 0; cpu < 8; cpu++) {
        char path[64];
        snprintf(path, sizeof path, CPU "cpu%d/online", cpu);
        if (cpu) put(path, cpu == 7 ? "0\n" : "1\n");
    }
    put(CPU "cpufreq/policy0/related_cpus", "0 1 2 3\n");
    put(CPU "cpufreq/policy0/scaling_cur_freq", "1000000\n");
    put(CPU "cpufreq/policy0/scaling_min_freq", "600000\n");
    put(CPU "cpufreq/policy0/scaling_max_freq", "1300000"); /* no newline */
    put(CPU "cpufreq/policy0/scaling_available_frequencies", "1400000 1300000 1000000 600000 \n");
    put(CPU "cpufreq/policy0/cpuinfo_max_freq", "1400000\n");
    put(CPU "cpufreq/policy4/related_cpus", "4 5 6 7\n");
    put(CPU "cpufreq/policy4/scaling_cur_freq", "800000\n");
    put(CPU "cpufreq/policy4/scaling_min_freq", "800000\n");
    put(CPU "cpufreq/policy4/scaling_max_freq", "2000000\n");
    put(CPU "cpufreq/policy4/cpuinfo_max_freq", "2000000\n");
    put(GPU "cur_freq", "480000000\n");
    put(GPU "min_freq", "177000000\n");
    put(GPU "max_freq", "480000000\n");
    put(GPU "available_frequencies",
        "177000000 266000000 350000000 420000000 480000000 543000000\n");
    put(GPU "load", "37@585000000Hz\n");
    put(KGSL "gpuclk", "585000000\n");
    put(KGSL "gpu_available_frequencies", "585000000 490000000 367000000 180000000 \n");
    put(KGSL "num_pwrlevels", "4\n");
    put(KGSL "min_pwrlevel", "3\n");
    put(KGSL "max_pwrlevel", "1\n");
    put(KGSL "thermal_pwrlevel", "0\n");
    put(KGSL "gpubusy", "0 0\n");
    put(KGSL "temp", "51000\n");
}

static cnri_gauges g;
/* Opens the gauges on the tree. */
static cnr_status open_gauges(void) {
    const cnr_gauge_options o = {.size = sizeof o, .root = root};
    return cnri_gauges_open(&g, &o, NULL);
}

/* The knob of a plugin, or NULL. */
static cnri_knob_set *set_of(const char *knob) {
    for (int32_t i = 0; i < g.knobs.n; i++)
        if (strcmp(g.knobs.at[i].knob->name, knob) == 0) return &g.knobs.at[i];
    return NULL;
}

/* Clusters of cores by files of cpufreq. */
static void test_cpufreq(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_knob_state state;
    open_gauges();
    cnri_knob_set *k = set_of("cpufreq");
    is_int(k->n, 2, "a domain a policy");
    const cnr_knob_domain *little = &k->domains[0], *big = &k->domains[1];
    is_text(little->name, "cpu0-3", "named by its cores");
    ok(strcmp(little->devices, "cpu:little") == 0 && strcmp(big->devices, "cpu:big") == 0,
       "which devices they clock");
    ok(little->min_hz == 600000000 && little->max_hz == 1300000000,
       "bounds are what was found, not what is possible");
    ok(little->n_steps == 4 && big->n_steps == 0, "steps, or any frequency");
    ok(little->min_cores == 1 && little->max_cores == 4 && big->max_cores == 3,
       "cores that were found on");
    is_int(cnri_knob_read(k, 0, &state, &err), CNR_OK, "read");
    ok(state.hz == 1000000000 && state.load_percent == -1 && state.cores == 4,
       "no load by one look");
    put("proc/stat", "cpu  9 9 9 9\ncpu0 160 0 0 340 0 0 0 0\ncpu4 50 0 0 50\n");
    cnri_knob_read(k, 0, &state, &err);
    is_int(state.load_percent, 60, "by two, there is");
    is_int(cnri_knob_set_to(k, 0, UINT64_C(10000000000000), 2, &err), CNR_OK, "10 THz, 2 cores");
    is_text(text(CPU "cpufreq/policy0/scaling_max_freq"), "1300000", "never above what was found");
    is_text(text(CPU "cpufreq/policy0/scaling_min_freq"), "1300000", "both bounds");
    ok(*text(CPU "cpu1/online") == '1' && *text(CPU "cpu2/online") == '0' &&
           *text(CPU "cpu3/online") == '0',
       "the first cores stay on");
    is_int(cnri_knob_set_to(k, 1, 900000123, -1, &err), CNR_OK, "where any frequency will do");
    is_text(text(CPU "cpufreq/policy4/scaling_max_freq"), "900000", "in kilohertz");
    is_text(text(CPU "cpu7/online"), "0", "a core that was off stays off");
    is_int(cnri_gauges_close(&g, &err), CNR_OK, "closed");
    is_text(text(CPU "cpufreq/policy0/scaling_min_freq"), "600000", "and all is as it was");
    is_text(text(CPU "cpufreq/policy4/scaling_max_freq"), "2000000", "of each policy");
    ok(*text(CPU "cpu2/online") == '1' && *text(CPU "cpu7/online") == '0', "and of the cores");
}

/* GPU and memory bus by files of devfreq. */
static void test_devfreq(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_knob_state state;
    open_gauges();
    cnri_knob_set *k = set_of("devfreq");
    cnri_knob_read(k, 0, &state, &err);
    ok(state.hz == 480000000 && state.load_percent == 37, "37@585000000Hz is a load of 37");
    is_text(k->domains[0].devices, "opencl:0", "mali is the GPU");
    is_int(cnri_knob_set_to(k, 0, 543000000, -1, &err), CNR_OK, "a step above the bound");
    is_text(text(GPU "max_freq"), "480000000", "becomes the highest within");
    is_int(cnri_knob_set_to(k, 0, 300000000, -1, &err), CNR_OK, "between two steps");
    is_text(text(GPU "min_freq"), "266000000", "the lower");
    cnri_gauges_close(&g, NULL);
    ok(strcmp(text(GPU "min_freq"), "177000000") == 0 &&
           strcmp(text(GPU "max_freq"), "480000000") == 0,
       "put back");
}

/* Adreno's GPU by its levels. */
static void test_kgsl(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_knob_state state;
    open_gauges();
    cnri_knob_set *k = set_of("kgsl");
    ok(k->domains[0].max_hz == 490000000 && k->domains[0].min_hz == 180000000,
       "levels, 0 the fastest");
    cnri_knob_read(k, 0, &state, &err);
    ok(state.load_percent == 0 && state.temperature_mc == 51000, "busy 0 0 is a load of 0");
    put(KGSL "gpubusy", " 3000 4000\n");
    cnri_knob_read(k, 0, &state, &err);
    is_int(state.load_percent, 75, "busy of total");
    is_int(cnri_knob_set_to(k, 0, 367000000, -1, &err), CNR_OK, "set");
    ok(*text(KGSL "min_pwrlevel") == '2' && *text(KGSL "max_pwrlevel") == '2', "by its level");
    is_int(cnri_knob_set_to(k, 0, 585000000, -1, &err), CNR_OK, "above what was found");
    ok(*text(KGSL "max_pwrlevel") == '1', "the highest within");
    is_text(text(KGSL "thermal_pwrlevel"), "0", "what keeps it cool is never touched");
    cnri_gauges_close(&g, NULL);
    ok(*text(KGSL "min_pwrlevel") == '3' && *text(KGSL "max_pwrlevel") == '1', "put back");
}

/* A card by the fake library. */
static void test_nvml(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_knob_state state;
    char own[256];
    snprintf(own, sizeof own, "%s", root);
    snprintf(root, sizeof root, "%s", CNRT_BUILD_DIR "/tests/plugins/meter-nvml");
    open_gauges();
    cnri_knob_set *k = set_of("nvml");
    ok(k && k->n == 2, "NVML: two cards");
    if (!k) return;
    ok(k->domains[0].max_hz == 1500000000 && k->domains[0].n_steps == 4,
       "the clock that applications have is the bound");
    ok(!k->domains[1].is_writable, "one whose clocks are not told is only read");
    cnri_knob_read(k, 0, &state, &err);
    ok(state.hz == 1500000000 && state.load_percent == 42 && state.temperature_mc == 44000,
       "clock, load, temperature");
    if (geteuid() == 0) {
        is_int(cnri_knob_set_to(k, 0, 1900000000, -1, &err), CNR_OK, "set");
        cnri_knob_set_to(k, 0, 1000000000, -1, &err);
        cnri_knob_read(k, 0, &state, &err);
        is_int((long long)state.hz, 1000000000, "to a step");
        cnri_knobs_restore(&g, NULL);
        cnri_knob_read(k, 0, &state, &err);
        is_int((long long)state.hz, 1500000000, "and put back");
    }
    cnri_gauges_close(&g, NULL);
    snprintf(root, sizeof root, "%s", own);
}

/* Files that are empty, missing or refuse a value. */
static void test_faults(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_knob_state state;
    open_gauges();
    cnri_knob_set *k = set_of("devfreq");
    put(GPU "cur_freq", "");
    is_int(cnri_knob_read(k, 0, &state, &err), CNR_E_IO, "an attribute that holds nothing");
    has_text(err.text, "cur_freq: holds nothing", "is told");
    put(GPU "cur_freq", "480000000\n");
    char path[300];
    snprintf(path, sizeof path, "%s/" GPU "min_freq", root);
    unlink(path);
    ok(cnri_knob_set_to(k, 0, 266000000, -1, &err) != CNR_OK, "one that is gone");
    has_text(err.text, "min_freq: can't be set to 266000000: No such file", "is told, too");
    put(GPU "min_freq", "177000000\n");
    cnri_gauges_close(&g, NULL);
    put(GPU "min_freq", "600000000\n"); /* above the most */
    open_gauges();
    ok(!set_of("devfreq")->domains[0].is_writable, "bounds that cross are only read");
    cnri_gauges_close(&g, NULL);
    put(GPU "min_freq", "177000000\n");
}

/* ---- processes that end before they put back ---- */

static const uint64_t steps[] = {177000000, 266000000, 350000000, 420000000, 480000000};

/* Starts a process that switches a clock; returns its id. */
static pid_t start_switching(int ready[2]) {
    if (pipe(ready)) exit(2);
    const pid_t pid = fork();
    if (pid) {
        close(ready[1]);
        return pid;
    }
    open_gauges();
    cnri_knob_set *k = set_of("devfreq");
    for (int i = 0;; i++) {
        cnr_error err = CNR_ERROR_INIT;
        if (cnri_knob_set_to(k, 0, steps[i % 5], -1, &err)) {
            note("%s: %s", err.where, err.text);
            _exit(3);
        }
        if (i == 4 && write(ready[1], "x", 1) != 1) _exit(4);
    }
}

/* 1: the clock is as it was found. */
static int is_as_found(void) {
    return strcmp(text(GPU "min_freq"), "177000000") == 0 &&
           strcmp(text(GPU "max_freq"), "480000000") == 0;
}

/* Clocks of processes that are killed while they switch are restored. */
static void test_killed(void) {
    const cnr_gauge_options o = {.size = sizeof o, .root = root};
    int back = 0, moved = 0;
    for (int i = 0; i < 100; i++) {
        int ready[2];
        char byte;
        const pid_t pid = start_switching(ready);
        if (read(ready[0], &byte, 1) != 1) {
            ok(0, "a process that switches");
            return;
        }
        usleep((useconds_t)(i * 37 % 400));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(ready[0]);
        moved += !is_as_found();
        int32_t brought = 0;
        cnri_knobs_recover(&o, &brought, NULL);
        back += brought == 1 && is_as_found();
    }
    is_int(back, 100, "killed in the middle of 100 switches, the next start has put all back");
    ok(moved > 50, "of which %d were away from what was found", moved);
    int32_t brought = 9;
    is_int(cnri_knobs_recover(&o, &brought, NULL), CNR_OK, "once more");
    is_int(brought, 0, "there is nothing to put back");
}

/* Two processes don't set one knob, and after a restart of the machine nothing is put back. */
static void test_restarted(void) {
    const cnr_gauge_options o = {.size = sizeof o, .root = root};
    int ready[2];
    char byte;
    int32_t brought = 9;
    const pid_t pid = start_switching(ready);
    if (read(ready[0], &byte, 1) != 1) {
        ok(0, "a process that switches");
        return;
    }
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = CNR_E_UNSUPPORTED;
    for (int i = 0; i < 100 && status == CNR_E_UNSUPPORTED;
         i++) { /* a file here is empty while it is written */
        if (i) cnri_gauges_close(&g, NULL);
        open_gauges();
        status = cnri_knob_set_to(set_of("devfreq"), 0, 266000000, -1, &err);
    }
    is_int(status, CNR_E_STATE, "two processes don't set one knob");
    has_text(err.text, "another process sets it", "which the second is told");
    cnri_knobs_recover(&o, &brought, NULL);
    is_int(brought, 0, "nor does one put back what another sets");
    cnri_gauges_close(&g, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    put("proc/sys/kernel/random/boot_id", "33333333-4444\n");
    cnri_knobs_recover(&o, &brought, NULL);
    is_int(brought, 0, "after a restart of the machine there is nothing to put back");
    put(GPU "max_freq", "480000000\n");
    put(GPU "min_freq", "177000000\n");
}

/* Exit hooks restore the clocks. */
static void test_signal(void) {
    const pid_t pid = fork();
    if (!pid) {
        open_gauges();
        cnri_knob_set_to(set_of("devfreq"), 0, 266000000, -1, NULL);
        if (is_as_found()) _exit(3);
        cnri_exit_hooks_run(); /* what handlers call */
        _exit(is_as_found() ? 0 : 4);
    }
    int how = 0;
    waitpid(pid, &how, 0);
    is_int(how, 0, "a signal's handler puts back");
}

int main(void) {
    const char *const dirs[] = {CNRT_BUILD_DIR "/plugins/knob-cpufreq.so",
                                CNRT_BUILD_DIR "/plugins/knob-devfreq.so",
                                CNRT_BUILD_DIR "/plugins/knob-kgsl.so",
                                CNRT_BUILD_DIR "/plugins/knob-nvml.so", NULL};
    cnr_error err = CNR_ERROR_INIT;
    char cache[300];
    snprintf(root, sizeof root, "/tmp/cnnrun-knobs-XXXXXX");
    if (!mkdtemp(root)) return 2;
    snprintf(cache, sizeof cache, "%s/cache", root);
    setenv("CNNRUN_CACHE", cache, 1);
    cnri_log_to(NULL, NULL, CNR_LOG_ERROR);
    cnri_graph_install(cnri_host_mutable());
    if (!is_int(cnri_plugins_load(dirs, false, &err), CNR_OK, "the plugins load"))
        note("%s", err.text);
    make_tree();
    test_cpufreq();
    test_devfreq();
    test_kgsl();
    test_nvml();
    test_faults();
    test_killed();
    test_restarted();
    test_signal();
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", root);
    if (getenv("KEEP")) note("%s", root);
    else if (system(command)) note("%s is left", root);
    return done();
}
