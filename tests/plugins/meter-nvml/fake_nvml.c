/* A made-up libnvidia-ml: two cards of 250 W, of which the second has no counter. CNNRUN_FAKE_NVML says
 * what is wrong with them: "start", "count", "lost" (the second), "read". */
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int wrong(const char *what) {
    const char *is = getenv("CNNRUN_FAKE_NVML");
    return is && strcmp(is, what) == 0;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
const char *nvmlErrorString(int code);

int nvmlInit_v2(void) {
    return wrong("start") ? 9 : 0;
}
int nvmlShutdown(void) {
    return 0;
}
int nvmlDeviceGetCount_v2(unsigned *n) {
    *n = 2;
    return wrong("count") ? 999 : 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = (char *)0 + index + 1;
    return wrong("lost") && index == 1 ? 15 : 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    struct timespec t;
    if (device != (char *)0 + 1) return 3;
    if (wrong("read")) return 15;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *millijoules = (unsigned long long)t.tv_sec * 250000 + (unsigned long long)t.tv_nsec / 4000;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    (void)device;
    *milliwatts = 250000;
    return 0;
}
const char *nvmlErrorString(int code) {
    return code == 9 ? "Driver Not Loaded" : code == 15 ? "GPU is lost" : "Unknown Error";
}
