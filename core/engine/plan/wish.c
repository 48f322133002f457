/* Placements in the graph's metadata: "place.LAYER" with "opencl:0" or "axis=1 cpu=0.25
 * opencl:0=0.75"; LAYER "*" is every node. Also the metadata's defaults for whole plans. */
#include "plan/planner.h"

static const char prefix[] = CNRI_PLACE_PREFIX;
enum { MAX_PARTS = 64 };

/* Copies the word at *at and moves past it; false at the end. */
static bool next_word(const char **at, char *word, size_t capacity) {
    *at += strspn(*at, " ");
    const size_t n = strcspn(*at, " ");
    if (n == 0 || n >= capacity) return false;
    memcpy(word, *at, n);
    word[n] = 0;
    *at += n;
    return true;
}

/* Reads one word of a placement: "DEVICE", "DEVICE=SHARE" or "axis=N". False: it failed. */
static bool read_word(cnri_placement *w, char *word) {
    char *equals = strchr(word, '=');
    const char *end;
    int64_t axis;
    if (equals) *equals = 0;
    if (equals && strcmp(word, "axis") == 0) {
        if (!cnri_parse_int(equals + 1, &axis) || axis < 0 || axis >= CNR_MAX_RANK) return false;
        w->axis = (int32_t)axis;
        return true;
    }
    if (w->n_parts == MAX_PARTS) return false;
    cnri_part *part = &w->parts[w->n_parts++];
    part->ratio = 1;
    if (strlen(word) >= sizeof part->device) return false;
    memcpy(part->device, word, strlen(word) + 1);
    return !equals || (cnri_parse_double(equals + 1, &end, &part->ratio) && !*end);
}

cnr_status cnri_wish_read(cnri_placement *w, const char *node, const char *text, cnr_error *err) {
    char word[96];
    const char *at = text;
    w->node = cnri_strdup(node);
    w->parts = cnri_alloc_zero(MAX_PARTS * sizeof *w->parts);
    if (!w->node || !w->parts) return cnri_no_memory(err);
    bool good = true;
    while (good && next_word(&at, word, sizeof word)) good = read_word(w, word);
    if (good && w->n_parts > 0 && !at[strspn(at, " ")]) return CNR_OK;
    return cnri_fail(err, CNR_E_FORMAT, node,
                     "its placement \"%s\": want a device, or axis=A device=share ...", text);
}

/* Appends the placements of a net's own metadata to *out; fails at the first it can't read. */
cnr_status cnri_wishes_read(const cnr_graph *g, cnri_wishes *out, cnr_error *err) {
    const size_t n = sizeof prefix - 1;
    for (int32_t i = 0; i < g->meta.n; i++) {
        if (strncmp(g->meta.keys[i], prefix, n) != 0) continue;
        cnri_placement *w = cnri_push(out);
        if (!w) return cnri_no_memory(err);
        const cnr_status status = cnri_wish_read(w, g->meta.keys[i] + n, g->meta.texts[i], err);
        if (status) return status;
    }
    return CNR_OK;
}

void cnri_placement_free(cnri_placement *w) {
    cnri_free(w->node);
    cnri_free(w->parts);
}

void cnri_wishes_free(cnri_wishes *wishes) {
    for (int32_t i = 0; i < wishes->n; i++) cnri_placement_free(&wishes->at[i]);
    cnri_vec_free(wishes);
}

void cnri_plan_defaults(const cnr_graph *g, cnri_plan_options *o) {
    const char *device = cnri_graph_meta(g, "plan.device");
    const char *bound = cnri_graph_meta(g, "plan.memory_bound");
    const char *same = cnri_graph_meta(g, "plan.deterministic");
    int64_t bytes;
    if (!o->device && device && *device) o->device = device;
    if (!o->memory_bound && bound && cnri_parse_int(bound, &bytes) && bytes > 0)
        o->memory_bound = (uint64_t)bytes;
    if (same && strcmp(same, "1") == 0) o->deterministic = true;
}
