/* What the files of this room share. */
#ifndef CNRI_HOST_INTERNAL_H
#define CNRI_HOST_INTERNAL_H

#include "host/host.h"

/* What a plugin asked to register; becomes part of the registry when its init succeeds. */
typedef struct cnri_item {
    int32_t kind;
    const void *descriptor;
    const cnri_plugin *plugin;
} cnri_item;

/* A descriptor that was left out: another plugin holds its name, or its operator's. */
typedef struct cnri_collision {
    int32_t kind;
    const char *name, *op;  /* op: of a kernel, the operator that was left out */
    const void *descriptor; /* the one left out */
    const cnri_plugin *holder;
} cnri_collision;

struct cnr_registrar {
    const cnri_plugin *plugin;
    bool open;           /* only while init runs */
    char fault[256];     /* what the last refused item was refused for; "" */
    int32_t any_kernels; /* for any operator */
    CNRI_VEC(cnri_item) staged;
    cnri_map names; /* that those have -> plugin */
    CNRI_VEC(cnri_collision) collisions;
};

/* ---- registry.c ---- */
/* The host table's `add`. */
cnr_status cnri_registrar_add(struct cnr_registrar *registrar, int32_t kind,
                              const void *descriptor);
/* Takes staged kernels of operators that were left out away: they are written for another meaning
 * of the name. */
cnr_status cnri_registrar_settle(struct cnr_registrar *registrar);
/* All that was staged, or nothing (out of memory). One thread at a time. */
cnr_status cnri_registry_commit(const struct cnr_registrar *registrar);
void cnri_registry_settle(void);  /* nobody holds what was there before the last commit */
int32_t cnri_registry_size(void); /* of all that plugins brought */
void cnri_registrar_free(struct cnr_registrar *registrar);
bool cnri_registry_item(int32_t index, cnri_item *out); /* false past the end */

/* ---- descriptor.c ---- */
bool cnri_descriptor_is_named(int32_t kind, const void *descriptor); /* and long enough for that */
/* NULL when a named descriptor can be used, else what is wrong with it. */
const char *cnri_descriptor_fault(int32_t kind, const void *descriptor);

/* ---- needs.c: reads a library's stated needs without opening it. NULL: fine; else why it cannot
 * run here (cnri_free). `*failed` on lack of memory. ---- */
char *cnri_needs_unmet(const char *path, bool *failed);

#endif
