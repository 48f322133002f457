/* cnnrun helper: the only part that needs root: gives readings and settings to the members of a
 * group. */
#include "cli/cli.h"
#include "govern/govern.h"
#include "people/people.h"
#include <grp.h>
#include <stdlib.h>

/* Options of helper. */
typedef struct helper {
    const char *socket, *group;
} helper;
static const cnri_option options[] = {CNRI_OPTION(helper, socket, "--socket", "PATH",
                                                  "where it listens (/run/cnnrun/helper.sock)"),
                                      CNRI_OPTION(helper, group, "--group", "NAME",
                                                  "whose members may ask (none: root alone)")};

/* The command helper: serves meters and knobs at a socket. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const helper *h = values;
    const cnr_gauge_options gauges = {.size = sizeof gauges,
                                      .root = call->common.sysfs_root,
                                      .address = call->common.meter_address};
    const struct group *group = h->group ? getgrnam(h->group) : NULL;
    cnri_serving *s;
    if (h->group && !group)
        return cnri_fail(err, CNR_E_NOT_FOUND, h->group, "there is no group of that name");
    cnr_status status = cnri_serving_open(&gauges, &s, err);
    if (status) return status;
    if (!call->common.quiet) cnri_say(stderr, "cnnrun helper: listens at %s\n", h->socket);
    status =
        cnri_serve(s, h->socket, group ? (int64_t)group->gr_gid : -1, cnri_signals_flag(), err);
    cnri_serving_close(s);
    return status;
}

/* Removes CNNRUN_HELPER from the environment, so that the helper is no client of itself; returns
 * what is wrong, NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    (void)call, (void)values;
    return unsetenv("CNNRUN_HELPER") == 0 ? NULL : "the environment can't be changed";
}

const cnri_command cnri_cmd_helper = {
    .name = "helper",
    .example = "cnnrun helper --socket /run/cnnrun.sock",
    .operands = "",
    .summary = "Serves readings of meters and settings of knobs, which only root may touch, to the "
               "members\n"
               "of one group, over a Unix socket, and does nothing else.",
    .details = "Started once as root (systemctl enable --now cnnrun-helper); nothing else of "
               "cnnrun wants\n"
               "root. Settings stay within the bounds that were found, one client sets at a time, "
               "and when it\n"
               "goes all is put back. The plugin knob-helper asks it, for those who are not root.",
    CNRI_OPTIONS(options),
    CNRI_VALUES(helper, .socket = "/run/cnnrun/helper.sock"),
    .max_operands = 0,
    .opens = cnri_call_open,
    .wrong = wrong,
    .run = run,
};
