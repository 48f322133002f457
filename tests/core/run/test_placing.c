/* Devices as applications see them, and their wishes for who runs what. */
#include "../plan/lab.h"

/* A model. */
static cnr_model *model(void) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor t = lab_type(2, 8, 6, 5);
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    const cnr_value x = lab_affine(g, cnri_graph_input(g, "x", &t), 1, 1);
    cnri_graph_output(g, lab_affine(g, lab_blur(g, x, 8, 1), 2, 0), "y");
    if (cnri_model_from_graph(lab_rt, g, NULL, &m, &err)) note("%s: %s", err.where, err.text);
    return m;
}

/* Tests: the list of devices. */
static void devices(void) {
    cnr_device_entry e = {.size = sizeof e};
    cnr_error err = CNR_ERROR_INIT;
    int32_t n = 0;
    bool sane = true, near = false, far = false;
    for (; !cnr_device_at(lab_rt, n, &e, &err) && n < 100; n++) {
        sane = sane && *e.name && *e.family && *e.plugin &&
               strncmp(e.name, e.family, strlen(e.family)) == 0;
        near = near || strcmp(e.name, "near") == 0;
        far = far || strcmp(e.name, "far:0") == 0;
    }
    ok(err.code == CNR_E_NOT_FOUND && n >= 2, "past the last of %d there is none: %s", (int)n,
       err.text);
    ok(sane && near && far, "all have names of their family");
    ok(cnr_device_at(lab_rt, -1, &e, &err) == CNR_E_NOT_FOUND, "nor before the first");
    e.size = 4;
    ok(cnr_device_at(lab_rt, 0, &e, &err) == CNR_E_ARG, "no room for it");
}

/* Names of the devices that run node `name`: "near far:0" for a split one. */
static const char *who(cnr_model *m, const char *name, cnr_error *err) {
    static char text[200];
    cnr_plan *plan = NULL;
    *text = 0;
    if (cnr_plan_for(m, NULL, 0, &plan, err)) return err->text;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL || strcmp(plan->graph->nodes.at[s->node]->name, name) != 0)
            continue;
        if (*text) strcat(text, " ");
        strcat(text, plan->devices[s->device]->name);
    }
    cnr_plan_release(plan);
    return text;
}

/* Tests: placed nodes. */
static void placed(cnr_model *m) {
    const char *far[] = {"far:0"}, *both[] = {"near", "far:0"}, *none[] = {"moon"},
               *near[] = {"near"};
    const double shares[] = {0.25, 0.75}, few[] = {0.2, 0.2};
    const char *blur = NULL;
    cnr_error err = CNR_ERROR_INIT;
    for (int32_t i = 0; i < m->graph->nodes.n; i++)
        if (strstr(m->graph->nodes.at[i]->view.desc->name, "blur"))
            blur = m->graph->nodes.at[i]->name;
    cnr_place_options o = {.size = sizeof o, .node = "*", .devices = near, .n_devices = 1};
    ok(!cnr_place(m, &o, &err), "every node: %s", err.text);
    is_text(who(m, blur, &err), "near", "is where it was wished");
    o.node = blur;
    o.devices = far;
    ok(!cnr_place(m, &o, &err), "one node: %s", err.text);
    is_text(who(m, blur, &err), "far:0", "elsewhere, plans made before notwithstanding");
    o.devices = both;
    o.n_devices = 2;
    o.axis = 1;
    o.shares = shares;
    ok(!cnr_place(m, &o, &err), "shares: %s", err.text);
    const char *got = who(m, blur, &err);
    ok(strstr(got, "near") && strstr(got, "far:0"), "both run a part: %s", got);
    is_int(m->plan_options.n_placements, 2, "a wish takes the place of the one before");
    o.n_devices = 0;
    ok(!cnr_place(m, &o, &err) && m->plan_options.n_placements == 1, "and is taken back");
    is_text(who(m, blur, &err), "near", "then the one for all holds");
    o.n_devices = 2;
    o.shares = few;
    ok(cnr_place(m, &o, &err) == CNR_E_ARG, "shares that aren't 1: %s", err.text);
    o.shares = NULL;
    o.n_devices = 1;
    o.devices = none;
    ok(cnr_place(m, &o, &err) == CNR_E_NOT_FOUND, "no such device: %s", err.text);
    o.devices = far;
    o.node = "nobody";
    ok(cnr_place(m, &o, &err) == CNR_E_NOT_FOUND, "no such node: %s", err.text);
    o.n_devices = 65;
    o.node = "*";
    ok(cnr_place(m, &o, &err) == CNR_E_ARG, "too many: %s", err.text);
    o.node = NULL;
    ok(cnr_place(m, &o, &err) == CNR_E_ARG, "no node");
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    ok(lab_open(&err) == CNR_OK, "the made-up plugin loads");
    devices();
    cnr_model *m = model();
    if (m) placed(m);
    cnr_close(lab_rt);
    return done();
}
