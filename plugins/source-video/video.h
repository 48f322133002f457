/* Internals of ffmpeg.so: inputs, which may be reopened, frames as pictures, and writing. */
#ifndef VID_VIDEO_H
#define VID_VIDEO_H

#include "place.h"
#include <cnnrun/kit.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
#include <stdatomic.h>
#include <stdio.h>

extern const cnr_host *vid_host;

#define VID_NS AV_TIME_BASE_Q_NS
#define AV_TIME_BASE_Q_NS ((AVRational){1, 1000000000})
enum { VID_PATIENCE_S = 10 };
#define VID_MAX_PIXELS (INT64_C(200) << 20)

/* ---- input.c: opening a spec ---- */
/* An opened video, camera or stream. */
typedef struct vid_input {
    char *spec;
    AVFormatContext *format;
    AVIOContext *io; /* FFmpeg's reader of a file; NULL: it opens the address itself */
    int file;        /* its descriptor, -1: none */
    int video;       /* index of the stream with pictures */
    int is_live;     /* a device or a stream: data not read in time is lost */
    vid_kind kind;
    const char *protocols; /* of a URL: protocols that are allowed */
    int is_network, is_http;
    char *format_url; /* the URL that FFmpeg was given */
    char *leads;      /* a redirect that was refused; NULL: none */
    int64_t base_ns;  /* subtracted from the container's times */
    _Atomic int stopped;
    _Atomic uint64_t until; /* monotonic ns by which data must arrive; 0: no limit */
} vid_input;

/* Opens what spec names and finds its video stream; a stop that was asked for before stays. */
cnr_status vid_input_open(vid_input *in, const char *spec, cnr_error *err);
void vid_input_close(vid_input *in); /* Closes the input and frees all of it, not `in`. */
/* 1: the input was stopped, or its time is over. */
int vid_gives_up(void *input);
/* Whether it can be read only once: a camera, a stream, standard input. */
int vid_is_single(const char *spec);
/* Fails with "PLACE: what: FFmpeg's words for code"; returns a status that fits the code. */
cnr_status vid_fail(cnr_error *err, const char *where, const char *what, int code);

/* ---- access.c: what FFmpeg may open ---- */
/* the place's demuxers that are allowed, separated by commas */
const char *vid_formats(const vid_place *p);
/* 1: the name is that of a format of FFmpeg that captures pictures. */
int vid_is_device(const char *name);
/* A context over a descriptor; the caller owns both. NULL: no memory. */
AVIOContext *vid_reader_of(int *file, int can_seek);
/* Frees the context and its buffer, not its descriptor; *io becomes NULL. */
void vid_reader_free(AVIOContext **io);
/* From now on, everything that `f` opens is checked here. */
void vid_guard(vid_input *in, AVFormatContext *f);
/* Receives each line of FFmpeg's log, the only source of some information. */
void vid_hear(void *of, const char *format, va_list list);

/* ---- frame.c: a frame to u8 H W 3, upright ---- */
/* Converts frames to upright u8 pictures. */
typedef struct vid_painter {
    struct SwsContext *scaler;
    int w, h, format, space, range; /* parameters of the current scaler */
} vid_painter;
/* *out receives the frame as u8 [height, width, 3], after `turns` quarter turns clockwise. */
cnr_status vid_paint(vid_painter *p, const AVFrame *frame, int turns, cnr_tensor *out,
                     const char *where, cnr_error *err);
void vid_painter_close(vid_painter *p); /* Frees the scaler and clears p. */
/* Quarter turns clockwise, 0 to 3, that make the stream's frames upright. */
int vid_turns(const AVStream *stream);

/* ---- write.c, sound.c ---- */
/* Starts a writer of a video whose format follows from the ending of `spec`; end it with
 * vid_write_close. CNR_E_UNSUPPORTED: no known ending. */
cnr_status vid_write_open(const char *spec, void **state, cnr_error *err);
/* Names the source of the pictures to come, before the first vid_write_next. Takes over its frame
 * rate and aspect ratio and, unless it is live, its sound within `span`; writes nothing. A source
 * that can be read only once is ignored. */
cnr_status vid_write_from(void *state, const char *spec, const cnr_selection *span, cnr_error *err);
/* Appends a picture (u8 H W C), scaled to the size of the first one. */
cnr_status vid_write_next(void *state, const cnr_sample *sample, cnr_error *err);
/* Completes the video and frees the writer. status not CNR_OK: the video is dropped, and the same
 * status is returned. */
cnr_status vid_write_close(void *state, int32_t status, cnr_error *err);

/* The sound of a video, copied without conversion. */
typedef struct vid_sound {
    vid_input in;
    cnr_selection span;
    AVFormatContext *to;
    int *streams;    /* output stream for each input stream; -1: left out */
    AVPacket *ahead; /* read, but not written yet */
    int has_ahead, ended;
} vid_sound;
/* Adds streams to `to`, whose header is not written yet. */
cnr_status vid_sound_begin(vid_sound *s, AVFormatContext *to, cnr_error *err);
/* Writes the sound until that time in ns (INT64_MAX: all), relative to the span's begin; fails
 * where the output does. */
cnr_status vid_sound_until(vid_sound *s, int64_t ns, cnr_error *err);
void vid_sound_close(vid_sound *s); /* Frees the packet and list, and closes the sound's input. */

#endif
