/* Prints energy: the sums within the result that they belong to, then one line for each domain. */
#include "cli/cli.h"
#include <math.h>

static const char *const sources[] = {"unmeasured", "measured", "estimated", "simulated"};

cnri_energy_shown cnri_energy_show(const cnr_energy *e, const char *per, double pictures) {
    cnri_energy_shown s = {.joules = NAN,
                           .joules_net = NAN,
                           .watts = NAN,
                           .idle_watts = NAN,
                           .edp = NAN,
                           .fps = NAN,
                           .fps_per_watt = NAN,
                           .seconds = NAN,
                           .per = per,
                           .samples = CNRI_NONE,
                           .rounds = CNRI_NONE};
    if (!e) return s;
    s.source = sources[e->source];
    if (!e->source)
        s.unmeasured = e->why[0] ? e->why
                       : e->n    ? "no domain can be told"
                                 : "no plugin finds a meter here";
    else if (e->why[0]) s.net_unmeasured = e->why;
    s.missing = *e->missing ? e->missing : NULL;
    s.joules = e->joules;
    s.joules_net = e->joules_net;
    s.watts = e->watts;
    s.idle_watts = e->idle_watts;
    s.edp = e->edp;
    s.samples = e->samples;
    s.rounds = e->rounds;
    s.seconds = e->seconds;
    if (pictures > 0 && e->seconds > 0) s.fps = pictures / e->seconds;
    s.fps_per_watt = s.fps / e->watts;
    return s;
}

/* Result: energy of a domain. */
typedef struct domain {
    const cnr_energy_domain *d;
    const char *name, *meter, *feeds, *source, *why, *net_unmeasured;
    double joules, joules_net, watts, idle_watts, idle_spread, edp, fps_per_watt;
    int64_t samples;
    int32_t period_ms;
    bool summed;
} domain;
static const cnri_field fields[] = {CNRI_FIELD(domain, "domain", name),
                                    CNRI_KEY(domain, meter),
                                    CNRI_KEY(domain, feeds),
                                    CNRI_KEY(domain, joules),
                                    CNRI_KEY(domain, joules_net),
                                    CNRI_KEY(domain, watts),
                                    CNRI_KEY(domain, idle_watts),
                                    CNRI_KEY(domain, idle_spread),
                                    CNRI_KEY(domain, edp),
                                    CNRI_KEY(domain, fps_per_watt),
                                    CNRI_FIELD(domain, "energy_source", source),
                                    CNRI_KEY(domain, samples),
                                    CNRI_KEY(domain, period_ms),
                                    CNRI_KEY(domain, summed),
                                    CNRI_FIELD(domain, "error", why),
                                    CNRI_MAYBE(domain, "net_unmeasured", net_unmeasured)};
const cnri_record cnri_energy_domain =
    CNRI_RECORD(fields, "  {domain:-18} {error?unmeasured: {error}|{joules:10.4g} J {watts:10.4g} W"
                        "{fps_per_watt? {fps_per_watt:10.4g} FPS/W}  EDP {edp:.4g} J s"
                        "{idle_watts?  idle {idle_watts:.4g} W{idle_spread? +- {idle_spread:.2g}}}"
                        "{feeds?  feeds {feeds}}{summed?|  (not in the sum)}}\n");

cnr_status cnri_tell_domains(const cnri_call *call, const cnr_energy *e, double fps,
                             cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; e && i < e->n && !status; i++) {
        const cnr_energy_domain *d = &e->at[i];
        const domain row = {.d = d,
                            .name = d->name,
                            .meter = d->meter,
                            .feeds = *d->feeds ? d->feeds : NULL,
                            .source = d->status ? sources[0]
                                                : sources[e->source == CNR_ENERGY_SIMULATED ? 3
                                                          : d->estimated                    ? 2
                                                                                            : 1],
                            .why = d->status ? d->why : NULL,
                            .net_unmeasured = !d->status && *d->why ? d->why : NULL,
                            .joules = d->joules,
                            .joules_net = d->joules_net,
                            .watts = d->watts,
                            .idle_watts = d->idle_watts,
                            .idle_spread = d->idle_spread,
                            .edp = d->edp,
                            .fps_per_watt = fps / d->watts,
                            .samples = d->samples,
                            .period_ms = d->period_ms,
                            .summed = d->summed};
        status = cnri_tell(call, &cnri_energy_domain, &row, err);
    }
    return status;
}
