/* A trial: runs a kernel in guarded memory in every way that the core may, and judges the
 * results. */
#include "judge/trial.h"
#include <math.h>
#include <sys/mman.h>

/* ---- stages ---- */

/* Puts the n elements of `size` bytes at `at` in reverse order. */
static void reverse(uint8_t *at, int64_t n, size_t size) {
    uint8_t one[8];
    for (int64_t i = 0; i < n / 2; i++) {
        uint8_t *a = at + (size_t)i * size, *b = at + (size_t)(n - 1 - i) * size;
        memcpy(one, a, size), memcpy(a, b, size), memcpy(b, one, size);
    }
}

/* Puts the numbers of each dense constant of floats in reverse order; a second call puts them
 * back. */
static void reverse_constants(cnri_stage *s) {
    for (int32_t i = 0; i < s->t->n_in; i++) {
        const cnr_tensor *x = &s->t->in[i];
        if (!s->constant[i].map || x->encoding || !cnri_dtype_floats(x->dtype)) continue;
        reverse(s->constant[i].data, cnr_count(x), cnr_dtype_bits(x->dtype) / 8);
    }
}

/* True if the operator infers the same shapes from the constants as they are now. */
static bool keeps_shapes(const cnri_trial *t) {
    cnr_tensor out[CNRI_CHECK_PORTS], *outputs[CNRI_CHECK_PORTS];
    cnr_error err = CNR_ERROR_INIT;
    for (int32_t i = 0; i < t->n_out; i++) {
        out[i] = (cnr_tensor){.size = sizeof out[i]};
        outputs[i] = &out[i];
    }
    bool same = t->node.desc->infer(&t->node, outputs, &err) == CNR_OK;
    for (int32_t i = 0; i < t->n_out; i++) {
        same = same && cnr_same_shape(&out[i], t->node.outputs[i]);
        cnri_free(out[i].data); /* what infer knew of the result */
    }
    return same;
}

/* Lets the kernel prepare weights which, unless shapes follow from them, come before those of the
 * case at the same address, and of which it may keep nothing. */
static void prepare_others(cnri_stage *s, void *blob) {
    cnr_error ignored = CNR_ERROR_INIT;
    reverse_constants(s);
    if (keeps_shapes(s->t)) (void)s->t->kernel->prepare(s->t->device, &s->t->node, blob, &ignored);
    reverse_constants(s);
}

/* Lets the kernel prepare its weights. False: it failed. */
static bool prepare(cnri_stage *s, cnri_text *why) {
    const cnri_trial *t = s->t;
    cnr_space space = {.size = sizeof space};
    cnr_error err = CNR_ERROR_INIT;
    if (!CNRI_HAS(t->kernel, prepare_size) || !CNRI_HAS(t->kernel, prepare)) return true;
    cnr_status status = t->kernel->prepare_size(t->device, &t->node, &space, &err);
    if (!cnri_said(why, "prepare_size", status, &err)) return false;
    if (space.bytes == 0) return true;
    const size_t bytes = (size_t)space.bytes;
    uint8_t *low = space.bytes < UINT64_C(1) << 32 ? cnri_alloc(bytes + 2 * 1024) : NULL;
    if (!low) {
        cnri_text_add(why, "prepare wants a blob of %llu bytes", (unsigned long long)space.bytes);
        return false;
    }
    prepare_others(s, low + 1024);
    memset(low, 0xc3, bytes + 2 * 1024);
    memset(low + 1024, 0xff, bytes);
    bool good =
        cnri_said(why, "prepare", t->kernel->prepare(t->device, &t->node, low + 1024, &err), &err);
    for (size_t i = 0; i < 1024 && good; i++)
        if (low[i] != 0xc3 || low[1024 + bytes + i] != 0xc3) {
            cnri_text_add(why, "prepare wrote outside its blob");
            good = false;
        }
    good = good && cnri_piece_make(&s->blob, &s->stream, &space, 0, why) &&
           cnri_piece_fill(&s->blob, low + 1024, 0, why);
    cnri_free(low);
    s->has_blob = good;
    return good;
}

