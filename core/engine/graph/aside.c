/* Large weights of imported nets under a memory bound: they lie in a file without a name, so that
 * their memory pages can be given back and read again, like those of a native file. */
#define _GNU_SOURCE /* mkostemp, secure_getenv */
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
    const char *const folders[] = {secure_getenv("TMPDIR"), "/var/tmp", "/tmp"};
    for (size_t i = 0; i < CNR_ROWS(folders); i++) {
        int fd = folders[i] ? open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
        if (fd >= 0) return fd;
        char *path = folders[i] ? cnri_format("%s/cnnrun-XXXXXX", folders[i]) : NULL;
        fd = path ? mkostemp(path, O_CLOEXEC) : -1;
        if (fd >= 0) (void)unlink(path);
        cnri_free(path);
        if (fd >= 0) return fd;
    }
    return -1;
}

/* Appends data to the file at a page's begin, and sets *at to where it is. CNR_E_LIMIT: there is no
 * room for it, and the file is as before. */
static cnr_status append(cnr_graph *g, cnri_read_fn read, void *state, uint64_t bytes,
                         uint64_t *at) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint8_t *piece = cnri_alloc(PIECE);
    cnr_status status = piece ? CNR_OK : CNR_E_MEMORY;
    *at = (g->aside.bytes + page - 1) / page * page;
    for (uint64_t done = 0, n; done < bytes && !status; done += n) {
        n = cnr_min(bytes - done, PIECE);
        status = read(state, done, piece, n);
        if (!status && pwrite(g->aside.fd, piece, (size_t)n, (off_t)(*at + done)) != (ssize_t)n)
            status = CNR_E_LIMIT;
    }
    cnri_free(piece);
    if (!status) g->aside.bytes = *at + bytes;
    else (void)!ftruncate(g->aside.fd, (off_t)g->aside.bytes);
    return status;
}

cnr_status cnri_aside_put(cnr_graph *g, cnri_read_fn read, void *state, uint64_t bytes,
                          void **out) {
    uint64_t at;
    *out = NULL;
    if (!g->aside.wanted || bytes < LEAST) return CNR_OK;
    if (!g->aside.opened) g->aside.fd = open_nameless();
    g->aside.opened = true;
    void *map = MAP_FAILED;
    cnr_status status = CNR_E_LIMIT;
    if (g->aside.fd >= 0) status = append(g, read, state, bytes, &at);
    if (!status)
        map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->aside.fd, (off_t)at);
    if (map != MAP_FAILED) *out = map;
    if (map != MAP_FAILED || (status && status != CNR_E_LIMIT)) return status;
    cnri_log(CNR_LOG_WARN, g->name,
             "no temporary file takes its weights (TMPDIR names a folder with room for them), so "
             "they stay in memory, beyond the memory bound");
    g->aside.wanted = false;
    return CNR_OK;
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
