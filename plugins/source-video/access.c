/* Controls what FFmpeg opens: files of a pattern through the host, URLs on the spec's server. Other
 * targets of playlists and redirects are refused. Protocols, formats and devices are allow
 * lists. */
#include "video.h"
#include <errno.h>
#include <libavutil/avstring.h>
#include <libavutil/opt.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16, MOST_HOPS = 5, MOST_URL = 4096 };

/* None of these opens other files. */
#define CONTAINERS \
    "mov,matroska,webm,avi,flv,live_flv,mpeg,mpegts,mpegvideo,ogg,asf,gif,apng,ivf,yuv4mpegpipe," \
    "nut,rm,h264,hevc,m4v,h263,mjpeg,mpjpeg,mxf,wtv,dv,vc1,av1,obu,jpeg_pipe,png_pipe,bmp_pipe," \
    "webp_pipe,tiff_pipe,ppm_pipe,pgm_pipe,image2pipe"

const char *vid_formats(const vid_place *p) {
    if (p->kind == VID_PATTERN) return "image2";
    if (p->is_http)
        return CONTAINERS ",hls,aac,mp3,ac3,eac3,webvtt"; /* and the formats of a stream's parts */
    return p->kind == VID_URL ? CONTAINERS ",rtsp,rtp" : CONTAINERS;
}

/* 1 if the device (a format of FFmpeg) captures pictures; not those that read files or run filters
 * (tty, lavfi ...). */
int vid_is_device(const char *name) {
    return av_match_list(name, "v4l2,video4linux2,libdc1394,iec61883,fbdev,x11grab,kmsgrab", ',');
}

/* ---- files, by descriptor ---- */

/* FFmpeg asks for n bytes of the file; returns how many it got, or an error. */
static int take(void *arg, uint8_t *to, int n) {
    const int *file = arg;
    ssize_t got;
    do got = read(*file, to, (size_t)n);
    while (got < 0 && errno == EINTR);
    return got > 0 ? (int)got : got ? AVERROR(errno) : AVERROR_EOF;
}

/* FFmpeg moves in the file or asks for its size; returns the new place or an error. */
static int64_t seek(void *arg, int64_t to, int whence) {
    const int *file = arg;
    struct stat about;
    if (whence & AVSEEK_SIZE) return fstat(*file, &about) ? AVERROR(errno) : about.st_size;
    const off_t at = lseek(*file, to, whence & ~AVSEEK_FORCE);
    return at < 0 ? AVERROR(errno) : at;
}

/* A context over a descriptor, for a file that can seek or not; the caller owns both. NULL: no
 * memory. */
AVIOContext *vid_reader_of(int *file, int can_seek) {
    uint8_t *piece = av_malloc(PIECE);
    AVIOContext *io =
        piece ? avio_alloc_context(piece, PIECE, 0, file, take, NULL, can_seek ? seek : NULL)
              : NULL;
    if (!io) av_free(piece);
    return io;
}

/* Frees the context and its buffer, not its descriptor; *io becomes NULL. */
void vid_reader_free(AVIOContext **io) {
    if (*io) av_freep(&(*io)->buffer);
    avio_context_free(io);
}

/* Opens one picture of a pattern; *io receives its context. 0, or an error of FFmpeg. */
static int open_piece(AVIOContext **io, const char *path) {
    int *file = av_malloc(sizeof *file);
    if (!file) return AVERROR(ENOMEM);
    *file = vid_host->file_open(path, NULL, NULL);
    *io = *file >= 0 ? vid_reader_of(file, 1) : NULL;
    if (*io) return 0;
    const int code = *file >= 0 ? AVERROR(ENOMEM) : AVERROR(ENOENT);
    if (*file >= 0) close(*file);
    av_free(file);
    return code;
}

/* ---- URLs ---- */

/* Origin of a URL: scheme, host and port, with the scheme's default port filled in; redirects must
 * stay within it. */
typedef struct origin {
    char scheme[16], host[256];
    int port;
} origin;

/* Scheme, host and port of an address. */
static origin origin_of(const char *url) {
    origin o;
    av_url_split(o.scheme, sizeof o.scheme, NULL, 0, o.host, sizeof o.host, &o.port, NULL, 0, url);
    if (o.port < 0)
        o.port = !av_strcasecmp(o.scheme, "http")    ? 80
                 : !av_strcasecmp(o.scheme, "https") ? 443
                                                     : 554;
    return o;
}

/* 1 if both URLs have the same scheme, host and port, and a host. */
static int same_origin(const char *a, const char *b) {
    const origin x = origin_of(a), y = origin_of(b);
    return *x.host && !av_strcasecmp(x.scheme, y.scheme) && !av_strcasecmp(x.host, y.host) &&
           x.port == y.port;
}

/* The Location header of the last answer on this thread. FFmpeg gives headers only to its log. */
static _Thread_local char location[MOST_URL];

/* Stops a redirect of an RTSP server: leaves no protocol to follow it. */
static void stop_redirect(AVFormatContext *f, const char *to) {
    vid_input *in = f->opaque;
    if (!in || f->interrupt_callback.opaque != in || same_origin(in->format_url, to)) return;
    av_freep(&in->leads);
    in->leads = av_strdup(to);
    av_opt_set(f, "protocol_whitelist", "none", 0);
}

