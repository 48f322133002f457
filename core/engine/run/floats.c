/* Sets the float modes of the calling thread for a run: denormals are flushed to zero, because
 * they are slow and no result needs them. */
#include "run/session.h"
#include <fenv.h>

#if defined(__SSE__)
#define FLUSH_TO_ZERO 0x8000u
#define DENORMALS_ARE_ZERO 0x0040u
#define ROUNDING 0x6000u
void cnri_floats_enter(cnri_floats *saved) {
    const unsigned now = __builtin_ia32_stmxcsr();
    saved->control = now;
    __builtin_ia32_ldmxcsr((now | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO) & ~ROUNDING);
}
void cnri_floats_leave(const cnri_floats *saved) {
    /* exceptions raised during the run stay raised, as after any call */
    const unsigned raised = __builtin_ia32_stmxcsr() & 0x3fu;
    __builtin_ia32_ldmxcsr((unsigned)saved->control | raised);
}
#elif defined(__aarch64__)
#define FLUSH_TO_ZERO (UINT64_C(1) << 24)
#define ROUNDING (UINT64_C(3) << 22)
void cnri_floats_enter(cnri_floats *saved) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved->control));
    __asm__ volatile("msr fpcr, %0" : : "r"((saved->control | FLUSH_TO_ZERO) & ~ROUNDING));
}
void cnri_floats_leave(const cnri_floats *saved) {
    __asm__ volatile("msr fpcr, %0" : : "r"(saved->control));
}
/* NEON flushes denormals anyway; this makes other loops do the same. */
#elif defined(__arm__) && defined(__ARM_FP)
#define FLUSH_TO_ZERO (UINT32_C(1) << 24)
#define ROUNDING (UINT32_C(3) << 22)
#define RAISED 0x9fu
/* Reads the VFP's control and status register (FPSCR). */
static uint32_t modes(void) {
    uint32_t now;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(now));
    return now;
}
void cnri_floats_enter(cnri_floats *saved) {
    saved->control = modes();
    const uint32_t within = ((uint32_t)saved->control | FLUSH_TO_ZERO) & ~ROUNDING;
    __asm__ volatile("vmsr fpscr, %0" : : "r"(within));
}
void cnri_floats_leave(const cnri_floats *saved) {
    const uint32_t after = (uint32_t)saved->control | (modes() & RAISED);
    __asm__ volatile("vmsr fpscr, %0" : : "r"(after));
}
#else
void cnri_floats_enter(cnri_floats *saved) {
    saved->control = (uint64_t)fegetround();
    fesetround(FE_TONEAREST);
}
void cnri_floats_leave(const cnri_floats *saved) { fesetround((int)saved->control); }
#endif
