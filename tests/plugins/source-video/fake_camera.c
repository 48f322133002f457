/* A V4L2 camera that is not there, for LD_PRELOAD: /dev/video* gives frames of YUYV at a rate, in
 * as many buffers as are asked for, as a driver would: one that is not taken in time is lost. By
 * the environment:
 *     FAKE_CAMERA_RATE    frames a second (30)
 *     FAKE_CAMERA_LOG     a file: a line "number nanoseconds" (monotonic) for each frame that was taken
 *     FAKE_CAMERA_GONE    so many frames, then it is pulled out
 *     FAKE_CAMERA_STALLS  so many frames, then none comes any more */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 640, HEIGHT = 480, BYTES = WIDTH * HEIGHT * 2, MOST = 32 };

/* A buffer of the camera. */
typedef struct buffer {
    uint8_t *at;
    uint64_t number, ns;
} buffer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int fd, is_open, waits, runs;
    uint32_t n, n_empty, n_full;
    uint32_t empty[MOST], full[MOST]; /* in order */
    buffer buffers[MOST];
    uint64_t begun_ns, next; /* the number of the frame that comes next */
} camera;

/* The number that the environment gives. */
static uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Nanoseconds by the monotonic clock. */
static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* When a frame is due. */
static uint64_t due_ns(uint64_t number) {
    return camera.begun_ns + (number + 1) * 1000000000u / number_of("FAKE_CAMERA_RATE", 30);
}

/* Paints frame `number` at `at`: a grey that grows by 4 a frame, 50 times, and a bar that walks. */
static void paint(uint8_t *at, uint64_t number) {
    memset(at, 128, BYTES);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            at[(y * WIDTH + x) * 2] =
                (uint8_t)((uint64_t)x / 16 == number % (WIDTH / 16) ? 235 : 16 + number % 50 * 4);
}

/* All that has happened up to now. */
static void advance(void) {
    const uint64_t now = now_ns(), last = number_of("FAKE_CAMERA_STALLS", UINT64_MAX);
    for (; camera.runs && due_ns(camera.next) <= now && camera.next < last; camera.next++) {
        if (!camera.n_empty) continue;
        const uint32_t i = camera.empty[0];
        memmove(camera.empty, camera.empty + 1, --camera.n_empty * sizeof camera.empty[0]);
        camera.buffers[i].number = camera.next;
        camera.buffers[i].ns = due_ns(camera.next);
        paint(camera.buffers[i].at, camera.next);
        camera.full[camera.n_full++] = i;
    }
}

/* Notes a frame in the log. */
static void log_frame(const buffer *b) {
    const char *path = getenv("FAKE_CAMERA_LOG");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (!out) return;
    fprintf(out, "%llu %llu\n", (unsigned long long)b->number, (unsigned long long)b->ns);
    fclose(out);
}

/* Describes a buffer. */
static void describe(struct v4l2_buffer *b) {
    b->type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    b->memory = V4L2_MEMORY_MMAP;
    b->length = BYTES;
    b->m.offset = b->index * BYTES;
}

/* Takes the next frame into *b, waiting for it; 0, or an error such as ENODEV: the camera is
 * gone. */
static int take(struct v4l2_buffer *b) {
    for (;;) {
        advance();
        if (camera.next >= number_of("FAKE_CAMERA_GONE", UINT64_MAX)) return ENODEV;
        if (camera.n_full) break;
        if (!camera.waits) return EAGAIN;
        pthread_mutex_unlock(&lock);
        usleep(500);
        pthread_mutex_lock(&lock);
    }
    b->index = camera.full[0];
    memmove(camera.full, camera.full + 1, --camera.n_full * sizeof camera.full[0]);
    const buffer *from = &camera.buffers[b->index];
    describe(b);
    b->bytesused = BYTES;
    b->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
    b->sequence = (uint32_t)from->number;
    b->timestamp.tv_sec = (time_t)(from->ns / 1000000000u);
    b->timestamp.tv_usec = (suseconds_t)(from->ns / 1000 % 1000000u);
    log_frame(from);
    return 0;
}

/* Makes the buffers that are asked for; 0, or an error. */
static int request(struct v4l2_requestbuffers *r) {
    if (r->count > MOST) r->count = MOST;
    for (; camera.n < r->count; camera.n++) {
        camera.buffers[camera.n].at =
            mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (camera.buffers[camera.n].at == MAP_FAILED) return ENOMEM;
    }
    return 0;
}

/* The format of frames. */
static void format(struct v4l2_pix_format *p) {
    *p = (struct v4l2_pix_format){.width = WIDTH,
                                  .height = HEIGHT,
                                  .pixelformat = V4L2_PIX_FMT_YUYV,
                                  .field = V4L2_FIELD_NONE,
                                  .bytesperline = WIDTH * 2,
                                  .sizeimage = BYTES};
}

/* The rate of frames. */
static void rate(struct v4l2_streamparm *p) {
    p->parm.capture.capability = V4L2_CAP_TIMEPERFRAME;
    p->parm.capture.timeperframe =
        (struct v4l2_fract){1, (uint32_t)number_of("FAKE_CAMERA_RATE", 30)};
}

