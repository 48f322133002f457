/* Runs kernels on nodes that a test chooses, as core/check/judge runs them on nodes that it draws:
 * in guarded, poisoned memory, whole, in ranges and in place, compared with the reference within
 * bounds that follow from the numbers; on devices with host memory byte for byte the same, however
 * many threads.
 *
 *     kernel_check(kernels, n_kernels, devices, n_devices, "", "conv", "pads=1", "relu; add", 3,
 * inputs);
 *
 * The chain's operands are drawn; "~sub" makes what came before the second operand. */
#ifndef KERNELCALL_H
#define KERNELCALL_H

#include "judge/judge.h"
#include "plugins/ops-std/opcall.h"

/* Exactly this many bytes, 64-byte aligned, so that a sanitiser sees the first one past them. */
OP_UNUSED void *kernel_memory(uint64_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 1)) exit(1);
    memset(p, 0xff, bytes);
    return op_keep(p);
}

/* What plugin `name` exports; NULL: it is not there, and `why` says so. */
OP_UNUSED const cnr_plugin *kernel_plugin(const char *name, const char **why) {
    char path[1024];
    cnr_plugin_query_fn query = NULL;
    snprintf(path, sizeof path, CNRT_BUILD_DIR "/plugins/%s.so", name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) *(void **)&query = dlsym(library, "cnr_plugin_query");
    *why = library ? "no cnr_plugin_query" : dlerror();
    return query ? query(CNR_ABI) : NULL;
}

/* Attributes by text, outputs inferred and with room. 0: op_state.problem says why. */
static int kernel_node(cnr_node *node, cnr_attr ***attrs, const char *text, const cnr_tensor *first,
                       cnr_tensor *out) {
    cnr_attr room[32];
    const cnr_attr *given[32];
    cnr_error err = CNR_ERROR_INIT;
    const cnr_op *op = node->desc;
    const int32_t n = op_parse(op, text, room, 32);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    if (cnri_attrs_resolve(op->attrs, op->attr_spec_size, op->n_attrs, given, n,
                           first && first->rank >= 2 ? first->rank - 2 : -1, op_problem, NULL,
                           attrs))
        return 0;
    node->attrs = (const cnr_attr *const *)*attrs;
    *out = (cnr_tensor){.size = sizeof *out};
    if (op->infer(node, &out, &err) != CNR_OK) {
        snprintf(op_state.problem, sizeof op_state.problem, "%s: %s", err.where, err.text);
        return 0;
    }
    cnri_free(out->data);
    out->bytes = cnr_dense_bytes(out);
    out->data = cnri_alloc_zero((size_t)out->bytes + 1);
    return 1;
}

/* A node of an operator, without attributes. */
static cnr_node kernel_blank(const cnr_op *op, int32_t n_inputs, const cnr_tensor **inputs,
                             const cnr_tensor **outputs) {
    return (cnr_node){.size = sizeof(cnr_node),
                      .op = cnri_intern(op->name),
                      .desc = op,
                      .name = op->name,
                      .n_attrs = op->n_attrs,
                      .n_inputs = n_inputs,
                      .n_outputs = 1,
                      .inputs = inputs,
                      .outputs = outputs};
}

/* Adds a link to the case as it is written: "~NAME", the chain is its second operand; "_NAME", its
 * other operand is a row, "^NAME", a number a channel, and ".NAME", one number. 0: it does not
 * fit. */
static int kernel_link(cnri_case *c, const char *name, const char *attrs) {
    const char form = strchr("~_.^", *name) ? *name : 0;
    const int second = form == '~';
    name += form != 0;
    cnri_link *link = &c->chain[c->n_chain];
    const cnr_op *op = op_find(name);
    memset(link, 0, sizeof *link);
    link->in[0] = *cnri_case_out(c, c->n_chain, 0);
    link->port = second;
    link->other = -1;
    link->inputs[second] = &link->in[0];
    link->outputs[0] = &link->out;
    const int two = op->n_inputs > 1 && !(op->inputs[1].flags & CNR_PORT_OPTIONAL);
    if (two) {
        cnr_tensor *operand = &link->in[1];
        *operand = link->in[0];
        for (int32_t a = 0; a < operand->rank; a++)
            if (form == '.' || (form == '_' && a < operand->rank - 1) || (form == '^' && a != 1))
                operand->dim[a] = 1;
        operand->bytes = cnr_dense_bytes(operand);
        operand->data = cnri_alloc((size_t)operand->bytes + 1);
        for (int64_t i = 0; i < cnr_count(operand); i++)
            cnri_element_set(operand->dtype, operand->data, i, (double)(i % 17) * 0.25 - 2);
        link->other = !second;
        link->inputs[!second] = operand;
    }
    link->node = kernel_blank(op, two ? 2 : 1, link->inputs, link->outputs);
    c->n_chain++; /* so that cnri_case_free finds it */
    return kernel_node(&link->node, &link->attrs, attrs, &link->in[0], &link->out);
}

