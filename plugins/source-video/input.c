/* Inputs: files by the host, devices and streams by FFmpeg; none opens anything else on its own. */
#include "video.h"
#include <errno.h>
#include <libavdevice/avdevice.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

cnr_status vid_fail(cnr_error *err, const char *where, const char *what, int code) {
    char text[AV_ERROR_MAX_STRING_SIZE];
    if (code == AVERROR(ENOMEM)) return vid_host->fail(err, CNR_E_MEMORY, where, "out of memory");
    if (code == AVERROR_EXIT)
        return vid_host->fail(err, CNR_E_IO, where, "%s: nothing came in %d seconds", what, (int)VID_PATIENCE_S);
    av_strerror(code, text, sizeof text);
    return vid_host->fail(err, code == AVERROR(ENOENT) ? CNR_E_NOT_FOUND
                               : code == AVERROR_INVALIDDATA || code == AVERROR_EOF ? CNR_E_FORMAT
                                                                                    : CNR_E_IO,
                          where, "%s: %s", what, text);
}

/* ---- files ---- */

static int take(void *arg, uint8_t *to, int n) {
    const vid_input *in = arg;
    ssize_t got;
    do got = read(in->file, to, (size_t)n);
    while (got < 0 && errno == EINTR);
    return got > 0 ? (int)got : got ? AVERROR(errno) : AVERROR_EOF;
}

static int64_t seek(void *arg, int64_t to, int whence) {
    const vid_input *in = arg;
    struct stat about;
    if (whence & AVSEEK_SIZE) return fstat(in->file, &about) ? AVERROR(errno) : about.st_size;
    const off_t at = lseek(in->file, to, whence & ~AVSEEK_FORCE);
    return at < 0 ? AVERROR(errno) : at;
}

static cnr_status open_file(vid_input *in, const char *path, cnr_error *err) {
    uint64_t bytes;
    in->file = vid_host->file_open(path, &bytes, err);
    if (in->file < 0) return err && err->code ? (cnr_status)err->code : CNR_E_IO;
    uint8_t *piece = av_malloc(PIECE);
    in->io = piece ? avio_alloc_context(piece, PIECE, 0, in, take, NULL, seek) : NULL;
    if (!in->io) {
        av_free(piece);
        return vid_fail(err, path, "", AVERROR(ENOMEM));
    }
    in->format->pb = in->io;
    return CNR_OK;
}

/* ---- what a spec stands for ---- */

typedef struct place {
    const char *url, *device, *protocols; /* device: a format of libavdevice; protocols: what may be used */
    int is_file, is_live, is_network;
} place;

static int begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static place place_of(const char *spec, char device[32]) {
    if (begins(spec, "video:")) spec += 6;
    if (begins(spec, "device:")) {
        const char *name = spec + 7, *colon = strchr(name, ':');
        const size_t n = colon ? (size_t)(colon - name) : strlen(name);
        snprintf(device, 32, "%.*s", (int)(n < 31 ? n : 31), name);
        return (place){colon ? colon + 1 : "", device, "file", 0, 1, 0};
    }
    if (begins(spec, "/dev/video")) return (place){spec, "v4l2", "file", 0, 1, 0};
    if (strcmp(spec, "-") == 0) return (place){"pipe:0", NULL, "pipe", 0, 0, 0};
    if (begins(spec, "http"))
        return (place){spec, NULL, "http,https,tcp,tls,httpproxy,crypto,data,hls", 0, 0, 1};
    if (strstr(spec, "://"))
        return (place){spec, NULL, "rtsp,rtsps,rtp,srtp,rtmp,rtmps,srt,udp,tcp,tls,http,https", 0, 1, 1};
    if (strchr(spec, '%')) return (place){spec, "image2", "file", 0, 0, 0};
    return (place){spec, NULL, "", 1, 0, 0};
}

int vid_is_single(const char *spec) {
    char device[32];
    const place p = place_of(spec, device);
    return p.is_live || strcmp(p.url, "pipe:0") == 0;
}

