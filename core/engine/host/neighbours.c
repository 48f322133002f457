/* Checks plugins against each other: names that two of them bring, and references to names that
 * no plugin brings. */
#include "host/internal.h"
#include <string.h>

/* Where problems of a plugin are told, and how many there were. */
typedef struct teller {
    const cnri_plugin *plugin;
    cnri_problem_text_fn tell;
    void *arg;
    int32_t n;
} teller;

enum { MAX_TOLD = 100 }; /* messages; further ones are only counted */

CNRI_PRINTF(2, 3) static void tell(teller *t, const char *format, ...) {
    char text[512];
    va_list args;
    if (t->n++ >= MAX_TOLD) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (t->tell) t->tell(t->arg, text);
}

/* Tells that a descriptor was left out because another plugin has its name. */
static void tell_collision(teller *t, const cnri_collision *c, const cnri_plugin *of) {
    const char *holder = c->holder ? c->holder->name : "another";
    if (c->op)
        tell(t, "kernel \"%s\" of plugin %s is left out: its operator \"%s\" is plugin %s's",
             c->name, of->name, c->op, holder);
    else
        tell(t, "%s \"%s\" of plugin %s is left out: plugin %s has one of that name",
             cnri_kind_name(c->kind), c->name, of->name, holder);
}

/* ---- references ---- */

/* Writes the nearest name of a kind as a "did you mean" text to `out`, and returns it, or ""
 * without one. For devices, families count too. */
static const char *suggestion(const teller *t, int32_t kind, const char *word, char out[300]) {
    CNRI_VEC(const char *) names = {0};
    for (int32_t i = 0; i < cnri_descriptor_count(kind) && t->n < MAX_TOLD; i++) {
        const void *d = cnri_descriptor_at(kind, i);
        const char **slot = cnri_push(&names);
        if (slot) *slot = cnri_item_name(kind, d);
        slot = kind == CNR_KIND_DEVICE ? cnri_push(&names) : NULL;
        if (slot) *slot = ((const cnr_device_class *)d)->family;
    }
    const char *near = t->n < MAX_TOLD ? cnri_nearest_word(word, names.at, names.n) : NULL;
    snprintf(out, 300, "%s%s", near ? "; did you mean " : "", near ? near : "");
    cnri_vec_free(&names);
    return out;
}

/* True if a plugin brings a device or family of that name. */
static bool is_device(const char *name) {
    bool known = false;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && !known; i++) {
        const cnr_device_class *cls = cnri_descriptor_at(CNR_KIND_DEVICE, i);
        known = strcmp(cls->name, name) == 0 || strcmp(cls->family, name) == 0;
    }
    return known;
}

/* Tells of a kernel's operator or device that no plugin brings, or that is named by an alias. */
static void look_at_kernel(teller *t, const cnr_kernel *kernel) {
    char near[300];
    const cnr_op *op = cnri_op_find(kernel->op);
    if (!op && strcmp(kernel->op, CNR_ANY_OP) != 0 && strcmp(kernel->op, CNR_REGION) != 0)
        tell(t, "kernel \"%s\" is for operator \"%s\", which no plugin brings%s", kernel->name,
             kernel->op, suggestion(t, CNR_KIND_OPERATOR, kernel->op, near));
    if (op && strcmp(op->name, kernel->op) != 0)
        tell(t, "kernel \"%s\" is for operator \"%s\", an alias: kernels are found by \"%s\"",
             kernel->name, kernel->op, op->name);
    if (!is_device(kernel->device))
        tell(t, "kernel \"%s\" is for device \"%s\", which no plugin brings%s", kernel->name,
             kernel->device, suggestion(t, CNR_KIND_DEVICE, kernel->device, near));
    const char *const *encoding = CNRI_HAS(kernel, encodings) ? kernel->encodings : NULL;
    for (; encoding && *encoding; encoding++)
        if (**encoding && !cnri_descriptor_find(CNR_KIND_ENCODING, *encoding))
            tell(t, "kernel \"%s\" is for encoding \"%s\", which no plugin brings%s", kernel->name,
                 *encoding, suggestion(t, CNR_KIND_ENCODING, *encoding, near));
}

