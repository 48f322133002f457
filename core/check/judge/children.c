/* Kernels and operators judged one after the other, each by the program begun anew, and begun again
 * behind a case that ended it.
 *
 * Drivers are woken by children alone, one at a time: some do not live through a fork, some are not
 * there for a second process while the first holds them, and some crash when asked what there is.
 */
#include "judge/net.h"
#include "people/people.h"
#include <stdio.h>
#include <stdlib.h>

/* A device that the child has found. */
typedef struct named_device {
    char name[40], cls[64], family[64];
} named_device;

/* A check that is under way. */
typedef struct checker {
    const cnri_check_options *o;
    cnri_check_totals *sum;
    CNRI_VEC(named_device) devices;
} checker;

static bool cancelled(const cnri_check_options *o) { return o->cancelled && o->cancelled(); }

/* ---- one test ---- */

/* State of reading a child's lines: the test, the case that is under way, and totals. */
typedef struct hearing {
    const cnri_check_options *o;
    cnri_check_test *t;
    int64_t next;    /* number of the first case of the next child */
    int64_t number;  /* number of the current case */
    char text[2048]; /* text of the current case; "" while one is searched */
    bool ended;
    cnri_check_test *tests; /* of a net: tests by kernel */
    cnri_check_totals *sum;
    int code; /* code of an error, whose text is in `text`; 0: none */
} hearing;

static void CNRI_PRINTF(2, 3) note(const cnri_check_options *o, const char *format, ...) {
    char text[8400]; /* one line and its name */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (o->note) o->note(o->arg, text);
}

/* Counts the current case as failed and prints how to repeat it. */
static void fail_case(hearing *h, const char *why) {
    const cnri_check_test *t = h->t;
    note(h->o, "%s%s%s, seed %lld, case %lld: %s", t->name, t->device ? " on " : "",
         t->device ? t->device : "", (long long)h->o->seed, (long long)h->number,
         h->text[0] ? h->text : "(while it was asked for)");
    note(h->o, "    %s", why);
    h->t->failures++;
    h->t->cases++;
    if (!t->first[0])
        snprintf(h->t->first, sizeof t->first, "case %lld: %s", (long long)h->number, why);
}

/* Takes the time of a case and prints it. */
static void hear_time(const hearing *h, const char *rest) {
    double ms = 0, rate = 0;
    const char *at = rest;
    cnri_parse_double(rest, &at, &ms);
    if (*at == ' ') cnri_parse_double(at + 1, &at, &rate);
    note(h->o, "%s case %lld: %.4f ms, %.2f GFLOP/s: %s", h->t->name, (long long)h->number, ms,
         rate, h->text);
}

/* Counts a case that passed, and the promises judged in it. */
static void hear_pass(hearing *h, const char *rest) {
    unsigned made = 0, judged = 0;
    h->t->cases++;
    if (sscanf(rest, "%x %x", &made, &judged) != 2) return;
    h->t->promises.made |= made;
    h->t->promises.judged |= judged;
}

/* Handles lines that only nets have. False: it failed. */
static bool hear_net(hearing *h, const char *word, long long number, const char *rest) {
    const int32_t n = cnri_descriptor_count(CNR_KIND_KERNEL);
    if (strcmp(word, "kernel") == 0 && number == -1) {
        h->t = &h->tests[n];
        h->t->name = "the plan";
    } else if (strcmp(word, "kernel") == 0 && number >= 0 && number < n) {
        h->t = &h->tests[number];
        h->t->kernel = cnri_descriptor_at(CNR_KIND_KERNEL, (int32_t)number);
        h->t->name = h->t->kernel->name;
    } else if (strcmp(word, "spot") == 0) {
        const int32_t all = (int32_t)strtol(rest, NULL, 10);
        if (h->next == 0 && number == 0) h->sum->nodes += all;
        if (h->o->progress) h->o->progress(h->o->arg, h->tests->device, number, all);
    } else if (strcmp(word, "odd") == 0) {
        h->sum->odd++;
        note(h->o, "not judged: %s", rest);
    } else if (strcmp(word, "error") == 0) {
        h->code = (int)number;
        snprintf(h->text, sizeof h->text, "%s", rest);
    } else return false;
    return true;
}

