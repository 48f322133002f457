/* Checks attribute values against a schema: reports every mistake, fills defaults, expands
 * spatial lists. */
#include "host/host.h"
#include <math.h>
#include <string.h>

/* One row with what was given for it. First all rows are checked and measured, then one block is
 * allocated for all of them and filled:
 *
 *     [ cnr_attr * ... | cnr_attr ... | int64_t and double lists ... | strings ... ] */
typedef struct entry {
    cnr_attr_spec row;
    const cnr_attr *given; /* NULL: it was omitted */
    int64_t n;             /* length of the resulting list */
    int32_t choice;        /* index of the choice, for ENUM */
} entry;

/* Attributes that are being checked against a schema. */
typedef struct resolver {
    entry *entries;
    int32_t n, spatial;
    bool failed;
    cnri_problem_fn problem;
    void *arg;
} resolver;

const cnr_attr_spec *cnri_spec_at(const cnr_attr_spec *rows, uint32_t row_size, int32_t i,
                                  cnr_attr_spec *row_buffer) {
    const char *row = (const char *)rows + (size_t)row_size * (size_t)i;
    if (row_size >= sizeof *row_buffer) return (const cnr_attr_spec *)(const void *)row;
    memset(row_buffer, 0, sizeof *row_buffer);
    return memcpy(row_buffer, row, row_size);
}

CNRI_PRINTF(3, 4)
/* Reports a problem of one attribute and marks the whole as failed. */
static void report(resolver *r, const char *path, const char *format, ...) {
    char text[512];
    va_list args;
    r->failed = true;
    if (!r->problem) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->problem(r->arg, path, text);
}

/* ---- what was given, as text ---- */

/* Prints a number so that it reads back the same. */
static void print_number(double f, char *out, size_t capacity) {
    cnri_print_double(out, capacity, f);
}

static bool is_list(int32_t type) { return type == CNR_ATTR_INTS || type == CNR_ATTR_FLOATS; }

/* Prints a given value into `out`, cut to `capacity`, for a message. */
static void describe(const cnr_attr *a, char *out, size_t capacity) {
    char number[40];
    if (a->type == CNR_ATTR_INT) snprintf(out, capacity, "%lld", (long long)a->i);
    else if (a->type == CNR_ATTR_BOOL) snprintf(out, capacity, "%s", a->i ? "true" : "false");
    else if (a->type == CNR_ATTR_FLOAT) {
        print_number(a->f, number, sizeof number);
        snprintf(out, capacity, "%s", number);
    } else if (is_list(a->type)) snprintf(out, capacity, "a list of %lld", (long long)a->n);
    else if (a->s) snprintf(out, capacity, "\"%.60s\"", a->s);
    else snprintf(out, capacity, "a value of another kind");
}

/* Reports that an attribute's value has the wrong type; want: the text of what was wanted. */
static void wrong_type(resolver *r, const cnr_attr *a, const char *want) {
    char got[96];
    describe(a, got, sizeof got);
    report(r, a->name, "want %s, got %s", want, got);
}

/* ---- numbers of any kind ---- */

/* Entry k of a list, or the scalar itself (k 0). */
static double number_at(const cnr_attr *a, int64_t k) {
    switch ((cnr_attr_type)a->type) {
    case CNR_ATTR_INTS: return (double)a->ints[k];
    case CNR_ATTR_FLOATS: return a->floats[k];
    case CNR_ATTR_FLOAT: return a->f;
    default: return (double)a->i;
    }
}

/* True for a single number. */
static bool is_number(const cnr_attr *a) {
    return a->type == CNR_ATTR_INT || a->type == CNR_ATTR_FLOAT;
}

/* True for a list with data and a possible length. */
static bool is_sound_list(const cnr_attr *a) {
    const bool there = a->type == CNR_ATTR_INTS ? a->ints != NULL : a->floats != NULL;
    return is_list(a->type) && a->n >= 0 && a->n <= INT32_MAX && (there || a->n == 0);
}

/* True for a whole number that a double holds exactly. */
static bool is_whole(double f) {
    return f >= -9007199254740992.0 && f <= 9007199254740992.0 && f == nearbyint(f);
}

/* Element k of a list, or a single number, as an integer. */
static int64_t int_at(const cnr_attr *a, int64_t k) {
    if (a->type == CNR_ATTR_INTS) return a->ints[k];
    if (a->type == CNR_ATTR_INT || a->type == CNR_ATTR_BOOL) return a->i;
    return (int64_t)number_at(a, k);
}

/* ---- checks ---- */