/* Answers a call of V4L2; 0, or an error. */
static int answer(unsigned long what, void *at) {
    switch (what) {
    case VIDIOC_QUERYCAP:
        *(struct v4l2_capability *)at =
            (struct v4l2_capability){.driver = "fake",
                                     .card = "a camera",
                                     .bus_info = "none",
                                     .capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING};
        return 0;
    case VIDIOC_G_INPUT: *(int *)at = 0; return 0;
    case VIDIOC_S_INPUT: return 0;
    case VIDIOC_ENUMINPUT: return ((struct v4l2_input *)at)->index ? EINVAL : 0;
    case VIDIOC_G_FMT:
    case VIDIOC_S_FMT:
    case VIDIOC_TRY_FMT: {
        struct v4l2_format *f = at;
        if (what != VIDIOC_G_FMT && f->fmt.pix.pixelformat &&
            f->fmt.pix.pixelformat != V4L2_PIX_FMT_YUYV)
            return EINVAL;
        format(&f->fmt.pix);
        return 0;
    }
    case VIDIOC_G_PARM:
    case VIDIOC_S_PARM: rate(at); return 0;
    case VIDIOC_REQBUFS: return request(at);
    case VIDIOC_QUERYBUF: describe(at); return 0;
    case VIDIOC_QBUF:
        advance();
        camera.empty[camera.n_empty++] = ((struct v4l2_buffer *)at)->index;
        return 0;
    case VIDIOC_DQBUF: return take(at);
    case VIDIOC_STREAMON:
        camera.begun_ns = now_ns();
        camera.runs = 1;
        return 0;
    case VIDIOC_STREAMOFF: camera.runs = 0; return 0;
    default: return ENOTTY;
    }
}

/* ---- in the place of libc's ---- */

/* Opens the camera; its descriptor, or -1. */
static int open_fake(int flags) {
    pthread_mutex_lock(&lock);
    const int fd = memfd_create("camera", 0); /* a number that nobody else gets */
    if (fd >= 0 && !camera.is_open) {
        memset(&camera, 0, sizeof camera);
        camera.fd = fd;
        camera.is_open = 1;
        camera.waits = !(flags & O_NONBLOCK);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

/* Opens the camera, or a true file by the function `with`; a descriptor, or -1. */
static int open_by(const char *with, const char *path, int flags, mode_t mode) {
    int (*theirs)(const char *, int, ...);
    *(void **)&theirs = dlsym(RTLD_NEXT, with);
    return strncmp(path, "/dev/video", 10) == 0 ? open_fake(flags) : theirs(path, flags, mode);
}

/* The mode of a new file in the list of open's arguments; 0: these flags make none. */
static mode_t mode_in(int flags, va_list list) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

/* In place of open: the camera is opened here. */
int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = mode_in(flags, list);
    va_end(list);
    return open_by("open", path, flags, mode);
}

#ifdef __LP64__ /* elsewhere large files give open and mmap these names */
/* In place of open64: the camera is opened here. */
int open64(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = mode_in(flags, list);
    va_end(list);
    return open_by("open64", path, flags, mode);
}
#endif

/* In place of ioctl. */
int ioctl(int fd, unsigned long what, ...) {
    int (*theirs)(int, unsigned long, ...);
    va_list list;
    va_start(list, what);
    void *at = va_arg(list, void *);
    va_end(list);
    if (!camera.is_open || fd != camera.fd) {
        *(void **)&theirs = dlsym(RTLD_NEXT, "ioctl");
        return theirs(fd, what, at);
    }
    pthread_mutex_lock(&lock);
    errno = answer(what, at);
    pthread_mutex_unlock(&lock);
    return errno ? -1 : 0;
}

/* Maps a buffer of the camera's, or a true file by the function `with`. */
static void *map_by(const char *with, void *to, size_t n, int prot, int flags, int fd, off_t at) {
    void *(*theirs)(void *, size_t, int, int, int, off_t);
    if (camera.is_open && fd == camera.fd && at / BYTES < camera.n)
        return camera.buffers[at / BYTES].at;
    *(void **)&theirs = dlsym(RTLD_NEXT, with);
    return theirs(to, n, prot, flags, fd, at);
}

/* In place of mmap: the camera's buffers are mapped here. */
void *mmap(void *to, size_t n, int prot, int flags, int fd, off_t at) {
    return map_by("mmap", to, n, prot, flags, fd, at);
}

#ifdef __LP64__
/* In place of mmap64: the camera's buffers are mapped here. */
void *mmap64(void *to, size_t n, int prot, int flags, int fd, off64_t at) {
    return map_by("mmap64", to, n, prot, flags, fd, at);
}
#endif

/* In place of close. */
int close(int fd) {
    int (*theirs)(int);
    *(void **)&theirs = dlsym(RTLD_NEXT, "close");
    if (camera.is_open && fd == camera.fd) camera.is_open = camera.runs = 0;
    return theirs(fd);
}
