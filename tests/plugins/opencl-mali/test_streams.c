/* Memory, transfers, events and streams of OpenCL devices; four streams at once run one plan. */
#include "plugins/opencl-mali/oclcall.h"

#include <pthread.h>

static const cnr_device_class *cls(void) { return ocl_state.cls; }

/* Memory of the device. */
static cnr_mem memory(uint64_t bytes) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_mem mem = {.bytes = bytes};
    if (cls()->alloc(&ocl_state.device, &mem, &err) != CNR_OK) note("%s", err.text);
    return mem;
}

/* Tests: transfers. */
static void transfers(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_stream *s = &ocl_state.stream;
    uint8_t bytes[1000], back[1000] = {0};
    for (int i = 0; i < 1000; i++) bytes[i] = (uint8_t)(i * 7);
    cnr_mem a = memory(1000), b = memory(4096), part = b;
    part.offset += 64; /* a part of b, as an arena has them */
    part.bytes = 1000;
    cls()->write(s, &a, 0, bytes, 1000, &err);
    cls()->copy(s, &a, &part, 1000, &err);
    cls()->write(s, &part, 10, "hello", 5, &err);
    cls()->read(s, &part, 3, back, 900, &err);
    ok(cls()->sync(s, &err) == CNR_OK, "transfers end");
    memcpy(bytes + 10, "hello", 5);
    ok(memcmp(back, bytes + 3, 900) == 0, "written, copied, written in part, read in part");
    uint8_t *at = cls()->map(s, &part, 1, &err);
    ok(at && memcmp(at, bytes, 1000) == 0, "mapped, it is there");
    if (at) at[999] = 42;
    cls()->unmap(s, &part, at);
    cls()->read(s, &part, 999, back, 1, &err);
    cls()->sync(s, &err);
    is_int(back[0], 42, "what was written while it was mapped");
    ok(cls()->write(s, &a, 990, bytes, 11, &err) == CNR_E_ARG, "no writing past the end");
    ok(cls()->read(s, &a, UINT64_MAX, back, 2, &err) == CNR_E_ARG, "no reading far past the end");
    cnr_mem huge = {.bytes = UINT64_MAX / 2};
    ok(cls()->alloc(&ocl_state.device, &huge, &err) == CNR_E_LIMIT && strstr(err.text, "at most"),
       "too much memory is refused");
    cls()->free(&ocl_state.device, &a);
    cls()->free(&ocl_state.device, &b);
}

/* Tests: images. */
static void images(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_stream *s = &ocl_state.stream;
    if (ocl_state.device.n_memory < 2) {
        skip("images", "this device has none");
        return;
    }
    float pixels[5 * 3 * 4], back[5 * 3 * 4] = {0};
    for (int i = 0; i < 60; i++) pixels[i] = (float)i * 0.5f - 3;
    for (int each = 1; each <= 4; each += 3) {
        const uint64_t bytes = (uint64_t)(5 * 3 * each) * sizeof(float);
        cnr_mem a = {.bytes = bytes, .width = 5, .height = 3, .memory_class = 1}, b = a;
        ok(cls()->alloc(&ocl_state.device, &a, &err) == CNR_OK &&
               cls()->alloc(&ocl_state.device, &b, &err) == CNR_OK,
           "images of %d floats a pixel", each);
        cls()->write(s, &a, 0, pixels, bytes, &err);
        cls()->copy(s, &a, &b, bytes, &err);
        cls()->read(s, &b, 0, back, bytes, &err);
        cls()->sync(s, &err);
        ok(memcmp(back, pixels, bytes) == 0, "written, copied, read");
        cls()->free(&ocl_state.device, &a);
        cls()->free(&ocl_state.device, &b);
    }
    cnr_mem odd = {.bytes = 7, .width = 5, .height = 3, .memory_class = 1};
    ok(cls()->alloc(&ocl_state.device, &odd, &err) != CNR_OK, "pixels of no kind are refused");
}

