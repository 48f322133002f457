/* The table of load options, row by row: C's struct has nothing besides; the program takes each and
 * refuses what is no choice; c.load has a key for each, and main's args.load gives it back; plans
 * and kept placements have another key where the row says so, and there alone; the C++ header has
 * each. A new row needs nothing here. */
#include "../plan/lab.h"
#include "lua/script.h"
#include "work/work.h"
#include "keep/keep.h"
#include <unistd.h>

static char out[1 << 16];

/* Runs a command and stores its output in `out`; returns its exit code. */
static int run(const char *format, const char *a, const char *b) {
    char words[512], line[1024];
    snprintf(words, sizeof words, format, a, b);
    snprintf(line, sizeof line, "%s/cnnrun %s 2>&1", CNRT_BUILD_DIR, words);
    FILE *f = popen(line, "r");
    out[f ? fread(out, 1, sizeof out - 1, f) : 0] = 0;
    const int status = f ? pclose(f) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Bytes of the row's member in cnr_load_options. */
static size_t bytes_of(const cnri_load_option *row) {
    return row->kind == CNRI_LOAD_FLAG || row->kind == CNRI_LOAD_NOT ? sizeof(int32_t) : 8;
}

/* Each member of the C struct has one row. */
static void in_c(void) {
    unsigned char taken[sizeof(cnr_load_options)] = {0};
    int twice = 0, none = 0;
    memset(taken, 1, offsetof(cnr_load_options, weights)); /* its size, and how many symbols */
    memset(taken + offsetof(cnr_load_options, symbol_values), 1, sizeof(void *));
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++)
        for (size_t k = 0; k < bytes_of(&cnri_load_options[i]); k++)
            twice += taken[cnri_load_options[i].at + k]++ != 0;
    for (size_t k = 0; k < sizeof taken; k += 4) none += !taken[k] && (k % 8 == 0 || !taken[k - 4]);
    is_int(twice, 0, "no two rows are one member of cnr_load_options");
    is_int(none, 0, "and each member has a row");
}

/* The program lists the row's option. */
static void in_program(const cnri_load_option *row) {
    char word[80];
    snprintf(word, sizeof word, "\n  %s ", row->option);
    ok(strstr(out, word) != NULL, "%s is an option of the program", row->option);
}

/* The program refuses a word that is none of the choices. */
static void choices(const cnri_load_option *row) {
    ok(run("show nosuch.cnr %s %s", row->option, row->choices[1]) != 0 && !strstr(out, row->option),
       "%s takes %s", row->option, row->choices[1]);
    ok(run("show nosuch.cnr %s %s", row->option, "nosuch") == 1 && strstr(out, row->option),
       "%s refuses what is none", row->option);
}

/* True: the manual of Lua has the key. */
static bool has_key(const cnri_lua_manual *r, const char *key) {
    for (int32_t i = 0; i < r->rows.n; i++)
        for (int32_t k = 0; strcmp(r->rows.at[i].owner, "c.") == 0 &&
                            strcmp(r->rows.at[i].name, "load") == 0 && k < r->rows.at[i].options.n;
             k++)
            if (strcmp(r->rows.at[i].options.at[k].name, key) == 0) return true;
    return false;
}

/* Sets a member to some value that no check refuses; plan: of options that a plan takes. */
static void fill(const cnri_load_option *row, void *member, bool plan) {
    static const char *const list[] = {"name=1", NULL};
    if (row->kind <= CNRI_LOAD_FILE) *(const char **)member = row->choices ? row->choices[1] : "x";
    else if (row->kind >= CNRI_LOAD_LIST) *(const char *const **)member = list;
    else if (row->kind == CNRI_LOAD_BYTES) *(uint64_t *)member = 5000;
    else if (plan) *(bool *)member = true;
    else *(int32_t *)member = 1;
}

/* Prints the keys of args.load. */
static void to_script(const char *script) {
    static const int64_t size = 3;
    cnr_load_options o = {.size = sizeof o, .n_symbols = 1, .symbol_values = &size};
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_program *p = NULL;
    int code = 0;
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++)
        fill(&cnri_load_options[i], (char *)&o + cnri_load_options[i].at, false);
    const cnri_lua_rights rights = {.load = &o};
    cnr_status status = cnri_lua_open(lab_rt, script, 0, NULL, &rights, &p, &err);
    if (!status) status = cnri_lua_main(p, &code, &err);
    if (status) note("%s: %s", err.where, err.text);
    cnri_lua_close(p);
    int32_t keys = 0;
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) keys += *cnri_load_options[i].key != 0;
    is_int(code, keys, "args.load has all that c.load takes");
}

/* ---- keys ---- */

/* A model of a small net, loaded with the options, for cnr_release. */
static cnr_model *model(const cnr_load_options *o) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor t = lab_type(1, 8, 6, 5);
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnri_graph_output(g, lab_affine(g, cnri_graph_input(g, "x", &t), 2, 1), "y");
    if (cnri_model_from_graph(lab_rt, g, o, &m, &err)) note("%s: %s", err.where, err.text);
    return m;
}

