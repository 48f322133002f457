/* Large weights of imported nets under a memory bound: they lie in a file without a name, so that
 * their memory pages can be given back and read again, like those of a native file. */
#define _GNU_SOURCE /* mkostemp */
#include "graph/graph.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LEAST = 1 << 16, /* weights of fewer bytes stay in memory */
    PIECE = 1 << 20  /* bytes that are copied at a time */
};

/* Opens a file without a name, where the system keeps large temporary files; -1: it can't. */
static int open_nameless(void) {
    const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    for (size_t i = 0; i < CNR_ROWS(folders); i++) {
        char *path = folders[i] ? cnri_format("%s/cnnrun-XXXXXX", folders[i]) : NULL;
        const int fd = path ? mkostemp(path, O_CLOEXEC) : -1;
        if (fd >= 0) (void)unlink(path);
        cnri_free(path);
        if (fd >= 0) return fd;
    }
    return -1;
}

/* Appends data to the file at a page's begin. False: there is no room for it. */
static bool append(cnr_graph *g, cnri_read_fn read, void *state, uint64_t bytes, uint64_t *at) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint8_t *piece = cnri_alloc(PIECE);
    bool ok = piece != NULL;
    *at = (g->aside.bytes + page - 1) / page * page;
    for (uint64_t done = 0, n; done < bytes && ok; done += n) {
        n = cnr_min(bytes - done, PIECE);
        ok = read(state, done, piece, n) == CNR_OK &&
             pwrite(g->aside.fd, piece, (size_t)n, (off_t)(*at + done)) == (ssize_t)n;
    }
    cnri_free(piece);
    if (ok) g->aside.bytes = *at + bytes;
    return ok;
}

void *cnri_aside_put(cnr_graph *g, cnri_read_fn read, void *state, uint64_t bytes) {
    uint64_t at;
    if (!g->aside.wanted || bytes < LEAST) return NULL;
    if (!g->aside.opened) g->aside.fd = open_nameless();
    g->aside.opened = true;
    void *map = MAP_FAILED;
    if (g->aside.fd >= 0 && append(g, read, state, bytes, &at))
        map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->aside.fd, (off_t)at);
    if (map != MAP_FAILED) return map;
    cnri_log(1, g->name,
             "no temporary file takes its weights (TMPDIR names a folder with room for them), so "
             "they stay in memory, beyond the memory bound");
    g->aside.wanted = false;
    return NULL;
}

void cnri_aside_close(cnr_graph *g) {
    if (g->aside.opened && g->aside.fd >= 0) close(g->aside.fd);
}

void cnri_value_drop(cnri_value *v) {
    if (v->is_aside && !v->borrowed && v->type->data)
        (void)munmap(v->type->data, (size_t)v->type->bytes);
    else if (!v->borrowed) cnri_free(v->type->data);
    v->type->data = NULL;
    v->is_aside = false;
}
