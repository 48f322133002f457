/* Inside the room: the .npy file of NumPy, without Lua. Versions 1 to 3, C order. */
#ifndef CNRI_LUA_NPY_H
#define CNRI_LUA_NPY_H

#include "base/base.h"

/* Writes a tensor as a .npy file; f16-like types that NumPy lacks become f32. */
cnr_status cnri_npy_write(const char *path, const cnr_tensor *t, cnr_error *err);
/* Reads the header of the file in `text`: fills type, rank and dimensions of *out, and the
 * offset of its data. Fails unless the data is complete. */
cnr_status cnri_npy_read(const char *path, const char *text, size_t bytes, cnr_tensor *out,
                         size_t *offset, cnr_error *err);

#endif
