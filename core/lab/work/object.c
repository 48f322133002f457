/* Objects of plugins in C: made by name, with methods called by name. */
#include "run/run.h"
#include <string.h>

enum { MAX_OPTIONS = 64, MAX_RESULTS = 8 };

/* An object of a plugin, and its last results. */
struct cnr_instance {
    const cnr_object *about;
    void *state;
    cnr_tensor results[MAX_RESULTS];
};

/* Frees the last results. */
static void forget_results(cnr_instance *o) {
    for (int32_t i = 0; i < MAX_RESULTS; i++) {
        cnri_free(o->results[i].data);
        o->results[i] = (cnr_tensor){.size = sizeof o->results[i]};
    }
}

/* ---- making ---- */

/* Options of an object, read from text. */
typedef struct options {
    cnr_attr attrs[MAX_OPTIONS];
    const cnr_attr *list[MAX_OPTIONS];
    int32_t n;
    CNRI_VEC(void *) blocks; /* memory of names and lists */
} options;

/* Keeps a block to be freed with the options; NULL: out of memory. */
static void *keep(options *o, void *block) {
    void **slot = block ? cnri_push(&o->blocks) : NULL;
    if (slot) *slot = block;
    else cnri_free(block);
    return slot ? block : NULL;
}

/* Reads "1,2,3"; false unless all of the text is numbers. */
static bool read_numbers(const char *text, double *out, int64_t *n) {
    *n = 0;
    for (const char *p = text; cnri_parse_double(p, &p, &out[*n]); p++) {
        ++*n;
        if (*p != ',') return *p == 0;
    }
    return false;
}

/* Reads a value into *a as true or false, whole number, number, numbers, or else text, which is not
 * copied. */
static cnr_status read_value(options *o, const char *text, cnr_attr *a, cnr_error *err) {
    double *numbers = keep(o, cnri_alloc((strlen(text) + 1) * sizeof *numbers));
    int64_t n;
    if (!numbers) return cnri_out_of_memory(err, a->name);
    a->s = text;
    a->type = CNR_ATTR_STRING;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        a->type = CNR_ATTR_BOOL;
        a->i = *text == 't';
    } else if (read_numbers(text, numbers, &n)) {
        a->type = n > 1                         ? CNR_ATTR_FLOATS
                  : cnri_parse_int(text, &a->i) ? CNR_ATTR_INT
                                                : CNR_ATTR_FLOAT;
        a->f = numbers[0];
        a->floats = numbers;
        a->n = n > 1 ? n : 0;
    }
    return CNR_OK;
}

/* Reads options of the form name=value into o, which borrows the words. CNR_E_ARG: another form, or
 * too many. */
static cnr_status read_options(const char *const *words, options *o, cnr_error *err) {
    for (; words && *words; words++) {
        const char *value = strchr(*words, '=');
        if (!value || value == *words || o->n == MAX_OPTIONS)
            return cnri_fail(err, CNR_E_ARG, *words, "want name=value, at most %d of them",
                             MAX_OPTIONS);
        char *name = keep(o, cnri_strdup(*words));
        if (!name) return cnri_out_of_memory(err, *words);
        name[value - *words] = 0;
        cnr_attr *a = &o->attrs[o->n];
        *a = (cnr_attr){.name = name, .set = 1};
        o->list[o->n++] = a;
        const cnr_status status = read_value(o, value + 1, a, err);
        if (status) return status;
    }
    return CNR_OK;
}

