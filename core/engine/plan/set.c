/* The devices of a plan: found and opened once, in a fixed order. */
#include "plan/planner.h"

/* Adds a device to the set, once; *index: its place. */
static cnr_status add(cnri_device_set *set, const cnri_device *device, int32_t *index,
                      cnr_error *err) {
    for (*index = 0; *index < set->n; ++*index)
        if (set->at[*index] == device) return CNR_OK;
    const cnri_device **slot = cnri_push(set);
    if (!slot) return cnri_no_memory(err);
    *slot = device;
    return CNR_OK;
}

/* Opens a device by name and adds it. */
static cnr_status add_named(cnri_device_set *set, cnri_devices *devices, const char *name,
                            int32_t *index, cnr_error *err) {
    const cnri_device *device = NULL;
    const cnr_device *open;
    cnr_status status = cnri_device_open(devices, name, &open, err);
    if (!status) status = cnri_device_find(devices, name, &device, err);
    return status ? status : add(set, device, index, err);
}

/* Adds the best device, or with `host` the best with host memory. */
static cnr_status add_best(cnri_device_set *set, cnri_devices *devices, bool host, int32_t *index,
                           cnr_error *err) {
    const cnri_device *device;
    const cnr_status status = cnri_device_best(devices, host, &device, err);
    return status ? status : add(set, device, index, err);
}

/* Adds all devices that placements name. */
static cnr_status add_wished(cnri_device_set *set, cnri_devices *devices,
                             const cnri_placement *wishes, int32_t n, cnr_error *err) {
    cnr_status status = CNR_OK;
    int32_t index;
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < wishes[i].n_parts && !status; k++)
            status = add_named(set, devices, wishes[i].parts[k].device, &index, err);
    return status;
}

/* Adds the listed devices. `all`: each must exist (the command's list); else missing ones are
 * skipped (a policy's list). */
static cnr_status add_listed(cnri_device_set *set, cnri_devices *devices, const char *const *names,
                             bool all, cnr_error *err) {
    cnr_status status = CNR_OK;
    int32_t index;
    for (; names && *names && !status; names++) {
        cnr_error why = CNR_ERROR_INIT;
        status = add_named(set, devices, *names, &index, &why);
        if (status && !all && status != CNR_E_MEMORY) {
            cnri_log(CNR_LOG_INFO, "policy", "%s: %s", *names, why.text);
            status = CNR_OK;
        }
        if (status) cnri_fail(err, status, why.where, "%s", why.text);
    }
    return status;
}

/* Adds a device with host memory, for nodes that no other takes. No error if there is none. */
static cnr_status add_host(cnri_device_set *set, cnri_devices *devices, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    for (int32_t i = 0; i < set->n && set->host < 0; i++)
        if (cnri_is_host(&set->at[i]->device)) set->host = i;
    if (set->host >= 0) return CNR_OK;
    const cnr_status status = add_best(set, devices, true, &set->host, &why);
    if (status) set->host = -1;
    return status == CNR_E_MEMORY ? cnri_no_memory(err) : CNR_OK;
}

cnr_status cnri_device_set_make(cnri_device_set *set, cnri_devices *devices, const cnr_graph *graph,
                                const cnri_plan_options *options, cnr_error *err) {
    const char *first = options->device;
    const bool on_host = cnri_is_listed(options->kernels, "*=" cnri_reference_name);
    *set = (cnri_device_set){.devices = devices, .host = -1};
    if (!first && options->devices) first = options->devices[0];
    cnr_status status = first ? add_named(set, devices, first, &set->fallback, err)
                              : add_best(set, devices, on_host, &set->fallback, err);
    if (!status && !options->on_fallback) status = cnri_wishes_read(graph, &set->own, err);
    if (!status) status = add_wished(set, devices, set->own.at, set->own.n, err);
    if (!status) status = add_wished(set, devices, options->placements, options->n_placements, err);
    if (!status) status = add_listed(set, devices, options->devices, true, err);
    if (!status && options->policy && !options->devices)
        status = add_listed(set, devices, options->policy->devices, false, err);
    if (!status) status = cnri_devices_check_clock(set->at, set->n, err);
    if (!status) status = add_host(set, devices, err);
    if (status) cnri_device_set_free(set);
    return status;
}

int32_t cnri_device_set_find(const cnri_device_set *set, const char *name) {
    const cnri_device *device;
    if (cnri_device_find(set->devices, name, &device, NULL)) return -1;
    for (int32_t i = 0; i < set->n; i++)
        if (set->at[i] == device) return i;
    return -1;
}

void cnri_device_set_free(cnri_device_set *set) {
    cnri_vec_free(set);
    cnri_wishes_free(&set->own);
}
