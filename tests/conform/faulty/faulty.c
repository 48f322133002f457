/* The entry of three plugins: one of descriptors that do nothing wrong, two of those with a planted
 * fault each. */
#include "faulty.h"

const cnr_host *faulty_host;

/* Registers all that is faulty. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *r, cnr_error *err) {
    (void)err;
    faulty_host = host;
    CNR_TRY(faulty_add_devices(r));
#ifdef FAULTY_DEVICES
    return CNR_OK;
#endif
    CNR_TRY(faulty_add_encodings(r));
    CNR_TRY(faulty_add_gauges(r));
    CNR_TRY(faulty_add_readers(r));
    CNR_TRY(faulty_add_rewrites(r));
    return faulty_add_kernels(r);
}

#ifdef FAULTY_SOUND
CNR_PLUGIN("sound", "1.0", "for tests of conform: nothing is wrong", "MIT", init,
           CNR_TOUCHES_NOTHING)
#elif defined(FAULTY_DEVICES)
CNR_PLUGIN("devices", "1.0", "for tests of devicecheck: a planted fault each", "MIT", init,
           CNR_TOUCHES_NOTHING)
#else
CNR_PLUGIN("faulty", "1.0", "for tests of conform: a planted fault each", "MIT", init,
           CNR_TOUCHES_NOTHING)
#endif
