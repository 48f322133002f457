/* The devices of this machine: found, named, each given to its best driver, opened on first use. */
#include "core/host/host.h"
#include <pthread.h>
#include <string.h>

typedef CNRI_VEC(cnri_device) device_list;

static void terminate(cnr_device_info *info) {
    info->key[sizeof info->key - 1] = 0;
    info->name[sizeof info->name - 1] = 0;
    info->driver[sizeof info->driver - 1] = 0;
    info->why[sizeof info->why - 1] = 0;
}

/* The entry of the same piece of hardware, or NULL. */
static cnri_device *same_hardware(device_list *list, const cnr_device_class *cls, const char *key) {
    for (int32_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].device.cls->family, cls->family) == 0 &&
            strcmp(list->at[i].info.key, key) == 0)
            return &list->at[i];
    return NULL;
}

/* Highest score wins; names decide between equals, so that every start chooses alike. */
static bool beats(const cnr_device_class *cls, const cnr_device_info *info,
                  const cnri_device *other) {
    if (info->score != other->info.score) return info->score > other->info.score;
    return strcmp(cls->name, other->device.cls->name) < 0;
}

static cnr_status consider(device_list *list, const cnr_device_class *cls, int32_t index,
                           cnr_error *err) {
    cnr_device_info info = {.size = sizeof info};
    cnr_error why = CNR_ERROR_INIT;
    const cnr_status status = cls->describe(index, &info, &why);
    terminate(&info);
    if (status != CNR_OK || info.score <= 0) {
        cnri_log(CNR_LOG_INFO, cls->name, "device %d is left out: %s", (int)index,
                 status != CNR_OK ? why.text : info.why);
        return CNR_OK;
    }
    cnri_device *d = same_hardware(list, cls, info.key);
    if (d && !beats(cls, &info, d)) return CNR_OK;
    if (!d) d = cnri_push(list);
    if (!d) return cnri_fail(err, CNR_E_MEMORY, cls->name, "no memory for a device");
    d->info = info;
    d->device = (cnr_device){.size = sizeof d->device, .index = index, .cls = cls};
    return CNR_OK;
}

static cnr_status consider_class(device_list *list, const cnr_device_class *cls, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    const int32_t n = cls->count(&why);
    cnr_status status = CNR_OK;
    if (n < 0) cnri_log(CNR_LOG_INFO, cls->name, "no devices: %s", why.text);
    for (int32_t i = 0; i < n && status == CNR_OK; i++) status = consider(list, cls, i, err);
    return status;
}

/* Numbers within a family in the order of discovery. */
static void name_devices(device_list *list) {
    for (int32_t i = 0; i < list->n; i++) {
        cnri_device *d = &list->at[i];
        int number = 0;
        for (int32_t k = 0; k < i; k++)
            number += strcmp(list->at[k].device.cls->family, d->device.cls->family) == 0;
        if (d->device.cls->flags & CNR_DEVICE_ONLY)
            snprintf(d->name, sizeof d->name, "%s", d->device.cls->family);
        else snprintf(d->name, sizeof d->name, "%.20s:%d", d->device.cls->family, number);
    }
}

/* Best first; stable, so that equals keep the order of their numbers. */
static void sort_devices(device_list *list) {
    for (int32_t i = 1; i < list->n; i++) {
        const cnri_device d = list->at[i];
        int32_t to = i;
        for (; to > 0 && list->at[to - 1].info.score < d.info.score; to--)
            list->at[to] = list->at[to - 1];
        list->at[to] = d;
    }
    for (int32_t i = 0; i < list->n; i++) list->at[i].device.name = list->at[i].name;
}

cnr_status cnri_devices_find(cnri_devices *set, int32_t threads, cnr_error *err) {
    device_list list = {0};
    cnr_status status = CNR_OK;
    *set = (cnri_devices){.options = {.size = sizeof set->options, .threads = threads}};
    for (int32_t i = 0; i < cnri_count(CNR_KIND_DEVICE) && status == CNR_OK; i++)
        status = consider_class(&list, cnri_at(CNR_KIND_DEVICE, i), err);
    if (status != CNR_OK) {
        cnri_vec_free(&list);
        return status;
    }
    name_devices(&list);
    sort_devices(&list);
    set->at = list.at;
    set->n = list.n;
    return CNR_OK;
}

/* By name; a family alone means the first of it, "family:0" the one that needs no number. */
static cnri_device *find_device(cnri_devices *set, const char *name) {
    cnri_device *first = NULL;
    for (int32_t i = 0; i < set->n; i++) {
        cnri_device *d = &set->at[i];
        const char *family = d->device.cls->family;
        const size_t n = strlen(family);
        if (strcmp(d->name, name) == 0) return d;
        if (strncmp(name, family, n) != 0) continue;
        if (name[n] == 0 && (!first || strcmp(d->name, first->name) < 0)) first = d;
        if (strcmp(name + n, ":0") == 0 && strcmp(d->name, family) == 0) first = d;
    }
    return first;
}

static cnr_status unknown_device(const cnri_devices *set, const char *name, cnr_error *err) {
    char there[512] = "";
    size_t n = 0;
    for (int32_t i = 0; i < set->n && n < sizeof there; i++)
        n += (size_t)snprintf(there + n, sizeof there - n, "%s%s", i ? ", " : "", set->at[i].name);
    return cnri_fail(err, CNR_E_NOT_FOUND, name, "no such device; %s%s",
                     set->n ? "there are: " : "no plugin has brought any", there);
}

static cnr_status open_device(cnri_devices *set, cnri_device *d, cnr_error *err) {
    const cnr_status status = d->device.cls->open(&d->device, &set->options, err);
    if (status != CNR_OK) return status;
    if (!d->device.memory || d->device.n_memory < 1) {
        d->device.cls->close(&d->device);
        return cnri_fail(err, CNR_E_DEVICE, d->name, "opened without any memory");
    }
    d->open = true;
    return CNR_OK;
}

cnr_status cnri_device_open(cnri_devices *set, const char *name, const cnr_device **out,
                            cnr_error *err) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* plans may be made at once */
    cnri_device *d = find_device(set, name);
    *out = NULL;
    if (!d) return unknown_device(set, name, err);
    pthread_mutex_lock(&lock);
    const cnr_status status = d->open ? CNR_OK : open_device(set, d, err);
    pthread_mutex_unlock(&lock);
    if (status == CNR_OK) *out = &d->device;
    return status;
}

void cnri_devices_close(cnri_devices *set) {
    for (int32_t i = 0; i < set->n; i++)
        if (set->at[i].open) set->at[i].device.cls->close(&set->at[i].device);
    cnri_free(set->at);
    *set = (cnri_devices){0};
}
