/* Internals of source-images: decoders, orientation, and limits against hostile files. */
#ifndef IMG_IMAGES_H
#define IMG_IMAGES_H

#include <cnnrun/kit.h>
#include <stdio.h>
#include <stdlib.h>

extern const cnr_host *img_host;

/* No picture file is larger than this, and no picture has more pixels. */
#define IMG_MAX_FILE (UINT64_C(512) << 20)
#define IMG_MAX_PIXELS (INT64_C(200) << 20)

/* A decoded picture: u8, H W C, C 1 or 3; data by host->alloc. */
typedef struct img_picture {
    int64_t h, w, c;
    uint8_t *data;
} img_picture;

/* A file in memory, with its path for messages. */
typedef struct img_bytes {
    const uint8_t *at;
    size_t n;
    const char *path; /* the file's, for messages */
} img_bytes;

/* Allocates h x w x c; refuses a size that a file of `bytes` can't hold at `per_byte` pixels a
 * byte. */
cnr_status img_make(img_picture *p, int64_t h, int64_t w, int64_t c, const img_bytes *file,
                    int64_t per_byte, cnr_error *err);
/* Frees the picture's pixels; p->data becomes NULL. */
void img_drop(img_picture *p);

/* For each format: whether a file begins like it, and its decoder; *out is empty after an error. */
#define IMG_READER(format) \
    int img_is_##format(const uint8_t *head, size_t n); \
    cnr_status img_read_##format(const img_bytes *file, img_picture *out, cnr_error *err);
IMG_READER(jpeg)
IMG_READER(png)
IMG_READER(bmp)
IMG_READER(pnm)
IMG_READER(gif)
IMG_READER(tiff)
IMG_READER(webp)
IMG_READER(heif)

/* codecs.so's readers, loaded by late.c */
enum { IMG_TIFF, IMG_WEBP, IMG_HEIF, IMG_CODECS };
typedef cnr_status (*img_codec)(const img_bytes *file, img_picture *out, cnr_error *err);
typedef const img_codec *(*img_codecs_fn)(const cnr_host *host);

/* ---- formats.c ---- */
enum { IMG_FORMATS_ROOM = 128 };
/* 100: can be read; 1: can only be named; 0: not a picture. */
int32_t img_knows(const uint8_t *head, size_t n);
/* Decodes a file's bytes into *out; fails with the formats that are read where it is none of
 * them. */
cnr_status img_decode(const img_bytes *file, img_picture *out, cnr_error *err);
/* writes the names of all formats into text, such as "JPEG, PNG", and returns it */
const char *img_formats(char text[IMG_FORMATS_ROOM]);

/* ---- write.c ---- */
/* 1 if the path's ending names a format that can be written */
int img_is_written(const char *path);
/* Writes to a temporary file beside `path` and renames it. */
cnr_status img_write(const char *path, const cnr_tensor *picture, cnr_error *err);
/* from codecs.so; *data by host->alloc */
typedef cnr_status (*img_webp_fn)(const cnr_host *host, const cnr_tensor *picture, const char *path,
                                  uint8_t **data, size_t *n, cnr_error *err);
/* Writes a u8 tensor [height, width, colours] as a PNG. */
cnr_status img_write_png(const char *path, const cnr_tensor *picture, cnr_error *err);

/* Begins a sequence of files named by the pattern spec. */
cnr_status img_sequence_open(const char *spec, void **state, cnr_error *err);
/* Writes the sample as the next file of the sequence. */
cnr_status img_sequence_next(void *state, const cnr_sample *sample, cnr_error *err);
/* Ends the sequence; status: how the writing ended. */
cnr_status img_sequence_close(void *state, int32_t status, cnr_error *err);

/* ---- orient.c ---- */
/* The orientation (1 to 8) in an EXIF block in TIFF form; 1: none. */
int img_exif_orientation(const uint8_t *tiff, size_t n);
/* Rotates and mirrors the picture upright by EXIF's orientation (2 to 8; others: nothing),
 * replacing its pixels; fails with CNR_E_MEMORY. */
cnr_status img_orient(img_picture *p, int orientation, const char *path, cnr_error *err);

/* ---- files.c: expansion of a spec ---- */
/* A picture's file and its label. */
typedef struct img_entry {
    char *path;
    int32_t label;
} img_entry;

/* The files of a source with their labels. */
typedef struct img_list {
    img_entry *at;
    int64_t n, room;
    int64_t classes;
} img_list;

/* Lists what spec names: a picture, a directory of them, a pattern, or the directory or list file
 * behind "images:". *out is for img_list_free; fails with a reason. */
cnr_status img_list_open(const char *spec, img_list *out, cnr_error *err);
void img_list_free(img_list *list); /* Frees the paths and clears the list. */
/* 1: the path has the ending of a format that is read. */
int img_has_picture_name(const char *path);
/* Whether it is a pattern of picture names, and not an existing file. */
int img_is_pattern(const char *spec);
/* *data receives the whole file, which the caller frees; *n its bytes. */
cnr_status img_read_file(const char *path, uint8_t **data, size_t *n, cnr_error *err);

#endif
