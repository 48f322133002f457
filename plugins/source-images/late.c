/* Formats whose libraries are large: recognises their files; codecs.so, which reads them, is loaded
 * with the first. */
#include "images.h"
#include "late.h"
#include <stdatomic.h>

/* Reads by a decoder of the part that is loaded on first use; fails where that part was not
 * built or installed. */
static cnr_status read_by(int codec, const img_bytes *file, img_picture *out, cnr_error *err) {
    static _Atomic(const img_codec *) codecs;
    if (!codecs) {
        const img_codecs_fn get =
            (img_codecs_fn)late_function(img_host, &codecs, "source-images/codecs", "img_codecs",
                                         err);
        if (!get) return CNR_E_IO;
        codecs = get(img_host);
    }
    return codecs[codec](file, out, err);
}

#ifdef IMG_HAS_TIFF
/* 1: the head of a file is a TIFF's. */
int img_is_tiff(const uint8_t *head, size_t n) {
    return n >= 8 && (memcmp(head, "II*\0", 4) == 0 || memcmp(head, "MM\0*", 4) == 0 ||
                      memcmp(head, "II+\0", 4) == 0 || memcmp(head, "MM\0+", 4) == 0);
}

/* Reads a TIFF's first page into *out, by a module that is loaded first; fails where that can't be,
 * or the file is damaged. */
cnr_status img_read_tiff(const img_bytes *file, img_picture *out, cnr_error *err) {
    return read_by(IMG_TIFF, file, out, err);
}
#endif

#ifdef IMG_HAS_WEBP
/* 1: the head of a file is a WebP's. */
int img_is_webp(const uint8_t *head, size_t n) {
    return n >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0;
}

/* Reads a WebP into *out, by a module that is loaded first; fails where that can't be, or the file
 * is damaged. */
cnr_status img_read_webp(const img_bytes *file, img_picture *out, cnr_error *err) {
    return read_by(IMG_WEBP, file, out, err);
}
#endif

#ifdef IMG_HAS_HEIF
/* 1: the head of a file is a HEIF's or AVIF's. */
int img_is_heif(const uint8_t *head, size_t n) {
    static const char *const brands[] = {"heic", "heix", "hevc", "hevx", "heim", "heis", "mif1",
                                         "msf1", "avif", "avis", "miaf", "mif2", "jpeg"};
    if (n < 12 || memcmp(head + 4, "ftyp", 4) != 0) return 0;
    for (size_t i = 0; i < sizeof brands / sizeof brands[0]; i++)
        if (memcmp(head + 8, brands[i], 4) == 0) return 1;
    return 0;
}

/* Reads a HEIF or AVIF into *out, by a module that is loaded first; fails where that can't be, or
 * the file is damaged. */
cnr_status img_read_heif(const img_bytes *file, img_picture *out, cnr_error *err) {
    return read_by(IMG_HEIF, file, out, err);
}
#endif