/* The text that a stored plan of the model depends on. */
static char *plan_key(const cnr_model *m, const cnri_plan_options *o) {
    const cnri_device_set none = {0};
    const cnri_plan_request r = {.model = m, .options = o, .set = &none};
    cnri_text text = {0};
    cnri_plan_identity(&r, &text);
    return text.at;
}

/* The text that a stored placement depends on. */
static char *place_key(cnr_model *m, const cnri_plan_options *o, const char *policy) {
    static const char *const devices[] = {"near", NULL};
    const cnri_place_options how = {.policy = policy, .folder = "."};
    const cnri_plan_options was = m->plan_options;
    cnr_error err = CNR_ERROR_INIT;
    char *path = NULL;
    m->plan_options = *o;
    if (cnri_placing_path(m, &how, devices, &path, &err)) note("%s: %s", err.where, err.text);
    m->plan_options = was;
    return path;
}

/* A changed option changes the texts that it must. */
static void keys(cnr_model *m, const cnri_load_option *row, const char *policy) {
    const bool listed = row->plan_at == offsetof(cnri_plan_options, device) ||
                        row->plan_at == offsetof(cnri_plan_options, devices);
    cnri_plan_options o = m->plan_options;
    if (row->enters < CNRI_ENTERS_PASSES) return;
    char *was = plan_key(m, &o), *was_placed = place_key(m, &o, policy);
    fill(row, (char *)&o + row->plan_at, true);
    char *now = plan_key(m, &o), *now_placed = place_key(m, &o, policy);
    is_int(strcmp(was, now) != 0, row->enters == CNRI_ENTERS_PLAN, row->name);
    if (!listed) /* of those that are measured, all are */
        is_int(was_placed && now_placed && strcmp(was_placed, now_placed) != 0,
               row->enters != CNRI_ENTERS_PASSES, "... and where its placement is kept");
    cnri_free(was);
    cnri_free(now);
    cnri_free(was_placed);
    cnri_free(now_placed);
}

/* A choice of these is in the plan's key. */
static void stores(const cnri_load_option *row) {
    cnr_load_options o = {.size = sizeof o};
    cnr_model *plain = model(&o);
    *(const char **)(void *)((char *)&o + row->at) = row->choices[1];
    cnr_model *other = model(&o);
    char *was = plan_key(plain, &plain->plan_options), *now = plan_key(other, &other->plan_options);
    ok(strcmp(was, now) != 0, "%s is in the key of plans", row->name);
    cnri_free(was);
    cnri_free(now);
    *(const char **)(void *)((char *)&o + row->at) = "nosuch";
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = cnri_graph_new("net");
    is_int(cnri_model_from_graph(lab_rt, g, &o, &other, &err), CNR_E_ARG,
           "and has its choices in C");
}

int main(void) {
    char script[] = "/tmp/cnnrun-options-XXXXXX", policy[] = "/tmp/cnnrun-options-XXXXXX";
    static const char counts[] = "return function(args) local n = 0 for _ in pairs(args.load) do n "
                                 "= n + 1 end return n end\n";
    static const char places[] = "return { place = function() return {} end }\n";
    static char header[1 << 16];
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_manual lua = {0};
    const int one = mkstemp(script), two = mkstemp(policy);
    FILE *f = fopen(CNRT_SOURCE_DIR "/core/bind/cpp/include/cnnrun/cnnrun.hpp", "r");
    header[f ? fread(header, 1, sizeof header - 1, f) : 0] = 0;
    if (f) fclose(f);
    if (!ok(lab_open(&err) == CNR_OK && write(one, counts, sizeof counts - 1) > 0 &&
                write(two, places, sizeof places - 1) > 0 &&
                cnri_lua_manual_make(&lua, &err) == CNR_OK,
            "all is there"))
        return done();
    cnri_log_to(NULL, NULL, -1);
    const cnr_load_options usual = {.size = sizeof usual};
    cnr_model *m = model(&usual);
    in_c();
    run("help options", "", "");
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const cnri_load_option *row = &cnri_load_options[i];
        if (*row->option) in_program(row);
        if (*row->key) ok(has_key(&lua, row->key), "%s is a key of c.load", row->key);
        ok(strstr(header, row->name) != NULL, "%s is in the C++ header", row->name);
        keys(m, row, policy);
    }
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        if (cnri_load_options[i].choices) choices(&cnri_load_options[i]);
        if (cnri_load_options[i].enters == CNRI_ENTERS_STORES) stores(&cnri_load_options[i]);
    }
    to_script(script);
    cnri_lua_manual_free(&lua);
    cnr_close(lab_rt);
    unlink(script);
    unlink(policy);
    return done();
}
