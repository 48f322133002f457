/* A library that is no plugin. */
#include <cnnrun/plugin.h>

CNR_EXPORT int cnr_plugin_querry(void);
/* The entry, misspelt. */
int cnr_plugin_querry(void) { return 0; }
