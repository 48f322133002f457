/* Epilogue chains as source: each operator's own OpenCL expression, one after another. */
#include "support.h"

#include <stdarg.h>
#include <stdio.h>

#define MOST_FORMULA 768

static int letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

int ocl_mentions(const char *text, char word) {
    for (const char *p = text; *p; p++)
        if (*p == word && !letter(p[1]) && (p == text || (!letter(p[-1]) && p[-1] != '.')))
            return 1;
    return 0;
}

static int formula_of(const cnr_node *node, char formula[MOST_FORMULA]) {
    if (!(node->desc->flags & CNR_OP_ELEMENTWISE) || !CNR_HAS(node->desc, expression)) return 0;
    const int32_t n = node->desc->expression(node, formula, MOST_FORMULA);
    return n > 0 && n < MOST_FORMULA;
}

/* Without an operand, the formula is of x alone, or it may be of y where x is the only input. */
static int has_formula(const cnr_epilogue *e) {
    char formula[MOST_FORMULA];
    if (!formula_of(e->node, formula)) return 0;
    return e->operand >= 0 ||
           (e->chain_port == 0 && (!ocl_mentions(formula, 'y') || e->node->n_inputs == 1));
}

int32_t ocl_chain_accepts(const cnr_node *node, int32_t rank, const int64_t *dim) {
    return cnr_chain_length(node, rank, dim, OCL_MAX_CHAIN, has_formula);
}

typedef struct text {
    char *at;
    size_t n, room;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...) {
    va_list args;
    if (t->n >= t->room) return;
    va_start(args, format);
    const int n = vsnprintf(t->at + t->n, t->room - t->n, format, args);
    va_end(args);
    t->n = n < 0 ? t->room : t->n + (size_t)n;
}

cnr_status ocl_chain_plan(const cnr_node *node, ocl_chain *chain, char head[OCL_HEAD_BYTES],
                          cnr_error *err) {
    text t = {head, 0, OCL_HEAD_BYTES};
    char formula[MOST_FORMULA];
    chain->n = 0;
    for (int32_t i = 0; i < node->n_epilogue && i < OCL_MAX_CHAIN; i++)
        if (node->epilogue[i]->operand >= 0)
            chain->operand[chain->n++] = node->epilogue[i]->operand;
    add(&t, "#line 1 \"epilogue\"\n%s#define CHAIN_PARAMETERS ",
        node->n_epilogue == 0 ? "#define CHAIN_NONE\n" : "");
    for (int32_t i = 0; i < chain->n; i++) add(&t, ", __global const float *e%d, int e%d_at", i, i);
    add(&t, "\n#define CHAIN_PASS ");
    for (int32_t i = 0; i < chain->n; i++) add(&t, ", e%d, e%d_at", i, i);
    add(&t, "\nfloat chain(float v, int at CHAIN_PARAMETERS) {\n");
    for (int32_t i = 0, k = 0; i < node->n_epilogue && i < OCL_MAX_CHAIN; i++) {
        const cnr_epilogue *e = node->epilogue[i];
        const char mine = e->chain_port == 0 ? 'x' : 'y', other = e->chain_port == 0 ? 'y' : 'x';
        if (!formula_of(e->node, formula))
            return ocl_host->fail(err, CNR_E_STATE, node->name, "no formula for \"%s\"",
                                  e->node->desc->name);
        add(&t, "    { const float %c = v", mine);
        if (e->operand >= 0) {
            add(&t, ", %c = e%d[e%d_at + at]", other, k, k);
            k++;
        } else if (ocl_mentions(formula, other)) add(&t, ", %c = v", other);
        add(&t, "; v = %s; }\n", formula);
    }
    add(&t, "    return v;\n}\n");
    if (t.n >= t.room)
        return ocl_host->fail(err, CNR_E_LIMIT, node->name, "its epilogue is too long a source");
    return CNR_OK;
}

void ocl_chain_args(ocl_call *call, const ocl_chain *chain, const cnr_node *node) {
    for (int32_t i = 0; i < chain->n; i++)
        ocl_arg_buffer(call, &node->inputs[chain->operand[i]]->mem);
}
