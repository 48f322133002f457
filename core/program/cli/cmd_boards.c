/* cnnrun boards: lists the keys of board files with types, units and ranges; or checks board
 * files. */
#include "cli/cli.h"
#include "lua/script.h"
#include "run/run.h"
#include "board/board.h"
#include <math.h>

/* Result: a key that a board may have. */
typedef struct key {
    const char *key, *type, *unit, *of, *otherwise, *help;
    double low, high;
    bool required;
} key;
static const cnri_field key_fields[] = {CNRI_FIELD(key, "key", key),
                                        CNRI_FIELD(key, "type", type),
                                        CNRI_MAYBE(key, "unit", unit),
                                        CNRI_MAYBE(key, "low", low),
                                        CNRI_MAYBE(key, "high", high),
                                        CNRI_MAYBE(key, "of", of),
                                        CNRI_FIELD(key, "required", required),
                                        CNRI_MAYBE(key, "default", otherwise),
                                        CNRI_FIELD(key, "help", help)};
static const cnri_record key_record =
    CNRI_RECORD(key_fields, "{key:-28} {type}{of? of {of}|}{unit? in {unit}|}{low?, {low} to "
                            "{high}|}{required?, required| ({default})}\n"
                            "{help?    {help}\n|}");

/* Result: a board that is right. */
typedef struct judged {
    const char *board;
    int32_t units, rails, clocks;
} judged;
static const cnri_field judged_fields[] = {CNRI_FIELD(judged, "board", board),
                                           CNRI_FIELD(judged, "units", units),
                                           CNRI_FIELD(judged, "rails", rails),
                                           CNRI_FIELD(judged, "clocks", clocks)};
static const cnri_record judged_record =
    CNRI_RECORD(judged_fields, "{board}: {units} units, {rails} rails, {clocks} clocks\n");

/* Prints all keys that a board file may have, one a line. */
static cnr_status tell_keys(const cnri_call *call, cnr_error *err) {
    int32_t n;
    cnr_status status = CNR_OK;
    const cnri_board_key *keys = cnri_board_keys(&n);
    for (int32_t i = 0; i < n && !status; i++) {
        const cnri_board_key *k = &keys[i];
        const bool number = k->type == CNRI_BK_NUMBER;
        const size_t end = strlen(k->path);
        if (k->type == CNRI_BK_TABLE && strcmp(k->path + end - 2, "[]") == 0)
            continue; /* its keys follow */
        const key one = {k->path,
                         cnri_board_type_name(k->type),
                         *k->unit ? k->unit : NULL,
                         k->of,
                         k->otherwise,
                         *k->help ? k->help : NULL,
                         number ? k->low : NAN,
                         number ? k->high : NAN,
                         !k->otherwise};
        status = cnri_tell(call, &key_record, &one, err);
    }
    return status;
}

/* Reads a board and prints what it has. */
static cnr_status judge(const cnri_call *call, const char *spec, cnr_error *err) {
    cnri_board *board;
    cnr_status status = cnri_board_read(spec, false, &board, err);
    if (status) return status;
    const judged one = {spec, cnri_board_get_count(board, "units"),
                        cnri_board_get_count(board, "rails"),
                        cnri_board_get_count(board, "clocks")};
    status = cnri_tell(call, &judged_record, &one, err);
    cnri_board_free(board);
    return status;
}

/* The command boards. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    (void)values;
    if (call->operands.n == 0) return tell_keys(call, err);
    cnr_status status = cnri_call_open(call, err);
    for (int32_t i = 0; i < call->operands.n && !status; i++)
        status = judge(call, call->operands.at[i], err);
    return status;
}

const cnri_command cnri_cmd_boards = {
    .name = "boards",
    .example = "cnnrun boards odroid_xu3",
    .operands = "[BOARD[,K=V...] ...]",
    .summary = "Lists the keys that a board file may hold, with their types, units, ranges and "
               "what stands\n"
               "where they are left out; with boards, checks each.",
    .details =
        "A board is a name of the installed scripts/boards or a file, as --board takes it. Every\n"
        "command checks its board in the same way before it does anything.",
    .results = CNRI_RESULTS(&key_record, &judged_record),
    .max_operands = -1,
    .run = run,
};
