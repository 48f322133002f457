/* Finished placements, written as policies with fixed answers, and found again. */
#include "work/work.h"
#include "people/people.h"
#include "keep/keep.h"

/* Begins the second line of a kept placement, which says what devices it is for: a digest of
 * them, and their names. */
#define MADE_FOR "-- for "

/* Appends ["KEY"] = as text of Lua. */
static void add_key(cnri_text *out, const char *key) {
    cnri_text_add(out, "[");
    cnri_text_json(out, key);
    cnri_text_add(out, "] = ");
}

/* Appends the placement of all nodes as rows of a Lua table: a device's name, or shares by
 * device. */
static void add_answer(const cnri_placing *p, cnri_text *out) {
    for (int32_t i = 0; i < p->nodes.n; i++) {
        const cnri_place_node *n = &p->nodes.at[i];
        cnri_text_add(out, "  ");
        add_key(out, n->node);
        if (p->kept[0] || n->n == 1) {
            cnri_text_json(out, p->kept[0] ? p->kept : n->parts[0].device);
        } else {
            cnri_text_add(out, "{ ");
            for (int32_t k = 0; k < n->n; k++) {
                char number[40];
                cnri_print_double(number, sizeof number, n->parts[k].ratio);
                add_key(out, n->parts[k].device);
                cnri_text_add(out, "%s, ", number);
            }
            cnri_text_add(out, "}");
        }
        cnri_text_add(out, ",\n");
    }
}

void cnri_placing_print(const cnri_placing *p, const char *made_for, cnri_text *out) {
    cnri_text_add(out, "-- A placement, made of %s: --policy takes it.\n",
                  cnri_clock_is_real() ? "measurements" : "a simulated board's times");
    if (made_for) cnri_text_add(out, "%s%s\n", MADE_FOR, made_for);
    cnri_text_add(out, "local answer = {\n");
    add_answer(p, out);
    cnri_text_add(out, "}\nreturn { devices = {");
    for (int32_t i = 0; p->devices[i]; i++) {
        cnri_text_add(out, i ? ", " : " ");
        cnri_text_json(out, p->devices[i]);
    }
    cnri_text_add(out, " }, place = function() return answer end }\n");
}

/* Writes a placement as a policy script; own: for this user only. */
static cnr_status write_placing(const cnri_placing *p, const char *path, bool own,
                                const char *made_for, cnr_error *err) {
    cnri_text text = {0};
    cnri_writer w;
    cnri_placing_print(p, made_for, &text);
    cnr_status status = text.failed ? cnri_out_of_memory(err, path)
                                    : cnri_write_begin(&w, path, own ? CNRI_WRITE_PRIVATE : 0, err);
    if (!status) {
        status = cnri_write(&w, text.at, text.n, err);
        if (status) cnri_write_abandon(&w);
        else status = cnri_write_commit(&w, err);
    }
    cnri_text_free(&text);
    return status;
}

cnr_status cnri_placing_write(const cnri_placing *p, const char *path, bool own, cnr_error *err) {
    return write_placing(p, path, own, NULL, err);
}

/* ---- where one is kept: by all that it follows from ---- */

/* Adds how and by what it is measured, beside the identity of the plans. */
static void add_measuring(const cnr_model *m, const cnri_place_options *o, cnri_text *out) {
    const cnr_runtime *rt = m->rt;
    const char *board = cnri_board_text("");
    const void *clock = cnri_clock_descriptor();
    cnri_text_add(out, "place runs=%lld batch=%lld guard=%d\n", (long long)o->runs,
                  (long long)o->batch, (int)o->guard);
    cnri_text_add(out, "board %s\n", board ? board : "");
    cnri_text_add(out, "clock %s\n", clock ? cnri_item_name(CNR_KIND_CLOCK, clock) : "");
    cnri_text_add(out, "meters %s %s\n", rt->sysfs_root ? rt->sysfs_root : "/",
                  rt->meter_address ? rt->meter_address : "");
    cnri_identity_plugins(out, 1u << CNR_KIND_METER | 1u << CNR_KIND_CLOCK);
}

/* Adds the identity of the plan that the policy is asked for, with its text and settings. */
static cnr_status add_request(const cnr_model *m, const cnri_place_options *o,
                              const char *const *devices, cnri_text *out, cnr_error *err) {
    cnri_plan_options options = m->plan_options;
    cnri_shapes shapes;
    cnri_device_set set = {0};
    options.device = devices[0];
    options.devices = devices;
    options.policy = NULL;
    cnr_status status = cnri_input_shapes(m, o->batch, &shapes, err);
    if (!status) status = cnri_policy_open(o->policy, NULL, o->settings, &options.policy, err);
    if (!status) status = cnri_device_set_make(&set, &m->rt->devices, m->graph, &options, err);
    if (!status) {
        const cnri_plan_request r = {m, &options, &set, shapes.list, shapes.n, false};
        cnri_plan_identity(&r, out);
        cnri_device_set_free(&set);
    }
    cnri_policy_release(options.policy);
    cnri_shapes_free(&shapes);
    return status;
}

cnr_status cnri_placing_path(const cnr_model *m, const cnri_place_options *o,
                             const char *const *devices, char **path, cnr_error *err) {
    cnri_text all = {0};
    uint8_t digest[32];
    char hex[33];
    *path = NULL;
    cnr_status status = add_request(m, o, devices, &all, err);
    add_measuring(m, o, &all);
    if (!status && !all.failed) {
        cnri_sha256_of(all.at, all.n, digest);
        cnri_hex(digest, 16, hex);
        *path = cnri_format("%s/%s.place.lua", o->folder, hex);
    }
    cnri_text_free(&all);
    if (!status && !*path) status = cnri_out_of_memory(err, o->folder);
    return status;
}

