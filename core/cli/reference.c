/* The option tables as text: help, a man page, completions of bash, zsh and fish. */
#include "core/cli/cli.h"

/* Has the command print itself by --help=FORM. */
static void run_form(int32_t command, const char *form) {
    char flag[32];
    char *words[] = {(char *)cnri_commands[command].name, flag, NULL};
    snprintf(flag, sizeof flag, "--help=%s", form);
    cnri_commands[command].run(2, words);
}

/* What is asked for by --help=FORM; begin and end stand around all commands. */
typedef struct form {
    const char *name;
    void (*command)(const cnri_syntax *s, const cnri_option_group *groups, int32_t n);
    void (*begin)(void);
    void (*end)(void);
} form;

/* Prints `text`, with `escape` before each character that is in `special`. */
static void put(const char *text, const char *special, const char *escape) {
    for (; *text; text++) {
        if (strchr(special, *text)) fputs(escape, stdout);
        putchar(*text);
    }
}

/* The option's help with its choices behind it. */
static const char *help_of(const cnri_option *o, char *text, size_t room) {
    size_t n = (size_t)snprintf(text, room, "%s", o->help);
    for (int32_t i = 0; o->type == CNRI_OPT_CHOICE && o->choices[i] && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%s", i ? ", " : ": ", o->choices[i]);
    return text;
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

static void help_option(const cnri_option *o) {
    char left[64], letter[8] = "", text[512];
    if (!o->help) return;
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "  %s%s%s%s", letter, o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
    if (strlen(left) > HELP_COLUMN - 2) printf("%s\n%-*s", left, HELP_COLUMN, "");
    else printf("%-*s", HELP_COLUMN, left);
    print_wrapped(help_of(o, text, sizeof text));
}

static void help_group(const cnri_option_group *group) {
    printf("\n%s:\n", group->title);
    for (int32_t i = 0; i < group->n; i++) help_option(&group->rows[i]);
}

static void help_command(const cnri_syntax *s, const cnri_option_group *groups, int32_t n) {
    printf("usage: cnnrun %s%s%s [options]\n\n%s\n", s->command, *s->operands ? " " : "",
           s->operands, s->summary);
    for (int32_t g = 0; g < n && !groups[g].shared; g++) help_group(&groups[g]);
    printf("  -h, --help                this text\n");
    if (s->nets) printf("\nOptions for nets and pictures: cnnrun help options\n");
    if (s->details) printf("\n%s\n", s->details);
    if (s->more) s->more();
}

/* What the commands that take nets have in common. */
static void help_shared(const cnri_syntax *s, const cnri_option_group *groups, int32_t n) {
    (void)s;
    printf("Every command that takes a net has these options:\n");
    for (int32_t g = 0; g < n; g++)
        if (groups[g].shared) help_group(&groups[g]);
}

/* ---- the man page: roff, where a backslash, a dash and a dot at a line's begin mean something ---- */

static void put_roff(const char *text) {
    bool begin = true;
    for (; *text; text++) {
        if (begin && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\') fputs("\\e", stdout);
        else if (*text == '-') fputs("\\-", stdout);
        else putchar(*text);
        begin = *text == '\n';
    }
}

static void man_begin(void) {
    printf(".TH CNNRUN 1 \"\" \"cnnrun %s\" \"User Commands\"\n"
           ".SH NAME\ncnnrun \\- run convolutional networks on devices\n"
           ".SH SYNOPSIS\n.B cnnrun\n.I NET PICTURE...\n.br\n.B cnnrun\n.I SCRIPT.lua WORDS...\n"
           ".br\n.B cnnrun\n.I COMMAND\n[options]\n"
           ".SH DESCRIPTION\nA net is a Lua script, a .cnr file, or what an importer plugin reads.\n"
           "Results go to standard output, all else to standard error; with\n.B \\-\\-json\n"
           "results are one JSON object a line. Options of every command may stand before it.\n"
           ".SH COMMANDS\n", CNNRUN_VERSION);
}

static void man_option(const cnri_option *o) {
    char text[512];
    if (!o->help) return;
    printf(".TP\n.B ");
    if (o->letter) printf("\\-%c, ", o->letter);
    put_roff(o->name);
    if (o->argument) {
        printf(" ");
        put_roff(o->argument);
    }
    printf("\n");
    put_roff(help_of(o, text, sizeof text));
    printf("\n");
}

static void man_command(const cnri_syntax *s, const cnri_option_group *groups, int32_t n) {
    printf(".SS \"cnnrun %s ", s->command);
    put_roff(s->operands);
    printf("\"\n");
    put_roff(s->summary);
    printf("\n");
    for (int32_t g = 0; g < n && groups[g].own; g++)
        for (int32_t i = 0; i < groups[g].n; i++) man_option(&groups[g].rows[i]);
    if (s->nets) printf(".PP\nOptions for nets and pictures, too.\n");
    if (!s->details) return;
    printf(".PP\n.nf\n");
    put_roff(s->details);
    printf("\n.fi\n");
}

static void man_shared(const cnri_syntax *s, const cnri_option_group *groups, int32_t n) {
    (void)s;
    for (int32_t g = 0; g < n; g++) {
        if (groups[g].own) continue;
        printf(".SS \"options: %s\"\n", groups[g].title);
        for (int32_t i = 0; i < groups[g].n; i++) man_option(&groups[g].rows[i]);
    }
}

static void man_end(void) {
    run_form(0, "man-shared");
    printf(".SH EXIT STATUS\n");
#define X(name, value, text)            \
    printf(".TP\n.B %d\n", -(value)); \
    put_roff(text);                     \
    printf("\n");
    CNR_STATUS_LIST(X)
#undef X
    printf(".TP\n.B 130\nstopped by Ctrl-C\n.TP\n.B 143\nstopped by SIGTERM\n");
}

/* ---- bash: a function with a case for each command ---- */

static void bash_begin(void) {
    printf("# cnnrun in bash, made by: cnnrun completions bash\n"
           "_cnnrun() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command= words= values= i\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        case ${COMP_WORDS[i]} in\n        ");
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++)
        printf("%s%s", i ? "|" : "", cnri_commands[i].name);
    printf(") command=${COMP_WORDS[i]}; break ;;\n        esac\n    done\n"
           "    case $command in\n    '') words=\"help --help --version");
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) printf(" %s", cnri_commands[i].name);
    printf("\" ;;\n");
}

static void bash_command(const cnri_syntax *s, const cnri_option_group *groups, int32_t n) {
    printf("    %s)\n        words=\"--help", s->command);
    for (int32_t g = 0; g < n; g++)
        for (int32_t i = 0; i < groups[g].n; i++)
            if (groups[g].rows[i].help) printf(" %s", groups[g].rows[i].name);
    printf("\"\n        case $before in\n");
    for (int32_t g = 0; g < n; g++)
        for (int32_t i = 0; i < groups[g].n; i++) {
            const cnri_option *o = &groups[g].rows[i];
            if (o->type != CNRI_OPT_CHOICE || !o->help) continue;
            printf("        %s) values=\"", o->name);
            for (int32_t k = 0; o->choices[k]; k++) printf("%s%s", k ? " " : "", o->choices[k]);
            printf("\" ;;\n");
        }
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

/* ---- zsh: _arguments for each command ---- */

static void put_zsh(const char *text) {
    for (; *text; text++) {
        if (strchr("[]:\\", *text)) putchar('\\');
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, stdout);
    }
}

static void zsh_begin(void) {
    printf("#compdef cnnrun\n# cnnrun in zsh, made by: cnnrun completions zsh\n"
           "local -a commands\ncommands=(\n  'help:how to use it'\n");
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) {
        printf("  '%s:", cnri_commands[i].name);
        put_zsh(cnri_commands[i].help);
        printf("'\n");
    }
    printf(")\nif (( CURRENT == 2 )); then\n  _describe command commands\n  _files\n  return\nfi\n"
           "case $words[2] in\n");
}

