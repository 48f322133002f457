/* A hash table from value names to graph values. */
#include "onnx.h"

static uint32_t hash(const char *name) {
    uint32_t h = 2166136261u; /* FNV-1a */
    while (*name) h = (h ^ (uint8_t)*name++) * 16777619u;
    return h;
}

static struct onnx_slot *slot(const onnx_names *names, const char *name) {
    uint32_t i = hash(name) & (names->room - 1);
    while (names->slots[i].name && strcmp(names->slots[i].name, name) != 0)
        i = (i + 1) & (names->room - 1);
    return &names->slots[i];
}

cnr_status onnx_names_set(onnx_names *names, const char *name, cnr_value value) {
    if (2 * names->n >= names->room) {
        onnx_names grown = {.n = names->n, .room = names->room ? names->room * 2 : 256};
        grown.slots = (struct onnx_slot *)imp_host->alloc(grown.room * sizeof *grown.slots);
        if (!grown.slots) return CNR_E_MEMORY;
        memset(grown.slots, 0, grown.room * sizeof *grown.slots);
        for (uint32_t i = 0; i < names->room; i++)
            if (names->slots[i].name) *slot(&grown, names->slots[i].name) = names->slots[i];
        imp_host->free(names->slots);
        *names = grown;
    }
    struct onnx_slot *s = slot(names, name);
    if (!s->name) names->n++;
    s->name = name;
    s->value = value;
    return CNR_OK;
}

int onnx_names_get(const onnx_names *names, const char *name, cnr_value *out) {
    if (names->room == 0) return 0;
    const struct onnx_slot *s = slot(names, name);
    if (!s->name) return 0;
    *out = s->value;
    return 1;
}

void onnx_names_free(onnx_names *names) {
    imp_host->free(names->slots);
    memset(names, 0, sizeof *names);
}
