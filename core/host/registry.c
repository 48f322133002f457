/* The registry: what all plugins brought, found by kind and name. */
#include "core/host/internal.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
#define X(NAME, value, text, type) LAST_KIND_##NAME = value,
    CNR_KIND_LIST(X)
#undef X
    KINDS = LAST_KIND_OBJECT + 1
};

/* Readers take no locks: each commit builds a new snapshot beside the old one and then swaps one
 * pointer. Old snapshots are kept (there are as many as plugins, and a reader may hold a list).
 *
 *     items   [ op op kernel device | op kernel ... ]      in order of registration
 *     of_kind [ op op op ... | kernel kernel ... | ... ]   first[kind] .. first[kind + 1]
 *     names   [ (kind, name) -> descriptor ... ]           sorted; operators by alias too
 *     kernels [ those of one operator | of another ... ]   stable within an operator, and after
 *                                                          them those for any operator
 *     groups  [ (operator, first, n) ... ]                 sorted; where each's kernels are */
typedef struct named {
    int32_t kind;
    const char *name;
    const void *descriptor;
} named;

typedef struct group {
    const char *op;
    int32_t first, n;
} group;

typedef struct snapshot {
    struct snapshot *older;
    int32_t n, n_names, n_groups;
    int32_t first[KINDS + 1];
    cnri_item *items;
    const void **of_kind;
    named *names;
    group *groups;
    const cnr_kernel **kernels;
} snapshot;

static _Atomic(snapshot *) current;

static const snapshot *now(void) {
    static const snapshot empty;
    const snapshot *s = atomic_load_explicit(&current, memory_order_acquire);
    return s ? s : &empty;
}

/* ---- looking up ---- */

static int compare_names(const void *a, const void *b) {
    const named *x = a, *y = b;
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->name, y->name);
}

static const void *find_in(const snapshot *s, int32_t kind, const char *name) {
    const named key = {kind, name, NULL};
    if (!name || s->n_names == 0) return NULL;
    const named *hit = bsearch(&key, s->names, (size_t)s->n_names, sizeof key, compare_names);
    return hit ? hit->descriptor : NULL;
}

const void *cnri_find(int32_t kind, const char *name) {
    return find_in(now(), kind, name);
}

int32_t cnri_count(int32_t kind) {
    const snapshot *s = now();
    return kind > 0 && kind < KINDS ? s->first[kind + 1] - s->first[kind] : 0;
}

const void *cnri_at(int32_t kind, int32_t index) {
    const snapshot *s = now();
    if (kind <= 0 || kind >= KINDS || index < 0) return NULL;
    const int32_t at = s->first[kind] + index;
    return at < s->first[kind + 1] ? s->of_kind[at] : NULL;
}

static int compare_groups(const void *a, const void *b) {
    return strcmp(((const group *)a)->op, ((const group *)b)->op);
}

static const group *group_of(const snapshot *s, const char *op) {
    const group key = {op, 0, 0};
    if (s->n_groups == 0) return NULL;
    return bsearch(&key, s->groups, (size_t)s->n_groups, sizeof key, compare_groups);
}

int32_t cnri_kernels_for(const cnr_op *op, const cnr_kernel *const **out) {
    const snapshot *s = now();
    const group *g = group_of(s, op->name);
    if (!g) g = group_of(s, CNR_ANY_OP);
    *out = g ? s->kernels + g->first : NULL;
    return g ? g->n : 0;
}

const cnri_plugin *cnri_owner(const void *descriptor) {
    const snapshot *s = now();
    for (int32_t i = 0; i < s->n; i++)
        if (s->items[i].descriptor == descriptor) return s->items[i].plugin;
    return NULL;
}

bool cnri_registry_item(int32_t index, cnri_item *out) {
    const snapshot *s = now();
    if (index < 0 || index >= s->n) return false;
    *out = s->items[index];
    return true;
}

/* ---- registering ---- */

