/* files: nets and records of times, written. */
#ifndef CNRI_FILES_H
#define CNRI_FILES_H

#include "run/run.h"
#include "store/store.h"

/* ---- write.c: .cnr files ---- */
cnr_status cnri_store_write(const cnr_graph *graph, const char *path, cnr_error *err);
/* The same to a file that is begun and stays so. */
cnr_status cnri_store_write_to(const cnr_graph *graph, cnri_writer *out, cnr_error *err);

/* ---- record.c: the record of times in a cache folder ---- */
/* The rows of t over what is on record by now, others' rows too; t becomes all of them. */
cnr_status cnri_tuning_save(const char *folder, cnri_tuning *t, cnr_error *err);

#endif
