/* Shared by the parts of the plugins sound, devices and faulty. */
#ifndef FAULTY_H
#define FAULTY_H

#include <cnnrun/kit.h>

#include <stdio.h>
#include <stdlib.h>

extern const cnr_host *faulty_host;
/* Registers the devices. */
cnr_status faulty_add_devices(struct cnr_registrar *r);
/* Registers the encodings. */
cnr_status faulty_add_encodings(struct cnr_registrar *r);
/* Registers meters and knobs. */
cnr_status faulty_add_gauges(struct cnr_registrar *r);
/* Registers sources and importers. */
cnr_status faulty_add_readers(struct cnr_registrar *r);
/* Registers the rewrites. */
cnr_status faulty_add_rewrites(struct cnr_registrar *r);
/* Registers the kernels. */
cnr_status faulty_add_kernels(struct cnr_registrar *r);

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
