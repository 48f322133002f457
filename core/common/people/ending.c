/* Functions to call when a signal ends the process, in a list that handlers read without locks. */
#include "people/people.h"

enum { MOST = 8 };
typedef void (*ending_fn)(void *arg);
static struct {
    ending_fn fn;
    void *arg;
} list[MOST]; /* fn is written last and read first */

bool cnri_exit_hook_add(void (*fn)(void *arg), void *arg) {
    for (int i = 0; i < MOST; i++) {
        void *none = NULL;
        if (!__atomic_compare_exchange_n(&list[i].arg, &none, arg, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&list[i].fn, fn, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

void cnri_exit_hook_remove(void *arg) {
    for (int i = 0; i < MOST; i++) {
        if (__atomic_load_n(&list[i].arg, __ATOMIC_ACQUIRE) != arg) continue;
        __atomic_store_n(&list[i].fn, NULL, __ATOMIC_RELEASE);
        __atomic_store_n(&list[i].arg, NULL, __ATOMIC_RELEASE);
    }
}

void cnri_exit_hooks_run(void) {
    cnri_write_drop_all();
    for (int i = 0; i < MOST; i++) {
        const ending_fn fn = __atomic_load_n(&list[i].fn, __ATOMIC_ACQUIRE);
        if (fn) fn(list[i].arg);
    }
}