/* Puts constants for plan and prepare into memory that ends at an inaccessible page. False: it
 * failed. */
static bool fence_constants(cnri_stage *s, cnri_text *why) {
    cnri_trial *t = s->t;
    for (int32_t i = 0; i < t->n_in; i++) {
        cnr_tensor *x = &t->in[i];
        const unsigned bits = cnr_dtype_bits(x->dtype);
        if (!t->inputs[i] || !(x->flags & CNR_TENSOR_CONST) || !x->data) continue;
        if (!cnri_fence_make(&s->constant[i], x->bytes,
                             x->encoding ? 16
                             : bits > 8  ? bits / 8
                                         : 1)) {
            cnri_text_add(why, "out of memory");
            return false;
        }
        cnri_fence_fill(&s->constant[i], x->data, 0);
        x->data = s->constant[i].data;
    }
    return true;
}

/* True if the constants are unchanged. */
static bool constants_kept(const cnri_stage *s, cnri_text *why) {
    for (int32_t i = 0; i < s->t->n_in; i++)
        if (s->constant[i].map && !cnri_fence_check(&s->constant[i], true, "a constant", why))
            return false;
    return true;
}

/* Gives the constants their own data back, and frees their fences. */
static void unfence_constants(cnri_stage *s) {
    for (int32_t i = 0; i < s->t->n_in; i++) {
        if (!s->constant[i].map) continue;
        if (s->t->in[i].data == s->constant[i].data) s->t->in[i].data = s->t->host[i]->data;
        cnri_fence_free(&s->constant[i]);
    }
}

/* Lets the kernel plan. False: it failed. */
static bool plan(cnri_stage *s, cnri_text *why) {
    const cnri_trial *t = s->t;
    cnr_space space = {.size = sizeof space};
    cnr_error err = CNR_ERROR_INIT;
    if (!CNRI_HAS(t->kernel, plan)) return true;
    cnr_status status = t->kernel->plan(t->device, &t->node, &space, &s->state, &err);
    s->planned = status == CNR_OK;
    if (CNRI_HAS(t->device->cls, plan_finish)) {
        const cnr_status built = t->device->cls->plan_finish(t->device, status ? NULL : &err);
        if (!status) status = built;
    }
    if (!cnri_said(why, "plan", status, &err)) return false;
    if (space.bytes == 0) return true;
    return s->has_workspace = cnri_piece_make(&s->workspace, &s->stream, &space, t->work_at, why);
}

/* Allocates memory for every input that the kernel reads, and for every output. False: failed. */
static bool place(cnri_stage *s, cnri_text *why) {
    const cnri_trial *t = s->t;
    for (int32_t i = 0; i < t->n_in; i++) {
        if (!t->inputs[i] || cnri_trial_prepared(t, i)) continue;
        cnr_space space = {.size = sizeof space,
                           .bytes = t->in[i].bytes,
                           .memory_class = t->in_class[i]};
        cnri_trial_image(&t->in[i], t->in_block[i], &space.width, &space.height);
        const uint64_t at =
            t->in[i].flags & CNR_TENSOR_CONST ? 0 : t->in_at[i]; /* a weight is no part */
        if (!cnri_piece_make(&s->in[i], &s->stream, &space, at, why)) return false;
    }
    for (int32_t i = 0; i < t->n_out; i++) {
        cnr_space space = {.size = sizeof space,
                           .bytes = cnr_dense_bytes(&t->out[i]),
                           .memory_class = t->out_class[i]};
        cnri_trial_image(&t->out[i], t->out_block[i], &space.width, &space.height);
        if (!cnri_piece_make(&s->out[i], &s->stream, &space, t->out_at[i], why)) return false;
    }
    return true;
}