/* True if the limit bounds anything: schemas write INT64_MAX for no bound, which doubles only
 * approximate. */
static bool bounds(double limit) { return fabs(limit) < 9007199254740992.0; }

/* Reports a number outside the row's bounds; a row without bounds takes all. */
static void check_range(resolver *r, const entry *e, const char *path, double value) {
    char low[40], high[40], got[40];
    const cnr_attr_spec *row = &e->row;
    if (!(row->flags & CNR_ATTR_BOUNDED)) return;
    const bool above = !bounds(row->min) || value >= row->min;
    const bool below = !bounds(row->max) || value <= row->max;
    if (above && below && !isnan(value)) return;
    print_number(row->min, low, sizeof low);
    print_number(row->max, high, sizeof high);
    print_number(value, got, sizeof got);
    if (!bounds(row->max)) report(r, path, "want >= %s, got %s", low, got);
    else if (!bounds(row->min)) report(r, path, "want <= %s, got %s", high, got);
    else report(r, path, "want %s to %s, got %s", low, high, got);
}

/* Reports a number that is out of bounds, or not whole although it must be. */
static void check_number(resolver *r, const entry *e, const char *path, double value, bool whole) {
    char got[40];
    if (whole && !is_whole(value)) {
        print_number(value, got, sizeof got);
        report(r, path, "want a whole number, got %s", got);
    } else check_range(r, e, path, value);
}

/* Reports a mistake unless the value is one number (INT: a whole one) within the row's bounds. */
static void check_scalar(resolver *r, entry *e) {
    const bool whole = e->row.type == CNR_ATTR_INT;
    const cnr_attr *a = e->given;
    if (!is_number(a)) wrong_type(r, a, whole ? "a whole number" : "a number");
    else if (whole && a->type == CNR_ATTR_INT) check_range(r, e, a->name, (double)a->i);
    else check_number(r, e, a->name, number_at(a, 0), whole);
}

/* Checks a value that must be true or false, or 1 or 0. */
static void check_bool(resolver *r, entry *e) {
    const cnr_attr *a = e->given;
    const bool good = a->type == CNR_ATTR_BOOL ||
                      (is_number(a) && (number_at(a, 0) == 0 || number_at(a, 0) == 1));
    if (!good) wrong_type(r, a, "true or false");
}

/* Notes the index of the row's choice that the given text is; else reports a mistake with all
 * choices and the nearest. */
static void check_enum(resolver *r, entry *e) {
    const cnr_attr *a = e->given;
    const char *const *choices = e->row.choices;
    char list[256] = "";
    size_t used = 0;
    int32_t n = 0;
    for (; choices[n]; n++) {
        if (a->s && strcmp(a->s, choices[n]) == 0) {
            e->choice = n;
            return;
        }
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n ? ", " : "",
                                     choices[n]);
    }
    char want[300], got[96];
    const char *near = cnri_nearest_word(a->s, choices, n);
    snprintf(want, sizeof want, "one of %s", list);
    describe(a, got, sizeof got);
    if (near) report(r, a->name, "want %s, got %s; did you mean \"%s\"?", want, got, near);
    else report(r, a->name, "want %s, got %s", want, got);
}

/* Checks a value that must be a text. */
static void check_string(resolver *r, entry *e) {
    if (!e->given->s) wrong_type(r, e->given, "a text");
}

/* Data type that an attribute names; CNR_DTYPE_NONE: none. */
static int32_t dtype_of(const cnr_attr *a) {
    if (a->type == CNR_ATTR_DTYPE && !a->s) return (int32_t)a->i;
    return a->s ? cnri_dtype_of(a->s) : CNR_DTYPE_NONE;
}

/* Reports a mistake unless the value is a data type, or none. */
static void check_dtype(resolver *r, entry *e) {
    const cnr_attr *a = e->given;
    const int32_t dtype = dtype_of(a);
    const bool none = a->type == CNR_ATTR_DTYPE && !a->s && a->i == CNR_DTYPE_NONE;
    if (cnr_dtype_bits(dtype) != 0 || none) return;
/* One name of the list of data types. */
#define X(name, value, bits) #name " "
    static const char all[] = CNR_DTYPE_LIST(X);
#undef X
    char want[160];
    snprintf(want, sizeof want, "a data type (%.*s)", (int)sizeof all - 2, all);
    wrong_type(r, a, want);
}

/* Sets the length of the resulting list: a spatial one has one entry (or two) for each spatial
 * axis, once they are known. */
