/* cnnrun kernelcheck: every kernel of every plugin against its operator's reference, as TAP; each
 * in a process of its own, begun again behind a case that ended it. */
#include "core/cli/cli.h"
#include "core/check/check.h"
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct settings {
    const char *plugin, *op, *kernel, *device, *worker;
    int64_t seed, cases, only, threads;
    double timeout;
    bool bench;
} settings;

static const cnri_option options[] = {
    {"--plugin", "NAME", CNRI_OPT_TEXT, offsetof(settings, plugin), "only kernels of this plugin",
     0, 0, NULL, 0},
    {"--op", "NAME", CNRI_OPT_TEXT, offsetof(settings, op), "only kernels for this operator", 0, 0,
     NULL, 0},
    {"--kernel", "NAME", CNRI_OPT_TEXT, offsetof(settings, kernel), "only this kernel", 0, 0, NULL,
     0},
    {"--device", "NAME", CNRI_OPT_TEXT, offsetof(settings, device), "only on this device", 0, 0,
     NULL, 0},
    {"--seed", "N", CNRI_OPT_INT, offsetof(settings, seed), "draws other cases (1)", 0, 1e15, NULL,
     0},
    {"--cases", "N", CNRI_OPT_INT, offsetof(settings, cases), "cases a kernel (20)", 1, 1e6, NULL,
     0},
    {"--case", "N", CNRI_OPT_INT, offsetof(settings, only), "this case alone", 0, 1e9, NULL, 0},
    {"--threads", "N", CNRI_OPT_INT, offsetof(settings, threads),
     "of devices with threads (cases take turns at 1 and 3)", 1, 1024, NULL, 0},
    {"--timeout", "SECONDS", CNRI_OPT_REAL, offsetof(settings, timeout), "for one case (30)", 0.1,
     1e6, NULL, 0},
    {"--bench", NULL, CNRI_OPT_FLAG, offsetof(settings, bench), "time the cases too", 0, 0, NULL,
     0},
    {"--worker", "WORDS", CNRI_OPT_TEXT, offsetof(settings, worker), NULL, 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "kernelcheck",
    .operands = "",
    .summary = "Runs every kernel on nodes drawn from its operator's schema and compares with the\n"
               "operator's reference. Prints TAP: one test a kernel and device.",
    .details = "Cases follow from --seed, the kernel's name and their number, so that one can be\n"
               "run again alone. A kernel of any operator gets a tenth of the cases for each of\n"
               "them. A kernel that crashes or does not end costs that case only. --op and\n"
               "--kernel together pick an operator for a kernel of any.\n"
               "JSON: {\"kernel\", \"device\", \"plugin\", \"cases\", \"failures\", "
               "\"skipped\", \"why\"}, a line\na test.",
    .options = options,
    .n_options = CNRI_COUNT(options)};

/* ---- one kernel on one device ---- */

typedef struct test {
    const settings *s;
    const cnr_kernel *kernel;
    const char *device;
    int32_t index;      /* of the kernel in the registry */
    int64_t next;       /* case to begin with */
    int64_t passed, failed;
    bool quiet;         /* no diagnostics on stdout */
    char text[2048];    /* of the case that runs; "" while one is looked for */
    int64_t number;
    char first[2200];   /* failure */
    char why[300];      /* there were no cases */
    bool ended;
} test;

/* Diagnostics of TAP; with --json they are no results. */
static void CNRI_PRINTF(2, 3) note(const test *t, const char *format, ...) {
    va_list args;
    FILE *to = t->quiet ? stderr : stdout;
    va_start(args, format);
    cnri_say(to, "# ");
    cnri_sayv(to, format, args);
    cnri_say(to, "\n");
    va_end(args);
}

static void fail_case(test *t, const char *why) {
    const char *text = t->text[0] ? t->text : "(while it was asked for)";
    t->failed++;
    note(t, "%s on %s, seed %lld, case %lld: %s", t->kernel->name, t->device,
         (long long)t->s->seed, (long long)t->number, text);
    note(t, "    %s", why);
    if (!t->first[0])
        snprintf(t->first, sizeof t->first, "case %lld: %s", (long long)t->number, why);
}

/* One line of the worker's. */
static void hear(test *t, char *line) {
    char word[8] = "";
    long long number = 0;
    int n = 0;
    if (sscanf(line, "%7[a-z] %lld%n", word, &number, &n) < 2) {
        note(t, "%s", line);
        return;
    }
    const char *rest = line + n + (line[n] == ' ');
    if (strcmp(word, "draw") == 0 || strcmp(word, "case") == 0) {
        t->number = number;
        t->next = number + 1;
        snprintf(t->text, sizeof t->text, "%s", strcmp(word, "case") == 0 ? rest : "");
    } else if (strcmp(word, "pass") == 0) t->passed++;
    else if (strcmp(word, "fail") == 0) fail_case(t, rest);
    else if (strcmp(word, "end") == 0) {
        t->ended = true;
        snprintf(t->why, sizeof t->why, "%s", rest);
    } else if (strcmp(word, "time") == 0) {
        double ms = 0, rate = 0;
        const char *end = rest;
        cnri_parse_double(rest, &end, &ms);
        if (*end == ' ') cnri_parse_double(end + 1, &end, &rate);
        note(t, "%s case %lld: %.4f ms, %.2f GFLOP/s: %s", t->kernel->name, number, ms, rate,
             t->text);
    } else note(t, "%s", line);
}

/* The program again, as a worker. -1: it could not be begun. */
static pid_t begin(const test *t, int argc, char **argv, int *from) {
    char words[64];
    int ends[2];
    char **again = cnri_alloc((size_t)(argc + 4) * sizeof *again);
    if (!again || pipe(ends) != 0) {
        cnri_free(again);
        return -1;
    }
    snprintf(words, sizeof words, "%d:%lld:%s", (int)t->index, (long long)t->next, t->device);
    char program[] = "cnnrun", flag[] = "--worker";
    int n = 0;
    again[n++] = program;
    for (int i = 0; i < argc; i++) again[n++] = argv[i];
    again[n++] = flag;
    again[n++] = words;
    again[n] = NULL;
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv("/proc/self/exe", again);
        _exit(127);
    }
    close(ends[1]);
    cnri_free(again);
    if (pid < 0) close(ends[0]);
    *from = ends[0];
    return pid;
}

