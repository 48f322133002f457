/* cnr_open of the library with the engine alone. The whole library has its own in
 * core/script/lua/open.c. */
#include "initial/initial.h"
#include "keep/keep.h"

cnr_status cnr_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err) {
    cnri_keep_register();
    cnri_initial_register();
    return cnri_runtime_open(out, options, err);
}
