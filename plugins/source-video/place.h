/* Classifies a spec without FFmpeg; used by the plugin, before its libraries are loaded, and by
 * ffmpeg.so. */
#ifndef VID_PLACE_H
#define VID_PLACE_H

/* Where a video comes from: a file, numbered pictures, standard input, a camera, or an address. */
typedef enum vid_kind { VID_FILE, VID_PATTERN, VID_STDIN, VID_DEVICE, VID_URL } vid_kind;

/* What a spec names; its texts point into the spec or are constants. */
typedef struct vid_place {
    vid_kind kind;
    const char *url;       /* what is opened; points into the spec */
    char device[32];       /* FFmpeg's format of VID_DEVICE, such as "v4l2" */
    const char *protocols; /* of VID_URL: FFmpeg protocols that are allowed */
    int is_live;           /* data not read in time is lost */
    int is_http;
} vid_place;

/* What a spec names. An existing file is that file, whatever its name. */
vid_place vid_place_of(const char *spec);
/* 1: spec begins with one of our prefixes, or the scheme of a supported URL. */
int vid_has_prefix(const char *spec);

#endif