/* ---- for commands that run the net: the last placement of it, whoever made it ---- */

/* Path in the folder where the model's placement is kept; free it with cnri_free. NULL: out of
 * memory. */
static char *latest_slot(const cnr_model *m, const char *folder) {
    cnri_text all = {0};
    uint8_t digest[32];
    char hex[33];
    cnri_graph_dot(m->graph, &all);
    const bool failed = all.failed;
    if (!failed) cnri_sha256_of(all.at, all.n, digest);
    cnri_text_free(&all);
    if (failed) return NULL;
    cnri_hex(digest, 16, hex);
    return cnri_format("%s/%s.placed.lua", folder, hex);
}

/* "0123abcd cpu opencl:0", for cnri_free: digest and names of these devices with their present
 * drivers; NULL: one is missing, or out of memory. */
static char *made_for(const cnr_model *m, const char *const *devices) {
    cnri_text all = {0}, names = {0};
    uint8_t digest[32];
    char hex[33], *out = NULL;
    bool whole = true;
    for (const char *const *at = devices; *at && whole; at++) {
        const cnri_device *d;
        whole = cnri_device_find(&m->rt->devices, *at, &d, NULL) == CNR_OK;
        if (!whole) break;
        cnri_text_add(&all, "%s %s %s\n", d->name, d->info.name, d->info.driver);
        cnri_text_add(&names, " %s", d->name);
    }
    if (whole && !all.failed && !names.failed) {
        cnri_sha256_of(all.at, all.n, digest);
        cnri_hex(digest, 8, hex);
        out = cnri_format("%s%s", hex, names.n ? names.at : "");
    }
    cnri_text_free(&all);
    cnri_text_free(&names);
    return out;
}

cnr_status cnri_placing_keep(const cnri_placing *p, const cnr_model *m, const char *folder,
                             cnr_error *err) {
    char *path = latest_slot(m, folder), *who = made_for(m, p->devices);
    const cnr_status status =
        path && who ? write_placing(p, path, true, who, err) : cnri_out_of_memory(err, folder);
    cnri_free(path);
    cnri_free(who);
    return status;
}

/* Splits the device names behind the digest into `names`, which ends with NULL and points into
 * `line`, which is cut up. Returns their number. */
static int32_t split_names(char *line, const char *names[CNRI_MAX_PLACED + 1]) {
    int32_t n = 0;
    for (char *at = strchr(line, ' '); at && n < CNRI_MAX_PLACED; at = strchr(at, ' ')) {
        *at++ = 0;
        names[n++] = at;
    }
    names[n] = NULL;
    return n;
}

/* Gives the model a kept placement as its policy. */
static cnr_status follow(cnr_model *m, const char *path, const char *const *names, cnr_error *err) {
    cnri_plan_options options = {0};
    if (!cnri_plan_options_copy(&m->plan_options, &options)) {
        cnri_plan_options_free(&options);
        return cnri_out_of_memory(err, path);
    }
    cnri_plan_options now = options;
    now.device = names[0];
    now.devices = names;
    cnr_status status = cnri_policy_open(path, NULL, NULL, &now.policy, err);
    if (!status) {
        status = cnri_model_set_options(m, &now, err); /* the options are copied */
        cnri_policy_release(now.policy);
    }
    cnri_plan_options_free(&options);
    return status;
}

cnr_status cnri_placing_follow(cnr_model *m, const char *folder, cnri_follows *out,
                               cnr_error *err) {
    char *text = NULL, *line = NULL, *now = NULL, *path = latest_slot(m, folder);
    const char *names[CNRI_MAX_PLACED + 1];
    size_t bytes;
    cnr_status status = path ? CNR_OK : cnri_out_of_memory(err, folder);
    *out = CNRI_FOLLOWS_NOTHING;
    if (!status && cnri_read_kept(path, 1 << 24, &text, &bytes, NULL) == CNR_OK) {
        const char *at = strchr(text, '\n'), *head = at ? at + 1 : "";
        const size_t skip = sizeof MADE_FOR - 1;
        if (strncmp(head, MADE_FOR, skip) == 0)
            line = cnri_format("%.*s", (int)strcspn(head + skip, "\n"), head + skip);
        char *whole = line ? cnri_strdup(line) : NULL;
        if (whole && split_names(line, names) > 0) now = made_for(m, names);
        *out = now && strcmp(now, whole) == 0 ? CNRI_FOLLOWS_PLACEMENT : CNRI_FOLLOWS_NONE_STALE;
        if (*out == CNRI_FOLLOWS_PLACEMENT) status = follow(m, path, names, err);
        cnri_free(whole);
    }
    cnri_free(text);
    cnri_free(line);
    cnri_free(now);
    cnri_free(path);
    return status;
}

cnr_status cnr_follow(cnr_model *model, const char *folder, int32_t *follows, cnr_error *err) {
    static const int32_t answers[] =
        {[CNRI_FOLLOWS_NOTHING] = 0, [CNRI_FOLLOWS_PLACEMENT] = 1, [CNRI_FOLLOWS_NONE_STALE] = -1};
    cnri_follows got;
    cnr_status status =
        cnri_require_arguments(err, "model", model, "folder", folder, "follows", follows, NULL);
    if (!status) status = cnri_check_process(model->rt, err);
    if (!status) status = cnri_placing_follow(model, folder, &got, err);
    if (!status) *follows = answers[got];
    return status;
}