/* Takes one line from a child: notes the case, its result or an error. */
static void hear(void *arg, char *line) {
    hearing *h = arg;
    char word[8] = "";
    long long number = 0;
    int n = 0;
    if (sscanf(line, "%7[a-z] %lld%n", word, &number, &n) < 2) {
        note(h->o, "%s", line);
        return;
    }
    const char *rest = line + n + (line[n] == ' ');
    if (strcmp(word, "draw") == 0 || strcmp(word, "case") == 0) {
        h->number = number;
        h->next = number + 1;
        snprintf(h->text, sizeof h->text, "%s", strcmp(word, "case") == 0 ? rest : "");
    } else if (h->tests && hear_net(h, word, number, rest)) return;
    else if (strcmp(word, "pass") == 0) hear_pass(h, rest);
    else if (strcmp(word, "fail") == 0) fail_case(h, rest);
    else if (strcmp(word, "time") == 0) hear_time(h, rest);
    else if (strcmp(word, "end") == 0) {
        h->ended = true;
        if (h->t) snprintf(h->t->why, sizeof h->t->why, "%s", rest); /* else nothing was judged */
    } else note(h->o, "%s", line);
}

enum { MOST_DEATHS = 10 }; /* most deaths in a row, because later cases would end the same way */

/* Starts children until one reaches the end. `index`: of the subject in the registry. */
static void run_test(const cnri_check_options *o, cnri_check_test *t, int32_t index) {
    hearing h = {.o = o, .t = t};
    int32_t deaths = 0;
    while (!h.ended && !cancelled(o)) {
        char work[128], why[128];
        const int64_t was = h.next, cases = t->cases;
        h.text[0] = 0;
        snprintf(work, sizeof work, "%s:%d:%lld:%lld:%s", t->kernel ? "kernel" : "operator",
                 (int)index, (long long)h.next,
                 (long long)(o->enough ? o->enough - t->failures : 0), t->device ? t->device : "");
        if (!cnri_child_run(o, work, hear, &h, why, sizeof why)) {
            fail_case(&h, "no process could be begun");
            return;
        }
        if (h.ended || cancelled(o)) return;
        fail_case(&h, why[0] ? why : "ended before its end");
        if (h.next == was && t->cases == cases + 1) return; /* no case was begun */
        if (o->enough && t->failures >= o->enough) return;
        deaths = t->cases == cases + 1 ? deaths + 1 : 0;
        if (deaths < MOST_DEATHS) continue;
        note(o, "%s: %d cases in a row ended the process; the others are left out", t->name,
             (int)deaths);
        return;
    }
}

/* Checks a net on a device, in new children after crashes. Failed cases and crashes in them are
 * recorded in h and are no errors, nor is cancelling. Fails with CNR_E_STATE if no process can be
 * begun, with CNR_E_DEVICE if one ends before it begins a further case, or with the error that it
 * told. */
static cnr_status run_net(const cnri_check_options *o, hearing *h, const char *device,
                          cnr_error *err) {
    while (!h->ended && !cancelled(o)) {
        char work[128], why[128];
        const int64_t was = h->next;
        h->text[0] = 0;
        snprintf(work, sizeof work, "net:0:%lld:0:%s", (long long)h->next, device);
        if (!cnri_child_run(o, work, hear, h, why, sizeof why))
            return cnri_fail(err, CNR_E_STATE, "kernelcheck", "no process could be begun");
        if (h->code) return cnri_fail(err, -h->code, o->net, "%s", h->text);
        if (h->ended || cancelled(o)) break;
        if (h->next == was || !h->t)
            return cnri_fail(err, CNR_E_DEVICE, o->net, "planning it on %s: the process %s", device,
                             why[0] ? why : "ended too early");
        fail_case(h, why[0] ? why : "ended before its end");
        if (o->only >= 0) break;
    }
    return CNR_OK;
}

/* Counts a finished test and passes it on. */
static void finish(checker *k, cnri_check_test *t) {
    t->skipped = t->cases == 0;
    k->sum->tests++;
    k->sum->cases += t->cases;
    k->sum->failed += t->failures > 0;
    k->sum->skipped += t->skipped && !t->absent;
    k->sum->absent += t->absent;
    if (!t->failures && k->o->only < 0) /* one case cannot show all */
        t->unjudged = t->promises.made & ~t->promises.judged;
    k->sum->unjudged += t->unjudged != 0;
    if (k->o->tested) k->o->tested(k->o->arg, t);
}

