/* Fills weights with random numbers by their initialisers. */
#include "initial/spread.h"
#include "run/run.h"

/* Start of the random numbers of one weight, from the seed and its name. */
static uint64_t stream_of(uint64_t seed, const char *name) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return h ^ seed * UINT64_C(0xd6e8feb86659fd93);
}

/* Draws one element by the weight's kind of initialisation; `deviation` is that of He's. *state
 * advances. */
static double sample(const cnr_init *init, double deviation, uint64_t *state) {
    if (init->kind == CNR_INIT_ONE) return 1;
    if (init->kind == CNR_INIT_CONST) return init->value;
    if (init->kind == CNR_INIT_HE) return deviation * cnri_random_normal(state);
    return 0;
}

/* Allocates the data of one weight and fills it; its type is f32, or converted from it. */
static cnr_status fill_one(cnri_value *v, uint64_t seed, double deviation, cnr_error *err) {
    cnr_tensor *t = v->type;
    const int64_t n = cnr_count(t);
    const uint64_t bytes = cnr_dense_bytes(t);
    void *own = n >= 0 && bytes <= SIZE_MAX / 2 ? cnri_alloc_zero(bytes ? bytes : 1) : NULL;
    if (!own) return cnri_out_of_memory(err, v->name);
    uint64_t state = stream_of(seed, v->name);
    for (int64_t i = 0; i < n; i++)
        if (!cnri_element_set(t->dtype, own, i, sample(&v->init, deviation, &state))) {
            cnri_free(own);
            return cnri_fail(err, CNR_E_UNSUPPORTED, v->name,
                             "weights of type %s can't be filled at random",
                             cnr_dtype_name(t->dtype));
        }
    t->data = own;
    t->bytes = bytes;
    t->flags |= CNR_TENSOR_CONST;
    v->unfilled = v->borrowed = false;
    return CNR_OK;
}

cnr_status cnri_fill_random(cnr_graph *g, uint64_t seed, cnr_error *err) {
    double *deviation = cnri_alloc_zero(((size_t)g->values.n + 1) * sizeof *deviation);
    if (!deviation) return cnri_out_of_memory(err, g->name);
    /* weights that have data decide how the others are scaled */
    cnr_status status = cnri_graph_verify_weights(g, NULL, false, 0, err);
    if (!status) status = cnri_spread_find(g, seed, deviation, err);
    for (int32_t k = 0; k < g->values.n && !status; k++)
        if (g->values.at[k].unfilled) status = fill_one(&g->values.at[k], seed, deviation[k], err);
    cnri_free(deviation);
    return status;
}

void cnri_initial_register(void) { cnri_random_fill_register(cnri_fill_random); }
