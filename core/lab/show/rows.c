/* Prints the rows of a table of candidates as text, or as JSON with one object per line. */
#include "show/show.h"
#include "people/people.h"

const char *cnri_source_name(cnri_source source) {
    switch (source) {
    case CNRI_MEASURED: return "recorded";
    case CNRI_ESTIMATED: return "estimate";
    case CNRI_GUESSED: break;
    }
    return "guess";
}

/* Number of rows of kernels (not references) that the node has on the device. */
static int32_t kernels_on(const cnri_table *t, int32_t node, int32_t device) {
    const cnri_table_node *n = &t->nodes.at[node];
    int32_t count = 0;
    for (int32_t i = n->first; i < n->first + n->n_rows; i++)
        count += t->rows.at[i].device == device && t->rows.at[i].score > 0;
    return count;
}

const char *cnri_row_why(const cnri_table *t, int32_t row) {
    static const char *const why[][2] = {{"stored", "a stored plan has it"},
                                         {"forced", "asked for by name"},
                                         {"policy", "the policy's answer"},
                                         {"record", "the least time on record"},
                                         {"device", "its nodes one by one would run elsewhere"},
                                         {"cost", "less than its nodes one by one"},
                                         {"dynamic", "sizes known only as it runs"},
                                         {"deterministic", "the best score; no clock counts"}};
    const cnri_table_row *r = &t->rows.at[row];
    if (!r->by) return "";
    for (size_t i = 0; i < CNRI_COUNT(why); i++)
        if (strcmp(r->by, why[i][0]) == 0) return why[i][1];
    if (r->score == 0) return "no kernel takes it";
    if (kernels_on(t, r->node, r->device) == 1) return "the only kernel that takes it";
    return r->cost.from == CNRI_ESTIMATED ? "the least estimate" : "the best score";
}

/* Formats nanoseconds as a time such as "12.3 us", cut to `capacity` bytes. */
static void time_text(double ns, char *text, size_t capacity) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    for (; ns >= 1000 && unit < 3; unit++) ns /= 1000;
    snprintf(text, capacity, "%.3g %s", ns, units[unit]);
}

/* Prints one candidate as a line of the table. */
static void print_row(const cnri_table *t, int32_t row, cnri_text *out) {
    const cnri_table_row *r = &t->rows.at[row];
    char took[24], joules[24] = "-", layouts[96];
    time_text(r->cost.ns, took, sizeof took);
    if (r->cost.joules > 0) snprintf(joules, sizeof joules, "%.3g J", r->cost.joules);
    snprintf(layouts, sizeof layouts, "%s > %s", r->layout_in, r->layout_out);
    cnri_text_say(out, "%c %-26s %-12s %5d  %-18s %-10s %5d %9s %-9s %9s %12llu", r->by ? '*' : ' ',
                  r->kernel, t->devices.at[r->device].name, (int)r->takes, layouts, r->encodings,
                  (int)r->score, took, cnri_source_name(r->cost.from), joules,
                  (unsigned long long)r->bytes);
    if (r->by) cnri_text_say(out, "  %s: %s", r->by, cnri_row_why(t, row));
    if (r->extrapolated) cnri_text_add(out, "  extrapolated");
    if (r->by && r->share < 1) cnri_text_add(out, ", %.1f%% of it", 100 * r->share);
    cnri_text_add(out, "\n");
}

/* Prints a node and all its candidates. */
static void print_node(const cnri_table *t, int32_t node, cnri_text *out) {
    const cnri_table_node *n = &t->nodes.at[node];
    cnri_text_say(out, "%s (%s)", n->name, n->op);
    if (n->wished) cnri_text_say(out, ", placed on %s", n->wished);
    if (n->forced) cnri_text_say(out, ", to be run by %s", n->forced);
    if (n->with) cnri_text_say(out, ", computed with %s", n->with);
    cnri_text_add(out, "\n");
    for (int32_t i = n->first; i < n->first + n->n_rows; i++) print_row(t, i, out);
}

/* Appends ,"KEY":NUMBER to a JSON object; KEY is not escaped. */
static void add_number(cnri_text *out, const char *key, double value) {
    char number[64];
    cnri_print_double(number, sizeof number, value);
    cnri_text_add(out, ",\"%s\":%s", key, number);
}

/* Appends ,"KEY":"TEXT", escaped. */
static void add_word(cnri_text *out, const char *key, const char *value) {
    cnri_text_add(out, ",\"%s\":", key);
    cnri_text_json(out, value);
}

