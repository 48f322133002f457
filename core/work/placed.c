/* Placements that were made, as policies that have made up their minds: written, found again. */
#include "core/work/work.h"

static void add_key(cnri_text *out, const char *key) { /* a text of Lua */
    cnri_text_add(out, "[");
    cnri_text_json(out, key);
    cnri_text_add(out, "] = ");
}

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

cnr_status cnri_placing_write(const cnri_placing *p, const char *path, bool own, cnr_error *err) {
    cnri_text text = {0};
    cnri_writer w;
    cnri_text_add(&text, "-- A placement, made of measurements: --policy takes it.\nlocal answer = {\n");
    add_answer(p, &text);
    cnri_text_add(&text, "}\nreturn { devices = {");
    for (int32_t i = 0; i < p->alone.n; i++) {
        cnri_text_add(&text, i ? ", " : " ");
        cnri_text_json(&text, p->alone.at[i].name);
    }
    cnri_text_add(&text, " }, place = function() return answer end }\n");
    cnr_status status = text.failed ? cnri_fail(err, CNR_E_MEMORY, path, "out of memory")
                                    : cnri_write_begin(&w, path, own ? CNRI_WRITE_PRIVATE : 0, err);
    if (!status) {
        status = cnri_write(&w, text.at, text.n, err);
        if (status) cnri_write_abandon(&w);
        else status = cnri_write_commit(&w, err);
    }
    cnri_text_free(&text);
    return status;
}

/* The net as it is computed, the devices as they are driven (a board's values are in that), what the
 * policy says and is told. */
char *cnri_placing_slot(const cnr_model *m, const cnri_place_options *o, const char *const *devices,
                        const char *folder) {
    cnri_text all = {0};
    uint8_t digest[32];
    char hex[33];
    cnri_text_add(&all, "%s %lld\n", o->policy, (long long)o->batch);
    for (const char *const *at = o->settings; at && *at; at++) cnri_text_add(&all, "%s\n", *at);
    for (const char *const *at = devices; *at; at++) {
        const cnri_device *d;
        if (cnri_device_find(&m->rt->devices, *at, &d, NULL)) continue;
        cnri_text_add(&all, "%s %s %s\n", d->name, d->info.name, d->info.driver);
    }
    cnri_graph_dot(m->graph, &all);
    if (!all.failed) cnri_sha256_of(all.at, all.n, digest);
    const bool failed = all.failed;
    cnri_text_free(&all);
    if (failed) return NULL;
    cnri_hex(digest, 16, hex);
    return cnri_format("%s/%s.place.lua", folder, hex);
}
