/* Runs all judgements that fit what a plugin brings, one after the other, each in a child
 * process. */
#include "conform/conform.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A judgement of a plugin, and the totals so far. */
typedef struct round_of {
    const cnri_conform_options *o;
    cnri_conform_totals *sum;
    const char *net; /* file whose regions are judged */
} round_of;

/* True if the user cancelled. */
static bool cancelled(const cnri_conform_options *o) {
    return o->check.cancelled && o->check.cancelled();
}

/* Counts a finding in the totals and passes it on to the options' function. */
static void tell(const round_of *r, const cnri_finding *f) {
    r->sum->findings++;
    r->sum->failed += f->verdict == CNRI_VERDICT_FAILS;
    r->sum->skipped += f->verdict == CNRI_VERDICT_SKIPPED;
    r->sum->cases += f->cases;
    if (r->o->found) r->o->found(r->o->arg, f);
}

/* ---- one judgement ---- */

enum { MOST_DEVICES = 16 };

/* State of reading a child process's lines: what it has told of the current judgement and which
 * devices it found. */
typedef struct hearing {
    cnri_finding *f;
    bool ended;
    char at[512], why[1500]; /* at: text of the current case; why: the reason */
    char left[1100];         /* a file that the child left in a folder of its own, if it died */
    int32_t devices[MOST_DEVICES], n; /* devices that a class has */
    char names[MOST_DEVICES][48];
} hearing;

/* Notes a device that the child found: its index in the class and its name; beyond MOST_DEVICES it
 * is dropped. */
static void hear_device(hearing *h, int32_t index, const char *name) {
    if (h->n == MOST_DEVICES) return;
    snprintf(h->names[h->n], sizeof h->names[0], "%s", name);
    h->devices[h->n++] = index;
}

/* Takes one line from the child: a case, a result, a device. */
static void hear(void *arg, char *line) {
    hearing *h = arg;
    char word[8] = "";
    long long number = 0;
    int n = 0;
    if (sscanf(line, "%7[a-z] %lld%n", word, &number, &n) < 2) return; /* a driver's own words */
    const char *rest = line + n + (line[n] == ' ');
    if (strcmp(word, "case") == 0) {
        snprintf(h->at, sizeof h->at, "%s", rest);
        h->f->cases = number + 1;
    } else if (strcmp(word, "temp") == 0) snprintf(h->left, sizeof h->left, "%s", rest);
    else if (strcmp(word, "device") == 0) hear_device(h, (int32_t)number, rest);
    else if (strcmp(word, "pass") == 0 || strcmp(word, "fail") == 0 || strcmp(word, "skip") == 0) {
        h->ended = true;
        h->f->cases = number;
        h->f->verdict = word[0] == 'p'   ? CNRI_VERDICT_HOLDS
                        : word[0] == 'f' ? CNRI_VERDICT_FAILS
                                         : CNRI_VERDICT_SKIPPED;
        snprintf(h->why, sizeof h->why, "%s", rest);
    }
}

/* Removes files that a judgement's process would have removed if it had lived. */
static void tidy(char *left) {
    char *slash = strrchr(left, '/');
    if (!strstr(left, "/cnnrun-damaged-") && !strstr(left, "/cnnrun-empty-")) return;
    unlink(left);
    *slash = 0;
    rmdir(left);
}

/* Runs a judgement, fills verdict and reason, and reports it. True: the process had to be
 * killed. */
static bool judge(const round_of *r, int32_t which, int32_t descriptor, int32_t index, hearing *h) {
    char work[64], ended[160], reason[2400];
    const uint64_t begin = cnri_now_ns();
    snprintf(work, sizeof work, "judge:%d:%d:%d", (int)which, (int)descriptor, (int)index);
    ended[0] = 0;
    const bool begun = cnri_child_run(&r->o->check, work, hear, h, ended, sizeof ended);
    if (!h->ended || *ended) tidy(h->left);
    if (cancelled(r->o)) return false;
    h->f->seconds = (double)(cnri_now_ns() - begin) * 1e-9;
    if (!begun) snprintf(ended, sizeof ended, "could not be begun");
    if (!h->ended || *ended) { /* how a process ends after its verdict counts, too */
        h->f->verdict = CNRI_VERDICT_FAILS;
        snprintf(reason, sizeof reason, "%s%sthe process %s%s%s", h->at, *h->at ? ": " : "",
                 *ended ? ended : "ended before its end", *h->why ? "; " : "", h->why);
    } else snprintf(reason, sizeof reason, "%s", h->why);
    h->f->why = *reason ? reason : NULL;
    tell(r, h->f);
    h->f->why = NULL;
    return strncmp(ended, "did not end", 11) == 0;
}

