/* The devices of this machine: drivers report them by family, each device gets a name and its
 * best driver, and is opened on first use. */
#include "host/host.h"
#include <pthread.h>
#include <string.h>

/* The devices of one family, in the order of discovery. */
typedef CNRI_VEC(cnri_device *) device_list;

/* Several plans may be made at once, and each may be the first that needs a family or a device. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Frees the devices of a list, and the list. */
static void free_devices(device_list *list) {
    for (int32_t i = 0; i < list->n; i++) cnri_free(list->at[i]);
    cnri_vec_free(list);
}

/* ---- asking a family ---- */

/* Ends all texts that a plugin filled, in case it did not. */
static void terminate(cnr_device_info *info) {
    info->key[sizeof info->key - 1] = 0;
    info->name[sizeof info->name - 1] = 0;
    info->driver[sizeof info->driver - 1] = 0;
    info->why[sizeof info->why - 1] = 0;
    info->part[sizeof info->part - 1] = 0;
}

/* The device of the same piece of hardware; NULL: none. */
static cnri_device *same_hardware(const device_list *list, const char *key) {
    for (int32_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i]->info.key, key) == 0) return list->at[i];
    return NULL;
}

/* Appends an empty device; NULL: out of memory. */
static cnri_device *add_device(device_list *list) {
    cnri_device *d = cnri_alloc_zero(sizeof *d), **slot = d ? cnri_push(list) : NULL;
    if (slot) return *slot = d;
    cnri_free(d);
    return NULL;
}

/* Precedence of the plugin that brings a device class. */
static int32_t precedence_of(const cnr_device_class *cls) {
    const cnri_plugin *owner = cnri_owner(cls);
    return owner ? owner->precedence : 0;
}

/* True if this driver goes before the other device's: first by the precedence of its plugin,
 * then by score, then by name, so that every start chooses the same. */
static bool beats(const cnr_device_class *cls, const cnr_device_info *info,
                  const cnri_device *other) {
    const int32_t mine = precedence_of(cls), its = precedence_of(other->device.cls);
    if (mine != its) return mine > its;
    if (info->score != other->info.score) return info->score > other->info.score;
    return strcmp(cls->name, other->device.cls->name) < 0;
}

/* Asks a class about its device `index` and adds it, unless it can't be used. */
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
    cnri_device *d = same_hardware(list, info.key);
    if (d && !beats(cls, &info, d)) return CNR_OK;
    if (!d) d = add_device(list);
    if (!d) return cnri_fail(err, CNR_E_MEMORY, cls->name, "no memory for a device");
    d->info = info;
    d->device = (cnr_device){.size = sizeof d->device, .index = index, .cls = cls};
    return CNR_OK;
}

enum { MAX_DEVICES = 64 }; /* most devices of one class */

/* Adds all usable devices of a class; a class that fails to count them is only logged. */
static cnr_status consider_class(device_list *list, const cnr_device_class *cls, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    int32_t n = cls->count(&why);
    cnr_status status = CNR_OK;
    if (n < 0) cnri_log(CNR_LOG_INFO, cls->name, "no devices: %s", why.text);
    if (n > MAX_DEVICES)
        cnri_log(CNR_LOG_WARN, cls->name, "claims %d devices; the first %d are looked at", (int)n,
                 MAX_DEVICES);
    n = n > MAX_DEVICES ? MAX_DEVICES : n;
    for (int32_t i = 0; i < n && status == CNR_OK; i++) status = consider(list, cls, i, err);
    return status;
}

/* Writes each device's name: FAMILY where it is the only one there can be, FAMILY:PART, or
 * FAMILY:0, FAMILY:1 ... */
static void name_devices(const device_list *list) {
    for (int32_t i = 0; i < list->n; i++) {
        cnri_device *d = list->at[i];
        const cnr_device_class *cls = d->device.cls;
        d->device.name = d->name;
        const char *part = d->info.part;
        if (*part) snprintf(d->name, sizeof d->name, "%.6s:%s", cls->family, part);
        else if (cls->flags & CNR_DEVICE_SINGLE)
            snprintf(d->name, sizeof d->name, "%s", cls->family);
        else snprintf(d->name, sizeof d->name, "%.20s:%d", cls->family, (int)i);
    }
}

/* True if device a goes before one of that precedence and score. */
static bool is_better(const cnri_device *a, int32_t precedence, int32_t score) {
    const int32_t its = precedence_of(a->device.cls);
    return its != precedence ? its > precedence : a->info.score > score;
}

/* Merges the devices of a family into the set, best first; equal ones stay in the order in which
 * families were asked. False: out of memory, nothing changed. */
