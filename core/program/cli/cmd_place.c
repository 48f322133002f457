/* cnnrun place: measures a net on each device alone, places it by a policy, and measures that
 * plan. */
#include "cli/cli.h"
#include "people/people.h"
#include <math.h>

/* Options of place. */
typedef struct place {
    int64_t runs, batch;
    double threshold;
    const char *output;
    bool always, again;
} place;

static const cnri_option options[] =
    {CNRI_OPTION(place, threshold, "--threshold", "X",
                 "the policy's option of that name (edp_set: 1)"),
     CNRI_OPTION(place, runs, "--runs", "N", "timed runs of each (5)", .min = 1, .max = 1e6),
     CNRI_OPTION(place, batch, "--batch", "N", "pictures at a time (1)", .min = 1, .max = 65536),
     CNRI_OPTION(place, always, "--always", NULL,
                 "keep the policy's plan, even if one device alone is better"),
     CNRI_OPTION(place, again, "--again", NULL,
                 "measure, even if a placement is kept in the cache folder"),
     CNRI_OPTION(place, output, "--output", "FILE",
                 "write the placement as a policy, which --policy takes elsewhere", .letter = 'o',
                 .writes = true)};

/* Result: time and energy of one placement. */
typedef struct row {
    const char *kind;
    cnri_place_row r;
} row;
static const cnri_field row_fields[] = {CNRI_FIELD(row, "row", kind),
                                        CNRI_FIELD(row, "name", r.name),
                                        CNRI_FIELD(row, "seconds", r.seconds),
                                        CNRI_MAYBE(row, "joules", r.joules),
                                        CNRI_MAYBE(row, "watts", r.watts),
                                        CNRI_MAYBE(row, "edp", r.edp)};
static const cnri_record row_record =
    CNRI_RECORD(row_fields, "{name:-16} {seconds:12.6f} s {joules?{joules:12.5g} J {watts:10.4g} W "
                            " EDP {edp:.5g} J s|  unmeasured}\n");

/* Result: where a node runs. */
typedef struct node {
    const char *node, *placed;
    bool extrapolated;
} node;
static const cnri_field node_fields[] = {CNRI_FIELD(node, "node", node),
                                         CNRI_FIELD(node, "placed", placed),
                                         CNRI_FIELD(node, "extrapolated", extrapolated)};
static const cnri_record node_record =
    CNRI_RECORD(node_fields, "  {node:-24} {placed}{extrapolated? extrapolated|}\n");

/* Result: what was chosen. */
typedef struct end {
    const char *net, *policy, *kept, *file;
    bool found;
} end;
static const cnri_field end_fields[] = {CNRI_FIELD(end, "net", net),
                                        CNRI_FIELD(end, "policy", policy),
                                        CNRI_MAYBE(end, "kept", kept),
                                        CNRI_MAYBE(end, "file", file),
                                        CNRI_FIELD(end, "found", found)};
static const cnri_record end_record =
    CNRI_RECORD(end_fields,
                "{kept?{net}: {kept} alone is better than what {policy} made, and is kept\n|}"
                "{file?placement {found?taken over from|in} {file}: --policy takes it\n|}");

/* ---- printing ---- */

/* Prints a placement's time and energy. */
static cnr_status tell_row(const cnri_call *call, const char *kind, const cnri_place_row *r,
                           cnr_error *err) {
    const row one = {kind, *r};
    return cnri_tell(call, &row_record, &one, err);
}

/* Appends a number or word of JSON at `at` as people read it. Returns its end. */
static const char *add_note_word(cnri_text *out, const char *at) {
    const char *end = at;
    double value;
    if (*at != '"' && cnri_parse_double(at, &end, &value) && end > at) {
        cnri_text_add(out, "%.6g", value);
        return end;
    }
    const bool quoted = *at == '"';
    for (end = at += quoted; *end && !(quoted ? *end == '"' : strchr(",]}", *end) != NULL); end++)
        if (*end == '\\' && end[1]) end++;
    cnri_text_bytes(out, at, (size_t)(end - at));
    return end + (*end == '"');
}

/* Appends the notes of a policy (JSON) as text: a line for each entry of the outermost list, such
 * as "device cpu, seconds 0.0125". */
static void add_notes(cnri_text *out, const char *notes) {
    int32_t depth = 0;
    cnri_text_add(out, "steps:\n  ");
    for (const char *at = notes; *at;) {
        if (*at == '[' || *at == '{') depth++;
        else if (*at == ']' || *at == '}') depth--;
        else if (*at == ',') cnri_text_add(out, depth <= 1 ? "\n  " : ", ");
        else if (*at == ':') cnri_text_add(out, " ");
        else {
            at = add_note_word(out, at);
            continue;
        }
        at++;
    }
    cnri_text_add(out, "\n");
}

