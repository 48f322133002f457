/* A map from strings to pointers: open addressing, never more than half full. */
#include "base/base.h"
#include <string.h>

/* One slot of the hash table. */
struct cnri_map_slot {
    char *key; /* NULL: the slot is free */
    size_t length;
    void *value;
};

/* 64-bit FNV-1a hash of n bytes, with the high half mixed into the low one. */
static uint64_t hash_of(const char *key, size_t n) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a hash */
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)key[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

/* Finds the slot of `key`, or the free slot where it belongs. capacity is a power of two. */
static struct cnri_map_slot *probe(struct cnri_map_slot *slots, int32_t capacity, const char *key,
                                   size_t n) {
    const uint32_t mask = (uint32_t)capacity - 1;
    uint32_t i = (uint32_t)hash_of(key, n) & mask;
    while (slots[i].key && (slots[i].length != n || memcmp(slots[i].key, key, n) != 0))
        i = (i + 1) & mask;
    return &slots[i];
}

/* Doubles the slots (16 at first) and moves all keys. False: out of memory; the map is unchanged.
 */
static bool grow(cnri_map *map) {
    if (map->capacity > INT32_MAX / 2) return false;
    const int32_t capacity = map->capacity ? map->capacity * 2 : 16;
    bool overflow = false;
    const size_t bytes = cnri_mul((size_t)capacity, sizeof *map->slots, &overflow);
    struct cnri_map_slot *slots = overflow ? NULL : cnri_alloc_zero(bytes);
    if (!slots) return false;
    for (int32_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key)
            *probe(slots, capacity, map->slots[i].key, map->slots[i].length) = map->slots[i];
    cnri_free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

/* The key's value, where the key has `length` bytes and need not end in NUL; NULL: it is not in the
 * map. */
void *cnri_map_get_n(const cnri_map *map, const char *key, size_t length) {
    if (map->n == 0 || !key) return NULL;
    return probe(map->slots, map->capacity, key, length)->value;
}

cnr_status cnri_map_set_n(cnri_map *map, const char *key, size_t length, void *value) {
    if (!key || length == SIZE_MAX) return CNR_E_ARG;
    if (map->n >= map->capacity / 2 && !grow(map)) return CNR_E_MEMORY;
    struct cnri_map_slot *slot = probe(map->slots, map->capacity, key, length);
    if (!slot->key) {
        slot->key = cnri_alloc(length + 1);
        if (!slot->key) return CNR_E_MEMORY;
        memcpy(slot->key, key, length);
        slot->key[length] = 0;
        slot->length = length;
        map->n++;
    }
    slot->value = value;
    return CNR_OK;
}

void *cnri_map_get(const cnri_map *map, const char *key) {
    return key ? cnri_map_get_n(map, key, strlen(key)) : NULL;
}

cnr_status cnri_map_set(cnri_map *map, const char *key, void *value) {
    return key ? cnri_map_set_n(map, key, strlen(key), value) : CNR_E_ARG;
}

void cnri_map_free(cnri_map *map) {
    for (int32_t i = 0; i < map->capacity; i++) cnri_free(map->slots[i].key);
    cnri_free(map->slots);
    *map = (cnri_map){0};
}
