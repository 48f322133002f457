/* Reserves half of a 32-bit address space before a program begins, so that 2 GB are left to it:
 *     arm-linux-gnueabihf-gcc -shared -fPIC -o reserve.so reserve.c
 *     qemu-arm-static -E LD_PRELOAD=./reserve.so PROGRAM
 * qemu 7.2 neither runs with a smaller space (-R) nor heeds a limit that the program sets. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Runs before main: takes eight pieces of 256 MB. */
__attribute__((constructor)) static void reserve(void) {
    for (int i = 0; i < 8; i++)
        if (mmap(NULL, 256u << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
            MAP_FAILED) {
            fputs("reserve: no piece of 256 MB is left\n", stderr);
            exit(1);
        }
}
