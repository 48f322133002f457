/* Allocates pictures within limits. */
#include "images.h"

cnr_status img_make(img_picture *p, int64_t h, int64_t w, int64_t c, const img_bytes *file,
                    int64_t per_byte, cnr_error *err) {
    if (h < 1 || w < 1 || w > IMG_MAX_PIXELS / h)
        return img_host->fail(err, CNR_E_LIMIT, file->path,
                              "%lld x %lld pixels; at most %lld million are read", (long long)w,
                              (long long)h, (long long)(IMG_MAX_PIXELS >> 20));
    if (h * w / per_byte > (int64_t)file->n)
        return img_host->fail(err, CNR_E_FORMAT, file->path,
                              "%zu bytes can't hold %lld x %lld pixels", file->n, (long long)w,
                              (long long)h);
    p->h = h;
    p->w = w;
    p->c = c;
    p->data = img_host->alloc((size_t)(h * w * c));
    if (!p->data) return img_host->fail(err, CNR_E_MEMORY, file->path, "out of memory");
    return CNR_OK;
}

/* Frees the picture's pixels; p->data becomes NULL. */
void img_drop(img_picture *p) {
    img_host->free(p->data);
    p->data = NULL;
}
