/* Another file with the name of the sound plugin: the first wins. */
#include "broken.h"

static const cnr_op op = BROKEN_OP("test_duplicate");
/* Registers an operator twice. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    return host->add(registrar, CNR_KIND_OPERATOR, &op);
}
static const cnr_plugin plugin = {BROKEN_SOUND("sound", init)};
BROKEN_ENTRY(&plugin)
