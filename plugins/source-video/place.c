/* Classifies a spec: file, pattern of files, standard input, device, URL. */
#include "place.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* All protocols in use. Any other prefix is part of a file's name. */
static const struct {
    const char *scheme, *protocols;
    int is_live;
} schemes[] = {{"http://", "http,tcp,httpproxy", 0},
               {"https://", "https,tls,tcp,httpproxy", 0},
               {"rtsp://", "tcp", 1},
               {"rtsps://", "tls,tcp", 1},
               {"rtmp://", "rtmp,tcp", 1},
               {"rtmps://", "rtmps,tls,tcp", 1},
               {"rtp://", "rtp,udp", 1},
               {"udp://", "udp", 1},
               {"tcp://", "tcp", 1},
               {"srt://", "srt", 1}};
enum { N_SCHEMES = sizeof schemes / sizeof schemes[0] };

/* 1: text begins with `with`. */
static int begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* 1: the path is a regular file, or a link to one. */
static int is_file(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* 1: the path is that of standard input where that is a pipe, which can't be opened and read
 * again. */
static int is_piped_stdin(const char *path) {
    struct stat about;
    const int is_stdin = strcmp(path, "/dev/stdin") == 0 || strcmp(path, "/dev/fd/0") == 0;
    return is_stdin && stat(path, &about) == 0 && S_ISFIFO(about.st_mode);
}

/* Index of the spec's scheme; -1: none that is known. */
static int scheme_of(const char *spec) {
    for (int i = 0; i < N_SCHEMES; i++)
        if (strncasecmp(spec, schemes[i].scheme, strlen(schemes[i].scheme)) == 0) return i;
    return -1;
}

/* The device of a camera's number "0" to "9", unless a file has that name; NULL: spec is none. */
static const char *camera_of(const char *spec) {
    static const char *const cameras[] = {"/dev/video0", "/dev/video1", "/dev/video2",
                                          "/dev/video3", "/dev/video4", "/dev/video5",
                                          "/dev/video6", "/dev/video7", "/dev/video8",
                                          "/dev/video9"};
    struct stat about;
    const int is_digit = *spec >= '0' && *spec <= '9' && !spec[1];
    return is_digit && stat(spec, &about) != 0 ? cameras[*spec - '0'] : NULL;
}

int vid_has_prefix(const char *spec) {
    return camera_of(spec) || begins(spec, "video:") || begins(spec, "device:") ||
           begins(spec, "/dev/video") || strcmp(spec, "-") == 0 || is_piped_stdin(spec) ||
           scheme_of(spec) >= 0;
}

vid_place vid_place_of(const char *spec) {
    const char *camera = camera_of(spec);
    vid_place p = {.url = camera ? camera : spec};
    if (is_file(p.url)) return p;
    if (begins(p.url, "video:")) p.url += 6;
    const int scheme = scheme_of(p.url);
    if (is_file(p.url)) return p;
    if (begins(p.url, "device:")) {
        const char *name = p.url + 7, *colon = strchr(name, ':');
        snprintf(p.device, sizeof p.device, "%.*s", (int)strcspn(name, ":"), name);
        p.url = colon ? colon + 1 : "";
        p.kind = VID_DEVICE;
        p.is_live = 1;
    } else if (begins(p.url, "/dev/video")) {
        snprintf(p.device, sizeof p.device, "v4l2");
        p.kind = VID_DEVICE;
        p.is_live = 1;
    } else if (strcmp(p.url, "-") == 0 || is_piped_stdin(p.url)) {
        p.kind = VID_STDIN;
    } else if (scheme >= 0) {
        p.kind = VID_URL;
        p.protocols = schemes[scheme].protocols;
        p.is_live = schemes[scheme].is_live;
        p.is_http = begins(schemes[scheme].scheme, "http");
    } else if (strchr(p.url, '%')) {
        p.kind = VID_PATTERN;
    }
    return p;
}
