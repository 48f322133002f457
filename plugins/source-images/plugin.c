/* The plugin: pictures, directories of them and label lists as a source. */
#include "images.h"
#include <sys/stat.h>

const cnr_host *img_host;

/* head NULL: `spec` is not a file (a picture to write, or a directory). */
static int32_t img_accepts(const char *spec, const uint8_t *head, size_t n) {
    struct stat about;
    if (head) return img_knows(head, n); /* an existing file, whatever its name */
    if (strncmp(spec, "images:", 7) == 0) return 100;
    if (stat(spec, &about) == 0 && S_ISDIR(about.st_mode)) return 10;
    if (img_is_pattern(spec)) return 10;
    return img_is_written(spec) ? 100 : 0;
}

/* Method open: *state receives the list of files, *info their number and classes. */
static cnr_status img_open(const char *spec, const char *split, void **state, cnr_source_info *info,
                           cnr_error *err) {
    (void)split;
    img_list *list = img_host->alloc(sizeof *list);
    if (!list) return img_host->fail(err, CNR_E_MEMORY, spec, "out of memory");
    const cnr_status status = img_list_open(spec, list, err);
    if (status) {
        img_host->free(list);
        return status;
    }
    info->count = list->n;
    info->classes = list->classes;
    *state = list;
    return CNR_OK;
}

/* Method read: *out receives picture `index` and its label. */
static cnr_status img_read(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    const img_list *list = state;
    if (index < 0 || index >= list->n)
        return img_host->fail(err, CNR_E_ARG, "source-images", "no such sample");
    const img_entry *entry = &list->at[index];
    uint8_t *data;
    img_picture picture = {0};
    img_bytes file = {NULL, 0, entry->path};
    cnr_status status = img_read_file(entry->path, &data, &file.n, err);
    if (status) return status;
    file.at = data;
    status = img_decode(&file, &picture, err);
    img_host->free(data);
    if (status) return status;
    snprintf(out->name, sizeof out->name, "%s", entry->path);
    out->label = entry->label;
    out->picture.dtype = CNR_u8;
    out->picture.rank = 3;
    out->picture.dim[0] = picture.h;
    out->picture.dim[1] = picture.w;
    out->picture.dim[2] = picture.c;
    out->picture.data = picture.data;
    out->picture.bytes = (uint64_t)(picture.h * picture.w * picture.c);
    return CNR_OK;
}

/* Frees the list of pictures and the source's state. */
static void img_close(void *state) {
    img_list_free(state);
    img_host->free(state);
}

static const cnr_source source = {
    .size = sizeof source,
    .name = "images",
    .syntax = "a picture, a directory, '*.jpg', images:LIST.txt",
    .summary =
        "JPEG, PNG, BMP, PNM, and where their libraries are GIF, TIFF, WebP, HEIC, AVIF;\n"
        "sub-folders are classes; a list has lines \"path index\"; writes .png, .jpg, .bmp,\n"
        ".ppm, .tif, and .webp where its library is",
    .accepts = img_accepts,
    .open = img_open,
    .read = img_read,
    .close = img_close,
    .write = img_write,
    .write_open = img_sequence_open,
    .write_next = img_sequence_next,
    .write_close = img_sequence_close,
};

/* Registers the source. */
static cnr_status img_init(const cnr_host *given, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    img_host = given;
    return img_host->add(registrar, CNR_KIND_SOURCE, &source);
}

#ifdef IMG_HAS_GIF
#define GIF ", GIF"
#else
#define GIF ""
#endif
#ifdef IMG_HAS_TIFF
#define TIFF ", TIFF"
#else
#define TIFF ""
#endif
#ifdef IMG_HAS_WEBP
#define WEBP ", WebP"
#else
#define WEBP ""
#endif
#ifdef IMG_HAS_HEIF
#define HEIF ", HEIC, AVIF"
#else
#define HEIF ""
#endif
CNR_PLUGIN("source-images", CNNRUN_VERSION,
           "pictures (JPEG, PNG, BMP, PNM" GIF TIFF WEBP HEIF
           "), directories of pictures and label lists",
           "MIT", img_init, CNR_TOUCHES_FILES)