/* Waits, then frees all memories and closes the stream and the node's state. */
static void stage_close(cnri_stage *s) {
    const cnri_trial *t = s->t;
    cnr_error err = CNR_ERROR_INIT;
    if (s->open) t->device->cls->sync(&s->stream, &err);
    for (int32_t i = 0; i < t->n_in; i++) cnri_piece_free(&s->in[i]);
    for (int32_t i = 0; i < t->n_out; i++) cnri_piece_free(&s->out[i]);
    cnri_piece_free(&s->blob);
    cnri_piece_free(&s->workspace);
    cnri_piece_free(&s->load);
    unfence_constants(s);
    if (s->planned && CNRI_HAS(t->kernel, plan_free)) t->kernel->plan_free(t->device, s->state);
    if (s->open) t->device->cls->stream_close(&s->stream);
}

/* Opens the stream and lets the kernel plan and prepare. False: it failed. */
static bool stage_open(cnri_stage *s, cnri_trial *t, cnri_text *why) {
    static const volatile int32_t go_on = 0;
    cnr_error err = CNR_ERROR_INIT;
    memset(s, 0, sizeof *s);
    s->t = t;
    s->stream = (cnr_stream){.size = sizeof s->stream, .device = t->device, .cancel = &go_on};
    if (!cnri_said(why, "stream_open", t->device->cls->stream_open(t->device, &s->stream, &err),
                   &err))
        return false;
    s->open = true;
    return fence_constants(s, why) && plan(s, why) && prepare(s, why) && constants_kept(s, why) &&
           place(s, why);
}

/* ---- one way of running ---- */

/* Fills input i in its channel block; the part outside `r` is spoilt. False: out of memory. */
static bool fill_input(cnri_stage *s, int32_t i, const cnr_input_range *r, cnri_text *why) {
    const cnri_trial *t = s->t;
    const cnr_tensor *from = t->host[i];
    uint8_t *data = cnri_alloc((size_t)t->in[i].bytes + 1);
    if (!data) {
        cnri_text_add(why, "out of memory");
        return false;
    }
    if (t->in_block[i] > 1) cnri_values_block(from, from->data, 0, data, t->in_block[i]);
    else memcpy(data, from->data, (size_t)t->in[i].bytes);
    if (r->axis >= 0 && r->axis < from->rank && cnri_dtype_floats(from->dtype)) {
        const size_t size = cnr_dtype_bits(from->dtype) / 8;
        const int64_t n = cnr_count(from), inner = cnr_span(from, r->axis + 1, from->rank);
        for (int64_t e = 0; e < n; e++) {
            const int64_t at = e / inner % from->dim[r->axis];
            if (at < r->begin || at >= r->end) memset(data + (size_t)e * size, 0xff, size);
        }
    }
    const bool good = cnri_piece_fill(&s->in[i], data, 0, why);
    cnri_free(data);
    return good;
}

/* The part of input i that an output range may read; axis -1: all of it. */
static cnr_input_range region_of(const cnri_trial *t, int32_t i, const cnri_way *way) {
    const cnr_input_range all = {.axis = -1};
    if (way->axis < 0 || i >= t->c->node.n_inputs || !t->inputs[i]) return all;
    if (t->in[i].flags & CNR_TENSOR_CONST || t->in[i].encoding || t->in_block[i] > 1) return all;
    return cnri_ways_region(&t->c->node, i, way->axis, way->begin, way->end);
}

/* Fills inputs and outputs for one call. False: it failed. */
static bool fill(cnri_stage *s, const cnri_way *way, cnri_text *why) {
    cnri_trial *t = s->t;
    for (int32_t i = 0; i < t->n_in; i++) {
        if (!t->inputs[i]) continue;
        if (cnri_trial_prepared(t, i)) {
            t->in[i].data = NULL; /* it was consumed: nothing of it is needed now */
            continue;
        }
        const cnr_input_range r = region_of(t, i, way);
        if (!fill_input(s, i, &r, why)) return false;
        t->in[i].mem = s->in[i].mem;
        if (s->in[i].host) t->in[i].data = s->in[i].host;
    }
    for (int32_t i = 0; i < t->n_out; i++) {
        const cnri_piece *p = way->in_place >= 0 && i == 0 ? &s->in[way->in_place] : &s->out[i];
        if (p == &s->out[i] && !cnri_piece_fill(&s->out[i], NULL, way->poison, why)) return false;
        memcpy(t->out[i].dim, s->dims[i], sizeof s->dims[i]);
        t->out[i].mem = p->mem;
        t->out[i].data = p->host;
        t->out[i].bytes = p->bytes;
    }
    return !s->has_workspace || cnri_piece_fill(&s->workspace, NULL, way->poison, why);
}

