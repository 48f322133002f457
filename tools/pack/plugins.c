/* The plugins of a packed program: they are linked in, so that nothing is searched or opened. Takes
 * the place of host/plugins.c, host/loader.c and host/needs.c. */
#include "host/internal.h"
#include <cnnrun/plugin.h>
#include <string.h>

/* The query function of the built-in operators. */
const cnr_plugin *pack_query_ops_std(uint32_t host_abi);
/* The query function of the built-in CPU kernels. */
const cnr_plugin *pack_query_cpu_neon(uint32_t host_abi);

/* The query function of another plugin that the net needs; tools/pack.pl lists them. */
#define EXTRA(name) const cnr_plugin *pack_query_##name(uint32_t host_abi);
#include "extra.inc"
#undef EXTRA

static const cnr_plugin_query_fn queries[] = {
    pack_query_ops_std,
    pack_query_cpu_neon,
/* Its place in the list. */
#define EXTRA(name) pack_query_##name,
#include "extra.inc"
#undef EXTRA
};
enum { N_PLUGINS = sizeof queries / sizeof *queries };
static cnri_plugin plugins[N_PLUGINS];
static int32_t n_loaded;

/* Loads a built-in plugin into *p: registers what it has. Fails where that does. */
static cnr_status load(cnri_plugin *p, const cnr_plugin *d, cnr_error *err) {
    struct cnr_registrar registrar = {.plugin = p, .open = true};
    p->path = p->name = cnri_strdup(d->name);
    p->version = cnri_strdup(d->version);
    p->precedence = CNRI_SHIPPED;
    cnr_status status = p->name && p->version ? d->init(&cnri_host, &registrar, err)
                                              : cnri_out_of_memory(err, "plugins");
    registrar.open = false;
    if (!status) status = cnri_registrar_settle(&registrar);
    p->first = cnri_registry_size();
    p->n_items = registrar.staged.n;
    p->desc = status ? NULL : d;
    if (!status) status = cnri_registry_commit(&registrar);
    cnri_registrar_free(&registrar);
    return status;
}

cnr_status cnri_plugins_search(const cnri_plugin_search *search, cnr_error *err) {
    cnr_status status = CNR_OK;
    (void)search;
    for (; n_loaded < N_PLUGINS && !status; n_loaded += !status)
        status = load(&plugins[n_loaded], queries[n_loaded](CNR_ABI), err);
    return status;
}

/* Loads the built-in plugins; folders are not searched. */
cnr_status cnri_plugins_load(const char *const *dirs, bool default_dirs, cnr_error *err) {
    (void)dirs, (void)default_dirs;
    return cnri_plugins_search(NULL, err);
}

cnr_status cnri_explain_missing_plugins(cnr_status status, cnr_error *err) {
    (void)err;
    return status;
}

char *cnri_plugin_check(const char *path) {
    return cnri_format("%s: a packed program opens no plugin", path);
}
/* Number of built-in plugins. */
int32_t cnri_plugin_count(void) { return n_loaded; }
const cnri_plugin *cnri_plugin_at(int32_t i) { return i >= 0 && i < n_loaded ? &plugins[i] : NULL; }
const char *cnri_plugins_searched(int32_t index) { return (void)index, NULL; }
const char *cnri_plugin_being_opened(void) { return NULL; }
char *cnri_plugin_lacks(const cnri_plugin *p) { return (void)p, NULL; }

bool cnri_plugin_item(int32_t index, int32_t item, int32_t *kind, const char **name) {
    const cnri_plugin *p = cnri_plugin_at(index);
    cnri_item it;
    if (!p || item < 0 || item >= p->n_items || !cnri_registry_item(p->first + item, &it))
        return false;
    *kind = it.kind;
    *name = cnri_item_name(it.kind, it.descriptor);
    return true;
}

void cnri_plugins_finish(void) {
    for (int32_t i = n_loaded; i-- > 0;)
        if (plugins[i].desc && CNRI_HAS(plugins[i].desc, fini)) plugins[i].desc->fini();
}
