/* cnnrun completions: prints a man page or completions for bash, zsh and fish from the commands'
 * option tables. */
#include "cli/cli.h"
#include "lua/script.h"

const cnri_row cnri_commands[CNRI_N_COMMANDS] = {
/* A row for one command. */
#define X(name, help) {&cnri_cmd_##name, help},
    CNRI_COMMANDS(X)
#undef X
};

const cnri_command *cnri_command_find(const char *name) {
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++)
        if (strcmp(cnri_commands[i].command->name, name) == 0) return cnri_commands[i].command;
    return NULL;
}

static const cnri_command all_nets = {.name = "", .takes = CNRI_NETS | CNRI_PICTURES | CNRI_GROUP};

/* Calls fn for each option of a command. */
static void each_of_command(const cnri_command *c, cnri_option_fn fn) {
    cnri_group groups[CNRI_GROUPS];
    const int32_t n = cnri_groups_of(c, groups);
    for (int32_t g = 0; g < n; g++) cnri_each_option(c, &groups[g], fn);
}

/* True if an option's argument is a file or folder. */
static bool takes_file(const cnri_option *o) {
    return strstr(o->argument, "FILE") || strstr(o->argument, "DIR");
}

/* ---- the man page: roff, where a backslash, a dash and a dot at a line's begin mean something
 * ---- */

/* Prints a text for troff, with its special characters escaped. */
static void put_roff(const char *text) {
    for (bool begin = true; *text; begin = *text++ == '\n') {
        if (begin && (*text == '.' || *text == '\'')) printf("\\&");
        if (*text == '\\') printf("\\e");
        else printf(*text == '-' ? "\\-" : "%c", *text);
    }
}

/* Prints the head of the manual page. */
static void man_begin(void) {
    printf(".TH CNNRUN 1 \"\" \"cnnrun %s\" \"User Commands\"\n"
           ".SH NAME\ncnnrun \\- run convolutional networks on devices\n"
           ".SH SYNOPSIS\n.B cnnrun\n.I NET PICTURE...\n.br\n.B cnnrun\n.I SCRIPT.lua WORDS...\n"
           ".br\n.B cnnrun\n.I APPLICATION WORDS...\n.br\n.B cnnrun\n.I COMMAND\n[options]\n"
           ".SH DESCRIPTION\nA net is a Lua script, a .cnr file, or what an importer plugin "
           "reads.\n"
           "Results go to standard output, all else to standard error; with\n.B \\-\\-json\n"
           "results are one JSON object a line. Options of every command may stand before it.\n"
           ".SH COMMANDS\n",
           CNNRUN_VERSION);
}

/* Prints an option for the manual page. */
static void man_option(const cnri_command *c, const cnri_option *o) {
    (void)c;
    printf(".TP\n.B ");
    if (o->letter) printf("\\-%c, ", o->letter);
    put_roff(o->name);
    printf(o->argument ? " " : "");
    put_roff(o->argument ? o->argument : "");
    printf("\n");
    put_roff(cnri_option_help(o));
    printf("\n");
}

/* Prints a command for the manual page. */
static void man_command(const cnri_command *c) {
    cnri_group groups[CNRI_GROUPS];
    cnri_groups_of(c, groups);
    printf(".SS \"cnnrun %s ", c->name);
    put_roff(c->operands);
    printf("\"\n");
    put_roff(c->summary);
    printf("\n.PP\n.nf\n    ");
    put_roff(c->example);
    printf("\n.fi\n");
    if (!groups[0].title) cnri_each_option(c, &groups[0], man_option);
    if (c->takes) printf(".PP\nAlso the options of nets and pictures.\n");
    if (!c->details && !c->results) return;
    printf(".PP\n.nf\n");
    put_roff(c->details ? c->details : "");
    printf(c->details ? "\n" : "");
    cnri_put_results(c, put_roff);
    printf(".fi\n");
}

/* Prints the end of the manual page: shared options and exit codes. */
static void man_end(void) {
    cnri_group groups[CNRI_GROUPS];
    const int32_t n = cnri_groups_of(&all_nets, groups);
    for (int32_t g = 0; g < n; g++) {
        printf(".SS \"options: %s\"\n", groups[g].title);
        cnri_each_option(&all_nets, &groups[g], man_option);
    }
    printf(".SH EXIT STATUS\n");
/* Prints one exit code. */
#define X(name, value, text) \
    printf(".TP\n.B %d\n", -(value)); \
    put_roff(text); \
    printf("\n");
    CNR_STATUS_LIST(X)
#undef X
    printf(".TP\n.B 130\nstopped by Ctrl-C\n.TP\n.B 143\nstopped by SIGTERM\n");
}

