/* The registry: what all plugins brought, found by kind and name. */
#include "host/internal.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
/* A constant of each kind, so that the number of kinds is known. */
#define X(NAME, value, text, type) LAST_KIND_##NAME = value,
    CNR_KIND_LIST(X)
#undef X
        KINDS = LAST_KIND_CODEC + 1
};

/* Readers take no locks: each commit builds a new snapshot beside the old one and then swaps one
 * pointer. Old snapshots are kept (there are as many as plugins, and a reader may hold a list), but
 * for those of the first load, before which nobody had anything to read.
 *
 *     items   [ op op kernel device | op kernel ... ]      in order of registration
 *     of_kind [ op op op ... | kernel kernel ... | ... ]   first[kind] .. first[kind + 1]
 *     names   [ (kind, name) -> descriptor ... ]           sorted; operators by alias too
 *     kernels [ those of one operator | of another ... ]   stable within an operator, and after
 *                                                          them those for any operator
 *     by_op   [ (operator, which) ... ]                    sorted; all kernels
 *     groups  [ (operator, first, n) ... ]                 sorted; where each's kernels are
 *     owners  [ (descriptor, plugin) ... ]                 sorted by address */

/* A descriptor under one of its names. */
typedef struct named {
    int32_t kind;
    const char *name;
    const void *descriptor;
} named;

/* The kernels of one operator: n of them from index `first` on. */
typedef struct group {
    const char *op;
    int32_t first, n;
} group;

/* A descriptor and the plugin that registered it. */
typedef struct owned {
    const void *descriptor;
    const cnri_plugin *plugin;
} owned;

/* All that is registered at one time; it never changes, so that readers need no lock. */
typedef struct snapshot {
    struct snapshot *older;
    int32_t n, n_names, n_groups;
    int32_t first[KINDS + 1];
    cnri_item *items;
    const void **of_kind;
    named *names;
    group *groups, *by_op; /* by_op: a row for each kernel; `first` is its index in the list */
    owned *owners;
    const cnr_kernel **kernels;
} snapshot;

/* The newest snapshot; NULL: nothing is registered yet. Readers take no lock. */
static _Atomic(snapshot *) current;

/* The newest snapshot, or an empty one. */
static const snapshot *current_snapshot(void) {
    static const snapshot empty;
    const snapshot *s = atomic_load_explicit(&current, memory_order_acquire);
    return s ? s : &empty;
}

/* ---- looking up ---- */

/* Compares kind, then name, for bsearch. */
static int compare_names(const void *a, const void *b) {
    const named *x = a, *y = b;
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->name, y->name);
}

/* Finds a descriptor of a snapshot; NULL: there is none. */
static const void *find_in(const snapshot *s, int32_t kind, const char *name) {
    const named key = {kind, name, NULL};
    if (!name || s->n_names == 0) return NULL;
    const named *hit = bsearch(&key, s->names, (size_t)s->n_names, sizeof key, compare_names);
    return hit ? hit->descriptor : NULL;
}

const void *cnri_descriptor_find(int32_t kind, const char *name) {
    return find_in(current_snapshot(), kind, name);
}

/* Number of registered descriptors of a kind; 0 for an unknown one. */
int32_t cnri_descriptor_count(int32_t kind) {
    const snapshot *s = current_snapshot();
    return kind > 0 && kind < KINDS ? s->first[kind + 1] - s->first[kind] : 0;
}

const void *cnri_descriptor_at(int32_t kind, int32_t index) {
    const snapshot *s = current_snapshot();
    if (kind <= 0 || kind >= KINDS || index < 0) return NULL;
    const int32_t at = s->first[kind] + index;
    return at < s->first[kind + 1] ? s->of_kind[at] : NULL;
}

/* Compares the operators of two groups, as strcmp does. */
static int compare_groups(const void *a, const void *b) {
    return strcmp(((const group *)a)->op, ((const group *)b)->op);
}

/* Kernels of an operator; NULL: it has none. */
static const group *group_of(const snapshot *s, const char *op) {
    const group key = {op, 0, 0};
    if (s->n_groups == 0) return NULL;
    return bsearch(&key, s->groups, (size_t)s->n_groups, sizeof key, compare_groups);
}

int32_t cnri_kernels_for(const cnr_op *op, const cnr_kernel *const **out) {
    const snapshot *s = current_snapshot();
    const group *g = group_of(s, op->name);
    if (!g) g = group_of(s, CNR_ANY_OP);
    *out = g ? s->kernels + g->first : NULL;
    return g ? g->n : 0;
}