/* True if the operator has an attribute of that name. */
static bool has_attr(const cnr_op *op, const char *name) {
    cnr_attr_spec buffer;
    for (int32_t i = 0; i < op->n_attrs; i++)
        if (strcmp(cnri_spec_at(op->attrs, op->attr_spec_size, i, &buffer)->name, name) == 0)
            return true;
    return false;
}

/* Tells of an import row's operator or attributes that don't exist. */
static void look_at_row(teller *t, const cnr_import_row *row) {
    char near[300];
    const cnr_op *op = row->op ? cnri_op_find(row->op) : NULL;
    for (const char *const *pair = op ? row->attrs : NULL; pair && *pair; pair++) {
        const char *own = strchr(*pair, '=');
        if (!own || !has_attr(op, own + 1))
            tell(t, "import row \"%s\": \"%s\" names no attribute of operator %s", row->name, *pair,
                 op->name);
    }
    if (row->op && !op)
        tell(t, "import row \"%s\" is for operator \"%s\", which no plugin brings%s", row->name,
             row->op, suggestion(t, CNR_KIND_OPERATOR, row->op, near));
}

/* Tells of a rewrite's device that no plugin brings. */
static void look_at_rewrite(teller *t, const cnr_rewrite *rewrite) {
    char near[300];
    if (rewrite->device && !is_device(rewrite->device))
        tell(t, "rewrite \"%s\" is for device \"%s\", which no plugin brings%s", rewrite->name,
             rewrite->device, suggestion(t, CNR_KIND_DEVICE, rewrite->device, near));
}

/* ---- what others call ---- */

int32_t cnri_plugin_problems(const cnri_plugin *p, cnri_problem_text_fn fn, void *arg) {
    teller t = {p, fn, arg, 0};
    cnri_item item;
    for (int32_t i = 0; i < p->n_collisions; i++) tell_collision(&t, &p->collisions[i], p);
    for (int32_t i = 0; i < p->n_items && cnri_registry_item(p->first + i, &item); i++)
        if (item.kind == CNR_KIND_KERNEL) look_at_kernel(&t, item.descriptor);
        else if (item.kind == CNR_KIND_IMPORT_ROW) look_at_row(&t, item.descriptor);
        else if (item.kind == CNR_KIND_REWRITE) look_at_rewrite(&t, item.descriptor);
    return t.n;
}

int32_t cnri_plugin_displaces(const cnri_plugin *p, cnri_problem_text_fn fn, void *arg) {
    teller t = {p, fn, arg, 0};
    const cnri_plugin *other;
    for (int32_t i = 0; (other = cnri_plugin_at(i)) != NULL; i++) {
        if (other == p) continue;
        for (int32_t k = 0; k < other->n_collisions; k++) {
            const cnri_collision *c = &other->collisions[k];
            if (c->holder == p && !c->op)
                tell(&t, "%s \"%s\" is left out: plugin %s has one of that name",
                     cnri_kind_name(c->kind), c->name, other->name);
        }
        /* A later build of an installed plugin replaces it, except those shipped with cnnrun. */
        if (!other->desc && strcmp(other->name, p->name) == 0 &&
            other->precedence != CNRI_INSTALLED_LATER)
            tell(&t, "it is left out: a plugin called %s comes with cnnrun (%s)", p->name,
                 other->path);
    }
    return t.n;
}

enum { MAX_WARNED = 3 };

/* Logs the first MAX_WARNED problems and counts the rest. */
static void warn(void *arg, const char *text) {
    teller *t = arg;
    if (++t->n <= MAX_WARNED) cnri_log(CNR_LOG_WARN, t->plugin->name, "%s", text);
}

/* Warns of problems of one plugin, unless it came with this program. */
static void warn_of(const cnri_plugin *p) {
    teller t = {.plugin = p};
    /* A package may leave out plugins that it refers to. */
    if (p->precedence == CNRI_SHIPPED) return;
    cnri_plugin_problems(p, warn, &t);
    if (t.n > MAX_WARNED)
        cnri_log(CNR_LOG_WARN, p->name, "has %d more problem%s (\"cnnrun plugins\" lists them)",
                 (int)(t.n - MAX_WARNED), t.n == MAX_WARNED + 1 ? "" : "s");
}

void cnri_plugins_warn(int32_t first) {
    const cnri_plugin *p;
    for (; (p = cnri_plugin_at(first)) != NULL; first++)
        if (p->desc) warn_of(p);
}