static void zsh_command(const cnri_syntax *s, const cnri_option_group *groups, int32_t n) {
    printf("%s)\n  _arguments -s", s->command);
    for (int32_t g = 0; g < n; g++)
        for (int32_t i = 0; i < groups[g].n; i++) {
            const cnri_option *o = &groups[g].rows[i];
            char text[512];
            if (!o->help) continue;
            printf(" \\\n    '%s%s[", o->type == CNRI_OPT_LIST ? "*" : "", o->name);
            put_zsh(help_of(o, text, sizeof text));
            printf("]");
            if (o->argument) {
                printf(":");
                put_zsh(o->argument);
                printf(":");
                if (o->type == CNRI_OPT_CHOICE) {
                    printf("(");
                    for (int32_t k = 0; o->choices[k]; k++)
                        printf("%s%s", k ? " " : "", o->choices[k]);
                    printf(")");
                } else if (takes_file(o)) {
                    printf("_files");
                }
            }
            printf("'");
        }
    printf(" \\\n    '--help[this text]' '*:file:_files' ;;\n");
}

static void zsh_end(void) { printf("*) _files ;;\nesac\n"); }

/* ---- fish: a line for each option ---- */

static void put_fish(const char *text) {
    putchar('\'');
    put(text, "'\\", "\\");
    putchar('\'');
}

