/* Host functions called without what they need: an error, or nothing, never a fault. */
#include "core/host/host.h"
#include "tests/tap.h"
#include <unistd.h>

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    struct cnr_output *out = NULL;
    void *data = &err;
    uint64_t bytes = 1;
    ok(cnri_host.output_begin(NULL, 0, &out, &err) == CNR_E_INVALID && !out, "output_begin: path");
    is_int(cnri_host.output_begin("/nonexistent/x", 0, NULL, &err), CNR_E_INVALID, "output_begin: out");
    is_int(cnri_host.output_write(NULL, "x", 1, &err), CNR_E_INVALID, "output_write: output");
    is_int(cnri_host.file_read(NULL, 1, &data, &bytes, &err), CNR_E_INVALID, "file_read: path");
    is_int(cnri_host.file_read("/dev/null", 1, NULL, &bytes, &err), CNR_E_INVALID, "file_read: data");
    is_int(cnri_host.file_read("/dev/null", 1, &data, NULL, NULL), CNR_E_INVALID, "file_read: bytes");
    is_int(cnri_host.file_open(NULL, &bytes, &err), -1, "file_open: path");
    ok(!cnri_host.find_op(NULL), "find_op: name");
    is_int(cnri_host.intern(NULL), 0, "intern: name");
    is_int(cnri_host.fail(&err, CNR_E_ARG, NULL, NULL), CNR_E_ARG, "fail: no text");
    cnri_host.log(CNR_LOG_DEBUG, NULL, NULL);
    cnri_host.log(CNR_LOG_WARN, NULL, NULL);
    cnri_host.free(NULL);
    ok(cnri_host.alloc(SIZE_MAX) == NULL, "alloc: more than there is");
    return done();
}
