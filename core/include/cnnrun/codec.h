/* Codecs: compress or encrypt the parts of stored plans. */
#pragma once

#include <cnnrun/status.h>

enum { CNR_CODEC_KEYED = 1 }; /* encode and decode need a key */

/* A codec. The plugin owns this constant struct, which stays valid until exit. Any thread may call
 * its hooks, several at once. */
typedef struct cnr_codec {
    uint32_t size;
    uint32_t flags; /* CNR_CODEC_... */
    const char *name;
    const char *summary;
    /* Returns the most bytes that `bytes` bytes can take once they are encoded; 0: too many. */
    uint64_t (*bound)(uint64_t bytes);
    /* Encodes `bytes` bytes. *n: the room at `to`, at least bound(bytes); it becomes the length of
     * the result. key: `key_bytes` bytes, at least 1, for a codec that is keyed; else NULL. */
    cnr_status (*encode)(const void *key, uint64_t key_bytes, const void *from, uint64_t bytes,
                         void *to, uint64_t *n, cnr_error *err);
    /* Decodes to exactly `n` bytes. CNR_E_FORMAT: the data is damaged, or another key's. It must be
     * safe for any input. */
    cnr_status (*decode)(const void *key, uint64_t key_bytes, const void *from, uint64_t bytes,
                         void *to, uint64_t n, cnr_error *err);
} cnr_codec;
