/* Reads .npy files, .npz archives (zip) and folders. Headers are read first; elements only once the
 * array is known to fit, and never more than the header declares. */
#define _GNU_SOURCE /* strverscmp */
#include "numpy.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

enum { MOST_ARRAYS = 1 << 14, MOST_SOURCES = 1 << 14 };

/* A file that holds arrays. */
typedef struct source {
    char *path;
    zip_t *zip; /* NULL: a single array */
} source;

/* An array, and where it lies. */
typedef struct entry {
    char *name;
    int32_t source;
    zip_uint64_t member;
    np_head head;
} entry;

/* All arrays of several files. */
struct np_set {
    source *sources;
    entry *entries;
    imp_array *arrays; /* made from the entries at the end */
    int32_t n_sources, source_room, n, room;
};

/* ---- the set of arrays ---- */

np_set *np_set_new(void) {
    np_set *s = (np_set *)imp_host->alloc(sizeof *s);
    if (s) memset(s, 0, sizeof *s);
    return s;
}

/* Closes the archives and frees everything; NULL: nothing. */
void np_set_free(np_set *s) {
    if (!s) return;
    for (int32_t i = 0; i < s->n; i++) imp_host->free(s->entries[i].name);
    for (int32_t i = 0; i < s->n_sources; i++) {
        if (s->sources[i].zip) zip_discard(s->sources[i].zip);
        imp_host->free(s->sources[i].path);
    }
    imp_host->free(s->entries);
    imp_host->free(s->sources);
    imp_host->free(s->arrays);
    imp_host->free(s);
}

/* Fills err: out of memory. */
static cnr_status no_memory(const char *path, cnr_error *err) {
    return imp_host->fail(err, CNR_E_MEMORY, path, "out of memory");
}

/* Room for one more entry; NULL: out of memory, or too many entries. */
static void *push(void **list, int32_t *n, int32_t *room, int32_t most, size_t bytes) {
    if (*n >= most || !imp_grow(list, *n, room, bytes)) return NULL;
    char *slot = (char *)*list + (size_t)(*n)++ * bytes;
    memset(slot, 0, bytes);
    return slot;
}

/* A copy of n letters of text; NULL: out of memory. */
static char *copy_text(const char *text, size_t n) {
    char *copy = (char *)imp_host->alloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = 0;
    }
    return copy;
}

/* Adds a file; NULL: out of memory or too many. */
static source *add_source(np_set *s, const char *path) {
    source *one = (source *)push((void **)&s->sources, &s->n_sources, &s->source_room, MOST_SOURCES,
                                 sizeof *one);
    if (one) one->path = copy_text(path, strlen(path));
    return one && one->path ? one : NULL;
}

/* ---- reading ---- */

/* A file or a member of an archive that is being read. */
typedef struct stream {
    FILE *file;
    zip_file_t *member;
} stream;

/* Status of the error, or CNR_E_IO if there is none. */
static cnr_status not_opened(const cnr_error *err) {
    return err && err->code ? (cnr_status)err->code : CNR_E_IO;
}

/* Opens a file for reading; *bytes: its length. NULL: failed. */
static FILE *open_file(const char *path, uint64_t *bytes, cnr_error *err) {
    const int fd = imp_host->file_open(path, bytes, err);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (fd >= 0 && !file) close(fd);
    return file;
}

/* Opens a file or member of an archive. 0: failed. */
static int stream_open(stream *in, const source *from, zip_uint64_t member) {
    *in = (stream){0};
    if (from->zip) in->member = zip_fopen_index(from->zip, member, 0);
    else in->file = open_file(from->path, NULL, NULL);
    return in->member || in->file;
}

/* Closes the archive's member and the file, as far as they are open. */
static void stream_close(stream *in) {
    if (in->member) zip_fclose(in->member);
    if (in->file) fclose(in->file);
}

/* Reads up to n bytes. Returns how many; fewer at the end and after an error. */
static size_t stream_read(stream *in, void *out, size_t n) {
    size_t got = 0;
    if (in->file) return fread(out, 1, n, in->file);
    while (got < n) {
        const zip_int64_t k = zip_fread(in->member, (char *)out + got, n - got);
        if (k <= 0) break;
        got += (size_t)k;
    }
    return got;
}

/* Whether the stream is at its end and its checksum is right. */
static int stream_ends(stream *in) {
    char more;
    return in->file ? fread(&more, 1, 1, in->file) == 0 && !ferror(in->file)
                    : zip_fread(in->member, &more, 1) == 0;
}

