/* A source of pictures: files "grey H W", a newline, and H * W bytes. */
#include <cnnrun/kit.h>

#include <stdio.h>

/* A picture that was read: the file, its pixels in it, and their height and width. */
typedef struct picture {
    char *file, *pixels;
    int h, w;
    char path[512];
} picture;
static const cnr_host *host;

/* Method accepts: 50 for a spec that ends in .grey, else 0. */
static int32_t accepts(const char *spec, const uint8_t *head, size_t n) {
    const size_t length = strlen(spec);
    (void)head, (void)n;
    return length > 5 && strcmp(spec + length - 5, ".grey") == 0 ? 50 : 0;
}

/* Method close: frees picture and file; NULL: nothing. */
static void close_picture(void *state) {
    picture *p = state;
    if (p) host->free(p->file);
    host->free(p);
}

/* A NUL stands behind the file, so that sscanf ends there. */
static cnr_status parse(picture *p, uint64_t bytes, cnr_error *err) {
    int begin = 0;
    if (sscanf(p->file, "grey %5d %5d%n", &p->h, &p->w, &begin) != 2 || p->file[begin] != '\n' ||
        p->h < 1 || p->w < 1)
        return host->fail(err, CNR_E_FORMAT, p->path,
                          "\"grey H W\" is wanted, with sizes from 1 to 99999");
    p->pixels = p->file + begin + 1;
    if (bytes - (uint64_t)begin - 1 != (uint64_t)p->h * (uint64_t)p->w)
        return host->fail(err, CNR_E_FORMAT, p->path, "%d pixels are wanted, %llu are there",
                          p->h * p->w, (unsigned long long)bytes - (unsigned long long)begin - 1);
    return CNR_OK;
}

/* Method open: reads the file; *state is for close. Fails where the file is none. */
static cnr_status open_picture(const char *spec, const char *split, void **state,
                               cnr_source_info *info, cnr_error *err) {
    picture *p = host->alloc(sizeof *p);
    uint64_t bytes = 0;
    void *file = NULL;
    (void)split;
    if (!p) return host->fail(err, CNR_E_MEMORY, spec, "out of memory");
    memset(p, 0, sizeof *p);
    snprintf(p->path, sizeof p->path, "%s", spec);
    cnr_status status = host->file_read(spec, 1 << 24, &file, &bytes, err);
    p->file = file;
    if (!status) status = parse(p, bytes, err);
    if (status) close_picture(p);
    else *state = p;
    info->count = 1;
    return status;
}

/* Method read: the only picture, index 0; out points into the file. */
static cnr_status read_picture(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    const picture *p = state;
    const size_t n = (size_t)p->h * (size_t)p->w;
    if (index != 0) return host->fail(err, CNR_E_NOT_FOUND, p->path, "there is one picture");
    out->picture.data = host->alloc(n); /* passes to the host */
    if (!out->picture.data) return host->fail(err, CNR_E_MEMORY, p->path, "out of memory");
    memcpy(out->picture.data, p->pixels, n);
    out->picture.dtype = CNR_u8;
    out->picture.rank = 3;
    out->picture.dim[0] = p->h;
    out->picture.dim[1] = p->w;
    out->picture.dim[2] = 1;
    out->picture.bytes = n;
    snprintf(out->name, sizeof out->name, "%s", p->path);
    return CNR_OK;
}

static const cnr_source grey = {
    .size = sizeof(cnr_source),
    .name = "acme-grey",
    .syntax = "FILE.grey",
    .summary = "grey pictures as bytes",
    .accepts = accepts,
    .open = open_picture,
    .read = read_picture,
    .close = close_picture,
};

/* Registers the source. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    return h->add(registrar, CNR_KIND_SOURCE, &grey);
}

CNR_PLUGIN("c-source", "1.0", "an example source", "MIT", init, CNR_TOUCHES_FILES)
