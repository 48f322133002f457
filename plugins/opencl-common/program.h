/* Programs that a device has built, is building, or is to build. */
#ifndef OCL_PROGRAM_H
#define OCL_PROGRAM_H

#include "ocl.h"

/* A kernel of `program` that a caller asked for: an entry of the program's list. */
typedef struct ocl_request {
    ocl_code code;
    struct ocl_program *program;
    pthread_t asker;
    int told; /* the asker knows how it ended */
    struct ocl_request *next;
    char name[];
} ocl_request;

enum { OCL_WAITS, OCL_BUILDS, OCL_DONE, OCL_FAILED };

/* Guarded by the device's lock, except `program` and `why` while it is being built, which belong
 * to the building thread. */
typedef struct ocl_program {
    struct ocl_program *next;
    const ocl_source *source;
    int32_t state;
    cl_program program;
    cnr_error why; /* why the build failed */
    ocl_request *requests;
    char *options;
    char head[];
} ocl_program;

/* program.c: from the cache of binaries, or from its source; the lock is not held. */
cnr_status ocl_program_build(ocl_device *d, ocl_program *p, cnr_error *err);

/* ---- builds.c ---- */

/* Counts a program that waits for its build; the lock is held. */
void ocl_builds_begin(ocl_device *d);
/* Nothing is being built any more, and nothing will. */
void ocl_builds_end(ocl_device *d);

#endif
