/* GIF by giflib: the first picture on its screen. */
#include "images.h"
#include <gif_lib.h>

enum { PIXELS_A_BYTE = 1 << 14 };

/* Where giflib's reading of the file stands. */
typedef struct reader {
    const img_bytes *file;
    size_t at;
} reader;

/* 1: the head of a file is a GIF's. */
int img_is_gif(const uint8_t *head, size_t n) {
    return n >= 6 && (memcmp(head, "GIF87a", 6) == 0 || memcmp(head, "GIF89a", 6) == 0);
}

/* giflib asks for n bytes; returns how many it got. */
static int take(GifFileType *gif, GifByteType *to, int n) {
    reader *r = gif->UserData;
    const size_t left = r->file->n - r->at, got = (size_t)n < left ? (size_t)n : left;
    memcpy(to, r->file->at + r->at, got);
    r->at += got;
    return (int)got;
}

/* Skips extensions up to the first picture; *clear: the transparent colour, -1: none. 0: no
 * picture. */
static int find_picture(GifFileType *gif, int *clear) {
    GifRecordType type;
    *clear = -1;
    while (DGifGetRecordType(gif, &type) == GIF_OK) {
        GifByteType *block;
        int code;
        if (type == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(gif) == GIF_OK;
        if (type != EXTENSION_RECORD_TYPE || DGifGetExtension(gif, &code, &block) != GIF_OK) break;
        if (code == GRAPHICS_EXT_FUNC_CODE && block && block[0] >= 4 && block[1] & 1)
            *clear = block[4];
        while (block && DGifGetExtensionNext(gif, &block) == GIF_OK) {}
        if (block) break;
    }
    return 0;
}

/* Writes the colour `index` of the map as red, green, blue; black where it has none. */
static void paint(const ColorMapObject *map, int index, uint8_t *to) {
    const int known = map && index < map->ColorCount;
    to[0] = known ? map->Colors[index].Red : (uint8_t)(map ? 0 : index);
    to[1] = known ? map->Colors[index].Green : to[0];
    to[2] = known ? map->Colors[index].Blue : to[0];
}

/* Row of the picture that is i-th in the file, of h rows; woven: the file is interlaced. */
static int64_t row_of(int64_t i, int64_t h, int woven) {
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    for (int pass = 0; woven && pass < 4; pass++) {
        const int64_t n = (h - first[pass] + step[pass] - 1) / step[pass];
        if (h > first[pass]) {
            if (i < n) return first[pass] + i * step[pass];
            i -= n;
        }
    }
    return i;
}

/* Decodes the first picture into *out; clear: the transparent colour, -1 for none. */
static cnr_status decode(GifFileType *gif, const img_bytes *file, img_picture *out, uint8_t *line,
                         int clear, cnr_error *err) {
    const GifImageDesc *at = &gif->Image;
    const ColorMapObject *map = at->ColorMap ? at->ColorMap : gif->SColorMap;
    for (int64_t i = 0; i < out->h * out->w; i++)
        paint(map, clear < 0 ? 0 : clear, out->data + 3 * i);
    for (int64_t i = 0; i < at->Height; i++) {
        const int64_t y = at->Top + row_of(i, at->Height, at->Interlace);
        if (DGifGetLine(gif, line, at->Width) != GIF_OK)
            return img_host->fail(err, CNR_E_FORMAT, file->path, "damaged GIF: %s",
                                  GifErrorString(gif->Error) ? GifErrorString(gif->Error)
                                                             : "its end is missing");
        for (int64_t x = 0; x < at->Width && y < out->h && at->Left + x < out->w; x++)
            paint(map, line[x], out->data + 3 * (y * out->w + at->Left + x));
    }
    return CNR_OK;
}

/* Reads the first picture of a GIF into *out. */
cnr_status img_read_gif(const img_bytes *file, img_picture *out, cnr_error *err) {
    reader r = {file, 0};
    int code = 0, clear = -1;
    GifFileType *gif = DGifOpen(&r, take, &code);
    if (!gif)
        return img_host->fail(err, CNR_E_FORMAT, file->path, "damaged GIF: %s",
                              GifErrorString(code) ? GifErrorString(code) : "its header");
    cnr_status status = CNR_OK;
    if (!find_picture(gif, &clear) || gif->Image.Width < 1 || gif->Image.Height < 1)
        status = img_host->fail(err, CNR_E_FORMAT, file->path, "damaged GIF: no picture is in it");
    /* a picture beyond the screen enlarges it */
    const int64_t right = gif->Image.Left + (int64_t)gif->Image.Width;
    const int64_t low = gif->Image.Top + (int64_t)gif->Image.Height;
    if (!status)
        status = img_make(out, low > gif->SHeight ? low : gif->SHeight,
                          right > gif->SWidth ? right : gif->SWidth, 3, file, PIXELS_A_BYTE, err);
    if (!status) {
        uint8_t *line = img_host->alloc((size_t)gif->Image.Width);
        status = line ? decode(gif, file, out, line, clear, err)
                      : img_host->fail(err, CNR_E_MEMORY, file->path, "out of memory");
        img_host->free(line);
        if (status) img_drop(out);
    }
    DGifCloseFile(gif, &code);
    return status;
}