/* A page for the cnr_run and its list of outputs. It becomes inaccessible when `run` returns, so
 * that a job that reads them later crashes. */
typedef struct call_page {
    cnr_run run;
    cnr_tensor *outputs[CNRI_CHECK_PORTS];
} call_page;
enum { CALL_PAGE = 64 * 1024 }; /* a page, however large they are */
_Static_assert(sizeof(call_page) <= CALL_PAGE, "one page");

/* A page for the arguments of a call, which can't be read afterwards; NULL: no memory. */
static call_page *call_page_open(void) {
    static void *page;
    if (!page) page = mmap(NULL, CALL_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return page = NULL;
    return mprotect(page, CALL_PAGE, PROT_READ | PROT_WRITE) == 0 ? page : NULL;
}

/* Fills the page with rubbish and takes it away, so that a kernel that kept the arguments crashes;
 * not when it is timed (bench). */
static void call_page_close(call_page *page, bool bench) {
    if (bench) return; /* system calls are no part of what is timed */
    memset(page, 0xa5, sizeof *page);
    (void)mprotect(page, CALL_PAGE, PROT_NONE);
}

/* Calls the kernel with its arguments on a page of their own; bench: it is timed. False: it failed,
 * see why. */
static bool call(cnri_stage *s, const cnri_way *way, bool bench, cnri_text *why) {
    cnri_trial *t = s->t;
    cnr_error err = CNR_ERROR_INIT;
    call_page *page = call_page_open();
    if (!page) return cnri_said(why, "mmap", CNR_E_MEMORY, &err);
    for (int32_t i = 0; i < t->n_out; i++) page->outputs[i] = &t->out[i];
    page->run = (cnr_run){.size = sizeof page->run,
                          .range_axis = way->axis,
                          .range_begin = way->begin,
                          .range_end = way->end,
                          .node = &t->node,
                          .outputs = page->outputs,
                          .state = s->state,
                          .stream = &s->stream};
    if (s->has_blob) {
        page->run.blob = &s->blob.mem;
        page->run.blob_data = s->blob.host;
    }
    if (s->has_workspace) {
        page->run.workspace = &s->workspace.mem;
        page->run.workspace_data = s->workspace.host;
    }
    const cnr_status status = t->kernel->run(&page->run, &err);
    call_page_close(page, bench);
    if (!cnri_said(why, "run", status, &err)) return false;
    return cnri_said(why, "sync", t->device->cls->sync(&s->stream, &err), &err);
}

/* True if everything that the kernel must not change is unchanged. */
static bool untouched(cnri_stage *s, const cnri_way *way, cnri_text *why) {
    const cnri_trial *t = s->t;
    char name[32];
    for (int32_t i = 0; i < t->n_in; i++) {
        if (!t->inputs[i] || cnri_trial_prepared(t, i)) continue;
        snprintf(name, sizeof name, "input %d", (int)i);
        if (!cnri_piece_check(&s->in[i], i != way->in_place, name, NULL, why)) return false;
    }
    if (s->has_blob && !cnri_piece_check(&s->blob, true, "the blob", NULL, why)) return false;
    return !s->has_workspace || cnri_piece_check(&s->workspace, false, "the workspace", NULL, why);
}

/* True if the output is unchanged outside its range. */
static bool kept(const cnri_trial *t, const uint8_t *data, const cnri_way *way, cnri_text *why) {
    const cnr_tensor *y = &t->out[0];
    const size_t size = cnr_dtype_bits(y->dtype) / 8;
    const int64_t inner = cnr_span(y, way->axis + 1, y->rank), n = cnr_count(y);
    for (int64_t e = 0; e < n; e++) {
        const int64_t at = e / inner % y->dim[way->axis];
        if (at >= way->begin && at < way->end) continue;
        for (size_t k = 0; k < size; k++)
            if (data[(size_t)e * size + k] != way->poison) {
                cnri_text_add(why, "element %lld was written, which is outside the range",
                              (long long)e);
                return false;
            }
    }
    return true;
}

/* True if a kernel on host memory gives the same numbers each time that input 0 has the same
 * layout, whole or in ranges and with any number of threads. Other results could not be
 * reproduced. */
static bool same_again(cnri_trial *t, const cnr_tensor *got, const cnri_way *way, cnri_text *why) {
    cnri_case *c = t->c;
    if (!(t->device->memory[0].flags & CNR_MEMORY_HOST) || got->flags & CNR_TENSOR_DYNAMIC)
        return true;
    if (!c->first || c->first_by != t->kernel || c->first_links != t->links ||
        c->first_block != t->in_block[0]) {
        if (way->axis >= 0) return true;
        cnri_free(c->first);
        c->first_by = t->kernel;
        c->first_links = t->links;
        c->first_block = t->in_block[0];
        c->first = cnri_alloc((size_t)cnr_dense_bytes(got) + 1);
        if (c->first) memcpy(c->first, got->data, (size_t)cnr_dense_bytes(got));
        else cnri_text_add(why, "out of memory");
        return c->first != NULL;
    }
    const int64_t n = cnr_count(got);
    const int64_t inner = way->axis < 0 ? 1 : cnr_span(got, way->axis + 1, got->rank);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = way->axis < 0 ? 0 : i / inner % got->dim[way->axis];
        if (way->axis >= 0 && (at < way->begin || at >= way->end)) continue;
        const double was = cnri_element(got->dtype, c->first, i);
        const double is = cnri_number_at(got, i);
        if (was == is || (isnan(was) && isnan(is))) continue;
        cnri_text_add(why, "output 0: element %lld was %.9g before and is now %.9g", (long long)i,
                      was, is);
        return false;
    }
    return true;
}

