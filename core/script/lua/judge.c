/* Work on a whole net: net:evaluate{...}, net:profile{...}, net:quantize{...}. */
#include "lua/model.h"
#include "work/work.h"
#include <math.h>
#include <string.h>

/* ---- net:evaluate{...} ---- */

/* Options of net:evaluate, as those of the C API. */
typedef struct evaluating {
    cnr_evaluate_options o;
} evaluating;

static const cnri_lua_key evaluate_keys[] =
    {CNRI_OTHER("data: pictures with labels: a spec such as \"mnist:DIR\", or samples",
                "string|cnnrun.Samples"),
     CNRI_TEXT("split: of a spec's data (eval)", evaluating, o.split),
     CNRI_WHOLE("limit: the first pictures only (all)", evaluating, o.limit, 1, 1e15),
     CNRI_WHOLE("batch: pictures at a time (8)", evaluating, o.batch, 1, 65536),
     CNRI_WHOLE("offset: the net's class is the label plus this (0)", evaluating, o.offset, -1e15,
                1e15),
     CNRI_OTHER("labels: of each class of the net, where their order differs", "integer[]"),
     CNRI_REAL("validation: only the part that training with the same number judges epochs by",
               evaluating, o.validation, 0, 1e15),
     CNRI_METRIC_KEY,
     CNRI_WHOLE("validation_seed: which pictures those are (1)", evaluating, o.validation_seed, 0,
                1e15),
     CNRI_FLAG("energy: true: tell what a picture takes, as c.energy does", evaluating, o.energy),
     CNRI_FLAG("rows: true: tell index, label, answer, share and label_share of each picture",
               evaluating, o.rows),
     {0}};

static void free_evaluation(void *e) { cnr_evaluation_free(e); }

