/* cnnrun-kernelcheck: the command kernelcheck, linked with the engine alone. */
#include "kernelcheck/kernelcheck.h"

/* Runs the command with the words, also with its own name as the first, with which children are
 * started. Returns the exit code; sets a word of argv. */
static int run(int argc, char **argv) {
    const int named = argc > 1 && strcmp(argv[1], cnri_cmd_kernelcheck.name) == 0;
    argv[named] = (char *)(uintptr_t)cnri_cmd_kernelcheck.name;
    return cnri_command_run(&cnri_cmd_kernelcheck, argc - named, argv + named);
}

int main(int argc, char **argv) { return cnri_program(argc, argv, run); }
