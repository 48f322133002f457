/* Inputs: files through the host, devices and streams through FFmpeg; access.c controls what else
 * they open. */
#include "video.h"
#include <errno.h>
#include <fcntl.h>
#include <libavdevice/avdevice.h>
#include <libavutil/avstring.h>
#include <unistd.h>

cnr_status vid_fail(cnr_error *err, const char *where, const char *what, int code) {
    char text[AV_ERROR_MAX_STRING_SIZE];
    if (code == AVERROR(ENOMEM)) return vid_host->fail(err, CNR_E_MEMORY, where, "out of memory");
    if (code == AVERROR_EXIT)
        return vid_host->fail(err, CNR_E_IO, where, "%s: nothing came in %d seconds", what,
                              (int)VID_PATIENCE_S);
    av_strerror(code, text, sizeof text);
    return vid_host->fail(err,
                          code == AVERROR(ENOENT)                              ? CNR_E_NOT_FOUND
                          : code == AVERROR_INVALIDDATA || code == AVERROR_EOF ? CNR_E_FORMAT
                                                                               : CNR_E_IO,
                          where, "%s: %s", what, text);
}

/* ---- opening ---- */

/* Takes over an open file as the input's; fails with CNR_E_MEMORY. */
static cnr_status open_descriptor(vid_input *in, int file, int can_seek, cnr_error *err) {
    in->file = file;
    in->io = vid_reader_of(&in->file, can_seek);
    if (!in->io) return vid_fail(err, in->spec, "", AVERROR(ENOMEM));
    in->format->pb = in->io;
    return CNR_OK;
}

/* Opens a file by its path, through the host; fails with its reason. */
static cnr_status open_file(vid_input *in, const char *path, cnr_error *err) {
    uint64_t bytes;
    const int file = vid_host->file_open(path, &bytes, err);
    if (file < 0) return err && err->code ? (cnr_status)err->code : CNR_E_IO;
    return open_descriptor(in, file, 1, err);
}

/* Opens a copy of standard input, which can't seek; fails with the system's reason. */
static cnr_status open_stdin(vid_input *in, cnr_error *err) {
    const int file = fcntl(0, F_DUPFD_CLOEXEC, 3);
    if (file < 0) return vid_fail(err, in->spec, "standard input", AVERROR(errno));
    return open_descriptor(in, file, 0, err);
}

int vid_is_single(const char *spec) {
    const vid_place p = vid_place_of(spec);
    return p.is_live || p.kind == VID_STDIN;
}

/* 1: the input was stopped or its time is over. Interrupt callback, which FFmpeg calls while it
 * waits. */
int vid_gives_up(void *arg) {
    vid_input *in = arg;
    const uint64_t until = atomic_load(&in->until);
    return atomic_load(&in->stopped) || (until && vid_host->now_ns() > until);
}

/* Finds the video stream; fails where there is none. */
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

/* Fails with why FFmpeg, by its error code, could not open the input. */
static cnr_status tell_refusal(vid_input *in, int code, cnr_error *err) {
    if (in->leads)
        return vid_host->fail(err, CNR_E_ARG, in->spec,
                              "leads to %s, which is elsewhere: give that address itself",
                              in->leads);
    if (in->kind == VID_DEVICE && code == AVERROR(ENOENT))
        return vid_host->fail(err, CNR_E_NOT_FOUND, in->spec, "no camera is here: there is no %s",
                              in->format_url);
    return vid_fail(err, in->spec, "can't be opened", code);
}

/* FFmpeg's options for the place, for the caller to free: the allow lists, and low latency. */
static AVDictionary *options_of(const vid_place *p) {
    AVDictionary *options = NULL;
    av_dict_set(&options, "protocol_whitelist",
                p->kind == VID_DEVICE ? "file"
                : p->protocols        ? p->protocols
                                      : "none",
                0);
    if (p->kind != VID_DEVICE) av_dict_set(&options, "format_whitelist", vid_formats(p), 0);
    if (p->kind == VID_PATTERN) av_dict_set(&options, "pattern_type", "sequence", 0);
    if (p->kind == VID_URL && !p->is_http) av_dict_set(&options, "rtsp_transport", "tcp", 0);
    if (p->is_live) av_dict_set(&options, "fflags", "+nobuffer", 0);
    return options;
}

