/* group-mpi: processes started by an MPI launcher. The MPI library is loaded when the group is
 * opened: mpi.c is a module of its own. */
#ifndef GROUP_MPI_GROUP_H
#define GROUP_MPI_GROUP_H

#include <cnnrun/kit.h>

/* The module's functions, as the hooks of cnr_group. */
typedef struct group_calls {
    cnr_status (*open)(const cnr_group_options *options, int32_t *rank, int32_t *ranks,
                       cnr_error *err);
    cnr_status (*sum_begin)(void *data, int64_t n, int32_t dtype, cnr_error *err);
    cnr_status (*sum_wait)(void *data, cnr_error *err);
    cnr_status (*broadcast)(void *data, uint64_t bytes, cnr_error *err);
    cnr_status (*barrier)(cnr_error *err);
    void (*abort)(int32_t code);
    void (*close)(void);
    void (*advance)(void);
} group_calls;
/* The module's only function. */
typedef const group_calls *(*group_calls_fn)(const cnr_host *host);

extern const cnr_host *group_host;
/* plugin.c: functions of the open group; NULL: none is open, so sums are copies. */
const group_calls *group_opened(void);

/* sums.c: sums as operators */
extern const cnr_op group_sum_begin, group_sum_wait;

#endif
