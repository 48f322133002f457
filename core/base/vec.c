/* Growth of the arrays that CNRI_VEC declares. */
#include "core/base/base.h"
#include <string.h>

void *cnri_vec_push(void **at, int32_t *n, int32_t *room, size_t bytes) {
    if (*n == *room) {
        if (*room > INT32_MAX / 2) return NULL;
        const int32_t more = *room ? *room * 2 : 8;
        bool overflow = false;
        const size_t wanted = cnri_mul((size_t)more, bytes, &overflow);
        void *larger = overflow ? NULL : cnri_resize(*at, wanted);
        if (!larger) return NULL;
        *at = larger;
        *room = more;
    }
    void *slot = (char *)*at + (size_t)*n * bytes;
    (*n)++;
    return memset(slot, 0, bytes);
}
