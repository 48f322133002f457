/* Plans kept between processes: where they are, and when a stored one is still good. */
#include "run/run.h"
#include "store/store.h"
#include <ctype.h>

/* ---- telling two identities apart ---- */

static size_t line_length(const char *at) { return strcspn(at, "\n"); }

/* The key of a line: its first word, and of those that there may be several of, the name too. */
static size_t key_length(const char *at) {
    const size_t first = strcspn(at, " \n");
    const bool many = strncmp(at, "device ", 7) == 0 || strncmp(at, "plugin ", 7) == 0;
    return many ? first + 1 + strcspn(at + first + 1, " \n") : first;
}

static const char *find_line(const char *text, const char *key, size_t n) {
    for (; *text; text += line_length(text), text += *text == '\n')
        if (strncmp(text, key, n) == 0 && (text[n] == ' ' || text[n] == '\n')) return text;
    return NULL;
}

/* The first thing in which the stored identity is not today's, but for weights if they may differ,
 * as text; NULL: none (or no memory). cnri_free. */
static char *difference(const char *stored, const char *now, bool but_weights) {
    for (const char *at = now; *at; at += line_length(at), at += *at == '\n') {
        const size_t key = key_length(at), n = line_length(at);
        if (but_weights && strncmp(at, "weights ", 8) == 0) continue;
        const char *was = find_line(stored, at, key);
        if (!was) return cnri_format("%.*s is new", (int)key, at);
        if (line_length(was) == n && memcmp(was, at, n) == 0) continue;
        return cnri_format("%.*s changed: was%.*s, is%.*s", (int)key, at,
                           (int)(line_length(was) - key), was + key, (int)(n - key), at + key);
    }
    for (const char *at = stored; *at; at += line_length(at), at += *at == '\n') {
        const size_t key = key_length(at);
        if (!find_line(now, at, key)) return cnri_format("%.*s is gone", (int)key, at);
    }
    return NULL;
}

/* ---- where it is ---- */

/* The net's name as part of a file's; then '-'. */
static void add_stem(const cnr_model *m, cnri_text *out) {
    const char *name = m->graph->name ? m->graph->name : "";
    for (int i = 0; name[i] && i < 60; i++)
        cnri_text_add(out, "%c", isalnum((unsigned char)name[i]) || name[i] == '_' ? name[i] : '_');
    cnri_text_add(out, "-");
}

/* One file for each net, shapes and options: other differences make it stale. */
static void add_file_name(const cnri_plan_request *r, cnri_text *out) {
    cnri_text slot = {0};
    uint8_t digest[32];
    char hex[17];
    cnri_plan_slot(r, &slot);
    out->failed = out->failed || slot.failed;
    cnri_sha256_of(slot.at, slot.n, digest);
    cnri_hex(digest, 8, hex);
    add_stem(r->model, out);
    cnri_text_add(out, "%s" CNRI_PLAN_SUFFIX, hex);
    cnri_text_free(&slot);
}

/* Why there is none: what the plan of this net that is there was made for. */
static char *why_missed(const cnr_model *m, const char *identity) {
    cnri_text stem = {0};
    cnri_cached other;
    add_stem(m, &stem);
    char *path = stem.failed ? NULL : cnri_cache_latest(m->cache, stem.at), *why = NULL;
    if (path && cnri_cached_open(path, &other, NULL) == CNR_OK) {
        why = difference(other.identity, identity, false);
        cnri_cached_close(&other);
    }
    cnri_free(path);
    cnri_text_free(&stem);
    return why ? why : cnri_strdup("nothing is stored of this net");
}

/* ---- loading and storing ---- */

/* By a memo, else by the record of times that the cache may have. */
static cnr_status make(const cnri_plan_request *r, const cnri_memo *memo, cnr_plan **out,
                       cnr_error *err) {
    const cnr_model *m = r->model;
    cnri_plan_options options = *r->options;
    cnri_tuning tuning = {0};
    uint8_t print[16];
    cnr_error why = CNR_ERROR_INIT;
    options.memo = memo;
    if (m->cache && !memo && !options.deterministic) {
        if (cnri_tuning_load(m->cache, &tuning, print, &why))
            cnri_log(CNR_LOG_WARN, "cache", "%s: %s", why.where, why.text);
        options.tuning = tuning.rows.n ? &tuning : NULL;
    }
    const cnr_status status =
        cnri_plan_make_on(m->graph, r->set, &options, r->types, r->n, out, err);
    cnri_vec_free(&tuning.rows);
    return status;
}

