/* Interned names: equal strings get equal small numbers, for as long as the process lives. */
#include "base/base.h"
#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    cnri_map ids;           /* name -> its number, as a pointer */
    CNRI_VEC(char *) names; /* names.at[id - 1] */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Adds a name to the table and returns its id; 0: out of memory. */
static cnr_id add(const char *name) {
    char **slot = cnri_push(&table.names);
    if (!slot) return 0;
    *slot = cnri_strdup(name);
    const cnr_id id = (cnr_id)table.names.n;
    if (*slot && cnri_map_set(&table.ids, name, (void *)(uintptr_t)id) == CNR_OK) return id;
    cnri_free(*slot);
    table.names.n--;
    return 0;
}

cnr_id cnri_intern(const char *name) {
    if (!name || !*name) return 0;
    pthread_mutex_lock(&table.lock);
    cnr_id id = (cnr_id)(uintptr_t)cnri_map_get(&table.ids, name);
    if (!id) id = add(name);
    pthread_mutex_unlock(&table.lock);
    return id;
}

const char *cnri_name(cnr_id id) {
    const char *name = "";
    pthread_mutex_lock(&table.lock);
    if (id != 0 && id <= (cnr_id)table.names.n) name = table.names.at[id - 1];
    pthread_mutex_unlock(&table.lock);
    return name;
}