static void check_length(resolver *r, entry *e, int64_t n) {
    const bool pairs = e->row.flags & CNR_ATTR_SPATIAL_PAIRS;
    e->n = n;
    if (!(e->row.flags & CNR_ATTR_SPATIAL) && !pairs) return;
    if (r->spatial < 0) return;
    e->n = pairs ? 2 * (int64_t)r->spatial : r->spatial;
    if (n <= 1 || n == e->n || (pairs && n == r->spatial)) return;
    if (pairs)
        report(r, e->given->name, "want 1, %d or %d numbers (%d spatial axes), got %lld",
               (int)r->spatial, (int)e->n, (int)r->spatial, (long long)n);
    else
        report(r, e->given->name, "want 1 or %d numbers (one a spatial axis), got %lld", (int)e->n,
               (long long)n);
}

/* Checks a value that must be a list of numbers; one number stands for a list of it. */
static void check_list(resolver *r, entry *e) {
    const cnr_attr *a = e->given;
    const bool whole = e->row.type == CNR_ATTR_INTS;
    if (!is_number(a) && !is_sound_list(a)) {
        wrong_type(r, a, whole ? "whole numbers" : "numbers");
        return;
    }
    const int64_t n = is_number(a) ? 1 : a->n;
    for (int64_t k = 0; k < n; k++) {
        char path[160];
        if (is_number(a)) snprintf(path, sizeof path, "%s", a->name);
        else snprintf(path, sizeof path, "%s[%lld]", a->name, (long long)k + 1);
        /* Already a whole number, perhaps too large for a double. */
        if (whole && (a->type == CNR_ATTR_INTS || a->type == CNR_ATTR_INT))
            check_range(r, e, path, number_at(a, k));
        else check_number(r, e, path, number_at(a, k), whole);
    }
    check_length(r, e, n);
}

/* What a type wants, for messages. */
static const char *wanted_text(int32_t type) {
    static const char *const texts[] =
        {[CNR_ATTR_INT] = "a whole number", [CNR_ATTR_FLOAT] = "a number",
         [CNR_ATTR_BOOL] = "true or false", [CNR_ATTR_ENUM] = "one of its choices",
         [CNR_ATTR_STRING] = "a text",      [CNR_ATTR_INTS] = "whole numbers",
         [CNR_ATTR_FLOATS] = "numbers",     [CNR_ATTR_DTYPE] = "a data type"};
    return texts[type];
}

/* Checks a given value by its row's type, reporting mistakes; empty spatial lists are not given. */
static void check_entry(resolver *r, entry *e) {
    static void (*const checks[])(resolver *, entry *) =
        {[CNR_ATTR_INT] = check_scalar,    [CNR_ATTR_FLOAT] = check_scalar,
         [CNR_ATTR_BOOL] = check_bool,     [CNR_ATTR_ENUM] = check_enum,
         [CNR_ATTR_STRING] = check_string, [CNR_ATTR_INTS] = check_list,
         [CNR_ATTR_FLOATS] = check_list,   [CNR_ATTR_DTYPE] = check_dtype};
    /* An empty spatial list was resolved before its axes were known. */
    if (e->given && (e->row.flags & (CNR_ATTR_SPATIAL | CNR_ATTR_SPATIAL_PAIRS)) &&
        is_list(e->given->type) && e->given->n == 0)
        e->given = NULL;
    if (e->given) checks[e->row.type](r, e);
    else if (e->row.flags & CNR_ATTR_REQUIRED)
        report(r, e->row.name, "is required: want %s%s%s", wanted_text(e->row.type),
               e->row.help ? ", " : "", e->row.help ? e->row.help : "");
    else check_length(r, e, 0);
    if (!e->given && e->row.type == CNR_ATTR_ENUM)
        for (int32_t i = 0; e->row.choices[i]; i++)
            if (e->row.default_s && strcmp(e->row.choices[i], e->row.default_s) == 0) e->choice = i;
}

/* ---- matching names ---- */

/* Reports an unknown attribute, with a similar name and the list of all. */
static void unknown(resolver *r, const char *name) {
    const char *names[64] = {0};
    char list[320] = "";
    size_t used = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < r->n; i++) {
        const cnr_attr_spec *row = &r->entries[i].row;
        if (n < 63) names[n++] = row->name;
        if (n < 63 && row->alias) names[n++] = row->alias;
        if (used < sizeof list)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", row->name);
    }
    const char *near = cnri_nearest_word(name, names, n);
    if (near) report(r, name, "unknown attribute; did you mean \"%s\"?", near);
    else if (n) report(r, name, "unknown attribute; there are: %s", list);
    else report(r, name, "unknown attribute; there are none");
}

