/* Units as devices. Work is computed when it is queued, and is complete when virtual time reaches
 * its end. */
#include "sim.h"
#include <stdio.h>

static const cnr_memory_class host_memory[] = {{.name = "buffer",
                                                .flags = CNR_MEMORY_HOST | CNR_MEMORY_PARTS,
                                                .alignment = 64,
                                                .max_bytes = (uint64_t)SIZE_MAX / 2}};
static const cnr_memory_class own_memory[] = {{.name = "buffer",
                                               .flags = CNR_MEMORY_PARTS,
                                               .alignment = 64,
                                               .max_bytes = (uint64_t)SIZE_MAX / 2}};

/* ---- enumeration ---- */

/* Number of units of the simulated machine. */
static int32_t count(cnr_error *err) {
    const sim_machine *m = sim_machine_now();
    (void)err;
    return m ? m->n_units : 0;
}

/* Units listed first are preferred; units that are part of another are never the default. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    const sim_machine *m = sim_machine_now();
    if (!m || index >= m->n_units || out->size < sizeof *out)
        return sim_host->fail(err, CNR_E_NOT_FOUND, "sim", "no unit %d", (int)index);
    const sim_unit *u = &m->units[index];
    out->score = u->is_member ? 1 : 5000 - index;
    out->concurrency = u->cores;
    snprintf(out->key, sizeof out->key, "%s", u->name);
    snprintf(out->part, sizeof out->part, "%s", u->name);
    snprintf(out->name, sizeof out->name, "%s", u->title[0] ? u->title : u->name);
    snprintf(out->driver, sizeof out->driver, "device-sim 0.1.0 board %s", m->digest);
    return CNR_OK;
}

static int32_t most(void) { return sim_machine_now() ? 5000 : 0; }

/* Opens a unit as a device. */
static cnr_status device_open(cnr_device *device, const cnr_device_options *options,
                              cnr_error *err) {
    sim_machine *m = sim_machine_now();
    (void)options;
    if (!m || device->index >= m->n_units)
        return sim_host->fail(err, CNR_E_NOT_FOUND, "sim", "its board is not in force any more");
    const sim_unit *u = &m->units[device->index];
    device->state = m;
    device->memory = u->host ? host_memory : own_memory;
    device->n_memory = 1;
    device->concurrency = u->cores;
    sim_advance(sim_now()); /* this thread advances the virtual time */
    return CNR_OK;
}

static void device_close(cnr_device *device) { device->state = NULL; }

/* ---- memory: host memory, whatever the device reports ---- */

/* Allocates out->bytes of the program's memory into out; CNR_E_MEMORY: there is none. */
static cnr_status mem_alloc(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    out->offset = 0;
    out->handle =
        out->bytes <= SIZE_MAX / 2 ? sim_host->alloc((size_t)(out->bytes ? out->bytes : 1)) : NULL;
    if (!out->handle)
        return sim_host->fail(err, CNR_E_MEMORY, device->name, "no memory for %llu bytes",
                              (unsigned long long)out->bytes);
    if (sim_of(device)->dry) memset(out->handle, 0, (size_t)out->bytes); /* no kernel writes it */
    return CNR_OK;
}

/* Frees memory, and clears the handle. */
static void mem_free(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    sim_host->free(mem->handle);
    mem->handle = NULL;
}

/* Fills err: outside a memory. */
static cnr_status outside(const cnr_device *device, cnr_error *err) {
    return sim_host->fail(err, CNR_E_ARG, device->name, "past the end of a buffer");
}

/* 1 if the range lies within the memory. */
static int inside(const cnr_mem *mem, uint64_t offset, uint64_t bytes) {
    return offset <= mem->bytes && bytes <= mem->bytes - offset;
}

/* Makes *out a part of a memory, without a copy; fails outside of it. */
static cnr_status mem_view(const cnr_device *device, const cnr_mem *whole, uint64_t offset,
                           uint64_t bytes, cnr_mem *out, cnr_error *err) {
    if (!inside(whole, offset, bytes)) return outside(device, err);
    *out = *whole;
    out->offset += offset;
    out->bytes = bytes;
    return CNR_OK;
}

/* Ends a view: clears its handle, as there is nothing to free. */
static void mem_unview(const cnr_device *device, cnr_mem *part) {
    (void)device;
    part->handle = NULL;
}

static char *address(const cnr_mem *mem) { return (char *)mem->handle + mem->offset; }

/* ---- queues ---- */

/* Lets the simulated time of moving `bytes` pass on the stream, behind what it has to do
 * already. */