static bool merge(cnri_devices *set, const device_list *list, const char *family) {
    const char **asked_families = cnri_push(&set->asked_families);
    const int32_t was = set->n;
    if (!asked_families) return false;
    *asked_families = family;
    for (int32_t i = 0; i < list->n; i++)
        if (!cnri_push(set)) {
            set->n = was;
            set->asked_families.n--;
            return false;
        }
    for (int32_t i = 0; i < list->n; i++) {
        int32_t to = was + i;
        for (; to > 0 && is_better(list->at[i], precedence_of(set->at[to - 1]->device.cls),
                                   set->at[to - 1]->info.score);
             to--)
            set->at[to] = set->at[to - 1];
        set->at[to] = list->at[i];
    }
    return true;
}

/* Adds the devices of a family to the set; nothing if that was done before. */
static cnr_status ask(cnri_devices *set, const char *family, cnr_error *err) {
    device_list list = {0};
    cnr_status status = CNR_OK;
    if (CNRI_INDEX_OF(set->asked_families.at, set->asked_families.n, family) >= 0) return CNR_OK;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && status == CNR_OK; i++) {
        const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, i);
        if (strcmp(cls->family, family) == 0) status = consider_class(&list, cls, err);
    }
    name_devices(&list);
    if (status == CNR_OK && merge(set, &list, family)) list.n = 0; /* the set owns them now */
    else if (status == CNR_OK)
        status = cnri_fail(err, CNR_E_MEMORY, family, "no memory for its devices");
    free_devices(&list);
    return status;
}

/* Asks all device families for their devices, and adds those; stops at the first error. */
static cnr_status ask_all(cnri_devices *set, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && status == CNR_OK; i++)
        status =
            ask(set, ((const cnr_device_class *)cnri_descriptor_at(CNR_KIND_DEVICE, i))->family,
                err);
    return status;
}

/* The family, among those not asked yet, that could have the best device above `known` (NULL:
 * any); NULL: there is none. Plugins installed later are not asked if a shipped plugin has a
 * device. */
static const char *family_above(const cnri_devices *set, const cnri_device *known) {
    const char *family = NULL;
    int32_t precedence = known ? precedence_of(known->device.cls) : 0;
    int32_t score = known ? known->info.score : 0;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE); i++) {
        const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, i);
        if (CNRI_INDEX_OF(set->asked_families.at, set->asked_families.n, cls->family) >= 0)
            continue;
        const int32_t its = precedence_of(cls);
        if (its < precedence) continue;
        const int32_t maximum = CNRI_HAS(cls, max_score) ? cls->max_score() : INT32_MAX;
        if (maximum <= (its > precedence ? 0 : score)) continue;
        precedence = its;
        score = maximum;
        family = cls->family;
    }
    return family;
}

/* ---- by name ---- */

/* Finds a device that was asked for already. "family" means its first; "family:0" is the one
 * without a number. NULL: none. */
static cnri_device *known_device(const cnri_devices *set, const char *name) {
    cnri_device *first = NULL;
    for (int32_t i = 0; i < set->n; i++) {
        cnri_device *d = set->at[i];
        const char *family = d->device.cls->family;
        const size_t n = strlen(family);
        if (strcmp(d->name, name) == 0) return d;
        if (strncmp(name, family, n) != 0) continue;
        if (name[n] == 0 && (!first || strcmp(d->name, first->name) < 0)) first = d;
        if (strcmp(name + n, ":0") == 0 && strcmp(d->name, family) == 0) first = d;
    }
    return first;
}

/* Asks only the families that a device name begins with, as "gpu" of "gpu0". */
static cnr_status ask_for(cnri_devices *set, const char *name, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && status == CNR_OK; i++) {
        const char *family =
            ((const cnr_device_class *)cnri_descriptor_at(CNR_KIND_DEVICE, i))->family;
        const size_t n = strlen(family);
        if (strncmp(name, family, n) == 0 && (name[n] == 0 || name[n] == ':'))
            status = ask(set, family, err);
    }
    return status;
}

/* Says that there is no such device, and lists those there are. */
static cnr_status unknown_device(const cnri_devices *set, const char *name, cnr_error *err) {
    char there[512] = "";
    size_t n = 0;
    for (int32_t i = 0; i < set->n && n < sizeof there; i++)
        n += (size_t)snprintf(there + n, sizeof there - n, "%s%s", i ? ", " : "", set->at[i]->name);
    return cnri_fail(err, CNR_E_NOT_FOUND, name, "no such device; %s%s",
                     set->n ? "there are: " : "no plugin has brought any", there);
}

/* Finds a device by name, in *out; asks no more families than needed. Fails if there is none. */
static cnr_status find(cnri_devices *set, const char *name, cnri_device **out, cnr_error *err) {
    cnr_status status = ask_for(set, name, err);
    *out = known_device(set, name);
    if (status != CNR_OK || *out) return status;
    /* Probably a misspelt name: ask all families, to list the devices. */
    status = ask_all(set, err);
    *out = known_device(set, name);
    return status != CNR_OK || *out ? status : unknown_device(set, name, err);
}