/* True if the judgement is not left out by --only. */
static bool wanted(const cnri_conform_options *o, const char *judgement) {
    return !o->only || strcmp(o->only, judgement) == 0;
}

/* ---- all judgements of a subject ---- */

enum { MOST_HANGS = 2 }; /* most hangs of a subject, because each takes the whole time limit */

/* Runs all judgements of one descriptor in children; first: number of the first judgement. */
static void judge_subject(const round_of *r, int32_t kind, const char *name, int32_t descriptor,
                          int32_t index, int32_t first) {
    const char *of, *judgement, *summary;
    int32_t hangs = 0;
    for (int32_t i = first; cnri_conform_judgement(i, &of, &judgement, &summary); i++) {
        if (strcmp(of, cnri_kind_name(kind)) != 0 || !wanted(r->o, judgement)) continue;
        cnri_finding f = {.kind = of, .name = name, .judgement = judgement};
        hearing h = {.f = &f};
        if (cancelled(r->o)) return;
        if (hangs < MOST_HANGS) {
            hangs += judge(r, i, descriptor, index, &h);
            continue;
        }
        f.verdict = CNRI_VERDICT_SKIPPED;
        f.why = "left out: two judgements before did not end";
        tell(r, &f);
    }
}

/* Judges a device class, and finds out which devices it has. */
static void judge_class(const round_of *r, int32_t descriptor) {
    const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, descriptor);
    const char *kind, *judgement, *summary;
    cnri_conform_judgement(0, &kind, &judgement, &summary);
    cnri_finding f = {.kind = kind, .name = cls->name, .judgement = judgement};
    hearing h = {.f = &f};
    judge(r, 0, descriptor, 0, &h);
    for (int32_t i = 0; i < h.n && !cancelled(r->o); i++)
        judge_subject(r, CNR_KIND_DEVICE, h.names[i], descriptor, h.devices[i], 1);
}

/* Judges all device classes of the plugin, until the user cancels. */
static void judge_devices(const round_of *r) {
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && !cancelled(r->o); i++)
        if (cnri_owner(cnri_descriptor_at(CNR_KIND_DEVICE, i)) == r->o->plugin) judge_class(r, i);
}

/* ---- a device by its name ---- */

/* Where a device was found: its class, its index there. */
typedef struct place_of {
    int32_t descriptor, index; /* descriptor of its class, and its index there */
    char name[48], text[512];
    int code;
} place_of;

/* Takes a child's answer: where the device is, or an error. */
static void hear_place(void *arg, char *line) {
    place_of *p = arg;
    int at = 0, index = 0, code = 0, n = 0;
    if (sscanf(line, "found %d %d %n", &at, &index, &n) == 2 && n) {
        p->descriptor = at;
        p->index = index;
        snprintf(p->name, sizeof p->name, "%s", line + n);
    } else if (sscanf(line, "error %d %n", &code, &n) == 1 && n) {
        p->code = code;
        snprintf(p->text, sizeof p->text, "%s", line + n);
    }
}

/* Finds the device in a child process, because only children may start drivers. */
static cnr_status locate(const cnri_conform_options *o, place_of *out, cnr_error *err) {
    char ended[160];
    *out = (place_of){.descriptor = -1};
    if (!cnri_child_run(&o->check, "find", hear_place, out, ended, sizeof ended))
        return cnri_fail(err, CNR_E_STATE, o->device, "no process could be begun");
    if (out->code) return cnri_fail(err, -out->code, o->device, "%s", out->text);
    if (cancelled(o)) return cnri_fail(err, CNR_E_CANCELLED, NULL, "cancelled");
    if (out->descriptor < 0 || out->descriptor >= cnri_descriptor_count(CNR_KIND_DEVICE))
        return cnri_fail(err, CNR_E_DEVICE, o->device, "asking for it: the process %s",
                         *ended ? ended : "said nothing");
    return CNR_OK;
}

/* ---- kernels and operators ---- */

/* True if something was there to judge, on a device that exists, and no case ran: a schema,
 * `infer` or `accepts` that accepts no node is not correct. */