/* Compares the addresses of two descriptors. */
static int compare_owners(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t)((const owned *)a)->descriptor;
    const uintptr_t y = (uintptr_t)((const owned *)b)->descriptor;
    return x < y ? -1 : x > y;
}

const cnri_plugin *cnri_owner(const void *descriptor) {
    const snapshot *s = current_snapshot();
    const owned key = {descriptor, NULL};
    if (s->n == 0) return NULL;
    const owned *hit = bsearch(&key, s->owners, (size_t)s->n, sizeof key, compare_owners);
    return hit ? hit->plugin : NULL;
}

int32_t cnri_registry_size(void) { return current_snapshot()->n; }

bool cnri_registry_item(int32_t index, cnri_item *out) {
    const snapshot *s = current_snapshot();
    if (index < 0 || index >= s->n) return false;
    *out = s->items[index];
    return true;
}

/* ---- registering ---- */

/* Most kernels for any operator; each is in the list of every operator that has kernels. */
enum { MAX_ANY_KERNELS = 32 };

static bool is_any(const cnr_kernel *kernel) { return strcmp(kernel->op, CNR_ANY_OP) == 0; }

static const char *const *aliases_of(int32_t kind, const void *descriptor) {
    static const char *const none[] = {NULL};
    if (kind != CNR_KIND_OPERATOR) return none;
    const cnr_op *op = descriptor;
    return CNRI_HAS(op, aliases) ? op->aliases : none;
}

/* A staged name, with its kind in front. Lengths are bounded (descriptor.c). */
typedef struct staged_name {
    char text[264];
} staged_name;
/* Key of a name that is registered but not public yet: kind and name. */
static staged_name staged_as(int32_t kind, const char *name) {
    staged_name key;
    snprintf(key.text, sizeof key.text, "%d %s", (int)kind, name);
    return key;
}

/* The plugin that has this name, registered or staged; NULL: none. */
static const cnri_plugin *holder_of(const struct cnr_registrar *r, int32_t kind, const char *name) {
    const void *taken = cnri_descriptor_find(kind, name);
    if (taken) return cnri_owner(taken);
    return cnri_map_get(&r->names, staged_as(kind, name).text);
}

/* Notes that this plugin registers a name. */
static cnr_status stage_name(struct cnr_registrar *r, int32_t kind, const char *name) {
    return cnri_map_set(&r->names, staged_as(kind, name).text, (void *)(uintptr_t)r->plugin);
}

CNRI_PRINTF(3, 4)
/* Notes why a descriptor is refused; returns `code`. */
static cnr_status reject(struct cnr_registrar *r, cnr_status code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(r->fault, sizeof r->fault, format, args);
    va_end(args);
    return code;
}

/* Fails if the plugin registered this name before. *other: another plugin that has it. */
static cnr_status is_free(struct cnr_registrar *r, int32_t kind, const char *name,
                          const cnri_plugin **other) {
    const cnri_plugin *holder = holder_of(r, kind, name);
    if (holder && holder != r->plugin && !*other) *other = holder;
    if (!holder || holder != r->plugin) return CNR_OK;
    return reject(r, CNR_E_ARG, "%s \"%s\" is refused: plugin %s has one of that name",
                  cnri_kind_name(kind), name, holder->name);
}

/* Leaves out a descriptor whose name another plugin has; the plugin's others are registered. */
static cnr_status leave_out(struct cnr_registrar *r, const cnri_collision *collision) {
    cnri_collision *slot = cnri_push(&r->collisions);
    if (slot) *slot = *collision;
    return slot ? CNR_OK : CNR_E_MEMORY;
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
    if (kind == CNR_KIND_KERNEL && is_any(descriptor) && ++registrar->any_kernels > MAX_ANY_KERNELS)
        return reject(registrar, CNR_E_LIMIT,
                      "kernel \"%s\" is refused: the plugin has %d for any "
                      "operator already",
                      name, MAX_ANY_KERNELS);
    const char *const *const aliases = aliases_of(kind, descriptor);
    const cnri_plugin *other = NULL;
    cnr_status status = is_free(registrar, kind, name, &other);
    for (int32_t i = 0; aliases[i] && !status; i++)
        status = is_free(registrar, kind, aliases[i], &other);
    if (!status && other)
        return leave_out(registrar, &(cnri_collision){kind, name, NULL, descriptor, other});
    if (!status) status = stage_name(registrar, kind, name);
    for (int32_t i = 0; aliases[i] && !status; i++)
        status = stage_name(registrar, kind, aliases[i]);
    if (status != CNR_OK) return status;
    cnri_item *item = cnri_push(&registrar->staged);
    if (!item) return CNR_E_MEMORY;
    *item = (cnri_item){kind, descriptor, registrar->plugin};
    return CNR_OK;
}

