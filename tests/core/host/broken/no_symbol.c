/* A library that is no plugin. */
#include <cnnrun/plugin.h>

CNR_EXPORT int cnr_plugin_querry(void);
int cnr_plugin_querry(void) { return 0; }
