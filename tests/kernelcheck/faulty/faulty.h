/* Shared by the parts of the faulty plugin. */
#ifndef FAULTY_H
#define FAULTY_H

#include <cnnrun/kit.h>

extern const cnr_host *faulty_host;
/* Registers the operators. */
cnr_status faulty_add_ops(struct cnr_registrar *registrar);
/* Registers the device that one process at a time can use. */
cnr_status faulty_add_lonely(struct cnr_registrar *registrar);

#endif
