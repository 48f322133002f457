/* Epilogue chains as source: each operator's own OpenCL expression, one after another. */
#include "support.h"

#define MOST_FORMULA 768

/* 1 for letters, digits and _. */
static int letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

int ocl_mentions(const char *text, char word) {
    for (const char *p = text; *p; p++)
        if (*p == word && !letter(p[1]) && (p == text || (!letter(p[-1]) && p[-1] != '.')))
            return 1;
    return 0;
}

/* The operator's expression in C. 0: it has none. */
static int formula_of(const cnr_node *node, char formula[MOST_FORMULA]) {
    if (!(node->desc->flags & CNR_OP_ELEMENTWISE) || !CNR_HAS(node->desc, expression)) return 0;
    const int32_t n = node->desc->expression(node, formula, MOST_FORMULA);
    return n > 0 && n < MOST_FORMULA;
}

/* 1: the link has a formula that a kernel can compute. Without an operand it is of x alone, or it
 * may be of y where x is the only input. */
static int has_formula(const cnr_epilogue *e) {
    char formula[MOST_FORMULA];
    if (!formula_of(e->node, formula)) return 0;
    return e->operand >= 0 ||
           (e->chain_port == 0 && (!ocl_mentions(formula, 'y') || e->node->n_inputs == 1));
}

/* True if the link's operand is broadcast along one stretch of axes to a result of that shape. */
static int is_broadcast_link(const cnr_node *node, const cnr_epilogue *e, int32_t rank,
                             const int64_t *dim) {
    const cnr_tensor *t = e->operand < 0 ? NULL : node->inputs[e->operand];
    const cnr_tensor *y = e->node->outputs[0];
    int64_t each, n;
    if (!t || !cnr_is_plain(t, 1u << CNR_f32) || t->block > 1 || e->node->n_inputs != 2) return 0;
    if (e->chain_port < 0 || e->chain_port > 1 || e->node->n_outputs != 1) return 0;
    if (!cnr_is_plain(y, 1u << CNR_f32) || y->block > 1 || y->rank != rank ||
        memcmp(y->dim, dim, (size_t)rank * sizeof *dim) != 0)
        return 0;
    return shape_stretch(t, rank, dim, &each, &n) && each < INT32_MAX && n < INT32_MAX;
}

int32_t ocl_chain_accepts(const cnr_node *node, int32_t rank, const int64_t *dim) {
    int32_t n = 0;
    for (; n < node->n_epilogue && n < OCL_MAX_CHAIN; n++) {
        const cnr_epilogue *e = node->epilogue[n];
        if (!ocl_host->link_fits(e, rank, dim) && !is_broadcast_link(node, e, rank, dim)) break;
        if (!has_formula(e)) break;
    }
    return n;
}

/* Adds the index of an operand's element for an output element. */
static void plan_operand(ocl_plan *p, const cnr_tensor *t, char name, int32_t k) {
    const cnr_tensor *y = p->node->outputs[0];
    int64_t each = 1, n = 0;
    ocl_plan_head(p, ", %c = e%d[e%d_at + ", name, k, k);
    if (cnr_count(t) == cnr_count(y)) ocl_plan_head(p, "at]");
    else if (!shape_stretch(t, y->rank, y->dim, &each, &n) || n == 1) ocl_plan_head(p, "0]");
    else if (each == 1) ocl_plan_head(p, "at %% %d]", (int)n);
    else ocl_plan_head(p, "at / %d %% %d]", (int)each, (int)n);
}

void ocl_plan_chain(ocl_plan *p, ocl_chain *chain) {
    const cnr_node *node = p->node;
    char formula[MOST_FORMULA];
    p->head[0] = 0;
    chain->n = 0;
    for (int32_t i = 0; i < node->n_epilogue && i < OCL_MAX_CHAIN; i++)
        if (node->epilogue[i]->operand >= 0)
            chain->operand[chain->n++] = node->epilogue[i]->operand;
    ocl_plan_head(p, "#line 1 \"epilogue\"\n%s#define CHAIN_PARAMETERS ",
                  node->n_epilogue == 0 ? "#define CHAIN_NONE\n" : "");
    for (int32_t i = 0; i < chain->n; i++)
        ocl_plan_head(p, ", __global const float *e%d, int e%d_at", i, i);
    ocl_plan_head(p, "\n#define CHAIN_PASS ");
    for (int32_t i = 0; i < chain->n; i++) ocl_plan_head(p, ", e%d, e%d_at", i, i);
    ocl_plan_head(p, "\nfloat chain(float v, int at CHAIN_PARAMETERS) {\n");
    for (int32_t i = 0, k = 0; i < node->n_epilogue && i < OCL_MAX_CHAIN; i++) {
        const cnr_epilogue *e = node->epilogue[i];
        const char mine = e->chain_port == 0 ? 'x' : 'y', other = e->chain_port == 0 ? 'y' : 'x';
        if (!formula_of(e->node, formula)) {
            if (p->status == CNR_OK)
                p->status = ocl_host->fail(p->err, CNR_E_STATE, node->name, "no formula for \"%s\"",
                                           e->node->desc->name);
            return;
        }
        ocl_plan_head(p, "    { const float %c = v", mine);
        if (e->operand >= 0) {
            plan_operand(p, node->inputs[e->operand], other, k);
            k++;
        } else if (ocl_mentions(formula, other)) ocl_plan_head(p, ", %c = v", other);
        ocl_plan_head(p, "; v = %s; }\n", formula);
    }
    ocl_plan_head(p, "    return v;\n}\n");
}

void ocl_chain_args(ocl_call *call, const ocl_chain *chain, const cnr_node *node) {
    for (int32_t i = 0; i < chain->n; i++)
        ocl_arg_buffer(call, &node->inputs[chain->operand[i]]->mem);
}