static void move(cnr_stream *stream, uint64_t bytes) {
    const cnr_device *d = stream->device;
    sim_stream *s = stream->state;
    const uint64_t now = sim_now();
    sim_lock();
    s->ready = sim_move_on(sim_of(d), d->index, s->ready > now ? s->ready : now, (double)bytes);
    sim_unlock();
}

/* Copies from the host, in simulated time. */
static cnr_status write_mem(cnr_stream *stream, const cnr_mem *to, uint64_t offset,
                            const void *from, uint64_t bytes, cnr_error *err) {
    if (!inside(to, offset, bytes)) return outside(stream->device, err);
    if (bytes) memcpy(address(to) + offset, from, (size_t)bytes);
    move(stream, bytes);
    return CNR_OK;
}

/* Copies to the host, in simulated time. */
static cnr_status read_mem(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                           uint64_t bytes, cnr_error *err) {
    if (!inside(from, offset, bytes)) return outside(stream->device, err);
    if (bytes) memcpy(to, address(from) + offset, (size_t)bytes);
    move(stream, bytes);
    return CNR_OK;
}

/* Copies between memories, in simulated time. */
static cnr_status copy_mem(cnr_stream *stream, const cnr_mem *from, const cnr_mem *to,
                           uint64_t bytes, cnr_error *err) {
    if (!inside(from, 0, bytes) || !inside(to, 0, bytes)) return outside(stream->device, err);
    if (bytes) memmove(address(to), address(from), (size_t)bytes);
    move(stream, bytes);
    return CNR_OK;
}

/* Opens a queue of work, ready at the present simulated time. */
static cnr_status stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err) {
    sim_stream *s = sim_host->alloc(sizeof *s);
    if (!s) return sim_host->fail(err, CNR_E_MEMORY, device->name, "no memory for a queue");
    s->ready = sim_now();
    stream->device = device;
    stream->state = s;
    return CNR_OK;
}

/* Frees the queue. */
static void stream_close(cnr_stream *stream) {
    sim_host->free(stream->state);
    stream->state = NULL;
}

/* Lets simulated time pass until `until` (ns), and heats the machine up to then. */
static void pass(const cnr_device *device, uint64_t until) {
    sim_machine *m = sim_of(device);
    sim_advance(until);
    const uint64_t now = sim_now();
    sim_lock();
    sim_heat(m, now);
    sim_fold(m, now);
    sim_unlock();
}

/* Lets time pass until the queue is done. */
static cnr_status stream_sync(cnr_stream *stream, cnr_error *err) {
    (void)err;
    pass(stream->device, ((sim_stream *)stream->state)->ready);
    return CNR_OK;
}

/* Event: the time when the queue will be done. */
static cnr_status record(cnr_stream *stream, void **event, cnr_error *err) {
    const sim_stream *s = stream->state;
    const uint64_t now = sim_now();
    uint64_t *e = sim_host->alloc(sizeof *e);
    if (!e) return sim_host->fail(err, CNR_E_MEMORY, stream->device->name, "no memory for a mark");
    *e = s->ready > now ? s->ready : now;
    *event = e;
    return CNR_OK;
}

/* Lets the queue wait for an event. */
static cnr_status wait(cnr_stream *stream, void *event, cnr_error *err) {
    sim_stream *s = stream->state;
    (void)err;
    if (*(uint64_t *)event > s->ready) s->ready = *(uint64_t *)event;
    return CNR_OK;
}

/* Frees an event. */
static void event_free(const cnr_device *device, void *event) {
    (void)device;
    sim_host->free(event);
}

/* Nanoseconds of simulated time between two events. */
static int64_t elapsed(const cnr_device *device, void *from, void *to) {
    (void)device;
    return (int64_t)(*(uint64_t *)to - *(uint64_t *)from);
}

/* Lets time pass until an event. */
static cnr_status await(const cnr_device *device, void *event, cnr_error *err) {
    (void)err;
    pass(device, *(uint64_t *)event);
    return CNR_OK;
}

const cnr_device_class sim_devices = {
    .size = sizeof(cnr_device_class),
    .name = "device-sim",
    .family = "sim",
    .summary = "The units of a board that is simulated",
    .count = count,
    .describe = describe,
    .max_score = most,
    .open = device_open,
    .close = device_close,
    .alloc = mem_alloc,
    .free = mem_free,
    .view = mem_view,
    .unview = mem_unview,
    .write = write_mem,
    .read = read_mem,
    .copy = copy_mem,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .sync = stream_sync,
    .event_record = record,
    .event_wait = wait,
    .event_sync = await,
    .event_free = event_free,
    .event_elapsed = elapsed,
};
