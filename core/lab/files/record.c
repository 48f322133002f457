/* Writes the record of measured times. */
#include "files/files.h"
#include "people/people.h"
#include "keep/keep.h"

/* Writes the record of measured times to the folder, for this user only. */
static cnr_status write_record(const char *folder, const cnri_tuning *t, cnr_error *err) {
    char *path = cnri_path_join(folder, CNRI_TUNING_FILE);
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
