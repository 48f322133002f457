/* Measures how long it takes to copy bytes from one device to another. */
#include "work/work.h"
#include "people/people.h"

enum { ROUNDS = 9 };

/* One side of a copy: memory of the device's first class, and a stream. */
typedef struct side {
    const cnr_device *device;
    cnr_mem mem;
    cnr_stream stream;
    bool opened;
} side;

static bool in_host(const side *s) { return (s->device->memory[0].flags & CNR_MEMORY_HOST) != 0; }

/* Allocates memory on a device and opens a stream there. */
static cnr_status begin(side *s, const cnr_device *device, uint64_t bytes, cnr_error *err) {
    *s = (side){.device = device,
                .mem = {.bytes = bytes},
                .stream = {.size = sizeof s->stream, .device = device}};
    cnr_status status = cnri_device_alloc(device, &s->mem, err);
    if (status) {
        s->mem.handle = NULL;
        return status;
    }
    status = device->cls->stream_open(device, &s->stream, err);
    s->opened = !status;
    return status;
}

/* Closes a side's stream and frees its memory, as far as there are any. */
static void end(side *s) {
    if (s->opened) s->device->cls->stream_close(&s->stream);
    if (s->mem.handle) s->device->cls->free(s->device, &s->mem);
}

/* Copies as plans do: directly if one side is in host memory, else through the host. */
static cnr_status copy(side *from, side *to, void *staging, cnr_error *err) {
    const uint64_t bytes = from->mem.bytes;
    void *low = in_host(to) ? (char *)to->mem.handle + to->mem.offset : staging;
    const void *high = in_host(from) ? (char *)from->mem.handle + from->mem.offset : low;
    cnr_status status = CNR_OK;
    if (in_host(from) && in_host(to)) memcpy(low, high, (size_t)bytes);
    if (!in_host(from)) {
        status = from->device->cls->read(&from->stream, &from->mem, 0, low, bytes, err);
        if (!status) status = from->device->cls->sync(&from->stream, err);
    }
    if (!in_host(to) && !status) {
        status = to->device->cls->write(&to->stream, &to->mem, 0, high, bytes, err);
        if (!status) status = to->device->cls->sync(&to->stream, err);
    }
    return status;
}

cnr_status cnri_copy_ns(const cnr_device *from, const cnr_device *to, uint64_t bytes, double *ns,
                        cnr_error *err) {
    side a = {0}, b = {0};
    double took[ROUNDS];
    void *staging = cnri_alloc_zero((size_t)bytes);
    cnr_status status = staging ? CNR_OK : cnri_out_of_memory(err, "tune");
    if (!status) status = begin(&a, from, bytes, err);
    if (!status) status = begin(&b, to, bytes, err);
    if (!status) status = copy(&b, &a, staging, err); /* warms up, and puts data there */
    for (int32_t i = 0; i < ROUNDS && !status; i++) {
        const uint64_t begun = cnri_now_ns();
        status = copy(&a, &b, staging, err);
        /* 1 because by a plugin's clock a copy may take no time */
        took[i] = (double)(cnri_now_ns() - begun) + 1; /* by a plugin's clock it may take no time */
    }
    end(&a);
    end(&b);
    cnri_free(staging);
    if (!status) *ns = cnri_median(took, ROUNDS);
    return status;
}