/* FFmpeg asks this while it waits. */
int vid_gives_up(void *arg) {
    vid_input *in = arg;
    const uint64_t until = atomic_load(&in->until);
    return atomic_load(&in->stopped) || (until && vid_host->now_ns() > until);
}

static cnr_status find_video(vid_input *in, cnr_error *err) {
    AVFormatContext *f = in->format;
    int code = avformat_find_stream_info(f, NULL);
    if (code < 0) return vid_fail(err, in->spec, "can't be understood", code);
    in->video = av_find_best_stream(f, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (in->video < 0)
        return vid_host->fail(err, CNR_E_FORMAT, in->spec, "no video that can be decoded is in it");
    for (unsigned i = 0; i < f->nb_streams; i++)
        if ((int)i != in->video) f->streams[i]->discard = AVDISCARD_ALL;
    return CNR_OK;
}

static cnr_status open_place(vid_input *in, const place *p, cnr_error *err) {
    AVDictionary *options = NULL;
    const AVInputFormat *kind = NULL;
    in->is_network = p->is_network;
    in->format = avformat_alloc_context();
    if (!in->format) return vid_fail(err, in->spec, "", AVERROR(ENOMEM));
    in->format->interrupt_callback = (AVIOInterruptCB){vid_gives_up, in};
    if (p->device) in->format->flags |= AVFMT_FLAG_NONBLOCK; /* a camera that hangs is never asked whether it should stop */
    if (p->is_network || p->is_live)
        atomic_store(&in->until, vid_host->now_ns() + (uint64_t)VID_PATIENCE_S * 1000000000u);
    if (p->device && !(kind = av_find_input_format(p->device)))
        return vid_host->fail(err, CNR_E_UNSUPPORTED, in->spec, "FFmpeg has no device '%s'", p->device);
    if (p->is_file) {
        const cnr_status status = open_file(in, p->url, err);
        if (status) return status;
    }
    av_dict_set(&options, "protocol_whitelist", *p->protocols ? p->protocols : "none", 0);
    if (begins(p->url, "rtsp")) av_dict_set(&options, "rtsp_transport", "tcp", 0);
    if (p->is_live) av_dict_set(&options, "fflags", "+nobuffer", 0);
    const int code = avformat_open_input(&in->format, p->is_file ? in->spec : p->url, kind, &options);
    av_dict_free(&options);
    if (code < 0) {
        in->format = NULL; /* it was freed */
        return vid_fail(err, in->spec, "can't be opened", code);
    }
    const cnr_status status = find_video(in, err);
    if (status) return status;
    const AVFormatContext *f = in->format;
    in->is_live = p->is_live || (p->is_network && f->duration <= 0 && !(f->pb && f->pb->seekable));
    if (f->iformat->flags & AVFMT_TS_DISCONT && f->start_time != AV_NOPTS_VALUE && !in->is_live)
        in->base_ns = f->start_time * 1000;
    return CNR_OK;
}

cnr_status vid_input_open(vid_input *in, const char *spec, cnr_error *err) {
    char device[32];
    const int stopped = atomic_load(&in->stopped);
    memset(in, 0, sizeof *in);
    atomic_store(&in->stopped, stopped);
    in->file = -1;
    in->spec = av_strdup(spec);
    if (!in->spec) return vid_fail(err, spec, "", AVERROR(ENOMEM));
    avdevice_register_all();
    const place p = place_of(spec, device);
    const cnr_status status = open_place(in, &p, err);
    if (status) vid_input_close(in);
    return status;
}

void vid_input_close(vid_input *in) {
    const int own = in->io != NULL;
    if (in->format) avformat_close_input(&in->format);
    if (own) {
        av_freep(&in->io->buffer);
        avio_context_free(&in->io);
    }
    if (in->file >= 0) close(in->file);
    in->file = -1;
    av_freep(&in->spec);
}
