/* Every operator with hostile attributes on hostile inputs: built, planned and run, or refused with
 * words. CNNRUN_ATTRIBUTES=8000 sets how many nodes over all operators (600). */
#include "initial/initial.h"
#include "tests/fuzz/targets.h"
#include "tests/hostile/each.h"
#include <float.h>
#include <math.h>

enum { MOST_PORTS = 8, MOST_ATTRS = 48, LIST = 9 };

/* A whole number, often an extreme. */
static int64_t number(void) {
    static const int64_t nasty[] = {0,
                                    1,
                                    2,
                                    3,
                                    -1,
                                    -2,
                                    7,
                                    16,
                                    255,
                                    65536,
                                    -65536,
                                    INT32_MAX,
                                    (int64_t)1 << 31,
                                    (int64_t)1 << 40,
                                    INT64_MAX,
                                    INT64_MIN};
    const size_t n = sizeof nasty / sizeof *nasty;
    return nasty[each_dice(each_dice(3) ? 7 : n)]; /* mostly small, so that some are taken */
}

/* A float, often an extreme. */
static double real(void) {
    static const double nasty[] = {0,     1,       0.5, -1,       2,        1e-300,
                                   1e300, DBL_MAX, NAN, INFINITY, -INFINITY};
    return nasty[each_dice(each_dice(3) ? 5 : sizeof nasty / sizeof *nasty)];
}

/* ---- attributes ---- */

/* Attributes that were drawn. */
typedef struct drawn {
    cnr_attr attrs[MOST_ATTRS];
    const cnr_attr *list[MOST_ATTRS];
    int64_t ints[MOST_ATTRS][LIST];
    double floats[MOST_ATTRS][LIST];
    int32_t n;
} drawn;

/* A text, often a wrong one. */
static const char *text_of(const cnr_attr_spec *row) {
    static const char *const nasty[] = {"",         "x",      "%s%n", "\033]52;c;eA==\007",
                                        "\xff\xfe", "i,j,k->"};
    int32_t n = 0;
    while (row->choices && row->choices[n]) n++;
    if (n && each_dice(4)) return row->choices[each_dice((uint64_t)n)];
    return nasty[each_dice(sizeof nasty / sizeof *nasty)];
}

/* Draws one attribute. */
static void draw_attr(drawn *d, const cnr_attr_spec *row) {
    cnr_attr *a = &d->attrs[d->n];
    memset(a, 0, sizeof *a);
    a->name = row->name;
    a->set = 1;
    a->type = each_dice(20) ? row->type : 1 + (int32_t)each_dice(8);
    a->i = number();
    a->f = real();
    a->s = text_of(row);
    a->n = (int64_t)each_dice(LIST + 1);
    for (int k = 0; k < LIST; k++) {
        d->ints[d->n][k] = number();
        d->floats[d->n][k] = real();
    }
    a->ints = d->ints[d->n];
    a->floats = d->floats[d->n];
    d->list[d->n++] = a;
}

/* Draws attributes of an operator. */
static void draw_attrs(drawn *d, const cnr_op *op) {
    for (int32_t i = 0; i < op->n_attrs && d->n < MOST_ATTRS; i++) {
        cnr_attr_spec room;
        const cnr_attr_spec *row = cnri_spec_at(op->attrs, op->attr_spec_size, i, &room);
        if (row->flags & CNR_ATTR_REQUIRED ? each_dice(20) : each_dice(3) == 0) draw_attr(d, row);
    }
}

/* ---- inputs ---- */

/* Draws the type of *t; constant: a small one, with data. */
static void draw_type(cnr_tensor *t, int constant) {
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 16, 0};
    static const int32_t types[] = {CNR_f32, CNR_f64, CNR_f16,  CNR_i64, CNR_i32,
                                    CNR_u8,  CNR_i8,  CNR_bool, CNR_bf16};
    memset(t, 0, sizeof *t);
    t->size = sizeof *t;
    t->dtype = each_dice(5) ? (constant && each_dice(2) ? CNR_i64 : CNR_f32)
                            : types[each_dice(sizeof types / sizeof *types)];
    t->rank = constant ? (int32_t)each_dice(3) : each_dice(3) ? 4 : (int32_t)each_dice(7);
    for (int32_t i = 0; i < t->rank; i++)
        t->dim[i] = sizes[each_dice(each_dice(6) ? 7 : sizeof sizes / sizeof *sizes)];
    t->bytes = cnr_dense_bytes(t);
}