/* True if the name is the operator's or one of its aliases. */
static bool answers_to(const cnr_op *op, const char *name) {
    bool hit = strcmp(op->name, name) == 0;
    for (const char *const *alias = aliases_of(CNR_KIND_OPERATOR, op); *alias && !hit; alias++)
        hit = strcmp(*alias, name) == 0;
    return hit;
}

/* The collision by which this plugin's operator of that name was left out; NULL: there is none. */
static const cnri_collision *lost_operator(const struct cnr_registrar *r, const char *name) {
    for (int32_t i = 0; i < r->collisions.n; i++) {
        const cnri_collision *c = &r->collisions.at[i];
        if (c->kind == CNR_KIND_OPERATOR && answers_to(c->descriptor, name)) return c;
    }
    return NULL;
}

cnr_status cnri_registrar_settle(struct cnr_registrar *r) {
    int32_t kept = 0;
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < r->staged.n; i++) {
        const cnri_item item = r->staged.at[i];
        const cnr_kernel *kernel = item.kind == CNR_KIND_KERNEL ? item.descriptor : NULL;
        const cnri_collision *lost = kernel ? lost_operator(r, kernel->op) : NULL;
        if (!lost) r->staged.at[kept++] = item;
        else if (!status)
            status = leave_out(r, &(cnri_collision){CNR_KIND_KERNEL, kernel->name, kernel->op,
                                                    kernel, lost->holder});
    }
    r->staged.n = kept;
    return status;
}

void cnri_registrar_free(struct cnr_registrar *registrar) {
    cnri_vec_free(&registrar->staged);
    cnri_vec_free(&registrar->collisions);
    cnri_map_free(&registrar->names);
}

/* ---- snapshots ---- */

/* How many names a descriptor has, with aliases. */
static int32_t count_names(const cnri_item *item) {
    int32_t n = 1;
    for (const char *const *alias = aliases_of(item->kind, item->descriptor); *alias; alias++) n++;
    return n;
}

/* Merges the sorted `old` (`from` rows) with the unsorted rows [from, n) of `rows`, into `rows`.
 * Sorting all rows for each plugin would take as long as loading. */
static void merge(char *rows, const void *old, int32_t from, int32_t n, size_t size,
                  int (*compare)(const void *, const void *)) {
    if (n > from) qsort(rows + (size_t)from * size, (size_t)(n - from), size, compare);
    if (from == 0) return;
    const char *a = old, *const a_end = a + (size_t)from * size;
    char *b = rows + (size_t)from * size, *const b_end = rows + (size_t)n * size;
    for (char *to = rows; a < a_end; to += size) { /* `to` never passes b, so the rest of a fits */
        const bool first = b == b_end || compare(a, b) <= 0;
        memmove(to, first ? a : b, size);
        *(first ? &a : (const char **)&b) += size;
    }
}

/* Adds the names of new descriptors and sorts them in. */
static void fill_names(snapshot *s, const snapshot *before) {
    s->n_names = before->n_names;
    for (int32_t i = before->n; i < s->n; i++) {
        const cnri_item *item = &s->items[i];
        const char *name = cnri_item_name(item->kind, item->descriptor);
        s->names[s->n_names++] = (named){item->kind, name, item->descriptor};
        for (const char *const *alias = aliases_of(item->kind, item->descriptor); *alias; alias++)
            s->names[s->n_names++] = (named){item->kind, *alias, item->descriptor};
    }
    merge((char *)s->names, before->names, before->n_names, s->n_names, sizeof *s->names,
          compare_names);
}

/* Compares by operator, then by order of registration. */
static int compare_kernels(const void *a, const void *b) {
    const group *x = a, *y = b;
    const int order = strcmp(x->op, y->op);
    return order ? order : x->first < y->first ? -1 : x->first > y->first;
}

