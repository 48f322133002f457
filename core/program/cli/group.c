/* The group of processes that work together, as mpirun or srun started them. */
#include "cli/cli.h"
#include "group/group.h"
#include <unistd.h>

/* Rank 0 usually reports the same error in this time, and ends the job. */
enum { AFTER_RANK_0_MS = 1500 };

/* Silences ranks other than 0, which do the same work. The points of a sweep are each rank's
 * own. */
static cnr_status be_silent(cnri_call *call, cnr_error *err) {
    call->common.quiet = 1;
    call->errors_after_ms = AFTER_RANK_0_MS;
    if (!(call->command->takes & CNRI_OWN_FILES)) cnri_write_to_nowhere();
    return freopen("/dev/null", "w", stdout) ? CNR_OK : cnri_fail_errno(err, "/dev/null", "output");
}

cnr_status cnri_call_join_group(cnri_call *call, cnr_error *err) {
    int32_t rank;
    const char *name = call->common.group;
    if (!name && cnri_group_launched(&rank) == 1) return CNR_OK;
    const cnr_status status = cnri_group_open(name, cnri_signals_flag(), err);
    return status || cnri_group_rank() == 0 ? status : be_silent(call, err);
}

void cnri_call_leave_group(const cnri_call *call) {
    fflush(stdout);
    if (call->code) cnri_group_abort(call->code);
    else cnri_group_close();
}
