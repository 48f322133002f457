/* EXIF orientation: reads it, and rotates the picture. */
#include "images.h"

/* The number of `bytes` bytes; little: the lowest byte is first. */
static uint32_t number(const uint8_t *at, int bytes, int little) {
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) v = v << 8 | at[little ? bytes - 1 - i : i];
    return v;
}

int img_exif_orientation(const uint8_t *tiff, size_t n) {
    enum { ORIENTATION = 0x0112, SHORT = 3 };
    if (n < 8) return 1;
    const int little = tiff[0] == 'I';
    if (tiff[0] != tiff[1] || (!little && tiff[0] != 'M') || number(tiff + 2, 2, little) != 42)
        return 1;
    const size_t directory = number(tiff + 4, 4, little);
    if (directory > n || n - directory < 2) return 1;
    const uint32_t entries = number(tiff + directory, 2, little);
    const uint8_t *entry = tiff + directory + 2;
    for (uint32_t i = 0; i < entries && (size_t)(tiff + n - entry) >= 12; i++, entry += 12) {
        if (number(entry, 2, little) != ORIENTATION) continue;
        const uint32_t value = number(entry + 8, 2, little);
        return number(entry + 2, 2, little) == SHORT && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* Each orientation as three steps: exchange rows and columns, then mirror. */
static const struct {
    uint8_t exchange, flip_x, flip_y;
} moves[9] = {
    {0, 0, 0}, {0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1},
    {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {1, 0, 1},
};

cnr_status img_orient(img_picture *p, int orientation, const char *path, cnr_error *err) {
    if (orientation < 2 || orientation > 8) return CNR_OK;
    const int64_t h = moves[orientation].exchange ? p->w : p->h;
    const int64_t w = moves[orientation].exchange ? p->h : p->w;
    uint8_t *out = img_host->alloc((size_t)(h * w * p->c));
    if (!out) return img_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int64_t fx = moves[orientation].flip_x ? w - 1 - x : x;
            const int64_t fy = moves[orientation].flip_y ? h - 1 - y : y;
            const int64_t from = moves[orientation].exchange ? fx * p->w + fy : fy * p->w + fx;
            memcpy(out + (y * w + x) * p->c, p->data + from * p->c, (size_t)p->c);
        }
    img_host->free(p->data);
    p->data = out;
    p->h = h;
    p->w = w;
    return CNR_OK;
}