/* Finds the row of a given attribute by name or alias; reports one given twice. */
static void match(resolver *r, const cnr_attr *a) {
    if (!a->name) {
        report(r, "", "an attribute without a name");
        return;
    }
    for (int32_t i = 0; i < r->n; i++) {
        entry *e = &r->entries[i];
        if (strcmp(a->name, e->row.name) != 0 &&
            !(e->row.alias && strcmp(a->name, e->row.alias) == 0))
            continue;
        if (!e->given) e->given = a;
        else if (strcmp(a->name, e->given->name) == 0) report(r, a->name, "given twice");
        else report(r, a->name, "given already, as \"%s\"", e->given->name);
        return;
    }
    unknown(r, a->name);
}

/* ---- the result ---- */

/* Bytes of an entry's list in the result, 0 without one; *overflow gets true if they don't fit. */
static size_t entry_list_bytes(const entry *e, bool *overflow) {
    if (is_list(e->row.type)) return cnri_mul((size_t)e->n, sizeof(int64_t), overflow);
    return 0;
}

/* Bytes of an entry's text in the result, its end included. */
static size_t entry_text_bytes(const entry *e) {
    return e->given && e->row.type == CNR_ATTR_STRING ? strlen(e->given->s) + 1 : 0;
}

/* Index of the given entry that result entry k is copied from; -1: the default. */
static int64_t source_of(const entry *e, int64_t k) {
    const cnr_attr *a = e->given;
    if (!a) return -1;
    if (!is_list(a->type) || a->n == 1) return 0;
    if ((e->row.flags & CNR_ATTR_SPATIAL_PAIRS) && a->n < e->n) return k % a->n;
    return k;
}

/* Writes a list, what isn't given as the row's fill, to *at, and moves *at behind it. */
static void fill_list(const entry *e, cnr_attr *out, char **at) {
    int64_t *ints = (int64_t *)(void *)*at;
    double *floats = (double *)(void *)*at;
    out->n = e->n;
    if (e->n == 0) return;
    for (int64_t k = 0; k < e->n; k++) {
        const int64_t from = source_of(e, k);
        if (e->row.type == CNR_ATTR_INTS) ints[k] = from < 0 ? e->row.fill : int_at(e->given, from);
        else floats[k] = from < 0 ? (double)e->row.fill : number_at(e->given, from);
    }
    if (e->row.type == CNR_ATTR_INTS) out->ints = ints;
    else out->floats = floats;
    *at += (size_t)e->n * sizeof(int64_t);
}

/* Writes one resolved attribute into *out: as given, or its default; moves *lists and *texts behind
 * what it stores there. */
static void fill_one(const entry *e, cnr_attr *out, char **lists, char **texts) {
    const cnr_attr *a = e->given;
    out->name = e->row.name;
    out->type = e->row.type;
    out->set = a != NULL;
    switch ((cnr_attr_type)e->row.type) {
    case CNR_ATTR_INT:
    case CNR_ATTR_BOOL: out->i = a ? int_at(a, 0) : e->row.default_i; break;
    case CNR_ATTR_DTYPE: out->i = a ? dtype_of(a) : e->row.default_i; break;
    case CNR_ATTR_FLOAT: out->f = a ? number_at(a, 0) : e->row.default_f; break;
    case CNR_ATTR_ENUM:
        out->i = e->choice;
        out->s = a || e->row.default_s ? e->row.choices[e->choice] : "";
        break;
    case CNR_ATTR_STRING:
        out->s = e->row.default_s ? e->row.default_s : "";
        if (!a) break;
        out->s = strcpy(*texts, a->s);
        *texts += strlen(a->s) + 1;
        break;
    case CNR_ATTR_INTS:
    case CNR_ATTR_FLOATS: fill_list(e, out, lists); break;
    }
}

/* Builds the result in one block: pointers, attributes, lists, texts. NULL: out of memory. */
static cnr_attr **build(const resolver *r) {
    const size_t head = (size_t)r->n * (sizeof(cnr_attr *) + sizeof(cnr_attr));
    size_t lists = 0, texts = 0, bytes = 0;
    bool overflow = false;
    for (int32_t i = 0; i < r->n; i++) {
        overflow |=
            __builtin_add_overflow(lists, entry_list_bytes(&r->entries[i], &overflow), &lists);
        overflow |= __builtin_add_overflow(texts, entry_text_bytes(&r->entries[i]), &texts);
    }
    overflow |= __builtin_add_overflow(head, lists, &bytes);
    overflow |= __builtin_add_overflow(bytes, texts, &bytes);
    cnr_attr **out = overflow ? NULL : cnri_alloc_zero(bytes ? bytes : 1);
    if (!out) return NULL;
    cnr_attr *attrs = (cnr_attr *)(void *)(out + r->n);
    char *list = (char *)(attrs + r->n), *text = list + lists;
    for (int32_t i = 0; i < r->n; i++) {
        out[i] = &attrs[i];
        fill_one(&r->entries[i], out[i], &list, &text);
    }
    return out;
}

