/* files: writes nets and the record of measured times. */
#ifndef CNRI_FILES_H
#define CNRI_FILES_H

#include "run/run.h"
#include "store/store.h"

/* ---- write.c: .cnr files ---- */
/* Writes a net as a .cnr file, through a temporary file, so that an error leaves an existing file
 * as it was. */
cnr_status cnri_store_write(const cnr_graph *graph, const char *path, cnr_error *err);
/* Writes to a file that the caller has begun and will commit or abandon. */
cnr_status cnri_store_write_to(const cnr_graph *graph, cnri_writer *out, cnr_error *err);

/* ---- record.c: the record of times in a cache folder ---- */
/* Merges the rows of t into the record, which other processes may have changed meanwhile; t then
 * has all rows. */
cnr_status cnri_tuning_save(const char *folder, cnri_tuning *t, cnr_error *err);

#endif
