/* Meters and knobs of a machine that is not there, each with one planted fault. */
#include "faulty.h"

/* Method open: *n is one domain, without a state. */
static cnr_status open_any(const cnr_gauge_options *o, void **state, int32_t *n, cnr_error *err) {
    (void)o, (void)err;
    *state = NULL;
    *n = 1;
    return CNR_OK;
}
static void close_any(void *state) { (void)state; }

/* ---- meters ---- */

/* Method describe of a meter of power called "board"; returns CNR_OK. */
static cnr_status describe_power(void *state, int32_t domain, cnr_meter_domain *out,
                                 cnr_error *err) {
    (void)state, (void)domain, (void)err;
    snprintf(out->name, sizeof out->name, "board");
    out->quantity = CNR_QUANTITY_POWER;
    return CNR_OK;
}
/* Method describe of a meter of energy called "board"; returns CNR_OK. */
static cnr_status describe_energy(void *state, int32_t domain, cnr_meter_domain *out,
                                  cnr_error *err) {
    const cnr_status status = describe_power(state, domain, out, err);
    out->quantity = CNR_QUANTITY_ENERGY;
    return status;
}
/* Method read, without a fault: 2.5 W. */
static cnr_status read_power(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    (void)state, (void)domain, (void)err;
    out->value = 2500000;
    return CNR_OK;
}
/* Fault: negative watts. */
static cnr_status read_negative(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    const cnr_status status = read_power(state, domain, out, err);
    out->value = -out->value;
    return status;
}
/* Fault: joules that fall. */
static cnr_status read_falling(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    static int64_t joules = 1000;
    (void)state, (void)domain, (void)err;
    out->value = joules--;
    return CNR_OK;
}

/* Fault: memory that is never freed. */
static cnr_status read_leaking(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    return faulty_host->alloc(100) ? read_power(state, domain, out, err) : CNR_E_MEMORY;
}

/* A meter with these hooks. */
#define METER(word, tell, look) \
    { \
        .size = sizeof(cnr_meter), .name = word, .summary = "for tests", .open = open_any, \
        .describe = tell, .read = look, .close = close_any \
    }
static const cnr_meter meters[] = {METER("meter_sound", describe_power, read_power),
                                   METER("meter_negative", describe_power, read_negative),
                                   METER("meter_falling", describe_energy, read_falling),
                                   METER("meter_leaking", describe_power, read_leaking)};

/* ---- knobs ---- */

static uint64_t is_hz = 600000000;

/* Method describe of a knob that can be set: three steps from 100 to 600 MHz. */
static cnr_status describe_knob(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err) {
    (void)state, (void)domain, (void)err;
    snprintf(out->name, sizeof out->name, "clock");
    out->n_steps = 3;
    out->is_writable = 1;
    out->min_hz = 100000000;
    out->max_hz = 600000000;
    return CNR_OK;
}
/* Method step: *hz of three steps, without a fault. */
static cnr_status step(void *state, int32_t domain, int32_t index, uint64_t *hz, cnr_error *err) {
    static const uint64_t steps[] = {100000000, 300000000, 600000000};
    (void)state, (void)domain, (void)err;
    *hz = steps[index];
    return CNR_OK;
}
/* Fault: steps that fall. */
static cnr_status step_falling(void *state, int32_t domain, int32_t index, uint64_t *hz,
                               cnr_error *err) {
    return step(state, domain, 2 - index, hz, err);
}
/* Method read of a knob: the clock that was set, in Hz. */
static cnr_status read_knob(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err) {
    (void)state, (void)domain, (void)err;
    out->hz = is_hz;
    return CNR_OK;
}
/* Method set, without a fault: keeps hz, unless that is 0. */
static cnr_status set(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err) {
    (void)state, (void)domain, (void)cores, (void)err;
    if (hz) is_hz = hz;
    return CNR_OK;
}
/* Fault: sets nothing. */
static cnr_status set_stuck(void *state, int32_t domain, uint64_t hz, int32_t cores,
                            cnr_error *err) {
    (void)state, (void)domain, (void)hz, (void)cores, (void)err;
    return CNR_OK;
}
/* Method restore, without a fault: 600 MHz. */
static cnr_status restore(void *state, cnr_error *err) {
    (void)state, (void)err;
    is_hz = 600000000;
    return CNR_OK;
}
/* Fault: restores another frequency. */
static cnr_status restore_other(void *state, cnr_error *err) {
    (void)state, (void)err;
    is_hz = 100000000;
    return CNR_OK;
}

static uint64_t found_hz = 600000000;
/* Method save_state: writes the found clock in decimal; returns the text's length. */
static int32_t save_state(void *state, char *text, size_t room) {
    (void)state;
    return snprintf(text, room, "%llu", (unsigned long long)found_hz);
}
/* Method load_state, with a fault: reads the clock in base 16, which was written in base 10. */
static cnr_status load_state(void *state, const char *text, cnr_error *err) {
    (void)state, (void)err;
    found_hz = strtoull(text, NULL, 16); /* which it was not written in */
    return CNR_OK;
}

/* A knob with these hooks. */
#define KNOB(word, rung, change, back) \
    { \
        .size = sizeof(cnr_knob), .name = word, .summary = "for tests", .open = open_any, \
        .describe = describe_knob, .step = rung, .read = read_knob, .set = change, \
        .restore = back, .close = close_any \
    }
static const cnr_knob knobs[] = {KNOB("knob_sound", step, set, restore),
                                 KNOB("knob_stuck", step, set_stuck, restore),
                                 KNOB("knob_forgets", step, set, restore_other),
                                 KNOB("knob_steps", step_falling, set, restore),
                                 {.size = sizeof(cnr_knob),
                                  .name = "knob_misreads",
                                  .summary = "for tests",
                                  .open = open_any,
                                  .describe = describe_knob,
                                  .step = step,
                                  .read = read_knob,
                                  .set = set,
                                  .restore = restore,
                                  .close = close_any,
                                  .save_state = save_state,
                                  .load_state = load_state}};

cnr_status faulty_add_gauges(struct cnr_registrar *r) {
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(meters); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_METER, &meters[i]));
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(knobs); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_KNOB, &knobs[i]));
    return CNR_OK;
}
