/* The devices of all platforms, and known faults of some of them. */
#define _GNU_SOURCE
#include "probe.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const cnr_host *ocl_host;

static struct {
    pthread_mutex_t lock;
    int looked;
    int32_t n;
    ocl_found *at;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Parts of names; "" fits all. A row needs the observation that forced it. */
static const struct {
    const char *platform, *device, *driver;
    uint32_t quirks;
    const char *why;
} quirks[] = {
    {"", "FPGA", "", OCL_REFUSE, "kernels of an FPGA are not built while a program runs"},
};

int ocl_contains(const char *text, const char *part) {
    const size_t n = strlen(part);
    for (; n && *text; text++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) i++;
        if (i == n) return 1;
    }
    return n == 0;
}

/* Writes a text that a device tells, without spaces around, to `out`; "": it tells none. */
static void device_text(cl_device_id device, cl_device_info what, char *out, size_t room) {
    char text[1024] = "";
    size_t n = 0;
    out[0] = 0;
    if (ocl_cl.clGetDeviceInfo(device, what, sizeof text - 1, text, &n) != CL_SUCCESS) return;
    const char *from = text;
    while (*from == ' ') from++;
    snprintf(out, room, "%.*s", (int)(room - 1), from);
}

/* Sets f->refused to the reason if the device can't be used, and adds the quirks that are known of
 * it to f->quirks. */
static void judge(ocl_found *f) {
    cl_bool compiler = CL_FALSE, available = CL_FALSE, little = CL_FALSE;
    const cl_device_id id = f->device;
    ocl_cl.clGetDeviceInfo(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, NULL);
    ocl_cl.clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    ocl_cl.clGetDeviceInfo(id, CL_DEVICE_ENDIAN_LITTLE, sizeof little, &little, NULL);
    const int host_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (!available) f->refused = "it is not available";
    else if (!compiler) f->refused = "it has no compiler";
    else if ((little != CL_FALSE) != host_little) f->refused = "its byte order is not the host's";
    else if (f->level < 11) f->refused = "its OpenCL is older than 1.1";
    else if (f->level < 12 && (!ocl_cl.clEnqueueMarker || !ocl_cl.clEnqueueWaitForEvents))
        f->refused = "the OpenCL library lacks what devices of 1.1 need";
    else if (f->level >= 12 &&
             (!ocl_cl.clEnqueueMarkerWithWaitList || !ocl_cl.clEnqueueBarrierWithWaitList))
        f->refused = "the OpenCL library is older than the device";
    for (size_t i = 0; i < sizeof quirks / sizeof quirks[0]; i++) {
        if (!ocl_contains(f->platform_name, quirks[i].platform) ||
            !ocl_contains(f->name, quirks[i].device) || !ocl_contains(f->driver, quirks[i].driver))
            continue;
        f->quirks |= quirks[i].quirks;
        if (quirks[i].quirks & OCL_REFUSE) f->refused = quirks[i].why;
    }
}

/* The version in OpenCL's text as major * 10 + minor, such as 12; 0: it is no such text. */
static int32_t level_of(const char *version) {
    int major = 0, minor = 0;
    return sscanf(version, "OpenCL %d.%d", &major, &minor) == 2 ? major * 10 + minor : 0;
}

/* Fills f with what a device says of itself; number: its place among all. */
static void fill(ocl_found *f, cl_platform_id platform, cl_device_id device, int32_t number) {
    cl_device_local_mem_type local = CL_NONE;
    memset(f, 0, sizeof *f);
    f->platform = platform;
    f->device = device;
    ocl_cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof f->platform_name - 1,
                             f->platform_name, NULL);
    device_text(device, CL_DEVICE_NAME, f->name, sizeof f->name);
    device_text(device, CL_DEVICE_VENDOR, f->vendor, sizeof f->vendor);
    device_text(device, CL_DEVICE_VERSION, f->version, sizeof f->version);
    device_text(device, CL_DRIVER_VERSION, f->driver, sizeof f->driver);
    ocl_cl.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof f->type, &f->type, NULL);
    ocl_cl.clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof f->units, &f->units, NULL);
    ocl_cl.clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof f->memory, &f->memory, NULL);
    ocl_cl.clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_TYPE, sizeof local, &local, NULL);
    ocl_cl.clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof f->local_bytes, &f->local_bytes,
                           NULL);
    f->local_real = local == CL_LOCAL;
    f->level = level_of(f->version);
    snprintf(f->key, sizeof f->key, "%.60s/%d/%.50s", f->platform_name, (int)number, f->name);
    judge(f);
}