/* The kernel's flags of stored types. */
static uint32_t kernel_stores(const cnr_kernel *k) {
    return k && CNRI_HAS(k, flags) ? k->flags & (CNR_KERNEL_F16 | CNR_KERNEL_BF16 |
                                                 CNR_KERNEL_F16_MATH | CNR_KERNEL_BF16_MATH)
                                   : 0;
}

/* The case of kernels that store weights as this one, with what the reference says of it; to be
 * freed in any event. 0: op_state.problem. */
OP_UNUSED int kernel_case(cnri_case *c, const cnr_kernel *k, const char *name, const char *attrs,
                          const char *chain, int32_t n, const cnr_tensor *const *inputs) {
    cnr_error err = CNR_ERROR_INIT;
    char links[256], *state = NULL;
    op_state.problem[0] = 0;
    memset(c, 0, sizeof *c);
    c->outputs[0] = &c->out[0];
    c->node = kernel_blank(op_find(name), n, c->inputs, c->outputs);
    for (int32_t i = 0; i < n; i++) {
        if (!inputs[i]) continue;
        c->in[i] = *inputs[i];
        c->in[i].bytes = cnr_dense_bytes(inputs[i]);
        c->in[i].data = cnri_alloc((size_t)c->in[i].bytes + 1);
        memcpy(c->in[i].data, inputs[i]->data, (size_t)c->in[i].bytes);
        c->inputs[i] = &c->in[i];
    }
    cnri_case_round(c, k);
    if (!kernel_node(&c->node, &c->attrs, attrs, n ? inputs[0] : NULL, &c->out[0])) return 0;
    memcpy(c->most[0], c->out[0].dim, sizeof c->most[0]);
    snprintf(links, sizeof links, "%s", chain);
    for (char *part = strtok_r(links, ";", &state); part; part = strtok_r(NULL, ";", &state)) {
        while (*part == ' ') part++;
        char *text = strchr(part, ' ');
        if (text) *text++ = 0;
        if (!kernel_link(c, part, text)) return 0;
    }
    const cnr_status status = cnri_judge_reference(c, c->n_chain, 1, &err);
    if (status == CNR_OK) return 1;
    if (status == CNR_E_LIMIT && *chain) { /* relu of one negative number leaves none to compare */
        cnri_case_free(c);
        return kernel_case(c, k, name, attrs, "", n, inputs);
    }
    snprintf(op_state.problem, sizeof op_state.problem, "%s: %s", err.where, err.text);
    return 0;
}

/* -1: it does not take the node with all that stands behind it; 0: it was wrong, and a note said
 * so. */
OP_UNUSED int kernel_run(const cnr_kernel *k, const cnr_device *device, cnri_case *c) {
    static cnri_trial t;
    cnri_dice dice = {1};
    const char *no = NULL;
    cnri_text why = {0};
    if (!cnri_trial_ask(&t, device, k, c, &dice, &no) || t.links < c->n_chain) return -1;
    int good = cnri_trial_run(&t, true, &why);
    for (int32_t block = 4; block <= 16 && good; block *= 2) { /* also of channel blocks */
        if (!cnri_trial_ask_for(&t, device, k, c, block, &no) || t.links < c->n_chain ||
            t.answer.in_block[0] < 2)
            continue;
        good = cnri_trial_run(&t, true, &why);
        if (!good) note("of blocks of %d", (int)block);
    }
    if (!good) note("%s", why.at ? why.at : "no reason given");
    cnri_text_free(&why);
    return good;
}

/* 1: the kernel computes the operator. */
static int kernel_is_of(const cnr_kernel *k, const char *op) {
    return strcmp(k->op, op) == 0 || strcmp(k->op, CNR_ANY_OP) == 0;
}

/* The next of the operator's kernels that stores weights as this one; -1: none. */
static int32_t kernel_like(const cnr_kernel *const *kernels, int32_t i, int32_t n, const char *op,
                           uint32_t stores) {
    while (i < n && !(kernel_is_of(kernels[i], op) && kernel_stores(kernels[i]) == stores)) i++;
    return i < n ? i : -1;
}