static const char *const *aliases_of(int32_t kind, const void *descriptor) {
    static const char *const none[] = {NULL};
    if (kind != CNR_KIND_OPERATOR) return none;
    const cnr_op *op = descriptor;
    return CNRI_HAS(op, aliases) ? op->aliases : none;
}

/* Whether an item answers to `name`. */
static bool answers(const cnri_item *item, int32_t kind, const char *name) {
    if (item->kind != kind) return false;
    if (strcmp(cnri_item_name(kind, item->descriptor), name) == 0) return true;
    for (const char *const *alias = aliases_of(kind, item->descriptor); *alias; alias++)
        if (strcmp(*alias, name) == 0) return true;
    return false;
}

/* The plugin that has this name already, among those registered and those staged; else NULL. */
static const cnri_plugin *holder_of(const struct cnr_registrar *r, int32_t kind, const char *name) {
    const void *taken = cnri_find(kind, name);
    if (taken) return cnri_owner(taken);
    for (int32_t i = 0; i < r->staged.n; i++)
        if (answers(&r->staged.at[i], kind, name)) return r->plugin;
    return NULL;
}

CNRI_PRINTF(3, 4)
static cnr_status reject(struct cnr_registrar *r, cnr_status code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(r->fault, sizeof r->fault, format, args);
    va_end(args);
    return code;
}

static cnr_status claim_name(struct cnr_registrar *r, int32_t kind, const char *name) {
    const cnri_plugin *holder = holder_of(r, kind, name);
    if (!holder) return CNR_OK;
    return reject(r, CNR_E_ARG, "%s \"%s\" is refused: plugin %s has one of that name",
                  cnri_kind_name(kind), name, holder->name);
}

cnr_status cnri_registrar_add(struct cnr_registrar *registrar, int32_t kind,
                              const void *descriptor) {
    if (!registrar || !registrar->open) return CNR_E_STATE;
    if (!cnri_kind_name(kind))
        return reject(registrar, CNR_E_UNSUPPORTED, "this host knows no kind %d", (int)kind);
    if (!cnri_descriptor_is_named(kind, descriptor))
        return reject(registrar, CNR_E_ARG, "%s without a name, or without its size in front",
                      cnri_kind_name(kind));
    const char *name = cnri_item_name(kind, descriptor);
    const char *fault = cnri_descriptor_fault(kind, descriptor);
    if (fault)
        return reject(registrar, CNR_E_ARG, "%s \"%s\" is refused: it %s", cnri_kind_name(kind),
                      name, fault);
    cnr_status status = claim_name(registrar, kind, name);
    for (const char *const *alias = aliases_of(kind, descriptor); *alias && !status; alias++)
        status = claim_name(registrar, kind, *alias);
    if (status != CNR_OK) return status;
    cnri_item *item = cnri_push(&registrar->staged);
    if (!item) return CNR_E_MEMORY;
    *item = (cnri_item){kind, descriptor, registrar->plugin};
    return CNR_OK;
}

/* ---- snapshots ---- */

static int32_t count_names(const cnri_item *item) {
    int32_t n = 1;
    for (const char *const *alias = aliases_of(item->kind, item->descriptor); *alias; alias++) n++;
    return n;
}

static void fill_names(snapshot *s) {
    for (int32_t i = 0; i < s->n; i++) {
        const cnri_item *item = &s->items[i];
        const char *name = cnri_item_name(item->kind, item->descriptor);
        s->names[s->n_names++] = (named){item->kind, name, item->descriptor};
        for (const char *const *alias = aliases_of(item->kind, item->descriptor); *alias; alias++)
            s->names[s->n_names++] = (named){item->kind, *alias, item->descriptor};
    }
    qsort(s->names, (size_t)s->n_names, sizeof *s->names, compare_names);
}

/* Appends to group g the kernels of a snapshot that are for `op`, in order of registration. */
static void add_kernels(snapshot *s, group *g, const char *op, int32_t *room) {
    for (int32_t i = s->first[CNR_KIND_KERNEL]; i < s->first[CNR_KIND_KERNEL + 1]; i++) {
        const cnr_kernel *kernel = s->of_kind[i];
        if (strcmp(kernel->op, op) != 0) continue;
        s->kernels[(*room)++] = kernel;
        g->n++;
    }
}

