/* Feeds in scripts: pictures that are read, prepared and run on threads of their own:
 *     for frame in c.feed("/dev/video0"):each() do ... frame.picture, frame.outputs ... end */
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include "samples/samples.h"
#include <string.h>

#define FEED_TYPE "cnnrun.feed"

/* A feed of a script, and when it began (ns) */
typedef struct feed {
    cnri_feed *at;
    cnri_lua_model *net; /* the net that it runs, kept as user value; NULL: none */
    uint64_t begun_ns;
} feed;

/* The open feed at index i of the stack; raises an error otherwise. */
static feed *feed_at(lua_State *L, int i) {
    feed *f = luaL_checkudata(L, i, FEED_TYPE);
    if (!f->at) luaL_error(L, "the feed was closed");
    return f;
}

/* Implements feed:close(): stops its threads and frees it; the net can be changed again. */
static int close_feed(lua_State *L) {
    feed *f = luaL_checkudata(L, 1, FEED_TYPE);
    cnri_feed *at = f->at;
    if (f->net) f->net->feed = NULL;
    f->net = NULL;
    f->at = NULL;
    const uint64_t left = cnri_script_leave();
    cnri_feed_close(at);
    cnri_script_return(L, left);
    return 0;
}

int cnri_lua_feed(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_samples samples;
    cnr_selection choice;
    cnri_lua_experiment(L);
    const char *spec = luaL_checkstring(L, 1);
    lua_settop(L, 2);
    cnri_lua_take_choice(L, 2, &choice);
    cnri_lua_check_spec(L, spec);
    feed *f = lua_newuserdatauv(L, sizeof *f, 1);
    *f = (feed){.begun_ns = cnri_real_ns()};
    luaL_setmetatable(L, FEED_TYPE);
    const uint64_t left = cnri_script_leave();
    cnr_status status = cnri_augment_open(spec, NULL, &samples, &err);
    if (!status) {
        status = cnri_samples_choose(&samples, &choice, &err);
        if (status) cnri_samples_close(&samples);
        else status = cnri_feed_open(&samples, &f->at, &err);
    }
    cnri_script_return(L, left);
    return status ? cnri_script_raise(L, &err) : 1;
}

/* ---- through a net ---- */

/* Attaches the feed to the input that net:prepare would make; implements cnri_lua_instead. */
static cnr_status set_through(void *arg, const cnr_model *model, cnri_preprocess *p,
                              const cnr_tensor *type, const cnr_tensor *picture, cnr_error *err) {
    const feed *f = arg;
    return cnri_feed_attach(f->at, (cnr_model *)model, p, type, picture, err);
}

/* Lua function: prepares a picture for the feed's net. Upvalue: the feed, which so stays alive. */
static int prepare_for(lua_State *L) {
    return cnri_lua_prepare_with(L, set_through, lua_touserdata(L, lua_upvalueindex(1)));
}

/* Implements feed:through(net, picture, options): from now on the feed's threads prepare further
 * pictures and run the net on them. */
static int through(lua_State *L) {
    feed *f = feed_at(L, 1);
    cnri_lua_model *net = cnri_lua_net_at(L, 2);
    lua_settop(L, 4);
    if (net->feed && net->feed != &f->at) return luaL_error(L, "another feed runs this net");
    if (f->net) f->net->feed = NULL;
    cnri_feed_detach(f->at);
    f->net = net;
    net->feed = &f->at;
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, 1, 1); /* it lives as long as the feed */
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, prepare_for, 1);
    lua_insert(L, 2);
    lua_call(L, lua_isnil(L, 5) ? 2 : 3, 0);
    return 0;
}

/* Implements feed:apart(): detaches the net, which can then be changed. */
static int feed_detach(lua_State *L) {
    feed *f = feed_at(L, 1);
    if (f->net) f->net->feed = NULL;
    f->net = NULL;
    cnri_feed_detach(f->at);
    return 0;
}

/* ---- frames ---- */

static void free_fed(void *at) { cnri_fed_free(*(cnri_fed **)at); }

/* Pushes a copy of a tensor, which the collector owns. */
static void push_tensor(lua_State *L, const cnr_tensor *t) {
    cnr_tensor *own = cnri_lua_push_tensor(L, t->dtype, t->rank, t->dim);
    if (own->bytes) memcpy(own->data, t->data, (size_t)own->bytes);
}

/* Seconds from the feed's begin to a time in ns. */
static double seconds_since(const feed *f, uint64_t ns) {
    return (double)(int64_t)(ns - f->begun_ns) / 1e9;
}

