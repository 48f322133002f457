/* Needs what no processor has; its constructor tells whether the library was opened all the same.
 */
#include "broken.h"
#include <stdlib.h>

CNR_PLUGIN_NEEDS(CNRT_NEEDS);

/* Never called: what the plugin needs is missing. */
__attribute__((constructor)) static void ran(void) { setenv(CNRT_MARK, "1", 1); }
/* Registers nothing. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static const cnr_plugin plugin = {BROKEN_SOUND(CNRT_MARK, init)};
BROKEN_ENTRY(&plugin)
