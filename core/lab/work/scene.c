/* A simulated scene as a machine that a policy sees. A plugin's object, made from the values of
 * board and scene, computes times, power and heat. */
#include "work/scene.h"
#include "board/board.h"
#include <math.h>

/* An f64 tensor of rank 0 that borrows the number. */
static cnr_tensor number(double *value) {
    return (cnr_tensor){.size = sizeof(cnr_tensor), .dtype = CNR_f64, .data = value, .bytes = 8};
}

/* Calls a method with one or two numbers. */
static cnr_status ask(cnri_scene *s, const char *method, int32_t n, double a, double b,
                      const cnr_tensor **out, int32_t n_out, cnr_error *err) {
    const cnr_tensor first = number(&a), second = number(&b), *const in[] = {&first, &second};
    return cnr_object_call(s->machine, method, in, n, out, n_out, err);
}

static double at(const cnr_tensor *t, int64_t i) { return ((const double *)t->data)[i]; }

/* ---- opening ---- */

/* Appends all values of a board, one a line. */
static void add_values(cnri_text *to, const cnri_board *b) {
    const char *path;
    int32_t kind;
    for (int32_t i = 0; b && (path = cnri_board_at(b, i, &kind)); i++) {
        double value = cnri_board_get_count(b, path);
        char shown[40];
        if (kind == CNRI_BOARD_NUMBER) cnri_board_get_number(b, path, &value);
        cnri_print_double(shown, sizeof shown, value);
        cnri_text_add(to, "%s=%s\n", path,
                      kind == CNRI_BOARD_TEXT ? cnri_board_get_text(b, path) : shown);
    }
}

cnr_status cnri_scene_open(cnr_runtime *rt, const cnri_board *board, const cnri_board *scene,
                           cnri_scene *out, cnr_error *err) {
    cnri_text text = {0};
    *out = (cnri_scene){.runs = {.seconds = NAN, .cycle = NAN, .joules = NAN}};
    cnri_text_add(&text, "board=");
    add_values(&text, board);
    add_values(&text, scene);
    const char *const options[] = {text.at, NULL};
    cnr_status status = text.failed ? cnri_fail(err, CNR_E_MEMORY, "scene", "out of memory")
                                    : cnr_object_make(rt, "simulated", options, &out->machine, err);
    cnri_text_free(&text);
    /* Checks that the scene has anything to simulate. */
    if (!status) status = cnri_scene_pass(out, 0, err);
    if (status) cnri_scene_close(out);
    return status;
}

/* Frees the simulated machine. */
void cnri_scene_close(cnri_scene *s) {
    cnr_object_free(s->machine);
    s->machine = NULL;
}

/* ---- playing ---- */

cnr_status cnri_scene_pass(cnri_scene *s, double seconds, cnr_error *err) {
    const cnr_tensor *ends;
    const cnr_status status = ask(s, "pass", 1, seconds, 0, &ends, 1, err);
    for (int64_t i = 0; !status && i < ends->dim[0]; i += 3) {
        const double took = at(ends, i + 1) - at(ends, i);
        s->runs.count++;
        s->runs.fresh++;
        s->runs.seconds = took;
        s->last_end = at(ends, i + 1);
        s->last_joules = at(ends, i + 2);
        s->longest_run = fmax(s->longest_run, took);
        s->late += s->late_after > 0 && took > s->late_after + 1e-9;
    }
    return status;
}

/* ---- as a machine ---- */

/* Asks the machine for the name and range of clock i. */
static cnr_status describe_knob(cnri_scene *s, int32_t i, cnri_seen_knob *k, cnr_error *err) {
    const cnr_tensor *told[3];
    const cnr_status status = ask(s, "clock", 1, i + 1, 0, told, 3, err);
    if (status) return status;
    *k = (cnri_seen_knob){.writable = 1, .cores = -1};
    snprintf(k->name, sizeof k->name, "%.*s", (int)told[0]->dim[0], (const char *)told[0]->data);
    snprintf(k->feeds, sizeof k->feeds, "%.*s", (int)told[1]->dim[0], (const char *)told[1]->data);
    for (int64_t j = 0; j < told[2]->dim[0] && k->n_steps < CNRI_MAX_STEPS; j++)
        k->steps[k->n_steps++] = (uint64_t)(at(told[2], j) + 0.5);
    k->min_hz = k->steps[0];
    k->max_hz = k->steps[k->n_steps - 1];
    return CNR_OK;
}

