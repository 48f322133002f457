/* The group of this process: choosing a plugin, opening the group, and its calls. */
#include "group/group.h"

static struct {
    const cnr_group *group; /* NULL: no group is open */
    void *state;
    int32_t rank, ranks;
} joined = {.ranks = 1};

const cnr_group *cnri_group_descriptor(void) { return joined.group; }
int32_t cnri_group_rank(void) { return joined.rank; }
int32_t cnri_group_ranks(void) { return joined.ranks; }

/* The group by which this process was launched with others; *rank and *ranks say where. NULL: it
 * is alone. */
static const cnr_group *group_launched(int32_t *rank, int32_t *ranks) {
    const cnr_group *g;
    for (int32_t i = 0; (g = cnri_descriptor_at(CNR_KIND_GROUP, i)) != NULL; i++)
        if ((*ranks = g->launched(rank)) > 0) return g;
    *rank = 0;
    *ranks = 1;
    return NULL;
}

int32_t cnri_group_launched(int32_t *rank) {
    int32_t ranks;
    group_launched(rank, &ranks);
    return ranks;
}

/* Finds a group by name; "none": *out is NULL; NULL: the one that launched this process. */
static cnr_status find(const char *name, const cnr_group **out, cnr_error *err) {
    int32_t rank, ranks;
    *out = NULL;
    if (name && strcmp(name, "none") == 0) return CNR_OK;
    *out = name ? cnri_descriptor_find(CNR_KIND_GROUP, name) : group_launched(&rank, &ranks);
    if (*out || !name) return CNR_OK;
    return cnri_fail(err, CNR_E_NOT_FOUND, name,
                     "no loaded plugin has such a group of processes (cnnrun plugins lists them); "
                     "none: work alone");
}

cnr_status cnri_group_open(const char *name, const volatile int32_t *cancel, cnr_error *err) {
    const cnr_group_options options = {.size = sizeof options, .cancel = cancel};
    const cnr_group *g;
    if (joined.group) return CNR_OK;
    cnr_status status = find(name, &g, err);
    if (status || !g) return status;
    status = g->open(&options, &joined.state, &joined.rank, &joined.ranks, err);
    if (!status) joined.group = g;
    return status;
}

/* Replaces n numbers by their sums over all ranks. */
static cnr_status sum(void *data, int64_t n, int32_t dtype, cnr_error *err) {
    const cnr_group *g = joined.group;
    if (joined.ranks == 1) return CNR_OK;
    const cnr_status status = g->sum_begin(joined.state, data, n, dtype, err);
    return status ? status : g->sum_wait(joined.state, data, err);
}

cnr_status cnri_group_sum(double *data, int64_t n, cnr_error *err) {
    return sum(data, n, CNR_f64, err);
}

cnr_status cnri_group_sum_floats(float *data, int64_t n, cnr_error *err) {
    return sum(data, n, CNR_f32, err);
}

cnr_status cnri_group_any(bool here, bool *any, cnr_error *err) {
    double flags = here;
    const cnr_status status = cnri_group_sum(&flags, 1, err);
    *any = flags > 0;
    return status;
}

void cnri_group_poke(void) {
    if (joined.ranks > 1 && CNR_HAS(joined.group, advance)) joined.group->advance(joined.state);
}

cnr_status cnri_group_broadcast(void *data, uint64_t bytes, cnr_error *err) {
    if (joined.ranks == 1 || bytes == 0) return CNR_OK;
    return joined.group->broadcast(joined.state, data, bytes, err);
}

cnr_status cnri_group_barrier(cnr_error *err) {
    return joined.ranks == 1 ? CNR_OK : joined.group->barrier(joined.state, err);
}

void cnri_group_part(int64_t n, int64_t *begin, int64_t *end) {
    const int64_t each = n / joined.ranks,
                  more = n % joined.ranks; /* the first `more` ranks have one thing more */
    const int64_t rank = joined.rank;
    *begin = rank * each + (rank < more ? rank : more);
    *end = *begin + each + (rank < more);
}

void cnri_group_abort(int32_t code) {
    if (joined.group && joined.ranks > 1) joined.group->abort(joined.state, code);
}

void cnri_group_close(void) {
    if (joined.group) joined.group->close(joined.state);
    joined.group = NULL;
    joined.rank = 0;
    joined.ranks = 1;
}
