/* Reads and writes the record of measured times in a cache folder. */
#include "run/run.h"
#include "store/store.h"

enum { MAX_RECORD = 16 << 20 };
static const char record_name[] = "tuning.jsonl";

cnr_status cnri_tuning_load(const char *folder, cnri_tuning *out, uint8_t print[16],
                            cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    char *path = cnri_path_join(folder, record_name), *text = NULL;
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

static cnr_status write_record(const char *folder, const cnri_tuning *t, cnr_error *err) {
    char *path = cnri_path_join(folder, record_name);
    cnri_text text = {0};
    cnri_writer w;
    cnri_text_add(&text, "%s", "");
    cnri_tuning_print(t, &text);
    cnr_status status = path && !text.failed ? cnri_write_begin(&w, path, CNRI_WRITE_PRIVATE, err)
                                             : cnri_out_of_memory(err, folder);
    if (!status && (status = cnri_write(&w, text.at, text.n, err)) != CNR_OK)
        cnri_write_abandon(&w);
    else if (!status) status = cnri_write_commit(&w, err);
    cnri_text_free(&text);
    cnri_free(path);
    return status;
}

cnr_status cnri_tuning_save(const char *folder, cnri_tuning *t, cnr_error *err) {
    cnri_tuning all = {0};
    uint8_t print[16];
    int lock;
    cnr_status status = cnri_kept_create(folder, err);
    if (!status) status = cnri_folder_lock(folder, &lock, err);
    if (status) return status;
    status = cnri_tuning_load(folder, &all, print, err);
    for (int32_t i = 0; i < t->rows.n && !status; i++)
        status =
            cnri_tuning_set(&all, t->rows.at[i].key, t->rows.at[i].kernel, t->rows.at[i].cost, err);
    if (!status) status = write_record(folder, &all, err);
    cnri_folder_unlock(lock);
    cnri_vec_free(&t->rows);
    *t = all;
    return status;
}