/* ---- what is judged, and where ---- */

/* True if the descriptor is of the plugin that is checked, or any is. */
static bool of_plugin(const cnri_check_options *o, const void *descriptor) {
    const cnri_plugin *owner = cnri_owner(descriptor);
    return !o->plugin || (owner && strcmp(owner->name, o->plugin) == 0);
}

/* Kernel flags of the arithmetic that is checked; 0: exact. */
static uint32_t arithmetic_of(const cnri_check_options *o) {
    return !o->arithmetic                       ? 0
           : strcmp(o->arithmetic, "fp16") == 0 ? CNR_KERNEL_F16_MATH
                                                : CNR_KERNEL_BF16_MATH;
}

/* True if the options select the kernel. */
static bool kernel_wanted(const cnri_check_options *o, const cnr_kernel *k) {
    const uint32_t math = CNR_KERNEL_F16_MATH | CNR_KERNEL_BF16_MATH;
    const uint32_t halves = CNRI_HAS(k, flags) ? k->flags & math : 0;
    if (o->operators || !of_plugin(o, k)) return false;
    if (o->kernel ? strcmp(k->name, o->kernel) != 0 : halves != arithmetic_of(o)) return false;
    if (!o->op) return true;
    const cnr_op *op = cnri_op_find(o->op);
    return strcmp(k->op, CNR_ANY_OP) == 0 || strcmp(k->op, o->op) == 0 ||
           (op && strcmp(k->op, op->name) == 0);
}

/* True if the operator is to be judged. Options that name a device or a kernel leave operators
 * out. */
static bool operator_wanted(const cnri_check_options *o, const cnr_op *op) {
    if (o->kernel || o->arithmetic || o->device || !of_plugin(o, op)) return false;
    return CNRI_HAS(op, reference) && CNRI_HAS(op, infer) && (!o->op || cnri_op_find(o->op) == op);
}

/* True if a kernel is for that class or family. */
static bool drives(const cnr_kernel *k, const char *cls, const char *family) {
    return strcmp(k->device, cls) == 0 || strcmp(k->device, family) == 0;
}

/* True if a kernel to check needs devices of the class. */
static bool class_needed(const cnri_check_options *o, const cnr_device_class *cls) {
    for (int32_t k = 0; k < cnri_descriptor_count(CNR_KIND_KERNEL); k++) {
        const cnr_kernel *kernel = cnri_descriptor_at(CNR_KIND_KERNEL, k);
        if (drives(kernel, cls->name, cls->family) && kernel_wanted(o, kernel)) return true;
    }
    return false;
}

/* In a child: prints the devices that the wanted kernels run on; starts no other driver. */
static cnr_status tell_devices(const cnri_check_options *o, cnr_error *err) {
    cnri_devices set;
    const cnri_device *named;
    cnr_status status = CNR_OK;
    cnri_devices_init(&set, 1);
    if (o->device) status = cnri_device_find(&set, o->device, &named, err);
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && !status && !o->device; i++) {
        const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, i);
        if (class_needed(o, cls)) status = cnri_devices_ask(&set, cls->family, err);
    }
    for (int32_t i = 0; i < set.n && !status; i++) {
        const cnr_device_class *cls = set.at[i]->device.cls;
        if (!o->device || set.at[i] == named)
            cnri_say(stdout, "device %s %s %s\n", set.at[i]->name, cls->name, cls->family);
    }
    if (status) cnri_say(stdout, "error %d %s\n", (int)-status, err->text);
    fflush(stdout);
    cnri_devices_close(&set);
    return CNR_OK;
}

/* The answer of a child that lists devices. */
typedef struct listing {
    checker *k;
    int32_t code;
    bool starved;
    char text[512];
} listing;

/* Takes one line "device NAME CLASS FAMILY" or "error CODE TEXT" of a child that lists devices. */
static void hear_device(void *arg, char *line) {
    listing *l = arg;
    named_device d;
    int code = 0, n = 0;
    if (sscanf(line, "device %39s %63s %63s", d.name, d.cls, d.family) == 3) {
        named_device *slot = cnri_push(&l->k->devices);
        if (slot) *slot = d;
        else l->starved = true;
    } else if (sscanf(line, "error %d %n", &code, &n) == 1) {
        l->code = code;
        snprintf(l->text, sizeof l->text, "%s", line + n);
    }
}

