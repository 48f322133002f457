/* Inside the room: tensors of scripts. The data lies in the userdata itself, so Lua's collector
 * and the script's memory limit know its size. */
#ifndef CNRI_LUA_TENSOR_H
#define CNRI_LUA_TENSOR_H

#include "lua/npy.h"
#include "lua/state.h"

#define CNRI_TENSOR_TYPE "cnnrun tensor"

/* Pushes a dense tensor of zeros and returns it. Raises an error if it is too large. */
cnr_tensor *cnri_lua_push_tensor(lua_State *L, int32_t dtype, int32_t rank, const int64_t *dim);
/* Pushes and returns a copy of a dense tensor, which the collector frees. */
cnr_tensor *cnri_lua_push_copy(lua_State *L, const cnr_tensor *from);
/* The tensor at `i`; raises an error if it is none. */
cnr_tensor *cnri_lua_tensor_at(lua_State *L, int i);
/* Reads the dimensions in the list at `i` ({1, 3, 224, 224}) into dim; returns the rank. Raises
 * errors. */
int32_t cnri_lua_dims(lua_State *L, int i, int64_t *dim);
/* Makes the type of tensors known to Lua. */
void cnri_lua_open_tensors(lua_State *L);
/* Implements t:save(path): writes a tensor as a picture or .npy file by its name; raises errors. */
int cnri_lua_tensor_save(lua_State *L);
/* Implements t:plus(u, factor): pushes a new tensor, t + factor * u. */
int cnri_lua_tensor_plus(lua_State *L);
/* Implements t:times(u): pushes a copy times a number, or times u element by element. */
int cnri_lua_tensor_times(lua_State *L);
/* Implements t:pruned(keep, options): pushes a copy with the smallest numbers set to 0. */
int cnri_lua_tensor_pruned(lua_State *L);
/* Implements t:density(minimum): pushes the share of elements whose magnitude exceeds the minimum
 * (0). */
int cnri_lua_tensor_density(lua_State *L);
/* Implements t:norms(): pushes the list of Euclidean norms of the parts along axis 1. */
int cnri_lua_tensor_norms(lua_State *L);
extern const cnri_lua_key cnri_pruning_keys[];
/* Implements t:above(least, from, to, step): pushes the indices of elements above a limit. */
int cnri_lua_tensor_above(lua_State *L);
/* Implements t:transposed(order): pushes a copy with its axes in another order. */
int cnri_lua_tensor_transposed(lua_State *L);
/* Implements t:region(start, size): pushes a copy of a part, zeros beyond the edge. */
int cnri_lua_tensor_region(lua_State *L);
/* Implements t:taken(axis, list): pushes a copy of chosen indices of an axis. */
int cnri_lua_tensor_taken(lua_State *L);
/* Functions of the module; methods of tensors. */
extern const cnri_lua_row cnri_tensor_rows[], cnri_tensor_methods[];

#endif
