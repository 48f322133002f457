/* cnnrun: the program; finds the subcommand and hands over. */
#include "core/cli/cli.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

const cnri_command cnri_commands[CNRI_N_COMMANDS] = {
#define X(name, help) {#name, help, cnri_cmd_##name},
    CNRI_COMMANDS(X)
#undef X
};

static void print_help(void) {
    cnri_say(stdout,
             "usage: cnnrun NET PICTURE...        what the net says of pictures\n"
             "       cnnrun SCRIPT.lua WORDS...   run an experiment\n"
             "       cnnrun COMMAND ...           one of these; --help with each tells more\n\n");
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++)
        cnri_say(stdout, "  %-12s %s\n", cnri_commands[i].name, cnri_commands[i].help);
    cnri_say(stdout, "  help         this text; help COMMAND: that of a command\n"
                     "  help options what all commands that take nets have in common\n"
                     "  help --man   all of it, as a man page\n"
                     "  --version    the program's version\n\n");
    cnri_say(stdout,
             "A net is a Lua script, a .cnr file, or what an importer plugin reads.\n"
             "Results go to stdout, all else to stderr; --json makes results one object a line.\n\n"
             "exit codes: ");
    int32_t n = 0;
#define X(name, value, text)                                                                       \
    if (n) cnri_say(stdout, n % 5 ? ", " : ",\n  ");                                               \
    cnri_say(stdout, "%d %s", -(value), text);                                                     \
    n++;
    CNR_STATUS_LIST(X)
#undef X
    cnri_say(stdout, ",\n  130 stopped by Ctrl-C, 143 by SIGTERM; a script's own is what its main returns\n"
                     "With --json an error is an object too: {\"error\": {\"code\", \"place\", "
                     "\"text\"}}.\n"
                     "Files appear whole under their names or not at all: one that is there keeps its "
                     "mode and\nowner, of a symbolic link the file that it leads to is replaced; an "
                     "input or - is refused.\n");
}

static int run_command(const char *name, int argc, char **argv, int *code) {
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++)
        if (strcmp(cnri_commands[i].name, name) == 0) {
            *code = cnri_commands[i].run(argc, argv);
            return 1;
        }
    return 0;
}

static int unknown(const char *word) {
    const char *names[CNRI_N_COMMANDS + 1];
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++) names[i] = cnri_commands[i].name;
    names[CNRI_N_COMMANDS] = "help";
    const bool path = strpbrk(word, "./") != NULL;
    char file[4096];
    const char *near = path ? NULL : cnri_nearest(word, names, CNRI_COUNT(names));
    if (!near && cnri_nearby(word, file, sizeof file)) near = file;
    char text[PATH_MAX + sizeof file + 64];
    snprintf(text, sizeof text, "%s %s%s%s%s", path ? "no such file:" : "no such command or file:",
             word, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    cnri_error_told("", path ? -CNR_E_NOT_FOUND : -CNR_E_ARG, "", text);
    cnri_say(stderr, "cnnrun --help lists the commands\n");
    return path ? -CNR_E_NOT_FOUND : -CNR_E_ARG;
}

static int help(int argc, char **argv) {
    const char *of = argc < 3 ? NULL : argv[2];
    char flag[] = "--help";
    int code = 0;
    if (!of) {
        print_help();
    } else if (strcmp(of, "options") == 0) {
        cnri_reference_options();
    } else if (strcmp(of, "--man") == 0) {
        code = cnri_reference_all("man");
    } else {
        char *words[] = {argv[2], flag, NULL};
        if (!run_command(of, 2, words, &code)) code = unknown(of);
    }
    return code;
}

static bool is_command(const char *word) {
    for (int32_t i = 0; i < CNRI_N_COMMANDS; i++)
        if (strcmp(cnri_commands[i].name, word) == 0) return true;
    return false;
}

/* Options that stand before a command go behind it, so that it reads them with its own. */
static void command_first(int argc, char **argv) {
    const int at = cnri_args_command_at(argc, argv);
    if (at < 1 || !is_command(argv[at])) return;
    char *command = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof *argv);
    argv[1] = command;
}

/* Nothing but flags: none of them says what to do. */
static bool only_flags(int argc, char **argv) {
    int i = 1;
    while (i < argc && argv[i][0] == '-' && argv[i][1]) i++;
    return i == argc;
}

static int unknown_flag(const char *word) {
    static const char *const known[] = {"--help", "--version"};
    const char *near = cnri_nearest(word, known, CNRI_COUNT(known));
    char text[256];
    snprintf(text, sizeof text, "%s alone says nothing to do%s%s%s", word,
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    cnri_error_told("", -CNR_E_ARG, "", text);
    cnri_say(stderr, "cnnrun --help lists the commands\n");
    return -CNR_E_ARG;
}

int main(int argc, char **argv) {
    int code = 0;
    cnri_signals_install();
    cnri_guard_install();
    cnri_errors_begin(argc, argv);
    if (argc < 2)
        return cnri_error_told("", -CNR_E_ARG, "",
                               "a net and a picture, or a command; cnnrun --help tells more");
    command_first(argc, argv);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) print_help();
    else if (strcmp(argv[1], "help") == 0) code = help(argc, argv);
    else if (strcmp(argv[1], "--version") == 0) cnri_say(stdout, "cnnrun %s\n", CNNRUN_VERSION);
    else if (!run_command(argv[1], argc - 1, argv + 1, &code)) {
        if (argv[1][0] != '-' && access(argv[1], F_OK) != 0) code = unknown(argv[1]);
        else if (only_flags(argc, argv)) code = unknown_flag(argv[1]);
        else code = cnri_cmd_run(argc, argv);
    }
    if (code != -CNR_E_MEMORY && cnri_alloc_failures() > 0) {
        cnri_say(stderr, "cnnrun: out of memory: what came about is not whole\n");
        code = -CNR_E_MEMORY;
    }
    cnri_plugins_finish();
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        cnri_say(stderr, "cnnrun: output: can't write%s%s\n", errno ? ": " : "",
                 errno ? strerror(errno) : "");
        code = -CNR_E_IO;
    }
    return code;
}
