/* Opening one plugin; plugins.c decides which, and in what order. */
#ifndef CNRI_HOST_LOADER_H
#define CNRI_HOST_LOADER_H

#include "host/internal.h"
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* The loaded plugin of that name, or NULL. */
typedef const cnri_plugin *(*cnri_plugin_known_fn)(const char *name);

/* p has its path and a provisional name. strict: refuse what others could have changed. On false
 * p->refused says why; NULL: out of memory. `skip` (may be NULL) is asked with the name that the
 * plugin gives itself: *skipped, and false, before its init runs. */
bool cnri_plugin_open(cnri_plugin *p, const struct stat *info, bool strict,
                      cnri_plugin_known_fn known, bool (*skip)(const char *name), bool *skipped);
/* The same for one that is linked into the program: there is no file to look at. */
bool cnri_plugin_link(cnri_plugin *p, const cnr_plugin *d, cnri_plugin_known_fn known,
                      bool (*skip)(const char *name), bool *skipped);

#endif
