/* cnr_open of the engine alone. The whole library has its own, in core/lua/open.c. */
#include "core/run/run.h"

cnr_status cnr_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err) {
    return cnri_runtime_open(out, options, err);
}