/* Compares output i with the reference, and checks its fences; false, with why. */
static bool judge_output(cnri_stage *s, int32_t i, const cnri_way *way, cnri_text *why) {
    cnri_trial *t = s->t;
    char name[32];
    const bool shared = way->in_place >= 0 && i == 0;
    cnri_piece *p = shared ? &s->in[way->in_place] : &s->out[i];
    uint8_t *data = cnri_alloc(2 * (size_t)p->bytes + 64);
    if (!data) {
        cnri_text_add(why, "out of memory");
        return false;
    }
    snprintf(name, sizeof name, "output %d", (int)i);
    bool good = cnri_piece_check(p, false, name, data, why);
    cnr_tensor got = t->out[i];
    got.data = data;
    if (t->out_block[i] > 1) {
        uint8_t *plain = data + (p->bytes + 15) / 16 * 16;
        cnri_values_block(&got, data, t->out_block[i], plain, 0);
        got.data = plain;
    }
    good = good && cnri_judge(t->c, t->links, i, &got, way->axis, way->begin, way->end, why);
    if (good && way->axis >= 0) good = kept(t, data, way, why);
    if (good && i == 0) good = same_again(t, &got, way, why);
    cnri_free(data);
    return good;
}

/* Queues work before the first call, so that what is queued behind it runs after `run` has
 * returned; false, with why. */
static bool keep_busy(cnri_stage *s, cnri_text *why) {
    enum { BYTES = 1 << 20, TIMES = 4 };
    static uint8_t data[BYTES];
    const cnr_space space = {.size = sizeof space, .bytes = BYTES};
    const cnr_device_class *cls = s->t->device->cls;
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = CNR_OK;
    if (s->load.made || !CNRI_HAS(cls, event_record)) return true;
    if (s->t->device->memory[0].flags & CNR_MEMORY_IMAGE) return true;
    if (!cnri_piece_make(&s->load, &s->stream, &space, 0, why)) return false;
    for (int32_t i = 0; i < TIMES && !status; i++)
        status = cls->write(&s->stream, &s->load.mem, 0, data, BYTES, &err);
    return cnri_said(why, "write", status, &err);
}

