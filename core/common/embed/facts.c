/* Properties that a device's plugin reports; `measure` lets the device measure some of them. */
#include "embed/embed.h"
#include <math.h>

enum { MAX_FACTS = 256, MAX_TEXT = 1024 };

/* Receiver of the properties that a device reports. */
typedef struct receiver {
    cnr_property_fn fn;
    void *arg;
    const char *device;
    int32_t n;
} receiver;

/* True for a name of lower-case letters, digits, _ and inner dots, below 64 characters. */
static bool is_name(const char *name) {
    size_t n = 0;
    for (; name && n < 64 && name[n]; n++)
        if (!((name[n] >= 'a' && name[n] <= 'z') || (name[n] >= '0' && name[n] <= '9') ||
              name[n] == '_' || (name[n] == '.' && n > 0 && name[n + 1])))
            return false;
    return n > 0 && n < 64;
}

/* Passes a property on. Names come from plugins, so those that could not be a key are left out. */
static void tell(void *arg, const char *name, const char *text, double value) {
    receiver *to = arg;
    char cut[MAX_TEXT + 1];
    if (!is_name(name) || to->n >= MAX_FACTS || (!text && !isfinite(value))) {
        cnri_log(CNR_LOG_INFO, to->device, "a fact of no possible name or number is left out");
        return;
    }
    to->n++;
    if (text) snprintf(cut, sizeof cut, "%s", text);
    to->fn(to->arg, name, text ? cut : NULL, value);
}

/* Lets a device measure properties of itself, on a stream. */
static cnr_status measure_on(cnr_runtime *rt, const cnri_device *d, receiver *to, cnr_error *err) {
    const cnr_device *open;
    cnr_status status = cnri_device_open(&rt->devices, d->name, &open, err);
    if (status) return status;
    cnr_stream stream = {.size = sizeof stream, .device = open};
    status = open->cls->stream_open(open, &stream, err);
    if (status) return status;
    status = open->cls->properties(open->index, &stream, tell, to, err);
    open->cls->stream_close(&stream);
    return status;
}

cnr_status cnr_device_native(cnr_runtime *rt, const char *device, const char *name, void **out,
                             cnr_error *err) {
    const cnr_device *open;
    if (out) *out = NULL;
    CNR_TRY(cnri_require_arguments(err, "runtime", rt, "device", device, "name", name, "out", out,
                                   NULL));
    CNR_TRY(cnri_check_process(rt, err));
    CNR_TRY(cnri_device_open(&rt->devices, device, &open, err));
    *out = CNRI_HAS(open->cls, native) ? open->cls->native(open, name) : NULL;
    return *out ? CNR_OK : cnri_fail(err, CNR_E_NOT_FOUND, device, "has no object \"%s\"", name);
}

cnr_status cnr_device_properties(cnr_runtime *rt, const char *device, int32_t measure,
                                 cnr_property_fn fn, void *arg, cnr_error *err) {
    const cnri_device *d = NULL;
    CNR_TRY(cnri_require_arguments(err, "runtime", rt, "device", device, "fn",
                                   (const void *)(uintptr_t)fn, NULL));
    CNR_TRY(cnri_check_process(rt, err));
    CNR_TRY(cnri_device_find(&rt->devices, device, &d, err));
    receiver to = {.fn = fn, .arg = arg, .device = d->name};
    if (!CNRI_HAS(d->device.cls, properties)) return CNR_OK;
    return measure ? measure_on(rt, d, &to, err)
                   : d->device.cls->properties(d->device.index, NULL, tell, &to, err);
}

/* ---- as a list ---- */

/* Adds a property to a list. */
static void add(void *arg, const char *name, const char *text, double value) {
    cnri_fact_list *list = arg;
    cnri_fact *to = cnri_push(list);
    if (to) *to = (cnri_fact){.name = cnri_strdup(name), .value = value};
    if (to && text) to->text = cnri_strdup(text);
    if (!to || !to->name || (text && !to->text)) list->failed = true;
}

cnr_status cnri_device_facts(cnr_runtime *rt, const char *device, int32_t measure,
                             cnri_fact_list *out, cnr_error *err) {
    *out = (cnri_fact_list){0};
    cnr_status status = cnr_device_properties(rt, device, measure, add, out, err);
    if (!status && out->failed) status = cnri_out_of_memory(err, device);
    if (status) cnri_facts_free(out);
    return status;
}

void cnri_facts_free(cnri_fact_list *list) {
    for (int32_t i = 0; i < list->n; i++) {
        cnri_free((void *)list->at[i].name);
        cnri_free((void *)list->at[i].text);
    }
    cnri_free(list->at);
    *list = (cnri_fact_list){0};
}
