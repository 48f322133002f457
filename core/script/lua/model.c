/* Nets that scripts run and inspect: net:run{...}, net:picture(path), net:inputs() and others;
 * also the module's functions for experiments. */
#include "lua/model.h"
#include "lua/candidates.h"
#include "lua/files.h"
#include "lua/tensor.h"
#include <string.h>
#include <time.h>

enum { MAX_PORTS = 64, MAX_RUNS = 100000 };

/* ---- running ---- */

/* Pushes copies of n outputs; returns n. */
static int push_outputs(lua_State *L, const cnr_tensor **outputs, int32_t n) {
    for (int32_t i = 0; i < n; i++) cnri_lua_push_copy(L, outputs[i]);
    return n;
}

/* Input i of the model: entry i of the list at 2, or the one with its name; or the tensor at 2 + i.
 * Raises an error if there is none. */
static const cnr_tensor *input_at(lua_State *L, const cnr_model *model, int32_t i) {
    const char *name = cnr_input_name(model, i);
    const cnr_tensor *t = luaL_testudata(L, 2 + i, CNRI_TENSOR_TYPE);
    if (t) return t;
    if (lua_istable(L, 2)) {
        lua_rawgeti(L, 2, i + 1);
        if (lua_isnil(L, -1)) lua_getfield(L, 2, name);
        t = luaL_testudata(L, -1, CNRI_TENSOR_TYPE);
        lua_pop(L, lua_gettop(L) - 2);
    }
    if (!t) luaL_error(L, "want a tensor for input '%s'", name);
    return t;
}

/* Reads all inputs of a model from the stack; returns how many. */
static int32_t take_inputs(lua_State *L, const cnr_model *model, const cnr_tensor **inputs) {
    const int32_t n = cnr_input_count(model);
    if (n > MAX_PORTS || cnr_output_count(model) > MAX_PORTS)
        luaL_error(L, "the net has more than %d inputs or outputs", MAX_PORTS);
    for (int32_t i = 0; i < n; i++) inputs[i] = input_at(L, model, i);
    return n;
}

/* Implements net:run(inputs): runs a model on tensors and pushes copies of all outputs. Raises
 * errors. */
static int run_model(lua_State *L) {
    const cnr_tensor *inputs[MAX_PORTS], *outputs[MAX_PORTS];
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *model = cnri_lua_net_at(L, 1)->model;
    const int32_t n = take_inputs(L, model, inputs), n_out = cnr_output_count(model);
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnr_run_tensors(model, inputs, n, outputs, n_out, &err);
    cnri_script_return(L, left);
    if (status) return cnri_script_raise(L, &err);
    luaL_checkstack(L, n_out + 4, "too many outputs");
    return push_outputs(L, outputs, n_out);
}

/* Implements net:run_picture(path): runs a model on a picture file and pushes a copy of output
 * 0. */
static int run_picture(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *out;
    cnr_model *model = cnri_lua_net_at(L, 1)->model;
    const char *path = luaL_checkstring(L, 2);
    cnri_lua_check_file(L, path, false);
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnr_run_picture(model, path, &out, &err);
    cnri_script_return(L, left);
    return status ? cnri_script_raise(L, &err) : push_outputs(L, &out, 1);
}

/* Implements net:time(runs): pushes milliseconds of runs on made-up inputs. */
static int time_model(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *model = cnri_lua_net_at(L, 1)->model;
    const lua_Integer runs = luaL_optinteger(L, 2, 10);
    luaL_argcheck(L, runs >= 1 && runs <= MAX_RUNS, 2, "want 1 to 100000 runs");
    const cnr_profile_options o = {.size = sizeof o, .runs = runs};
    cnr_timing t = {.size = sizeof t};
    cnri_lua_work w = {0};
    const cnr_status status = cnr_profile(model, &o, cnri_lua_begin(L, &w), &t, &err);
    cnr_timing_free(&t); /* of the numbers none is a pointer */
    cnri_lua_end(L, &w, status, &err);
    lua_newtable(L);
    cnri_lua_set_number(L, "ms_min", t.ms_min);
    cnri_lua_set_number(L, "ms_median", t.ms_median);
    cnri_lua_set_number(L, "ms_max", t.ms_max);
    cnri_lua_set_simulated(L);
    return 1;
}

/* ---- looking at it ---- */

/* Pushes an input or output as a table: name, dtype, sizes. */
static void push_type(lua_State *L, const cnr_model *model, const char *name,
                      const cnr_tensor *type) {
    lua_newtable(L);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, cnr_dtype_name(type->dtype));
    lua_setfield(L, -2, "dtype");
    lua_pushliteral(L, "sizes");
    lua_createtable(L, type->rank, 0);
    for (int32_t i = 0; i < type->rank; i++) {
        const int64_t d = type->dim[i];
        const char *symbol =
            d < CNR_DIM_UNKNOWN ? cnri_graph_symbol_name(model->graph, CNR_SYMBOL_OF_DIM(d)) : "?";
        if (d >= 0) lua_pushinteger(L, d);
        else lua_pushstring(L, symbol);
        lua_rawseti(L, -2, i + 1);
    }
    lua_rawset(L, -3);
}

