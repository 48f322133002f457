/* Reads and writes the record of measured times in a cache folder. */
#include "run/run.h"
#include "store/store.h"

enum { MAX_RECORD = 16 << 20 };

cnr_status cnri_tuning_load(const char *folder, cnri_tuning *out, uint8_t print[16],
                            cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    char *path = cnri_path_join(folder, CNRI_TUNING_FILE), *text = NULL;
    cnr_error why = CNR_ERROR_INIT;
    size_t bytes = 0;
    memset(print, 0, 16);
    if (!path) return cnri_out_of_memory(err, folder);
    cnr_status status = cnri_read_kept(path, MAX_RECORD, &text, &bytes, &why);
    if (!status) status = cnri_tuning_parse(out, text, &why);
    if (!status) cnri_fingerprint(text, bytes, print);
    if (status == CNR_E_NOT_FOUND) status = CNR_OK; /* no record exists yet */
    status = cnri_alloc_verdict(before, status, path, &why);
    if (status) cnri_fail(err, status, *why.where ? why.where : path, "%s", why.text);
    cnri_free(text);
    cnri_free(path);
    return status;
}
