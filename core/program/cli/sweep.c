/* The points of a sweep. */
#include "cli/sweep.h"
#include "people/people.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MOST_VALUES = 10000, MOST_POINTS = 1000000, MOST_NAME = 120 };

/* ---- axes ---- */

/* True if n bytes of text are the name of an argument. */
static bool is_name(const char *text, size_t n) {
    if (n == 0 || isdigit((unsigned char)text[0])) return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
    return true;
}

/* Adds a value of n bytes. False: out of memory. */
static bool add_value(cnri_sweep_axis *axis, const char *text, size_t n) {
    char **slot = cnri_push(&axis->values);
    if (slot) *slot = cnri_format("%.*s", (int)n, text);
    return slot && *slot;
}

/* Adds a value with twelve digits: 0.01, not 0.010000000000000002. */
static bool add_number(cnri_sweep_axis *axis, double value) {
    cnri_drawn text;
    const char *end;
    snprintf(text, sizeof text, "%.12g", value);
    for (char *at = text; *at; at++)
        if (*at == ',') *at = '.'; /* of another locale */
    if (!cnri_parse_double(text, &end, &value)) return false;
    return add_value(axis, text, (size_t)cnri_print_double(text, sizeof text, value));
}

/* Reads the name of an axis, which no other axis and no field of args may have. */
static cnr_status name_of(const char *text, size_t n, const cnri_sweep_axes *axes, cnr_error *err) {
    static const char *const taken[] = {"seed", "output", "load", NULL};
    const char *why =
        is_name(text, n) ? NULL : "want NAME=VALUES, the name of letters, digits and _";
    for (int32_t i = 0; !why && i < axes->n; i++)
        if (strlen(axes->at[i].name) == n && strncmp(axes->at[i].name, text, n) == 0)
            why = "the name stands there twice";
    for (int32_t i = 0; !why && taken[i]; i++)
        if (strlen(taken[i]) == n && strncmp(taken[i], text, n) == 0)
            why = "the name is taken (seed is --seeds; output, load)";
    return why ? cnri_fail(err, CNR_E_ARG, "--grid", "%s: %s", text, why) : CNR_OK;
}

/* Reads LOW:HIGH:N behind "log:" or "lin:". */
static cnr_status read_range(cnri_sweep_axis *axis, const char *word, const char *text,
                             cnr_error *err) {
    const char *at = text;
    double count = NAN;
    const bool read = cnri_parse_double(at, &at, &axis->low) && *at++ == ':' &&
                      cnri_parse_double(at, &at, &axis->high) && *at++ == ':' &&
                      cnri_parse_double(at, &at, &count) && !*at;
    if (!read || !isfinite(axis->low) || !isfinite(axis->high) || count != floor(count) ||
        count < 1 || count > MOST_VALUES || (axis->is_log && (axis->low <= 0 || axis->high <= 0)))
        return cnri_fail(err, CNR_E_ARG, "--grid", "%s: want LOW:HIGH:N, N from 1 to %d%s", word,
                         MOST_VALUES, axis->is_log ? ", both ends above 0" : "");
    for (int64_t i = 0; i < (int64_t)count; i++) {
        const double part = count > 1 ? (double)i / (count - 1) : 0;
        const double value = axis->is_log ? axis->low * pow(axis->high / axis->low, part)
                                          : axis->low + (axis->high - axis->low) * part;
        if (!add_number(axis, part == 1 ? axis->high : value)) return cnri_out_of_memory(err, word);
    }
    return CNR_OK;
}

/* Reads values with commas between. */
static cnr_status read_list(cnri_sweep_axis *axis, const char *where, const char *word,
                            const char *text, cnr_error *err) {
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        if (n == 0) return cnri_fail(err, CNR_E_ARG, where, "%s: a value is empty", word);
        if (axis->values.n == MOST_VALUES)
            return cnri_fail(err, CNR_E_ARG, where, "%s: more than %d values", word, MOST_VALUES);
        if (!add_value(axis, at, n)) return cnri_out_of_memory(err, word);
        at += n;
        if (!*at) return CNR_OK;
    }
}

cnr_status cnri_axis_parse(const char *text, cnri_sweep_axes *axes, cnr_error *err) {
    const size_t n = strcspn(text, "=");
    const char *values = text[n] ? text + n + 1 : text + n;
    CNR_TRY(name_of(text, text[n] ? n : 0, axes, err));
    cnri_sweep_axis *axis = cnri_push(axes);
    if (!axis || !(axis->name = cnri_format("%.*s", (int)n, text)))
        return cnri_out_of_memory(err, text);
    axis->is_log = strncmp(values, "log:", 4) == 0;
    axis->is_range = axis->is_log || strncmp(values, "lin:", 4) == 0;
    return axis->is_range ? read_range(axis, text, values + 4, err)
                          : read_list(axis, "--grid", text, values, err);
}

