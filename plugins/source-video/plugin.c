/* The plugin: recognises videos; ffmpeg.so, with FFmpeg's libraries, is loaded when one is
 * opened. */
#include "late.h"
#include "place.h"
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

static const cnr_host *host;

static _Atomic(const cnr_source *) loaded; /* from ffmpeg.so; NULL: not loaded yet */

typedef const cnr_source *(*source_fn)(const cnr_host *host);

/* The source with FFmpeg, which is loaded on first use; NULL: it cannot be. */
static const cnr_source *load(cnr_error *err) {
    if (loaded) return loaded;
    const source_fn get =
        (source_fn)late_function(host, &loaded, "source-video/ffmpeg", "video_source", err);
    if (get) loaded = get(host);
    return loaded;
}

/* ---- recognition ---- */

static const struct {
    size_t at, n;
    const char *bytes;
} heads[] = {{4, 4, "ftyp"},
             {4, 4, "moov"},
             {4, 4, "mdat"},
             {4, 4, "wide"},
             {0, 4, "\x1a\x45\xdf\xa3"},
             {8, 4, "AVI "},
             {0, 3, "FLV"},
             {0, 4, "\0\0\1\xba"},
             {0, 4, "\0\0\1\xb3"},
             {0, 4, "OggS"},
             {0, 4, "\x30\x26\xb2\x75"},
             {0, 4, "GIF8"},
             {0, 4, "DKIF"},
             {0, 9, "YUV4MPEG2"},
             {0, 4, "nut/"},
             {0, 4, ".RMF"},
             {0, 4, "\0\0\0\1"},
             {4, 8, "ftypqt  "}};

/* 1: a file begins as a known container does. */
static int has_head(const uint8_t *head, size_t n) {
    if (n >= 189 && head[0] == 0x47 && head[188] == 0x47) return 1; /* MPEG-TS */
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (n >= heads[i].at + heads[i].n &&
            memcmp(head + heads[i].at, heads[i].bytes, heads[i].n) == 0)
            return 1;
    return 0;
}

/* 1: the spec has the ending of a known container. */
static int has_ending(const char *spec) {
    static const char *const endings[] = {".mp4", ".m4v",  ".mov",  ".mkv",   ".webm",
                                          ".avi", ".mpg",  ".mpeg", ".ts",    ".m2ts",
                                          ".flv", ".ogv",  ".wmv",  ".3gp",   ".gif",
                                          ".y4m", ".h264", ".h265", ".mjpeg", ".mjpg"};
    const char *dot = strrchr(spec, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(dot, endings[i]) == 0) return 1;
    return 0;
}

/* How well the source fits, 0: not at all. Leaves pictures to their own source: a GIF is a picture
 * unless "video:" says otherwise. */
static int32_t accepts(const char *spec, const uint8_t *head, size_t n) {
    if (strncmp(spec, "/dev/video", 10) == 0) return 200;
    if (head)
        return has_head(head, n) || has_ending(spec) ? 50
                                                     : 0; /* an existing file, whatever its name */
    if (vid_has_prefix(spec)) return 200;
    return has_ending(spec) ? 50 : strchr(spec, '%') ? 5 : 0;
}

/* ---- forwarded to ffmpeg.so ---- */

/* Method open, of the loaded source. */
static cnr_status video_open(const char *spec, const char *split, void **state,
                             cnr_source_info *info, cnr_error *err) {
    const cnr_source *s = load(err);
    return s ? s->open(spec, split, state, info, err) : CNR_E_IO;
}

/* Method read, of the loaded source. */
static cnr_status video_read(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    return loaded->read(state, index, out, err);
}

static void video_close(void *state) { loaded->close(state); }
static void video_stop(void *state) { loaded->stop(state); }

/* Method select, of the loaded source. */
static cnr_status video_choose(void *state, const cnr_selection *span, cnr_source_info *info,
                               cnr_error *err) {
    return loaded->select(state, span, info, err);
}

/* Method write_open, of the loaded source. */
static cnr_status video_write_open(const char *spec, void **state, cnr_error *err) {
    const cnr_source *s = load(err);
    return s ? s->write_open(spec, state, err) : CNR_E_IO;
}

/* Method write_from, of the loaded source. */
static cnr_status video_write_from(void *state, const char *spec, const cnr_selection *span,
                                   cnr_error *err) {
    return loaded->write_from(state, spec, span, err);
}

/* Method write_next, of the loaded source. */
static cnr_status video_write_next(void *state, const cnr_sample *sample, cnr_error *err) {
    return loaded->write_next(state, sample, err);
}

/* Method write_close, of the loaded source. */
static cnr_status video_write_close(void *state, int32_t status, cnr_error *err) {
    return loaded->write_close(state, status, err);
}

/* What the spec touches, as a CNR_TOUCHES_ value: files, a device or the network. */
static int32_t reach(const char *spec, int32_t writes) {
    const vid_kind kind = vid_place_of(spec).kind;
    if (writes || kind == VID_FILE || kind == VID_PATTERN) return CNR_TOUCHES_FILES;
    return kind == VID_URL ? CNR_TOUCHES_NETWORK : CNR_TOUCHES_DEVICES;
}

static const cnr_source source = {
    .size = sizeof source,
    .name = "video",
    .syntax = "a video, /dev/video0 (or 0), a URL (http, rtsp ...), - for one on standard input",
    .summary =
        "Videos, cameras and streams by FFmpeg's libraries, frame by frame, with times;\n"
        "video:FILE for all pictures of an animation or of frames-%04d.png, device:FORMAT:NAME\n"
        "for other cameras and screens; writes .mp4, .mkv, .webm, .mov, .avi, .gif",
    .accepts = accepts,
    .open = video_open,
    .read = video_read,
    .close = video_close,
    .write_open = video_write_open,
    .write_next = video_write_next,
    .write_close = video_write_close,
    .write_from = video_write_from,
    .select = video_choose,
    .stop = video_stop,
    .touches = reach,
};

/* Registers the source. */
static cnr_status init(const cnr_host *given, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = given;
    return host->add(registrar, CNR_KIND_SOURCE, &source);
}

CNR_PLUGIN("source-video", CNNRUN_VERSION, "videos, cameras and streams, in and out", "MIT", init,
           CNR_TOUCHES_FILES | CNR_TOUCHES_NETWORK | CNR_TOUCHES_DEVICES)
