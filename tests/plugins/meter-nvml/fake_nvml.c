/* A made-up libnvidia-ml: two cards of 250 W, of which the second has no counter; by its mean of
 * the last second the second has 90 W, and so has the first where "mean" is all that there is.
 * CNNRUN_FAKE_NVML says what is wrong with them: "start", "count", "lost" (the second), "read",
 * "mean", "slow" (each call takes two milliseconds of a processor, as those of real ones do). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* True if the test asks for this fault, by the environment variable CNNRUN_FAKE_NVML. */
static int wrong(const char *what) {
    const char *is = getenv("CNNRUN_FAKE_NVML");
    return is && strcmp(is, what) == 0;
}

int nvmlInit_v2(void);  /* starts, or fails if asked to */
int nvmlShutdown(void); /* ends; nothing is held */
static char cards[2];
/* Takes some time, if that is the fault. */
static void work(void) {
    struct timespec t;
    long long begin = -1, now = 0;
    while (wrong("slow") && (begin < 0 || now - begin < 2000000)) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = (long long)t.tv_sec * 1000000000 + t.tv_nsec;
        if (begin < 0) begin = now;
    }
}
int nvmlDeviceGetCount_v2(unsigned *n); /* tells two cards */
/* Gives a card's handle; the second may be lost. */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
/* Tells card 0's counter of energy; the other has none. */
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts); /* tells 90 watts */
const char *nvmlErrorString(int code);                           /* the text of an error code */

/* Starts; fails, if that is the fault. */
int nvmlInit_v2(void) { return wrong("start") ? 9 : 0; }
/* Ends; returns 0. */
int nvmlShutdown(void) { return 0; }
/* Two cards. */
int nvmlDeviceGetCount_v2(unsigned *n) {
    *n = 2;
    return wrong("count") ? 999 : 0;
}
/* *device: the card of an index; an error if it is lost. */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = index < 2 ? &cards[index] : NULL;
    return wrong("lost") && index == 1 ? 15 : 0;
}
/* *millijoules that rise with the time, of card 0; 3: it has none, 15: lost. */
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    struct timespec t;
    work();
    if (device != &cards[0]) return 3;
    if (wrong("read")) return 15;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *millijoules = (unsigned long long)t.tv_sec * 250000 + (unsigned long long)t.tv_nsec / 4000;
    return 0;
}
/* *milliwatts: always 90 W; returns 0. */
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    (void)device;
    work();
    *milliwatts = 90000;
    return 0;
}
/* A field value of NVML. */
struct field {
    unsigned id, scope;
    long long time, latency;
    int type, status;
    unsigned long long value;
};
/* Tells card 0's mean power, 250 watts. */
int nvmlDeviceGetFieldValues(void *device, int n, struct field *f);
/* Card 0's field of mean power, 250 W; other fields have status 3. */
int nvmlDeviceGetFieldValues(void *device, int n, struct field *f) {
    work();
    f->status = f->id == 186 && n == 1 && device == &cards[0] && !wrong("mean") ? 0 : 3;
    f->value = 250000;
    return 0;
}
/* Text of an error code. */
const char *nvmlErrorString(int code) {
    return code == 9 ? "Driver Not Loaded" : code == 15 ? "GPU is lost" : "Unknown Error";
}

/* ---- clocks: of the first card, which is at 1500 MHz; the second tells none ---- */

enum { GRAPHICS, MEMORY = 2 };
static unsigned application = 1500;

/* Tells four steps for the memory's clock. */
int nvmlDeviceGetSupportedGraphicsClocks(void *device, unsigned memory, unsigned *n, unsigned *mhz);
/* Tells the present clock in MHz. */
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
/* Tells the clock that was set, in MHz. */
int nvmlDeviceGetApplicationsClock(void *device, int type, unsigned *mhz);
/* Sets card 0's clock, or fails if asked to. */
int nvmlDeviceSetApplicationsClocks(void *device, unsigned memory, unsigned graphics);
/* Tells that the clocks may be set. */
int nvmlDeviceGetAPIRestriction(void *device, int what, int *is);
int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2]); /* tells a load of 42 % */
/* Tells 44 degrees. */
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees);

/* Four clocks in MHz for the memory's clock; 7: no room, or another clock. */
int nvmlDeviceGetSupportedGraphicsClocks(void *device, unsigned memory, unsigned *n,
                                         unsigned *mhz) {
    static const unsigned all[] = {1980, 1500, 1000, 345};
    (void)device;
    if (memory != 2619 || *n < 4) return 7;
    memcpy(mhz, all, sizeof all);
    *n = 4;
    return 0;
}
/* *mhz: the clock now, of graphics or else memory; returns 0. */
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
    (void)device;
    *mhz = type == GRAPHICS ? application : 2619;
    return 0;
}
/* *mhz: the clock that was set; 3: card 1 has none. */
int nvmlDeviceGetApplicationsClock(void *device, int type, unsigned *mhz) {
    if (device != &cards[0]) return 3;
    return nvmlDeviceGetClockInfo(device, type, mhz);
}
/* Sets card 0's clock; 3: another card or memory clock, 4: no rights. */
int nvmlDeviceSetApplicationsClocks(void *device, unsigned memory, unsigned graphics) {
    if (device != &cards[0] || memory != 2619) return 3;
    if (wrong("set")) return 4;
    application = graphics;
    return 0;
}
/* *is: always 1, the clocks need rights; returns 0. */
int nvmlDeviceGetAPIRestriction(void *device, int what, int *is) {
    (void)device, (void)what;
    *is = 1;
    return 0;
}
/* Load of a card and its memory in percent: 42 and 7; returns 0. */
int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2]) {
    (void)device;
    out[0] = 42;
    out[1] = 7;
    return 0;
}
/* *degrees: always 44; returns 0. */
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) {
    (void)device, (void)sensor;
    *degrees = 44;
    return 0;
}
