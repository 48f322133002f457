/* Devices and placements for applications. */
#include "embed/embed.h"
#include <math.h>

cnr_status cnr_device_at(cnr_runtime *rt, int32_t index, cnr_device_entry *out, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "out", out, NULL);
    if (!status && out->size < sizeof *out)
        status = cnri_fail(err, CNR_E_ARG, "out", "its size is to be set before the call");
    if (!status) status = cnri_check_process(rt, err);
    if (!status) status = cnri_devices_ask(&rt->devices, NULL, err);
    if (status) return status;
    if (index < 0 || index >= rt->devices.n)
        return cnri_fail(err, CNR_E_NOT_FOUND, "device", "there is no device %d, but %d",
                         (int)index, (int)rt->devices.n);
    const cnri_device *d = rt->devices.at[index];
    *out = (cnr_device_entry){.size = sizeof *out,
                              .concurrency = d->open ? d->device.concurrency : d->info.concurrency,
                              .name = d->name,
                              .family = d->device.cls->family,
                              .hardware = d->info.name,
                              .driver = d->info.driver,
                              .plugin = d->device.cls->name,
                              .memory_bytes = d->info.memory_bytes};
    return CNR_OK;
}

cnr_status cnr_device_default(cnr_runtime *rt, const char *device, int32_t *is_default,
                              char *reason, size_t room, cnr_error *err) {
    const cnri_device *d = NULL, *best = NULL;
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "device", device, "is_default",
                                               is_default, NULL);
    if (!status) status = cnri_check_process(rt, err);
    if (!status) status = cnri_device_find(&rt->devices, device, &d, err);
    if (status) return status;
    const cnr_status none = cnri_device_best(&rt->devices, false, &best, err);
    if (none == CNR_E_MEMORY) return none;
    *is_default = d == best;
    char *text = cnri_device_reason(d, none ? NULL : best);
    if (text && reason && room) snprintf(reason, room, "%s", text);
    cnri_free(text);
    return text ? CNR_OK : cnri_out_of_memory(err, d->name);
}

cnr_status cnr_plugin_at(cnr_runtime *rt, int32_t index, cnr_plugin_entry *out, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "out", out, NULL);
    if (!status && out->size < sizeof *out)
        status = cnri_fail(err, CNR_E_ARG, "out", "its size is to be set before the call");
    if (status) return status;
    const cnri_plugin *p = cnri_plugin_at(index);
    if (!p) return cnri_fail(err, CNR_E_NOT_FOUND, "plugin", "there is no plugin %d", (int)index);
    *out = (cnr_plugin_entry){.size = sizeof *out,
                              .name = p->name,
                              .version = p->version,
                              .file = p->path,
                              .summary = p->desc ? p->desc->summary : NULL,
                              .refused = p->refused};
    return CNR_OK;
}

/* ---- placing ---- */

/* True if the net has a node of that name, or it is "*". */
static bool is_node(const cnr_graph *g, const char *name) {
    bool known = strcmp(name, "*") == 0;
    for (int32_t i = 0; i < g->nodes.n && !known; i++)
        known = strcmp(g->nodes.at[i]->name, name) == 0;
    return known;
}

/* Fills the parts with the devices and shares of a placement (no shares: equal ones); fails unless
 * shares sum to 1. */
static cnr_status make_parts(const cnr_place_options *o, cnri_part *parts, cnr_error *err) {
    double sum = 0;
    for (int32_t i = 0; i < o->n_devices; i++) {
        const char *name = o->devices[i];
        if (!name || strlen(name) >= sizeof parts[i].device)
            return cnri_fail(err, CNR_E_ARG, o->node, "\"%s\" is no name of a device",
                             name ? name : "");
        memcpy(parts[i].device, name, strlen(name) + 1);
        parts[i].ratio = o->shares ? o->shares[i] : 1.0 / o->n_devices;
        sum += parts[i].ratio >= 0 ? parts[i].ratio : (double)NAN;
    }
    if (o->n_devices == 0 || fabs(sum - 1) < 1e-3) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, o->node, "shares are wanted that are 1 in all");
}

/* Replaces the model's placement of this node by copies of parts; no devices: removes it. */
static cnr_status replace(cnr_model *m, const cnr_place_options *o, cnri_part *parts,
                          cnr_error *err) {
    cnri_plan_options options = m->plan_options;
    cnri_placement *list = cnri_alloc_zero((size_t)(options.n_placements + 1) * sizeof *list);
    if (!list) return cnri_out_of_memory(err, o->node);
    int32_t n = 0;
    for (int32_t i = 0; i < options.n_placements; i++)
        if (strcmp(options.placements[i].node, o->node) != 0) list[n++] = options.placements[i];
    if (o->n_devices > 0)
        list[n++] = (cnri_placement){(char *)o->node, o->n_devices, o->axis, parts};
    options.placements = list;
    options.n_placements = n;
    const cnr_status status = cnri_model_set_options(m, &options, err); /* the options are copied */
    cnri_free(list);
    return status;
}

/* Replaces the model's placement policy by o->policy; "": by none. */
static cnr_status replace_policy(cnr_model *m, const cnr_place_options *o, cnr_error *err) {
    cnri_plan_options options = m->plan_options;
    cnr_status status = CNR_OK;
    options.policy = NULL;
    if (*o->policy)
        status = cnri_policy_open(o->policy, NULL, o->policy_options, &options.policy, err);
    if (!status) status = cnri_model_set_options(m, &options, err); /* the options are copied */
    cnri_policy_release(options.policy);
    return status;
}

cnr_status cnr_place(cnr_model *m, const cnr_place_options *options, cnr_error *err) {
    enum { MOST = 64 };
    cnr_place_options o = {.size = sizeof o};
    cnri_part parts[MOST];
    cnr_status status = cnri_require_arguments(err, "model", m, "options", options, NULL);
    if (status) return status;
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    if (o.policy) return replace_policy(m, &o, err);
    status = cnri_require_arguments(err, "node", o.node, NULL);
    if (!status && o.n_devices > 0)
        status = cnri_require_arguments(err, "devices", o.devices, NULL);
    if (status) return status;
    if (!is_node(m->graph, o.node))
        return cnri_fail(err, CNR_E_NOT_FOUND, o.node, "the net has no such node");
    if (o.n_devices < 0 || o.n_devices > MOST || o.axis < 0 || o.axis >= CNR_MAX_RANK)
        return cnri_fail(err, CNR_E_ARG, o.node, "want up to %d devices and an axis below %d", MOST,
                         CNR_MAX_RANK);
    memset(parts, 0, sizeof parts);
    status = make_parts(&o, parts, err);
    for (int32_t i = 0; i < o.n_devices && !status; i++) {
        const cnri_device *found;
        status = cnri_device_find(&m->rt->devices, parts[i].device, &found, err);
    }
    return status ? status : replace(m, &o, parts, err);
}