/* Calls the kernel in one way and judges all outputs. False: it failed. */
static bool run_way(cnri_stage *s, const cnri_way *way, cnri_text *why) {
    bool good = fill(s, way, why) && keep_busy(s, why) && call(s, way, false, why);
    for (int32_t i = 0; i < s->t->n_out && good; i++) good = judge_output(s, i, way, why);
    good = good && untouched(s, way, why);
    if (good) return true;
    if (way->in_place >= 0)
        cnri_text_add(why, " (output in place of input %d)", (int)way->in_place);
    if (way->axis >= 0)
        cnri_text_add(why, " (range %lld to %lld on axis %d)", (long long)way->begin,
                      (long long)way->end, (int)way->axis);
    if (s->stream.parallel) cnri_text_add(why, " (%d threads)", (int)s->t->device->concurrency);
    return false;
}

/* ---- all ways ---- */

/* True if all operators of the chain are elementwise, with `head` also the first. */
static bool all_elementwise(const cnri_trial *t, bool head) {
    for (int32_t i = 0; i < t->links; i++)
        if (!(t->c->chain[i].node.desc->flags & CNR_OP_ELEMENTWISE)) return false;
    return !head || t->node.desc->flags & CNR_OP_ELEMENTWISE;
}

/* An input whose bytes the output may use, as in plans; -1: none. */
static int32_t in_place_of(const cnri_trial *t) {
    const int32_t own = t->c->node.n_inputs;
    if (t->n_out != 1 || (t->links && !all_elementwise(t, true))) return -1;
    for (int32_t i = 0; i < own; i++) {
        if (!t->inputs[i] || (t->links && i > 0 && own > 2)) continue;
        if (!cnri_ways_in_place(&t->c->node, i, 0)) continue;
        if (t->inputs[i]->bytes != cnr_dense_bytes(&t->out[0])) continue;
        if (t->in_block[i] != t->out_block[0] || t->in_class[i] != t->out_class[0]) continue;
        const uint32_t flags = t->device->memory[t->in_class[i]].flags;
        if (flags & CNR_MEMORY_PARTS && !(flags & CNR_MEMORY_IMAGE)) return i;
    }
    return -1;
}

/* True if the kernel can compute ranges. */
static bool takes_ranges(const cnri_trial *t) {
    if (t->n_out != 1 || !t->answer.ranges || !all_elementwise(t, false)) return false;
    if (t->out[0].flags & CNR_TENSOR_DYNAMIC || cnr_dtype_bits(t->out[0].dtype) < 8) return false;
    for (int32_t i = 0; i < t->n_in; i++)
        if (t->in_block[i] > 1) return false;
    return t->out_block[0] <= 1 && !(t->device->memory[t->out_class[0]].flags & CNR_MEMORY_IMAGE);
}

/* Calls the kernel for ranges of each axis. False: it failed. */
static bool run_ranges(cnri_stage *s, cnri_text *why) {
    cnri_trial *t = s->t;
    for (int32_t axis = 0; axis < t->out[0].rank; axis++) {
        const bool asked = t->answer.ranges >> axis & 1;
        int64_t cuts[4];
        const int32_t n = cnri_ways_cut(t->out[0].dim[axis],
                                        asked ? cnri_ways_alignment(&t->c->node, axis) : 0, cuts);
        for (int32_t k = 0; k < n; k++) {
            const cnri_way way = {.poison = 0xff,
                                  .in_place = -1,
                                  .axis = axis,
                                  .begin = cuts[k],
                                  .end = cuts[k + 1]};
            if (!run_way(s, &way, why)) return false;
            t->ran_ranges = true;
        }
    }
    return true;
}

