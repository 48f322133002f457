/* What every gauge does when it is opened and described. */
#include "gauge.h"
#include <string.h>

void *gauge_state(size_t bytes, const char *what, cnr_error *err) {
    void *own = gauge_host->alloc(bytes);
    if (own) memset(own, 0, bytes);
    else gauge_host->fail(err, CNR_E_MEMORY, what, "out of memory");
    return own;
}

cnr_status gauge_state_opened(cnr_status status, void *own, const int32_t *count,
                              void (*close)(void *), void **state, int32_t *n) {
    if (status) {
        close(own);
        return status;
    }
    *state = own;
    *n = *count;
    return CNR_OK;
}

cnr_status gauge_tell(void *out, const void *own, uint32_t bytes) {
    uint32_t size;
    memcpy(&size, out, sizeof size);
    memcpy(out, own, size < bytes ? size : bytes);
    memcpy(out, &size, sizeof size);
    return CNR_OK;
}