static bool is_unjudged(const cnri_check_test *t) {
    return t->skipped && !t->absent && !(t->kernel && strcmp(t->kernel->op, CNR_REGION) == 0);
}

/* Turns the test of a kernel or operator into a finding. */
static void tell_kernel(void *arg, const cnri_check_test *t) {
    const round_of *r = arg;
    char none[sizeof t->why + 64];
    snprintf(none, sizeof none, "none of the nodes drawn for it could be judged: %s", t->why);
    const cnri_finding f = {.kind = t->kernel ? "kernel" : "operator",
                            .name = t->name,
                            .device = t->device,
                            .judgement = t->kernel ? "agrees with the reference" : "promises",
                            .verdict = t->failures || is_unjudged(t) ? CNRI_VERDICT_FAILS
                                       : t->skipped || t->absent     ? CNRI_VERDICT_SKIPPED
                                                                     : CNRI_VERDICT_HOLDS,
                            .why = t->failures               ? t->first
                                   : is_unjudged(t)          ? none
                                   : t->skipped || t->absent ? t->why
                                                             : NULL,
                            .cases = t->cases,
                            .seconds = NAN};
    tell(r, &f);
}

/* Judges the plugin's kernels and operators on drawn nodes. */
static cnr_status judge_kernels(round_of *r, const cnri_check_options *how, cnr_error *err) {
    cnri_check_totals sum;
    cnr_error own = CNR_ERROR_INIT;
    cnri_check_options o = *how;
    o.arg = r;
    o.tested = tell_kernel;
    if (r->o->only) return CNR_OK;
    const cnr_status status = cnri_check_all(&o, &sum, &own);
    if (!status || status == CNR_E_NOT_FOUND) return CNR_OK; /* it brings none */
    return cnri_fail(err, status, own.where, "%s", own.text);
}

enum { MOST_KERNELS = 2 }; /* each may be compiled */

/* True if a kernel is for that device class. */
static bool drives(const cnr_kernel *k, const cnr_device_class *cls) {
    return strcmp(k->device, cls->name) == 0 || strcmp(k->device, cls->family) == 0;
}

/* Judges a few kernels on a device: their jobs are queued as nets queue them, and must not read
 * memory that is gone when run has returned. */
static cnr_status judge_some_kernels(round_of *r, const place_of *place, cnr_error *err) {
    const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, place->descriptor);
    int32_t n = 0;
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_KERNEL); i++) {
        const cnr_kernel *k = cnri_descriptor_at(CNR_KIND_KERNEL, i);
        cnri_check_options o = r->o->check;
        if (n == MOST_KERNELS || status || cancelled(r->o)) break;
        if (!drives(k, cls) || strcmp(k->op, CNR_ANY_OP) == 0) continue;
        o.kernel = k->name;
        o.device = place->name;
        status = judge_kernels(r, &o, err);
        n++;
    }
    return status;
}

/* ---- texts of operators, which devices compile into kernels of any operator ---- */

/* The judgement of one operator's expression. */
typedef struct expression {
    const round_of *r;
    const char *op;
    int32_t judged;
} expression;

/* Turns the test of an expression on a device into a finding. */
static void tell_expression(void *arg, const cnri_check_test *t) {
    expression *e = arg;
    const cnri_finding f = {.kind = cnri_kind_name(CNR_KIND_OPERATOR),
                            .name = e->op,
                            .device = t->device,
                            .judgement = "expression",
                            .verdict = t->failures ? CNRI_VERDICT_FAILS : CNRI_VERDICT_HOLDS,
                            .why = t->failures ? t->first : NULL,
                            .cases = t->cases,
                            .seconds = NAN};
    if (t->absent || t->skipped) return; /* that kernel reads no text */
    e->judged++;
    tell(e->r, &f);
}

/* True for kernels for any operator, on devices other than the processor, which may compile
 * expressions. */
static bool may_compile(const cnr_kernel *k) {
    if (strcmp(k->op, CNR_ANY_OP) != 0) return false;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE); i++) {
        const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, i);
        if (drives(k, cls) && !(cls->flags & CNR_DEVICE_HOST)) return true;
    }
    return false;
}

