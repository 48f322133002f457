/* Sound, and brings nothing. */
#include "broken.h"

/* Registers nothing. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)host, (void)registrar, (void)err;
    return CNR_OK;
}
static const cnr_plugin plugin = {BROKEN_SOUND("plain", init)};
BROKEN_ENTRY(&plugin)
