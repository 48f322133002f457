/* Prints results from tables of fields: one description gives the JSON object and the line for
 * people. */
#include "front/front.h"
#include "people/people.h"
#include <math.h>

/* A record that is being printed by its line. */
typedef struct telling {
    const cnri_record *record;
    const char *of;
    cnri_text text;
} telling;

/* The text of a field; NULL: it has none. An empty array counts as no text. */
static const char *text_of(const cnri_field *f, const void *at) {
    if (f->type == CNRI_T_HERE) return *(const char *)at ? at : NULL;
    return f->type == CNRI_T_TEXT ? *(const char *const *)at : NULL;
}

/* A whole number or flag at an address; 0: neither. */
static int64_t whole_of(const cnri_field *f, const void *at) {
    switch (f->type) {
    case CNRI_T_BOOL: return *(const bool *)at;
    case CNRI_T_I32: return *(const int32_t *)at;
    case CNRI_T_U32: return *(const uint32_t *)at;
    case CNRI_T_I64:
    case CNRI_T_U64: return *(const int64_t *)at;
    default: return 0;
    }
}

/* True if the field is a text. */
static bool is_text(const cnri_field *f) {
    return f->type == CNRI_T_TEXT || f->type == CNRI_T_HERE;
}

/* True if the field has a value. */
static bool is_there(const cnri_field *f, const void *at) {
    if (is_text(f)) return text_of(f, at) != NULL;
    if (f->type == CNRI_T_REAL) return !isnan(*(const double *)at);
    return f->type != CNRI_T_I64 || whole_of(f, at) != CNRI_NONE;
}

void cnri_json_fields(cnri_json *j, const cnri_record *r, const void *of) {
    for (int32_t i = 0; i < r->n; i++) {
        const cnri_field *f = &r->fields[i];
        const void *at = (const char *)of + f->at;
        if (f->aside || (f->maybe && !is_there(f, at))) continue;
        if (is_text(f)) cnri_json_text(j, f->key, text_of(f, at));
        else if (f->type == CNRI_T_REAL) cnri_json_real(j, f->key, *(const double *)at);
        else if (f->type == CNRI_T_BOOL) cnri_json_bool(j, f->key, *(const bool *)at);
        else cnri_json_int(j, f->key, whole_of(f, at));
    }
}

/* ---- lines ---- */

/* True if the condition of {key?yes|no} holds: a text that isn't empty, or a number that isn't
 * 0. */
static bool is_so(const cnri_field *f, const void *at) {
    if (is_text(f) && text_of(f, at)) return *text_of(f, at) != 0;
    return is_there(f, at) && (f->type == CNRI_T_REAL || whole_of(f, at) != 0);
}

void cnri_duration(double seconds, char *out, size_t capacity) {
    if (!(seconds >= 0) || seconds > 1e9) snprintf(out, capacity, "?");
    else if (seconds < 9.95) snprintf(out, capacity, "%.1fs", seconds);
    else if (seconds < 59.5) snprintf(out, capacity, "%.0fs", seconds);
    else if (seconds < 3600) {
        const int whole = (int)(seconds + 0.5);
        snprintf(out, capacity, "%dm%02ds", whole / 60, whole % 60);
    } else {
        const int64_t minutes = (int64_t)(seconds / 60);
        snprintf(out, capacity, "%lldh%02dm", (long long)(minutes / 60), (int)(minutes % 60));
    }
}

/* Appends a number in its unit (% of 1, M for millions, t a duration, g as short as possible), with
 * that width and precision. */
static void add_real(telling *t, double value, int width, int precision, char unit) {
    const double scaled = unit == '%' ? value * 100 : unit == 'M' ? value / 1e6 : value;
    char text[32];
    if (unit == 't') {
        cnri_duration(value, text, sizeof text);
        cnri_text_add(&t->text, "%*s", width, text);
    } else if (unit == 'g') {
        cnri_text_add(&t->text, "%*.*g", width, precision, scaled);
    } else {
        cnri_text_add(&t->text, "%*.*f%s", width, precision, scaled, unit == '%' ? "%" : "");
    }
}

/* Adds the value in the format behind the colon: "-10", "10.3f", ".2%". */
static void add_value(telling *t, const cnri_field *f, const void *at, const char *how) {
    const bool left = *how == '-', whole = f->type != CNRI_T_REAL;
    int width = 0, precision = 6;
    for (how += left; *how >= '0' && *how <= '9'; how++) width = 10 * width + *how - '0';
    if (*how == '.')
        for (precision = 0, how++; *how >= '0' && *how <= '9'; how++)
            precision = 10 * precision + *how - '0';
    if (left) width = -width;
    if (is_text(f)) cnri_text_say(&t->text, "%*s", width, text_of(f, at) ? text_of(f, at) : "-");
    else if (whole && strchr("}d", *how))
        cnri_text_add(&t->text, "%*lld", width, (long long)whole_of(f, at));
    else
        add_real(t, whole ? (double)whole_of(f, at) : *(const double *)at, width, precision,
                 *how == '}' ? 'g' : *how);
}

/* The brace, or the bar at this depth, that ends the text that begins at `at`. */
static const char *end_of(const char *at, bool bar) {
    for (int depth = 0; *at; at++) {
        if (depth == 0 && (*at == '}' || (bar && *at == '|'))) break;
        depth += (*at == '{') - (*at == '}');
    }
    return at;
}

static void add_text(telling *t, const char *at, const char *end);

/* Adds the field whose description lies between the opening brace (before `at`) and the closing
 * one (`end`). */
static void add_field(telling *t, const char *at, const char *end) {
    const size_t n = strcspn(at, ":?+}");
    const cnri_field *f = t->record->fields;
    while (strlen(f->key) != n || strncmp(f->key, at, n) != 0) f++; /* it is there */
    const void *value = t->of + f->at;
    const char *rest = at + n, *bar = end_of(rest, true);
    if (*rest == '+') {
        if (whole_of(f, value) != 1) add_text(t, rest + 1, end);
    } else if (*rest != '?') {
        add_value(t, f, value, rest + (*rest == ':'));
    } else if (is_so(f, value)) {
        add_text(t, rest + 1, bar);
    } else if (bar < end) {
        add_text(t, bar + 1, end);
    }
}

/* Appends a part of a record's line, with fields in braces replaced. */
static void add_text(telling *t, const char *at, const char *end) {
    while (at < end) {
        const size_t n = strcspn(at, "{"), left = (size_t)(end - at);
        cnri_text_bytes(&t->text, at, n < left ? n : left);
        if (n >= left) break;
        at += n + 1;
        const char *close = end_of(at, false);
        add_field(t, at, close);
        at = close + 1;
    }
}

cnr_status cnri_tell_line(const cnri_record *r, const void *of, cnr_error *err) {
    telling t = {.record = r, .of = of};
    add_text(&t, r->line, r->line + strlen(r->line));
    const cnr_status status = cnri_tell_text(&t.text, err);
    cnri_text_free(&t.text);
    return status;
}

cnr_status cnri_tell(const cnri_call *call, const cnri_record *r, const void *of, cnr_error *err) {
    cnri_json j;
    if (!call->common.json) return cnri_tell_line(r, of, err);
    cnri_json_begin(&j);
    cnri_json_fields(&j, r, of);
    if (r->warns) cnri_json_warnings(&j, call->model->graph);
    return cnri_json_print(&j, err);
}
