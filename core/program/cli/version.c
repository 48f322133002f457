/* cnnrun --version: prints the version; with --json everything that a bug report needs. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "lua/script.h"
#include "people/people.h"
#include <cnnrun/built.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

/* Version of the C library. */
static const char *libc_version(void) {
#if defined(__GLIBC__)
    return gnu_get_libc_version();
#elif defined(__ANDROID__)
    return "bionic";
#else
    return "unknown";
#endif
}

/* Writes the name of the distribution from /etc/os-release to `out`, cut to `capacity`; "" if it
 * has none. */
static void distribution(char *out, size_t capacity) {
    static const char key[] = "PRETTY_NAME=";
    char *text = NULL;
    size_t bytes;
    *out = 0;
    if (cnri_read_file("/etc/os-release", 1 << 16, &text, &bytes, NULL)) return;
    const char *at = strstr(text, key);
    if (at) at += strlen(key) + (at[strlen(key)] == '"');
    if (at) snprintf(out, capacity, "%.*s", (int)strcspn(at, "\"\n"), at);
    cnri_free(text);
}

/* Adds version, compiler and flags. */
static void tell_build(cnri_json *j) {
    char abi[32];
    snprintf(abi, sizeof abi, "%d.%d", CNR_ABI_MAJOR, CNR_ABI_MINOR);
    cnri_json_text(j, "version", CNNRUN_VERSION);
    cnri_json_text(j, "commit", *CNRI_COMMIT ? CNRI_COMMIT : NULL);
    cnri_json_object(j, "build");
    cnri_json_text(j, "compiler", CNRI_COMPILER);
    cnri_json_text(j, "flags", CNRI_FLAGS);
    cnri_json_text(j, "type", CNRI_BUILD_TYPE);
    cnri_json_end(j);
    cnri_json_text(j, "abi", abi);
    cnri_json_text(j, "lua", cnri_lua_release());
}