cnr_status cnri_attrs_resolve(const cnr_attr_spec *rows, uint32_t row_size, int32_t n_rows,
                              const cnr_attr *const *given, int32_t n_given, int32_t spatial,
                              cnri_problem_fn problem, void *arg, cnr_attr ***out) {
    resolver r = {.n = n_rows, .spatial = spatial, .problem = problem, .arg = arg};
    *out = NULL;
    r.entries = cnri_alloc_zero((size_t)(n_rows ? n_rows : 1) * sizeof *r.entries);
    if (!r.entries) return CNR_E_MEMORY;
    for (int32_t i = 0; i < n_rows; i++)
        r.entries[i].row = *cnri_spec_at(rows, row_size, i, &r.entries[i].row);
    for (int32_t i = 0; i < n_given; i++) match(&r, given[i]);
    for (int32_t i = 0; i < n_rows; i++) check_entry(&r, &r.entries[i]);
    if (!r.failed) *out = build(&r);
    cnri_free(r.entries);
    return r.failed ? CNR_E_ARG : *out ? CNR_OK : CNR_E_MEMORY;
}

/* Bytes of an attribute's list; 0: it is none. */
static size_t list_bytes(const cnr_attr *a) {
    return is_list(a->type) ? (size_t)a->n * sizeof(int64_t) : 0;
}

/* Bytes of an attribute's text, its end included; 0: it has none. */
static size_t text_bytes(const cnr_attr *a) {
    return a->type == CNR_ATTR_STRING && a->s ? strlen(a->s) + 1 : 0;
}

cnr_attr **cnri_attrs_copy(const cnr_attr *const *from, int32_t n) {
    size_t lists = 0, texts = 0;
    for (int32_t i = 0; i < n; i++) {
        lists += list_bytes(from[i]);
        texts += text_bytes(from[i]);
    }
    const size_t head = (size_t)n * (sizeof(cnr_attr *) + sizeof(cnr_attr));
    cnr_attr **out = cnri_alloc(head + lists + texts + 1);
    if (!out) return NULL;
    cnr_attr *attrs = (cnr_attr *)(void *)(out + n);
    char *list = (char *)(attrs + n), *text = list + lists;
    for (int32_t i = 0; i < n; i++) {
        const size_t bytes = list_bytes(from[i]), letters = text_bytes(from[i]);
        const void *numbers = from[i]->ints ? (const void *)from[i]->ints : from[i]->floats;
        *(out[i] = &attrs[i]) = *from[i];
        if (letters) out[i]->s = memcpy(text, from[i]->s, letters);
        if (bytes) memcpy(list, numbers, bytes);
        if (bytes && from[i]->ints) out[i]->ints = (const int64_t *)(const void *)list;
        else if (bytes) out[i]->floats = (const double *)(const void *)list;
        list += bytes;
        text += letters;
    }
    return out;
}

void cnri_attr_print(const cnr_attr *a, cnri_text *out) {
    char number[40];
    switch ((cnr_attr_type)a->type) {
    case CNR_ATTR_INT: cnri_text_add(out, "%lld", (long long)a->i); break;
    case CNR_ATTR_BOOL: cnri_text_add(out, "%s", a->i ? "true" : "false"); break;
    case CNR_ATTR_DTYPE: cnri_text_add(out, "%s", cnr_dtype_name((int32_t)a->i)); break;
    case CNR_ATTR_FLOAT:
        print_number(a->f, number, sizeof number);
        cnri_text_add(out, "%s", number);
        break;
    case CNR_ATTR_ENUM:
    case CNR_ATTR_STRING: cnri_text_add(out, "%s", a->s ? a->s : ""); break;
    case CNR_ATTR_INTS:
    case CNR_ATTR_FLOATS:
        for (int64_t k = 0; k < a->n; k++) {
            if (a->type == CNR_ATTR_FLOATS) print_number(a->floats[k], number, sizeof number);
            else snprintf(number, sizeof number, "%lld", (long long)a->ints[k]);
            cnri_text_add(out, "%s%s", k ? ", " : "", number);
        }
        break;
    }
}