/* Prints an application, which can be used in place of a command. */
static void put_app(void *format, const char *name) { printf(format, name); }

/* ---- bash: a function with a case for each command ---- */

/* Prints the names of all commands, with `between` between them. */
static void put_commands(const char *between) {
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++)
        printf("%s%s", i ? between : "", cnri_commands[i].command->name);
}

/* Prints the head of the script for bash. */
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

/* Prints an option's name for bash. */
static void bash_name(const cnri_command *c, const cnri_option *o) {
    (void)c;
    printf(" %s", o->name);
}

/* Prints the case of bash's completion for an option with choices; others: nothing. */
static void bash_choices(const cnri_command *c, const cnri_option *o) {
    (void)c;
    if (o->choices)
        printf("        %s) values=\"%s\" ;;\n", o->name, cnri_option_choices(o, "", " "));
}

/* Prints the case of bash's completion for a command: its options and their choices. */
static void bash_command(const cnri_command *c) {
    printf("    %s)\n        words=\"--help", c->name);
    each_of_command(c, bash_name);
    printf("\"\n        case $before in\n");
    each_of_command(c, bash_choices);
    printf("        esac ;;\n");
}

/* Prints the end of the script for bash. */
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

/* Prints a text in quotes of zsh. */
static void put_zsh(const char *text) {
    for (; *text; text++)
        if (*text == '\'') printf("'\\''");
        else printf(strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
}

/* Prints the head of the script for zsh. */
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

/* Prints an option for zsh. */
static void zsh_option(const cnri_command *c, const cnri_option *o) {
    (void)c;
    printf(" \\\n    '%s%s[", o->type == CNRI_T_WORDS ? "*" : "", o->name);
    put_zsh(cnri_option_help(o));
    printf("]");
    if (o->argument) {
        printf(":");
        put_zsh(o->argument);
        printf(":");
        if (o->choices) printf("(%s)", cnri_option_choices(o, "", " "));
        else if (takes_file(o)) printf("_files");
    }
    printf("'");
}

/* Prints a command for zsh. */
static void zsh_command(const cnri_command *c) {
    printf("%s)\n  _arguments -s", c->name);
    each_of_command(c, zsh_option);
    printf(" \\\n    '--help[this text]' '*:file:_files' ;;\n");
}

static void zsh_end(void) { printf("*) _files ;;\nesac\n"); }

/* ---- fish: a line for each option ---- */

/* Prints a text in quotes of fish. */
static void put_fish(const char *text) {
    printf("'");
    for (; *text; text++) printf(strchr("'\\", *text) ? "\\%c" : "%c", *text);
    printf("'");
}

/* Prints the head of the script for fish. */
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

/* Prints an option for fish. */
static void fish_option(const cnri_command *c, const cnri_option *o) {
    printf("complete -c cnnrun -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name + 2);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->argument) printf(takes_file(o) ? " -r" : " -x");
    if (o->choices) printf(" -a '%s'", cnri_option_choices(o, "", " "));
    printf(" -d ");
    put_fish(o->help);
    printf("\n");
}

static void fish_command(const cnri_command *c) { each_of_command(c, fish_option); }

bool cnri_print_completions(const char *name) {
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

/* ---- the command ---- */

/* The command completions. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const char *shell = call->operands.at[0];
    (void)values;
    if (strcmp(shell, "man") != 0 && cnri_print_completions(shell)) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, NULL, "wanted bash, zsh or fish, got \"%s\"", shell);
}

const cnri_command cnri_cmd_completions = {
    .name = "completions",
    .example = "cnnrun completions bash >~/.local/share/bash-completion/completions/cnnrun",
    .operands = "bash|zsh|fish",
    .summary = "Prints what that shell completes of this program. bash: source <(cnnrun "
               "completions bash);\n"
               "zsh: into a file _cnnrun of a folder in fpath; fish: into completions/cnnrun.fish.",
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