/* ---- opening ---- */

static cnr_status open_device(cnri_devices *set, cnri_device *d, cnr_error *err);

/* The CPU device that does host work for other devices; NULL: none opens. */
static const cnr_device *host_for(cnri_devices *set, const cnri_device *d) {
    const cnr_device_class *cls;
    if (d->device.cls->flags & CNR_DEVICE_HOST) return NULL;
    for (int32_t i = 0; (cls = cnri_descriptor_at(CNR_KIND_DEVICE, i)) != NULL; i++) {
        cnri_device *own = NULL;
        if (cls->flags & CNR_DEVICE_HOST && !ask(set, cls->family, NULL))
            own = known_device(set, cls->family);
        if (own && own->device.cls->flags & CNR_DEVICE_HOST && !open_device(set, own, NULL))
            return &own->device;
    }
    return NULL;
}

/* Opens a device unless it is open; fails for one that hangs. */
static cnr_status open_device(cnri_devices *set, cnri_device *d, cnr_error *err) {
    if (d->lost) return cnri_fail(err, CNR_E_DEVICE, d->name, "was lost: a call of it hangs");
    if (d->open) return CNR_OK;
    d->device.cache_dir = set->cache_dir;
    d->device.host = host_for(set, d);
    d->device.of_host = d;
    const cnr_status status =
        cnri_plugin_status(err, d->device.cls->open(&d->device, &set->options, err), d->name,
                           "opening it");
    if (status != CNR_OK) return status;
    if (!d->device.memory || d->device.n_memory < 1) {
        d->device.cls->close(&d->device);
        return cnri_fail(err, CNR_E_DEVICE, d->name, "opened without any memory");
    }
    d->open = true;
    return CNR_OK;
}

/* True if the host can read the device's memory at an address. */
static bool has_host_memory(const cnri_device *d) {
    return (d->device.memory[0].flags & CNR_MEMORY_HOST) != 0;
}

/* Finds the best device that opens (host: with host memory), in *out. A family is asked only if it
 * could have a better device than those known. */
static cnr_status best(cnri_devices *set, bool host, cnri_device **out, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    for (int32_t i = 0; host && i < set->n; i++)
        if (set->at[i]->open && has_host_memory(set->at[i])) {
            *out = set->at[i];
            return CNR_OK;
        }
    for (int32_t i = 0;;) {
        const char *family = family_above(set, i < set->n ? set->at[i] : NULL);
        if (family) {
            const cnr_status status = ask(set, family, err);
            if (status) return status;
            continue;
        }
        if (i == set->n) break;
        cnri_device *d = set->at[i++];
        if (open_device(set, d, &why)) {
            if (why.code == CNR_E_ARG) /* the caller asked for something impossible */
                return cnri_fail(err, why.code, why.where, "%s", why.text);
            cnri_log(CNR_LOG_WARN, "cnnrun", "%s left out: %s", d->name, why.text);
        } else if (!host || has_host_memory(d)) {
            *out = d;
            return CNR_OK;
        }
    }
    if (why.code == CNR_E_MEMORY) return cnri_fail(err, why.code, why.where, "%s", why.text);
    return cnri_fail(err, CNR_E_NOT_FOUND, "plan",
                     "no device%s: want a plugin that drives one (see \"cnnrun plugins\")",
                     host ? " with host memory" : "");
}

/* ---- devices that hang ---- */

static atomic_bool any_lost;

void cnri_device_lose(const cnr_device *device) {
    cnri_device *d = device->of_host;
    if (d) d->lost = true;
    any_lost = true;
}

bool cnri_device_is_lost(const cnr_device *device) {
    const cnri_device *d = device->of_host;
    return d && d->lost;
}

bool cnri_devices_any_lost(void) { return any_lost; }

/* Sets the milliseconds after which a call outside sessions counts as hanging (0: the default), and
 * whether the device is then given up (gives_up). */
void cnri_device_set_hang_ms(const cnr_device *device, uint64_t ms, bool gives_up) {
    cnri_device *d = device->of_host;
    if (!d) return;
    d->hang_ms = ms;
    d->gives_up = gives_up;
}

/* Milliseconds after which a call of the device counts as hanging, 0: the default; *gives_up: it is
 * then given up. */
uint64_t cnri_device_hang_ms(const cnr_device *device, bool *gives_up) {
    const cnri_device *d = device->of_host;
    *gives_up = d && d->gives_up;
    return d ? d->hang_ms : 0;
}

/* ---- why it is the default ---- */

/* Name of the plugin that brings a device. */
static const char *plugin_of(const cnri_device *d) {
    const cnri_plugin *owner = cnri_owner(d->device.cls);
    return owner ? owner->name : d->device.cls->name;
}

