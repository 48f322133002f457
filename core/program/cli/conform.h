/* Declarations shared by devicecheck and conform; inside cli/ only. */
#ifndef CNRI_CLI_CONFORM_H
#define CNRI_CLI_CONFORM_H

#include "cli/cli.h"
#include "conform/conform.h"

/* Options of conform and devicecheck. */
typedef struct cnri_conform_call {
    cnri_conform_options o;
    const char *output, *worker;
    cnri_words nets;
} cnri_conform_call;

/* Rows of their options; c: the member that is the cnri_conform_call. */
#define CNRI_CONFORM_OPTIONS(owner, c) \
    CNRI_OPTION(owner, c.output, "--output", "FILE", \
                "a report: .html (one page), .json, .tap or .txt", .letter = 'o', .writes = true), \
        CNRI_OPTION(owner, c.nets, "--net", "FILE", \
                    "regions of devices, and rewrites, are judged on it (some small ones; " \
                    "repeatable)"), \
        CNRI_OPTION(owner, c.o.only, "--only", "NAME", "the judgement of this name alone"), \
        CNRI_OPTION(owner, c.o.check.seed, "--seed", "N", "draws other cases (1)", .max = 1e15), \
        CNRI_OPTION(owner, c.o.check.timeout, "--timeout", "SECONDS", \
                    "for one case of a judgement (20)", .min = 0.1, .max = 1e6), \
        CNRI_OPTION(owner, c.worker, "--worker", "WORDS", NULL)
/* Their defaults; number: cases of a kernel. */
#define CNRI_CONFORM_DEFAULTS(number) \
    { \
        .o = {.check = {.seed = 1, .cases = number, .only = -1, .enough = 3, .timeout = 20} } \
    }

extern const cnri_record cnri_conform_record;
/* The `wrong` hook of both commands: NULL, or what is wrong with -o's ending. The first member of
 * `values` is a cnri_conform_call. */
const char *cnri_conform_wrong(const cnri_call *call, const void *values);
/* Judges and prints; or does the work of a child process. Writes the report. */
cnr_status cnri_conform_command(cnri_call *call, cnri_conform_call *c, cnr_error *err);

#endif
