/* Internals of source-mnist: byte arrays in the IDX format, plain or gzip-compressed. */
#ifndef MNIST_IDX_H
#define MNIST_IDX_H

#include <cnnrun/kit.h>

extern const cnr_host *mnist_host;

/* An array of bytes as IDX files hold them. */
typedef struct mnist_idx {
    int32_t rank;
    int64_t dim[3];
    uint8_t *data; /* the elements, from the host's alloc */
} mnist_idx;

/* Reads an array of unsigned bytes with `rank` dimensions (1 to 3). */
cnr_status mnist_idx_read(const char *path, int32_t rank, mnist_idx *out, cnr_error *err);
void mnist_idx_free(mnist_idx *array); /* Frees the array's data, which becomes NULL. */

#endif