/* Implements net:inputs(): pushes a list with name, type and sizes of each input. */
static int list_inputs(lua_State *L) {
    const cnr_model *model = cnri_lua_model_at(L, 1);
    lua_newtable(L);
    for (int32_t i = 0; i < cnr_input_count(model); i++) {
        push_type(L, model, cnr_input_name(model, i), cnr_input_type(model, i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Implements net:outputs(): pushes a list with name, type and sizes of each output. */
static int list_outputs(lua_State *L) {
    const cnr_model *model = cnri_lua_model_at(L, 1);
    lua_newtable(L);
    for (int32_t i = 0; i < cnr_output_count(model); i++) {
        push_type(L, model, cnr_output_name(model, i), cnr_output_type(model, i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Pushes the candidates. Stack: the plan, and the node's name or nil. */
static int push_candidates(lua_State *L) {
    const cnri_table *t = ((const cnr_plan *)lua_touserdata(L, 1))->table;
    const char *node = lua_tostring(L, 2);
    const int all = cnri_lua_push_rows(L, t, NULL, false);
    lua_newtable(L);
    for (int32_t i = 0, n = 0; i < t->rows.n; i++) {
        if (node && !cnri_matches_pattern(node, t->nodes.at[t->rows.at[i].node].name)) continue;
        lua_rawgeti(L, all, i + 1);
        lua_rawseti(L, -2, ++n);
    }
    if (node && lua_rawlen(L, -1) == 0)
        return luaL_error(L, "the net as it is planned has no node '%s'", node);
    lua_createtable(L, 0, 3);
    const char *const texts[][2] = {{"policy", t->policy},
                                    {"failure", t->failure},
                                    {"notes", t->notes}};
    for (size_t i = 0; i < CNRI_COUNT(texts); i++) {
        lua_pushstring(L, texts[i][1]);
        lua_setfield(L, -2, texts[i][0]);
    }
    return 2;
}

/* Implements net:candidates(node): pushes the rows of a plan made for this call, of all nodes
 * without a name. */
static int list_candidates(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *model = cnri_lua_model_at(L, 1);
    cnri_shapes shapes;
    cnr_plan *plan = NULL;
    luaL_optstring(L, 2, NULL);
    lua_settop(L, 2);
    const uint64_t left = cnri_script_leave();
    cnr_status status = cnri_input_shapes(model, 1, &shapes, &err);
    if (!status) status = cnri_plan_for_inspection(model, shapes.list, shapes.n, true, &plan, &err);
    cnri_shapes_free(&shapes);
    cnri_script_return(L, left);
    if (status) return cnri_script_raise(L, &err);
    lua_pushcfunction(L, push_candidates);
    lua_replace(L, 1);
    lua_pushlightuserdata(L, plan);
    lua_insert(L, 2);
    const int raised = lua_pcall(L, 2, 2, 0);
    cnri_plan_free(plan);
    return raised ? lua_error(L) : 2;
}

/* Sets a field of the table on top to a list of texts. */
static void push_words(lua_State *L, const char *key, const char *const *words, int32_t n) {
    lua_createtable(L, n, 0);
    for (int32_t i = 0; i < n; i++) {
        lua_pushstring(L, words[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, key);
}

/* Sets a true-or-false field of the table on top. */
static void set_flag(lua_State *L, const char *key, bool on) {
    lua_pushboolean(L, on);
    lua_setfield(L, -2, key);
}

/* net:adapted(): what an adapting net tries or has decided; nil: it does not adapt. */
static int adapted(lua_State *L) {
    cnr_adapt_report r = {.size = sizeof r};
    if (cnr_adapt_state(cnri_lua_model_at(L, 1), &r, NULL)) return 0;
    lua_createtable(L, 0, 12);
    set_flag(L, "settled", r.settled);
    set_flag(L, "followed", r.followed);
    cnri_lua_set_text(L, "phase", r.phase);
    cnri_lua_set_text(L, "trying", r.trying);
    cnri_lua_set_text(L, "decided", r.decided);
    cnri_lua_set_text(L, "reason", r.reason);
    cnri_lua_set_text(L, "by", r.by);
    cnri_lua_set_whole(L, "runs", r.runs);
    cnri_lua_set_whole(L, "trials", r.trials);
    cnri_lua_set_whole(L, "stopped", r.stopped);
    cnri_lua_set_whole(L, "runs_until_settled", r.runs_until_settled);
    cnri_lua_set_number(L, "ms", r.last_ms);
    cnri_lua_set_number(L, "prepare_ms", r.prepare_ms);
    cnri_lua_set_number(L, "default_ms", r.default_ms);
    cnri_lua_set_number(L, "chosen_ms", r.chosen_ms);
    cnri_lua_set_number(L, "default_cost", r.default_cost);
    cnri_lua_set_number(L, "chosen_cost", r.chosen_cost);
    push_words(L, "kernels", r.kernels, r.n_kernels);
    push_words(L, "devices", r.devices, r.n_devices);
    return 1;
}

/* net:label(index): name of the class; nil: it has none. Indices start at 0, as in topk. */
static int label(lua_State *L) {
    lua_pushstring(L, cnr_label(cnri_lua_model_at(L, 1), luaL_checkinteger(L, 2)));
    return 1;
}

/* net:meta(key): an entry of the metadata in the net's file; nil: there is none. */
static int meta(lua_State *L) {
    lua_pushstring(L, cnri_host.graph_meta(cnri_lua_model_at(L, 1)->graph, luaL_checkstring(L, 2)));
    return 1;
}

/* Implements c.now(): pushes seconds of the clock in force; raises an error unless the script is
 * trusted. */
static int now(lua_State *L) {
    if (!cnri_lua_experiment(L)->trust)
        return luaL_error(L, "the clock is for trusted scripts (--trust); net:time() is for all");
    lua_pushnumber(L, (double)cnri_now_ns() / 1e9);
    return 1;
}

/* Implements c.exit_code(text): pushes the exit code for a caught error's text: that of the
 * engine's error, else that of CNR_E_ARG. */
static int exit_code(lua_State *L) {
    cnr_error own;
    const bool is_ours = cnri_script_raised(cnri_script_of(L), luaL_checkstring(L, 1), &own);
    lua_pushinteger(L, is_ours && own.code < 0 ? -own.code : -CNR_E_ARG);
    return 1;
}

/* Implements c.wait(seconds): waits in steps of 50 ms, so that a signal ends it. */
static int wait_for(lua_State *L) {
    enum { STEP_NS = 50000000 };
    cnri_script *s = cnri_script_of(L);
    const double seconds = luaL_checknumber(L, 1);
    luaL_argcheck(L, seconds >= 0 && seconds <= 86400, 1, "want 0 to 86400 seconds");
    const uint64_t left = cnri_script_leave(), end = cnri_real_ns() + (uint64_t)(seconds * 1e9);
    fflush(stdout); /* what was told so far */
    for (uint64_t now = cnri_real_ns(); now < end && !(s->cancelled && s->cancelled());
         now = cnri_real_ns()) {
        const uint64_t rest = end - now < STEP_NS ? end - now : STEP_NS;
        const struct timespec step = {.tv_nsec = (long)rest};
        nanosleep(&step, NULL);
    }
    cnri_script_return(L, left);
    if (s->cancelled && s->cancelled()) s->stopped = true; /* no pcall goes on behind this */
    cnri_script_check(L);
    cnri_script_refill(L);
    return 0;
}

/* Implements c.date(): pushes the local date and time as text and whole seconds since 1970, too
 * coarse to time kernels with. */
static int date(lua_State *L) {
    char text[40] = "";
    struct tm when;
    const time_t seconds = time(NULL);
    if (localtime_r(&seconds, &when)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &when);
    lua_pushstring(L, text);
    lua_pushinteger(L, (lua_Integer)seconds);
    return 2;
}

/* Implements c.simulated(): pushes true if the clock in force is a simulated machine's. */
static int simulated(lua_State *L) {
    lua_pushboolean(L, !cnri_clock_is_real());
    return 1;
}

const cnri_lua_row cnri_model_rows[] = {
    {"load(net: string|cnnrun.Description, options?: table)", cnri_lua_load_net, "cnnrun.Net",
     "a net that runs: of a file, of a name that require would find, or of c.net", cnri_load_keys},
    {"sweep(options: table)", cnri_lua_sweep,
     "{ points: integer, done: integer, failed: integer, left: integer, seconds: number }",
     "runs a study at many points, each in a process of its own, as the command does",
     cnri_sweep_keys},
    {"devices(options?: { measure: boolean })", cnri_lua_devices,
     "{ name: string, family: string, hardware: string, driver: string, plugin: string, "
     "concurrency: integer, memory_bytes: integer?, fma_gflops: number?, read_gbs: number? }[]",
     "what there is to run on, best first, and what plugins tell of it; measure: each times itself",
     NULL},
    {"plugins()", cnri_lua_plugins,
     "{ name: string, version: string, file: string, summary: string?, refused: string?, "
     "lacks: string?, provides: table<string, string[]> }[]",
     "what each plugin brings, why it was refused, which of its libraries can't be opened", NULL},
    {"samples(spec: string, split?: \"train\"|\"eval\", options?: table)", cnri_lua_samples,
     "cnnrun.Samples", "pictures with labels: a folder, \"mnist:DIR\"; a video's, a camera's",
     cnri_samples_keys},
    {"picture(path: string)", cnri_lua_picture, "cnnrun.Tensor",
     "a tensor u8 [height,width,channels]", NULL},
    {"object(name: string, options?: table)", cnri_lua_object, "cnnrun.Object",
     "something with a state, that a plugin brings", NULL},
    {"writer(path: string, options?: table)", cnri_lua_writer, "cnnrun.Writer",
     "pictures one behind the other: \"out-%04d.png\", \"out.mp4\"", cnri_writer_keys},
    {"governing(policy: string)", cnri_lua_governing, "cnnrun.Governing",
     "sets this machine's frequencies beside what runs, until it is stopped", NULL},
    {"feed(spec: string, options?: table)", cnri_lua_feed, "cnnrun.Feed",
     "a video's, a camera's or a folder's pictures, read ahead on threads", cnri_samples_keys},
    {"worker()", cnri_lua_worker, "cnnrun.Worker",
     "a thread that calls objects and writes pictures, a batch after the other", NULL},
    {"gauges(options?: table)", cnri_lua_gauges, "table[]", "what meters and knobs read now",
     cnri_gauge_keys},
    {"energy(work: function, options?: table)", cnri_lua_energy,
     "{ source: string, seconds: number, joules: number?, joules_net: number?, watts: number?, "
     "idle_watts: number?, edp: number?, rounds: integer, samples: integer, domains: table[] }",
     "what a call of the function takes, of the whole machine; it is called until meters can tell",
     cnri_energy_keys},
    {"govern(options: table)", cnri_lua_govern, "table",
     "what a policy of frequencies makes of a scene, "
     "a recording or this machine",
     cnri_govern_keys},
    {"dtw(a: number[], b: number[], options?: table)", cnri_lua_dtw, "number",
     "how unlike two series are, by dynamic time warping", cnri_dtw_keys},
    {"simulated()", simulated, "boolean",
     "whether times and joules are a simulated board's, by its clock", NULL},
    {"exit_code(why: string)", exit_code, "integer",
     "the program's exit code for an error that was caught; 1 for one of a script", NULL},
    {"wait(seconds: number)", wait_for, "",
     "does nothing for so long; the end of the program ends it", NULL},
    {"date()", date, "string, integer",
     "the local time, 2026-11-27 17:03:05, and the seconds since 1970", NULL},
    {"now()", now, "number", "seconds, for trusted scripts", NULL},
    {0}};

#define PORTS "{ name: string, dtype: string, sizes: (integer|string)[] }[]"

const cnri_lua_row cnri_model_methods[] =
    {{"run(inputs: cnnrun.Tensor[]|cnnrun.Tensor, ...: cnnrun.Tensor)", run_model,
      "cnnrun.Tensor ...", "its outputs", NULL},
     {"picture(path: string)", run_picture, "cnnrun.Tensor", "its first output for a picture",
      NULL},
     {"prepare(picture: cnnrun.Tensor, ...: cnnrun.Tensor|table)", cnri_lua_prepare,
      "cnnrun.Tensor, table ...", "a batch for its first input, and where each picture lies in it",
      cnri_prepare_keys},
     {"time(runs?: integer)", time_model, "{ ms_min: number, ms_median: number, ms_max: number }",
      "how long runs on made-up inputs take (10 runs)", NULL},
     {"inputs()", list_inputs, PORTS, "what it takes", NULL},
     {"outputs()", list_outputs, PORTS, "what it gives", NULL},
     {"candidates(node?: string)", list_candidates, "table[], table",
      "what each node, or those named so (conv*), could be run by, and what a policy said of it",
      NULL},
     {"adapted()", adapted, "table?",
      "what a net that adapts tries, or has decided: phase, trying, decided, kernels, times in ms; "
      "nil when it does not",
      NULL},
     {"label(index: integer)", label, "string?", "the name of a class, from 0", NULL},
     {"meta(key: string)", meta, "string?", "what its file says beside its layers", NULL},
     {0}};

void cnri_lua_open_models(lua_State *L) {
    static const luaL_Reg events[] = {{"__gc", cnri_lua_release_net},
                                      {"__close", cnri_lua_release_net},
                                      {0}};
    cnri_lua_new_type(L, CNRI_MODEL_TYPE, "a net", events, "cnnrun.Net", NULL);
    cnri_lua_open_work(L);
    cnri_lua_open_samples(L);
    cnri_lua_open_feeds(L);
    cnri_lua_open_workers(L);
    cnri_lua_open_governing(L);
    cnri_lua_open_objects(L);
}