cnr_status cnr_object_make(cnr_runtime *rt, const char *name, const char *const *words,
                           cnr_instance **out, cnr_error *err) {
    options o = {.n = 0};
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "name", name, "out", out, NULL);
    if (status) return status;
    const cnr_object *about = cnri_descriptor_find(CNR_KIND_OBJECT, name);
    if (!about) return cnri_fail(err, CNR_E_NOT_FOUND, name, "no plugin brings such an object");
    cnr_instance *made = cnri_alloc_zero(sizeof *made);
    status = made ? read_options(words, &o, err) : cnri_out_of_memory(err, name);
    if (!status)
        status =
            cnri_plugin_status(err, about->create(o.list, o.n, &made->state, err), name, "making");
    if (!status) {
        made->about = about;
        forget_results(made);
        *out = made;
    } else {
        cnri_free(made);
    }
    for (int32_t i = 0; i < o.blocks.n; i++) cnri_free(o.blocks.at[i]);
    cnri_vec_free(&o.blocks);
    return status;
}

void cnr_object_free(cnr_instance *o) {
    if (!o) return;
    forget_results(o);
    o->about->destroy(o->state);
    cnri_free(o);
}

/* ---- calling ---- */

/* Index of the method, -1: none. *results: number of words behind the arrow in its signature. */
static int32_t find_method(const cnr_object *about, const char *name, int32_t *results) {
    const size_t n = strlen(name);
    for (int32_t i = 0; i < about->n_methods; i++) {
        const char *text = about->methods[i], *arrow = strstr(text, "->");
        if (strncmp(text, name, n) != 0 || (text[n] != '(' && text[n] != 0)) continue;
        *results = arrow != NULL;
        for (; arrow && *arrow; arrow++) *results += *arrow == ',';
        return i;
    }
    return -1;
}

/* Checks that all inputs of a call have data. */
static cnr_status check_inputs(const cnr_tensor *const *in, int32_t n, cnr_error *err) {
    for (int32_t i = 0; i < n; i++) {
        const cnr_status status = in[i] ? cnri_tensor_check(in[i], "input", err)
                                        : cnri_require_arguments(err, "input", in[i], NULL);
        if (status) return status;
        if (!in[i]->data && cnr_count(in[i]) > 0)
            return cnri_fail(err, CNR_E_ARG, "input", "has no data");
    }
    return CNR_OK;
}

cnr_status cnr_object_call(cnr_instance *o, const char *name, const cnr_tensor *const *inputs,
                           int32_t n_inputs, const cnr_tensor **outputs, int32_t n_outputs,
                           cnr_error *err) {
    cnr_tensor *out[MAX_RESULTS];
    int32_t results;
    cnr_status status = cnri_require_arguments(err, "object", o, "method", name, NULL);
    if (!status && n_inputs > 0) status = cnri_require_arguments(err, "inputs", inputs, NULL);
    if (!status && n_outputs > 0) status = cnri_require_arguments(err, "outputs", outputs, NULL);
    if (!status) status = check_inputs(inputs, n_inputs, err);
    if (status) return status;
    const int32_t method = find_method(o->about, name, &results);
    if (method < 0)
        return cnri_fail(err, CNR_E_NOT_FOUND, name, "'%s' has no such method", o->about->name);
    if (n_outputs < 0 || n_outputs > results || results > MAX_RESULTS)
        return cnri_fail(err, CNR_E_ARG, name, "gives %d results, not %d", (int)results,
                         (int)n_outputs);
    forget_results(o);
    for (int32_t i = 0; i < results; i++) out[i] = &o->results[i];
    status =
        cnri_plugin_status(err,
                           o->about->call(o->state, method, inputs, n_inputs, out, results, err),
                           o->about->name, name);
    for (int32_t i = 0; i < results && !status; i++) {
        cnr_tensor *t = out[i];
        const uint64_t bytes =
            t->rank < 0 || t->rank > CNR_MAX_RANK ? UINT64_MAX : cnr_dense_bytes(t);
        if (bytes == UINT64_MAX || (bytes > 0 && !t->data))
            status =
                cnri_fail(err, CNR_E_STATE, name, "'%s' gave no proper tensor", o->about->name);
        else t->bytes = bytes;
    }
    if (status) forget_results(o);
    for (int32_t i = 0; i < n_outputs; i++) outputs[i] = status ? NULL : out[i];
    return status;
}
