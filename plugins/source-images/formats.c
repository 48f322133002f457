/* Picture formats: those with a reader here, and those that are only recognised. */
#include "images.h"
#include <strings.h>

/* An image format: its name, endings, how it is known and read. */
typedef struct format {
    const char *name, *endings; /* endings: each followed by a blank */
    int (*is)(const uint8_t *head, size_t n);
    cnr_status (*read)(const img_bytes *file, img_picture *out, cnr_error *err);
} format;

static const format formats[] = {
    {"JPEG", ".jpg .jpeg .jpe .jfif ", img_is_jpeg, img_read_jpeg},
    {"PNG", ".png ", img_is_png, img_read_png},
    {"BMP", ".bmp .dib ", img_is_bmp, img_read_bmp},
    {"PNM", ".pbm .pgm .ppm .pnm .pam .pfm ", img_is_pnm, img_read_pnm},
#ifdef IMG_HAS_GIF
    {"GIF", ".gif ", img_is_gif, img_read_gif},
#endif
#ifdef IMG_HAS_TIFF
    {"TIFF", ".tif .tiff ", img_is_tiff, img_read_tiff},
#endif
#ifdef IMG_HAS_WEBP
    {"WebP", ".webp ", img_is_webp, img_read_webp},
#endif
#ifdef IMG_HAS_HEIF
    {"HEIC or AVIF", ".heic .heif .avif .hif ", img_is_heif, img_read_heif},
#endif
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* The first bytes of other formats, at an offset. */
static const struct {
    const char *name;
    size_t at, n;
    const char *bytes;
} others[] = {
    {"GIF", 0, 4, "GIF8"},
    {"TIFF", 0, 4, "II*\0"},
    {"TIFF", 0, 4, "MM\0*"},
    {"WebP", 8, 4, "WEBP"},
    {"AVIF", 4, 8, "ftypavif"},
    {"HEIC", 4, 8, "ftyphei"},
    {"HEIC", 4, 8, "ftypmif1"},
    {"JPEG 2000", 4, 4, "jP  "},
    {"JPEG 2000", 0, 4, "\xff\x4f\xff\x51"},
    {"JPEG XL", 4, 4, "JXL "},
    {"JPEG XL", 0, 2, "\xff\x0a"},
    {"Photoshop's PSD", 0, 4, "8BPS"},
    {"ICO", 0, 4, "\0\0\1\0"},
    {"CUR", 0, 4, "\0\0\2\0"},
    {"ICNS", 0, 4, "icns"},
    {"DDS", 0, 4, "DDS "},
    {"QOI", 0, 4, "qoif"},
    {"OpenEXR", 0, 4, "\x76\x2f\x31\x01"},
    {"Radiance HDR", 0, 2, "#?"},
    {"SGI", 0, 2, "\x01\xda"},
    {"PCX", 0, 2, "\x0a\x05"},
    {"Sun raster", 0, 4, "\x59\xa6\x6a\x95"},
    {"FITS", 0, 8, "SIMPLE  "},
    {"DICOM", 128, 4, "DICM"},
    {"GIMP's XCF", 0, 8, "gimp xcf"},
    {"XPM", 0, 9, "/* XPM */"},
    {"FLI", 4, 2, "\x11\xaf"},
    {"FLC", 4, 2, "\x12\xaf"},
    {"MNG", 1, 3, "MNG"},
    {"DPX", 0, 4, "SDPX"},
    {"BLP", 0, 3, "BLP"},
    {"WMF", 0, 4, "\xd7\xcd\xc6\x9a"},
    {"PDF", 0, 5, "%PDF-"},
    {"PostScript", 0, 4, "%!PS"},
    {"SVG", 0, 4, "<svg"},
};

/* The format whose head this is; NULL: none that is read. */
static const format *format_of(const uint8_t *head, size_t n) {
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].is(head, n)) return &formats[i];
    return NULL;
}

/* Name of a format that is known but not read; NULL: unknown. */
static const char *other_of(const uint8_t *head, size_t n) {
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (n >= others[i].at + others[i].n &&
            memcmp(head + others[i].at, others[i].bytes, others[i].n) == 0)
            return others[i].name;
    return NULL;
}

int32_t img_knows(const uint8_t *head, size_t n) {
    return format_of(head, n) ? 100 : other_of(head, n) ? 1 : 0;
}

/* 1: the path has the ending of a format that is read. */
int img_has_picture_name(const char *path) {
    const char *dot = strrchr(path, '.');
    const size_t n = dot ? strlen(dot) : 0;
    for (int i = 0; i < FORMATS && n > 1; i++)
        for (const char *at = formats[i].endings; *at; at += strcspn(at, " ") + 1)
            if (strcspn(at, " ") == n && strncasecmp(at, dot, n) == 0) return 1;
    return 0;
}

const char *img_formats(char text[IMG_FORMATS_ROOM]) {
    size_t n = 0;
    for (int i = 0; i < FORMATS && n < IMG_FORMATS_ROOM; i++)
        n += (size_t)snprintf(text + n, IMG_FORMATS_ROOM - n, "%s%s", i ? ", " : "",
                              formats[i].name);
    return text;
}

/* Decodes a file's bytes into *out; fails with the formats that are read where it is none of
 * them. */
cnr_status img_decode(const img_bytes *file, img_picture *out, cnr_error *err) {
    char known[IMG_FORMATS_ROOM];
    const format *f = format_of(file->at, file->n);
    const char *other = other_of(file->at, file->n);
    if (f) return f->read(file, out, err);
    if (!file->n) return img_host->fail(err, CNR_E_FORMAT, file->path, "the file is empty");
    if (!other)
        return img_host->fail(err, CNR_E_FORMAT, file->path,
                              "no picture that is known: %s are read", img_formats(known));
    return img_host->fail(err, CNR_E_UNSUPPORTED, file->path, "%s, which is not read here: %s are",
                          other, img_formats(known));
}
