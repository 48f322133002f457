/* cnnrun devices: lists the devices that can run nets here, and measures their speed on request. */
#include "cli/cli.h"
#include "people/people.h"

/* Options of devices. */
typedef struct devices {
    bool measure;
    const char *device;
    int64_t threads;
} devices;
static const cnri_option options[] =
    {CNRI_OPTION(devices, measure, "--measure", NULL,
                 "measure each device: about a second each, on an idle machine"),
     CNRI_OPTION(devices, device, "--device", "NAME", "only this one"),
     CNRI_OPTION(devices, threads, "--threads", "N", "threads of the processor (0: all)", .min = 0,
                 .max = 1024)};

/* A device; the properties that its plugin reports follow in the same object. */
typedef struct row {
    const char *name, *hardware, *driver, *plugin;
    int64_t threads, memory_bytes;
    bool is_default;
    const char *default_reason;
} row;
static const cnri_field fields[] = {CNRI_KEY(row, name),
                                    CNRI_KEY(row, threads),
                                    CNRI_KEY(row, hardware),
                                    CNRI_KEY(row, driver),
                                    CNRI_KEY(row, plugin),
                                    CNRI_MAYBE(row, "memory_bytes", memory_bytes),
                                    CNRI_FIELD(row, "default", is_default),
                                    CNRI_KEY(row, default_reason)};
static const cnri_record record =
    CNRI_RECORD(fields, "{name:-12} {hardware}\n    threads {threads}{memory_bytes?, memory "
                        "{memory_bytes:.0M} MB|}\n"
                        "    driver  {driver} ({plugin})\n"
                        "    default {default?yes|no}: {default_reason}\n");

void cnri_json_facts(cnri_json *j, const cnri_fact_list *list) {
    char open[64] = "";
    for (int32_t i = 0; i < list->n; i++) {
        const cnri_fact *f = &list->at[i];
        const char *dot = strchr(f->name, '.'), *key = dot ? dot + 1 : f->name;
        char group[64] = "";
        if (dot) snprintf(group, sizeof group, "%.*s", (int)(dot - f->name), f->name);
        if (*open && strcmp(group, open) != 0) cnri_json_end(j);
        if (*group && strcmp(group, open) != 0) cnri_json_object(j, group);
        memcpy(open, group, sizeof open);
        if (f->text) cnri_json_text(j, key, f->text);
        else if (f->value == (double)(int64_t)f->value) cnri_json_int(j, key, (int64_t)f->value);
        else cnri_json_real(j, key, f->value);
    }
    if (*open) cnri_json_end(j);
}

/* Prints a device and its facts. */
static cnr_status tell(const cnri_call *call, const row *r, const cnri_fact_list *list,
                       cnr_error *err) {
    if (call->common.json) {
        cnri_json j = {0};
        cnri_json_begin(&j);
        cnri_json_fields(&j, &record, r);
        cnri_json_facts(&j, list);
        return cnri_json_print(&j, err);
    }
    cnr_status status = cnri_tell_line(&record, r, err);
    for (int32_t i = 0; i < list->n && !status; i++) {
        const cnri_fact *f = &list->at[i];
        if (f->text) cnri_say(stdout, "    %-18s %s\n", f->name, f->text);
        else cnri_say(stdout, "    %-18s %.6g\n", f->name, f->value);
    }
    return status;
}

/* Prints device `index`, with what is measured of it if `measure`. Its number of threads is known
 * only once it is open. */
static cnr_status tell_device(const cnri_call *call, bool measure, int32_t index,
                              cnr_device_entry *d, cnr_error *err) {
    cnri_fact_list list = {0};
    cnr_error why = CNR_ERROR_INIT;
    const cnr_status failed = cnri_device_facts(call->rt, d->name, measure, &list, &why);
    if (failed && measure)
        cnri_device_facts(call->rt, d->name, 0, &list, NULL); /* what is known of it */
    int32_t is_default = 0;
    char reason[256] = "";
    cnr_status status = cnr_device_at(call->rt, index, d, err);
    if (!status)
        status = cnr_device_default(call->rt, d->name, &is_default, reason, sizeof reason, err);
    const row r = {d->name,         d->hardware,
                   d->driver,       d->plugin,
                   d->concurrency,  d->memory_bytes ? (int64_t)d->memory_bytes : CNRI_NONE,
                   is_default != 0, reason};
    if (!status) status = tell(call, &r, &list, err);
    cnri_facts_free(&list);
    return status || !failed ? status : cnri_fail(err, failed, why.where, "%s", why.text);
}

/* The command devices. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const devices *o = values;
    const cnri_device *only = NULL;
    cnr_error first = CNR_ERROR_INIT; /* of a device: the others are told all the same */
    cnr_device_entry d = {.size = sizeof d};
    call->common.threads = o->threads;
    cnr_status status = cnri_call_open(call, err);
    if (!status && o->device) status = cnri_device_find(&call->rt->devices, o->device, &only, err);
    for (int32_t i = 0; !status; i++) {
        status = cnr_device_at(call->rt, i, &d, err);
        if (status == CNR_E_NOT_FOUND) { /* past the last */
            if (!first.code) return CNR_OK;
            return cnri_fail(err, first.code, first.where, "%s", first.text);
        }
        if (!status && (!only || strcmp(only->name, d.name) == 0))
            status = tell_device(call, o->measure, i, &d, err);
        if (status == CNR_E_DEVICE) {
            if (!first.code) first = *err;
            status = CNR_OK;
        }
        if (!status && cnri_cancelled())
            status = cnri_fail(err, CNR_E_CANCELLED, d.name, "stopped");
    }
    return status;
}

const cnri_command cnri_cmd_devices = {
    .name = "devices",
    .example = "cnnrun devices --json",
    .operands = "",
    .summary =
        "Lists what can run nets here, as plugins describe it; with --measure each device times\n"
        "itself, too.",
    .details =
        "The default device runs what neither an option nor the net places. Devices of plugins "
        "that\n"
        "come with cnnrun go before those of others, whatever score these give themselves;\n"
        "--plugin-order names plugins that go before all.\n\n"
        "fma_gflops is the most arithmetic in f32 (a multiply-add counts as two), read_gbs 1e9 "
        "bytes\n"
        "a second out of its own memory; bench --profile takes both. What else is told is the\n"
        "plugin's: caches in bytes of a processor, what OpenCL says of a GPU.",
    .results = CNRI_RESULTS(&record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(devices, .measure = false),
    .run = run,
};