/* Adds distribution, kernel and processors. */
static void tell_system(cnri_json *j) {
    struct utsname u;
    char name[256];
    distribution(name, sizeof name);
    cnri_json_object(j, "system");
    cnri_json_text(j, "distribution", *name ? name : NULL);
    if (uname(&u) == 0) {
        cnri_json_text(j, "kernel", u.release);
        cnri_json_text(j, "architecture", u.machine);
    }
    cnri_json_text(j, "libc", libc_version());
    cnri_json_int(j, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    cnri_json_int(j, "memory_bytes", (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    cnri_json_end(j);
}

/* Adds all plugins. */
static void tell_plugins(cnri_json *j) {
    cnri_json_list(j, "plugins");
    for (int32_t i = 0; i < cnri_plugin_count(); i++) {
        const cnri_plugin *p = cnri_plugin_at(i);
        char *lacks = cnri_plugin_lacks(p);
        cnri_json_object(j, NULL);
        cnri_json_text(j, "name", p->name);
        cnri_json_text(j, "version", p->version);
        cnri_json_text(j, "file", p->path);
        cnri_json_text(j, "refused", p->refused);
        cnri_json_text(j, "lacks", lacks);
        cnri_json_end(j);
        cnri_free(lacks);
    }
    cnri_json_end(j);
}

/* Adds an error to the report, which goes on. */
static void tell_error(cnri_json *j, const cnr_error *err) {
    char *text = cnri_format("%s%s%s", err->where, *err->where ? ": " : "", err->text);
    if (err->code) cnri_json_text(j, "error", text ? text : err->text);
    cnri_free(text);
}

/* Adds a device with its facts. */
static void tell_device(const cnri_call *call, cnri_json *j, int32_t index, cnr_device_entry *d) {
    cnri_fact_list facts = {0};
    cnr_error err = CNR_ERROR_INIT;
    cnri_device_facts(call->rt, d->name, 0, &facts, &err);
    cnr_device_at(call->rt, index, d, NULL); /* now its threads are known */
    cnri_json_object(j, NULL);
    cnri_json_text(j, "name", d->name);
    cnri_json_text(j, "hardware", d->hardware);
    cnri_json_text(j, "driver", d->driver);
    cnri_json_text(j, "plugin", d->plugin);
    cnri_json_int(j, "threads", d->concurrency);
    if (d->memory_bytes) cnri_json_int(j, "memory_bytes", (int64_t)d->memory_bytes);
    cnri_json_facts(j, &facts);
    tell_error(j, &err);
    cnri_json_end(j);
    cnri_facts_free(&facts);
}

/* Adds the devices, best first, in the order in which nets use them by default. */
static void tell_devices(const cnri_call *call, cnri_json *j) {
    cnr_device_entry d = {.size = sizeof d};
    cnr_error err = CNR_ERROR_INIT;
    cnri_json_list(j, "devices");
    int32_t i = 0;
    for (; cnr_device_at(call->rt, i, &d, &err) == CNR_OK; i++) tell_device(call, j, i, &d);
    if (err.code != CNR_E_NOT_FOUND) {
        cnri_json_object(j, NULL);
        tell_error(j, &err);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

/* Adds all meters, or with `knobs` all knobs. */
static void tell_gauges(cnri_json *j, const cnr_gauge_list *list, bool knobs) {
    cnri_json_list(j, knobs ? "knobs" : "meters");
    for (int32_t i = 0; i < list->n; i++) {
        const cnr_gauge *g = &list->at[i];
        if ((g->quantity == 0) != knobs) continue;
        cnri_json_object(j, NULL);
        cnri_json_text(j, "name", g->name);
        cnri_json_text(j, "plugin", g->plugin);
        if (knobs) cnri_json_bool(j, "writable", g->writable > 0);
        cnri_json_text(j, "error", g->status ? g->why : NULL);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

/* Adds a folder's path and frees it. */
static void tell_folder(cnri_json *j, const char *key, char *folder) {
    cnri_json_text(j, key, folder);
    cnri_free(folder);
}

/* Adds the folders that the program uses. */
static void tell_folders(const cnri_call *call, cnri_json *j) {
    const char *cache = cnri_call_cache(call), *folder;
    cnri_json_object(j, "folders");
    tell_folder(j, "program", cnri_executable_dir());
    tell_folder(j, "scripts", cnri_lua_scripts());
    tell_folder(j, "cache", cache ? cnri_strdup(cache) : cnri_kept_folder(NULL));
    cnri_json_list(j, "plugins");
    for (int32_t i = 0; (folder = cnri_plugins_searched(i)); i++) cnri_json_text(j, NULL, folder);
    cnri_json_end(j);
    cnri_json_end(j);
    cnri_json_object(j, "environment");
    for (char **at = environ; *at; at++) {
        const char *value = strchr(*at, '=');
        if (!value || strncmp(*at, "CNNRUN_", 7) != 0) continue;
        char *name = cnri_format("%.*s", (int)(value - *at), *at);
        if (name) cnri_json_text(j, name, value + 1);
        cnri_free(name);
    }
    cnri_json_end(j);
}

/* The command version. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    cnri_json j;
    cnr_gauge_list gauges = {.size = sizeof gauges};
    (void)values;
    if (!call->common.json) {
        cnri_say(stdout, "cnnrun %s\n", CNNRUN_VERSION);
        return CNR_OK;
    }
    if (!call->common.verbose) call->common.quiet++; /* the report has the reasons itself */
    const cnr_status status = cnri_call_open(call, err);
    if (status) return status;
    cnr_gauges(call->rt, NULL, NULL, &gauges, NULL);
    cnri_json_begin(&j);
    tell_build(&j);
    tell_system(&j);
    tell_devices(call, &j);
    tell_plugins(&j);
    tell_gauges(&j, &gauges, false);
    tell_gauges(&j, &gauges, true);
    tell_folders(call, &j);
    cnr_gauges_free(&gauges);
    return cnri_json_print(&j, err);
}

const cnri_command cnri_version = {
    .name = "--version",
    .operands = "",
    .summary = "Prints the version; with --json all that a bug report needs, as one object.",
    .run = run,
};
