/* Where the record of times is kept that planning goes by. */
#include "core/run/run.h"
#include "core/store/store.h"
#include <unistd.h>

enum { MOST_RECORD = 64 << 20 };
static const char record_name[] = "tuning.jsonl";

cnr_status cnri_tuning_load(const char *folder, cnri_tuning *out, uint8_t print[16],
                            cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    char *path = cnri_path_join(folder, record_name), *text = NULL;
    size_t bytes = 0;
    memset(print, 0, 16);
    if (!path) return cnri_fail(err, CNR_E_MEMORY, folder, "out of memory");
    cnr_status status = CNR_OK;
    if (access(path, F_OK) == 0) status = cnri_read_file(path, MOST_RECORD, &text, &bytes, err);
    if (!status && text) status = cnri_tuning_parse(out, text, err);
    if (!status && text) cnri_fingerprint(text, bytes, print);
    status = cnri_alloc_verdict(before, status, path, err);
    cnri_free(text);
    cnri_free(path);
    return status;
}

cnr_status cnri_tuning_save(const char *folder, const cnri_tuning *t, cnr_error *err) {
    char *path = cnri_path_join(folder, record_name);
    cnri_text text = {0};
    cnri_writer w;
    cnri_text_add(&text, "%s", "");
    cnri_tuning_print(t, &text);
    cnr_status status = path && !text.failed
                            ? cnri_cache_folder(folder, err)
                            : cnri_fail(err, CNR_E_MEMORY, folder, "out of memory");
    if (!status) status = cnri_write_begin(&w, path, CNRI_WRITE_PRIVATE, err);
    if (!status && (status = cnri_write(&w, text.at, text.n, err)) != CNR_OK)
        cnri_write_abandon(&w);
    else if (!status) status = cnri_write_commit(&w, err);
    cnri_text_free(&text);
    cnri_free(path);
    return status;
}
