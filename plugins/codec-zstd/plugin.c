/* The codec "zstd": compresses stored plans. */
#include <cnnrun/kit.h>
#include <zstd.h>

enum { LEVEL = 3 }; /* zstd's own default */

static const cnr_host *host;

/* Most bytes of a result; 0: too many. */
static uint64_t zstd_bound(uint64_t bytes) {
    const size_t most = ZSTD_compressBound((size_t)bytes);
    return ZSTD_isError(most) ? 0 : most;
}

static cnr_status zstd_encode(const void *key, uint64_t key_bytes, const void *from, uint64_t bytes,
                              void *to, uint64_t *n, cnr_error *err) {
    (void)key, (void)key_bytes;
    const size_t got = ZSTD_compress(to, (size_t)*n, from, (size_t)bytes, LEVEL);
    if (ZSTD_isError(got))
        return host->fail(err, CNR_E_MEMORY, "zstd", "%s", ZSTD_getErrorName(got));
    *n = got;
    return CNR_OK;
}

static cnr_status zstd_decode(const void *key, uint64_t key_bytes, const void *from, uint64_t bytes,
                              void *to, uint64_t n, cnr_error *err) {
    (void)key, (void)key_bytes;
    const size_t got = ZSTD_decompress(to, (size_t)n, from, (size_t)bytes);
    if (ZSTD_isError(got))
        return host->fail(err, CNR_E_FORMAT, "zstd", "%s", ZSTD_getErrorName(got));
    if (got != n) return host->fail(err, CNR_E_FORMAT, "zstd", "the data is not as long as it was");
    return CNR_OK;
}

static const cnr_codec codec = {
    .size = sizeof codec,
    .name = "zstd",
    .summary = "compresses stored plans (Zstandard, level 3)",
    .bound = zstd_bound,
    .encode = zstd_encode,
    .decode = zstd_decode,
};

/* Registers the codec. */
static cnr_status init(const cnr_host *given, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = given;
    return host->add(registrar, CNR_KIND_CODEC, &codec);
}

CNR_PLUGIN("codec-zstd", CNNRUN_VERSION, "Compresses stored plans with Zstandard.", "MIT", init,
           CNR_TOUCHES_NOTHING)
