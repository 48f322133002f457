/* The option tables as text: help, a man page, completions of bash, zsh and fish. */
#include "core/cli/cli.h"
#include "core/lua/script.h"

static const cnri_command all_nets = {.name = "", .takes = CNRI_NETS | CNRI_PICTURES};

typedef void (*option_fn)(const cnri_command *c, const cnri_option *o);

static void each_in(const cnri_command *c, const cnri_group *group, option_fn fn) {
    for (int32_t i = 0; i < group->n; i++)
        if (group->rows[i].help) fn(c, &group->rows[i]);
}

static void each_option(const cnri_command *c, option_fn fn) {
    cnri_group groups[CNRI_GROUPS];
    const int32_t n = cnri_groups_of(c, groups);
    for (int32_t g = 0; g < n; g++) each_in(c, &groups[g], fn);
}

/* The option's help with its choices behind it; "net bgr": those alone. */
static const char *choices_of(const cnri_option *o, const char *head, const char *between) {
    static char text[512];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", head);
    for (int32_t i = 0; o->choices && o->choices[i] && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? between : *head ? ": " : "",
                              o->choices[i]);
    return text;
}

static const char *help_of(const cnri_option *o) {
    return choices_of(o, o->help, ", ");
}

static bool takes_file(const cnri_option *o) {
    return strstr(o->argument, "FILE") || strstr(o->argument, "DIR");
}

/* ---- help ---- */

enum { HELP_COLUMN = 28, HELP_WIDTH = 100 };

/* Words from the help column on, in lines of at most HELP_WIDTH. */
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

static void help_option(const cnri_command *c, const cnri_option *o) {
    char left[64], letter[8] = "";
    (void)c;
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "  %s%s%s%s", letter, o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
    if (strlen(left) > HELP_COLUMN - 2) printf("%s\n%-*s", left, HELP_COLUMN, "");
    else printf("%-*s", HELP_COLUMN, left);
    print_wrapped(help_of(o));
}

