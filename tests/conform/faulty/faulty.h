/* Shared by the parts of the plugins sound, devices and faulty. */
#ifndef FAULTY_H
#define FAULTY_H

#include <cnnrun/kit.h>

#include <stdio.h>
#include <stdlib.h>

extern const cnr_host *faulty_host;
cnr_status faulty_add_devices(struct cnr_registrar *r);   /* device.c */
cnr_status faulty_add_encodings(struct cnr_registrar *r); /* encoding.c */
cnr_status faulty_add_gauges(struct cnr_registrar *r);    /* gauge.c */
cnr_status faulty_add_readers(struct cnr_registrar *r);   /* reader.c */
cnr_status faulty_add_rewrites(struct cnr_registrar *r);  /* rewrite.c */
cnr_status faulty_add_kernels(struct cnr_registrar *r);   /* kernel.c */

/* The plugin sound has the first of each list, which does nothing wrong; devices has all other
 * devices, faulty all others that are none, and one device that crashes. */
#ifdef FAULTY_SOUND
#define FAULTY_FIRST 0
/* How many of the rows are registered. */
#define FAULTY_PAST(rows) 1
#else
#define FAULTY_FIRST 1
/* How many of the rows are registered. */
#define FAULTY_PAST(rows) ((int32_t)CNR_ROWS(rows))
#endif

#endif
