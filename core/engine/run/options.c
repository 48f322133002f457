/* The table of load options, and functions that treat all rows alike. */
#include "run/run.h"

const char *const cnri_weights_types[] = {"f32", "fp16", "bf16", NULL};
const char *const cnri_arithmetics[] = {"f32", "fp16", "bf16", NULL};
const char *const cnri_cache_policies[] = {"lru", "fifo", NULL};

/* Offset in the plan options of an option that is not there. */
#define PLAN_NOTHING(member) 0
#define PLAN_NET PLAN_NOTHING
#define PLAN_POLICY PLAN_NOTHING
#define PLAN_STORES PLAN_NOTHING
/* Offset of a member in cnri_plan_options. */
#define PLAN_PASSES(member) offsetof(cnri_plan_options, member)
#define PLAN_PLAN PLAN_PASSES
/* Row of cnri_load_options for one option. */
#define ROW(who, kind_of, member, in_lua, in_program, argument, all, where, usual, help) \
    {.name = #member, \
     .key = in_lua, \
     .option = in_program, \
     .kind = CNRI_LOAD_##kind_of, \
     .enters = CNRI_ENTERS_##where, \
     .choices = all, \
     .at = offsetof(cnr_load_options, member), \
     .plan_at = PLAN_##where(member)},
const cnri_load_option cnri_load_options[CNRI_N_LOAD_OPTIONS] = {CNRI_LOAD_OPTIONS(ROW)};
#undef ROW

/* A member of cnri_plan_options: exactly one pointer is not NULL. */
typedef struct planned {
    const char **text;
    const char *const **list;
    uint64_t *bytes;
    bool *flag;
} planned;

/* The member of row i; all pointers NULL: planning does not use it. */
static planned planned_at(const cnri_plan_options *o, int32_t i) {
    const cnri_load_option *row = &cnri_load_options[i];
    void *at = (char *)(uintptr_t)o + row->plan_at;
    if (row->enters < CNRI_ENTERS_PASSES) return (planned){0};
    if (row->kind >= CNRI_LOAD_LIST) return (planned){.list = at};
    if (row->kind == CNRI_LOAD_BYTES) return (planned){.bytes = at};
    return row->kind <= CNRI_LOAD_FILE ? (planned){.text = at} : (planned){.flag = at};
}

int32_t cnri_choice(const char *const *choices, const char *text) {
    for (int32_t i = 0; choices[i]; i++)
        if (!text || strcmp(text, choices[i]) == 0) return i;
    return -1;
}

cnr_status cnri_load_check(const cnr_load_options *o, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS && !status; i++) {
        const cnri_load_option *row = &cnri_load_options[i];
        const char *text = row->choices ? *(const char *const *)((const char *)o + row->at) : NULL;
        cnri_text want = {0};
        if (!text || cnri_choice(row->choices, text) >= 0) continue;
        for (const char *const *c = row->choices; *c; c++)
            cnri_text_add(&want, "%s%s", c == row->choices ? "" : c[1] ? ", " : " or ", *c);
        status = cnri_fail(err, CNR_E_ARG, row->name, "\"%s\": want %s", text,
                           want.at ? want.at : "another");
        cnri_text_free(&want);
    }
    return status;
}

void cnri_load_take(const cnr_load_options *o, cnri_plan_options *plan) {
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const void *from = (const char *)o + cnri_load_options[i].at;
        const planned to = planned_at(plan, i);
        if (to.text) *to.text = *(const char *const *)from;
        if (to.list) *to.list = *(const char *const *const *)from;
        if (to.list && *to.list && !**to.list) *to.list = NULL;
        if (to.bytes) *to.bytes = *(const uint64_t *)from;
        if (to.flag) *to.flag = *(const int32_t *)from != 0;
    }
}

static const char *const *copy_list(const char *const *words) {
    const int32_t n = cnri_count_options(words);
    const char **copy = cnri_alloc_zero(((size_t)n + 1) * sizeof *copy);
    int32_t i = 0;
    while (copy && i < n && (copy[i] = cnri_strdup(words[i])) != NULL) i++;
    return copy;
}

bool cnri_load_own(cnri_plan_options *o) {
    bool good = true;
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const planned m = planned_at(o, i);
        const int32_t n = m.list ? cnri_count_options(*m.list) : 0;
        if (m.text && *m.text) good = (*m.text = good ? cnri_strdup(*m.text) : NULL) && good;
        if (m.list) *m.list = n > 0 && good ? copy_list(*m.list) : NULL;
        good = good && (n == 0 || cnri_count_options(*m.list) == n);
    }
    return good;
}

void cnri_load_drop(cnri_plan_options *o) {
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const planned m = planned_at(o, i);
        if (m.text) cnri_free((void *)*m.text);
        for (int32_t k = 0; m.list && *m.list && (*m.list)[k]; k++) cnri_free((void *)(*m.list)[k]);
        if (m.list) cnri_free((void *)*m.list);
    }
}

void cnri_load_enter(const cnri_plan_options *o, cnri_load_enters where, cnri_text *out) {
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const planned m = planned_at(o, i);
        const char *name = cnri_load_options[i].name;
        if (cnri_load_options[i].enters != where) continue;
        if (m.text && *m.text) cnri_text_add(out, " %s=%s", name, *m.text);
        for (int32_t k = 0; m.list && *m.list && (*m.list)[k]; k++)
            cnri_text_add(out, " %s=%s", name, (*m.list)[k]);
        if (m.bytes) cnri_text_add(out, " %s=%llu", name, (unsigned long long)*m.bytes);
        if (m.flag && *m.flag) cnri_text_add(out, " %s", name);
    }
}

/* ---- with the net ---- */

/* Text of the net's metadata that sets an option, "plan.NAME"; NULL: none. */
static const char *meta_of(const cnr_graph *g, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "plan.%s", name);
    return cnri_graph_meta(g, key);
}

/* Splits a text into a list of its lines that ends with NULL, in one block for cnri_free; NULL: no
 * memory. */
static const char **split_lines(const char *text) {
    const size_t bytes = strlen(text) + 1, most = bytes / 2 + 2;
    const char **list = cnri_alloc_zero(most * sizeof *list + bytes);
    if (!list) return NULL;
    char *at = memcpy((char *)list + most * sizeof *list, text, bytes);
    for (size_t n = 0; *at;) {
        const size_t length = strcspn(at, "\n");
        const bool last = !at[length];
        if (length) list[n++] = at;
        at[length] = 0;
        at += length + !last;
    }
    return list;
}

bool cnri_load_defaults(const cnr_graph *g, cnri_plan_options *o, void *held[CNRI_N_LOAD_OPTIONS]) {
    const char *stores = meta_of(g, "stores");
    const uint32_t known = CNRI_KERNEL_PRECISIONS;
    int64_t bits;
    bool good = true;
    if (!o->stores && stores && cnri_parse_int(stores, &bits)) o->stores = (uint32_t)bits & known;
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const planned m = planned_at(o, i);
        const char *text = m.list ? meta_of(g, cnri_load_options[i].name) : NULL;
        if (!text || !*text || *m.list) continue;
        const char **list = split_lines(text);
        held[i] = (void *)list;
        good = good && list;
        if (list) *m.list = (const char *const *)list;
    }
    return good;
}