/* {"net", "ms"}, a line a record, broken at `width`. */
static void put_results(const cnri_command *c, void (*put)(const char *)) {
    for (const cnri_record *const *r = c->results; r && *r; r++) {
        int32_t used = 0;
        put(r == c->results ? "JSON: {" : "      {");
        for (int32_t i = 0; i < (*r)->n; i++) {
            char text[80];
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

static void put_plain(const char *text) {
    printf("%s", text);
}

static void help_groups(const cnri_command *c, const cnri_group *groups, int32_t n) {
    for (int32_t g = 0; g < n; g++) {
        printf("\n%s:\n", groups[g].title ? groups[g].title : "options");
        each_in(c, &groups[g], help_option);
    }
}

void cnri_help(const cnri_command *c) {
    cnri_group groups[CNRI_GROUPS];
    const int32_t n = cnri_groups_of(c ? c : &all_nets, groups);
    const int32_t here = c ? 1 + !groups[0].title : n; /* the general ones stand with each */
    if (c)
        printf("usage: cnnrun %s%s%s [options]\n\n%s\n", c->name, *c->operands ? " " : "",
               c->operands,
               c->summary);
    else printf("What commands have in common, each the groups that its own help names:\n");
    help_groups(c, groups, here);
    if (!c) return;
    printf("  -h, --help                this text\n");
    for (int32_t g = here; g < n; g++)
        printf("%s%s%s", g > here ? ", " : "\nAlso the options of these groups: ", groups[g].title,
               g + 1 < n ? "" : " (cnnrun help options)\n");
    if (c->details || c->results) printf("\n%s%s", c->details ? c->details : "",
                                         c->details ? "\n" : "");
    put_results(c, put_plain);
    if (c->more) c->more();
}

/* ---- the man page: roff, where a backslash, a dash and a dot at a line's begin mean something ---- */

static void put_roff(const char *text) {
    for (bool begin = true; *text; begin = *text++ == '\n') {
        if (begin && (*text == '.' || *text == '\'')) printf("\\&");
        if (*text == '\\') printf("\\e");
        else printf(*text == '-' ? "\\-" : "%c", *text);
    }
}

static void man_begin(void) {
    printf(".TH CNNRUN 1 \"\" \"cnnrun %s\" \"User Commands\"\n"
           ".SH NAME\ncnnrun \\- run convolutional networks on devices\n"
           ".SH SYNOPSIS\n.B cnnrun\n.I NET PICTURE...\n.br\n.B cnnrun\n.I SCRIPT.lua WORDS...\n"
           ".br\n.B cnnrun\n.I APPLICATION WORDS...\n.br\n.B cnnrun\n.I COMMAND\n[options]\n"
           ".SH DESCRIPTION\nA net is a Lua script, a .cnr file, or what an importer plugin reads.\n"
           "Results go to standard output, all else to standard error; with\n.B \\-\\-json\n"
           "results are one JSON object a line. Options of every command may stand before it.\n"
           ".SH COMMANDS\n", CNNRUN_VERSION);
}

static void man_option(const cnri_command *c, const cnri_option *o) {
    (void)c;
    printf(".TP\n.B ");
    if (o->letter) printf("\\-%c, ", o->letter);
    put_roff(o->name);
    printf(o->argument ? " " : "");
    put_roff(o->argument ? o->argument : "");
    printf("\n");
    put_roff(help_of(o));
    printf("\n");
}

static void man_command(const cnri_command *c) {
    cnri_group groups[CNRI_GROUPS];
    cnri_groups_of(c, groups);
    printf(".SS \"cnnrun %s ", c->name);
    put_roff(c->operands);
    printf("\"\n");
    put_roff(c->summary);
    printf("\n");
    if (!groups[0].title) each_in(c, &groups[0], man_option);
    if (c->takes) printf(".PP\nAlso the options of nets and pictures.\n");
    if (!c->details && !c->results) return;
    printf(".PP\n.nf\n");
    put_roff(c->details ? c->details : "");
    printf(c->details ? "\n" : "");
    put_results(c, put_roff);
    printf(".fi\n");
}

static void man_end(void) {
    cnri_group groups[CNRI_GROUPS];
    const int32_t n = cnri_groups_of(&all_nets, groups);
    for (int32_t g = 0; g < n; g++) {
        printf(".SS \"options: %s\"\n", groups[g].title);
        each_in(&all_nets, &groups[g], man_option);
    }
    printf(".SH EXIT STATUS\n");
#define X(name, value, text)            \
    printf(".TP\n.B %d\n", -(value)); \
    put_roff(text);                     \
    printf("\n");
    CNR_STATUS_LIST(X)
#undef X
    printf(".TP\n.B 130\nstopped by Ctrl-C\n.TP\n.B 143\nstopped by SIGTERM\n");
}

/* Applications stand where commands do. */
static void put_app(void *format, const char *name) {
    printf(format, name);
}

/* ---- bash: a function with a case for each command ---- */

static void put_commands(const char *between) {
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++)
        printf("%s%s", i ? between : "", cnri_commands[i].command->name);
}

static void bash_begin(void) {
    printf("# cnnrun in bash, made by: cnnrun completions bash\n"
           "_cnnrun() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command= words= values= i\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        case ${COMP_WORDS[i]} in\n        ");
    put_commands("|");
    printf(") command=${COMP_WORDS[i]}; break ;;\n        esac\n    done\n"
           "    case $command in\n    '') words=\"help --help --version ");
    put_commands(" ");
    cnri_lua_apps(put_app, (void *)" %s");
    printf("\" ;;\n");
}

static void bash_name(const cnri_command *c, const cnri_option *o) {
    (void)c;
    printf(" %s", o->name);
}

static void bash_choices(const cnri_command *c, const cnri_option *o) {
    (void)c;
    if (o->choices) printf("        %s) values=\"%s\" ;;\n", o->name, choices_of(o, "", " "));
}

static void bash_command(const cnri_command *c) {
    printf("    %s)\n        words=\"--help", c->name);
    each_option(c, bash_name);
    printf("\"\n        case $before in\n");
    each_option(c, bash_choices);
    printf("        esac ;;\n");
}

static void bash_end(void) {
    printf("    esac\n"
           "    if [[ $values ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
           "    elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    elif [[ -z $command && $COMP_CWORD -eq 1 ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\"))\n"
           "    else COMPREPLY=($(compgen -f -- \"$word\")); fi\n"
           "}\n"
           "complete -o filenames -F _cnnrun cnnrun\n");
}

/* ---- zsh: _arguments for each command, in words that quotes stand round ---- */

static void put_zsh(const char *text) {
    for (; *text; text++)
        if (*text == '\'') printf("'\\''");
        else printf(strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
}

static void zsh_begin(void) {
    printf("#compdef cnnrun\n# cnnrun in zsh, made by: cnnrun completions zsh\n"
           "local -a commands\ncommands=(\n  'help:how to use it'\n");
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) {
        printf("  '%s:", cnri_commands[i].command->name);
        put_zsh(cnri_commands[i].help);
        printf("'\n");
    }
    cnri_lua_apps(put_app, (void *)"  '%s:an application'\n");
    printf(")\nif (( CURRENT == 2 )); then\n  _describe command commands\n  _files\n  return\nfi\n"
           "case $words[2] in\n");
}

static void zsh_option(const cnri_command *c, const cnri_option *o) {
    (void)c;
    printf(" \\\n    '%s%s[", o->type == CNRI_T_WORDS ? "*" : "", o->name);
    put_zsh(help_of(o));
    printf("]");
    if (o->argument) {
        printf(":");
        put_zsh(o->argument);
        printf(":");
        if (o->choices) printf("(%s)", choices_of(o, "", " "));
        else if (takes_file(o)) printf("_files");
    }
    printf("'");
}

static void zsh_command(const cnri_command *c) {
    printf("%s)\n  _arguments -s", c->name);
    each_option(c, zsh_option);
    printf(" \\\n    '--help[this text]' '*:file:_files' ;;\n");
}

static void zsh_end(void) {
    printf("*) _files ;;\nesac\n");
}

/* ---- fish: a line for each option ---- */

static void put_fish(const char *text) {
    printf("'");
    for (; *text; text++) printf(strchr("'\\", *text) ? "\\%c" : "%c", *text);
    printf("'");
}

static void fish_begin(void) {
    printf("# cnnrun in fish, made by: cnnrun completions fish\n"
           "complete -c cnnrun -n __fish_use_subcommand -a help -d 'how to use it'\n");
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) {
        printf("complete -c cnnrun -n __fish_use_subcommand -a %s -d ",
               cnri_commands[i].command->name);
        put_fish(cnri_commands[i].help);
        printf("\n");
    }
    cnri_lua_apps(put_app, (void *)"complete -c cnnrun -n __fish_use_subcommand -a %s "
                                   "-d 'an application'\n");
}

static void fish_option(const cnri_command *c, const cnri_option *o) {
    printf("complete -c cnnrun -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name + 2);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->argument) printf(takes_file(o) ? " -r" : " -x");
    if (o->choices) printf(" -a '%s'", choices_of(o, "", " "));
    printf(" -d ");
    put_fish(o->help);
    printf("\n");
}

static void fish_command(const cnri_command *c) {
    each_option(c, fish_option);
}

bool cnri_reference(const char *name) {
    static const struct {
        const char *name;
        void (*begin)(void);
        void (*command)(const cnri_command *c);
        void (*end)(void);
    } forms[] = {{"man", man_begin, man_command, man_end},
                 {"bash", bash_begin, bash_command, bash_end},
                 {"zsh", zsh_begin, zsh_command, zsh_end},
                 {"fish", fish_begin, fish_command, NULL}};
    size_t f = 0;
    while (f < CNRI_COUNT(forms) && strcmp(forms[f].name, name) != 0) f++;
    if (f == CNRI_COUNT(forms)) return false;
    forms[f].begin();
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) forms[f].command(cnri_commands[i].command);
    if (forms[f].end) forms[f].end();
    return true;
}
