/* A machine of its own as an object: scripts and governors ask it for the cost of work and play
 * scenes on it. */
#include "sim.h"
#include <math.h>

enum { TAKES, SET, CLOCK, LOOK, PASS };

static const char *const methods[] = {
    [TAKES] =
        "takes(unit, operator, work) -> seconds, joules", /* flops, products, bytes, is a part */
    [SET] = "set(clock, hz)",                             /* clocks from 1 */
    [CLOCK] = "clock(clock) -> name, feeds, steps",
    [LOOK] = "look() -> seconds, joules, degrees, held, clocks", /* hz and busy seconds of each */
    [PASS] = "pass(seconds) -> ends", /* of passes: begin, end, joules until the end */
};

/* Creates a machine from the board in the option. */
static cnr_status create(const cnr_attr *const *list, int32_t n, void **state, cnr_error *err) {
    if (n != 1 || strcmp(list[0]->name, "board") != 0 || list[0]->type != CNR_ATTR_STRING)
        return sim_host->fail(err, CNR_E_ARG, "simulated",
                              "want the option board, lines of path=value");
    return sim_machine_of(list[0]->s, (sim_machine **)state, err);
}

static void destroy(void *state) { sim_machine_free(state); }

/* ---- arguments and results ---- */

/* Element i of a tensor as a number; NAN: there is none. */
static double number_of(const cnr_tensor *t, int32_t i) {
    double value = NAN;
    if (t->rank > 1 || i >= (t->rank ? t->dim[0] : 1)) return NAN;
    sim_host->elements_read((int32_t)t->dtype, t->data, i, 1, 1, CNR_f64, &value);
    return value;
}

/* Index of the entry with this name in a list of entries of `bytes` bytes that start with their
 * name; -1: none. */
static int32_t named(const cnr_tensor *t, const void *list, int32_t n, size_t bytes) {
    for (int32_t i = 0; i < n && t->dtype == CNR_u8 && t->rank == 1; i++) {
        const char *name = (const char *)list + (size_t)i * bytes;
        if (strlen(name) == (size_t)t->dim[0] && memcmp(name, t->data, strlen(name)) == 0) return i;
    }
    return -1;
}

/* Gives a result: a copy of n numbers (f64) or bytes (u8) in one dimension, or with rank 0 one
 * number. CNR_E_MEMORY. */
static cnr_status give(cnr_tensor *t, uint32_t dtype, int32_t rank, const void *data, int64_t n,
                       cnr_error *err) {
    const size_t bytes = (size_t)n * (dtype == CNR_u8 ? 1 : sizeof(double));
    t->dtype = dtype;
    t->rank = rank;
    t->dim[0] = n;
    t->data = sim_host->alloc(bytes ? bytes : 1);
    if (!t->data) return sim_host->fail(err, CNR_E_MEMORY, "simulated", "out of memory");
    if (bytes) memcpy(t->data, data, bytes);
    return CNR_OK;
}

/* Gives n results, one scalar f64 each, in memory that the host frees. */
static cnr_status give_numbers(cnr_tensor *const *out, int32_t n, const double *values,
                               cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n && !status; i++)
        status = give(out[i], CNR_f64, 0, &values[i], 1, err);
    return status;
}

/* Gives a text as a u8 tensor, in memory that the host frees. */
static cnr_status give_text(cnr_tensor *t, const char *text, cnr_error *err) {
    return give(t, CNR_u8, 1, text, (int64_t)strlen(text), err);
}

/* ---- methods ---- */

/* Method takes: seconds and joules of some work on a unit. */
static cnr_status takes(sim_machine *m, const cnr_tensor *const *in, cnr_tensor *const *out,
                        cnr_error *err) {
    char op[64] = "";
    double got[2];
    const int32_t unit = named(in[0], m->units, m->n_units, sizeof *m->units);
    if (unit < 0)
        return sim_host->fail(err, CNR_E_NOT_FOUND, "takes", "the board has no such unit");
    if (in[1]->dtype != CNR_u8 || in[1]->rank != 1 || in[1]->dim[0] >= (int64_t)sizeof op)
        return sim_host->fail(err, CNR_E_ARG, "takes", "want the name of an operator");
    memcpy(op, in[1]->data, (size_t)in[1]->dim[0]);
    const sim_work work = {.op = op,
                           .flops = number_of(in[2], 0),
                           .products = number_of(in[2], 1),
                           .bytes = number_of(in[2], 2),
                           .part = number_of(in[2], 3) > 0};
    sim_takes(m, unit, &work, &got[0], &got[1]);
    return give_numbers(out, 2, got, err);
}