/* Lists the devices in a child process into k->devices; leaves that list empty if no kernel needs
 * any. */
static cnr_status list_devices(checker *k, cnr_error *err) {
    listing l = {.k = k};
    char why[128];
    bool needed = k->o->device != NULL;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && !needed; i++)
        needed = class_needed(k->o, cnri_descriptor_at(CNR_KIND_DEVICE, i));
    if (!needed) return CNR_OK;
    if (!cnri_child_run(k->o, "devices", hear_device, &l, why, sizeof why))
        return cnri_fail(err, CNR_E_STATE, "kernelcheck", "no process could be begun");
    if (l.starved) return cnri_fail(err, CNR_E_MEMORY, "kernelcheck", "out of memory");
    if (l.code) return cnri_fail(err, -l.code, k->o->device, "%s", l.text);
    if (why[0] && !cancelled(k->o))
        return cnri_fail(err, CNR_E_DEVICE, "kernelcheck", "asking for the devices: it %s", why);
    return CNR_OK;
}

/* Checks a kernel on each device that it is for. */
static void check_kernel(checker *k, int32_t index) {
    const cnr_kernel *kernel = cnri_descriptor_at(CNR_KIND_KERNEL, index);
    bool driven = false;
    for (int32_t i = 0; i < k->devices.n && !cancelled(k->o); i++) {
        const named_device *d = &k->devices.at[i];
        if (!drives(kernel, d->cls, d->family)) continue;
        cnri_check_test t = {.name = kernel->name, .kernel = kernel, .device = d->name};
        driven = true;
        run_test(k->o, &t, index);
        finish(k, &t);
    }
    if (driven || k->o->device || cancelled(k->o)) return;
    cnri_check_test t = {.name = kernel->name,
                         .kernel = kernel,
                         .device = kernel->device,
                         .absent = true};
    snprintf(t.why, sizeof t.why, "there is no such device here");
    finish(k, &t);
}

/* Checks an operator's promises in a child process, and reports the test. */
static void check_operator(checker *k, int32_t index) {
    const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, index);
    cnri_check_test t = {.name = op->name, .op = op};
    run_test(k->o, &t, index);
    finish(k, &t);
}

/* Checks all nodes of a net on a device. */
static cnr_status check_net(checker *k, const named_device *d, cnr_error *err) {
    const int32_t n = cnri_descriptor_count(CNR_KIND_KERNEL);
    hearing h = {.o = k->o,
                 .sum = k->sum,
                 .tests = cnri_alloc_zero((size_t)(n + 1) * sizeof *h.tests)};
    if (!h.tests) return cnri_fail(err, CNR_E_MEMORY, "kernelcheck", "out of memory");
    for (int32_t i = 0; i <= n; i++) h.tests[i].device = d->name;
    const cnr_status status = run_net(k->o, &h, d->name, err);
    for (int32_t i = 0; i <= n && !status; i++)
        if (h.tests[i].cases) finish(k, &h.tests[i]);
    cnri_free(h.tests);
    return status;
}

cnr_status cnri_check_all(const cnri_check_options *o, cnri_check_totals *sum, cnr_error *err) {
    checker k = {.o = o, .sum = sum};
    *sum = (cnri_check_totals){0};
    if (o->arithmetic && strcmp(o->arithmetic, "fp16") != 0 && strcmp(o->arithmetic, "bf16") != 0)
        return cnri_fail(err, CNR_E_ARG, "arithmetic", "\"%s\": want fp16 or bf16", o->arithmetic);
    cnr_status status = list_devices(&k, err);
    for (int32_t i = 0; i < k.devices.n && o->net && !status && !cancelled(o); i++)
        status = check_net(&k, &k.devices.at[i], err);
    for (int32_t i = 0;
         i < cnri_descriptor_count(CNR_KIND_KERNEL) && !o->net && !status && !cancelled(o); i++)
        if (kernel_wanted(o, cnri_descriptor_at(CNR_KIND_KERNEL, i))) check_kernel(&k, i);
    for (int32_t i = 0;
         i < cnri_descriptor_count(CNR_KIND_OPERATOR) && !o->net && !status && !cancelled(o); i++)
        if (operator_wanted(o, cnri_descriptor_at(CNR_KIND_OPERATOR, i))) check_operator(&k, i);
    cnri_vec_free(&k.devices);
    if (!status && cancelled(o)) return cnri_fail(err, CNR_E_CANCELLED, NULL, "cancelled");
    if (!status && sum->tests == 0)
        return cnri_fail(err, CNR_E_NOT_FOUND, NULL, "no kernel and no operator is like that");
    return status;
}

