/* Keeps built programs between runs, so that only the very first start compiles. The host stores
 * one block for each program, and returns only blocks that nobody else could have written. */
#include "ocl.h"

#include <stdio.h>

#define MOST_BINARY ((uint64_t)1 << 30)

ocl_key ocl_cache_key(const ocl_device *d, const char *head, const char *text,
                      const char *options) {
    const char *const parts[] = {"cnnrun cl 1\n",
                                 CNNRUN_VERSION,
                                 d->found->platform_name,
                                 d->found->name,
                                 d->found->vendor,
                                 d->found->version,
                                 d->found->driver,
                                 options,
                                 head,
                                 text};
    uint8_t digests[sizeof parts / sizeof parts[0]][32], digest[32];
    ocl_key key;
    /* the digest of digests: no two lists of parts run together to the same text */
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ocl_host->sha256(parts[i], strlen(parts[i]), digests[i]);
    ocl_host->sha256(digests, sizeof digests, digest);
    for (size_t i = 0; i < 32; i++) snprintf(key.hex + 2 * i, 3, "%02x", digest[i]);
    return key;
}

/* Name of the cache file for a key. */
static void name_of(const ocl_key *key, char name[80]) { snprintf(name, 80, "%s.clbin", key->hex); }

/* Cache folder for host->cache_load and cache_save, owned by the core; NULL: the user's folder. */
static const char *folder_of(const ocl_device *d) {
    return d->device ? d->device->cache_dir : NULL;
}

/* The binary, of *bytes, by host->alloc; NULL is a miss, and *why says which kind. */
unsigned char *ocl_cache_load(const ocl_device *d, const ocl_key *key, size_t *bytes,
                              const char **why) {
    char name[80];
    void *binary = NULL;
    uint64_t n = 0;
    cnr_error err = CNR_ERROR_INIT;
    name_of(key, name);
    const cnr_status status =
        ocl_host->cache_load(folder_of(d), name, MOST_BINARY, &binary, &n, &err);
    *bytes = (size_t)n;
    *why = status == CNR_E_NOT_FOUND ? "not there"
           : status == CNR_E_STATE   ? "others could have written it"
                                     : "damaged";
    if (status && status != CNR_E_NOT_FOUND)
        ocl_host->log(CNR_LOG_WARN, "opencl", "%s %s: compiled anew", err.where, err.text);
    return binary;
}

void ocl_cache_store(const ocl_device *d, const ocl_key *key, const unsigned char *binary,
                     size_t bytes) {
    char name[80];
    cnr_error err = CNR_ERROR_INIT;
    name_of(key, name);
    if (bytes == 0 || bytes > MOST_BINARY) return;
    if (ocl_host->cache_save(folder_of(d), name, binary, bytes, &err))
        ocl_host->log(CNR_LOG_INFO, "opencl", "%s: %s: compiled again next time", err.where,
                      err.text);
}
