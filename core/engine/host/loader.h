/* Opens one plugin; plugins.c decides which, and in what order. */
#ifndef CNRI_HOST_LOADER_H
#define CNRI_HOST_LOADER_H

#include "host/internal.h"
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the loaded plugin of that name, or NULL. */
typedef const cnri_plugin *(*cnri_plugin_known_fn)(const char *name);

/* Opens a plugin. p has its path and a provisional name. strict: refuse files that others could
 * change. On false p->refused says why (NULL: out of memory). `skip` (may be NULL) gets the name
 * that the plugin gives itself; if it returns true, *skipped is set and false returned before
 * init runs. */
bool cnri_plugin_open(cnri_plugin *p, const struct stat *info, bool strict,
                      cnri_plugin_known_fn known, bool (*skip)(const char *name), bool *skipped);
/* cnri_plugin_load for a plugin that is linked into the program, without a file. False: p->refused
 * says why, or *skipped. */
bool cnri_plugin_link(cnri_plugin *p, const cnr_plugin *d, cnri_plugin_known_fn known,
                      bool (*skip)(const char *name), bool *skipped);

#endif