/* Reads a header. `bytes`: size of the whole array file, from its container. Returns NULL, or the
 * problem. */
static const char *read_head(stream *in, uint64_t bytes, np_head *h, char why[200]) {
    uint8_t first[12];
    char text[NP_MOST_TEXT];
    size_t from, n;
    if (stream_read(in, first, NP_FIRST) != NP_FIRST || !np_begins(first, &from))
        return "is no array of NumPy's (.npy, versions 1 to 3)";
    if (stream_read(in, first + NP_FIRST, from - NP_FIRST) != from - NP_FIRST) return "ends early";
    n = (size_t)first[8] | (size_t)first[9] << 8;
    if (from == 12) n |= (size_t)first[10] << 16 | (size_t)first[11] << 24;
    if (n > sizeof text) return "has a head of more than 64 KiB";
    if (stream_read(in, text, n) != n) return "ends early";
    const char *wrong = np_read_head(text, n, h, why);
    if (wrong) return wrong;
    h->offset = from + n;
    if ((uint64_t)h->count * (uint64_t)h->width + h->offset == bytes) return NULL;
    snprintf(why, 200, "has %llu bytes, but its head tells of %llu", (unsigned long long)bytes,
             (unsigned long long)h->count * (unsigned long long)h->width + h->offset);
    return why;
}

/* Adds an array of the last source; a bad one becomes a problem of the graph. `name` has n
 * characters. */
static cnr_status add_array(np_set *s, imp_net *net, const char *name, size_t n,
                            zip_uint64_t member, uint64_t bytes, cnr_error *err) {
    const source *from = &s->sources[s->n_sources - 1];
    stream in;
    char why[200];
    entry e = {.source = s->n_sources - 1, .member = member};
    const char *wrong = !stream_open(&in, from, member)
                            ? from->zip ? zip_strerror(from->zip) : "cannot be opened"
                            : read_head(&in, bytes, &e.head, why);
    if (wrong)
        imp_host->graph_problem(net->graph, from->path, "'%.*s': %s", n < 200 ? (int)n : 200, name,
                                wrong);
    stream_close(&in);
    if (wrong) return CNR_OK;
    entry *slot = (entry *)push((void **)&s->entries, &s->n, &s->room, MOST_ARRAYS, sizeof e);
    if (!slot) return no_memory(from->path, err);
    *slot = e;
    slot->name = copy_text(name, n);
    return slot->name ? CNR_OK : no_memory(from->path, err);
}

/* ---- containers ---- */

/* Length of a name without ".npy". */
static size_t without_ending(const char *name) {
    const size_t n = strlen(name);
    return imp_ends_with(name, ".npy") ? n - 4 : n;
}

/* Orders arr_2 before arr_10. */
static int by_name(const void *a, const void *b) {
    return strverscmp(((const entry *)a)->name, ((const entry *)b)->name);
}

/* Adds the heads of all arrays of an archive, sorted by name, to s. */
static cnr_status add_members(np_set *s, imp_net *net, zip_t *zip, const char *path,
                              cnr_error *err) {
    const zip_int64_t n = zip_get_num_entries(zip, 0);
    const int32_t first = s->n;
    cnr_status status = CNR_OK;
    if (n > MOST_ARRAYS)
        return imp_host->fail(err, CNR_E_LIMIT, path, "holds %lld files, more than %d",
                              (long long)n, MOST_ARRAYS);
    for (zip_int64_t i = 0; i < n && !status; i++) {
        zip_stat_t info;
        const int known = zip_stat_index(zip, (zip_uint64_t)i, 0, &info) == 0 &&
                          info.valid & ZIP_STAT_NAME && info.valid & ZIP_STAT_SIZE;
        const char *name = known ? info.name : "?";
        if (!known || info.name[strlen(info.name) - (*info.name != 0)] != '/') /* not a folder */
            status = add_array(s, net, name, without_ending(name), (zip_uint64_t)i,
                               known ? info.size : 0, err);
    }
    if (!status && s->n > first)
        qsort(s->entries + first, (size_t)(s->n - first), sizeof *s->entries, by_name);
    return status;
}

/* Opens an archive, which s keeps open, and adds its arrays. */
static cnr_status add_archive(np_set *s, imp_net *net, const char *path, cnr_error *err) {
    int code;
    source *from = add_source(s, path);
    if (!from) return no_memory(path, err);
    const int fd = imp_host->file_open(path, NULL, err);
    if (fd < 0) return not_opened(err);
    from->zip = zip_fdopen(fd, 0, &code);
    if (from->zip) return add_members(s, net, from->zip, path, err);
    close(fd);
    zip_error_t why;
    zip_error_init_with_code(&why, code);
    const cnr_status status =
        imp_host->fail(err, CNR_E_FORMAT, path, "as a zip archive: %s", zip_error_strerror(&why));
    zip_error_fini(&why);
    return status;
}

