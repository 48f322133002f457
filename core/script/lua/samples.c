/* Samples in scripts: for i, picture, label, name in c.samples("mnist:DIR"):each() do ... end */
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include "samples/samples.h"
#include <string.h>

/* Samples of a script; held: how many trainings use them, so that they can't be closed. */
typedef struct cnri_lua_source {
    cnri_samples samples;
    bool open;
    int held; /* number of tasks that read them */
} cnri_lua_source;

/* The open samples at index i of the stack; raises an error otherwise. */
static cnri_lua_source *source_at(lua_State *L, int i) {
    cnri_lua_source *s = luaL_checkudata(L, i, CNRI_SAMPLES_TYPE);
    if (!s->open) luaL_error(L, "the samples were closed");
    return s;
}

/* Raises an error unless the script may read a spec: a word of the command line, a file, or
 * files as in "mnist:DIR:test". Addresses, and files that those files name, are checked when
 * they are opened (cnri_limits_source). */
void cnri_lua_check_spec(lua_State *L, const char *spec) {
    const cnri_script *s = cnri_script_of(L);
    cnr_error ignored = CNR_ERROR_INIT;
    const char *plain = lua_pushlstring(L, spec, cnri_augment_cut(spec));
    if (s->trust || cnri_lua_is_named(s, spec) || !cnri_lua_may_open(s, plain, 0, &ignored)) {
        lua_pop(L, 1);
        return;
    }
    const char *colon = strchr(plain, ':'), *path = colon ? colon + 1 : plain;
    const size_t n = strcspn(path, ":");
    cnri_lua_check_file(L, lua_pushlstring(L, path, n), false);
    lua_pop(L, 2);
}

/* Pushes and returns the opened samples of a source; raises an error if they can't be opened. */
static cnri_lua_source *open_source(lua_State *L, const char *spec, const char *split) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_source *s = lua_newuserdatauv(L, sizeof *s, 0);
    s->open = false;
    s->held = 0;
    luaL_setmetatable(L, CNRI_SAMPLES_TYPE);
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnri_augment_open(spec, split, &s->samples, &err);
    cnri_script_return(L, left);
    if (status) cnri_script_raise(L, &err);
    s->open = true;
    return s;
}