/* Draws an input. */
static cnr_value draw_input(cnr_graph *g, const cnr_port *port, int32_t i) {
    cnr_tensor t;
    char name[16];
    int64_t data[64 * 64];
    const int constant = port->flags & CNR_PORT_CONST || each_dice(8) == 0;
    if (port->flags & CNR_PORT_PARAMETER && each_dice(4)) return -1;
    if (port->flags & CNR_PORT_OPTIONAL && each_dice(2)) return -1;
    snprintf(name, sizeof name, "in%d", (int)i);
    draw_type(&t, constant);
    if (!constant || t.bytes > sizeof data) return cnri_host.graph_input(g, name, &t);
    memset(data, 0, sizeof data);
    for (int64_t k = 0; k < cnr_count(&t); k++)
        cnri_element_set(t.dtype, data, k, (double)number());
    t.data = data;
    return cnri_host.graph_constant(g, name, &t);
}

/* Draws all inputs; returns how many. */
static int32_t draw_inputs(cnr_graph *g, const cnr_op *op, cnr_value *in) {
    int32_t n = 0;
    for (int32_t i = 0; i < op->n_inputs && n < MOST_PORTS; i++) {
        cnr_port port = {0};
        memcpy(&port, (const char *)op->inputs + (size_t)i * op->port_size,
               op->port_size < sizeof port ? op->port_size : sizeof port);
        const int64_t many = port.flags & CNR_PORT_VARIADIC ? (int64_t)each_dice(4) : 1;
        for (int64_t k = 0; k < many && n < MOST_PORTS; k++, n++) in[n] = draw_input(g, &port, n);
    }
    return n;
}

/* ---- one node ---- */

/* 1: it ran. Whatever fails says why. */
static int run_graph(cnr_graph *g, cnr_runtime *rt) {
    cnr_model *model = NULL;
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor types[MOST_PORTS];
    const cnr_tensor *in[MOST_PORTS], *out[4];
    cnr_status status = cnri_model_from_graph(rt, g, NULL, &model, &err);
    if (status) return fuzz_refused(status, &err);
    const int32_t n = cnr_input_count(model), n_out = cnr_output_count(model);
    for (int32_t i = 0; i < n; i++) {
        types[i] = *cnr_input_type(model, i);
        types[i].bytes = cnr_dense_bytes(&types[i]);
        types[i].data = cnri_alloc_zero((size_t)types[i].bytes + 1);
        in[i] = &types[i];
    }
    status = cnr_run_tensors(model, in, n, out, n_out < 4 ? n_out : 4, &err);
    for (int32_t i = 0; i < n; i++) cnri_free(types[i].data);
    const int good = status ? fuzz_refused(status, &err) : 1;
    cnr_release(model);
    return good;
}

/* Case i: an operator with drawn attributes and shapes is put in a graph and used; returns 1 if it
 * was taken, else 0 (fuzz.why). */
static int one(void *arg, int i) {
    static cnr_runtime *rt; /* a runtime is not for the children of its process */
    const int32_t ops = cnri_descriptor_count(CNR_KIND_OPERATOR);
    const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i % ops);
    const char *const *dirs = arg;
    cnr_open_options options = {.size = sizeof options,
                                .plugin_dirs = dirs,
                                .threads = 1,
                                .no_default_dirs = 1,
                                .log = fuzz_silence};
    cnr_error err = CNR_ERROR_INIT;
    cnr_value in[MOST_PORTS], out[MOST_PORTS] = {0};
    drawn *d = calloc(1, sizeof *d);
    if (!d || (!rt && cnr_open(&rt, &options, &err))) _exit(4);
    each_state = (uint64_t)i * 77 + 1;
    cnr_graph *g = cnri_graph_new(op->name);
    if (!g) _exit(4);
    draw_attrs(d, op);
    const int32_t n = draw_inputs(g, op, in);
    const int32_t n_out = op->n_outputs < 1 ? 1 : op->n_outputs < 4 ? op->n_outputs : 4;
    cnr_status status =
        cnri_host.graph_node(g, op->name, "node", "test:1", in, n, d->list, d->n, out, n_out);
    for (int32_t k = 0; k < n_out && !status; k++)
        if (out[k] >= 0) status = cnri_host.graph_output(g, out[k], NULL);
    free(d);
    status = cnri_graph_status(g, false, &err);
    if (!status) status = cnri_fill_random(g, 1, &err);
    if (!status) return run_graph(g, rt);
    cnri_graph_free(g);
    return fuzz_refused(status, &err);
}

int main(void) {
    static const char *const dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const char *wanted = getenv("CNNRUN_ATTRIBUTES");
    const int many = wanted ? atoi(wanted) : 600;
    const each e = {.one = one, .arg = (void *)dirs, .addresses = (uint64_t)2 << 30};
    if (!fuzz_open(CNRT_BUILD_DIR "/plugins")) return 1;
    if (cnri_descriptor_count(CNR_KIND_OPERATOR) == 0) {
        skip("attributes", "no operators");
    } else {
        const each_result r = each_run(&e, many);
        ok(!r.bad, "%d nodes of %d operators, %d ran", many,
           (int)cnri_descriptor_count(CNR_KIND_OPERATOR), r.taken);
        ok(r.taken > many / 50, "some do run");
    }
    fuzz_close();
    return done();
}