static void fish_begin(void) {
    printf("# cnnrun in fish, made by: cnnrun completions fish\n"
           "complete -c cnnrun -n __fish_use_subcommand -a help -d 'how to use it'\n");
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) {
        printf("complete -c cnnrun -n __fish_use_subcommand -a %s -d ", cnri_commands[i].name);
        put_fish(cnri_commands[i].help);
        printf("\n");
    }
}

static void fish_command(const cnri_syntax *s, const cnri_option_group *groups, int32_t n) {
    for (int32_t g = 0; g < n; g++)
        for (int32_t i = 0; i < groups[g].n; i++) {
            const cnri_option *o = &groups[g].rows[i];
            if (!o->help) continue;
            printf("complete -c cnnrun -n '__fish_seen_subcommand_from %s' -l %s", s->command,
                   o->name + 2);
            if (o->letter) printf(" -s %c", o->letter);
            if (o->argument) printf(takes_file(o) ? " -r" : " -x");
            if (o->type == CNRI_OPT_CHOICE) {
                printf(" -a '");
                for (int32_t k = 0; o->choices[k]; k++)
                    printf("%s%s", k ? " " : "", o->choices[k]);
                printf("'");
            }
            printf(" -d ");
            put_fish(o->help);
            printf("\n");
        }
}

static void nothing(void) {}

static const form forms[] = {
    {"help", help_command, nothing, nothing},
    {"options", help_shared, nothing, nothing},
    {"man", man_command, man_begin, man_end},
    {"man-shared", man_shared, nothing, nothing},
    {"bash", bash_command, bash_begin, bash_end},
    {"zsh", zsh_command, zsh_begin, zsh_end},
    {"fish", fish_command, fish_begin, nothing},
};

static const form *find_form(const char *name) {
    for (size_t i = 0; i < CNRI_COUNT(forms); i++)
        if (strcmp(forms[i].name, name) == 0) return &forms[i];
    cnri_say(stderr, "cnnrun: --help=FORM: wanted help, man, bash, zsh or fish, got \"%s\"\n", name);
    return NULL;
}

int cnri_reference(const cnri_syntax *s, const cnri_option_group *groups, int32_t n,
                   const char *name) {
    const form *f = find_form(name);
    if (!f) return -CNR_E_ARG;
    f->command(s, groups, n);
    return 0;
}

int cnri_reference_all(const char *name) {
    const form *f = find_form(name);
    if (!f) return -CNR_E_ARG;
    f->begin();
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) run_form(i, name);
    f->end();
    return 0;
}

void cnri_reference_options(void) { run_form(0, "options"); }
