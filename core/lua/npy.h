/* Inside the room: elements of tensors as numbers, and the .npy file of NumPy. Without Lua. */
#ifndef CNRI_LUA_NPY_H
#define CNRI_LUA_NPY_H

#include "core/base/base.h"

/* ---- tensor.c ---- */
/* Element i of a tensor as a number, and back. */
double cnri_tensor_get(const cnr_tensor *t, int64_t i);
void cnri_tensor_set(cnr_tensor *t, int64_t i, double value);

/* ---- npy.c: versions 1 to 3, C order ---- */
cnr_status cnri_npy_write(const char *path, const cnr_tensor *t, cnr_error *err);
/* The header of the file in `text`: fills dtype, rank, dim of *out and the offset of its data.
 * Checks that the data is whole. */
cnr_status cnri_npy_read(const char *path, const char *text, size_t bytes, cnr_tensor *out,
                         size_t *offset, cnr_error *err);

#endif
