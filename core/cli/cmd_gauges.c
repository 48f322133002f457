/* cnnrun gauges: the meters and knobs of this machine, and what they read now. */
#include "core/cli/cli.h"

static const cnri_syntax syntax = {
    .command = "gauges",
    .operands = "",
    .summary = "Lists the domains of meters and knobs that plugins find, with what they read now.",
    .details = "Readings are of the whole machine, not of this process."};

static const char *const quantities[] = {"knob", "energy", "power", "temperature"};
static const char *const units[] = {"MHz", "J", "W", "C"};

static double shown(const cnr_gauge *g) {
    if (g->quantity == 0) return (double)g->hz * 1e-6;
    return (double)g->value * (g->quantity == CNR_QUANTITY_TEMPERATURE ? 1e-3 : 1e-6);
}

static void print_row(const cnr_gauge *g) {
    char now[64] = "unread";
    if (!g->status) snprintf(now, sizeof now, "%.6g %s", shown(g), units[g->quantity]);
    cnri_say(stdout, "%-16s %-16s %-11s %-14s %s%s%s", g->plugin, g->name, quantities[g->quantity],
             now, *g->feeds ? "feeds " : "", g->feeds, g->estimated ? " (estimated)" : "");
    if (g->quantity == 0)
        cnri_say(stdout, " %llu to %llu MHz", (unsigned long long)(g->min_hz / 1000000),
                 (unsigned long long)(g->max_hz / 1000000));
    if (g->status) cnri_say(stdout, " %s", g->why);
    cnri_say(stdout, "\n");
}

static cnr_status print_json(const cnr_gauge *g, cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "plugin", g->plugin);
    cnri_json_text(&j, "name", g->name);
    cnri_json_text(&j, "feeds", *g->feeds ? g->feeds : NULL);
    cnri_json_text(&j, "quantity", quantities[g->quantity]);
    cnri_json_int(&j, "period_ms", g->period_ms);
    cnri_json_bool(&j, "estimated", g->estimated != 0);
    cnri_json_text(&j, "error", g->status ? g->why : NULL);
    if (!g->status && g->quantity) cnri_json_int(&j, "value", g->value);
    if (!g->status) cnri_json_int(&j, "time_ns", (int64_t)g->time_ns);
    if (g->quantity == 0) {
        if (!g->status) cnri_json_int(&j, "hz", (int64_t)g->hz);
        cnri_json_int(&j, "min_hz", (int64_t)g->min_hz);
        cnri_json_int(&j, "max_hz", (int64_t)g->max_hz);
        cnri_json_bool(&j, "writable", g->writable != 0);
        if (g->load_percent >= 0) cnri_json_int(&j, "load_percent", g->load_percent);
        if (g->cores >= 0) cnri_json_int(&j, "cores", g->cores);
        if (g->temperature_mc != INT32_MIN) cnri_json_int(&j, "temperature_mc", g->temperature_mc);
    }
    return cnri_json_print(&j, err);
}

int cnri_cmd_gauges(int argc, char **argv) {
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_error err = CNR_ERROR_INIT;
    cnr_gauge_list list = {0};
    int code;
    if (!cnri_args_parse(&args, &syntax, argc, argv, NULL, &code)) return code;
    cnr_status status = cnri_args_open(&args, &rt, &err);
    if (!status) status = cnr_gauges(rt, NULL, NULL, &list, &err);
    for (int32_t i = 0; i < list.n && !status; i++) {
        if (args.common.json) status = print_json(&list.at[i], &err);
        else print_row(&list.at[i]);
    }
    if (!status && list.n == 0 && !args.common.json)
        cnri_say(stderr, "cnnrun gauges: no plugin finds a meter or a knob here\n");
    code = status ? cnri_complain(&args, &err) : 0;
    cnr_gauges_free(&list);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
