/* Nothing wrong here: the plugin that the broken ones are compared with. */
#include "broken.h"

static const cnr_op op = BROKEN_OP("test_sound");
/* Registers one operator. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    return host->add(registrar, CNR_KIND_OPERATOR, &op);
}
static const cnr_plugin plugin = {BROKEN_SOUND("sound", init)};
BROKEN_ENTRY(&plugin)
