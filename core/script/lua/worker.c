/* Workers: calls of objects' methods and pictures written, in order, on a thread of their own:
 *     local w = c.worker()
 *     w:call(canvas, "picture", frame, { 0, 0, 640, 480 })
 *     local drawn = w:call(canvas, "pixels")       -- what comes of it is for later calls of the batch
 *     w:write(writer, drawn, { time = seconds })
 *     w:send()                                     -- the batch goes; waits while two are under way
 *
 * A batch holds what it works on until it is done; the script's thread lets go of it then. */
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include <pthread.h>
#include <string.h>

#define WORKER_TYPE "cnnrun.worker"
#define PROMISE_TYPE "cnnrun promise"

enum { MAX_INPUTS = 8, MAX_RESULTS = 4, MAX_CALLS = 4096, UNDER_WAY = 2 };

/* A result of a call in the open batch, which later calls may take. */
typedef struct promise {
    int64_t batch;
    int32_t call, result;
} promise;

/* An input of a call: a tensor of its own, a borrowed one, or the result of an earlier call of the
 * batch. */
typedef struct input {
    cnr_tensor own;          /* data of a number, list or text, from cnri_alloc */
    const cnr_tensor *given; /* a tensor of the script, which the batch keeps */
    int32_t call, result;    /* the result of an earlier call in the batch; call -1: none */
} input;

/* A call of an object, or a picture for a writer. */
typedef struct call {
    /* NULL: a picture for `writer`; without an input: the end of the writer's file. */
    cnri_lua_instance *object;
    cnri_lua_writer_box *writer;
    uint64_t time_ns;
    int32_t method, n_in, n_out;
    input in[MAX_INPUTS];
    cnr_tensor out[MAX_RESULTS];
} call;

/* Calls that are sent to the worker together. */
typedef struct batch {
    CNRI_VEC(call) calls;
    int64_t number;
    int held; /* registry reference of the values that it works on */
    bool done;
    struct batch *next;
} batch;

/* A thread that works through batches in order. */
typedef struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    batch *first; /* sent batches, oldest first */
    batch *open;  /* the batch that is being filled */
    int64_t numbers;
    bool running, stopping;
    cnr_error why; /* error of the first that failed */
} worker;

/* Frees the inputs' and outputs' data of a call, not the struct. */
static void free_call(call *c) {
    for (int32_t i = 0; i < c->n_in; i++) cnri_free(c->in[i].own.data);
    for (int32_t i = 0; i < c->n_out; i++) cnri_free(c->out[i].data);
}

/* Frees a batch with its calls; NULL: nothing. */
static void free_batch(batch *b) {
    if (!b) return;
    for (int32_t i = 0; i < b->calls.n; i++) free_call(&b->calls.at[i]);
    cnri_vec_free(&b->calls);
    cnri_free(b);
}

/* ---- the thread ---- */

/* Writes a picture to the call's writer, under its lock. CNR_E_STATE: it was closed. */
static cnr_status put(const call *c, const cnr_tensor *picture, cnr_error *err) {
    pthread_mutex_lock(&c->writer->lock);
    const cnr_status status = c->writer->at
                                  ? cnr_writer_put(c->writer->at, picture, NULL, c->time_ns, err)
                                  : cnri_fail(err, CNR_E_STATE, "writer", "was closed");
    pthread_mutex_unlock(&c->writer->lock);
    return status;
}

/* Closes the call's writer, under its lock; closed already: nothing. */
static cnr_status finish(const call *c, cnr_error *err) {
    pthread_mutex_lock(&c->writer->lock);
    const cnr_status status = c->writer->at ? cnr_writer_close(c->writer->at, err) : CNR_OK;
    c->writer->at = NULL;
    pthread_mutex_unlock(&c->writer->lock);
    return status;
}