/* Judges an operator's expression by kernels that compile it. */
static cnr_status judge_expression(round_of *r, const cnr_op *op, cnr_error *err) {
    expression e = {.r = r, .op = op->name};
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_KERNEL) && !cancelled(r->o); i++) {
        const cnr_kernel *k = cnri_descriptor_at(CNR_KIND_KERNEL, i);
        cnri_check_options o = r->o->check;
        cnri_check_totals sum;
        char flag[] = "--op", cases[] = "--cases", number[] = "3"; /* each is compiled */
        if (status || !may_compile(k)) continue;
        char **words = cnri_alloc(((size_t)o.n_words + 4) * sizeof *words);
        if (!words) return cnri_fail(err, CNR_E_MEMORY, "conform", "out of memory");
        for (int32_t w = 0; w < o.n_words; w++) words[w] = o.words[w];
        words[o.n_words++] = flag; /* which children read */
        words[o.n_words++] = (char *)(uintptr_t)op->name;
        words[o.n_words++] = cases;
        words[o.n_words++] = number;
        o.words = words;
        o.plugin = NULL;
        o.kernel = k->name;
        o.op = op->name;
        o.cases = 3;
        o.arg = &e;
        o.tested = tell_expression;
        status = cnri_check_all(&o, &sum, err);
        cnri_free(words);
    }
    const cnri_finding none = {.kind = cnri_kind_name(CNR_KIND_OPERATOR),
                               .name = op->name,
                               .judgement = "expression",
                               .verdict = CNRI_VERDICT_SKIPPED,
                               .why = "no device here compiles it"};
    if (!status && !e.judged) tell(r, &none);
    return status;
}

/* Judges the expressions of all operators of the plugin. */
static cnr_status judge_expressions(round_of *r, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OPERATOR) && !status; i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        if (cnri_owner(op) == r->o->plugin && CNRI_HAS(op, expression) &&
            wanted(r->o, "expression"))
            status = judge_expression(r, op, err);
    }
    return status;
}

/* ---- regions ---- */

/* Turns the test of a device's regions into a finding. */
static void tell_regions(void *arg, const cnri_check_test *t) {
    const round_of *r = arg;
    const char *slash = strrchr(r->net, '/');
    char judgement[160];
    snprintf(judgement, sizeof judgement, "regions of %.120s", slash ? slash + 1 : r->net);
    const cnri_finding f = {.kind = cnri_kind_name(CNR_KIND_DEVICE),
                            .name = t->device,
                            .judgement = judgement,
                            .verdict = t->failures ? CNRI_VERDICT_FAILS : CNRI_VERDICT_HOLDS,
                            .why = t->failures ? t->first : NULL,
                            .cases = t->cases,
                            .seconds = NAN};
    if (!t->kernel) tell(r, &f);
}

/* Judges a net on a device that claims regions: its whole plan, and its nodes one by one. */
static cnr_status judge_regions(round_of *r, const cnr_device_class *cls, const char *device,
                                cnr_error *err) {
    cnr_status status = CNR_OK;
    if (r->o->only || !CNRI_HAS(cls, claim)) return CNR_OK;
    for (const char *const *net = r->o->nets; net && *net && !status && !cancelled(r->o); net++) {
        cnri_check_options o = r->o->check;
        cnri_check_totals sum;
        char flag[] = "--net";
        char **words = cnri_alloc(((size_t)o.n_words + 2) * sizeof *words);
        if (!words) return cnri_fail(err, CNR_E_MEMORY, "conform", "out of memory");
        for (int32_t i = 0; i < o.n_words; i++) words[i] = o.words[i];
        words[o.n_words++] = flag; /* which children read */
        words[o.n_words++] = (char *)(uintptr_t)*net;
        o.words = words;
        o.net = r->net = *net;
        o.device = device;
        o.plugin = o.op = NULL;
        o.arg = r;
        o.tested = tell_regions;
        status = cnri_check_all(&o, &sum, err);
        cnri_free(words);
    }
    return status;
}

/* Judges one device by its name, and kernels on it. */
static cnr_status judge_one_device(round_of *r, cnr_error *err) {
    place_of place;
    cnr_status status = locate(r->o, &place, err);
    if (status) return status;
    judge_subject(r, CNR_KIND_DEVICE, place.name, place.descriptor, place.index, 0);
    status = judge_some_kernels(r, &place, err);
    const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, place.descriptor);
    return status ? status : judge_regions(r, cls, place.name, err);
}

/* ---- all ---- */

/* Turns a wrong name in the plugin into a finding. */
static void tell_problem(void *arg, const char *text) {
    const round_of *r = arg;
    const cnri_finding f = {.kind = "plugin",
                            .name = r->o->plugin->name,
                            .judgement = "names",
                            .verdict = CNRI_VERDICT_FAILS,
                            .why = text,
                            .cases = 1};
    tell(r, &f);
}

