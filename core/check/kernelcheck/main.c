/* cnnrun-kernelcheck: the command kernelcheck, linked with the engine alone. */
#include "kernelcheck/kernelcheck.h"

/* Accepts the words of the command in cnnrun too, with which children are started. */
static int run(int argc, char **argv) {
    const int named = argc > 1 && strcmp(argv[1], cnri_cmd_kernelcheck.name) == 0;
    argv[named] = (char *)(uintptr_t)cnri_cmd_kernelcheck.name;
    return cnri_command_run(&cnri_cmd_kernelcheck, argc - named, argv + named);
}

int main(int argc, char **argv) { return cnri_program(argc, argv, run); }
