/* cnnrun: the program; finds the subcommand and runs it. */
#include "cli/cli.h"
#include "lua/script.h"
#include "people/people.h"
#include <unistd.h>

static void print_app(void *to, const char *name) { cnri_say(to, " %s", name); }

/* Prints one line for each command, then those for help and --version. */
static void print_commands(void) {
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++)
        cnri_say(stdout, "  %-12s %s\n", cnri_commands[i].command->name, cnri_commands[i].help);
    cnri_say(stdout,
             "  help         one screen; help COMMAND: that of a command or an application\n"
             "  help options what all commands that take nets have in common\n"
             "  help exit    exit codes, errors, files\n"
             "  help --man   all of it, as a man page\n"
             "  --version    the program's version; with --json all that a bug report "
             "needs\n");
}

/* Prints all exit codes. */
static void print_exit(void) {
    int32_t n = 0;
    cnri_say(stdout, "exit codes: ");
/* Prints one exit code. */
#define X(name, value, text) \
    if (n) cnri_say(stdout, n % 5 ? ", " : ",\n  "); \
    cnri_say(stdout, "%d %s", -(value), text); \
    n++;
    CNR_STATUS_LIST(X)
#undef X
    cnri_say(stdout,
             ",\n  130 stopped by Ctrl-C, 143 by SIGTERM; a script's own is what its main returns\n"
             "With --json an error is an object too: {\"error\": {\"code\", \"place\", "
             "\"text\"}}.\n"
             "Files appear whole under their names or not at all: one that is there keeps its "
             "mode and\nowner, of a symbolic link the file that it leads to is replaced; an "
             "input or - is refused.\n");
}

/* Prints the help that fits a screen. */
static void print_help(FILE *to) {
    static const char *const groups[][2] =
        {{"nets", "run eval bench show import convert export verify check"},
         {"weights", "train prune quantize sweep"},
         {"starts", "compile warm tune cache"},
         {"devices", "devices place boards"},
         {"energy", "energy gauges govern helper"},
         {"plugins", "plugins ops kernelcheck devicecheck conform"},
         {"reference", "lua completions help"}};
    cnri_say(to, "usage: cnnrun NET PICTURE...        what a net says of pictures\n"
                 "       cnnrun SCRIPT.lua WORDS...   run an experiment\n"
                 "       cnnrun APPLICATION WORDS...  run an application that ships\n"
                 "       cnnrun COMMAND ...\n\ncommands\n");
    for (size_t i = 0; i < CNRI_COUNT(groups); i++)
        cnri_say(to, "  %-12s %s\n", groups[i][0], groups[i][1]);
    cnri_say(to, "\napplications:");
    cnri_lua_apps(print_app, to);
    cnri_say(to, "\n\nA net is a Lua script, a .cnr file, or what an importer plugin reads.\n\n"
                 "    cnnrun scripts/nets/lenet5.lua scripts/nets/digits/three.png\n\n"
                 "cnnrun help commands: a line for each. cnnrun COMMAND --help: its options and an "
                 "example;\ncnnrun help COMMAND: all of it. "
                 "cnnrun help options, help exit: what commands have in common.\n");
}

/* The nearest name so far: of a command or an application. */
typedef struct guess {
    const char *word;
    char best[256];
} guess;
/* Keeps the name if it is nearer to the word than the best so far. */
static void consider(void *arg, const char *name) {
    guess *g = arg;
    const char *both[] = {name, g->best};
    const char *near = cnri_nearest_word(g->word, both, *g->best ? 2 : 1);
    if (near && near != g->best) snprintf(g->best, sizeof g->best, "%s", near);
}

/* Reports a word that is no command, application or file. */
static int unknown(const char *word) {
    static const cnri_command none = {.name = ""};
    const cnri_call call = {.command = &none};
    guess g = {.word = word};
    cnr_error err = CNR_ERROR_INIT;
    if (strpbrk(word, "./")) {
        cnri_fail(&err, CNR_E_NOT_FOUND, word, "no such file");
        return cnri_complain(&call, &err);
    }
    char file[4096];
    consider(&g, "help");
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) consider(&g, cnri_commands[i].command->name);
    cnri_lua_apps(consider, &g);
    const char *near = *g.best ? g.best : NULL;
    if (!near && cnri_nearest_path(word, file, sizeof file)) near = file;
    return cnri_mistake("", near, "no such command or file: %s", word);
}

/* True if the word can be run: a net, with or without files behind commas, or an application. */
static bool can_run(const char *word) {
    cnri_paths paths = {0};
    char *app = cnri_lua_app(word);
    const bool net = cnri_paths_add(&paths, word, NULL) == CNR_OK && access(paths.at[0], F_OK) == 0;
    cnri_paths_free(&paths);
    cnri_free(app);
    return net || app;
}

/* Runs `cnnrun help [COMMAND]`: prints the help. Returns the exit code. */
static int help(int argc, char **argv) {
    const char *of = argc < 3 ? NULL : argv[2];
    char flag[] = "--help", *words[] = {argv[0], argv[2], flag, NULL};
    const cnri_command *command = of ? cnri_command_find(of) : NULL;
    cnri_help_print_whole();
    if (command) cnri_help(command);
    else if (!of) print_help(stdout);
    else if (strcmp(of, "commands") == 0) print_commands();
    else if (strcmp(of, "exit") == 0) print_exit();
    else if (strcmp(of, "options") == 0) cnri_help(NULL);
    else if (strcmp(of, "--man") == 0) (void)cnri_print_completions("man");
    else if (can_run(of)) return cnri_command_run(&cnri_cmd_run, 3, words);
    else return unknown(of);
    return 0;
}

/* Moves options in front of a command behind it, in argv, so that the command parses them. */
static void command_first(int argc, char **argv) {
    const int at = cnri_command_at(argc, argv);
    if (at < 1 || !cnri_command_find(argv[at])) return;
    char *command = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof *argv);
    argv[1] = command;
}

/* True if all words are flags, so that none says what to do. */
static bool only_flags(int argc, char **argv) {
    int i = 1;
    while (i < argc && argv[i][0] == '-' && argv[i][1]) i++;
    return i == argc;
}

/* Runs the command that the first word names, or a net or script; returns the exit code. */
static int dispatch(int argc, char **argv) {
    static const char *const flags[] = {"--help", "--version"};
    const char *word = argv[1];
    const cnri_command *command = cnri_command_find(word);
    if (command) return cnri_command_run(command, argc - 1, argv + 1);
    if (strcmp(word, "help") == 0) return help(argc, argv);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) print_help(stdout);
    else if (strcmp(word, "--version") == 0)
        return cnri_command_run(&cnri_version, argc - 1, argv + 1);
    else if (word[0] != '-' && !can_run(word)) return unknown(word);
    else if (only_flags(argc, argv))
        return cnri_mistake("", cnri_nearest_word(word, flags, CNRI_COUNT(flags)),
                            "%s alone says nothing to do", word);
    else return cnri_command_run(&cnri_cmd_run, argc, argv);
    return 0;
}

/* Runs the program; returns the exit code. */
static int run(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return cnri_mistake("", NULL, "want a net and a picture, or a command");
    }
    command_first(argc, argv);
    return dispatch(argc, argv);
}

int main(int argc, char **argv) { return cnri_program(argc, argv, run); }