/* What was stored had been compared with its digests. */
static cnr_status recognise(cnr_plan *plan, const char *reads, cnr_error *err) {
    char now[33];
    if (!cnri_plan_reads(plan, now)) return cnri_out_of_memory(err, "cache");
    if (strcmp(now, reads) != 0)
        return cnri_fail(err, CNR_E_VERSION, "weights", "are not those that were read then");
    plan->sound = true;
    return CNR_OK;
}

/* A plan after the stored one, which it then owns. replaces: for other weights. */
static cnr_status follow(const cnri_plan_request *r, cnri_cached *c, bool replaces, cnr_plan **out,
                         cnr_error *err) {
    cnri_memo memo = {.replaces = replaces};
    cnr_status status = cnri_memo_parse(&memo, c->choices, err);
    for (int32_t i = 0; i < c->n_blobs && !status; i++) {
        cnri_kept_blob *b = cnri_push(&memo.blobs);
        if (!b) {
            status = cnri_out_of_memory(err, "cache");
            break;
        }
        *b = (cnri_kept_blob){.name = c->blobs[i].name,
                              .data = c->blobs[i].data,
                              .bytes = c->blobs[i].bytes};
        memcpy(b->print, c->blobs[i].print, sizeof b->print);
        memcpy(b->from, c->blobs[i].from, sizeof b->from);
    }
    if (!status) status = make(r, &memo, out, err);
    if (!status && memo.reads && !replaces) status = recognise(*out, memo.reads, err);
    if (!status) {
        (*out)->kept = c->file; /* names of blobs were copied into the plan's own */
        c->file = (cnri_mapping){0};
    } else {
        cnri_plan_free(*out); /* blobs of the file, which is closed, are not used */
        *out = NULL;
    }
    cnri_memo_free(&memo);
    return status;
}

typedef struct reading {
    cnr_plan *plan;
    void *buffer;
} reading;

static cnr_status read_blob(void *arg, int32_t index, const void **data, cnr_error *err) {
    reading *r = arg;
    return cnri_residency_read(r->plan, index, &r->buffer, data, err);
}

static cnr_status store(const cnr_model *m, cnr_plan *plan, const char *path, const char *file,
                        const char *identity, cnr_error *err) {
    const uint64_t limit = m->cache_bytes ? m->cache_bytes : CNRI_CACHE_LIMIT;
    CNRI_VEC(cnri_cached_blob) blobs = {0};
    reading r = {plan, NULL};
    cnri_text choices = {0};
    uint64_t total = 0, bytes;
    const char *name;
    cnr_status status = CNR_OK;
    for (int32_t i = 0; cnri_residency_blob(plan, i, &name, &bytes) && !status; i++) {
        cnri_cached_blob *b = cnri_push(&blobs);
        if (!b) {
            status = cnri_out_of_memory(err, path);
            break;
        }
        *b = (cnri_cached_blob){.name = name, .bytes = bytes};
        cnri_residency_sources(plan, i, b->from);
        total += bytes + 4096;
    }
    if (!status && total > limit)
        status = cnri_fail(err, CNR_E_LIMIT, path,
                           "not stored: about %llu bytes, the cache may "
                           "hold %llu",
                           (unsigned long long)total, (unsigned long long)limit);
    cnri_text_add(&choices, "%s", "");
    cnri_memo_print(plan, &choices);
    if (!status && choices.failed) status = cnri_out_of_memory(err, path);
    if (!status) status = cnri_kept_create(m->cache, err);
    if (!status)
        status =
            cnri_cached_write(path, identity, choices.at, blobs.at, blobs.n, read_blob, &r, err);
    if (!status) cnri_cache_trim(m->cache, limit, file);
    cnri_text_free(&choices);
    cnri_vec_free(&blobs);
    cnri_free(r.buffer);
    return status;
}