/* ---- cases that come again with the next instruction set ---- */

/* A case with what the reference says of it. */
typedef struct kernel_known {
    uint64_t key;
    int kept;
    cnri_case c;
    struct kernel_known *next;
} kernel_known;
static struct {
    int keeps; /* 1: cases are kept, since each comes again; a test sets it */
    kernel_known *first;
} kernel_cases;

/* Adds bytes to a key (FNV-1a). */
static uint64_t kernel_key(uint64_t key, const void *data, size_t n) {
    for (size_t i = 0; i < n; i++) key = (key ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return key;
}

/* What a case depends on: the words, the inputs, and how the kernel stores weights. */
static uint64_t kernel_key_of(const cnr_kernel *k, const char *name, const char *attrs,
                              const char *chain, int32_t n, const cnr_tensor *const *inputs) {
    const char *words[] = {name, attrs, chain};
    const uint32_t flags = CNRI_HAS(k, flags) ? k->flags : 0;
    uint64_t key = kernel_key(0xcbf29ce484222325u, &flags, sizeof flags);
    for (int i = 0; i < 3; i++) key = kernel_key(key, words[i], strlen(words[i]) + 1);
    for (int32_t i = 0; i < n; i++) {
        const cnr_tensor *t = inputs[i];
        if (!t) continue;
        const int32_t type[] = {i, t->dtype, t->rank, (int32_t)t->flags};
        key = kernel_key(key, type, sizeof type);
        key = kernel_key(key, t->dim, (size_t)t->rank * sizeof *t->dim);
        key = kernel_key(key, t->data, (size_t)cnr_dense_bytes(t));
    }
    return key;
}

/* The case of kernels that store weights as this one, a new one or one that came before; *good 0:
 * op_state.problem. */
static kernel_known *kernel_case_of(const cnr_kernel *k, const char *name, const char *attrs,
                                    const char *chain, int32_t n, const cnr_tensor *const *inputs,
                                    int *good) {
    const uint64_t key = kernel_cases.keeps ? kernel_key_of(k, name, attrs, chain, n, inputs) : 0;
    kernel_known *known = kernel_cases.first;
    while (known && known->key != key) known = known->next;
    *good = 1;
    if (known) {
        known->c.first_by = NULL; /* with other instructions results may differ in the last bit */
        return known;
    }
    if (!(known = calloc(1, sizeof *known))) exit(1);
    known->key = key;
    *good = kernel_case(&known->c, k, name, attrs, chain, n, inputs);
    return known;
}

/* Keeps a case, or frees it. */
static void kernel_case_done(kernel_known *known, int good) {
    if (known->kept) return;
    if (kernel_cases.keeps && good) {
        known->kept = 1;
        known->next = kernel_cases.first;
        kernel_cases.first = known;
        return;
    }
    cnri_case_free(&known->c);
    free(known);
}

/* All kernels of the operator on all devices: a test each. Returns how many took the node. Those
 * that store weights alike come one after the other: the reference, which is slow, says once what
 * is right for them. */
OP_UNUSED int kernel_check(const cnr_kernel *const *kernels, int32_t n_kernels,
                           const cnr_device *devices, int32_t n_devices, const char *head,
                           const char *name, const char *attrs, const char *chain, int32_t n,
                           const cnr_tensor *const *inputs) {
    cnri_text what = {0};
    int taken = 0;
    if (!op_find(name)) {
        ok(0, "operator %s is there", name);
        return 0;
    }
    for (int32_t first = 0, built = 1; first < n_kernels && built; first++) {
        const uint32_t stores = kernel_stores(kernels[first]);
        if (kernel_like(kernels, 0, n_kernels, name, stores) != first) continue;
        kernel_known *known = kernel_case_of(kernels[first], name, attrs, chain, n, inputs, &built);
        if (!what.n) cnri_case_text(&known->c, &what);
        if (!built) ok(0, "%s: %s", what.at, op_state.problem);
        for (int32_t i = first; i >= 0 && built;
             i = kernel_like(kernels, i + 1, n_kernels, name, stores)) {
            int good = -1;
            for (int32_t d = 0; d < n_devices && good != 0; d++)
                good = kernel_run(kernels[i], &devices[d], &known->c);
            if (good >= 0) ok(good, "%s%s %s", head, kernels[i]->name, what.at);
            taken += good >= 0;
        }
        kernel_case_done(known, built);
    }
    cnri_text_free(&what);
    return taken;
}

#endif
