/* Prints option tables as help. */
#include "front/front.h"

/* True while the whole help of a command is printed, not the part that fits a screen. */
static bool is_whole;
void cnri_help_print_whole(void) { is_whole = true; }

void cnri_each_option(const cnri_command *c, const cnri_group *group, cnri_option_fn fn) {
    for (int32_t i = 0; i < group->n; i++)
        if (group->rows[i].help) fn(c, &group->rows[i]);
}

/* Returns `head` followed by the option's units or choices; with an empty head, the choices
 * alone. Valid until the next call. */
const char *cnri_option_choices(const cnri_option *o, const char *head, const char *between) {
    static char text[512];
    const char *units = *head && o->type == CNRI_T_U64 ? "; K, M, G allowed" : "";
    size_t n = (size_t)snprintf(text, sizeof text, "%s%s", head, units);
    for (int32_t i = 0; o->choices && o->choices[i] && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s",
                              i       ? between
                              : *head ? ": "
                                      : "",
                              o->choices[i]);
    return text;
}

const char *cnri_option_help(const cnri_option *o) { return cnri_option_choices(o, o->help, ", "); }

enum { HELP_COLUMN = 28, HELP_WIDTH = 100 };

/* Prints words from the help column on, in lines of at most HELP_WIDTH. */
static void print_wrapped(const char *text) {
    int32_t column = HELP_COLUMN;
    while (*text) {
        const int32_t n = (int32_t)strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + n > HELP_WIDTH) {
            printf("\n%-*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += printf("%s%.*s", column > HELP_COLUMN ? " " : "", n, text);
        text += n + (text[n] == ' ');
    }
    printf("\n");
}

/* Prints an option, unless it is rare. */
static void help_option(const cnri_command *c, const cnri_option *o) {
    char left[64], letter[8] = "";
    (void)c;
    if (o->rare && !is_whole) return;
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "  %s%s%s%s%s", letter, o->name,
             !o->argument   ? ""
             : o->otherwise ? " ["
                            : " ",
             o->argument ? o->argument : "", o->otherwise ? "]" : "");
    if (strlen(left) > HELP_COLUMN - 2) printf("%s\n%-*s", left, HELP_COLUMN, "");
    else printf("%-*s", HELP_COLUMN, left);
    print_wrapped(cnri_option_help(o));
}

/* Writes the JSON keys such as {"net", "ms"}, a line for each record, broken at `width`. */
void cnri_put_results(const cnri_command *c, void (*put)(const char *)) {
    for (const cnri_record *const *r = c->results; r && *r; r++) {
        int32_t used = 0;
        put(r == c->results ? "JSON: {" : "      {");
        for (int32_t i = 0; i < (*r)->n; i++) {
            char text[128];
            const char *key = (*r)->fields[i].key;
            const bool wraps = used + (int32_t)strlen(key) + 4 > HELP_WIDTH - 8;
            if ((*r)->fields[i].aside) continue;
            snprintf(text, sizeof text, "%s\"%s\"", !used ? "" : wraps ? ",\n       " : ", ", key);
            used = (wraps ? 0 : used) + (int32_t)strlen(key) + 4;
            put(text);
        }
        put("}\n");
    }
}

static void put_plain(const char *text) { printf("%s", text); }

/* Number of rare options that are not shown. */
static int32_t count_hidden(const cnri_group *group) {
    int32_t n = 0;
    for (int32_t i = 0; i < group->n && !is_whole; i++) n += group->rows[i].rare;
    return n;
}

/* Prints groups of options. */
static void help_groups(const cnri_command *c, const cnri_group *groups, int32_t n) {
    for (int32_t g = 0; g < n; g++) {
        printf("\n%s:\n", groups[g].title ? groups[g].title : "options");
        cnri_each_option(c, &groups[g], help_option);
        if (groups[g].title && strcmp(groups[g].title, "general") == 0)
            printf("  -h, --help                the options and an example of a command\n");
    }
}

enum { SCREEN_DETAILS = 7 }; /* most lines of details in --help */

/* True if the details are short enough for one screen. */
static bool fits_screen(const char *details) {
    int32_t lines = 1;
    for (; *details; details++) lines += *details == '\n';
    return lines <= SCREEN_DETAILS;
}

/* The details and JSON keys; in --help only short details, and how to get the rest. */
static void help_details(const cnri_command *c, int32_t hidden) {
    const bool details = c->details && (is_whole || fits_screen(c->details));
    if (details) printf("\n%s\n", c->details);
    if (is_whole) {
        if (c->results && !details) printf("\n");
        cnri_put_results(c, put_plain);
        if (c->more) c->more();
        return;
    }
    if (details && !c->results && !c->more && !hidden) return;
    printf("\ncnnrun help %s:", c->name);
    if (hidden) printf(" %d more options;", (int)hidden);
    printf(" %s%s\n", details ? "" : "details",
           !c->results ? ""
           : details   ? "the keys of --json"
                       : ", the keys of --json");
}

void cnri_help_print(const cnri_command *c, const cnri_group *groups, int32_t n) {
    const int32_t here = c ? !groups[0].title : n; /* groups that are printed, not only named */
    if (c)
        printf("usage: cnnrun %s%s%s [options]\n\n%s\n%s%s%s", c->name, *c->operands ? " " : "",
               c->operands, c->summary, c->example ? "\n    " : "", c->example ? c->example : "",
               c->example ? "\n" : "");
    else printf("What commands have in common, each the groups that its own help names:\n");
    help_groups(c, groups, here);
    if (!c) return;
    for (int32_t g = here; g < n; g++)
        printf("%s%s%s", g > here ? ", " : "\nAlso the options of these groups: ", groups[g].title,
               g + 1 < n ? "" : " (cnnrun help options)\n");
    help_details(c, here ? count_hidden(&groups[0]) : 0);
}