static void fill_groups(snapshot *s) {
    int32_t room = 0;
    for (int32_t i = s->first[CNR_KIND_KERNEL]; i < s->first[CNR_KIND_KERNEL + 1]; i++)
        s->groups[s->n_groups++] = (group){((const cnr_kernel *)s->of_kind[i])->op, 0, 0};
    if (s->n_groups == 0) return;
    qsort(s->groups, (size_t)s->n_groups, sizeof *s->groups, compare_groups);
    int32_t n = 1;
    for (int32_t i = 1; i < s->n_groups; i++)
        if (strcmp(s->groups[i].op, s->groups[n - 1].op) != 0) s->groups[n++] = s->groups[i];
    s->n_groups = n;
    for (int32_t i = 0; i < n; i++) {
        group *g = &s->groups[i];
        g->first = room;
        add_kernels(s, g, g->op, &room);
        if (strcmp(g->op, CNR_ANY_OP) != 0) add_kernels(s, g, CNR_ANY_OP, &room);
    }
}

/* Lists by kind, in order of registration. */
static void fill_lists(snapshot *s) {
    int32_t at = 0;
    for (int32_t kind = 0; kind < KINDS; kind++) {
        s->first[kind] = at;
        for (int32_t i = 0; i < s->n; i++)
            if (s->items[i].kind == kind) s->of_kind[at++] = s->items[i].descriptor;
    }
    s->first[KINDS] = at;
}

/* At most as many groups as kernels, each with the kernels for any operator at its end. */
static int32_t kernel_room(const snapshot *before, const struct cnr_registrar *r) {
    int32_t kernels = 0, any = 0;
    for (int32_t i = 0; i < before->n + r->staged.n; i++) {
        const cnri_item *item = i < before->n ? &before->items[i] : &r->staged.at[i - before->n];
        if (item->kind != CNR_KIND_KERNEL) continue;
        kernels++;
        any += strcmp(((const cnr_kernel *)item->descriptor)->op, CNR_ANY_OP) == 0;
    }
    return kernels * (1 + any);
}

static snapshot *new_snapshot(int32_t n, int32_t n_names, int32_t n_kernels) {
    const size_t items = (size_t)n * sizeof(cnri_item), lists = (size_t)n * sizeof(void *);
    const size_t names = (size_t)n_names * sizeof(named), groups = (size_t)n * sizeof(group);
    snapshot *s = cnri_alloc_zero(sizeof *s + items + names + lists + groups +
                                  (size_t)n_kernels * sizeof(void *));
    if (!s) return NULL;
    char *at = (char *)(s + 1);
    s->items = (cnri_item *)(void *)at;
    s->names = (named *)(void *)(at + items);
    s->groups = (group *)(void *)(at + items + names);
    s->of_kind = (const void **)(void *)(at + items + names + groups);
    s->kernels = (const cnr_kernel **)(void *)(at + items + names + groups + lists);
    return s;
}

cnr_status cnri_registry_commit(const struct cnr_registrar *registrar) {
    const snapshot *before = now();
    int32_t n_names = before->n_names;
    for (int32_t i = 0; i < registrar->staged.n; i++)
        n_names += count_names(&registrar->staged.at[i]);
    snapshot *s = new_snapshot(before->n + registrar->staged.n, n_names,
                               kernel_room(before, registrar));
    if (!s) return CNR_E_MEMORY;
    for (int32_t i = 0; i < before->n; i++) s->items[s->n++] = before->items[i];
    for (int32_t i = 0; i < registrar->staged.n; i++) s->items[s->n++] = registrar->staged.at[i];
    fill_names(s);
    fill_lists(s);
    fill_groups(s);
    s->older = atomic_load_explicit(&current, memory_order_relaxed);
    atomic_store_explicit(&current, s, memory_order_release);
    return CNR_OK;
}
