/* cnr_open of the whole library: registers the scripting services, opens the runtime, and
 * restores knobs that a killed process left set. */
#include "gauges/gauges.h"
#include "host/host.h"
#include "initial/initial.h"
#include "keep/keep.h"
#include "lua/state.h"
#include "policy/policy.h"

void cnri_lua_install(void) {
    static const cnri_services services = {&cnri_lua_loader, cnri_lua_board_read,
                                           cnri_lua_policy_open, cnr_adapt};
    static const cnri_governor_scripts governors = {cnri_lua_frequency_policy_open,
                                                    cnri_lua_governors_folder};
    static const cnri_train_files files = {cnri_lua_loss_open,      cnri_lua_loss_close,
                                           cnri_lua_optimizer_open, cnri_lua_optimizer_close,
                                           cnri_lua_metrics_open,   cnri_lua_metrics_close};
    cnri_lua_module_register(&cnri_lua_cnnrun);
    cnri_keep_register();
    cnri_initial_register();
    cnri_policies_register();
    cnri_services_register(&services);
    cnri_governor_scripts_register(&governors);
    cnri_train_files_register(&files);
}

/* Restores knobs. A failure is only a warning, so that a runtime can be opened. */
static void restore_knobs(cnr_runtime *rt) {
    const cnr_gauge_options gauges = {.size = sizeof gauges,
                                      .root = rt->sysfs_root,
                                      .address = rt->meter_address};
    cnr_error why = CNR_ERROR_INIT;
    if (cnri_knobs_recover(&gauges, &rt->brought_back, &why))
        cnri_log(CNR_LOG_WARN, why.where, "%s", why.text);
}

cnr_status cnr_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err) {
    cnri_lua_install();
    const cnr_status status = cnri_runtime_open(out, options, err);
    if (!status) restore_knobs(*out);
    return status;
}