/* *kind receives FFmpeg's input format for the place; NULL: it is to find out. */
static cnr_status kind_of(const vid_input *in, const vid_place *p, const AVInputFormat **kind,
                          cnr_error *err) {
    *kind = NULL;
    if (p->kind == VID_PATTERN) *kind = av_find_input_format("image2");
    if (p->kind != VID_DEVICE) return CNR_OK;
    if (!vid_is_device(p->device))
        return vid_host->fail(err, CNR_E_UNSUPPORTED, in->spec,
                              "'%s' is no device for cameras or screens: want v4l2, "
                              "libdc1394, iec61883, fbdev, x11grab or kmsgrab",
                              p->device);
    *kind = av_find_input_format(p->device);
    return *kind ? CNR_OK
                 : vid_host->fail(err, CNR_E_UNSUPPORTED, in->spec, "FFmpeg has no device '%s'",
                                  p->device);
}

/* The address for FFmpeg, for the caller to free; NULL: no memory. FFmpeg takes the address of a
 * picture for a pattern of files, by its ending, and a query, though an empty one, has it look at
 * what comes instead: a picture, or a camera's stream of them. */
static char *address_of(const vid_input *in, const vid_place *p) {
    if (p->kind == VID_PATTERN) return av_asprintf("file:%s", p->url);
    if (p->kind == VID_FILE || p->kind == VID_STDIN) return av_strdup(in->spec);
    const int is_picture =
        p->is_http && !strpbrk(p->url, "?#") &&
        av_match_ext(p->url, "jpg,jpeg,jpe,jfif,png,bmp,webp,tif,tiff,ppm,pgm,pnm");
    return av_asprintf("%s%s", p->url, is_picture ? "?" : "");
}

/* Opens the place with FFmpeg; fails with a reason, and vid_input_close then frees what there
 * is. */
static cnr_status open_place(vid_input *in, const vid_place *p, cnr_error *err) {
    const AVInputFormat *kind;
    in->kind = p->kind;
    in->protocols = p->protocols;
    in->is_http = p->is_http;
    in->is_network = p->kind == VID_URL;
    in->format_url = address_of(in, p);
    in->format = avformat_alloc_context();
    if (!in->format || !in->format_url) return vid_fail(err, in->spec, "", AVERROR(ENOMEM));
    vid_guard(in, in->format);
    in->format->interrupt_callback = (AVIOInterruptCB){vid_gives_up, in};
    if (p->kind == VID_DEVICE)
        in->format->flags |= AVFMT_FLAG_NONBLOCK; /* otherwise a hanging camera would never check
                                                     the interrupt callback */
    if (in->is_network || p->is_live)
        atomic_store(&in->until, vid_host->now_ns() + (uint64_t)VID_PATIENCE_S * 1000000000u);
    cnr_status status = kind_of(in, p, &kind, err);
    if (!status && p->kind == VID_FILE) status = open_file(in, p->url, err);
    if (!status && p->kind == VID_STDIN) status = open_stdin(in, err);
    if (status) return status;
    AVDictionary *options = options_of(p);
    const int code = avformat_open_input(&in->format, in->format_url, kind, &options);
    av_dict_free(&options);
    if (code < 0) {
        in->format = NULL; /* freed by FFmpeg */
        return tell_refusal(in, code, err);
    }
    status = find_video(in, err);
    if (status) return status;
    const AVFormatContext *f = in->format;
    const int is_playlist = strcmp(f->iformat->name, "hls") == 0; /* whose own end says nothing */
    const int is_finite = !is_playlist && f->pb && (f->pb->seekable || avio_size(f->pb) > 0);
    in->is_live = p->is_live || (in->is_network && f->duration <= 0 && !is_finite);
    if (f->iformat->flags & AVFMT_TS_DISCONT && f->start_time != AV_NOPTS_VALUE && !in->is_live)
        in->base_ns = f->start_time * 1000;
    return CNR_OK;
}

/* Opens what spec names and finds its video stream; a stop that was asked for before stays. */
cnr_status vid_input_open(vid_input *in, const char *spec, cnr_error *err) {
    const int stopped = atomic_load(&in->stopped);
    memset(in, 0, sizeof *in);
    atomic_store(&in->stopped, stopped);
    in->file = -1;
    in->spec = av_strdup(spec);
    if (!in->spec) return vid_fail(err, spec, "", AVERROR(ENOMEM));
    avdevice_register_all();
    const vid_place p = vid_place_of(in->spec);
    const cnr_status status = open_place(in, &p, err);
    if (status) vid_input_close(in);
    return status;
}

/* Closes the input and frees all of it, not `in`. */
void vid_input_close(vid_input *in) {
    if (in->format) avformat_close_input(&in->format);
    vid_reader_free(&in->io);
    if (in->file >= 0) close(in->file);
    in->file = -1;
    av_freep(&in->format_url);
    av_freep(&in->leads);
    av_freep(&in->spec);
}
