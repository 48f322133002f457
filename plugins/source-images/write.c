/* Writes pictures; the name's ending selects the format. */
#include "images.h"
#include "late.h"
#include <stdatomic.h>
#include <setjmp.h>
#include <strings.h>

#include <jpeglib.h>

enum { JPEG_QUALITY = 92, MAX_WRITTEN_SIDE = 65500 };

/* A picture that is written, and where to. */
typedef struct output {
    struct cnr_output *to;
    const cnr_tensor *picture;
    const char *path;
    cnr_error *err;
    int64_t h, w, c;
} output;

/* Row y of the picture. */
static const uint8_t *row_of(const output *o, int64_t y) {
    return (const uint8_t *)o->picture->data + y * o->w * o->c;
}

/* Writes n bytes to the output; fails where that does. */
static cnr_status put(const output *o, const void *data, size_t n) {
    return img_host->output_write(o->to, data, n, o->err);
}

/* ---- JPEG ---- */

/* State of libjpeg's encoder, with its last error's text and the encoded bytes. */
typedef struct jpeg_writer {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr manager;
    jmp_buf out;
    char text[JMSG_LENGTH_MAX];
    unsigned char *data; /* the bytes, which libjpeg allocates */
    unsigned long n;
} jpeg_writer;

/* libjpeg's error: keeps its text and leaves the encoder. */
static void fail(j_common_ptr jpeg) {
    jpeg_writer *w = jpeg->client_data;
    jpeg->err->format_message(jpeg, w->text);
    longjmp(w->out, 1);
}

static void say_nothing(j_common_ptr jpeg) { (void)jpeg; }

/* Encodes the picture; 0: w->text tells what failed. */
static int encode(jpeg_writer *w, const output *o) {
    if (setjmp(w->out)) return 0;
    jpeg_create_compress(&w->jpeg);
    w->jpeg.client_data = w;
    jpeg_mem_dest(&w->jpeg, &w->data, &w->n);
    w->jpeg.image_width = (JDIMENSION)o->w;
    w->jpeg.image_height = (JDIMENSION)o->h;
    w->jpeg.input_components = (int)o->c;
    w->jpeg.in_color_space = o->c == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&w->jpeg);
    jpeg_set_quality(&w->jpeg, JPEG_QUALITY, TRUE);
    jpeg_start_compress(&w->jpeg, TRUE);
    while (w->jpeg.next_scanline < w->jpeg.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)row_of(o, w->jpeg.next_scanline);
        jpeg_write_scanlines(&w->jpeg, &row, 1);
    }
    jpeg_finish_compress(&w->jpeg);
    return 1;
}

/* Encodes the picture as JPEG and writes it; fails with the encoder's reason or the output's. */
static cnr_status write_jpeg(const output *o) {
    jpeg_writer *w = img_host->alloc(sizeof *w);
    if (!w) return img_host->fail(o->err, CNR_E_MEMORY, o->path, "out of memory");
    memset(w, 0, sizeof *w);
    w->jpeg.err = jpeg_std_error(&w->manager);
    w->jpeg.client_data = w;
    w->manager.error_exit = fail;
    w->manager.output_message = say_nothing;
    const cnr_status status =
        encode(w, o) ? put(o, w->data, w->n)
                     : img_host->fail(o->err, CNR_E_IO, o->path, "can't write JPEG: %s", w->text);
    jpeg_destroy_compress(&w->jpeg);
    free(w->data);
    img_host->free(w);
    return status;
}

/* ---- formats whose files are a header and the pixels ---- */

/* Writes v in `bytes` bytes, the lowest first. */
static void number(uint8_t *at, uint32_t v, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(v >> 8 * i);
}

/* 24 bits, bottom row first, rows padded to four bytes. */
static cnr_status write_bmp(const output *o) {
    const size_t width = ((size_t)o->w * 3 + 3) / 4 * 4;
    uint8_t head[54] = {'B', 'M'}, *row = img_host->alloc(width);
    if (!row) return img_host->fail(o->err, CNR_E_MEMORY, o->path, "out of memory");
    memset(row, 0, width);
    number(head + 2, (uint32_t)(sizeof head + width * (size_t)o->h), 4);
    number(head + 10, sizeof head, 4);
    number(head + 14, 40, 4);
    number(head + 18, (uint32_t)o->w, 4);
    number(head + 22, (uint32_t)o->h, 4);
    number(head + 26, 1, 2);
    number(head + 28, 24, 2);
    cnr_status status = put(o, head, sizeof head);
    for (int64_t y = o->h - 1; y >= 0 && !status; y--) {
        const uint8_t *from = row_of(o, y);
        for (int64_t x = 0; x < o->w; x++)
            for (int64_t k = 0; k < 3; k++)
                row[3 * x + k] = from[x * o->c + (o->c == 3 ? 2 - k : 0)];
        status = put(o, row, width);
    }
    img_host->free(row);
    return status;
}

