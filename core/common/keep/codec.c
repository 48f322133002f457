/* Codecs of stored plans: each blob passes through them in their order when it is written. A
 * codec's output follows the length of its input, u64 little-endian. */
#define _GNU_SOURCE /* secure_getenv */
#include "keep/keep.h"
#include <cnnrun/codec.h>
#include <stdlib.h>

enum { LENGTH = 8, MAX_KEY = 4096 };

/* Reads the key: the bytes of a file, or the text of CNNRUN_CACHE_KEY. */
static cnr_status read_key(cnri_coding *c, const char *file, const char *codec, cnr_error *err) {
    const char *text = secure_getenv("CNNRUN_CACHE_KEY");
    char *key = NULL;
    size_t n = 0;
    if (file) CNR_TRY(cnri_read_file(file, MAX_KEY, &key, &n, err));
    else if (text && *text && !(key = cnri_strdup(text))) return cnri_out_of_memory(err, codec);
    c->key = key;
    c->key_bytes = file || !key ? n : strlen(key);
    if (c->key_bytes) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, file ? file : codec,
                     file ? "is empty: want the key"
                          : "needs a key: --cache-key-file FILE, or CNNRUN_CACHE_KEY");
}

/* Adds the codec of that name. */
static cnr_status add_codec(cnri_coding *c, const char *name, const char *key_file,
                            cnr_error *err) {
    cnri_text all = {0};
    const cnr_codec *codec = cnri_descriptor_find(CNR_KIND_CODEC, name);
    if (codec && c->n < CNRI_CODECS) {
        c->at[c->n++] = codec;
        return codec->flags & CNR_CODEC_KEYED && !c->key ? read_key(c, key_file, name, err)
                                                         : CNR_OK;
    }
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_CODEC); i++)
        cnri_text_add(&all, "%s%s", i ? ", " : "",
                      cnri_item_name(CNR_KIND_CODEC, cnri_descriptor_at(CNR_KIND_CODEC, i)));
    const cnr_status status =
        codec
            ? cnri_fail(err, CNR_E_ARG, name, "want at most %d codecs", (int)CNRI_CODECS)
            : cnri_fail(err, CNR_E_NOT_FOUND, name, "no plugin brought a codec of that name; %s%s",
                        all.n ? "there are " : "there is none", all.n ? all.at : "");
    cnri_text_free(&all);
    return status;
}

cnr_status cnri_coding_open(const char *names, const char *key_file, cnri_coding *out,
                            cnr_error *err) {
    cnri_paths words = {0};
    *out = (cnri_coding){0};
    if (!names || !*names) return CNR_OK;
    cnr_status status = cnri_paths_add(&words, names, err);
    for (int32_t i = 0; i < words.n && !status; i++)
        status = add_codec(out, words.at[i], key_file, err);
    cnri_paths_free(&words);
    if (status) cnri_coding_close(out);
    return status;
}

bool cnri_coding_is_keyed(const cnri_coding *c) {
    for (int32_t i = 0; i < c->n; i++)
        if (c->at[i]->flags & CNR_CODEC_KEYED) return true;
    return false;
}

void cnri_coding_close(cnri_coding *c) {
    volatile char *key = c->key; /* no copy of the key stays in memory */
    for (uint64_t i = 0; i < c->key_bytes; i++) key[i] = 0;
    cnri_free(c->key);
    *c = (cnri_coding){0};
}

/* The key if the codec needs one. */
static const void *key_of(const cnri_coding *c, const cnr_codec *codec) {
    return codec->flags & CNR_CODEC_KEYED ? c->key : NULL;
}

/* Encodes by one codec into a block that the caller frees. */
static cnr_status encode_one(const cnri_coding *c, const cnr_codec *codec, const void *from,
                             uint64_t bytes, uint8_t **to, uint64_t *n, cnr_error *err) {
    const uint64_t most = codec->bound(bytes);
    if (most < 1 || most > SIZE_MAX / 2)
        return cnri_fail(err, CNR_E_LIMIT, codec->name, "a blob is too large for it");
    if (!(*to = cnri_alloc((size_t)(LENGTH + most)))) return cnri_out_of_memory(err, codec->name);
    for (int i = 0; i < LENGTH; i++) (*to)[i] = (uint8_t)(bytes >> 8 * i);
    *n = most;
    const cnr_status status =
        codec->encode(key_of(c, codec), c->key_bytes, from, bytes, *to + LENGTH, n, err);
    if (!status && *n > most)
        return cnri_fail(err, CNR_E_STATE, codec->name, "wrote more than its bound");
    *n += LENGTH;
    return status;
}

cnr_status cnri_coding_encode(const cnri_coding *c, const void *from, uint64_t bytes, void **to,
                              uint64_t *n, cnr_error *err) {
    uint8_t *last = NULL;
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < c->n && !status; i++) {
        uint8_t *next = NULL;
        status = encode_one(c, c->at[i], last ? last : from, bytes, &next, &bytes, err);
        cnri_free(last);
        last = next;
    }
    *to = last;
    *n = bytes;
    return status;
}

/* Bytes of the input that the codec's output tells; UINT64_MAX: it is too short for that. */
static uint64_t length_of(const uint8_t *from, uint64_t bytes) {
    uint64_t n = 0;
    if (bytes < LENGTH) return UINT64_MAX;
    for (int i = 0; i < LENGTH; i++) n |= (uint64_t)from[i] << 8 * i;
    return n;
}

cnr_status cnri_coding_decode(const cnri_coding *c, const void *from, uint64_t bytes, void *to,
                              uint64_t n, cnr_error *err) {
    uint8_t *last = NULL;
    cnr_status status = CNR_OK;
    for (int32_t i = c->n - 1; i >= 0 && !status; i--) {
        const cnr_codec *codec = c->at[i];
        const uint8_t *in = last ? last : from;
        const uint64_t length = length_of(in, bytes);
        /* what a codec in front of this one wrote is hardly larger than what it read */
        const bool good =
            length < SIZE_MAX / 2 && (i > 0 ? length < n + n / 8 + (1 << 20) : length == n);
        void *out = !good ? NULL : i > 0 ? cnri_alloc((size_t)length + 1) : to;
        if (!good) status = cnri_fail(err, CNR_E_FORMAT, codec->name, "a length is wrong");
        else if (!out) status = cnri_out_of_memory(err, codec->name);
        else
            status = codec->decode(key_of(c, codec), c->key_bytes, in + LENGTH, bytes - LENGTH, out,
                                   length, err);
        cnri_free(last);
        last = i > 0 ? out : NULL;
        bytes = length;
    }
    cnri_free(last);
    return status;
}
