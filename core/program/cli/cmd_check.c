/* cnnrun check FILE...: verifies every digest of .cnr files. */
#include "cli/cli.h"
#include "store/store.h"

/* Result: a checked file. */
typedef struct checked {
    const char *file, *error;
    bool ok;
    int32_t damaged;
} checked;
static const cnri_field fields[] = {CNRI_KEY(checked, file), CNRI_KEY(checked, ok),
                                    CNRI_KEY(checked, damaged), CNRI_KEY(checked, error)};
static const cnri_record record =
    CNRI_RECORD(fields, "{error?|{file}: {ok?ok|{damaged} damaged tensor{damaged+s}}\n}");

/* Checks the files. One that can't be read is reported in its line; the exit code is that of the
 * last bad file. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    cnr_status printed = CNR_OK;
    (void)values;
    for (int32_t i = 0; i < call->operands.n && !printed; i++) {
        cnr_error why = CNR_ERROR_INIT;
        checked c = {.file = call->operands.at[i]};
        const cnr_status status = cnri_store_check(c.file, &c.damaged, &why);
        c.ok = !status && c.damaged == 0;
        if (status) {
            call->code = cnri_complain_line(call, &why);
            c.error = why.text;
        } else if (!c.ok) {
            call->code = -CNR_E_FORMAT;
        }
        printed = cnri_tell(call, &record, &c, err);
    }
    return printed;
}

const cnri_command cnri_cmd_check = {
    .name = "check",
    .example = "cnnrun check net.cnr",
    .operands = "FILE...",
    .summary =
        "Verifies the digests of native model files (.cnr): header, directory, every tensor.",
    .details = "The exit code is 0 if all files are intact. Damaged tensors are named on stderr.",
    .results = CNRI_RESULTS(&record),
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
