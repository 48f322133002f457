/* Stores the decision of online tuning between processes, by net, shapes, options and power state,
 * and valid in one environment. A text file in the cache folder, with a line for each of:
 *
 *   cnnrun adapt 1 | environment HEX | way NAME | by time | ns DEFAULT CHOSEN | cost DEFAULT CHOSEN
 *   runs N TRIALS | window NS | kernel NODE@DEVICE=KERNEL | device NAME | run NS | placement, and
 *   then the text of a policy up to the end of the file */
#include "work/adapt.h"
#include "keep/keep.h"
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BYTES = 1 << 24 };

/* ---- parameters ---- */

static const struct {
    const char *name;
    size_t at;
    double usual, low, high;
} rules[] = {{"stop", offsetof(cnri_adapt_rules, stop), 1.5, 1, 1000},
             {"worth", offsetof(cnri_adapt_rules, worth), 1.2, 1, 1000},
             {"unlikely", offsetof(cnri_adapt_rules, unlikely), 4, 1, 1e9},
             {"margin", offsetof(cnri_adapt_rules, margin), 0.02, 0, 1},
             {"change", offsetof(cnri_adapt_rules, change), 0.1, 0, 1000},
             {"repeats", offsetof(cnri_adapt_rules, repeats), 2, 1, 1000},
             {"contest", offsetof(cnri_adapt_rules, contest), 7, 1, 1000},
             {"window", offsetof(cnri_adapt_rules, window), 50, 4, 100000}};

/* Sets parameters from the policy's table; warns of a number out of range. */
static void take_numbers(cnri_adapt *a, const cnri_policy *policy) {
    for (size_t i = 0; policy && policy->number && i < CNRI_COUNT(rules); i++) {
        double *to = (double *)(void *)((char *)&a->rules + rules[i].at);
        const double given = policy->number(policy, "adapt", rules[i].name);
        if (isnan(given)) continue;
        if (given >= rules[i].low && given <= rules[i].high) *to = given;
        else
            cnri_log(CNR_LOG_WARN, "adapt", "%s: adapt.%s is %g: want %g to %g; %g is taken",
                     policy->name, rules[i].name, given, rules[i].low, rules[i].high, *to);
    }
}

/* Sets a->rules. Numbers of the net's own policy override those of the installed policy. */
void cnri_adapt_rules_of(cnri_adapt *a) {
    cnri_policy *best = NULL;
    for (size_t i = 0; i < CNRI_COUNT(rules); i++)
        *(double *)(void *)((char *)&a->rules + rules[i].at) = rules[i].usual;
    if (cnri_policy_open("best", NULL, NULL, &best, NULL) == CNR_OK) take_numbers(a, best);
    cnri_policy_release(best);
    take_numbers(a, a->original.policy);
}

/* ---- the power state: governors, clock limits, and whether mains power is on ---- */

