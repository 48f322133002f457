/* The keys of board files, and the check of a board against them. */
#include "lua/script.h"
#include "board/board.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 240 };

/* A row for a number, with its unit and limits. */
#define NUMBER(path, unit, low, high, otherwise, help) \
    { path, unit, help, CNRI_BK_NUMBER, low, high, otherwise, NULL }
/* Row of the schema: a value of a type without limits. */
#define OTHER(type, path, otherwise, help) \
    { path, "", help, CNRI_BK_##type, 0, 0, otherwise, NULL }
/* A row for a list of at most `maximum` entries. */
#define LIST(path, maximum, otherwise, help) \
    { path, "", help, CNRI_BK_LIST, 1, maximum, otherwise, NULL }
/* A row for the name of an entry of another list. */
#define ONE_OF(path, of, otherwise, help) \
    { path, "", help, CNRI_BK_ONE_OF, 0, 0, otherwise, of }

static const cnri_board_key keys[] = {
    OTHER(TEXT, "name", "none", "the board's"),
    OTHER(TEXT, "machine", "none",
          "how /proc/device-tree/model begins on the machine itself, where nothing is simulated"),
    OTHER(TEXT, "clock", "the machine's",
          "the clock in force: \"simulated\"; wanted where units have classes or members"),
    OTHER(AUTO, "simulate", "auto", "\"auto\": unless this is the machine"),
    OTHER(FLAG, "dry", "false", "nothing computes: outputs are 0"),
    NUMBER("seed", "", 0, 9007199254740992.0, "none", "by which a board was drawn"),
    OTHER(TEXT, "library", "none", "which program's kernels the classes describe"),
    LIST("rails", 64, "none", "what a sensor sees"),
    OTHER(TABLE, "rails[]", NULL, ""),
    OTHER(NAME, "rails[].name", NULL, ""),
    NUMBER("rails[].idle", "W", 0, 1e4, "0", "that it always draws"),
    NUMBER("rails[].per_byte", "J", 0, 1e-3, "0", "for each byte that any unit moves"),
    LIST("clocks", 64, "none", "frequencies that units follow"),
    OTHER(TABLE, "clocks[]", NULL, ""),
    OTHER(NAME, "clocks[].name", NULL, ""),
    NUMBER("clocks[].at", "MHz", 1e-3, 1e6, "the highest",
           "the step at which it begins: mhz of one of them"),
    LIST("clocks[].steps", 20000, NULL, "rising"),
    OTHER(TABLE, "clocks[].steps[]", NULL, ""),
    NUMBER("clocks[].steps[].mhz", "MHz", 1e-3, 1e6, NULL, ""),
    NUMBER("clocks[].steps[].volts", "V", 1e-3, 100, NULL, ""),
    LIST("units", 32, "none", "what computes, the best first"),
    OTHER(TABLE, "units[]", NULL, ""),
    OTHER(NAME, "units[].name", NULL, "a device: sim:NAME"),
    OTHER(TEXT, "units[].title", "its name", "what devices are listed with"),
    NUMBER("units[].cores", "", 1, 65536, "1", ""),
    ONE_OF("units[].rail", "rails", "that of its first member", "which feeds it"),
    ONE_OF("units[].clock", "clocks", "none", "which it follows"),
    OTHER(FLAG, "units[].host", "false", "it shares the program's memory; one unit does"),
    NUMBER("units[].launch", "s", 0, 60, NULL, "before a kernel begins"),
    NUMBER("units[].latency", "s", 0, 60, "0",
           "until what is queued reaches it; not seen behind other work"),
    LIST("units[].classes", 20000, "its members'",
         "of operators; the first counts whose pattern fits"),
    OTHER(TABLE, "units[].classes[]", NULL, ""),
    OTHER(TEXT, "units[].classes[].op", NULL, "a pattern of operators' names: \"conv*\""),
    NUMBER("units[].classes[].gflops", "1e9/s", 0, 1e7, "the nearest class's",
           "arithmetic at the clock's highest step; 0: no bound"),
    NUMBER("units[].classes[].gbytes", "1e9/s", 0, 1e6, "0", "bytes at any step; 0: no bound"),
    NUMBER("units[].classes[].activity", "", 0, 100, "1", "of the dynamic power"),
    OTHER(TABLE, "units[].split", "nothing",
          "what a part of a divided layer costs beside its share"),
    NUMBER("units[].split.seconds", "s", 0, 60, NULL, ""),
    NUMBER("units[].split.joules", "J", 0, 1e4, NULL, ""),
    OTHER(TABLE, "units[].transfer", "free", "between it and the program's memory"),
    NUMBER("units[].transfer.gbytes", "1e9/s", 0, 1e6, "0", "0: bytes are free"),
    NUMBER("units[].transfer.seconds", "s", 0, 60, "0", "each"),
    OTHER(TABLE, "units[].power", "its members'", "while it works"),
    NUMBER("units[].power.static", "W", 0, 1e4, "0", "at any step"),
    NUMBER("units[].power.dynamic", "W", 0, 1e4, "0", "at the highest step; goes by V^2 f"),
    LIST("units[].members", 8, "none",
         "units above, of which it is made: speeds and watts are summed"),
    ONE_OF("units[].members[]", "units", NULL, ""),
    NUMBER("contention", "", 0, 100, "0",
           "part by which work takes longer for each other unit that works when it begins"),
    NUMBER("jitter", "", 0, 1, "0", "part by which work takes more or less time, drawn by `seed`"),
    OTHER(TABLE, "heat", "none", "of the board as one body"),
    NUMBER("heat.ambient", "C", -100, 200, "25", "around it"),
    NUMBER("heat.ohms", "C/W", 0, 1e4, "0", "what each watt adds"),
    NUMBER("heat.tau", "s", 1e-3, 1e6, "30", "its time constant"),
    NUMBER("heat.limit", "C", 0, 1e3, "0", "above it clocks go down a step each 0.1 s; 0: never"),
    NUMBER("heat.slack", "C", 0, 1e3, "5", "below the limit, from where they go up again"),
    LIST("model", 20000, "none", "for meters that estimate watts of the real machine"),
    OTHER(TABLE, "model[]", NULL, ""),
    OTHER(TEXT, "model[].name", "the unit's", ""),
    OTHER(TEXT, "model[].feeds", "nothing", "a device"),
    OTHER(TEXT, "model[].frequency", NULL, "a file"),
    OTHER(TEXT, "model[].load", "none", "a file"),
    OTHER(TEXT, "model[].cpus", "none", "\"4-7\", of which the load is known"),
    ONE_OF("model[].unit", "units", "none", "whose watts are taken"),
    NUMBER("model[].capacitance", "W/(V^2 GHz)", 0, 1e6, "0", ""),
    NUMBER("model[].short", "A", 0, 1e4, "0", "short-circuit current"),
    NUMBER("model[].leak", "A", 0, 1e4, "0", "leakage current"),
    NUMBER("model[].static", "W", 0, 1e4, "0", ""),
    LIST("model[].steps", 20000, "the unit's", "rising"),
    OTHER(TABLE, "model[].steps[]", NULL, ""),
    NUMBER("model[].steps[].mhz", "MHz", 1e-3, 1e6, NULL, ""),
    NUMBER("model[].steps[].volts", "V", 1e-3, 100, NULL, ""),
    LIST("domains", 20000, "none", "names for domains that meters of the real machine find"),
    OTHER(TABLE, "domains[]", NULL, ""),
    OTHER(TEXT, "domains[].match", NULL, "a pattern of the meter's own name"),
    OTHER(TEXT, "domains[].name", "as it is", ""),
    OTHER(TEXT, "domains[].feeds", "as the meter says", "a device"),
    OTHER(ANY, "parameters", "none", "where numbers are from; lib/board.lua writes it"),
    OTHER(ANY, "notes", "none", "the file's own figures, which nothing here reads"),
};

const cnri_board_key *cnri_board_keys(int32_t *n) {
    *n = CNRI_COUNT(keys);
    return keys;
}

const char *cnri_board_type_name(cnri_board_type type) {
    static const char *const names[] = {"number", "true or false", "true, false or \"auto\"",
                                        "text",   "name",          "name",
                                        "list",   "table",         "anything"};
    return names[type];
}

/* ---- paths ---- */

/* Turns a path such as "units.2.classes.1.op" into its form in the table,
 * "units[].classes[].op". */
static void generic_path(const char *path, char out[MAX_PATH]) {
    size_t n = 0;
    while (*path && n + 4 < MAX_PATH) {
        const size_t part = strcspn(path, ".");
        if (part && strspn(path, "0123456789") == part) {
            memcpy(out + n, "[]", 2);
            n += 2;
        } else {
            if (n) out[n++] = '.';
            const size_t capacity = MAX_PATH - 1 - n, m = part < capacity ? part : capacity;
            memcpy(out + n, path, m);
            n += m;
        }
        path += part + (path[part] == '.');
    }
    out[n] = 0;
}

/* Length in bytes of the part before the last name or "[]": for "units[].classes[]" that of
 * "units[].classes"; 0: it is a top key. */
static size_t parent_of(const char *generic) {
    size_t n = strlen(generic);
    if (n > 2 && strcmp(generic + n - 2, "[]") == 0) return n - 2;
    while (n && generic[n - 1] != '.') n--;
    return n ? n - 1 : 0;
}

/* The row of a path in which indices are "[]"; NULL: there is none. */
static const cnri_board_key *find(const char *generic) {
    for (size_t i = 0; i < CNRI_COUNT(keys); i++) {
        const size_t n = strlen(keys[i].path);
        if (strncmp(keys[i].path, generic, n) != 0) continue;
        if (!generic[n] || (keys[i].type == CNRI_BK_ANY && strchr(".[", generic[n])))
            return &keys[i];
    }
    return NULL;
}

bool cnri_board_takes_flag(const char *path) {
    char generic[MAX_PATH];
    generic_path(path, generic);
    const cnri_board_key *k = find(generic);
    return !k || k->type == CNRI_BK_FLAG || k->type == CNRI_BK_AUTO || k->type == CNRI_BK_ANY;
}

/* ---- mistakes: the first by its path is told ---- */

/* A board that is being judged: the first mistake by path. */
typedef struct judge {
    const cnri_board *b;
    char path[MAX_PATH], why[320]; /* path of the first mistake; "": none so far */
    bool simulated;
} judge;

static void wrong(judge *j, const char *path, const char *format, ...) CNRI_PRINTF(3, 4);
/* Notes a mistake, unless one of an earlier path is known. */
static void wrong(judge *j, const char *path, const char *format, ...) {
    va_list args;
    if (j->why[0] && strcmp(j->path, path) <= 0) return;
    snprintf(j->path, sizeof j->path, "%s", path);
    va_start(args, format);
    vsnprintf(j->why, sizeof j->why, format, args);
    va_end(args);
}

/* Joins path and key with a dot; returns `joined`. */
static const char *join(char joined[MAX_PATH], const char *path, const char *key) {
    snprintf(joined, MAX_PATH, "%.180s.%s", path, key);
    return joined;
}

/* True if the table at `path` has the key. */
static bool has_key(const judge *j, const char *path, const char *key) {
    char joined[MAX_PATH];
    return cnri_board_kind(j->b, join(joined, path, key)) != 0;
}

/* ---- one key by itself ---- */

/* Notes an unknown key, with a similar one. */
static void judge_unknown(judge *j, const char *path, const char *generic) {
    const char *near[CNRI_COUNT(keys)], *last = path + strlen(path);
    const size_t parent = parent_of(generic);
    char all[200];
    int32_t n = 0;
    size_t used = 0;
    while (last > path && last[-1] != '.') last--;
    for (size_t i = 0; i < CNRI_COUNT(keys); i++) {
        const char *at = keys[i].path + parent + (parent > 0);
        if (parent_of(keys[i].path) != parent || strncmp(keys[i].path, generic, parent) != 0)
            continue;
        if (keys[i].path[parent] == '[') continue;
        near[n++] = at;
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", at);
    }
    const char *best = cnri_nearest_word(last, near, n);
    if (best) wrong(j, path, "unknown key; did you mean %s?", best);
    else if (n) wrong(j, path, "unknown key; there are: %s", all);
    else wrong(j, path, "nothing may stand here");
}

/* Writes what a number must be, with unit and limits. */
static void range_text(const cnri_board_key *k, char *out, size_t capacity) {
    char low[40], high[40];
    cnri_print_double(low, sizeof low, k->low);
    cnri_print_double(high, sizeof high, k->high);
    snprintf(out, capacity, "want a number%s%s, %s to %s", *k->unit ? " in " : "", k->unit, low,
             high);
}

/* Notes a number that is outside of its row's limits, or a value that is no number. */
static void judge_number(judge *j, const char *path, const cnri_board_key *k) {
    char want[120], is[40];
    double value = NAN;
    range_text(k, want, sizeof want);
    const char *text = cnri_board_get_text(j->b, path);
    if (text) return wrong(j, path, "%s, got the text \"%.40s\"", want, text);
    if (!cnri_board_get_number(j->b, path, &value)) return wrong(j, path, "%s, got a table", want);
    if (value >= k->low && value <= k->high) return;
    cnri_print_double(is, sizeof is, value);
    wrong(j, path, "%s, got %s", want, is);
}

/* Judges a name: length, letters, and that no other entry has it. */
static void judge_name(judge *j, const char *path) {
    const char *name = cnri_board_get_text(j->b, path), *dot;
    char list[MAX_PATH], other[MAX_PATH];
    if (!*name || strlen(name) >= 24 || strpbrk(name, " =,:"))
        return wrong(j, path,
                     "want a name of 1 to 23 letters, without spaces, commas and colons, got "
                     "\"%s\"",
                     name);
    snprintf(list, sizeof list, "%s", path); /* units.2.name: units */
    for (int i = 0; i < 2 && (dot = strrchr(list, '.')); i++) list[dot - list] = 0;
    for (int32_t i = 1; i <= cnri_board_get_count(j->b, list); i++) {
        snprintf(other, sizeof other, "%.180s.%d.name", list, (int)i);
        if (strcmp(other, path) == 0) return;
        const char *is = cnri_board_get_text(j->b, other);
        if (is && strcmp(is, name) == 0)
            return wrong(j, path, "want a name of its own; %s is \"%s\", too", other, name);
    }
}

/* Checks a reference between tables. A unit must stand before the units that are made of it. */
static void judge_reference(judge *j, const char *path, const cnri_board_key *k) {
    const char *name = cnri_board_get_text(j->b, path), *names[64];
    const bool member = strstr(path, ".members.") != NULL;
    int32_t n = 0, maximum = cnri_board_get_count(j->b, k->of);
    if (member) maximum = (int32_t)strtol(path + strlen("units."), NULL, 10) - 1;
    for (int32_t i = (int32_t)strtol(strrchr(path, '.') + 1, NULL, 10) - 1; member && i > 0; i--) {
        char at[MAX_PATH];
        snprintf(at, sizeof at, "%.*s.%d", (int)(strrchr(path, '.') - path), path, (int)i);
        const char *is = cnri_board_get_text(j->b, at);
        if (is && strcmp(is, name) == 0)
            return wrong(j, path, "want each unit once, got \"%s\" again", name);
    }
    for (int32_t i = 1; i <= maximum && n < 64; i++) {
        char at[MAX_PATH];
        snprintf(at, sizeof at, "%s.%d.name", k->of, (int)i);
        const char *is = cnri_board_get_text(j->b, at);
        if (is && strcmp(is, name) == 0) return;
        if (is) names[n++] = is;
    }
    const char *near = cnri_nearest_word(name, names, n);
    wrong(j, path, "want the name of one of %s%s, got \"%s\"%s%s%s", k->of, member ? " above" : "",
          name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* Judges a value that is true or false. */
static void judge_flag(judge *j, const char *path, const cnri_board_key *k) {
    const char *text = cnri_board_get_text(j->b, path);
    double value = NAN;
    if (k->type == CNRI_BK_AUTO && text && strcmp(text, "auto") == 0) return;
    if (cnri_board_get_number(j->b, path, &value) && (value == 0 || value == 1)) return;
    wrong(j, path, "want %s", cnri_board_type_name(k->type));
}

/* Notes what is wrong with one entry of the board by its row, or that no row knows it. */
static void judge_entry(judge *j, const char *path, int32_t kind) {
    char generic[MAX_PATH];
    generic_path(path, generic);
    const cnri_board_key *k = find(generic);
    if (!k) return judge_unknown(j, path, generic);
    switch (k->type) {
    case CNRI_BK_NUMBER: return judge_number(j, path, k);
    case CNRI_BK_FLAG:
    case CNRI_BK_AUTO: return judge_flag(j, path, k);
    case CNRI_BK_TEXT:
    case CNRI_BK_NAME:
    case CNRI_BK_ONE_OF:
        if (kind != CNRI_BOARD_TEXT)
            return wrong(j, path, "want a %s in quotes", cnri_board_type_name(k->type));
        if (!k->otherwise && !*cnri_board_get_text(j->b, path))
            return wrong(j, path, "want a text that is not empty");
        if (k->type == CNRI_BK_NAME) judge_name(j, path);
        if (k->type == CNRI_BK_ONE_OF) judge_reference(j, path, k);
        return;
    case CNRI_BK_LIST:
        if (kind != CNRI_BOARD_LIST) return wrong(j, path, "want a list, { ... }");
        if (!(cnri_board_get_count(j->b, path) >= k->low &&
              cnri_board_get_count(j->b, path) <= k->high))
            wrong(j, path, "want a list of 1 to %d, got %d", (int)k->high,
                  (int)cnri_board_get_count(j->b, path));
        return;
    case CNRI_BK_TABLE:
        if (kind != CNRI_BOARD_LIST) wrong(j, path, "want a table, { key = value, ... }");
        else if (cnri_board_get_count(j->b, path))
            wrong(j, path, "want keys with values, got a list");
        return;
    case CNRI_BK_ANY: return;
    }
}

/* ---- keys together ---- */

/* Checks that each table of `parent` has its required keys. */
static void judge_required(judge *j, const char *path) {
    char generic[MAX_PATH], at[MAX_PATH];
    generic_path(path, generic);
    const size_t n = strlen(generic);
    for (size_t i = 0; i < CNRI_COUNT(keys); i++) {
        const cnri_board_key *k = &keys[i];
        const char *key = k->path + n + 1;
        if (k->otherwise || parent_of(k->path) != n || strncmp(k->path, generic, n) != 0) continue;
        if (k->path[n] != '.' || has_key(j, path, key)) continue;
        if (!j->simulated && strcmp(generic, "units[]") == 0 && strcmp(key, "name") != 0) continue;
        char want[120] = "";
        if (k->type == CNRI_BK_NUMBER) range_text(k, want, sizeof want);
        else snprintf(want, sizeof want, "want a %s", cnri_board_type_name(k->type));
        wrong(j, join(at, path, key), "missing: %s%s%s", want, *k->help ? ": " : "", k->help);
    }
}

/* Notes the first steps of a clock that do not rise in MHz. */
static void judge_steps(judge *j, const char *path) {
    double before = 0, mhz;
    char at[MAX_PATH];
    for (int32_t i = 1; i <= cnri_board_get_count(j->b, path); i++, before = mhz) {
        snprintf(at, sizeof at, "%.180s.%d.mhz", path, (int)i);
        if (!cnri_board_get_number(j->b, at, &mhz)) return;
        if (!(mhz > before)) wrong(j, at, "want more MHz than the step before has");
    }
}

/* Judges that a clock begins at one of its steps. */
static void judge_clock(judge *j, const char *path) {
    char steps[MAX_PATH], at[MAX_PATH], all[160];
    double begins, mhz;
    size_t used = 0;
    join(steps, path, "steps");
    if (!cnri_board_get_number(j->b, join(at, path, "at"), &begins)) return;
    for (int32_t i = 1; i <= cnri_board_get_count(j->b, steps); i++) {
        char one[MAX_PATH], number[40];
        snprintf(one, sizeof one, "%.180s.%d.mhz", steps, (int)i);
        if (!cnri_board_get_number(j->b, one, &mhz)) return;
        if (mhz == begins) return;
        cnri_print_double(number, sizeof number, mhz);
        if (used < sizeof all)
            used +=
                (size_t)snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", number);
    }
    if (used) wrong(j, at, "want the mhz of one of its steps: %s", all);
}

/* On a simulated board: judges that a unit has classes or members, and without members a rail and
 * power. */
static void judge_unit(judge *j, const char *path) {
    char at[MAX_PATH];
    if (!j->simulated) return;
    const bool classes = has_key(j, path, "classes"), members = has_key(j, path, "members");
    if (!classes && !members)
        wrong(j, join(at, path, "classes"), "missing: want a list of classes, or members");
    if (!has_key(j, path, "rail") && !members)
        wrong(j, join(at, path, "rail"), "missing: want the name of one of rails");
    if (!members && !has_key(j, path, "power.static") && !has_key(j, path, "power.dynamic"))
        wrong(j, join(at, path, "power"), "missing: want { static = W, dynamic = W }");
}

/* Judges that no two classes of a unit are for one operator. */
static void judge_class(judge *j, const char *path) {
    char at[MAX_PATH], other[MAX_PATH];
    const int32_t own = (int32_t)strtol(strrchr(path, '.') + 1, NULL, 10);
    const char *op = cnri_board_get_text(j->b, join(at, path, "op"));
    for (int32_t i = 1; i < own && op; i++) {
        snprintf(other, sizeof other, "%.*s.%d.op", (int)(strrchr(path, '.') - path), path, (int)i);
        const char *is = cnri_board_get_text(j->b, other);
        if (is && strcmp(is, op) == 0)
            wrong(j, at, "want a pattern of its own; %s takes all of \"%s\"", other, op);
    }
    if (!has_key(j, path, "gflops") && !has_key(j, path, "gbytes"))
        wrong(j, join(at, path, "gflops"), "missing: want gflops or gbytes (0: no bound)");
}

/* Judges that a power model has steps or a unit. */
static void judge_model(judge *j, const char *path) {
    char at[MAX_PATH];
    if (!has_key(j, path, "unit") && !has_key(j, path, "steps"))
        wrong(j, join(at, path, "steps"), "missing: want steps of mhz and volts, or unit");
}

/* Notes entries below `path` that do not fit each other. */
static void judge_together(judge *j, const char *path) {
    static const struct {
        const char *path;
        void (*judge)(judge *, const char *);
    } rules[] = {{"clocks[]", judge_clock},          {"clocks[].steps", judge_steps},
                 {"model[].steps", judge_steps},     {"units[]", judge_unit},
                 {"units[].classes[]", judge_class}, {"model[]", judge_model}};
    char generic[MAX_PATH];
    generic_path(path, generic);
    for (size_t i = 0; i < CNRI_COUNT(rules); i++)
        if (strcmp(rules[i].path, generic) == 0) rules[i].judge(j, path);
    const cnri_board_key *k = find(generic);
    if (k && k->type == CNRI_BK_TABLE) judge_required(j, path);
}

/* Judges that a simulated board has a host that computes. */
static void judge_board(judge *j) {
    bool host = false, runs = false;
    double flag;
    char at[MAX_PATH];
    const int32_t n = cnri_board_get_count(j->b, "units");
    for (int32_t i = 1; i <= n; i++) {
        snprintf(at, sizeof at, "units.%d", (int)i);
        runs = runs || has_key(j, at, "classes") || has_key(j, at, "members");
        snprintf(at, sizeof at, "units.%d.host", (int)i);
        host = host || (cnri_board_get_number(j->b, at, &flag) && flag == 1);
    }
    if (!n && !cnri_board_get_count(j->b, "model") && !cnri_board_get_count(j->b, "domains"))
        wrong(j, "units", "missing: want units that compute (or model, domains)");
    if (runs && !j->simulated)
        wrong(j, "clock", "missing: want \"simulated\", by which the units are timed");
    if (j->simulated && n && !host)
        wrong(j, "units.1.host",
              "missing: want host = true of one unit: it has the program's memory");
}

cnr_status cnri_board_check(const cnri_board *board, const char *file, cnr_error *err) {
    judge j = {.b = board, .simulated = cnri_board_get_text(board, "clock") != NULL};
    int32_t kind;
    const char *path;
    for (int32_t i = 0; (path = cnri_board_at(board, i, &kind)); i++) judge_entry(&j, path, kind);
    if (!j.why[0]) judge_board(&j);
    for (int32_t i = 0; !j.why[0] && (path = cnri_board_at(board, i, &kind)); i++)
        if (kind == CNRI_BOARD_LIST) judge_together(&j, path);
    return j.why[0] ? cnri_fail(err, CNR_E_FORMAT, file, "%s: %s", j.path, j.why) : CNR_OK;
}