/* Makes one call, with results of earlier calls as inputs. */
static cnr_status do_call(batch *b, call *c, cnr_error *err) {
    const cnr_tensor *in[MAX_INPUTS];
    cnr_tensor *out[MAX_RESULTS];
    for (int32_t i = 0; i < c->n_in; i++)
        in[i] = c->in[i].call >= 0 ? &b->calls.at[c->in[i].call].out[c->in[i].result]
                : c->in[i].given   ? c->in[i].given
                                   : &c->in[i].own;
    for (int32_t i = 0; i < c->n_in; i++) /* one that an error left half made */
        if (!in[i]->data)
            return cnri_fail(err, CNR_E_STATE, "worker", "a call without its arguments");
    if (!c->object) return c->n_in ? put(c, in[0], err) : finish(c, err);
    for (int32_t i = 0; i < c->n_out; i++) out[i] = &c->out[i];
    const cnr_status status =
        cnri_lua_object_call(c->object, c->method, in, c->n_in, out, c->n_out, err);
    for (int32_t i = 0; i < c->n_out; i++) c->out[i].bytes = cnr_dense_bytes(&c->out[i]);
    return status;
}

/* Makes all calls of a batch; after a failure none. */
static void do_batch(worker *w, batch *b) {
    cnr_error why = CNR_ERROR_INIT;
    cnr_status status = w->why.code;
    for (int32_t i = 0; i < b->calls.n && !status; i++) status = do_call(b, &b->calls.at[i], &why);
    for (int32_t i = 0; i < b->calls.n; i++) free_call(&b->calls.at[i]);
    b->calls.n = 0;
    pthread_mutex_lock(&w->lock);
    b->done = true;
    if (why.code && !w->why.code) w->why = why;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Waits for the next batch; NULL: the worker is to end. */
static batch *next_batch(worker *w) {
    batch *b;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        for (b = w->first; b && b->done;) b = b->next;
        if (b || w->stopping) break; /* what was sent is done before it stops */
        pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return b;
}

/* Thread: does batch after batch until the worker is stopped. */
static void *work(void *arg) {
    worker *w = arg;
    batch *b;
    while ((b = next_batch(w)) != NULL) do_batch(w, b);
    return NULL;
}

/* ---- filling a batch ---- */

/* The running worker at index 1; raises an error otherwise. */
static worker *worker_at(lua_State *L) {
    worker *w = luaL_checkudata(L, 1, WORKER_TYPE);
    if (!w->running) luaL_error(L, "the worker was closed");
    return w;
}

/* Returns a new call of the open batch, made if need be; the batch's table in the registry keeps
 * its values. Raises an error if there are too many. */
static call *new_call(lua_State *L, worker *w) {
    if (!w->open) {
        w->open = cnri_alloc_zero(sizeof *w->open);
        if (!w->open) luaL_error(L, "out of memory");
        w->open->number = ++w->numbers;
        w->open->held = LUA_NOREF;
        lua_newtable(L);
        w->open->held = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    if (w->open->calls.n == MAX_CALLS) luaL_error(L, "a batch of more than %d calls", MAX_CALLS);
    call *c = cnri_push(&w->open->calls);
    if (!c) luaL_error(L, "out of memory");
    memset(c, 0, sizeof *c);
    return c;
}

/* Keeps a value of the stack alive until the batch is done. */
static void hold(lua_State *L, const worker *w, int i) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->open->held);
    lua_pushvalue(L, i);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

/* Gives an input its own tensor of n elements with a copy of `from`; NULL: not filled. Raises an
 * error without memory. */
static void copy_tensor(lua_State *L, input *in, int32_t dtype, int32_t rank, int64_t n,
                        const void *from) {
    in->own = (cnr_tensor){.size = sizeof in->own, .dtype = dtype, .rank = rank, .dim = {n}};
    in->own.bytes = cnr_dense_bytes(&in->own);
    in->own.data = cnri_alloc((size_t)in->own.bytes + 1);
    if (!in->own.data) luaL_error(L, "out of memory");
    if (from) memcpy(in->own.data, from, (size_t)in->own.bytes);
}

/* Takes argument i of a call: a promise, tensor, number, list or text. */
static void take_input(lua_State *L, const worker *w, call *c, int i) {
    input *in = &c->in[c->n_in++];
    const promise *p = luaL_testudata(L, i, PROMISE_TYPE);
    const cnr_tensor *t = luaL_testudata(L, i, CNRI_TENSOR_TYPE);
    in->call = -1;
    if (p) {
        if (p->batch != w->open->number) luaL_argerror(L, i, "the result of another batch");
        in->call = p->call;
        in->result = p->result;
    } else if (t) {
        in->given = t;
        hold(L, w, i);
    } else if (lua_type(L, i) == LUA_TNUMBER || lua_isboolean(L, i)) {
        const double v = lua_isboolean(L, i) ? lua_toboolean(L, i) : lua_tonumber(L, i);
        copy_tensor(L, in, CNR_f64, 0, 1, &v);
    } else if (lua_type(L, i) == LUA_TSTRING) {
        size_t n;
        const char *text = lua_tolstring(L, i, &n);
        copy_tensor(L, in, CNR_u8, 1, (int64_t)n, text);
    } else if (lua_istable(L, i)) {
        const int64_t n = (int64_t)lua_rawlen(L, i);
        copy_tensor(L, in, CNR_f64, 1, n, NULL);
        for (int64_t k = 0; k < n; k++) {
            if (lua_rawgeti(L, i, k + 1) != LUA_TNUMBER) luaL_argerror(L, i, "want numbers");
            ((double *)in->own.data)[k] = lua_tonumber(L, -1);
            lua_pop(L, 1);
        }
    } else {
        luaL_argerror(L, i,
                      "want a tensor, a number, a list of numbers, a text or an earlier result");
    }
}

/* Implements worker:call(object, method, ...): adds the call to the batch and pushes promises of
 * its results. */
static int add_call(lua_State *L) {
    worker *w = worker_at(L);
    cnri_lua_instance *o = cnri_lua_object_at(L, 2);
    const int32_t method = cnri_lua_object_method(L, o, luaL_checkstring(L, 3));
    const int n = lua_gettop(L), n_out = cnri_lua_object_results(o, method);
    if (n - 3 > MAX_INPUTS || n_out > MAX_RESULTS)
        return luaL_error(L, "too many arguments or results");
    call *c = new_call(L, w);
    c->object = o;
    c->method = method;
    c->n_out = n_out;
    for (int32_t i = 0; i < n_out; i++) c->out[i].size = sizeof c->out[i];
    hold(L, w, 2);
    for (int i = 4; i <= n; i++) take_input(L, w, c, i);
    for (int32_t i = 0; i < n_out; i++) {
        promise *p = lua_newuserdatauv(L, sizeof *p, 0);
        *p = (promise){w->open->number, w->open->calls.n - 1, i};
        luaL_setmetatable(L, PROMISE_TYPE);
    }
    return n_out;
}

/* Implements worker:write(writer, picture, { time = seconds }): adds the writing of a picture to
 * the batch. */
static int add_picture(lua_State *L) {
    worker *w = worker_at(L);
    cnri_lua_writer_box *writer = cnri_lua_writer_at(L, 2);
    double seconds = -1;
    lua_settop(L, 4);
    if (!lua_isnil(L, 4)) {
        luaL_checktype(L, 4, LUA_TTABLE);
        lua_getfield(L, 4, "time");
        seconds = luaL_optnumber(L, -1, -1);
        luaL_argcheck(L, seconds == -1 || (seconds >= 0 && seconds < 1e9), 4,
                      "want time = seconds");
    }
    call *c = new_call(L, w);
    c->writer = writer;
    c->time_ns = seconds < 0 ? CNR_NO_TIME : (uint64_t)(seconds * 1e9 + 0.5);
    hold(L, w, 2);
    take_input(L, w, c, 3);
    return 0;
}

/* Implements worker:finish(writer): adds the closing of the writer's file to the batch. */
static int add_end(lua_State *L) {
    worker *w = worker_at(L);
    cnri_lua_writer_box *writer = cnri_lua_writer_at(L, 2);
    call *c = new_call(L, w);
    c->writer = writer;
    hold(L, w, 2);
    return 0;
}

/* ---- sending ---- */

/* Releases finished batches, or with `all` every one. Returns the number of those left. */
static int32_t collect(lua_State *L, worker *w, bool all) {
    int32_t left = 0;
    pthread_mutex_lock(&w->lock);
    for (batch **at = &w->first; *at;) {
        batch *b = *at;
        if (b->done || all) {
            *at = b->next;
            luaL_unref(L, LUA_REGISTRYINDEX, b->held); /* raises nothing */
            free_batch(b);
        } else {
            left++;
            at = &b->next;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return left;
}

/* Waits until at most `maximum` batches are left. */
static void wait_for(lua_State *L, worker *w, int32_t maximum) {
    const uint64_t left = cnri_script_leave();
    while (collect(L, w, false) > maximum) {
        pthread_mutex_lock(&w->lock);
        int32_t n = 0;
        for (const batch *b = w->first; b; b = b->next) n += !b->done;
        if (n > maximum) pthread_cond_wait(&w->changed, &w->lock);
        pthread_mutex_unlock(&w->lock);
    }
    cnri_script_return(L, left);
}

/* Raises the worker's first error, if there is one. */
static void raise_failure(lua_State *L, worker *w) {
    pthread_mutex_lock(&w->lock);
    const cnr_error why = w->why;
    pthread_mutex_unlock(&w->lock);
    if (why.code) cnri_script_raise(L, &why);
}

/* Implements worker:send(or_never): pushes true if the batch was sent; with or_never it is dropped
 * if too many are under way, else it waits. Raises errors of earlier batches. */
static int send_batch(lua_State *L) {
    worker *w = worker_at(L);
    batch *b = w->open;
    raise_failure(L, w);
    if (b && lua_toboolean(L, 2) && collect(L, w, false) >= UNDER_WAY) {
        luaL_unref(L, LUA_REGISTRYINDEX, b->held);
        free_batch(b);
        w->open = NULL;
        return 0;
    }
    if (!b) return 0;
    wait_for(L, w, UNDER_WAY - 1);
    pthread_mutex_lock(&w->lock);
    batch **at = &w->first;
    while (*at) at = &(*at)->next;
    *at = b;
    w->open = NULL;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    lua_pushboolean(L, 1);
    return 1;
}

/* Stops the worker after what was sent, and frees all. */
static void stop(lua_State *L, worker *w) {
    if (!w->running) return;
    const uint64_t left = cnri_script_leave();
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->running = false;
    cnri_script_return(L, left);
    collect(L, w, true);
    if (w->open) luaL_unref(L, LUA_REGISTRYINDEX, w->open->held);
    free_batch(w->open);
    w->open = NULL;
}

/* Implements worker:close(): waits until all sent batches are done, and raises their error. */
static int close_worker(lua_State *L) {
    worker *w = luaL_checkudata(L, 1, WORKER_TYPE);
    if (!w->running) return 0;
    stop(L, w);
    raise_failure(L, w);
    return 0;
}

/* Collector: stops a worker. */
static int drop_worker(lua_State *L) {
    stop(L, lua_touserdata(L, 1));
    return 0;
}

/* Implements c.worker(): pushes a worker with a thread of its own; raises an error if none can be
 * started. */
int cnri_lua_worker(lua_State *L) {
    cnri_lua_experiment(L);
    worker *w = lua_newuserdatauv(L, sizeof *w, 0);
    memset(w, 0, sizeof *w);
    w->why = (cnr_error)CNR_ERROR_INIT;
    luaL_setmetatable(L, WORKER_TYPE);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (pthread_create(&w->thread, NULL, work, w)) return luaL_error(L, "no thread can be started");
    w->running = true;
    return 1;
}

const cnri_lua_row cnri_worker_methods[] =
    {{"call(object: cnnrun.Object, method: string, ...: any)", add_call, "any",
      "into the batch; results are for later calls of the batch", NULL},
     {"write(writer: cnnrun.Writer, picture: any, about?: table)", add_picture, "",
      "into the batch: one picture more, at about.time", NULL},
     {"finish(writer: cnnrun.Writer)", add_end, "",
      "into the batch: the writer is closed, so that what was written stands", NULL},
     {"send(or_never?: boolean)", send_batch, "boolean?",
      "the batch is done on the worker's thread; while two are, waits, or gives it up", NULL},
     {"close()", close_worker, "", "waits until all is done", NULL},
     {0}};

void cnri_lua_open_workers(lua_State *L) {
    static const luaL_Reg ends[] = {{"__gc", drop_worker}, {"__close", drop_worker}, {0}};
    cnri_lua_new_type(L, WORKER_TYPE, "a worker", ends, "cnnrun.Worker", NULL);
    cnri_lua_new_type(L, PROMISE_TYPE, "a promise", (const luaL_Reg[]){{0}}, NULL, NULL);
}
