/* Built programs on disk, so that only the first start of all compiles. One file a program:
 *
 *   "cnnrun cl 1\n"  length, 8 bytes  SHA-256 of the binary, 32 bytes  the binary
 *
 * Written through the host; a file that does not fit is a miss and replaced. */
#define _GNU_SOURCE
#include "ocl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "cnnrun cl 1\n"; /* the format's version is in here and in the key */
#define MAGIC_BYTES (sizeof magic - 1)
#define HEAD_BYTES (MAGIC_BYTES + 8 + 32)
#define MOST_BINARY ((size_t)1 << 30)

ocl_key ocl_cache_key(const ocl_device *d, const char *head, const char *text,
                      const char *options) {
    const char *const parts[] = {magic, CNNRUN_VERSION, d->found->platform_name, d->found->name,
                                 d->found->vendor, d->found->version, d->found->driver, options,
                                 head, text};
    uint8_t digests[sizeof parts / sizeof parts[0]][32], digest[32];
    ocl_key key;
    /* the digest of digests: no two lists of parts run together to the same text */
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ocl_host->sha256(parts[i], strlen(parts[i]), digests[i]);
    ocl_host->sha256(digests, sizeof digests, digest);
    for (size_t i = 0; i < 32; i++) snprintf(key.hex + 2 * i, 3, "%02x", digest[i]);
    return key;
}

/* "<folder>/<key>.clbin"; 0 when there is no folder. */
static int place_of(const ocl_key *key, char *path, size_t room) {
    const char *folder = secure_getenv("CNNRUN_CACHE"), *home = secure_getenv("HOME");
    int n = -1;
    if (folder && *folder) n = snprintf(path, room, "%s/%s.clbin", folder, key->hex);
    else if (home && *home)
        n = snprintf(path, room, "%s/.cache/cnnrun/%s.clbin", home, key->hex);
    return n > 0 && (size_t)n < room;
}

static int make_folders(char *path) {
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        const int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *p = '/';
        if (failed) return 0;
    }
    return 1;
}

static int head_fits(const unsigned char *head, size_t *bytes) {
    uint64_t length;
    if (memcmp(head, magic, MAGIC_BYTES) != 0) return 0;
    memcpy(&length, head + MAGIC_BYTES, 8);
    *bytes = (size_t)length;
    return length > 0 && length <= MOST_BINARY;
}

static unsigned char *read_file(FILE *file, size_t *bytes) {
    unsigned char head[HEAD_BYTES], extra;
    uint8_t digest[32];
    if (fread(head, 1, sizeof head, file) != sizeof head || !head_fits(head, bytes)) return NULL;
    unsigned char *binary = ocl_host->alloc(*bytes);
    if (!binary) return NULL;
    if (fread(binary, 1, *bytes, file) == *bytes && fread(&extra, 1, 1, file) == 0) {
        ocl_host->sha256(binary, *bytes, digest);
        if (memcmp(digest, head + MAGIC_BYTES + 8, 32) == 0) return binary;
    }
    ocl_host->free(binary);
    return NULL;
}

unsigned char *ocl_cache_load(const ocl_key *key, size_t *bytes, const char **why) {
    char path[1024];
    *why = "not there";
    if (!place_of(key, path, sizeof path)) return NULL;
    FILE *file = fopen(path, "rbe");
    if (!file) return NULL;
    unsigned char *binary = read_file(file, bytes);
    fclose(file);
    *why = "damaged";
    return binary;
}

void ocl_cache_store(const ocl_key *key, const unsigned char *binary, size_t bytes) {
    char path[1024];
    unsigned char head[HEAD_BYTES];
    const uint64_t length = bytes;
    struct cnr_output *out;
    if (bytes == 0 || bytes > MOST_BINARY || !place_of(key, path, sizeof path) ||
        !make_folders(path) || ocl_host->output_begin(path, CNR_OUTPUT_PRIVATE, &out, NULL))
        return;
    memcpy(head, magic, MAGIC_BYTES);
    memcpy(head + MAGIC_BYTES, &length, 8);
    ocl_host->sha256(binary, bytes, head + MAGIC_BYTES + 8);
    cnr_status status = ocl_host->output_write(out, head, sizeof head, NULL);
    if (!status) status = ocl_host->output_write(out, binary, bytes, NULL);
    (void)ocl_host->output_end(out, status, NULL); /* next time it is compiled again */
}