void cnri_lua_check_split(lua_State *L, const char *split) {
    static const char *const splits[] = {"train", "eval"}; /* what a source may be told */
    if (split && strcmp(split, splits[0]) != 0 && strcmp(split, splits[1]) != 0) {
        const char *near = cnri_nearest_word(split, splits, CNRI_COUNT(splits));
        luaL_error(L, "no split '%s'%s%s%s: want 'train' or 'eval'", split,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
}

/* Options of c.samples that choose samples: every Nth, from and to in seconds. */
typedef struct choice {
    int64_t every;
    double from, to;
} choice;

const cnri_lua_key cnri_samples_keys[] =
    {CNRI_WHOLE("every: every Nth sample (1)", choice, every, 1, INT32_MAX),
     CNRI_REAL("from: seconds, of what has times", choice, from, 0, 1e9),
     CNRI_REAL("to: seconds; what is taken before that", choice, to, 0, 1e9),
     {0}};

static uint64_t to_ns(double seconds) { return (uint64_t)(seconds * 1e9 + 0.5); }

void cnri_lua_take_choice(lua_State *L, int i, cnr_selection *out) {
    choice which = {.every = 1};
    cnri_lua_take(L, i, cnri_samples_keys, &which);
    *out = (cnr_selection){.size = sizeof *out,
                           .every = (int32_t)which.every,
                           .from_ns = to_ns(which.from),
                           .to_ns = to_ns(which.to)};
}

int cnri_lua_samples(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_selection wanted;
    cnri_lua_experiment(L);
    const char *spec = luaL_checkstring(L, 1), *split = luaL_optstring(L, 2, NULL);
    lua_settop(L, 3);
    cnri_lua_take_choice(L, 3, &wanted);
    cnri_lua_check_split(L, split);
    cnri_lua_check_spec(L, spec);
    cnri_lua_source *s = open_source(L, spec, split);
    if (cnri_samples_choose(&s->samples, &wanted, &err)) return cnri_script_raise(L, &err);
    return 1;
}

cnri_samples *cnri_lua_samples_at(lua_State *L, int i) { return &source_at(L, i)->samples; }

void cnri_lua_hold_samples(const cnri_lua_data *data, int by) {
    if (data->source) data->source->held += by;
}

/* Implements samples:close() and the collector; raises an error while a training uses them. */
static int close_source(lua_State *L) {
    cnri_lua_source *s = lua_touserdata(L, 1);
    if (s->held) return luaL_error(L, "the samples are in use: a net is being trained on them");
    if (s->open) cnri_samples_close(&s->samples);
    s->open = false;
    return 0;
}

/* Reads sample `index` and pushes its picture. False: the stream ended before it. */
static bool push_picture(lua_State *L, cnri_lua_source *s, int64_t index, cnr_sample *sample) {
    cnr_error err = CNR_ERROR_INIT;
    void **held = cnri_lua_push_holder(L);
    *sample = (cnr_sample){.size = sizeof *sample};
    if (s->samples.info.is_live) fflush(stdout); /* what was told of the last one */
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnri_samples_read(&s->samples, index, sample, &err);
    cnri_script_return(L, left);
    *held = sample->picture.data;
    if (cnri_samples_ended(&s->samples, status)) return false;
    if (status) cnri_script_raise(L, &err);
    /* who takes what comes, for as long as it comes, is no loop that never ends */
    if (s->samples.info.count < 0) cnri_script_refill(L);
    const cnr_tensor *from = &sample->picture;
    cnr_tensor *t = cnri_lua_push_tensor(L, from->dtype, from->rank, from->dim);
    memcpy(t->data, from->data, (size_t)t->bytes);
    cnri_free(*held);
    *held = NULL;
    lua_remove(L, -2);
    return true;
}

/* samples:at(i) returns picture, label (nil: none), name and seconds (nil: no time known);
 * nothing behind the end of a stream. */
static int sample_at(lua_State *L) {
    cnr_sample sample;
    cnri_lua_source *s = source_at(L, 1);
    const lua_Integer i = luaL_checkinteger(L, 2);
    const int64_t n = s->samples.info.count;
    if (i < 1 || (n >= 0 && i > n)) return luaL_error(L, "there is no sample %I", (LUAI_UACINT)i);
    if (!push_picture(L, s, i - 1, &sample)) return 0;
    if (sample.label >= 0) lua_pushinteger(L, sample.label);
    else lua_pushnil(L);
    lua_pushstring(L, sample.name);
    if (sample.time_ns || sample.is_timed) lua_pushnumber(L, (double)sample.time_ns / 1e9);
    else lua_pushnil(L);
    return 4;
}

/* Implements #samples: pushes their number, negative if it is not known. */
static int count(lua_State *L) {
    lua_pushinteger(L, source_at(L, 1)->samples.info.count);
    return 1;
}

/* Implements samples:classes(): pushes the number of classes. */
static int classes(lua_State *L) {
    lua_pushinteger(L, source_at(L, 1)->samples.info.classes);
    return 1;
}

/* Implements samples:is_live(): pushes true for a camera or stream. */
static int is_live(lua_State *L) {
    lua_pushboolean(L, source_at(L, 1)->samples.info.is_live);
    return 1;
}

/* Lua function: iterates over samples; nothing at the end. Upvalues: the samples, and the most to
 * read. The control variable counts from 1. */
static int next_sample(lua_State *L) {
    cnri_lua_source *s = source_at(L, lua_upvalueindex(1));
    const lua_Integer i = luaL_optinteger(L, 2, 0) + 1;
    const lua_Integer maximum = lua_tointeger(L, lua_upvalueindex(2));
    if (i > maximum || (s->samples.info.count >= 0 && i > s->samples.info.count)) return 0;
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushinteger(L, i);
    if (sample_at(L) == 0) return 0;
    lua_pushinteger(L, i);
    lua_insert(L, -5);
    return 5;
}

/* Implements samples:each(most): pushes an iterator over at most that many samples. */
static int each(lua_State *L) {
    source_at(L, 1);
    lua_Integer maximum = luaL_optinteger(L, 2, LUA_MAXINTEGER);
    lua_settop(L, 1);
    lua_pushinteger(L, maximum);
    lua_pushcclosure(L, next_sample, 2);
    return 1;
}

/* ---- single pictures ---- */

int cnri_lua_picture(lua_State *L) {
    cnr_sample sample;
    cnri_lua_experiment(L);
    const char *path = luaL_checkstring(L, 1);
    cnri_lua_check_file(L, path, false);
    if (!push_picture(L, open_source(L, path, NULL), 0, &sample))
        return luaL_error(L, "%s: no picture is in it", path);
    return 1;
}

/* ---- pictures one behind the other, to a file or files ---- */

#define WRITER_TYPE "cnnrun.writer"

typedef cnri_lua_writer_box writer;

cnri_lua_writer_box *cnri_lua_writer_at(lua_State *L, int i) {
    writer *w = luaL_checkudata(L, i, WRITER_TYPE);
    if (!w->at) luaL_error(L, "the writer was closed");
    return w;
}

/* Where the sound of a written video comes from: a source, and its part in seconds. */
typedef struct origin {
    const char *from;
    double start, stop;
} origin;

const cnri_lua_key cnri_writer_keys[] =
    {CNRI_TEXT("from: the video that the pictures are made of; its sound and times are kept",
               origin, from),
     CNRI_REAL("start: seconds there at which the pictures begin (0)", origin, start, 0, 1e9),
     CNRI_REAL("stop: seconds there at which they end", origin, stop, 0, 1e9),
     {0}};

/* Implements c.writer(spec, options): opens a sequence of pictures for writing and pushes it.
 * Raises errors. */
int cnri_lua_writer(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    origin o = {0};
    cnri_lua_experiment(L);
    const char *spec = luaL_checkstring(L, 1);
    lua_settop(L, 2);
    cnri_lua_take(L, 2, cnri_writer_keys, &o);
    cnri_lua_check_file(L, spec, true);
    if (o.from) cnri_lua_check_spec(L, o.from);
    writer *w = lua_newuserdatauv(L, sizeof *w, 0);
    w->at = NULL;
    pthread_mutex_init(&w->lock, NULL);
    luaL_setmetatable(L, WRITER_TYPE);
    const uint64_t left = cnri_script_leave();
    cnr_status status = cnr_writer_open(cnri_script_of(L)->rt, spec, &w->at, &err);
    if (!status && o.from)
        status = cnr_writer_from(w->at, o.from, to_ns(o.start), to_ns(o.stop), &err);
    cnri_script_return(L, left);
    return status ? cnri_script_raise(L, &err) : 1;
}

/* Implements writer:write(picture, { name, time }): adds a picture; time in seconds. Raises
 * errors. */
static int write_picture(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    writer *w = cnri_lua_writer_at(L, 1);
    const cnr_tensor *t = cnri_lua_tensor_at(L, 2);
    const char *name = NULL;
    double seconds = -1;
    lua_settop(L, 3);
    if (!lua_isnil(L, 3)) {
        luaL_checktype(L, 3, LUA_TTABLE);
        lua_getfield(L, 3, "name");
        name = luaL_optstring(L, -1, NULL);
        lua_getfield(L, 3, "time");
        seconds = luaL_optnumber(L, -1, -1);
        luaL_argcheck(L, seconds == -1 || (seconds >= 0 && seconds < 1e9), 3,
                      "want time = seconds");
    }
    const uint64_t left = cnri_script_leave();
    pthread_mutex_lock(&w->lock);
    const cnr_status status =
        cnr_writer_put(w->at, t, name, seconds < 0 ? CNR_NO_TIME : to_ns(seconds), &err);
    pthread_mutex_unlock(&w->lock);
    cnri_script_return(L, left);
    return status ? cnri_script_raise(L, &err) : 0;
}

/* Implements writer:close(): completes the files; raises errors. */
static int close_writer(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    writer *w = cnri_lua_writer_at(L, 1);
    const uint64_t left = cnri_script_leave();
    pthread_mutex_lock(&w->lock);
    const cnr_status status = cnr_writer_close(w->at, &err);
    w->at = NULL;
    pthread_mutex_unlock(&w->lock);
    cnri_script_return(L, left);
    return status ? cnri_script_raise(L, &err) : 0;
}

/* Collector: closes a writer and drops errors. */
static int drop_writer(lua_State *L) {
    writer *w = lua_touserdata(L, 1);
    pthread_mutex_lock(&w->lock);
    cnr_writer_close(w->at, NULL);
    w->at = NULL;
    pthread_mutex_unlock(&w->lock);
    return 0;
}

const cnri_lua_row cnri_samples_methods[] =
    {{"at(i: integer)", sample_at, "cnnrun.Tensor, integer?, string, number?",
      "picture, label, name and seconds of sample i, from 1", NULL},
     {"each(most?: integer)", each, "fun(): integer, cnnrun.Tensor, integer?, string, number?",
      "for i, picture, label, name, seconds in samples:each() do", NULL},
     {"live()", is_live, "boolean", "a camera or a stream: what is not taken in time is lost",
      NULL},
     {"classes()", classes, "integer", "how many classes are told apart, 0 without labels", NULL},
     {0}};

static const cnri_lua_key writing_keys[] = {CNRI_OTHER("name: of the picture", "string"),
                                            CNRI_OTHER("time: of the picture, in seconds",
                                                       "number"),
                                            {0}};

const cnri_lua_row cnri_writer_methods[] = {{"write(picture: cnnrun.Tensor, about?: table)",
                                             write_picture, "", "one picture more", writing_keys},
                                            {"close()", close_writer, "", "what was written stands",
                                             NULL},
                                            {0}};

void cnri_lua_open_samples(lua_State *L) {
    static const luaL_Reg events[] = {{"__gc", close_source},
                                      {"__close", close_source},
                                      {"__len", count},
                                      {0}};
    cnri_lua_new_type(L, CNRI_SAMPLES_TYPE, "samples", events, "cnnrun.Samples", NULL);
    static const luaL_Reg ends[] = {{"__gc", drop_writer}, {"__close", drop_writer}, {0}};
    cnri_lua_new_type(L, WRITER_TYPE, "a writer", ends, "cnnrun.Writer", NULL);
}

/* ---- what work is about: data = "mnist:DIR", or what c.samples gave ---- */

void cnri_lua_take_data(lua_State *L, int options, const char *split, cnri_lua_data *out) {
    *out = (cnri_lua_data){.split = split};
    luaL_checktype(L, options, LUA_TTABLE);
    const int type = cnri_lua_get(L, options, "data"); /* stays, so that nobody collects it */
    if (type == LUA_TSTRING) {
        out->spec = lua_tostring(L, -1);
        cnri_lua_check_spec(L, out->spec);
        cnri_lua_check_split(L, split);
        return;
    }
    out->source = luaL_testudata(L, -1, CNRI_SAMPLES_TYPE);
    if (!out->source)
        luaL_error(L, "data: want a spec such as \"mnist:DIR\", or samples of c.samples, got %s",
                   type == LUA_TNIL ? "nothing"
                                    : lua_pushfstring(L, "a %s value", luaL_typename(L, -1)));
    out->samples = cnri_lua_samples_at(L, -1);
    if (split)
        luaL_error(L, "split: the samples are open already; c.samples(spec, split) says which");
}
