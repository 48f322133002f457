/* Candidates and policies as applications have them: rows of a model, a file of Lua that picks, and
 * that it is taken back. */
#include "../plan/lab.h"
#include <unistd.h>

/* A model with a policy. */
static cnr_model *model(const char *policy, const char *const *options) {
    static const char *const devices[] = {"near", "far:0", NULL};
    const cnr_load_options load = {.size = sizeof load,
                                   .devices = devices,
                                   .policy = policy,
                                   .policy_options = options};
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor t = lab_type(1, 8, 6, 5);
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnr_value x = cnri_graph_input(g, "x", &t);
    for (uint32_t i = 0; i < 2; i++) x = lab_blur(g, x, 8, 2 + i);
    cnri_graph_output(g, lab_affine(g, x, 2, 1), "y");
    if (cnri_model_from_graph(lab_rt, g, &load, &m, &err)) note("%s: %s", err.where, err.text);
    return m;
}

/* Rows that were taken on this device; -1: it failed. */
static int32_t taken(cnr_model *m, const char *device, cnr_candidate_list *keep) {
    cnr_candidate_list list = {.size = sizeof list};
    cnr_error err = CNR_ERROR_INIT;
    int32_t n = 0;
    if (cnr_candidates(m, NULL, 0, &list, &err)) {
        note("%s: %s", err.where, err.text);
        return -1;
    }
    for (int32_t i = 0; i < list.n; i++) n += list.at[i].by && !strcmp(list.at[i].device, device);
    if (keep) *keep = list;
    else cnr_candidates_free(&list);
    return n;
}

/* Tests: the rows of candidates. */
static void rows(void) {
    cnr_model *m = model(NULL, NULL);
    cnr_candidate_list list = {.size = sizeof list};
    is_int(taken(m, "near", &list), 2, "two kernels run the net");
    bool sane = list.n > 2, far = false;
    for (int32_t i = 0; i < list.n; i++) {
        const cnr_candidate *c = &list.at[i];
        sane = sane && c->size == sizeof *c && c->node && c->op && c->kernel && c->layout_in &&
               c->layout_out && c->encodings && c->ns > 0 && c->ns_from && c->takes > 0 &&
               !c->joules_from;
        sane = sane && !c->by == !c->why && (c->by ? c->share == 1 : c->share == 0);
        far = far || !strcmp(c->device, "far:0");
    }
    ok(sane && far, "%d rows say all that is known, of both devices", (int)list.n);
    ok(!list.policy && !list.failure && !list.notes, "no policy was asked");
    cnr_candidates_free(&list);
    ok(!list.at && !list.plan, "and are given back");
    cnr_release(m);
    list.size = 8;
    cnr_error err = CNR_ERROR_INIT;
    m = model(NULL, NULL);
    is_int(cnr_candidates(m, NULL, 0, &list, &err), CNR_E_ARG, "a list of no size is refused");
    cnr_release(m);
}

/* Tests: policies in candidates. */
static void policies(const char *path) {
    static const char *const options[] = {"where=far:0", NULL}, *const broken[] = {"where", NULL};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = model(path, options);
    cnr_candidate_list list = {.size = sizeof list};
    ok(taken(m, "far:0", &list) > 0, "a policy puts it elsewhere");
    ok(list.policy && list.notes && !strcmp(list.notes, "{\"seen\":\"far:0\"}"),
       "and says what it saw");
    cnr_candidates_free(&list);
    cnr_place_options o = {.size = sizeof o, .policy = ""};
    is_int(cnr_place(m, &o, &err), CNR_OK, "cnr_place takes it back");
    is_int(taken(m, "far:0", NULL), 0, "all is as before then");
    o.policy = path;
    o.policy_options = options;
    is_int(cnr_place(m, &o, &err), CNR_OK, "or gives one");
    ok(taken(m, "far:0", NULL) > 0, "that is followed");
    const cnr_tensor in = lab_type(1, 8, 6, 5), *list_in[] = {&in}, *y;
    cnr_tensor full = in;
    float data[240] = {1, 2, 3};
    full.data = data;
    list_in[0] = &full;
    is_int(cnr_run_tensors(m, list_in, 1, &y, 1, &err), CNR_OK, "and runs");
    o.policy_options = broken;
    is_int(cnr_place(m, &o, &err), CNR_E_ARG, "an option without a value is refused");
    o.policy = "/nowhere.lua";
    is_int(cnr_place(m, &o, &err), CNR_E_NOT_FOUND, "so is a file that is not there");
    ok(taken(m, "far:0", NULL) > 0, "the one before stays");
    cnr_release(m);
}

int main(void) {
    char path[] = "/tmp/cnnrun-policy-XXXXXX";
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(lab_open(&err) == CNR_OK, "the made-up plugin loads")) return done();
    cnri_log_to(NULL, NULL, -1);
    rows();
    const int fd = mkstemp(path);
    static const char text[] =
        "return { place = function(rows, seen)\n  local all, to = {}, seen.options.where\n"
        "  for _, n in ipairs(seen.nodes) do all[n.name] = to end\n  return all, { seen = to "
        "}\nend }\n";
    if (ok(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1,
           "a file of Lua"))
        policies(path);
    close(fd);
    unlink(path);
    cnr_close(lab_rt);
    return done();
}