/* ---- the child's side ---- */

/* Which kernels of a net are checked: options and device. */
typedef struct net_filter {
    const cnri_check_options *o;
    const cnr_device *device;
} net_filter;

/* True for kernels that planning would consider, and for those that are named. */
static bool net_wants(void *arg, const cnr_kernel *k, const char *op) {
    const net_filter *f = arg;
    const cnri_check_options *o = f->o;
    const char *type = o->weights_type ? o->weights_type : "f32";
    const cnr_op *only = o->op ? cnri_op_find(o->op) : NULL;
    const uint32_t asked = (strcmp(type, "fp16") == 0 ? CNR_KERNEL_F16 : 0) |
                           (strcmp(type, "bf16") == 0 ? CNR_KERNEL_BF16 : 0) | arithmetic_of(o);
    const uint32_t apart = CNRI_KERNEL_PRECISIONS | CNR_KERNEL_BY_NAME_ONLY;
    if (!of_plugin(o, k) || !drives(k, f->device->cls->name, f->device->cls->family)) return false;
    if (o->op && (!only || strcmp(only->name, op) != 0)) return false;
    if (o->kernel) return strcmp(k->name, o->kernel) == 0;
    return !((CNRI_HAS(k, flags) ? k->flags : 0) & apart & ~asked);
}

/* Checks a net within a child, from case `first` on. */
static cnr_status work_net(const cnri_check_options *o, const char *device, int64_t first,
                           cnr_error *err) {
    net_filter f = {.o = o};
    cnr_plan *plan = NULL;
    cnr_error own = CNR_ERROR_INIT;
    cnr_status status = o->open_net(o->net_arg, device, &plan, &f.device, &own);
    if (!status) {
        const cnri_net_work w = {.plan = plan,
                                 .device = f.device,
                                 .seed = (uint64_t)o->seed,
                                 .first = first,
                                 .only = o->only,
                                 .arg = &f,
                                 .wants = net_wants,
                                 .whole_arg = o->net_arg,
                                 .whole = o->plugin || o->op || o->kernel ? NULL : o->whole_net};
        status = cnri_net_run(&w, &own);
    }
    if (status) cnri_work_tell("error", -status, own.text);
    (void)err;
    return CNR_OK;
}

cnr_status cnri_check_work(const cnri_check_options *o, const char *work, cnr_error *err) {
    char what[16] = "";
    int index = 0, n = 0;
    long long first = 0, enough = 0;
    if (strcmp(work, "devices") == 0) return tell_devices(o, err);
    cnri_work w = {.seed = (uint64_t)o->seed,
                   .cases = o->cases,
                   .only = o->only,
                   .threads = (int32_t)o->threads,
                   .bench = o->bench,
                   .op = o->op ? cnri_op_find(o->op) : NULL};
    const bool read =
        sscanf(work, "%15[a-z]:%d:%lld:%lld:%n", what, &index, &first, &enough, &n) == 4 && n > 0;
    const bool kernel = strcmp(what, "kernel") == 0;
    if (read && o->net && strcmp(what, "net") == 0) return work_net(o, work + n, first, err);
    if (!read || index < 0 ||
        index >= cnri_descriptor_count(kernel ? CNR_KIND_KERNEL : CNR_KIND_OPERATOR))
        return cnri_fail(err, CNR_E_ARG, "--worker", "not for people");
    w.first = first;
    w.enough = enough;
    w.device = work + n;
    if (kernel) w.kernel = cnri_descriptor_at(CNR_KIND_KERNEL, index);
    else w.op = cnri_descriptor_at(CNR_KIND_OPERATOR, index);
    return cnri_work_run(&w, err);
}
