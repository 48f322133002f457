/* Properties that a device's plugin reports; `measure` lets the device measure some of them. */
#include "run/run.h"
#include <math.h>

enum { MAX_FACTS = 256, MAX_TEXT = 1024 };

/* Facts that a device tells of itself. */
typedef struct collected_facts {
    CNRI_VEC(cnr_fact) list;
    const char *device;
    bool failed; /* memory was out */
} collected_facts;

/* True for a name of lower-case letters, digits, _ and inner dots, below 64 characters. */
static bool is_name(const char *name) {
    size_t n = 0;
    for (; name && n < 64 && name[n]; n++)
        if (!((name[n] >= 'a' && name[n] <= 'z') || (name[n] >= '0' && name[n] <= '9') ||
              name[n] == '_' || (name[n] == '.' && n > 0 && name[n + 1])))
            return false;
    return n > 0 && n < 64;
}

/* Adds a property. Names come from plugins, so those that could not be a key are left out. */
static void tell(void *arg, const char *name, const char *text, double value) {
    collected_facts *t = arg;
    if (!is_name(name) || t->list.n >= MAX_FACTS || (!text && !isfinite(value))) {
        cnri_log(CNR_LOG_INFO, t->device, "a fact of no possible name or number is left out");
        return;
    }
    cnr_fact *to = cnri_push(&t->list);
    if (to) *to = (cnr_fact){.name = cnri_strdup(name), .value = value};
    if (to && text) to->text = cnri_format("%.*s", (int)strnlen(text, MAX_TEXT), text);
    if (!to || !to->name || (text && !to->text)) t->failed = true;
}

/* Lets a device, which it opens, measure its properties on a stream and append them to *to. */
static cnr_status measure(cnr_runtime *rt, const cnri_device *d, collected_facts *to,
                          cnr_error *err) {
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

cnr_status cnr_device_facts(cnr_runtime *rt, const char *device, int32_t measured,
                            cnr_fact_list *out, cnr_error *err) {
    const cnri_device *d = NULL;
    cnr_status status =
        cnri_require_arguments(err, "runtime", rt, "device", device, "out", out, NULL);
    if (!status && out->size < sizeof *out)
        status = cnri_fail(err, CNR_E_INVALID, "out", "its size is to be set before the call");
    if (!status) status = cnri_check_process(rt, err);
    if (!status) status = cnri_device_find(&rt->devices, device, &d, err);
    if (status) return status;
    collected_facts t = {.device = d->name};
    if (CNRI_HAS(d->device.cls, properties) && measured) status = measure(rt, d, &t, err);
    else if (CNRI_HAS(d->device.cls, properties))
        status = d->device.cls->properties(d->device.index, NULL, tell, &t, err);
    if (!status && t.failed) status = cnri_out_of_memory(err, d->name);
    *out = (cnr_fact_list){sizeof *out, t.list.n, t.list.at};
    if (status) cnr_facts_free(out);
    return status;
}

void cnr_facts_free(cnr_fact_list *list) {
    if (!list) return;
    for (int32_t i = 0; i < list->n; i++) {
        cnri_free((void *)list->at[i].name);
        cnri_free((void *)list->at[i].text);
    }
    cnri_free(list->at);
    list->at = NULL;
    list->n = 0;
}