/* Appends a platform's devices, none of one that fails; 0: no memory. */
static int take_platform(cl_platform_id platform) {
    cl_uint n = 0;
    if (ocl_cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n) != CL_SUCCESS || n == 0)
        return 1;
    if (n > 64) n = 64;
    cl_device_id *ids = ocl_host->alloc(n * sizeof *ids);
    ocl_found *grown = ocl_host->resize(all.at, (size_t)(all.n + (int32_t)n) * sizeof *grown);
    if (grown) all.at = grown;
    if (!ids || !grown) {
        ocl_host->free(ids);
        return 0;
    }
    const cl_int got = ocl_cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids, NULL);
    for (cl_uint i = 0; got == CL_SUCCESS && i < n; i++)
        fill(&all.at[all.n++], platform, ids[i], (int32_t)i);
    ocl_host->free(ids);
    return 1;
}

/* Lists all devices in `all`, once; returns how many, negative: failed. 0 where there is no
 * library. */
static int32_t look(cnr_error *err) {
    cl_platform_id platforms[32];
    const char *why;
    cl_uint n = 0;
    if (!ocl_api_open(&why)) {
        ocl_host->log(CNR_LOG_INFO, "opencl", "%s", why);
        return 0;
    }
    if (!ocl_probe()) return 0;
    if (ocl_cl.clGetPlatformIDs(32, platforms, &n) != CL_SUCCESS) n = 0; /* none is an error too */
    for (cl_uint i = 0; i < n && i < 32; i++)
        if (!take_platform(platforms[i]))
            return ocl_host->fail(err, CNR_E_MEMORY, "opencl", "no memory for the list of devices");
    all.looked = 1;
    return all.n;
}

int32_t ocl_count(cnr_error *err) {
    pthread_mutex_lock(&all.lock);
    if (!all.looked) all.n = 0;
    const int32_t n = all.looked ? all.n : look(err);
    pthread_mutex_unlock(&all.lock);
    return n;
}

/* Fills *out for the device of that index and returns it, NULL: there is none; all but the score,
 * which is 0 with `why` for what can't be driven. */
const ocl_found *ocl_describe(int32_t index, cnr_device_info *out) {
    if (index < 0 || index >= all.n) return NULL;
    const ocl_found *f = &all.at[index];
    snprintf(out->key, sizeof out->key, "%s", f->key);
    snprintf(out->name, sizeof out->name, "%s", f->name);
    snprintf(out->driver, sizeof out->driver, "%.60s %.40s%s", f->platform_name, f->driver,
             ocl_half_emulated() ? ", halves emulated" : ""); /* plans and times are kept by it */
    if (f->refused) snprintf(out->why, sizeof out->why, "%s", f->refused);
    out->concurrency = (int32_t)f->units;
    out->memory_bytes = f->memory;
    return f;
}

void ocl_score(const ocl_found *f, const char *cls, const char *family, ocl_local local,
               cnr_device_info *out) {
    const char *forced = secure_getenv("CNNRUN_OPENCL_CLASS");
    if (f->refused) return;
    if (forced && *forced && strcmp(forced, cls) != 0) {
        snprintf(out->why, sizeof out->why, "CNNRUN_OPENCL_CLASS is %.60s", forced);
        return;
    }
    const int own = family && (ocl_contains(f->name, family) || ocl_contains(f->version, family));
    const int suits = local == (f->local_real ? OCL_LOCAL_OWN : OCL_LOCAL_SHARED);
    out->score = own ? OCL_SCORE_OWN : suits ? OCL_SCORE_SUITS : OCL_SCORE_DRIVES;
}

int32_t ocl_most(const char *const *files, int32_t here, int32_t elsewhere) {
    for (; *files; files++)
        if (access(*files, F_OK) == 0) return here;
    return elsewhere;
}

void ocl_forget(void) {
    pthread_mutex_lock(&all.lock);
    if (ocl_host) ocl_host->free(all.at);
    all.at = NULL;
    all.n = all.looked = 0;
    pthread_mutex_unlock(&all.lock);
}