/* Asks the machine for its clocks and meters. */
static cnr_status describe(cnri_scene *s, cnri_seen *seen, cnr_error *err) {
    const cnr_tensor *told[5];
    cnr_status status = ask(s, "look", 0, 0, 0, told, 5, err);
    const int64_t n = status ? 0 : cnr_min(told[4]->dim[0] / 2, CNRI_MAX_KNOBS);
    *seen = (cnri_seen){.n_knobs = (int32_t)n, .n_meters = 1};
    seen->meters[0] = (cnri_seen_meter){.name = "all", .quantity = CNR_QUANTITY_ENERGY, .whole = 1};
    for (int32_t i = 0; i < n && !status; i++) status = describe_knob(s, i, &seen->knobs[i], err);
    return status;
}

/* Sets seconds and joules per pass since the last tick in which a pass ended; NaN if none ended in
 * this tick. The energy at the end of the last pass is this tick's less what its power drew since,
 * as on a live machine. */
static void measure_runs(cnri_scene *s, cnri_seen *seen) {
    s->runs.cycle = s->runs.joules = NAN;
    if (s->runs.fresh > 0) {
        const double rate = isnan(seen->watts) ? 0 : seen->watts,
                     then = seen->joules - rate * (seen->time - s->last_end);
        if (s->seen_end > 0) {
            s->runs.cycle = (s->last_end - s->seen_end) / (double)s->runs.fresh;
            s->runs.joules = (then - s->seen_joules) / (double)s->runs.fresh;
        }
        s->seen_end = s->last_end;
        s->seen_joules = then;
    }
    seen->runs = s->runs;
    s->runs.fresh = 0;
}

/* Reads time, joules, temperatures and clocks of the machine. */
static cnr_status look(void *arg, cnri_seen *seen, cnr_error *err) {
    cnri_scene *s = arg;
    const cnr_tensor *told[5];
    cnr_status status = seen->n_knobs ? CNR_OK : describe(s, seen, err);
    if (!status) status = ask(s, "look", 0, 0, 0, told, 5, err);
    if (status) return status;
    seen->period = at(told[0], 0) - seen->time;
    seen->watts = seen->period > 0 ? (at(told[1], 0) - seen->joules) / seen->period : (double)NAN;
    seen->time = at(told[0], 0);
    seen->joules = at(told[1], 0);
    seen->temperature = at(told[2], 0);
    s->held = at(told[3], 0);
    seen->meters[0].watts = seen->watts;
    seen->meters[0].joules = seen->joules;
    seen->meters[0].temperature = NAN;
    for (int32_t i = 0; i < seen->n_knobs; i++) {
        cnri_seen_knob *k = &seen->knobs[i];
        k->hz = (uint64_t)(at(told[4], 2 * i) + 0.5);
        k->load = seen->period > 0 ? fmin(at(told[4], 2 * i + 1) / seen->period, 1) : (double)NAN;
        k->temperature = seen->temperature;
    }
    measure_runs(s, seen);
    return CNR_OK;
}

/* Method set of cnri_machine: sets clock `knob` of the scene to hz; cores are ignored. */
static cnr_status set(void *arg, int32_t knob, uint64_t hz, int32_t cores, cnr_error *err) {
    (void)cores;
    return ask(arg, "set", 2, knob + 1, (double)hz, NULL, 0, err);
}

cnri_machine cnri_scene_machine(cnri_scene *s) { return (cnri_machine){s, look, set}; }
