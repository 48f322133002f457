/* Needs a function that nobody has, which must come out when it is opened and not when it is run.
 */
#include "broken.h"

/* A function that no library has. */
int cnrt_nobody_has_this(void);
/* Never called: the plugin cannot be loaded. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return cnrt_nobody_has_this() ? CNR_OK : CNR_E_STATE;
}
static const cnr_plugin plugin = {BROKEN_SOUND("undefined", init)};
BROKEN_ENTRY(&plugin)
