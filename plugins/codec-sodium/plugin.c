/* The codec "sodium": encrypts stored plans with XChaCha20-Poly1305, which also tells whether they
 * were changed. The cipher's key is the BLAKE2b digest of the key that is given; it should have 32
 * random bytes, since nothing here slows down guessing. Result: nonce, ciphertext, tag. */
#include <cnnrun/kit.h>
#include <sodium.h>

enum {
    NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    KEY = crypto_aead_xchacha20poly1305_ietf_KEYBYTES
};

static const cnr_host *host;

/* Most bytes of a result; 0: too many. */
static uint64_t sodium_bound(uint64_t bytes) {
    return bytes < INT64_MAX - NONCE - TAG ? bytes + NONCE + TAG : 0;
}

/* Makes the cipher's key; the caller wipes it. */
static cnr_status make_key(const void *key, uint64_t key_bytes, uint8_t *out, cnr_error *err) {
    if (sodium_init() < 0 || crypto_generichash(out, KEY, key, key_bytes, NULL, 0) != 0)
        return host->fail(err, CNR_E_STATE, "sodium", "the library can't be used");
    return CNR_OK;
}

static cnr_status sodium_encode(const void *key, uint64_t key_bytes, const void *from,
                                uint64_t bytes, void *to, uint64_t *n, cnr_error *err) {
    uint8_t secret[KEY], *nonce = to;
    unsigned long long got = 0;
    cnr_status status = make_key(key, key_bytes, secret, err);
    if (status) return status;
    randombytes_buf(nonce, NONCE);
    if (crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + NONCE, &got, from, bytes, NULL, 0, NULL,
                                                   nonce, secret) != 0)
        status = host->fail(err, CNR_E_STATE, "sodium", "the data can't be encrypted");
    sodium_memzero(secret, sizeof secret);
    *n = NONCE + got;
    return status;
}

static cnr_status sodium_decode(const void *key, uint64_t key_bytes, const void *from,
                                uint64_t bytes, void *to, uint64_t n, cnr_error *err) {
    const uint8_t *nonce = from;
    uint8_t secret[KEY];
    unsigned long long got = 0;
    if (bytes < NONCE + TAG || bytes - NONCE - TAG != n)
        return host->fail(err, CNR_E_FORMAT, "sodium", "the data is not as long as it was");
    cnr_status status = make_key(key, key_bytes, secret, err);
    if (status) return status;
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(to, &got, NULL, nonce + NONCE, bytes - NONCE,
                                                   NULL, 0, nonce, secret) != 0)
        status =
            host->fail(err, CNR_E_FORMAT, "sodium", "the key is another, or the data was changed");
    sodium_memzero(secret, sizeof secret);
    return status;
}

static const cnr_codec codec = {
    .size = sizeof codec,
    .flags = CNR_CODEC_KEYED,
    .name = "sodium",
    .summary = "encrypts stored plans (XChaCha20-Poly1305 of libsodium)",
    .bound = sodium_bound,
    .encode = sodium_encode,
    .decode = sodium_decode,
};

/* Registers the codec. */
static cnr_status init(const cnr_host *given, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = given;
    return host->add(registrar, CNR_KIND_CODEC, &codec);
}

CNR_PLUGIN("codec-sodium", CNNRUN_VERSION, "Encrypts stored plans with libsodium.", "MIT", init,
           CNR_TOUCHES_NOTHING)