/* How much of a plan is made anew for other weights. */
static char *told_replaced(const cnr_plan *plan) {
    const char *name;
    uint64_t bytes;
    int32_t n = 0, kept = 0;
    for (; cnri_residency_blob(plan, n, &name, &bytes); n++) kept += cnri_residency_kept(plan, n);
    return cnri_format("weights-replaced: %d of %d blobs are prepared again", (int)(n - kept),
                       (int)n);
}

/* Tries the file. *out stays NULL when it is no good, and *origin says why; cnri_free. */
static cnr_status try_stored(const cnri_plan_request *r, const char *path, const char *identity,
                             cnr_plan **out, char **origin, cnr_error *err) {
    cnri_cached c;
    cnr_error why = CNR_ERROR_INIT;
    char *what = NULL;
    cnr_status status = cnri_cached_open(path, &c, &why);
    if (status == CNR_E_MEMORY) return cnri_fail(err, status, path, "out of memory");
    if (status == CNR_E_NOT_FOUND) {
        what = why_missed(r->model, identity);
        *origin = what ? cnri_format("miss: %s", what) : NULL;
    } else if (status) {
        const bool wrong = status == CNR_E_FORMAT || status == CNR_E_STATE;
        *origin = cnri_format("%s: %s", wrong ? "stale" : "miss", why.text);
    } else if ((what = difference(c.identity, identity, true)) != NULL) {
        *origin = cnri_format("stale: %s", what);
    } else {
        what = difference(c.identity, identity, false);
        status = follow(r, &c, what != NULL, out, &why);
        if (status) *origin = cnri_format("stale: %s: %s", why.where, why.text);
        else *origin = what ? told_replaced(*out) : cnri_strdup("hit");
        if (!status && !what && !r->model->cache_fifo) cnri_cache_touch(path);
    }
    cnri_cached_close(&c);
    cnri_free(what);
    if (status == CNR_E_MEMORY && why.text[0]) /* of which memory, a device may have said */
        return cnri_fail(err, status, why.where, "%s", why.text);
    return status == CNR_E_MEMORY || !*origin ? cnri_out_of_memory(err, path) : CNR_OK;
}

/* Nothing is stored that was planned with less than there is. */
static cnr_status plan_at(const cnri_plan_request *r, const char *path, const char *file,
                          const char *identity, int64_t before, cnr_plan **out, cnr_error *err) {
    char *origin = NULL;
    cnr_error why = CNR_ERROR_INIT;
    cnr_status status = try_stored(r, path, identity, out, &origin, err);
    if (status) {
        cnri_plan_free(*out);
        *out = NULL;
        cnri_free(origin);
        return status;
    }
    cnri_log(strncmp(origin, "stale", 5) == 0 ? CNR_LOG_WARN : CNR_LOG_INFO, "cache", "%s: %s",
             path, origin);
    if (!*out || strcmp(origin, "hit") != 0) {
        if (!*out) status = make(r, NULL, out, err);
        status = cnri_alloc_verdict(before, status, path, err);
        if (!status) /* exactly: others find it by the digests of these weights */
            status =
                cnri_plan_verify_weights(*out, true, r->model->rt->devices.options.threads, err);
        const bool whole = !status && !(*out)->policy_failed; /* else it is to be told again */
        if (whole && store(r->model, *out, path, file, identity, &why))
            cnri_log(CNR_LOG_WARN, "cache", "%s: %s", why.where, why.text);
    }
    if (status) cnri_free(origin);
    else (*out)->origin = origin;
    return status;
}

cnr_status cnri_stored_plan(const cnri_plan_request *r, cnr_plan **out, cnr_error *err) {
    const char *cache = r->model->cache;
    *out = NULL;
    if (!cache || r->options->training) return make(r, NULL, out, err);
    const int64_t before = cnri_alloc_failures();
    cnri_text identity = {0}, file = {0};
    cnri_plan_identity(r, &identity);
    add_file_name(r, &file);
    char *path = identity.failed || file.failed ? NULL : cnri_path_join(cache, file.at);
    const cnr_status status = path ? plan_at(r, path, file.at, identity.at, before, out, err)
                                   : cnri_out_of_memory(err, cache);
    cnri_free(path);
    cnri_text_free(&identity);
    cnri_text_free(&file);
    return status;
}