void vid_hear(void *of, const char *format, va_list list) {
    if (strcmp(format, "header='%s'\n") == 0) {
        const char *line = va_arg(list, const char *);
        if (av_strncasecmp(line, "Location:", 9) == 0)
            av_strlcpy(location, line + 9 + strspn(line + 9, " \t"), sizeof location);
    } else if (of && strstr(format, "Redirecting to %s") &&
               strcmp((*(const AVClass *const *)of)->class_name, "AVFormatContext") == 0) {
        (void)va_arg(list, int);
        stop_redirect(of, va_arg(list, const char *));
    }
}

/* Resolves `to`, found in a page at `url`, into `out`. */
static void resolve(const char *url, const char *to, char *out, size_t room) {
    const char *host = strstr(url, "://"), *path = host ? host + 3 + strcspn(host + 3, "/?#") : url;
    const size_t scheme = host ? (size_t)(host - url) : 0;
    const char *slash = strrchr(path, '/');
    if (strstr(to, "://")) av_strlcpy(out, to, room);
    else if (strncmp(to, "//", 2) == 0) snprintf(out, room, "%.*s:%s", (int)scheme, url, to);
    else if (*to == '/') snprintf(out, room, "%.*s%s", (int)(path - url), url, to);
    else snprintf(out, room, "%.*s/%s", (int)((slash ? slash : path) - url), url, to);
}

/* Refuses an address: keeps it in in->leads for the message, and returns AVERROR(EPERM). */
static int refuse(vid_input *in, const char *to) {
    av_freep(&in->leads);
    in->leads = av_strdup(to);
    return AVERROR(EPERM);
}

/* Opens a URL, following a limited number of redirects within the same server; `options` as from
 * FFmpeg. 0, or an error of FFmpeg. */
static int open_http(vid_input *in, AVIOContext **io, const char *url, int flags,
                     const char *protocols, AVDictionary **options) {
    char at[MOST_URL], next[MOST_URL];
    const AVClass *http = avio_protocol_get_class("http");
    if (!http || !av_opt_find(&http, "max_redirects", NULL, 0, AV_OPT_SEARCH_FAKE_OBJ))
        return AVERROR(ENOSYS); /* can't be kept from following redirects */
    av_strlcpy(at, url, sizeof at);
    for (int hops = 0;; hops++) {
        AVDictionary *own = NULL;
        if (options) av_dict_copy(&own, *options, 0);
        av_dict_set(&own, "max_redirects", "0", 0);
        av_dict_set(&own, "protocol_whitelist", protocols, 0);
        *location = 0;
        const int code = avio_open2(io, at, flags, &in->format->interrupt_callback, &own);
        av_dict_free(&own);
        if (code >= 0 || !*location) return code;
        if (hops == MOST_HOPS) return AVERROR(ELOOP);
        resolve(at, location, next, sizeof next);
        if (!same_origin(url, next)) return refuse(in, next);
        av_strlcpy(at, next, sizeof at);
    }
}

/* FFmpeg's io_open: called for the input itself, and for everything that it names; opens what is
 * allowed. 0, or an error of FFmpeg. */
static int open_named(AVFormatContext *f, AVIOContext **io, const char *url, int flags,
                      AVDictionary **options) {
    vid_input *in = f->opaque;
    const char *inner = url, *path = url;
    char protocols[64];
    if (!in || flags & AVIO_FLAG_WRITE) return AVERROR(EPERM);
    if (in->kind == VID_PATTERN)
        return av_strstart(url, "file:", &path) ? open_piece(io, path) : refuse(in, url);
    if (in->kind != VID_URL) return refuse(in, url);
    if (!in->is_http) {
        if (strcmp(url, in->format_url) != 0) return refuse(in, url);
        return avio_open2(io, url, flags, &f->interrupt_callback, options);
    }
    if (av_strstart(url, "data:", NULL)) { /* the data is in the URL */
        AVDictionary *own = NULL;
        av_dict_set(&own, "protocol_whitelist", "data", 0);
        const int code = avio_open2(io, url, flags, &f->interrupt_callback, &own);
        av_dict_free(&own);
        return code;
    }
    if (!av_strstart(url, "crypto+", &inner)) av_strstart(url, "crypto:", &inner);
    if (!same_origin(in->format_url, inner)) return refuse(in, inner);
    snprintf(protocols, sizeof protocols, "%s%s", in->protocols, inner != url ? ",crypto" : "");
    return open_http(in, io, inner != url ? url : inner, flags, protocols, options);
}

/* FFmpeg's io_close: closes what open_named opened; 0 or an error of FFmpeg. */
static int close_named(AVFormatContext *f, AVIOContext *io) {
    (void)f;
    if (!io || io->read_packet != take) return io ? avio_close(io) : 0;
    int *file = io->opaque;
    close(*file);
    av_free(file);
    vid_reader_free(&io);
    return 0;
}

void vid_guard(vid_input *in, AVFormatContext *f) {
    f->opaque = in;
    f->io_open = open_named;
    f->io_close2 = close_named;
}