cnr_status cnri_seeds_parse(const char *text, cnri_sweep_axes *axes, cnr_error *err) {
    const char *dots = strstr(text, "..");
    int64_t first, last;
    char head[32] = "";
    cnri_sweep_axis *axis = cnri_push(axes);
    if (!axis || !(axis->name = cnri_strdup("seed"))) return cnri_out_of_memory(err, text);
    if (!dots) {
        CNR_TRY(read_list(axis, "--seeds", text, text, err));
        for (int32_t i = 0; i < axis->values.n; i++)
            if (!cnri_parse_int(axis->values.at[i], &first) || first < 0)
                return cnri_fail(err, CNR_E_ARG, "--seeds", "%s: want FIRST..LAST or N,N,...",
                                 text);
        return CNR_OK;
    }
    snprintf(head, sizeof head, "%.*s", (int)(dots - text < 31 ? dots - text : 31), text);
    if (!cnri_parse_int(head, &first) || !cnri_parse_int(dots + 2, &last) || first < 0 ||
        last < first || last - first >= MOST_VALUES)
        return cnri_fail(err, CNR_E_ARG, "--seeds", "%s: want FIRST..LAST or N,N,...", text);
    for (int64_t i = first; i <= last; i++)
        if (!add_number(axis, (double)i)) return cnri_out_of_memory(err, text);
    return CNR_OK;
}

void cnri_sweep_axes_free(cnri_sweep_axes *axes) {
    for (int32_t i = 0; i < axes->n; i++) {
        for (int32_t k = 0; k < axes->at[i].values.n; k++) cnri_free(axes->at[i].values.at[k]);
        cnri_vec_free(&axes->at[i].values);
        cnri_free(axes->at[i].name);
    }
    cnri_vec_free(axes);
}

/* ---- points ---- */

int64_t cnri_points(const cnri_sweep_axes *axes, int64_t drawn) {
    int64_t n = 1;
    for (int32_t i = 0; i < axes->n; i++)
        if (!drawn || i == axes->n - 1) {
            n *= axes->at[i].values.n;
            if (n > MOST_POINTS) return -1;
        }
    return drawn && n > MOST_POINTS / drawn ? -1 : n * (drawn ? drawn : 1);
}

/* A number of at least 0 and below 1 that depends on the three arguments alone (finaliser of
 * splitmix64). */
static double fraction(uint64_t seed, uint64_t draw, uint64_t axis) {
    uint64_t z = seed + UINT64_C(0x9e3779b97f4a7c15) * (draw * 64 + axis + 1);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* The value of an axis in a draw. */
static const char *draw(const cnri_sweep_axis *axis, double part, cnri_drawn room) {
    if (!axis->is_range) return axis->values.at[(int32_t)(part * axis->values.n)];
    const double value = axis->is_log ? axis->low * pow(axis->high / axis->low, part)
                                      : axis->low + (axis->high - axis->low) * part;
    cnri_print_double(room, sizeof(cnri_drawn), value);
    return room;
}

void cnri_point(const cnri_sweep_axes *axes, int64_t drawn, uint64_t draw_seed, int64_t i,
                cnri_lua_named *out, cnri_drawn *room) {
    const int32_t last = axes->n - 1;
    const int64_t row = i / axes->at[last].values.n; /* of the draw */
    for (int32_t a = last; a >= 0; a--) {
        const cnri_sweep_axis *axis = &axes->at[a];
        const char *text, *end;
        double number;
        if (drawn && a < last)
            text = draw(axis, fraction(draw_seed, (uint64_t)row, (uint64_t)a), room[a]);
        else text = axis->values.at[i % axis->values.n];
        i /= axis->values.n;
        out[a] = (cnri_lua_named){.name = axis->name};
        if (cnri_parse_double(text, &end, &number) && !*end && isfinite(number))
            out[a].number = number, out[a].is_zero = number == 0;
        else out[a].text = text;
    }
    out[axes->n] = (cnri_lua_named){.name = NULL};
}

bool cnri_point_json(const cnri_lua_named *point, cnri_text *out) {
    for (int32_t i = 0; point[i].name; i++) {
        char number[32];
        cnri_text_add(out, "%s\"%s\":", i ? "," : "{", point[i].name);
        if (point[i].text) cnri_text_json(out, point[i].text);
        else {
            cnri_print_double(number, sizeof number, point[i].number);
            cnri_text_add(out, "%s", number);
        }
    }
    cnri_text_add(out, "}");
    return !out->failed;
}

char *cnri_point_name(const cnri_lua_named *point) {
    cnri_text json = {0}, name = {0};
    char *made = NULL;
    bool plain = true;
    for (int32_t i = 0; point[i].name; i++) {
        char number[32];
        cnri_print_double(number, sizeof number, point[i].number);
        cnri_text_add(&name, "%s%s=%s", i ? "," : "", point[i].name,
                      point[i].text ? point[i].text : number);
    }
    for (size_t i = 0; i < name.n; i++)
        plain &= isalnum((unsigned char)name.at[i]) || strchr("=,._+-", name.at[i]);
    if (name.failed || !cnri_point_json(point, &json)) made = NULL;
    else if (plain && name.n <= MOST_NAME) made = cnri_strdup(name.at);
    else {
        uint8_t print[16];
        char hex[33];
        cnri_fingerprint(json.at, json.n, print);
        cnri_hex(print, sizeof print, hex);
        made = cnri_strdup(hex);
    }
    cnri_text_free(&json);
    cnri_text_free(&name);
    return made;
}