/* Pushes a frame as a table: picture, name, number, times, outputs. */
static void push_frame(lua_State *L, const feed *f, const cnri_fed *fed) {
    lua_createtable(L, 0, 12);
    push_tensor(L, &fed->sample.picture);
    lua_setfield(L, -2, "picture");
    cnri_lua_set_text(L, "name", fed->sample.name);
    cnri_lua_set_whole(L, "number", fed->number + 1);
    cnri_lua_set_whole(L, "lost", fed->lost);
    if (fed->sample.time_ns || fed->sample.is_timed)
        cnri_lua_set_number(L, "seconds", (double)fed->sample.time_ns / 1e9);
    cnri_lua_set_number(L, "came", seconds_since(f, fed->came_ns));
    cnri_lua_set_number(L, "now", seconds_since(f, cnri_real_ns()));
    if (!fed->ran) return;
    cnri_lua_set_number(L, "took", (double)(fed->ended_ns - fed->begun_ns) / 1e9);
    cnri_lua_set_number(L, "done", seconds_since(f, fed->ended_ns));
    lua_createtable(L, fed->n_outputs, 0);
    for (int32_t i = 0; i < fed->n_outputs; i++) {
        push_tensor(L, &fed->outputs[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "outputs");
    cnri_lua_push_framing(L, &fed->framing);
    lua_setfield(L, -2, "place");
}

/* Implements feed:next(seconds): pushes the next frame; false: none came in that time; nothing: the
 * feed has ended. 0 seconds: waits without limit. Raises errors of reading. */
static int next_frame(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const feed *f = feed_at(L, 1);
    const double seconds = luaL_optnumber(L, 2, 0);
    luaL_argcheck(L, seconds >= 0 && seconds <= 86400, 2, "want 0 to 86400 seconds");
    const uint64_t until = seconds > 0 ? cnri_real_ns() + (uint64_t)(seconds * 1e9) : 0;
    cnri_script *s = cnri_script_of(L);
    cnri_fed **held = cnri_lua_push_result(L, sizeof *held, free_fed);
    if (cnri_feed_is_live(f->at)) fflush(stdout); /* what was told of the last one */
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnri_feed_next(f->at, until, s->cancelled, held, &err);
    cnri_script_return(L, left);
    if (status == CNR_E_NOT_FOUND && strcmp(err.where, "feed") == 0) return 0;
    if (s->cancelled && s->cancelled()) s->stopped = true; /* no pcall goes on behind this */
    cnri_script_check(L);
    if (status) return cnri_script_raise(L, &err);
    cnri_script_refill(L);
    if (!*held) {
        lua_pushboolean(L, 0);
        return 1;
    }
    push_frame(L, f, *held);
    cnri_fed_free(*held); /* now, not when the collector comes by */
    *held = NULL;
    return 1;
}

/* Lua function, the iterator of feed:each: the next frame. Upvalue: the feed. */
static int step(lua_State *L) {
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    return next_frame(L);
}

/* Implements feed:each(): pushes an iterator over frames. */
static int feed_each(lua_State *L) {
    feed_at(L, 1);
    lua_settop(L, 1);
    lua_pushcclosure(L, step, 1);
    return 1;
}

/* Implements feed:is_live(): true for a camera or stream. */
static int is_live(lua_State *L) {
    lua_pushboolean(L, cnri_feed_is_live(feed_at(L, 1)->at));
    return 1;
}

const cnri_lua_row cnri_feed_methods[] =
    {{"next(seconds?: number)", next_frame, "table|false|nil",
      "{ picture, number, seconds, came, now, lost, outputs, place, took, done }; nil: it has "
      "ended; "
      "false: nothing came for so long",
      NULL},
     {"each()", feed_each, "fun(): table", "for frame in feed:each() do", NULL},
     {"through(net: cnnrun.Net, picture: cnnrun.Tensor, options?: table)", through, "",
      "frames of that picture's size come prepared and run, with outputs and place",
      cnri_prepare_keys},
     {"apart()", feed_detach, "", "and no more, so that the net may be changed", NULL},
     {"live()", is_live, "boolean",
      "a camera or a stream: of what comes too fast the latest is taken", NULL},
     {"close()", close_feed, "", "ends the threads", NULL},
     {0}};

/* Makes the type of feeds known to Lua. */
void cnri_lua_open_feeds(lua_State *L) {
    static const luaL_Reg ends[] = {{"__gc", close_feed}, {"__close", close_feed}, {0}};
    cnri_lua_new_type(L, FEED_TYPE, "a feed", ends, "cnnrun.Feed", NULL);
}