/* Adds a file with one array. */
static cnr_status add_file(np_set *s, imp_net *net, const char *path, cnr_error *err) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    uint64_t bytes;
    const int fd = imp_host->file_open(path, &bytes, err);
    if (fd < 0) return not_opened(err);
    close(fd);
    if (!add_source(s, path)) return no_memory(path, err);
    return add_array(s, net, name, without_ending(name), 0, bytes, err);
}

/* Adds all .npy files of a folder. */
static cnr_status add_folder(np_set *s, imp_net *net, const char *path, cnr_error *err) {
    DIR *d = opendir(path);
    const int32_t first = s->n;
    cnr_status status = CNR_OK;
    if (!d) return imp_host->fail(err, CNR_E_IO, path, "cannot be opened");
    for (struct dirent *e; !status && (e = readdir(d));) {
        char file[4096];
        if (!imp_ends_with(e->d_name, ".npy")) continue;
        if (snprintf(file, sizeof file, "%s/%s", path, e->d_name) < (int)sizeof file)
            status = add_file(s, net, file, err);
    }
    closedir(d);
    if (!status && s->n > first)
        qsort(s->entries + first, (size_t)(s->n - first), sizeof *s->entries, by_name);
    return status;
}

cnr_status np_set_add(np_set *s, imp_net *net, const char *path, cnr_error *err) {
    struct stat info;
    char first[2] = "";
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return add_folder(s, net, path, err);
    cnr_error why = CNR_ERROR_INIT;
    FILE *file = open_file(path, NULL, &why);
    if (!file)
        return imp_host->fail(err, why.code ? why.code : CNR_E_IO, path, "%s",
                              why.code ? why.text : "cannot be opened");
    const size_t n = fread(first, 1, sizeof first, file);
    fclose(file);
    return n == 2 && memcmp(first, "PK", 2) == 0 ? add_archive(s, net, path, err)
                                                 : add_file(s, net, path, err);
}

/* ---- access as imp_arrays ---- */

/* Reads the data of array i into *data, host memory for the caller. */
static cnr_status load(void *owner, int32_t i, void **data, cnr_error *err) {
    const np_set *s = (const np_set *)owner;
    const entry *e = &s->entries[i];
    const source *from = &s->sources[e->source];
    const size_t bytes = (size_t)e->head.count * (size_t)e->head.width;
    char skipped[4096];
    stream in;
    *data = imp_host->alloc(bytes + 1);
    if (!*data) return no_memory(from->path, err);
    int good = stream_open(&in, from, e->member);
    for (size_t left = e->head.offset, n; good && left > 0; left -= n) {
        n = left < sizeof skipped ? left : sizeof skipped;
        good = stream_read(&in, skipped, n) == n;
    }
    good = good && stream_read(&in, *data, bytes) == bytes && stream_ends(&in);
    stream_close(&in);
    return good ? CNR_OK
                : imp_host->fail(err, CNR_E_FORMAT, from->path,
                                 "'%s' is damaged: it does not unpack to what it says", e->name);
}

/* Element `at` of array i as a number. */
static double get(const void *owner, int32_t i, const void *data, int64_t at) {
    return np_element(&((const np_set *)owner)->entries[i].head, data, at);
}

imp_arrays np_set_arrays(np_set *s) {
    imp_host->free(s->arrays);
    s->arrays = (imp_array *)imp_host->alloc((size_t)s->n * sizeof *s->arrays + 1);
    for (int32_t i = 0; s->arrays && i < s->n; i++) {
        const np_head *h = &s->entries[i].head;
        imp_array *a = &s->arrays[i];
        int64_t step = 1;
        *a = (imp_array){.name = s->entries[i].name,
                         .rank = h->rank,
                         .file = s->sources[s->entries[i].source].path};
        memcpy(a->dim, h->dim, sizeof a->dim);
        for (int32_t k = 0; k < h->rank; k++) {
            const int32_t axis = h->fortran ? k : h->rank - 1 - k;
            a->stride[axis] = step;
            if (h->count > 0) step *= h->dim[axis];
        }
    }
    return (imp_arrays){.at = s->arrays, .n = s->n, .owner = s, .load = load, .get = get};
}