/* Lines until the worker ends; false when it said nothing for too long. */
static bool listen_to(test *t, int from) {
    char buffer[8192];
    size_t n = 0;
    for (;;) {
        struct pollfd p = {.fd = from, .events = POLLIN};
        const int ready = poll(&p, 1, (int)(t->s->timeout * 1000));
        if (ready == 0) return false;
        if (cnri_cancelled()) return true;
        if (ready < 0) continue;
        const ssize_t got = read(from, buffer + n, sizeof buffer - 1 - n);
        if (got <= 0) return true;
        n += (size_t)got;
        buffer[n] = 0;
        char *line = buffer;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            hear(t, line);
        }
        n -= (size_t)(line - buffer);
        memmove(buffer, line, n);
        if (n == sizeof buffer - 1) n = 0; /* a line without end is nobody's */
    }
}

/* Workers until one comes to the end. */
static void run_test(test *t, int argc, char **argv) {
    while (!t->ended && !cnri_cancelled()) {
        int from, state = 0;
        char why[128];
        const int64_t was = t->next, passed = t->passed + t->failed;
        t->text[0] = 0;
        const pid_t pid = begin(t, argc, argv, &from);
        if (pid < 0) {
            fail_case(t, "no process could be begun");
            return;
        }
        const bool spoke = listen_to(t, from);
        if (!spoke || cnri_cancelled()) kill(pid, SIGKILL);
        close(from);
        waitpid(pid, &state, 0);
        if (t->ended || cnri_cancelled()) return;
        if (!spoke) snprintf(why, sizeof why, "did not end within %g s", t->s->timeout);
        else if (WIFSIGNALED(state))
            snprintf(why, sizeof why, "died of %s (signal %d)", strsignal(WTERMSIG(state)),
                     WTERMSIG(state));
        else snprintf(why, sizeof why, "ended with code %d", WEXITSTATUS(state));
        fail_case(t, why);
        if (t->next == was && t->passed + t->failed == passed + 1) return; /* no case was begun */
    }
}

/* ---- the list of tests ---- */

static bool wanted(const settings *s, const cnr_kernel *k) {
    const bool any = strcmp(k->op, CNR_ANY_OP) == 0;
    const cnri_plugin *owner = cnri_owner(k);
    if (s->plugin && (!owner || strcmp(owner->name, s->plugin) != 0)) return false;
    if (s->kernel && strcmp(k->name, s->kernel) != 0) return false;
    if (!s->op) return true;
    const cnr_op *op = cnri_op(s->op);
    return any || strcmp(k->op, s->op) == 0 || (op && strcmp(k->op, op->name) == 0);
}

static bool drives(const cnr_kernel *k, const cnr_device_class *cls) {
    return strcmp(k->device, cls->name) == 0 || strcmp(k->device, cls->family) == 0;
}

/* Only for what the wanted kernels run on: other drivers stay asleep. */
static cnr_status ask_devices(const settings *s, cnri_devices *set, cnr_error *err) {
    const cnri_device *named;
    cnr_status status = CNR_OK;
    if (s->device) return cnri_device_find(set, s->device, &named, err);
    for (int32_t i = 0; i < cnri_count(CNR_KIND_DEVICE) && !status; i++) {
        const cnr_device_class *cls = cnri_at(CNR_KIND_DEVICE, i);
        bool needed = false;
        for (int32_t k = 0; k < cnri_count(CNR_KIND_KERNEL) && !needed; k++) {
            const cnr_kernel *kernel = cnri_at(CNR_KIND_KERNEL, k);
            needed = drives(kernel, cls) && wanted(s, kernel);
        }
        if (needed) status = cnri_devices_ask(set, cls->family, err);
    }
    return status;
}

typedef struct totals { int32_t tests, failed, skipped; int64_t cases; } totals;

