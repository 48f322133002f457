/* What knobs were found at, kept in a file from before they are set until they are put back:
 * whoever opens them after a process that was killed puts them back first.
 *
 *   CACHE/knob-NAME-HASH/found    "boot ID\n", and the knob's own text; nothing: they are as they
 * were
 *
 * HASH is of the root, so that trees of fixtures don't meet the machine's own. The folder's lock is
 * held by who sets them, so one process at a time does, and a file that nobody holds was left
 * behind. */
#include "gauges/gauges.h"
#include "people/people.h"
#include <string.h>

enum { MAX_BYTES = 1 << 16 };
static const char file_name[] = "found";

/* True if the knob can write its state as text and restore it from there. */
static bool can_put_back(const cnr_knob *knob) {
    return CNRI_HAS(knob, save_state) && CNRI_HAS(knob, load_state);
}

/* Folder for a knob, free it with cnri_free; NULL with err. Names of knobs may be any text. */
static char *folder_of(const cnr_knob *knob, const char *root, cnr_error *err) {
    uint8_t print[16];
    char hex[17], name[33];
    size_t n = 0;
    cnri_fingerprint(root, strlen(root), print);
    cnri_hex(print, 8, hex);
    for (; n < sizeof name - 1 && knob->name[n]; n++)
        name[n] = strchr("/. ", knob->name[n]) ? '-' : knob->name[n];
    name[n] = 0;
    char *base = cnri_kept_folder(err);
    char *folder = base ? cnri_format("%s/knob-%s-%s", base, name, hex) : NULL;
    if (base && !folder) cnri_out_of_memory(err, knob->name);
    cnri_free(base);
    return folder;
}

/* Reads the boot ID: after a restart of the machine knobs have their initial settings. */
static void boot_id(const char *root, char out[64]) {
    char *path = cnri_path_join(root, "proc/sys/kernel/random/boot_id");
    size_t n = 0;
    if (path) cnri_read_head(path, out, 63, &n, NULL);
    out[n] = 0;
    out[strcspn(out, "\r\n")] = 0;
    cnri_free(path);
}

/* Writes the state of a knob to the folder. */
static cnr_status save(const char *folder, const char *text, cnr_error *err) {
    return cnri_kept_save(folder, file_name, text, strlen(text), err);
}

/* The settings that a dead process stored; NULL: there are none, or nothing has to be restored. */
static char *left_behind(const char *folder, const char *root) {
    char id[64];
    void *data = NULL;
    uint64_t bytes = 0;
    if (cnri_kept_load(folder, file_name, MAX_BYTES, &data, &bytes, NULL) || bytes == 0) {
        cnri_free(data);
        return NULL;
    }
    char *text = data, *line = strchr(text, '\n');
    boot_id(root, id);
    if (!line || strncmp(text, "boot ", 5) != 0) goto none;
    *line = 0;
    if (strcmp(text + 5, id) != 0) goto none;
    memmove(text, line + 1, strlen(line + 1) + 1);
    return text;
none:
    cnri_free(text);
    return NULL;
}

int32_t cnri_knob_bring_back(const cnr_knob *knob, void *state, const char *root, cnr_error *err) {
    int lock;
    int32_t brought = 0;
    char *folder = can_put_back(knob) ? folder_of(knob, root, NULL) : NULL;
    if (folder && cnri_folder_try(folder, &lock)) {
        char *text = left_behind(folder, root);
        if (text) {
            cnr_status status =
                cnri_plugin_status(err, knob->load_state(state, text, err), knob->name,
                                   "putting back what a killed process set");
            if (!status) status = save(folder, "", err);
            brought = status ? -1 : 1;
            if (!status)
                cnri_log(CNR_LOG_WARN, knob->name,
                         "put back as a process found it that was killed");
        }
        cnri_free(text);
        cnri_folder_unlock(lock);
    }
    cnri_free(folder);
    return brought;
}

/* Restores a knob while the process dies by a signal. */
static void restore_in_signal(void *arg) {
    const cnri_knob_set *k = arg;
    k->knob->restore_in_signal(k->state);
}

cnr_status cnri_knob_keep(cnri_knob_set *k, cnr_error *err) {
    char id[64], text[MAX_BYTES / 4];
    if (k->keeps || !can_put_back(k->knob)) return CNR_OK;
    char *folder = folder_of(k->knob, k->root, err);
    cnr_status status = folder ? cnri_kept_create(folder, err) : (cnr_status)err->code;
    if (!status && !cnri_folder_try(folder, &k->lock))
        status = cnri_fail(err, CNR_E_STATE, k->knob->name, "another process sets it");
    if (status) {
        cnri_free(folder);
        return status;
    }
    boot_id(k->root, id);
    const int n = snprintf(text, sizeof text, "boot %s\n", id);
    const int32_t more = k->knob->save_state(k->state, text + n, sizeof text - (size_t)n);
    if (more < 0 || (size_t)more >= sizeof text - (size_t)n)
        status = cnri_fail(err, CNR_E_LIMIT, k->knob->name, "what it found is too long to be kept");
    if (!status) status = save(folder, text, err);
    if (status) {
        cnri_folder_unlock(k->lock);
        cnri_free(folder);
        return status;
    }
    k->keeps = folder;
    if (CNRI_HAS(k->knob, restore_in_signal)) cnri_exit_hook_add(restore_in_signal, k);
    return CNR_OK;
}

void cnri_knob_kept(cnri_knob_set *k, bool restored) {
    if (!k->keeps) return;
    cnri_exit_hook_remove(k);
    cnr_error why = CNR_ERROR_INIT;
    if (restored && save(k->keeps, "", &why))
        cnri_log(CNR_LOG_WARN, k->knob->name, "%s: %s", why.where, why.text);
    cnri_folder_unlock(k->lock);
    cnri_free(k->keeps);
    k->keeps = NULL;
}

cnr_status cnri_knobs_recover(const cnr_gauge_options *options, int32_t *brought, cnr_error *err) {
    cnr_status status = CNR_OK;
    const char *root = options->root ? options->root : "/";
    *brought = 0;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_KNOB); i++) {
        const cnr_knob *knob = cnri_descriptor_at(CNR_KIND_KNOB, i);
        char *folder = can_put_back(knob) ? folder_of(knob, root, NULL) : NULL;
        char *text = folder ? left_behind(folder, root) : NULL;
        const bool wanted = text != NULL;
        void *state;
        int32_t n;
        cnri_free(folder);
        cnri_free(text);
        if (!wanted) continue;
        cnr_error why = CNR_ERROR_INIT;
        cnr_gauge_options own = *options;
        own.root = root;
        cnr_status one =
            cnri_plugin_status(&why, knob->open(&own, &state, &n, &why), knob->name, "opening it");
        if (!one) {
            const int32_t done = cnri_knob_bring_back(knob, state, root, &why);
            knob->close(state);
            *brought += done > 0;
            if (done < 0) one = (cnr_status)why.code;
        }
        if (one) status = cnri_fail(err, one, knob->name, "can't be put back: %s", why.text);
    }
    return status;
}