/* Prints the policy's notes. */
static cnr_status tell_notes(const cnri_call *call, const char *notes, cnr_error *err) {
    cnri_text text = {0};
    if (call->common.json) {
        cnri_text_add(&text, "{\"steps\":%s", notes);
        cnri_text_simulated(&text);
        cnri_text_add(&text, "}\n");
    } else add_notes(&text, notes);
    const cnr_status status = cnri_tell_text(&text, err);
    cnri_text_free(&text);
    return status;
}

/* Prints the shares of a node: "cpu 25.0%, opencl:0 75.0%". */
static cnr_status tell_node(const cnri_call *call, const cnri_place_node *n, cnr_error *err) {
    cnri_text where = {0};
    for (int32_t i = 0; i < n->n; i++) {
        cnri_text_add(&where, "%s%s", i ? ", " : "", n->parts[i].device);
        if (n->n > 1) cnri_text_add(&where, " %.1f%%", n->parts[i].ratio * 100);
    }
    const node one = {n->node, where.at, n->extrapolated};
    const cnr_status status = cnri_tell(call, &node_record, &one, err);
    cnri_text_free(&where);
    return status;
}

/* Prints the devices alone, the policy's notes, the nodes' places and the totals. */
static cnr_status tell_all(const cnri_call *call, const cnri_placing *p, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < p->alone.n && !status; i++)
        status = tell_row(call, "device", &p->alone.at[i], err);
    if (!status && p->notes) status = tell_notes(call, p->notes, err);
    for (int32_t i = 0; i < p->nodes.n && !status; i++)
        status = tell_node(call, &p->nodes.at[i], err);
    if (!status && !p->found) status = tell_row(call, "predicted", &p->predicted, err);
    if (!status) status = tell_row(call, "measured", &p->measured, err);
    return status || !(p->kept[0] || call->common.json) ? status
                                                        : tell_row(call, "chosen", &p->chosen, err);
}

/* ---- the command ---- */

/* The command place. */
/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    (void)values;
    return call->common.load.policy
               ? NULL
               : "by which policy? want --policy NAME, such as best or edp_set";
}

/* The command place: places the net by the policy and prints the result. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const place *given = values;
    const char *const **settings = &call->common.load.policy_options;
    char threshold[64] = "threshold=";
    const bool is_given = !isnan(given->threshold);
    cnri_print_double(threshold + strlen(threshold), 40, given->threshold);
    const bool lost = is_given && !cnri_list_add(settings, threshold);
    cnri_placing p = {0};
    const cnri_place_options o = {.policy = call->common.load.policy,
                                  .settings = *settings,
                                  .devices = call->model->plan_options.devices,
                                  .runs = given->runs,
                                  .batch = given->batch,
                                  .guard = !given->always,
                                  .folder = cnri_call_cache(call),
                                  .again = given->again};
    cnr_status status = !lost ? CNR_OK : cnri_out_of_memory(err, "place");
    if (!status) status = cnri_place(call->model, &o, cnri_watch(call), &p, err);
    cnri_watch_end(&call->watching);
    if (!status) status = tell_all(call, &p, err);
    if (!status && given->output) status = cnri_placing_write(&p, given->output, false, err);
    const end e = {call->operands.at[0], o.policy, p.kept[0] ? p.kept : NULL,
                   given->output ? given->output : p.file, p.found};
    if (!status) status = cnri_tell(call, &end_record, &e, err);
    cnri_placing_free(&p);
    return status;
}

const cnri_command cnri_cmd_place = {
    .name = "place",
    .example = "cnnrun place net.lua --policy fastest",
    .operands = "NET --policy NAME",
    .summary =
        "Measures a net on each device alone and in equal parts, has a policy share its layers\n"
        "among the devices, and measures what that takes.",
    .details =
        "A policy is a file, or the name of one of the installed scripts/place: best, edp_set,\n"
        "fastest, greedy, joint, least_energy, split and others. Without --devices those are\n"
        "taken that nets are run on unasked; with --board they are a simulated machine's.\n"
        "predicted runs the plan's steps and copies on queues, by what was measured of each\n"
        "device alone and of a division. Where one device alone is better than the policy's\n"
        "plan, it is kept, and stands in a line of its own.",
    .results = CNRI_RESULTS(&row_record, &node_record, &end_record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(place, .runs = 5, .batch = 1, .threshold = NAN),
    .min_operands = 1,
    .max_operands = 1,
    .takes = CNRI_NETS | CNRI_PICTURES,
    .opens = cnri_call_model_unplaced,
    .wrong = wrong,
    .run = run,
};
