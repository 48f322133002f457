/* store: the native model file .cnr: graph and weights, mapped, digested. */
#ifndef CNRI_STORE_H
#define CNRI_STORE_H

#include "core/graph/graph.h"

cnr_status cnri_store_write(const cnr_graph *graph, const char *path, cnr_error *err);
/* Maps and reads; header and directory digests are checked, tensors' are not. */
cnr_status cnri_store_read(const char *path, cnr_graph **out, cnr_error *err);
/* Reads whole and checks every tensor; *bad counts the damaged ones, each logged. */
cnr_status cnri_store_check(const char *path, int32_t *bad, cnr_error *err);
/* Fills the weights of `graph` by name from a .cnr. Extra and missing ones are errors, listed. */
cnr_status cnri_store_fill(cnr_graph *graph, const char *path, cnr_error *err);

#endif