/* Calls the kernel with items of `parallel` that overlap. False: it failed. */
static bool run_overlapping(cnri_stage *s, cnri_text *why) {
    const cnri_way way = {.poison = 0xa5, .in_place = -1, .axis = -1};
    const __typeof__(s->stream.parallel) own = s->stream.parallel;
    if (!own || s->t->device->concurrency < 2) return true;
    s->stream.parallel = cnri_overlap_parallel;
    const bool good = run_way(s, &way, why);
    s->stream.parallel = own;
    if (!good) cnri_text_add(why, " while items of `parallel` overlap: they share memory");
    return good;
}

/* Runs the kernel once on other numbers, those of each varying input in reverse, so that a kernel
 * which keeps what it saw fails in the next run. False: it changed what it only may read, or memory
 * is out. */
static bool run_on_others(cnri_stage *s, const cnri_way *way, cnri_text *why) {
    cnri_trial *t = s->t;
    cnri_text ignored = {0};
    bool good = fill(s, way, why);
    for (int32_t i = 0; i < t->n_in && good; i++) {
        const cnr_tensor *from = t->host[i];
        const size_t size = t->inputs[i] ? cnr_dtype_bits(from->dtype) / 8 : 0;
        if (!t->inputs[i] || t->in[i].flags & CNR_TENSOR_CONST || t->in_block[i] > 1) continue;
        if (!cnri_dtype_floats(from->dtype) || cnri_trial_prepared(t, i)) continue;
        uint8_t *data = cnri_alloc((size_t)t->in[i].bytes + 1);
        if (data) memcpy(data, from->data, (size_t)t->in[i].bytes);
        if (data) reverse(data, (int64_t)(t->in[i].bytes / size), size);
        good = data && cnri_piece_fill(&s->in[i], data, 0, why);
        cnri_free(data);
    }
    /* numbers that it refuses are judged elsewhere */
    if (good && call(s, way, false, &ignored)) good = untouched(s, way, why);
    cnri_text_free(&ignored);
    return good;
}

bool cnri_trial_run(cnri_trial *t, bool ranges, cnri_text *why) {
    static cnri_stage s;
    const cnri_way whole = {.poison = 0xff, .in_place = -1, .axis = -1};
    const cnri_way again = {.poison = 0x5a, .in_place = in_place_of(t), .axis = -1};
    bool good = stage_open(&s, t, why);
    for (int32_t i = 0; i < t->n_out; i++) memcpy(s.dims[i], t->out[i].dim, sizeof s.dims[i]);
    good = good && run_on_others(&s, &whole, why) && run_way(&s, &whole, why) &&
           run_way(&s, &again, why) && run_overlapping(&s, why);
    t->offers_ranges = takes_ranges(t);
    t->ran_ranges = false;
    if (good && ranges && t->offers_ranges) good = run_ranges(&s, why);
    stage_close(&s);
    return good;
}

double cnri_trial_bench(cnri_trial *t, cnri_text *why) {
    static cnri_stage s;
    const cnri_way whole = {.poison = 0xff, .in_place = -1, .axis = -1};
    uint64_t least = UINT64_MAX, total = 0;
    cnri_trial_view(t, t->links); /* the checks before have left their memory in it */
    for (int32_t i = 0; i < t->n_in; i++) t->in[i].block = t->in_block[i];
    for (int32_t i = 0; i < t->n_out; i++) t->out[i].block = t->out_block[i];
    bool good = stage_open(&s, t, why);
    for (int32_t i = 0; i < t->n_out; i++) memcpy(s.dims[i], t->out[i].dim, sizeof s.dims[i]);
    good = good && fill(&s, &whole, why);
    for (int32_t runs = 0; good && runs < 200 && (runs < 5 || total < 30000000); runs++) {
        const uint64_t begin = cnri_now_ns();
        good = call(&s, &whole, true, why);
        const uint64_t took = cnri_now_ns() - begin;
        total += took;
        if (took < least) least = took;
    }
    stage_close(&s);
    return good ? (double)least * 1e-6 : -1;
}
