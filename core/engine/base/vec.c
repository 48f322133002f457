/* Growth of the arrays that CNRI_VEC declares. */
#include "base/base.h"
#include <string.h>

/* What cnri_push calls with an element's size in bytes: makes room in *at, which moves, and returns
 * the new, zeroed element. NULL: out of memory. */
void *cnri_vec_push(void **at, int32_t *n, int32_t *capacity, size_t bytes) {
    if (*n == *capacity) {
        if (*capacity > INT32_MAX / 2) return NULL;
        const int32_t more = *capacity ? *capacity * 2 : 8;
        bool overflow = false;
        const size_t wanted = cnri_mul((size_t)more, bytes, &overflow);
        void *larger = overflow ? NULL : cnri_resize(*at, wanted);
        if (!larger) return NULL;
        *at = larger;
        *capacity = more;
    }
    void *slot = (char *)*at + (size_t)*n * bytes;
    (*n)++;
    return memset(slot, 0, bytes);
}
