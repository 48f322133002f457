/* A plugin of another name whose operator has the name of a registered one. */
#include "broken.h"

static const cnr_op own = BROKEN_OP("test_same_own"), taken = BROKEN_OP("test_sound");
/* Registers two operators of one name. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    cnr_status status = host->add(registrar, CNR_KIND_OPERATOR, &own);
    if (status == CNR_OK) status = host->add(registrar, CNR_KIND_OPERATOR, &taken);
    if (status != CNR_OK) return host->fail(err, status, "same-operator", "could not register");
    return CNR_OK;
}
static const cnr_plugin plugin = {BROKEN_SOUND("same-operator", init)};
BROKEN_ENTRY(&plugin)