/* Writes the pixels as they are, row by row; fails where the output does. */
static cnr_status put_pixels(const output *o) {
    return put(o, o->picture->data, (size_t)(o->h * o->w * o->c));
}

/* Writes a binary PNM, grey or colour by o->c, whatever the ending says: readers check the magic
 * number. */
static cnr_status write_pnm(const output *o) {
    char head[64];
    const int n = snprintf(head, sizeof head, "P%c\n%lld %lld\n255\n", o->c == 1 ? '5' : '6',
                           (long long)o->w, (long long)o->h);
    const cnr_status status = put(o, head, (size_t)n);
    return status ? status : put_pixels(o);
}

/* Uncompressed, in one strip; the directory precedes the pixels. */
static cnr_status write_tiff(const output *o) {
    enum { ENTRIES = 10, BITS = 8 + 2 + 12 * ENTRIES + 4, PIXELS = BITS + 6 };
    const uint32_t c = (uint32_t)o->c, rows = (uint32_t)o->h, all = rows * (uint32_t)o->w * c;
    const uint32_t entries[ENTRIES][4] = {{256, 4, 1, (uint32_t)o->w},
                                          {257, 4, 1, rows},
                                          {258, 3, c, c == 1 ? 8 : BITS},
                                          {259, 3, 1, 1},
                                          {262, 3, 1, c == 1 ? 1 : 2},
                                          {273, 4, 1, PIXELS},
                                          {277, 3, 1, c},
                                          {278, 4, 1, rows},
                                          {279, 4, 1, all},
                                          {284, 3, 1, 1}};
    uint8_t head[PIXELS] = {'I', 'I', 42, 0, 8};
    number(head + 8, ENTRIES, 2);
    for (int i = 0; i < ENTRIES; i++) {
        uint8_t *at = head + 10 + 12 * i;
        number(at, entries[i][0], 2);
        number(at + 2, entries[i][1], 2);
        number(at + 4, entries[i][2], 4);
        number(at + 8, entries[i][3], 4);
    }
    for (int i = 0; i < 3; i++) number(head + BITS + 2 * i, 8, 2);
    const cnr_status status = put(o, head, sizeof head);
    return status ? status : put_pixels(o);
}

/* ---- by codecs.so ---- */

#ifdef IMG_HAS_WEBP
/* Writes a WebP, by the part that is loaded on first use. */
static cnr_status write_webp(const output *o) {
    static _Atomic(img_webp_fn) encode_webp;
    uint8_t *data = NULL;
    size_t n = 0;
    if (!encode_webp)
        encode_webp = (img_webp_fn)late_function(img_host, &encode_webp, "source-images/codecs",
                                                 "img_encode_webp", o->err);
    if (!encode_webp) return CNR_E_IO;
    cnr_status status = encode_webp(img_host, o->picture, o->path, &data, &n, o->err);
    if (!status) status = put(o, data, n);
    img_host->free(data);
    return status;
}
#endif

/* ---- all ---- */

static const struct {
    const char *endings;
    cnr_status (*write)(const output *o); /* NULL: img_write_png */
} formats[] = {{".png ", NULL},
               {".jpg .jpeg .jpe .jfif ", write_jpeg},
               {".bmp .dib ", write_bmp},
               {".ppm .pgm .pnm ", write_pnm},
#ifdef IMG_HAS_WEBP
               {".webp ", write_webp},
#endif
               {".tif .tiff ", write_tiff}};

/* Number of the format by the path's ending; -1: none that is written. */
static int format_of(const char *path) {
    const char *dot = strrchr(path, '.');
    const size_t n = dot ? strlen(dot) : 0;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0] && n > 1; i++)
        for (const char *at = formats[i].endings; *at; at += strcspn(at, " ") + 1)
            if (strcspn(at, " ") == n && strncasecmp(at, dot, n) == 0) return (int)i;
    return -1;
}

int img_is_written(const char *path) { return format_of(path) >= 0; }

cnr_status img_write(const char *path, const cnr_tensor *t, cnr_error *err) {
    const int format = format_of(path);
    if (format < 0 || !formats[format].write) return img_write_png(path, t, err);
    if (t->dtype != CNR_u8 || t->rank != 3 || !t->data || t->dim[0] < 1 || t->dim[1] < 1 ||
        t->dim[0] > MAX_WRITTEN_SIDE || t->dim[1] > MAX_WRITTEN_SIDE ||
        (t->dim[2] != 1 && t->dim[2] != 3))
        return img_host->fail(err, CNR_E_ARG, path, "a picture is u8, H W C with C 1 or 3");
    if (t->dim[0] * t->dim[1] > IMG_MAX_PIXELS)
        return img_host->fail(err, CNR_E_LIMIT, path, "the picture has too many pixels");
    output o = {NULL, t, path, err, t->dim[0], t->dim[1], t->dim[2]};
    const cnr_status status = img_host->output_begin(path, 0, &o.to, err);
    return status ? status : img_host->output_end(o.to, formats[format].write(&o), err);
}