/* Tests: events. */
static void events(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_stream other = {.size = sizeof other}, *s = &ocl_state.stream;
    cnr_stream timed = {.size = sizeof timed, .flags = CNR_STREAM_TIMED};
    void *first = NULL, *last = NULL;
    static char bytes[1 << 20];
    int32_t back = 0;
    const int32_t value = 77;
    ok(cls()->stream_open(&ocl_state.device, &other, &err) == CNR_OK, "a second stream");
    cnr_mem a = memory(sizeof bytes);
    cls()->event_record(s, &first, &err);
    for (int i = 0; i < 20; i++) cls()->write(s, &a, 0, bytes, sizeof bytes, &err);
    cls()->write(s, &a, 0, &value, sizeof value, &err);
    cls()->event_record(s, &last, &err);
    cls()->flush(s);
    ok(first && last && cls()->event_wait(&other, last, &err) == CNR_OK, "one waits for the other");
    cls()->read(&other, &a, 0, &back, sizeof back, &err);
    cls()->sync(&other, &err);
    is_int(back, value, "and sees what it wrote");
    cls()->sync(s, &err);
    ok(cls()->event_elapsed(&ocl_state.device, first, last) < 0,
       "queues that nobody times tell no time");
    cls()->event_free(&ocl_state.device, first);
    cls()->event_free(&ocl_state.device, last);
    cls()->stream_open(&ocl_state.device, &timed, &err);
    cls()->event_record(&timed, &first, &err);
    cls()->write(&timed, &a, 0, bytes, sizeof bytes, &err);
    cls()->event_record(&timed, &last, &err);
    cls()->sync(&timed, &err);
    ok(cls()->event_elapsed(&ocl_state.device, first, last) >= 0, "time between marks");
    cls()->event_free(&ocl_state.device, first);
    cls()->event_free(&ocl_state.device, last);
    cls()->stream_close(&timed);
    cls()->stream_close(&other);
    cls()->free(&ocl_state.device, &a);
}

/* ---- one state, four streams ---- */

/* A thread with a stream of its own. */
typedef struct runner {
    pthread_t thread;
    const cnr_kernel *kernel;
    cnr_node node;
    cnr_tensor tensors[2], y;
    const cnr_tensor *in[2], *out[1];
    void *state;
    float scale;
    int good;
} runner;

/* Thread: runs its kernel many times. */
static void *run_often(void *arg) {
    runner *r = arg;
    cnr_error err = CNR_ERROR_INIT;
    cnr_stream s = {.size = sizeof s};
    cnr_tensor *outs[1] = {&r->y};
    float x[1000], back[1000];
    if (cls()->stream_open(&ocl_state.device, &s, &err) != CNR_OK) return NULL;
    cnr_run run = {.size = sizeof run,
                   .range_axis = -1,
                   .node = &r->node,
                   .outputs = outs,
                   .state = r->state,
                   .stream = &s};
    r->good = 1;
    for (int turn = 0; turn < 50 && r->good; turn++) {
        for (int i = 0; i < 1000; i++) x[i] = r->scale * (float)(i + turn);
        cls()->write(&s, &r->tensors[0].mem, 0, x, sizeof x, &err);
        r->good = r->kernel->run(&run, &err) == CNR_OK;
        cls()->read(&s, &r->y.mem, 0, back, sizeof back, &err);
        r->good = r->good && cls()->sync(&s, &err) == CNR_OK;
        for (int i = 0; i < 1000 && r->good; i++) r->good = back[i] == 2 * x[i];
    }
    cls()->stream_close(&s);
    return NULL;
}

/* Tests: threads with streams of their own. */
static void at_once(void) {
    enum { MANY = 4 };
    static runner all[MANY];
    cnr_error err = CNR_ERROR_INIT;
    const cnr_op *add = op_find("add");
    const cnr_kernel *k = NULL;
    cnr_space space = {.size = sizeof space};
    void *state = NULL;
    cnr_tensor *x = t_random(CNR_f32, "1000", 1);
    const cnr_tensor *in[2] = {x, x};
    cnr_node *node = op_node(add, NULL, 0, in, 2, 1);
    for (int32_t i = 0; i < ocl_state.n_kernels; i++)
        if (strstr(ocl_state.kernels[i]->name, "elementwise")) k = ocl_state.kernels[i];
    if (!k || k->plan(&ocl_state.device, node, &space, &state, &err) != CNR_OK) {
        ok(0, "a plan: %s", err.text);
        return;
    }
    for (int i = 0; i < MANY; i++) {
        runner *r = &all[i];
        *r = (runner){.kernel = k, .node = *node, .state = state, .scale = 1.0f + (float)i};
        r->tensors[0] = *x;
        r->tensors[0].mem = memory(4000);
        r->y = *node->outputs[0];
        r->y.mem = memory(4000);
        r->in[0] = r->in[1] = &r->tensors[0];
        r->out[0] = &r->y;
        r->node.inputs = r->in;
        r->node.outputs = r->out;
        pthread_create(&r->thread, NULL, run_often, r);
    }
    int good = 1;
    for (int i = 0; i < MANY; i++) {
        pthread_join(all[i].thread, NULL);
        good = good && all[i].good;
        cls()->free(&ocl_state.device, &all[i].tensors[0].mem);
        cls()->free(&ocl_state.device, &all[i].y.mem);
    }
    ok(good, "four streams at once, each with its own arguments");
    k->plan_free(&ocl_state.device, state);
    op_node_free(node);
}

int main(void) {
    ocl_open("opencl-mali");
    OCL_EACH_DEVICE {
        transfers();
        images();
        events();
        at_once();
    }
    return ocl_done();
}
