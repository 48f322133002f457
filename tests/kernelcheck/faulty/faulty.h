/* Shared by the parts of the faulty plugin. */
#ifndef FAULTY_H
#define FAULTY_H

#include <cnnrun/kit.h>

extern const cnr_host *faulty_host;
cnr_status faulty_add_ops(struct cnr_registrar *registrar);    /* faulty_ops.c */
cnr_status faulty_add_lonely(struct cnr_registrar *registrar); /* lonely.c */

#endif
