/* The plugin: the object "tld". */
#include "tld.h"

const cnr_host *tld_host;

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    tld_host = host;
    tld_vectors_choose();
    return host->add(registrar, CNR_KIND_OBJECT, &tld_object);
}

CNR_PLUGIN("object-tld", "0.1", "A tracker of one object that learns while it tracks: TLD.", "MIT",
           init)