char *cnri_device_reason(const cnri_device *d, const cnri_device *best) {
    const int32_t its = precedence_of(d->device.cls), score = d->info.score;
    if (!best) return cnri_format("no device opens");
    if (d == best)
        return its == CNRI_ORDERED ? cnri_format("--plugin-order names plugin %s", plugin_of(d))
               : its == CNRI_SHIPPED
                   ? cnri_format("its score, %d, is the highest among the plugins that come with "
                                 "cnnrun",
                                 (int)score)
                   : cnri_format("no plugin that comes with cnnrun drives a device; its score, %d, "
                                 "is the highest",
                                 (int)score);
    if (its < precedence_of(best->device.cls))
        return cnri_format("plugin %s does not come with cnnrun, so its score, %d, does not count; "
                           "--device %s or --plugin-order %s chooses it",
                           plugin_of(d), (int)score, d->name, plugin_of(d));
    if (is_better(d, precedence_of(best->device.cls), best->info.score))
        return cnri_format("it can't be opened");
    return cnri_format("its score, %d, is not above %s's, %d", (int)score, best->name,
                       (int)best->info.score);
}

/* ---- clocks ---- */

bool cnri_device_is_timed(const cnr_device *device) {
    const void *clock = cnri_clock_descriptor();
    const cnri_plugin *owner = clock ? cnri_owner(clock) : NULL;
    bool has_devices = false;
    for (int32_t i = 0; owner && i < cnri_descriptor_count(CNR_KIND_DEVICE); i++) {
        const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, i);
        has_devices = has_devices || (cnri_owner(cls) == owner && cls->count(NULL) > 0);
    }
    return !has_devices || cnri_owner(device->cls) == owner;
}

cnr_status cnri_devices_check_clock(const cnri_device *const *devices, int32_t n, cnr_error *err) {
    const cnri_device *timed = NULL, *untimed = NULL;
    for (int32_t i = 0; i < n; i++) {
        const cnri_device **first = cnri_device_is_timed(&devices[i]->device) ? &timed : &untimed;
        if (!*first) *first = devices[i];
    }
    if (!timed || !untimed) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, untimed->name,
                     "a real device beside %s, which is simulated: on the board's clock real work "
                     "takes no time; name devices of one kind (see \"cnnrun devices\")",
                     timed->name);
}

/* ---- for the other rooms ---- */

void cnri_devices_init(cnri_devices *set, int32_t threads) {
    *set = (cnri_devices){.options = {.size = sizeof set->options, .threads = threads}};
}

cnr_status cnri_devices_ask(cnri_devices *set, const char *family, cnr_error *err) {
    pthread_mutex_lock(&lock);
    const cnr_status status = family ? ask(set, family, err) : ask_all(set, err);
    pthread_mutex_unlock(&lock);
    return status;
}

cnr_status cnri_device_find(cnri_devices *set, const char *name, const cnri_device **out,
                            cnr_error *err) {
    cnri_device *d = NULL;
    pthread_mutex_lock(&lock);
    const cnr_status status = find(set, name, &d, err);
    pthread_mutex_unlock(&lock);
    *out = d;
    return status;
}

cnr_status cnri_device_open(cnri_devices *set, const char *name, const cnr_device **out,
                            cnr_error *err) {
    cnri_device *d = NULL;
    pthread_mutex_lock(&lock);
    cnr_status status = find(set, name, &d, err);
    if (status == CNR_OK) status = open_device(set, d, err);
    pthread_mutex_unlock(&lock);
    *out = status == CNR_OK ? &d->device : NULL;
    return status;
}

cnr_status cnri_device_best(cnri_devices *set, bool host, const cnri_device **out, cnr_error *err) {
    cnri_device *d = NULL;
    pthread_mutex_lock(&lock);
    const cnr_status status = best(set, host, &d, err);
    pthread_mutex_unlock(&lock);
    *out = d;
    return status;
}

cnr_status cnri_devices_keep(cnri_devices *set, const char *folder, cnr_error *err) {
    cnr_status status = CNR_OK;
    pthread_mutex_lock(&lock);
    if (folder && !set->cache_dir && !(set->cache_dir = cnri_strdup(folder)))
        status = cnri_out_of_memory(err, folder);
    for (int32_t i = 0; i < set->n; i++) set->at[i]->device.cache_dir = set->cache_dir;
    pthread_mutex_unlock(&lock);
    return status;
}

void cnri_devices_close(cnri_devices *set) {
    for (int32_t i = 0; i < set->n; i++) {
        if (set->at[i]->lost) continue;
        if (set->at[i]->open) set->at[i]->device.cls->close(&set->at[i]->device);
        cnri_free(set->at[i]);
    }
    cnri_free(set->at);
    cnri_free(set->cache_dir);
    cnri_vec_free(&set->asked_families);
    *set = (cnri_devices){0};
}