/* Groups the kernels of each operator in the snapshot; before: the one that it replaces. */
static void fill_groups(snapshot *s, const snapshot *before) {
    const int32_t begin = s->first[CNR_KIND_KERNEL], n = s->first[CNR_KIND_KERNEL + 1] - begin;
    const int32_t had = before->first[CNR_KIND_KERNEL + 1] - before->first[CNR_KIND_KERNEL];
    const void **kernels = s->of_kind + begin;
    int32_t capacity = 0;
    for (int32_t i = 0; i < n; i++) {
        if (i >= had) s->by_op[i] = (group){((const cnr_kernel *)kernels[i])->op, i, 0};
        if (is_any(kernels[i])) s->kernels[capacity++] = kernels[i];
    }
    const group any = {CNR_ANY_OP, 0, capacity};
    merge((char *)s->by_op, before->by_op, had, n, sizeof *s->by_op, compare_kernels);
    for (int32_t i = 0; i < n;) {
        group g = {s->by_op[i].op, capacity, 0};
        const bool all = strcmp(g.op, CNR_ANY_OP) == 0;
        for (; i < n && strcmp(s->by_op[i].op, g.op) == 0; i++)
            if (!all) s->kernels[capacity++] = kernels[s->by_op[i].first];
        for (int32_t k = 0; k < any.n && !all; k++) s->kernels[capacity++] = s->kernels[k];
        g.n = capacity - g.first;
        s->groups[s->n_groups++] = all ? any : g;
    }
}

/* Adds the owners of new descriptors and sorts them in. */
static void fill_owners(snapshot *s, const snapshot *before) {
    for (int32_t i = before->n; i < s->n; i++)
        s->owners[i] = (owned){s->items[i].descriptor, s->items[i].plugin};
    merge((char *)s->owners, before->owners, before->n, s->n, sizeof *s->owners, compare_owners);
}

/* Fills the lists by kind, in order of registration. */
static void fill_lists(snapshot *s) {
    int32_t at = 0;
    for (int32_t kind = 0; kind < KINDS; kind++) {
        s->first[kind] = at;
        for (int32_t i = 0; i < s->n; i++)
            if (s->items[i].kind == kind) s->of_kind[at++] = s->items[i].descriptor;
    }
    s->first[KINDS] = at;
}

/* Room for the kernel lists: at most one group for each kernel and one for any operator, each
 * followed by the kernels for any operator. */
static size_t kernel_capacity(const snapshot *before, const struct cnr_registrar *r) {
    size_t kernels = 0, any = 0;
    for (int32_t i = 0; i < before->n + r->staged.n; i++) {
        const cnri_item *item = i < before->n ? &before->items[i] : &r->staged.at[i - before->n];
        if (item->kind != CNR_KIND_KERNEL) continue;
        kernels++;
        any += is_any(item->descriptor);
    }
    return kernels * (1 + any);
}

/* Allocates a snapshot and its lists in one block; NULL: out of memory. */
static snapshot *new_snapshot(int32_t n, int32_t n_names, size_t n_kernels) {
    const size_t items = (size_t)n * sizeof(cnri_item), lists = (size_t)n * sizeof(void *);
    const size_t names = (size_t)n_names * sizeof(named), groups = (size_t)n * sizeof(group);
    const size_t owners = (size_t)n * sizeof(owned);
    snapshot *s = cnri_alloc_zero(sizeof *s + items + names + lists + 2 * groups + owners +
                                  n_kernels * sizeof(void *));
    if (!s) return NULL;
    char *at = (char *)(s + 1);
    s->items = (cnri_item *)(void *)at;
    s->names = (named *)(void *)(at + items);
    at += items + names;
    s->groups = (group *)(void *)at;
    s->by_op = (group *)(void *)(at + groups);
    s->owners = (owned *)(void *)(at + 2 * groups);
    s->of_kind = (const void **)(void *)(at + 2 * groups + owners);
    s->kernels = (const cnr_kernel **)(void *)(at + 2 * groups + owners + lists);
    return s;
}

cnr_status cnri_registry_commit(const struct cnr_registrar *registrar) {
    const snapshot *before = current_snapshot();
    int32_t n_names = before->n_names;
    for (int32_t i = 0; i < registrar->staged.n; i++)
        n_names += count_names(&registrar->staged.at[i]);
    snapshot *s =
        new_snapshot(before->n + registrar->staged.n, n_names, kernel_capacity(before, registrar));
    if (!s) return CNR_E_MEMORY;
    for (int32_t i = 0; i < before->n; i++) s->items[s->n++] = before->items[i];
    for (int32_t i = 0; i < registrar->staged.n; i++) s->items[s->n++] = registrar->staged.at[i];
    fill_names(s, before);
    fill_lists(s);
    fill_groups(s, before);
    fill_owners(s, before);
    s->older = atomic_load_explicit(&current, memory_order_relaxed);
    atomic_store_explicit(&current, s, memory_order_release);
    return CNR_OK;
}

void cnri_registry_settle(void) {
    snapshot *s = atomic_load_explicit(&current, memory_order_relaxed);
    for (snapshot *old = s ? s->older : NULL, *older; old; old = older) {
        older = old->older;
        cnri_free(old);
    }
    if (s) s->older = NULL;
}