static cnr_status report(const test *t, totals *sum, cnr_error *err) {
    const int64_t cases = t->passed + t->failed;
    const cnri_plugin *owner = cnri_owner(t->kernel);
    const bool skipped = cases == 0;
    sum->tests++;
    sum->cases += cases;
    sum->failed += t->failed > 0;
    sum->skipped += skipped;
    if (t->quiet) {
        cnri_json j = {0};
        cnri_json_begin(&j);
        cnri_json_text(&j, "kernel", t->kernel->name);
        cnri_json_text(&j, "device", t->device);
        cnri_json_text(&j, "plugin", owner ? owner->name : NULL);
        cnri_json_int(&j, "cases", cases);
        cnri_json_int(&j, "failures", t->failed);
        cnri_json_bool(&j, "skipped", skipped);
        cnri_json_text(&j, "why", skipped ? t->why : t->failed ? t->first : NULL);
        return cnri_json_print(&j, err);
    }
    cnri_say(stdout, "%sok %d - %s on %s", t->failed ? "not " : "", sum->tests, t->kernel->name,
             t->device);
    if (skipped) cnri_say(stdout, " # SKIP no case could be drawn: %s\n", t->why);
    else if (t->failed)
        cnri_say(stdout, ": %lld of %lld cases failed; %s\n", (long long)t->failed,
                 (long long)cases, t->first);
    else cnri_say(stdout, ": %lld cases\n", (long long)cases);
    fflush(stdout);
    return CNR_OK;
}

static cnr_status check_kernel(const settings *s, const cnri_args *args, const cnri_devices *set,
                               int32_t index, totals *sum, int argc, char **argv, cnr_error *err) {
    const cnr_kernel *k = cnri_at(CNR_KIND_KERNEL, index);
    cnr_status status = CNR_OK;
    bool driven = false;
    for (int32_t i = 0; i < set->n && !status && !cnri_cancelled(); i++) {
        if (!drives(k, set->at[i]->device.cls)) continue;
        if (s->device && strcmp(s->device, set->at[i]->name) != 0) continue;
        test t = {.s = s, .kernel = k, .device = set->at[i]->name, .index = index,
                  .quiet = args->common.json};
        driven = true;
        run_test(&t, argc, argv);
        status = report(&t, sum, err);
    }
    if (driven || s->device || status || cnri_cancelled()) return status;
    test t = {.s = s, .kernel = k, .device = k->device, .quiet = args->common.json};
    snprintf(t.why, sizeof t.why, "there is no such device here");
    return report(&t, sum, err);
}

static int check_all(const settings *s, const cnri_args *args, int argc, char **argv) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt;
    totals sum = {0};
    cnr_status status = cnri_args_open(args, &rt, &err);
    if (status) return cnri_complain(args, &err);
    status = ask_devices(s, &rt->devices, &err);
    if (!args->common.json) cnri_say(stdout, "# seed %lld\n", (long long)s->seed);
    for (int32_t i = 0; i < cnri_count(CNR_KIND_KERNEL) && !status && !cnri_cancelled(); i++)
        if (wanted(s, cnri_at(CNR_KIND_KERNEL, i)))
            status = check_kernel(s, args, &rt->devices, i, &sum, argc, argv, &err);
    if (!status && sum.tests == 0)
        status = cnri_fail(&err, CNR_E_NOT_FOUND, NULL, "no kernel is like that");
    if (!args->common.json && sum.tests) {
        cnri_say(stdout, "1..%d\n", sum.tests);
        cnri_say(stdout, "# %d kernels, %lld cases, %d failed, %d skipped\n", sum.tests,
                 (long long)sum.cases, sum.failed, sum.skipped);
    }
    cnr_close(rt);
    if (status) return cnri_complain(args, &err);
    if (cnri_cancelled()) return -CNR_E_CANCELLED;
    return sum.failed ? 1 : 0;
}

/* ---- the worker ---- */

static int work(const settings *s, const cnri_args *args) {
    int index = 0, n = 0;
    long long first = 0;
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt;
    cnr_status status = cnri_args_open(args, &rt, &err);
    if (status) return cnri_complain(args, &err);
    if (sscanf(s->worker, "%d:%lld:%n", &index, &first, &n) < 2 || n == 0 || index < 0 ||
        index >= cnri_count(CNR_KIND_KERNEL))
        status = cnri_fail(&err, CNR_E_ARG, "--worker", "not for people");
    if (!status) {
        const cnri_work w = {.kernel = cnri_at(CNR_KIND_KERNEL, index), .device = s->worker + n,
                             .seed = (uint64_t)s->seed, .first = first, .cases = s->cases,
                             .only = s->only, .threads = (int32_t)s->threads, .bench = s->bench,
                             .op = s->op ? cnri_op(s->op) : NULL};
        status = cnri_work_run(&w, &err);
    }
    cnr_close(rt);
    return status ? cnri_complain(args, &err) : 0;
}

int cnri_cmd_kernelcheck(int argc, char **argv) {
    settings s = {.seed = 1, .cases = 20, .only = -1, .timeout = 30};
    cnri_args args;
    int code;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &s, &code)) return code;
    code = s.worker ? work(&s, &args) : check_all(&s, &args, argc, argv);
    cnri_args_free(&args);
    return code;
}