/* Reads the labels into memory that the collector frees, which stays on the stack. */
static void read_labels(lua_State *L, cnr_evaluate_options *o) {
    if (cnri_lua_get(L, 2, "labels") == LUA_TNIL) return;
    luaL_checktype(L, -1, LUA_TTABLE);
    const int list = lua_gettop(L);
    o->n_labels = (int64_t)lua_rawlen(L, list);
    int64_t *labels = lua_newuserdatauv(L, ((size_t)o->n_labels + 1) * sizeof *labels, 0);
    cnri_script_charge(L, o->n_labels);
    for (int64_t i = 0; i < o->n_labels; i++) {
        lua_rawgeti(L, list, i + 1);
        if (!lua_isinteger(L, -1))
            luaL_error(L, "labels[%I]: want a whole number", (LUAI_UACINT)i + 1);
        labels[i] = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    o->labels = labels;
}

/* Sets the field "confusion": rows by label, columns by answer. */
static void push_confusion(lua_State *L, const cnr_evaluation *e) {
    lua_createtable(L, (int)e->labels, 0);
    for (int64_t r = 0; r < e->labels; r++) {
        lua_createtable(L, (int)e->labels, 0);
        for (int64_t c = 0; c < e->labels; c++) {
            lua_pushinteger(L, e->confusion[r * e->labels + c]);
            lua_rawseti(L, -2, c + 1);
        }
        lua_rawseti(L, -2, r + 1);
    }
    lua_setfield(L, -2, "confusion");
}

/* Pushes the rows; index counts from 1, as samples:at does. */
static void push_rows(lua_State *L, const cnr_evaluation *e) {
    lua_createtable(L, (int)e->n, 0);
    for (int64_t i = 0; i < e->n; i++) {
        lua_createtable(L, 0, 5);
        cnri_lua_set_whole(L, "index", e->rows[i].index + 1);
        cnri_lua_set_whole(L, "label", e->rows[i].label);
        cnri_lua_set_whole(L, "answer", e->rows[i].answer);
        cnri_lua_set_number(L, "share", e->rows[i].share);
        cnri_lua_set_number(L, "label_share", e->rows[i].label_share);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "rows");
}

/* Implements net:evaluate(options): runs the net on samples and pushes shares of right answers,
 * loss and metrics. Raises errors. */
static int evaluate(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    evaluating o = {.o = {.size = sizeof o.o, .validation_seed = 1}};
    cnri_lua_data data;
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    cnri_lua_take(L, 2, evaluate_keys, &o);
    cnri_lua_take_data(L, 2, o.o.split, &data);
    read_labels(L, &o.o);
    o.o.data = data.spec;
    cnri_lua_metrics metrics;
    cnri_lua_take_metrics(L, 2, &o.o.metric_files, &metrics);
    o.o.metrics = metrics.at;
    o.o.n_metrics = metrics.n;
    cnr_evaluation *e = cnri_lua_push_result(L, sizeof *e, free_evaluation);
    e->size = sizeof *e;
    cnri_lua_work w = {0};
    const cnr_observer *observer = cnri_lua_begin(L, &w);
    const cnr_status status = data.samples
                                  ? cnri_evaluate(net->model, data.samples, &o.o, observer, e, &err)
                                  : cnr_evaluate(net->model, &o.o, observer, e, &err);
    cnri_lua_end(L, &w, status, &err);
    lua_createtable(L, 0, 11);
    cnri_lua_set_whole(L, "n", e->n);
    cnri_lua_set_number(L, "top1", e->top1);
    cnri_lua_set_number(L, "top5", e->top5);
    cnri_lua_set_interval(L, "top1", e->top1, e->n);
    cnri_lua_set_interval(L, "top5", e->top5, e->n);
    cnri_lua_set_number(L, "loss", e->loss);
    cnri_lua_set_number(L, "seconds", e->seconds);
    cnri_lua_set_simulated(L);
    cnri_lua_set_metrics(L, "metrics", e->metrics, e->n_metrics);
    if (e->confusion) push_confusion(L, e);
    if (e->rows) push_rows(L, e);
    cnri_lua_set_energy(L, e->energy);
    return 1;
}

/* ---- net:profile{...} ---- */

static const cnri_lua_key profile_keys[] =
    {CNRI_WHOLE("runs: that are timed (20)", cnr_profile_options, runs, 1, 100000),
     CNRI_WHOLE("batch: pictures at a time (1)", cnr_profile_options, batch, 1, 65536),
     CNRI_WHOLE("warm: runs before those (2)", cnr_profile_options, warm, 0, 100000),
     CNRI_FLAG("energy: true: tell what a run takes, as c.energy does, and joules of each row",
               cnr_profile_options, energy),
     CNRI_FLAG("alone: true: those by repeating each step until meters can tell, not by its time",
               cnr_profile_options, repeat),
     {0}};

static void free_timing(void *t) { cnr_timing_free(t); }

/* Pushes the timing of a step as a table. */
static void push_step(lua_State *L, const cnr_step_timing *s) {
    lua_createtable(L, 0, 11);
    cnri_lua_set_text(L, "node", s->node);
    cnri_lua_set_text(L, "operator", s->op);
    cnri_lua_set_text(L, "kernel", s->kernel);
    cnri_lua_set_text(L, "device", s->device);
    cnri_lua_set_number(L, "ms", s->ms);
    cnri_lua_set_number(L, "ms_min", s->ms_min);
    cnri_lua_set_number(L, "flops", s->flops);
    cnri_lua_set_number(L, "kernel_flops", s->kernel_flops);
    cnri_lua_set_number(L, "memory_bytes", s->memory_bytes);
    cnri_lua_set_text(L, "arithmetic", s->arithmetic);
    cnri_lua_set_text(L, "counters", s->counters);
    cnri_lua_set_number(L, "joules", s->joules);
    cnri_lua_set_simulated(L);
}

/* Implements net:profile(options): times the net and pushes a table with ms, bytes and a row for
 * each step. */
static int profile(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_profile_options o = {.size = sizeof o, .steps = 1, .warm = 2};
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    lua_settop(L, 2);
    cnri_lua_take(L, 2, profile_keys, &o);
    if (o.warm == 0) o.warm = -1;
    cnr_timing *t = cnri_lua_push_result(L, sizeof *t, free_timing);
    t->size = sizeof *t;
    cnri_lua_work w = {0};
    const cnr_status status = cnr_profile(net->model, &o, cnri_lua_begin(L, &w), t, &err);
    cnri_lua_end(L, &w, status, &err);
    lua_createtable(L, t->n_steps, 8);
    for (int32_t i = 0; i < t->n_steps; i++) {
        push_step(L, &t->steps[i]);
        lua_rawseti(L, -2, i + 1);
    }
    cnri_lua_set_number(L, "ms_min", t->ms_min);
    cnri_lua_set_number(L, "ms_median", t->ms_median);
    cnri_lua_set_number(L, "ms_max", t->ms_max);
    cnri_lua_set_number(L, "enqueue_ms", t->enqueue_ms);
    cnri_lua_set_number(L, "flops", t->flops);
    cnri_lua_set_whole(L, "batch", t->batch);
    cnri_lua_set_whole(L, "threads", t->threads);
    cnri_lua_set_whole(L, "arena_bytes", (int64_t)t->arena_bytes);
    cnri_lua_set_whole(L, "weight_bytes", (int64_t)t->weight_bytes);
    cnri_lua_set_text(L, "joules_by", t->joules_by);
    cnri_lua_set_simulated(L);
    cnri_lua_set_energy(L, t->energy);
    return 1;
}

/* ---- net:quantize{...} ---- */

static const cnri_lua_key quantize_keys[] =
    {CNRI_OTHER("data: pictures to calibrate on, and to compare with: a spec, or samples",
                "string|cnnrun.Samples"),
     CNRI_TEXT("layers: a pattern of names: only those (all)", cnr_quantize_options, layers),
     CNRI_WHOLE("limit: pictures to calibrate on (100)", cnr_quantize_options, limit, 1, 1e15),
     CNRI_WHOLE("check: pictures that both nets are compared on; 0: none (as limit)",
                cnr_quantize_options, check, 0, 1e15),
     CNRI_REAL("min_snr: decibels; a layer with less signal to noise stays float (10; with "
               "max_drop none)",
               cnr_quantize_options, least, -1000, 1000),
     CNRI_REAL("max_drop: the noisiest layers stay float until no more points of top-1 (without "
               "labels: of agreement) are lost on the pictures to calibrate on",
               cnr_quantize_options, max_drop, 0, 100),
     CNRI_FLAG("equalize: make the channels between two layers alike first, in the weights of both",
               cnr_quantize_options, equalize),
     CNRI_FLAG("correct_bias: judge the correction of biases on pictures that are held back",
               cnr_quantize_options, correct_bias),
     CNRI_FLAG("all: layers that are slower here than in floats, too", cnr_quantize_options, all),
     CNRI_WHOLE("epochs: train the layers that are quantised for so many as if they were, and "
                "quantise the best net (0)",
                cnr_quantize_options, epochs, 0, 1e6),
     CNRI_REAL("rate: of that training (0.001)", cnr_quantize_options, rate, 0, 1000),
     CNRI_WHOLE("batch: of that training (32)", cnr_quantize_options, batch, 1, 65536),
     CNRI_WHOLE("seed: of its order and dropout (1)", cnr_quantize_options, seed, 0, 1e15),
     CNRI_TEXT("keep_zeros: a pattern of weights whose zeros stay in training",
               cnr_quantize_options, keep_zeros),
     CNRI_TEXT("method: how ranges are made: minmax (by itself), percentile, mse, kl, auto (the "
               "least noise)",
               cnr_quantize_options, method),
     {0}};

static void free_quantizing(void *q) { cnr_quantizing_free(q); }

/* Sets a field to { before, after }. */
static void push_pair(lua_State *L, const char *key, const double pair[2]) {
    lua_createtable(L, 0, 2);
    cnri_lua_set_number(L, "before", pair[0]);
    cnri_lua_set_number(L, "after", pair[1]);
    lua_setfield(L, -2, key);
}

/* Pushes the result of quantising as a table. */
static void push_quantizing(lua_State *L, const cnr_quantizing *q) {
    lua_createtable(L, 0, 6);
    lua_createtable(L, q->n_layers, 0);
    for (int32_t i = 0; i < q->n_layers; i++) {
        const cnr_quantized_layer *l = &q->layers[i];
        lua_createtable(L, 0, 8);
        cnri_lua_set_text(L, "name", l->name);
        cnri_lua_set_text(L, "float_for", l->float_for);
        cnri_lua_set_number(L, "ms_float", q->layer_ms[i * 2]);
        cnri_lua_set_number(L, "ms_quantized", q->layer_ms[i * 2 + 1]);
        cnri_lua_set_number(L, "low", l->low);
        cnri_lua_set_number(L, "high", l->high);
        cnri_lua_set_number(L, "decibels", l->decibels);
        lua_pushboolean(L, l->quantized);
        lua_setfield(L, -2, "quantized");
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "layers");
    cnri_lua_set_whole(L, "quantized", q->n_quantized);
    cnri_lua_set_whole(L, "float", q->n_float);
    cnri_lua_set_text(L, "method", q->method);
    cnri_lua_set_whole(L, "checked", q->checked);
    cnri_lua_set_number(L, "agree", q->agree);
    cnri_lua_set_number(L, "decibels", q->decibels);
    cnri_lua_set_number(L, "points_lost", q->lost);
    cnri_lua_set_whole(L, "held_back", q->held_back);
    cnri_lua_set_number(L, "bias_gain", q->bias_gain);
    if (!isnan(q->trained[0])) {
        cnri_lua_set_whole(L, "best_epoch", q->best_epoch);
        push_pair(L, "validation", q->trained);
    }
    lua_createtable(L, q->n_warnings, 0);
    for (int32_t i = 0; i < q->n_warnings; i++) {
        lua_pushstring(L, q->warnings[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "warnings");
    push_pair(L, "top1", q->top1);
    for (int i = 0; i < 2; i++) {
        const double ends[2] = {q->top1_range[0][i], q->top1_range[1][i]};
        push_pair(L, i ? "top1_high" : "top1_low", ends);
        cnri_lua_set_number(L, i ? "agree_high" : "agree_low", q->agree_range[i]);
    }
    push_pair(L, "ms", q->ms);
    cnri_lua_set_simulated(L);
}

/* Implements net:quantize(options): pushes a quantised copy of the net and a table about its
 * layers. */
static int quantize(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_quantize_options o = {.size = sizeof o, .check = -1, .least = NAN, .max_drop = NAN};
    cnri_lua_data data;
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    cnri_lua_take(L, 2, quantize_keys, &o);
    cnri_lua_take_data(L, 2, NULL, &data);
    o.data = data.spec;
    o.check = o.check < 0 ? 0 : o.check == 0 ? -1 : o.check;
    cnri_lua_model *to = cnri_lua_push_net(L);
    cnr_quantizing *q = cnri_lua_push_result(L, sizeof *q, free_quantizing);
    q->size = sizeof *q;
    cnri_lua_work w = {0};
    const cnr_status status = cnri_quantize_model(net->model, data.samples, &o,
                                                  cnri_lua_begin(L, &w), &to->model, q, &err);
    cnri_lua_end(L, &w, status, &err);
    push_quantizing(L, q);
    lua_remove(L, -2);
    return 2;
}

const cnri_lua_row cnri_judge_methods[] = {
    {"evaluate(options: table)", evaluate,
     "{ n: integer, top1: number, top5: number, top1_low: number, top1_high: number, top5_low: "
     "number, top5_high: number, loss: number, seconds: number, "
     "confusion: integer[][]?, metrics: table<string, number>?, energy: table? }",
     "how often it is right; top1_low to top1_high: its 95% interval; confusion[1][2]: pictures "
     "with "
     "label 0 taken for label 1",
     evaluate_keys},
    {"profile(options?: table)", profile,
     "{ [integer]: { node: string, operator: string, kernel: string, device: string, ms: number, "
     "ms_min: number, flops: number, kernel_flops: number, memory_bytes: number, arithmetic: "
     "string?, "
     "joules: number? }, ms_min: number, ms_median: number, "
     "ms_max: number, enqueue_ms: number?, flops: number, arena_bytes: integer, "
     "weight_bytes: integer, energy: table? }",
     "a row a step, and ms_min, ms_median, ms_max, enqueue_ms (until a device that works by itself "
     "has all of it), flops, arena_bytes, weight_bytes, energy of a run",
     profile_keys},
    {"quantize(options: table)", quantize,
     "cnnrun.Net, { layers: table[], quantized: integer, float: integer, method: string, checked: "
     "integer, agree: number?, "
     "decibels: number?, points_lost: number?, held_back: integer, bias_gain: number?, best_epoch: "
     "integer?, validation: table?, top1: table, top1_low: table, top1_high: table, agree_low: "
     "number?, agree_high: number?, ms: table, warnings: string[] }",
     "a net of whole numbers, and what it costs; this one stays as it is. _low and _high are the "
     "ends of 95% intervals. warnings: it is slower "
     "here, less "
     "accurate, or answers otherwise; an error: outputs have nothing in common",
     quantize_keys},
    {0}};
