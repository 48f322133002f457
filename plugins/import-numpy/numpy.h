/* NumPy's arrays: what the parts of the importer share. */
#ifndef IMPORT_NUMPY_H
#define IMPORT_NUMPY_H

#include "weights.h"

/* ---- npy.c: the head of an array
 *
 *   "\x93NUMPY" major minor | length of the text (2 bytes; from version 2 on 4), little-endian
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (20, 1, 5, 5), }    spaces, newline
 *
 * and behind it the elements. The text is a Python literal, of which just this form is read. ----
 */
enum { NP_FIRST = 10, NP_MOST_TEXT = 1 << 16 };

/* What the head of an array says. */
typedef struct np_head {
    int32_t dtype;
    int32_t width, rank;
    int swapped, fortran;
    int64_t dim[CNR_MAX_RANK], count;
    size_t offset; /* offset of the elements */
} np_head;

/* Checks the first NP_FIRST bytes. The length of the text is in bytes [8, *from). 0: not an
 * array. */
int np_begins(const uint8_t *first, size_t *from);
/* Returns NULL, or the problem. `why` is room for the message. */
const char *np_read_head(const char *text, size_t n, np_head *out, char why[200]);
/* Element i of the data as a number, in whatever type and byte order. */
double np_element(const np_head *h, const void *data, int64_t i);

/* ---- files.c: files, archives and folders of arrays ---- */

typedef struct np_set np_set;
np_set *np_set_new(void);    /* an empty set, for np_set_free; NULL: no memory */
void np_set_free(np_set *s); /* closes and frees all; NULL: nothing */
/* Adds the arrays at `path`. Unusable arrays become problems of the graph. */
cnr_status np_set_add(np_set *s, imp_net *net, const char *path, cnr_error *err);
/* The set's arrays, for imp functions; borrowed from the set until the next call. */
imp_arrays np_set_arrays(np_set *s);

/* ---- read.c: the `import` hook of arrays.so, which plugin.c calls ---- */
CNR_EXPORT cnr_status np_import(const cnr_host *host, const cnr_import_args *args,
                                struct cnr_graph *graph, cnr_error *err);

#endif