/* Prints one candidate as a JSON object. */
static void json_row(const cnri_table *t, int32_t row, cnri_text *out) {
    const cnri_table_row *r = &t->rows.at[row];
    cnri_text_add(out, "{\"node\":");
    cnri_text_json(out, t->nodes.at[r->node].name);
    add_word(out, "op", t->nodes.at[r->node].op);
    add_word(out, "kernel", r->kernel);
    add_word(out, "device", t->devices.at[r->device].name);
    cnri_text_add(out, ",\"takes\":%d", (int)r->takes);
    add_word(out, "layout_in", r->layout_in);
    add_word(out, "layout_out", r->layout_out);
    add_word(out, "encodings", r->encodings);
    add_number(out, "ns", r->cost.ns);
    add_word(out, "ns_from", cnri_source_name(r->cost.from));
    if (r->cost.joules > 0) {
        add_number(out, "joules", r->cost.joules);
        add_word(out, "joules_from", cnri_source_name(r->cost.from));
    } else cnri_text_add(out, ",\"joules\":null,\"joules_from\":null");
    if (r->cost.mhz > 0) add_number(out, "mhz", r->cost.mhz);
    else cnri_text_add(out, ",\"mhz\":null");
    cnri_text_add(out,
                  ",\"bytes\":%llu,\"flops\":%llu,\"score\":%d,\"splits\":%s,\"extrapolated\":%s,"
                  "\"chosen\":%s",
                  (unsigned long long)r->bytes, (unsigned long long)r->flops, (int)r->score,
                  r->splits ? "true" : "false", r->extrapolated ? "true" : "false",
                  r->by ? "true" : "false");
    if (r->by) {
        add_word(out, "by", r->by);
        add_word(out, "why", cnri_row_why(t, row));
        add_number(out, "share", r->share);
    } else cnri_text_add(out, ",\"by\":null,\"why\":null,\"share\":0");
    cnri_text_simulated(out);
    cnri_text_add(out, "}\n");
}

/* Prints the costs of copies between devices as a JSON member. */
static void json_links(const cnri_table *t, cnri_text *out) {
    cnri_text_add(out, ",\"links\":[");
    for (int32_t i = 0; i < t->links.n; i++) {
        const cnri_table_link *l = &t->links.at[i];
        cnri_text_add(out, "%s{\"from\":", i ? "," : "");
        cnri_text_json(out, t->devices.at[l->from].name);
        add_word(out, "to", t->devices.at[l->to].name);
        add_number(out, "ns_per_byte", l->ns_per_byte);
        add_number(out, "ns_fixed", l->ns_fixed);
        add_word(out, "source", cnri_source_name(l->source));
        cnri_text_add(out, "}");
    }
    cnri_text_add(out, "]");
}

/* Prints the JSON object about the whole net: the policy that was asked, its notes, and why its
 * answer was not followed. */
static void json_end(const cnri_table *t, cnri_text *out) {
    cnri_text_add(out, "{\"net\":");
    cnri_text_json(out, t->net);
    cnri_text_add(out, ",\"nodes\":%d,\"rows\":%d", (int)t->nodes.n, (int)t->rows.n);
    json_links(t, out);
    cnri_text_add(out, ",\"policy\":");
    if (t->policy) cnri_text_json(out, t->policy);
    else cnri_text_add(out, "null");
    cnri_text_add(out, ",\"notes\":%s,\"failure\":", t->notes ? t->notes : "null");
    if (t->failure) cnri_text_json(out, t->failure);
    else cnri_text_add(out, "null");
    cnri_text_simulated(out);
    cnri_text_add(out, "}\n");
}

/* Prints the links between devices, the policy and its notes as text. */
static void print_end(const cnri_table *t, cnri_text *out) {
    for (int32_t i = 0; i < t->links.n; i++) {
        const cnri_table_link *l = &t->links.at[i];
        char fixed[24];
        time_text(l->ns_fixed, fixed, sizeof fixed);
        cnri_text_say(out, "%s > %s: %s and %.3g ns a byte (%s)\n", t->devices.at[l->from].name,
                      t->devices.at[l->to].name, fixed, l->ns_per_byte,
                      cnri_source_name(l->source));
    }
    if (t->policy)
        cnri_text_say(out, "policy %s%s%s\n", t->policy, t->failure ? " failed: " : "",
                      t->failure ? t->failure : "");
    if (t->notes) cnri_text_say(out, "%s\n", t->notes);
}

/* Fails for an unknown node with CNR_E_NOT_FOUND and the nearest name. */
static cnr_status no_node(const cnri_table *t, const char *name, cnr_error *err) {
    CNRI_VEC(const char *) names = {0};
    for (int32_t i = 0; i < t->nodes.n; i++) {
        const char **slot = cnri_push(&names);
        if (slot) *slot = t->nodes.at[i].name;
    }
    const char *near = cnri_nearest_word(name, names.at, names.n);
    cnri_vec_free(&names);
    return cnri_fail(err, CNR_E_NOT_FOUND, name, "the net as it is planned has no such node%s%s%s",
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

cnr_status cnri_table_print(const cnri_table *t, const char *node, bool json, cnri_text *out,
                            cnr_error *err) {
    bool found = !node;
    for (int32_t i = 0; i < t->nodes.n && !found; i++)
        found = cnri_matches_pattern(node, t->nodes.at[i].name);
    if (!found) return no_node(t, node, err);
    if (!json)
        cnri_text_add(out, "  %-26s %-12s %5s  %-18s %-10s %5s %9s %-9s %9s %12s  %s\n", "kernel",
                      "device", "takes", "layouts", "encodings", "score", "time", "from", "energy",
                      "bytes", "taken by: why");
    for (int32_t i = 0; i < t->nodes.n; i++) {
        const cnri_table_node *n = &t->nodes.at[i];
        if (node && !cnri_matches_pattern(node, n->name)) continue;
        if (!json) print_node(t, i, out);
        for (int32_t k = n->first; json && k < n->first + n->n_rows; k++) json_row(t, k, out);
    }
    if (json) json_end(t, out);
    else if (!node) print_end(t, out);
    return out->failed ? cnri_out_of_memory(err, "output") : CNR_OK;
}
