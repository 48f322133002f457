/* The group as cnnrun sees it: recognises the launcher and loads the module. */
#include "group.h"
#include "late.h"
#include <stdlib.h>

const cnr_host *group_host;
static const group_calls *module;
static int32_t is_open;

const group_calls *group_opened(void) { return is_open ? module : NULL; }

/* ---- launcher ---- */

/* A whole number of the environment; -1: not set. */
static int32_t number_of(const char *name) {
    const char *text = getenv(name);
    return text && *text ? (int32_t)strtol(text, NULL, 10) : -1;
}

/* Number of processes, and *rank, if mpirun of Open MPI or MPICH, or Slurm's srun with either
 * interface, started this one; else 0. Slurm's own variables also exist in a batch script, a single
 * process, but PMIX_RANK does not. */
static int32_t launched(int32_t *rank) {
    static const char *const names[][3] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL},
                                           {"PMI_SIZE", "PMI_RANK", NULL},
                                           {"SLURM_STEP_NUM_TASKS", "PMIX_RANK", NULL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int32_t ranks = number_of(names[i][0]), own = number_of(names[i][1]);
        if (ranks < 1 || own < 0 || own >= ranks) continue;
        *rank = own;
        return ranks;
    }
    return 0;
}

/* ---- hooks; the state is the module's ---- */

/* Opens the module with MPI, and joins the group. */
static cnr_status open_group(const cnr_group_options *options, void **state, int32_t *rank,
                             int32_t *ranks, cnr_error *err) {
    *state = NULL;
    if (!module) {
        const group_calls_fn get =
            (group_calls_fn)late_function(group_host, &module, "group-mpi/mpi", "group_calls_get",
                                          err);
        if (!get) return CNR_E_IO;
        module = get(group_host);
    }
    const cnr_status status = module->open(options, rank, ranks, err);
    is_open = status == CNR_OK;
    return status;
}

/* Method sum_begin: starts summing n elements at `data` over all processes, in place. */
static cnr_status sum_begin(void *state, void *data, int64_t n, int32_t dtype, cnr_error *err) {
    (void)state;
    return module->sum_begin(data, n, dtype, err);
}

/* Method sum_wait: waits until the sum at `data` is there. */
static cnr_status sum_wait(void *state, void *data, cnr_error *err) {
    (void)state;
    return module->sum_wait(data, err);
}

/* Method broadcast: sends data from process 0 to all. */
static cnr_status broadcast(void *state, void *data, uint64_t bytes, cnr_error *err) {
    (void)state;
    return module->broadcast(data, bytes, err);
}

/* Method barrier: waits until all processes have called it. */
static cnr_status barrier(void *state, cnr_error *err) {
    (void)state;
    return module->barrier(err);
}

/* Ends all processes. */
static void abort_all(void *state, int32_t code) {
    (void)state;
    module->abort(code);
}

/* Method advance: tests all pending sums. */
static void advance(void *state) {
    (void)state;
    module->advance();
}

/* Method close: leaves the group, which ends MPI. */
static void close_group(void *state) {
    (void)state;
    is_open = 0;
    module->close();
}

static const cnr_group group = {.size = sizeof(cnr_group),
                                .name = "mpi",
                                .summary = "processes started by mpirun or srun",
                                .launched = launched,
                                .open = open_group,
                                .sum_begin = sum_begin,
                                .sum_wait = sum_wait,
                                .broadcast = broadcast,
                                .barrier = barrier,
                                .abort = abort_all,
                                .close = close_group,
                                .sum_begin_op = "group_sum_begin",
                                .sum_wait_op = "group_sum_wait",
                                .advance = advance};

/* Registers the group and the operators that sum gradients. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_item items[] = {{CNR_KIND_GROUP, &group},
                                     {CNR_KIND_OPERATOR, &group_sum_begin},
                                     {CNR_KIND_OPERATOR, &group_sum_wait}};
    (void)err;
    group_host = host;
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("group-mpi", "0.1", "groups of processes by MPI", "MIT", init, CNR_TOUCHES_NETWORK)