/* Defaults that the schema itself would refuse. Returns how many. */
static int32_t tell_defaults(round_of *r) {
    int32_t n = 0;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        for (int32_t k = 0; k < op->n_attrs && cnri_owner(op) == r->o->plugin; k++) {
            cnr_attr_spec space;
            const cnr_attr_spec *row = cnri_spec_at(op->attrs, op->attr_spec_size, k, &space);
            const bool real = row->type == CNR_ATTR_FLOAT;
            const double v = real ? row->default_f : (double)row->default_i;
            char text[300];
            if (!(row->flags & CNR_ATTR_BOUNDED) || row->flags & CNR_ATTR_REQUIRED ||
                (!real && row->type != CNR_ATTR_INT) || (v >= row->min && v <= row->max))
                continue;
            snprintf(text, sizeof text,
                     "operator %.80s: the default of %.80s, %g, is outside %g "
                     "to %g",
                     op->name, row->name, v, row->min, row->max);
            tell_problem(r, text);
            n++;
        }
    }
    return n;
}

/* Judges the names that the plugin refers to, and the defaults of its descriptors. */
static void judge_names(round_of *r) {
    cnri_finding f = {.kind = "plugin",
                      .name = r->o->plugin->name,
                      .judgement = "names",
                      .verdict = CNRI_VERDICT_HOLDS,
                      .cases = 1};
    if (!wanted(r->o, f.judgement)) return;
    const int32_t problems = cnri_plugin_problems(r->o->plugin, tell_problem, r);
    if (tell_defaults(r) == 0 && problems == 0) tell(r, &f);
}

/* True if judgements exist for this kind, or if kernelcheck judges it. */
static bool is_judged(int32_t kind) {
    const char *of, *judgement, *summary;
    for (int32_t i = 0; cnri_conform_judgement(i, &of, &judgement, &summary); i++)
        if (strcmp(of, cnri_kind_name(kind)) == 0) return true;
    return kind == CNR_KIND_KERNEL || kind == CNR_KIND_OPERATOR;
}

/* Judges all descriptors of a kind that the plugin brings; those of kinds that nothing judges are
 * reported as skipped. */
static void judge_kind(const round_of *r, int32_t kind) {
    for (int32_t i = 0; i < cnri_descriptor_count(kind) && !cancelled(r->o); i++) {
        const void *descriptor = cnri_descriptor_at(kind, i);
        const char *name = cnri_item_name(kind, descriptor);
        if (cnri_owner(descriptor) != r->o->plugin) continue;
        if (is_judged(kind)) {
            judge_subject(r, kind, name, i, 0, 0);
            continue;
        }
        const cnri_finding f = {.kind = cnri_kind_name(kind),
                                .name = name,
                                .judgement = "itself",
                                .verdict = CNRI_VERDICT_SKIPPED,
                                .why = "nothing judges this kind yet"};
        if (!r->o->only) tell(r, &f);
    }
}

cnr_status cnri_conform_run(const cnri_conform_options *o, cnri_conform_totals *sum,
                            cnr_error *err) {
    round_of r = {.o = o, .sum = sum};
    cnr_status status = CNR_OK;
    *sum = (cnri_conform_totals){0};
    if (o->plugin) judge_names(&r);
    if (o->plugin) judge_devices(&r);
    for (int32_t kind = 1; o->plugin && cnri_kind_name(kind); kind++)
        if (kind != CNR_KIND_DEVICE && kind != CNR_KIND_KERNEL && kind != CNR_KIND_OPERATOR &&
            kind != CNR_KIND_IMPORT_ROW) /* `names` looks at what rows refer to */
            judge_kind(&r, kind);
    if (o->device) status = judge_one_device(&r, err);
    else status = judge_kernels(&r, &o->check, err);
    if (o->plugin && !status) status = judge_expressions(&r, err);
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && !status && o->plugin; i++) {
        const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, i);
        if (cnri_owner(cls) == o->plugin) status = judge_regions(&r, cls, cls->family, err);
    }
    if (!status && cancelled(o)) return cnri_fail(err, CNR_E_CANCELLED, NULL, "cancelled");
    if (!status && sum->findings == 0)
        return cnri_fail(err, CNR_E_NOT_FOUND, o->only, "no judgement of this name fits");
    return status;
}
