/* Inside the room: what only experiments use: nets loaded and run, samples, the clock. */
#ifndef CNRI_LUA_MODEL_H
#define CNRI_LUA_MODEL_H

#include "core/lua/state.h"

#define CNRI_MODEL_TYPE "cnnrun model"
#define CNRI_SAMPLES_TYPE "cnnrun samples"

/* Raises unless the script is an experiment in its main, with a runtime. */
cnri_script *cnri_lua_experiment(lua_State *L);
void cnri_lua_open_models(lua_State *L);
extern const cnri_lua_row cnri_model_rows[], cnri_model_methods[]; /* of the module; of nets */

/* The model at `i`; raises when there is none. */
cnr_model *cnri_lua_model_at(lua_State *L, int i);

/* ---- prepare.c: net:prepare ---- */
int cnri_lua_prepare(lua_State *L);
extern const cnri_lua_key cnri_prepare_keys[];

/* ---- object.c: c.object(name, options) ---- */
int cnri_lua_object(lua_State *L);
int cnri_lua_writer(lua_State *L);
/* gauges.c */
int cnri_lua_gauges(lua_State *L);
extern const cnri_lua_key cnri_gauge_keys[];
void cnri_lua_open_objects(lua_State *L);

/* ---- samples.c ---- */
int cnri_lua_samples(lua_State *L); /* c.samples(spec, split) */
int cnri_lua_picture(lua_State *L); /* c.picture(path) */
void cnri_lua_open_samples(lua_State *L);
extern const cnri_lua_row cnri_samples_methods[], cnri_writer_methods[];

#endif
