/* Eviction: LeNet under bounds that do not hold all its prepared weights: blobs go and are made
 * again, the device never holds more than the bound, and the answers stay to the last bit. */
#include "guests.h"

static const char *const packed[] = {"dense=dense_f32_turned", NULL};

/* ---- what the device really holds: its allocations, counted from outside ---- */

static struct counted {
    const cnr_device_class *real;
    cnr_device_class cls;
    uint64_t now, peak;
    int64_t allocations;
} device;

/* Method alloc that counts bytes. */
static cnr_status count_alloc(const cnr_device *d, cnr_mem *out, cnr_error *err) {
    const cnr_status status = device.real->alloc(d, out, err);
    if (status) return status;
    device.now += out->bytes;
    device.allocations++;
    if (device.now > device.peak) device.peak = device.now;
    return CNR_OK;
}

/* Method free that counts bytes. */
static void count_free(const cnr_device *d, cnr_mem *mem) {
    device.now -= mem->bytes;
    device.real->free(d, mem);
}

/* Puts the counting hooks into the CPU device; false: there is none. */
static bool count_device(void) {
    cnri_devices_ask(&guests_rt->devices, "cpu", NULL);
    for (int32_t i = 0; i < guests_rt->devices.n; i++) {
        cnr_device *d = &guests_rt->devices.at[i]->device;
        if (strcmp(guests_rt->devices.at[i]->name, "cpu") != 0) continue;
        device.real = d->cls;
        device.cls = *d->cls;
        device.cls.alloc = count_alloc;
        device.cls.free = count_free;
        d->cls = &device.cls;
        return true;
    }
    return false;
}

/* ---- tests ---- */

static float plain[MOST_DIGITS * 10], bounded[MOST_DIGITS * 10];

/* Tests: n digits under a bound of bytes answer as plain does, never hold more and give all back;
 * all_fit: its blobs weights are prepared once and none is evicted, else n at least are. */
static void under(uint64_t bound, int32_t blobs, int32_t n, bool all_fit) {
    const cnri_plan_options o = {.device = "cpu", .kernels = packed, .memory_bound = bound};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = guests_lenet(&o);
    cnr_plan *plan = NULL;
    const uint64_t before = device.now;
    device.peak = device.now;
    memset(bounded, 0, sizeof bounded);
    if (!ok(m && !guests_run(m, n, 1, bounded, &err) && !cnr_plan_for(m, NULL, 0, &plan, &err),
            "%llu bytes: it runs: %s", (unsigned long long)bound, err.text))
        return;
    cnri_residency_stats stats;
    cnri_residency_stats_of(plan, &stats);
    const uint64_t arena = cnr_plan_arena_bytes(plan), held = device.peak - before;
    ok(held <= bound && stats.peak <= bound - arena,
       "the device held %llu at most, %llu of it arena", (unsigned long long)held,
       (unsigned long long)arena);
    ok(memcmp(plain, bounded, sizeof plain) == 0, "%d answers are the same to the last bit", n);
    const uint64_t whole = cnr_plan_weight_bytes(plan);
    ok(whole >= stats.peak && (all_fit || whole > bound - arena), "%llu bytes of weights in all",
       (unsigned long long)whole);
    if (all_fit) ok(stats.evicted == 0 && stats.prepared == (uint64_t)blobs, "nothing had to go");
    else
        ok(stats.evicted >= (uint64_t)n && stats.prepared >= (uint64_t)n + (uint64_t)blobs - 1,
           "%llu blobs were released, %llu prepared", (unsigned long long)stats.evicted,
           (unsigned long long)stats.prepared);
    cnr_plan_release(plan);
    cnr_release(m);
    is_int((long long)device.now, (long long)before, "and all is given back");
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(!guests_open(1, &err), "plugins load: %s", err.text) || !ok(count_device(), "a device"))
        return done();
    const cnri_plan_options o = {.device = "cpu", .kernels = packed};
    cnr_model *m = guests_lenet(&o);
    const int32_t n = m ? guests_load_digits(m->graph) : 0;
    if (!ok(n > 0 && !guests_run(m, n, 1, plain, &err), "%d digits without a bound: %s", n,
            err.text))
        return done();
    ok(guests_right(plain, n) >= n * 97 / 100, "%d of them right", guests_right(plain, n));
    cnr_plan *plan = NULL;
    cnr_plan_for(m, NULL, 0, &plan, &err);
    uint64_t sum = 0, largest = 0, bytes;
    const char *name;
    int32_t blobs = 0;
    for (; cnri_residency_blob(plan, blobs, &name, &bytes); blobs++) {
        note("%s: %llu bytes", name, (unsigned long long)bytes);
        sum += bytes;
        if (bytes > largest) largest = bytes;
    }
    const uint64_t arena = cnr_plan_arena_bytes(plan);
    cnr_plan_release(plan);
    cnr_release(m);
    is_int(blobs, 4, "four layers, four blobs");
    under(arena + sum, blobs, n, true);
    under(arena + sum - 1, blobs, n, false);
    under(arena + largest + 4096, blobs, n, false);
    under(arena + largest, blobs, n, false);
    const cnri_plan_options small = {.device = "cpu",
                                     .kernels = packed,
                                     .memory_bound = arena + 4096};
    m = guests_lenet(&small);
    is_int(cnr_plan_for(m, NULL, 0, &plan, &err), CNR_E_LIMIT,
           "a bound below the smallest slices is none");
    has_text(err.text, "too small", "and says so");
    has_text(err.where, "ip1", "naming the layer");
    cnr_close(guests_rt);
    return done();
}
