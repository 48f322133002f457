/* From parsed options to a runtime. */
#define _GNU_SOURCE
#include "front/front.h"
#include "people/people.h"
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prints a message of the log. */
static void print_log(void *arg, int32_t level, const char *who, const char *text) {
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    (void)arg;
    cnri_say_message(stderr, text, "cnnrun: %s%s%s", level >= 0 && level < 4 ? names[level] : "",
                     who ? who : "", who && *who ? ": " : "");
}

/* Level of the log by -v and -q. */
static int32_t log_level(const cnri_common *c) {
    return c->quiet ? CNR_LOG_ERROR : CNR_LOG_WARN + c->verbose;
}

const char *cnri_call_named_cache(const cnri_call *call) {
    const char *cache = call->common.load.cache,
               *folder = cache ? cache : secure_getenv("CNNRUN_CACHE");
    if (call->common.load.no_cache || cnri_kept_disabled()) return NULL;
    return folder && *folder ? folder : NULL;
}

const char *cnri_call_cache(const cnri_call *call) {
    static char own[PATH_MAX];
    const char *named = cnri_call_named_cache(call);
    const cnr_load_options *load = &call->common.load;
    char *folder = named || load->no_cache || load->cache ? NULL : cnri_kept_plans();
    if (!folder) return named;
    snprintf(own, sizeof own, "%s", folder);
    cnri_free(folder);
    return own;
}

/* Checks a cache folder, or else that it could be made, without making it: only a command that
 * keeps something makes it. */
static cnr_status can_keep(const char *folder, cnr_error *err) {
    struct stat there;
    if (stat(folder, &there) == 0) return cnri_kept_check(folder, err);
    char *path = cnri_strdup(folder);
    if (!path) return cnri_out_of_memory(err, folder);
    while (*path && stat(path, &there) != 0) {
        char *slash = strrchr(path, '/');
        if (slash == path && path[1]) slash++;
        *(slash ? slash : path) = 0;
    }
    const char *nearest = *path ? path : ".";
    bool good = !*path || S_ISDIR(there.st_mode);
    if (!good) errno = ENOTDIR;
    good = good && access(nearest, W_OK | X_OK) == 0;
    const cnr_status status = good ? CNR_OK : cnri_fail_errno(err, folder, "can't be made");
    cnri_free(path);
    return status;
}

/* Goes on without the cache folder if it can't be made or is not ours, and says so. */
static void check_cache(cnri_call *call) {
    cnr_error why = CNR_ERROR_INIT;
    const char *cache = call->rt ? NULL : cnri_call_named_cache(call);
    if (!cache || can_keep(cache, &why) == CNR_OK) return;
    call->common.load.no_cache = 1;
    if (call->common.quiet) return;
    cnri_say_message(stderr, why.text, "cnnrun: warning: cache: nothing is kept: %s: ", why.where);
}

cnr_status cnri_call_runtime(cnri_call *call, cnr_error *err) {
    const cnri_common *c = &call->common;
    check_cache(call);
#ifdef M_MMAP_THRESHOLD
    /* Under a bound large blocks go back to the system when they are freed, whatever their order.
     */
    if (c->load.memory_bound) mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
    const cnr_open_options options = {.size = sizeof options,
                                      .threads = (int32_t)c->threads,
                                      .log = print_log,
                                      .plugin_dirs = c->plugin_dirs.at,
                                      .log_level = log_level(c),
                                      .trust_scripts = c->trust,
                                      .clock = c->clock,
                                      .sysfs_root = c->sysfs_root,
                                      .meter_address = c->meter_address,
                                      .board = c->board,
                                      .cache = cnri_call_named_cache(call),
                                      .cpu_isa = c->cpu_isa,
                                      .plugin_order = c->plugin_order,
                                      .skip_plugins = c->skip_plugins.at};
    return call->rt ? CNR_OK : cnr_open(&call->rt, &options, err);
}

/* True if both lists have the same words. */
static bool same_words(const cnri_words *a, const cnri_words *b) {
    bool same = a->n == b->n;
    for (int32_t i = 0; i < a->n && same; i++) same = strcmp(a->at[i], b->at[i]) == 0;
    return same;
}

/* True if both lists have the same texts; NULL: empty. */
static bool same_list(const char *const *a, const char *const *b) {
    for (; a && b && *a && *b && strcmp(*a, *b) == 0; a++, b++) {}
    return (!a || !*a) && (!b || !*b);
}

bool cnri_call_reopen(const cnri_call *was, const cnri_call *now) {
    const cnri_common *a = &was->common, *b = &now->common;
    cnr_runtime *rt = was->rt;
    if (!same_words(&a->plugin_dirs, &b->plugin_dirs) ||
        !same_words(&a->skip_plugins, &b->skip_plugins) ||
        !same_list(a->plugin_order, b->plugin_order) || a->trust != b->trust ||
        a->board != b->board || a->clock != b->clock || a->sysfs_root != b->sysfs_root ||
        a->meter_address != b->meter_address || a->cpu_isa != b->cpu_isa)
        return true;
    const bool moved = a->load.cache != b->load.cache; /* texts are argv's: the same or not given */
    if (moved || rt->devices.n > 0) return moved || a->threads != b->threads;
    rt->options.threads = rt->devices.options.threads = (int32_t)b->threads;
    cnri_log_to(print_log, NULL, log_level(b));
    return false;
}
