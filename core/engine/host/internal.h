/* Declarations shared by the files of this room. */
#ifndef CNRI_HOST_INTERNAL_H
#define CNRI_HOST_INTERNAL_H

#include "host/host.h"

/* A descriptor that a plugin asked to register; registered if the plugin's init succeeds. */
typedef struct cnri_item {
    int32_t kind;
    const void *descriptor;
    const cnri_plugin *plugin;
} cnri_item;

/* A descriptor left out because another plugin holds its name, or its operator's name. */
typedef struct cnri_collision {
    int32_t kind;
    const char *name, *op;  /* op: for a kernel, the operator that was left out */
    const void *descriptor; /* the descriptor that was left out */
    const cnri_plugin *holder;
} cnri_collision;

/* Takes what a plugin registers while its init runs; nothing is public before it succeeds. */
struct cnr_registrar {
    const cnri_plugin *plugin;
    bool open;           /* true while init runs */
    char fault[256];     /* why the last refused descriptor was refused; "": none was */
    int32_t any_kernels; /* number of kernels for any operator */
    CNRI_VEC(cnri_item) staged;
    cnri_map names; /* names of staged descriptors -> plugin */
    CNRI_VEC(cnri_collision) collisions;
};

/* ---- registry.c ---- */
/* Implements `add` of the host table: checks a descriptor and keeps it until the plugin's init
 * succeeds. CNR_E_STATE: after init. */
cnr_status cnri_registrar_add(struct cnr_registrar *registrar, int32_t kind,
                              const void *descriptor);
/* Removes staged kernels of operators that were left out: they were written for another operator
 * of that name. */
cnr_status cnri_registrar_settle(struct cnr_registrar *registrar);
/* Registers everything staged, or nothing if memory is out. Call on one thread at a time. */
cnr_status cnri_registry_commit(const struct cnr_registrar *registrar);
void cnri_registry_settle(void);  /* Frees older snapshots; call only if no reader can hold one. */
int32_t cnri_registry_size(void); /* number of descriptors of all plugins */
/* Frees the lists, not the registrar. */
void cnri_registrar_free(struct cnr_registrar *registrar);
/* *out receives item `index`; false past the end. */
bool cnri_registry_item(int32_t index, cnri_item *out);

/* ---- descriptor.c ---- */
/* True if it has a name, and is long enough for that. */
bool cnri_descriptor_is_named(int32_t kind, const void *descriptor);
/* NULL if the descriptor can be used, else a text that says what is wrong with it. */
const char *cnri_descriptor_fault(int32_t kind, const void *descriptor);

/* ---- window.c, chain.c: functions of the host table, as plugin.h describes them ---- */
const char *cnri_window_resolve(const cnr_node *node, const cnr_tensor *x, const int64_t *kernel,
                                cnr_window *w);
int cnri_link_fits(const cnr_epilogue *link, int32_t rank, const int64_t *dim);
int32_t cnri_chain_length(const cnr_node *node, int32_t rank, const int64_t *dim, int32_t max);

/* ---- needs.c: reads the processor features that a library says it needs, without opening it.
 * Returns NULL if it can run here, else the reason, for cnri_free. *failed: memory was out. ---- */
/* The processor features that the library says it needs and this processor lacks, as text to be
 * freed; NULL: none, or *failed. */
char *cnri_needs_unmet(const char *path, bool *failed);
/* The plugin's name, as its file tells it, for cnri_free; NULL: the file does not (CNR_PLUGIN of
 * kit.h does), or memory is out. */
char *cnri_needs_name(const char *path);

#endif
