/* Registers an operator and then fails: nothing of it may stay. */
#include "broken.h"

static const cnr_op op = BROKEN_OP("test_failing_init");
/* Registers an operator, then fails. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    const cnr_status status = host->add(registrar, CNR_KIND_OPERATOR, &op);
    if (status != CNR_OK) return status;
    return host->fail(err, CNR_E_DEVICE, "failing", "the vendor's library said no");
}
static const cnr_plugin plugin = {BROKEN_SOUND("failing-init", init)};
BROKEN_ENTRY(&plugin)