/* Appends path and first line of each file in /sys that matches the pattern. */
static void add_files(const cnri_adapt *a, const char *pattern, cnri_text *out) {
    const char *root = a->model->rt->sysfs_root;
    char *full = cnri_format("%s/sys/%s", root ? root : "", pattern), line[64];
    glob_t found = {0};
    if (full && glob(full, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            FILE *f = fopen(found.gl_pathv[i], "re");
            if (f && fgets(line, sizeof line, f))
                cnri_text_add(out, "%s %.*s\n", found.gl_pathv[i] + strlen(root ? root : ""),
                              (int)strcspn(line, "\n"), line);
            if (f) fclose(f);
        }
    globfree(&found);
    cnri_free(full);
}

/* Appends what the power supply and governors say, as part of the environment. */
static void add_power(const cnri_adapt *a, cnri_text *out) {
    cnr_gauge_list list = {.size = sizeof list};
    add_files(a, "class/power_supply/*/online", out);
    add_files(a, "devices/system/cpu/cpufreq/policy*/scaling_governor", out);
    if (cnr_gauges(a->model->rt, NULL, NULL, &list, NULL)) return;
    for (int32_t i = 0; i < list.n; i++) {
        const cnr_gauge *g = &list.at[i];
        if (!g->quantity && !g->status)
            cnri_text_add(out, "knob %s %llu\n", g->name, (unsigned long long)g->max_hz);
    }
    cnr_gauges_free(&list);
}

/* ---- file name and environment ---- */

/* Writes the first half of a text's SHA-256 as 32 hex digits. */
static void print_digest(const char *text, size_t n, char hex[33]) {
    uint8_t digest[32];
    cnri_sha256_of(text, n, digest);
    cnri_hex(digest, 16, hex);
}

/* Appends the lines of the identity that distinguish decisions: shapes, options and policy. */
static void add_wanted(const char *identity, const char *end, cnri_text *out) {
    static const char *const keys[] = {"shapes ", "options", "policy "};
    for (const char *at = identity; at < end; at += strcspn(at, "\n"), at += *at == '\n')
        for (size_t i = 0; i < CNRI_COUNT(keys); i++)
            if (strncmp(at, keys[i], strlen(keys[i])) == 0)
                cnri_text_add(out, "%.*s\n", (int)strcspn(at, "\n"), at);
}

/* Names the file and computes the environment's digest. Weights are left out, since times do not
 * depend on them. */
static cnr_status name_file(cnri_adapt *a, const cnri_plan_request *r, const char *folder,
                            cnr_error *err) {
    cnri_text identity = {0}, slot = {0};
    char hex[33];
    cnri_plan_identity(r, &identity);
    const char *net = identity.failed ? NULL : strstr(identity.at, "\nnet ");
    const char *weights = net ? strstr(net + 1, "\nweights ") : NULL;
    if (net && weights) {
        print_digest(identity.at, (size_t)(net - identity.at), a->environment);
        add_wanted(identity.at, net, &slot);
        cnri_text_add(&slot, "%.*s\n", (int)(weights - net), net);
        add_power(a, &slot);
    }
    if (net && weights && !slot.failed) {
        print_digest(slot.at, slot.n, hex);
        a->path = cnri_format("%s/%s.adapt", folder, hex);
    }
    cnri_text_free(&identity);
    cnri_text_free(&slot);
    return a->path ? CNR_OK : cnri_out_of_memory(err, folder);
}

cnr_status cnri_adapt_find_path(cnri_adapt *a, cnr_error *err) {
    const cnr_model *m = a->model;
    cnri_device_set set = {0};
    if (!m->cache) return CNR_OK;
    cnr_status status = cnri_device_set_make(&set, &m->rt->devices, m->graph, &a->original, err);
    if (status) return status;
    const cnri_plan_request r = {m, &a->original, &set, a->list, a->n_inputs, false};
    status = name_file(a, &r, m->cache, err);
    cnri_device_set_free(&set);
    return status;
}

/* ---- reading ---- */

void cnri_adapt_forget(cnri_adapt_kept *k) {
    for (int32_t i = 0; i < k->kernels.n; i++) cnri_free(k->kernels.at[i]);
    for (int32_t i = 0; i < k->devices.n; i++) cnri_free(k->devices.at[i]);
    cnri_vec_free(&k->kernels);
    cnri_vec_free(&k->devices);
    cnri_vec_free(&k->window);
    cnri_free(k->placement);
    *k = (cnri_adapt_kept){0};
}

/* Whether the line begins with key and a space; *rest: the text after them. */
static bool take_word(const char *line, const char *key, const char **rest) {
    const size_t n = strlen(key);
    if (strncmp(line, key, n) != 0 || line[n] != ' ') return false;
    *rest = line + n + 1;
    return true;
}

bool cnri_adapt_take_two(const char *text, double *first, double *second) {
    const char *end;
    if (!cnri_parse_double(text, &end, first) || *end != ' ') return false;
    return cnri_parse_double(end + 1, &end, second) && *end == 0;
}

/* Reads a line of the file; false: it is malformed, or memory is out. */
static bool take_line(cnri_adapt_kept *k, const char *line) {
    const char *rest, *end;
    double runs, trials, *ns;
    char **slot;
    if (take_word(line, "way", &rest)) return snprintf(k->way, sizeof k->way, "%s", rest) > 0;
    if (take_word(line, "by", &rest)) return snprintf(k->by, sizeof k->by, "%s", rest) > 0;
    if (take_word(line, "ns", &rest))
        return cnri_adapt_take_two(rest, &k->default_ns, &k->chosen_ns);
    if (take_word(line, "cost", &rest))
        return cnri_adapt_take_two(rest, &k->default_cost, &k->chosen_cost);
    if (take_word(line, "window", &rest)) return cnri_parse_double(rest, &end, &k->window_ns);
    if (take_word(line, "run", &rest))
        return (ns = cnri_push(&k->window)) != NULL && cnri_parse_double(rest, &end, ns);
    if (take_word(line, "kernel", &rest))
        return (slot = cnri_push(&k->kernels)) != NULL && (*slot = cnri_strdup(rest)) != NULL;
    if (take_word(line, "device", &rest))
        return (slot = cnri_push(&k->devices)) != NULL && (*slot = cnri_strdup(rest)) != NULL;
    if (!take_word(line, "runs", &rest) || !cnri_adapt_take_two(rest, &runs, &trials)) return false;
    k->runs = (int64_t)runs;
    k->trials = (int64_t)trials;
    return true;
}

/* Reads the file's text, which it cuts into lines; false: it is damaged. */
static bool parse(cnri_adapt_kept *k, char *text, char environment[33]) {
    bool first = true, good = true;
    while (good && *text) {
        const size_t n = strcspn(text, "\n");
        const bool last = text[n] == 0;
        const char *rest;
        text[n] = 0;
        char *next = last ? text + n : text + n + 1;
        if (first) good = strcmp(text, "cnnrun adapt 1") == 0;
        else if (take_word(text, "environment", &rest)) snprintf(environment, 33, "%s", rest);
        else if (strcmp(text, "placement") == 0) return (k->placement = cnri_strdup(next)) != NULL;
        else good = take_line(k, text);
        first = false;
        text = next;
    }
    return good && !first && k->way[0];
}

cnr_status cnri_adapt_load(cnri_adapt *a, bool *found, bool *stale, cnr_error *err) {
    char *text = NULL, environment[33] = "";
    size_t bytes;
    const int64_t before = cnri_alloc_failures();
    *found = *stale = false;
    if (!a->path || cnri_read_kept(a->path, MAX_BYTES, &text, &bytes, NULL)) return CNR_OK;
    const bool good = parse(&a->kept, text, environment);
    *found = good && strcmp(environment, a->environment) == 0;
    *stale = !*found;
    cnri_free(text);
    if (!*found) cnri_adapt_forget(&a->kept);
    return cnri_alloc_verdict(before, CNR_OK, a->path, err);
}

/* ---- writing ---- */

void cnri_adapt_add_numbers(cnri_text *out, const char *key, double first, double second) {
    char both[2][40];
    cnri_print_double(both[0], sizeof both[0], first);
    cnri_print_double(both[1], sizeof both[1], second);
    cnri_text_add(out, "%s %s %s\n", key, both[0], both[1]);
}

/* Appends what was learned to the text, as the file has it. */
static void print(const cnri_adapt *a, cnri_text *out) {
    const cnri_adapt_kept *k = &a->kept;
    char number[40];
    cnri_text_add(out, "cnnrun adapt 1\nenvironment %s\nway %s\nby %s\n",
                  a->relearns ? "(changed)" : a->environment, k->way, k->by);
    cnri_adapt_add_numbers(out, "ns", k->default_ns, k->chosen_ns);
    cnri_adapt_add_numbers(out, "cost", k->default_cost, k->chosen_cost);
    cnri_text_add(out, "runs %lld %lld\n", (long long)k->runs, (long long)k->trials);
    cnri_print_double(number, sizeof number, k->window_ns);
    cnri_text_add(out, "window %s\n", number);
    for (int32_t i = 0; i < k->kernels.n; i++) cnri_text_add(out, "kernel %s\n", k->kernels.at[i]);
    for (int32_t i = 0; i < k->devices.n; i++) cnri_text_add(out, "device %s\n", k->devices.at[i]);
    for (int32_t i = 0; i < k->window.n; i++) {
        cnri_print_double(number, sizeof number, k->window.at[i]);
        cnri_text_add(out, "run %s\n", number);
    }
    if (k->placement) cnri_text_add(out, "placement\n%s", k->placement);
}

/* Whether no name contains a newline, which would be read as the start of another line. */
static bool is_writable(const cnri_adapt_kept *k) {
    for (int32_t i = 0; i < k->kernels.n; i++)
        if (strchr(k->kernels.at[i], '\n')) return false;
    return true;
}

cnr_status cnri_adapt_write(const cnri_adapt *a, const cnri_text *text, cnr_error *err) {
    cnri_writer w;
    if (text->failed) return cnri_out_of_memory(err, a->path);
    CNR_TRY(cnri_kept_create(a->model->cache, err));
    CNR_TRY(cnri_write_begin(&w, a->path, CNRI_WRITE_PRIVATE, err));
    const cnr_status status = cnri_write(&w, text->at, text->n, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

cnr_status cnri_adapt_save(const cnri_adapt *a, cnr_error *err) {
    cnri_text text = {0};
    if (!a->path || !is_writable(&a->kept)) return CNR_OK;
    print(a, &text);
    const cnr_status status = cnri_adapt_write(a, &text, err);
    cnri_text_free(&text);
    return status;
}
