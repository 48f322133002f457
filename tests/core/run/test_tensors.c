/* Tensors that can't be are refused before a byte of them is read: each stands at the end of a page
 * behind which nothing may be touched. */
#include "../plan/lab.h"
#include <sys/mman.h>
#include <unistd.h>

static cnr_error err = CNR_ERROR_INIT;
static cnr_model *model;
static cnr_plan *plan;
static cnr_session *session;

/* x [batch, 4, 3, 2] -> blur, whose weights are a value of their own */
static void make(void) {
    cnr_graph *g = cnri_graph_new("net");
    cnr_tensor t = lab_type(1, 4, 3, 2);
    t.dim[0] = CNR_DIM_SYMBOL(cnri_graph_symbol(g, "batch"));
    const cnr_value x = cnri_graph_input(g, "x", &t);
    cnri_graph_output(g, lab_blur(g, x, 4, 2), "y");
    ok(!cnri_model_from_graph(lab_rt, g, NULL, &model, &err) &&
           !cnr_plan_for(model, NULL, 0, &plan, &err) && !cnr_session_open(plan, &session, &err),
       "a net: %s", err.text);
}

/* The last `bytes` bytes before a page that may not be read; NULL: no memory. */
static void *edge(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE) != 0) return NULL;
    return at + page - bytes;
}

/* A test: the tensor is refused. */
static void refused(const char *what, const cnr_tensor *t) {
    const cnr_tensor *list[] = {t}, *out;
    cnr_top top[3];
    cnr_plan *other = NULL;
    ok(cnr_session_set_input(session, 0, t, &err) == CNR_E_ARG, "%s: as an input: %s", what,
       err.text);
    ok(cnr_run_tensors(model, list, 1, &out, 1, &err) == CNR_E_ARG, "%s: run", what);
    ok(cnr_plan_set_weight(plan, "w2.1", t, &err) == CNR_E_ARG, "%s: as a weight", what);
    is_int(cnr_topk(t, 3, top), 0, what);
    if (t->rank >= 0 && t->rank <= CNR_MAX_RANK) return; /* a shape needs no data */
    ok(cnr_plan_for(model, list, 1, &other, &err) == CNR_E_ARG && !other, "%s: as a shape", what);
}

int main(void) {
    if (!ok(lab_open(&err) == CNR_OK, "the made-up plugin loads")) return done();
    make();
    cnr_tensor good = lab_type(1, 4, 3, 2), t;
    const cnr_tensor *out, *list[] = {&good};
    good.data = edge(good.bytes);
    ok(good.data && !cnr_run_tensors(model, list, 1, &out, 1, &err), "one that can be: %s",
       err.text);
    t = good;
    t.data = edge(t.bytes = 92);
    refused("an element too few", &t);
    t.bytes = 1;
    refused("hardly any bytes", &t);
    const int32_t ranks[] = {-1, INT32_MIN, CNR_MAX_RANK + 1, INT32_MAX};
    for (size_t i = 0; i < CNRI_COUNT(ranks); i++) {
        t = good;
        t.rank = ranks[i];
        refused("an impossible rank", &t);
    }
    t = good;
    t.dim[1] = -4;
    refused("a size below 0", &t);
    t = good;
    for (int i = 0; i < 4; i++) t.dim[i] = INT64_C(1) << 33;
    refused("more elements than can be counted", &t);
    t = good;
    t.dtype = 99;
    refused("no type of elements", &t);
    t = good;
    t.bytes = 0;
    list[0] = &t;
    ok(!cnr_run_tensors(model, list, 1, &out, 1, &err), "bytes that nobody counted: %s", err.text);
    cnr_session_close(session);
    cnr_plan_release(plan);
    cnr_close(lab_rt);
    return done();
}