/* Method clock: name, devices and steps of a clock. */
static cnr_status tell_clock(const sim_clock *c, cnr_tensor *const *out, cnr_error *err) {
    cnr_status status = give_text(out[0], c->name, err);
    if (!status) status = give_text(out[1], c->feeds, err);
    if (!status) status = give(out[2], CNR_f64, 1, c->steps, 2 * (int64_t)c->n, err);
    for (int32_t i = 0; i < c->n && !status; i++) ((double *)out[2]->data)[i] = c->steps[i].hz;
    out[2]->dim[0] = c->n;
    return status;
}

/* Method look: time, joules, temperature and clocks. */
static cnr_status look(sim_machine *m, cnr_tensor *const *out, cnr_error *err) {
    const double values[] = {(double)m->now * 1e-9, sim_all_joules(m, m->now),
                             m->ohms > 0 ? m->degrees : (double)NAN, m->scene.held};
    cnr_status status = give_numbers(out, 4, values, err);
    double *each = sim_host->alloc((size_t)(2 * m->n_clocks + 1) * sizeof *each);
    for (int32_t i = 0; i < m->n_clocks && each; i++) {
        each[2 * i] = sim_step_of(&m->clocks[i])->hz;
        each[2 * i + 1] = m->clocks[i].busy;
        m->clocks[i].busy = 0;
    }
    if (!status)
        status = each ? give(out[4], CNR_f64, 1, each, 2 * m->n_clocks, err)
                      : sim_host->fail(err, CNR_E_MEMORY, "look", "out of memory");
    sim_host->free(each);
    return status;
}

/* Implements cnr_object.call: calls method number `method` of the simulated machine. */
static cnr_status call(void *state, int32_t method, const cnr_tensor *const *in, int32_t n_in,
                       cnr_tensor *const *out, int32_t n_out, cnr_error *err) {
    static const int32_t wanted[] = {[TAKES] = 3, [SET] = 2, [CLOCK] = 1, [PASS] = 1};
    sim_machine *m = state;
    (void)n_out;
    if (n_in != wanted[method])
        return sim_host->fail(err, CNR_E_ARG, methods[method], "not so many arguments");
    const double first = n_in ? number_of(in[0], 0) : 0;
    if ((method == SET || method == CLOCK) && !(first >= 1 && first <= m->n_clocks))
        return sim_host->fail(err, CNR_E_NOT_FOUND, methods[method], "there are %d clocks",
                              (int)m->n_clocks);
    sim_clock *c = first >= 1 && first <= m->n_clocks ? &m->clocks[(int32_t)first - 1] : NULL;
    switch (method) {
    case TAKES: return takes(m, in, out, err);
    case SET: sim_set(c, (uint64_t)fmin(fmax(number_of(in[1], 0), 0) + 0.5, 1e15)); return CNR_OK;
    case CLOCK: return tell_clock(c, out, err);
    case LOOK: return look(m, out, err);
    default: m->scene.n_ends = 0;
    }
    const cnr_status status = sim_scene_pass(m, first, err);
    return status ? status
                  : give(out[0], CNR_f64, 1, m->scene.ends, 3 * (int64_t)m->scene.n_ends, err);
}

const cnr_object sim_object = {.size = sizeof(cnr_object),
                               .n_methods = sizeof methods / sizeof methods[0],
                               .name = "simulated",
                               .summary = "A machine by itself that a board describes, or a scene",
                               .methods = methods,
                               .create = create,
                               .call = call,
                               .destroy = destroy};
