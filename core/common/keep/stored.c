/* Plans kept between processes: where they are stored, and when a stored one is still valid. */
#define _GNU_SOURCE /* secure_getenv */
#include "keep/keep.h"
#include "people/people.h"
#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- telling two identities apart ---- */

static size_t line_length(const char *at) { return strcspn(at, "\n"); }

/* The key of a line: its first word; for lines that may occur several times, also the name. */
static size_t key_length(const char *at) {
    const size_t first = strcspn(at, " \n");
    const bool many = strncmp(at, "device ", 7) == 0 || strncmp(at, "plugin ", 7) == 0;
    return many ? first + 1 + strcspn(at + first + 1, " \n") : first;
}

/* The line that begins with the key of n bytes; NULL: none. */
static const char *find_line(const char *text, const char *key, size_t n) {
    for (; *text; text += line_length(text), text += *text == '\n')
        if (strncmp(text, key, n) == 0 && (text[n] == ' ' || text[n] == '\n')) return text;
    return NULL;
}

/* The first difference between the stored identity and today's, as text for cnri_free; NULL:
 * none (or out of memory). but_weights: weights may differ. */
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

/* Appends the net's name as a part of a file name, then '-'. */
static void add_stem(const cnr_model *m, cnri_text *out) {
    const char *name = m->graph->name ? m->graph->name : "";
    for (int i = 0; name[i] && i < 60; i++)
        cnri_text_add(out, "%c", isalnum((unsigned char)name[i]) || name[i] == '_' ? name[i] : '_');
    cnri_text_add(out, "-");
}

/* Lines of an identity that form the file name: environment and structure, then weights. Files
 * that differ in these lie side by side; other lines (program, plugins, policy, record of times)
 * make a file stale. */
static const char *const environment[] = {"shapes ",  "options ", "device ",
                                          "threads ", "net ",     NULL};
static const char *const weights[] = {"weights ", NULL};

/* Appends eight hex digits of a digest of the lines that begin with these words. */
static void add_lines_digest(const char *identity, const char *const *begins, cnri_text *out) {
    cnri_sha256 sum;
    uint8_t digest[32];
    char hex[9];
    cnri_sha256_begin(&sum);
    for (const char *at = identity; *at; at += line_length(at), at += *at == '\n')
        for (const char *const *b = begins; *b; b++)
            if (strncmp(at, *b, strlen(*b)) == 0) cnri_sha256_add(&sum, at, line_length(at) + 1);
    cnri_sha256_end(&sum, digest);
    cnri_hex(digest, 4, hex);
    cnri_text_add(out, "%s", hex);
}

/* Appends the file name. Returns the length of the part that plans for other weights share. */
static size_t add_file_name(const cnr_model *m, const char *identity, cnri_text *out) {
    add_stem(m, out);
    add_lines_digest(identity, environment, out);
    const size_t shared = out->n;
    add_lines_digest(identity, weights, out);
    cnri_text_add(out, CNRI_PLAN_SUFFIX);
    return shared;
}

/* Says why no stored plan fits: how the newest plan of the same net differs. Free with cnri_free;
 * NULL: none is there. */
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

/* Makes a plan by a memo, or (without one, unless deterministic) by the cache's record of times,
 * whose faults are only logged. */
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

cnr_status cnri_fresh_plan(const cnri_plan_request *r, cnr_plan **out, cnr_error *err) {
    return make(r, NULL, out, err);
}

#define FILE_PART "file" /* part of a stored plan: the state of the net's file */
enum { RECENT_S = 2 };   /* clocks of file systems may be so coarse */

/* Writes down which file the weights are mapped from, in the state that it is in. False: they have
 * no such file, or it changed in the last seconds and may change again unseen. */
static bool file_state(const cnr_model *m, char out[160]) {
    const cnr_graph *g = m->graph;
    struct timespec now;
    struct stat s;
    if (!m->path || !g->file.at || g->file.copied || stat(m->path, &s) != 0) return false;
    for (int32_t i = 0; i < g->values.n; i++)
        if (g->values.at[i].seal && strcmp(g->values.at[i].seal->file, m->path) != 0) return false;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(out, 160, "%llu %llu %lld %lld.%09ld %lld.%09ld", (unsigned long long)s.st_dev,
             (unsigned long long)s.st_ino, (long long)s.st_size, (long long)s.st_mtim.tv_sec,
             s.st_mtim.tv_nsec, (long long)s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
    return (uint64_t)s.st_size == g->file.bytes && now.tv_sec - s.st_ctim.tv_sec > RECENT_S;
}

/* True if the weights' file has not changed since the plan was stored, which compared its digests.
 */
static bool is_unchanged(const cnr_model *m, const cnri_cached *c) {
    char now[160];
    const cnri_cached_blob *was = *c->codecs ? NULL : cnri_cached_part(c, FILE_PART);
    return was && file_state(m, now) && strlen(now) == was->bytes &&
           memcmp(now, was->data, was->bytes) == 0 &&
           cnri_same_fingerprint(was->data, was->bytes, was->print);
}

/* Marks the plan's weights as verified: their file must be as it was when the plan was stored, or
 * they must be those that the stored plan read after verifying them. Fails with CNR_E_VERSION
 * otherwise. */
static cnr_status recognise(const cnr_model *m, const cnri_cached *c, cnr_plan *plan,
                            const char *reads, cnr_error *err) {
    char now[33];
    if (is_unchanged(m, c)) {
        plan->sound = true;
        return CNR_OK;
    }
    if (!cnri_plan_reads(plan, now)) return cnri_out_of_memory(err, "cache");
    if (strcmp(now, reads) != 0)
        return cnri_fail(err, CNR_E_VERSION, "weights", "are not those that were read then");
    plan->sound = true;
    return CNR_OK;
}

enum { DECODERS = 16 }; /* most threads that decode */

/* Blobs that threads decode into one block, each at a multiple of the alignment. */
typedef struct decoding {
    cnri_cached *c;
    const cnri_coding *coding;
    uint8_t *to;
    atomic_int next;
    atomic_int failed; /* the first failure's status; its text is in err */
    cnr_error *err;
} decoding;

/* Bytes that a decoded blob takes in the block. */
static uint64_t room_of(const cnri_cached_blob *b) {
    return (b->whole + CNRI_CACHED_ALIGN - 1) / CNRI_CACHED_ALIGN * CNRI_CACHED_ALIGN;
}

/* Decodes a blob to `to`, and has its row tell of it there. */
static cnr_status decode_blob(cnri_cached_blob *b, const cnri_coding *coding, uint8_t *to,
                              cnr_error *err) {
    if (!cnri_same_fingerprint(b->data, b->bytes, b->print))
        return cnri_fail(err, CNR_E_FORMAT, b->name, "is damaged");
    const cnr_status status = cnri_coding_decode(coding, b->data, b->bytes, to, b->whole, err);
    b->data = to;
    b->bytes = b->whole;
    return status;
}

/* One thread: decodes blobs until none is left or one failed. */
static void *decode_some(void *arg) {
    decoding *d = arg;
    uint8_t *to = d->to;
    int32_t at = 0;
    for (int32_t i; (i = atomic_fetch_add(&d->next, 1)) < d->c->n_blobs;) {
        cnr_error why = CNR_ERROR_INIT;
        int fine = CNR_OK;
        for (; at < i; at++) to += room_of(&d->c->blobs[at]);
        const cnr_status status =
            atomic_load(&d->failed) ? CNR_OK : decode_blob(&d->c->blobs[i], d->coding, to, &why);
        if (status && atomic_compare_exchange_strong(&d->failed, &fine, (int)status))
            cnri_fail(d->err, status, why.where, "%s", why.text);
    }
    return NULL;
}

/* Decodes all blobs into the block at `to` on so many threads (0: one for each processor). */
static cnr_status decode_blobs(cnri_cached *c, const cnri_coding *coding, int32_t threads,
                               uint8_t *to, cnr_error *err) {
    decoding d = {.c = c, .coding = coding, .to = to, .err = err};
    pthread_t helpers[DECODERS];
    int32_t running = 0;
    sigset_t all, before;
    const long there = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);
    const int32_t wanted = (int32_t)cnr_min(cnr_min(there, DECODERS), c->n_blobs);
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* a file that is cut short is told of by whoever handles that */
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the caller's own threads only */
    while (running < wanted - 1 && pthread_create(&helpers[running], NULL, decode_some, &d) == 0)
        running++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    decode_some(&d);
    for (int32_t i = 0; i < running; i++) pthread_join(helpers[i], NULL);
    return (cnr_status)atomic_load(&d.failed);
}

/* Replaces the blobs of a file that went through codecs by decoded ones in *out; it stays empty
 * without codecs. */
static cnr_status decode(const cnr_model *m, cnri_cached *c, cnri_mapping *out, cnr_error *err) {
    cnri_coding coding;
    uint64_t bytes = CNRI_CACHED_ALIGN;
    *out = (cnri_mapping){0};
    if (!*c->codecs) return CNR_OK;
    CNR_TRY(cnri_coding_open(c->codecs, m->cache_key_file, &coding, err));
    for (int32_t i = 0; i < c->n_blobs && bytes < SIZE_MAX / 2; i++)
        bytes +=
            c->blobs[i].whole < SIZE_MAX / 2 ? c->blobs[i].whole + CNRI_CACHED_ALIGN : SIZE_MAX / 2;
    const bool fits = bytes < SIZE_MAX / 2;
    void *at =
        fits ? mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
             : MAP_FAILED;
    cnr_status status = CNR_OK;
    if (!fits) status = cnri_fail(err, CNR_E_FORMAT, "cache", "blobs are larger than memory");
    else if (at == MAP_FAILED) status = cnri_out_of_memory(err, "cache");
    if (!status) {
        *out = (cnri_mapping){.at = at, .bytes = bytes};
        (void)madvise(at, (size_t)bytes, MADV_HUGEPAGE);
        status = decode_blobs(c, &coding, m->rt->devices.options.threads, at, err);
    }
    cnri_coding_close(&coding);
    if (status) cnri_unmap_file(out);
    return status;
}

/* Makes a plan after the stored one, which the plan then owns. replaces: the weights are others. */
static cnr_status follow(const cnri_plan_request *r, cnri_cached *c, bool replaces, cnr_plan **out,
                         cnr_error *err) {
    const char *file = r->model->graph->is_compiled && r->is_portable ? r->model->path : NULL;
    cnri_memo memo = {.replaces = replaces};
    cnri_mapping decoded = {0};
    cnr_status status = cnri_memo_parse(&memo, c->choices, err);
    if (!status) status = decode(r->model, c, &decoded, err);
    for (int32_t i = 0; i < c->n_blobs && !status; i++) {
        cnri_kept_blob *b = cnri_push(&memo.blobs);
        if (!b) {
            status = cnri_out_of_memory(err, "cache");
            break;
        }
        *b = (cnri_kept_blob){.name = c->blobs[i].name,
                              .data = c->blobs[i].data,
                              .file = file,
                              .sound = decoded.at != NULL,
                              .bytes = c->blobs[i].bytes};
        memcpy(b->print, c->blobs[i].print, sizeof b->print);
        memcpy(b->from, c->blobs[i].from, sizeof b->from);
    }
    if (!status) status = make(r, &memo, out, err);
    if (!status && memo.reads && !replaces) status = recognise(r->model, c, *out, memo.reads, err);
    if (!status) {
        (*out)->kept = decoded.at ? decoded : c->file; /* the names of blobs were copied */
        if (!decoded.at) c->file = (cnri_mapping){0};
    } else {
        cnri_plan_free(*out); /* blobs of the closed file are not used */
        *out = NULL;
        cnri_unmap_file(&decoded);
    }
    cnri_memo_free(&memo);
    return status;
}

/* Where read_blob finds what is written to a stored plan. */
typedef struct reading {
    cnr_plan *plan;
    void *buffer;
    const cnri_cached_blob *parts;
    int32_t n_blobs;
} reading;

/* Data of blob or part `index`, for cnri_cached_fn. */
static cnr_status read_blob(void *arg, int32_t index, const void **data, cnr_error *err) {
    reading *r = arg;
    if (index < r->n_blobs) return cnri_residency_read(r->plan, index, &r->buffer, data, err);
    *data = r->parts[index - r->n_blobs].data;
    return CNR_OK;
}

typedef CNRI_VEC(cnri_cached_blob) rows;

/* Lists the plan's blobs, then the parts. *total: about the bytes that they take. */
static cnr_status list_rows(cnr_plan *plan, const cnri_cached_blob *parts, int32_t n_parts,
                            rows *out, uint64_t *total, cnr_error *err) {
    cnri_cached_blob b = {0};
    for (int32_t i = 0; cnri_residency_blob(plan, i, &b.name, &b.bytes); i++) {
        cnri_cached_blob *row = cnri_push(out);
        if (!row) return cnri_out_of_memory(err, "plan");
        *row = (cnri_cached_blob){.name = b.name, .bytes = b.bytes};
        cnri_residency_sources(plan, i, row->from);
    }
    for (int32_t i = 0; i < n_parts; i++) {
        cnri_cached_blob *row = cnri_push(out);
        if (!row) return cnri_out_of_memory(err, "plan");
        *row = parts[i];
    }
    for (int32_t i = 0; i < out->n; i++) *total += out->at[i].bytes + 4096;
    return CNR_OK;
}

/* Fails if the rows take more than the limit. */
static cnr_status check_limit(const cnri_plan_file *to, uint64_t total, cnr_error *err) {
    if (total <= to->limit) return CNR_OK;
    return cnri_fail(err, CNR_E_LIMIT, to->path,
                     "not stored: about %llu bytes, the cache may hold %llu",
                     (unsigned long long)total, (unsigned long long)to->limit);
}

cnr_status cnri_plan_write(cnr_plan *plan, const cnri_plan_file *to, cnr_error *err) {
    rows list = {0};
    cnri_text choices = {0};
    cnri_coding coding = {0};
    uint64_t total = 0;
    cnr_status status = list_rows(plan, to->parts, to->n_parts, &list, &total, err);
    reading r = {plan, NULL, to->parts, list.n - to->n_parts};
    if (!status) status = check_limit(to, total, err);
    if (!status) status = cnri_coding_open(to->codecs, to->key_file, &coding, err);
    cnri_text_add(&choices, "%s", "");
    cnri_memo_print(plan, &choices);
    if (!status && choices.failed) status = cnri_out_of_memory(err, to->path);
    const cnri_cached what = {.identity = to->identity,
                              .choices = choices.at,
                              .net = plan->graph->name ? plan->graph->name : "",
                              .codecs = coding.n ? to->codecs : "",
                              .blobs = list.at,
                              .n_blobs = r.n_blobs,
                              .n_parts = to->n_parts};
    if (!status)
        status = cnri_cached_write(to->path, &what, &coding, to->flags, read_blob, &r, err);
    cnri_coding_close(&coding);
    cnri_text_free(&choices);
    cnri_vec_free(&list);
    cnri_free(r.buffer);
    return status;
}

/* The codecs that blobs pass through, or NULL. Under a memory bound they are mapped as they lie. */
static const char *codecs_of(const cnri_plan_request *r) {
    const char *names = r->model->cache_codec;
    return names && *names && !r->options->memory_bound ? names : NULL;
}

/* Writes a plan to the cache folder, and trims the folder. */
static cnr_status store(const cnri_plan_request *r, cnr_plan *plan, const char *path,
                        const char *file, size_t shared, const char *identity, cnr_error *err) {
    const cnr_model *m = r->model;
    uint64_t limit;
    cnr_status status = cnri_cache_limit(m->cache_bytes, &limit, err);
    if (!status) status = cnri_kept_create(m->cache, err);
    char state[160];
    const char *codecs = codecs_of(r);
    const bool has_state = !codecs && file_state(m, state);
    const cnri_cached_blob part = {.name = FILE_PART,
                                   .data = state,
                                   .bytes = has_state ? strlen(state) : 0};
    const cnri_plan_file to = {.path = path,
                               .identity = identity,
                               .parts = &part,
                               .n_parts = has_state,
                               .limit = limit,
                               .flags = CNRI_WRITE_PRIVATE | CNRI_WRITE_UNSYNCED,
                               .codecs = codecs,
                               .key_file = m->cache_key_file};
    if (!status) status = cnri_plan_write(plan, &to, err);
    if (!status) cnri_cache_trim(m->cache, limit, file, shared);
    return status;
}

/* Text about how much of a plan is made anew for other weights. */
static char *told_replaced(const cnr_plan *plan) {
    const char *name;
    uint64_t bytes;
    int32_t n = 0, kept = 0;
    for (; cnri_residency_blob(plan, n, &name, &bytes); n++) kept += cnri_residency_kept(plan, n);
    return cnri_format("weights-replaced: %d of %d blobs are prepared again", (int)(n - kept),
                       (int)n);
}

/* Plans by the stored plan if it fits. *what: what does not; the caller frees *origin and *what. */
static cnr_status try_opened(const cnri_plan_request *r, cnri_cached *c, const char *identity,
                             cnr_plan **out, char **origin, char **what, cnr_error *why) {
    if ((*what = difference(c->identity, identity, true)) != NULL) {
        *origin = cnri_format("stale: %s", *what);
        return CNR_OK;
    }
    *what = difference(c->identity, identity, false);
    const cnr_status status = follow(r, c, *what != NULL, out, why);
    if (status) *origin = cnri_format("stale: %s: %s", why->where, why->text);
    else *origin = *what ? told_replaced(*out) : cnri_strdup("hit");
    return status;
}

/* Tries the file. If unusable, *out stays NULL and *origin says why; free it with cnri_free. */
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
    } else if (codecs_of(r) && strcmp(c.codecs, codecs_of(r)) != 0) {
        *origin = cnri_strdup("stale: it was stored by other codecs");
    } else {
        status = try_opened(r, &c, identity, out, origin, &what, &why);
        if (*out && !what && !r->model->cache_fifo) cnri_cache_touch(path);
    }
    cnri_cached_close(&c);
    cnri_free(what);
    if (status == CNR_E_MEMORY && why.text[0]) /* a device may have said which memory is out */
        return cnri_fail(err, status, why.where, "%s", why.text);
    return status == CNR_E_MEMORY || !*origin ? cnri_out_of_memory(err, path) : CNR_OK;
}

/* Tries the file at `path`; if there is none, the one used last for other weights. */
static cnr_status try_nearest(const cnri_plan_request *r, const char *path, const char *file,
                              size_t shared, const char *identity, cnr_plan **out, char **origin,
                              cnr_error *err) {
    char *prefix = access(path, F_OK) == 0 ? NULL : cnri_format("%.*s", (int)shared, file);
    char *near = prefix ? cnri_cache_latest(r->model->cache, prefix) : NULL;
    const cnr_status status = try_stored(r, near ? near : path, identity, out, origin, err);
    cnri_free(near);
    cnri_free(prefix);
    return status;
}

enum { WORTH_NS = 50000000 }; /* own cache: plans of the CPU that take less are not stored */

/* Whether it pays to store a plan: whoever named the folder wants it; in the user's own folder only
 * plans pay that a device compiles for, or that take long to make and to prepare, which is done
 * here. begun: when making it began. */
static cnr_status pays(const cnri_plan_request *r, cnr_plan *plan, uint64_t begun, bool *out,
                       cnr_error *err) {
    *out = true;
    if (!r->model->own_cache) return CNR_OK;
    for (int32_t i = 0; i < plan->n_devices; i++)
        if (!(plan->devices[i]->cls->flags & CNR_DEVICE_HOST)) return CNR_OK;
    CNR_TRY(cnri_residency_warm(plan, err));
    *out = cnri_real_ns() - begun > WORTH_NS;
    return CNR_OK;
}

/* Where a plan is stored. */
typedef struct place {
    char *path;
    cnri_text identity, file;
    size_t shared; /* bytes of the file's name that plans for other weights share */
    bool failed;   /* memory is out */
} place;

/* Finds out where the plan of this request is stored; free it with place_free. */
static void place_of(const cnri_plan_request *r, place *out) {
    *out = (place){0};
    cnri_plan_identity(r, &out->identity);
    out->failed = out->identity.failed;
    if (!out->failed) out->shared = add_file_name(r->model, out->identity.at, &out->file);
    if (!out->failed && !out->file.failed)
        out->path = cnri_path_join(r->model->cache, out->file.at);
    out->failed = !out->path;
}

static void place_free(place *p) {
    cnri_free(p->path);
    cnri_text_free(&p->identity);
    cnri_text_free(&p->file);
}

/* Level of messages about the cache: nobody asked for the user's own. */
static int32_t level(const cnr_model *m, bool is_warning) {
    return is_warning && !m->own_cache ? CNR_LOG_WARN : CNR_LOG_INFO;
}

/* Stores a new plan, after comparing digests, because other processes find the file by these
 * weights. A failed policy is reported again next time, so such a plan is not stored. */
static cnr_status keep(const cnri_plan_request *r, cnr_plan *plan, const place *at,
                       cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    CNR_TRY(cnri_plan_verify_weights(plan, true, r->model->rt->devices.options.threads, err));
    if (plan->policy_failed) return CNR_OK;
    const cnr_status status =
        store(r, plan, at->path, at->file.at, at->shared, at->identity.at, &why);
    if (status) /* a bad setting is told, whoever's folder it is */
        cnri_log(status == CNR_E_ARG ? CNR_LOG_WARN : level(r->model, true), "cache", "%s: %s",
                 why.where, why.text);
    return CNR_OK;
}

/* Finds or makes the plan and stores it, unless memory was out while planning. */
static cnr_status plan_at(const cnri_plan_request *r, const place *at, cnr_plan **out,
                          cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    const uint64_t begun = cnri_real_ns();
    char *origin = NULL;
    bool stores = true;
    cnr_status status =
        try_nearest(r, at->path, at->file.at, at->shared, at->identity.at, out, &origin, err);
    if (status) {
        cnri_plan_free(*out);
        *out = NULL;
        cnri_free(origin);
        return status;
    }
    cnri_log(level(r->model, strncmp(origin, "stale", 5) == 0), "cache", "%s: %s", at->path,
             origin);
    if (!*out || strcmp(origin, "hit") != 0) {
        const bool makes = !*out;
        if (makes) status = make(r, NULL, out, err);
        status = cnri_alloc_verdict(before, status, at->path, err);
        if (!status && makes) status = pays(r, *out, begun, &stores, err);
        if (!status && stores) status = keep(r, *out, at, err);
    }
    if (status) cnri_free(origin);
    else (*out)->origin = origin;
    return status;
}

/* True if the user's own folder has a plan of a net with this name. */
static bool own_has(const cnr_model *m) {
    cnri_text stem = {0};
    add_stem(m, &stem);
    char *path = stem.failed ? NULL : cnri_cache_latest(m->cache, stem.at);
    cnri_text_free(&stem);
    cnri_free(path);
    return path != NULL;
}

/* Makes the first plan of a net in the user's own folder: what it depends on is found out only if
 * it pays to store it. */
static cnr_status plan_first(const cnri_plan_request *r, cnr_plan **out, cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    const uint64_t begun = cnri_real_ns();
    place at = {0};
    bool stores = false;
    cnr_status status = cnri_alloc_verdict(before, make(r, NULL, out, err), "cache", err);
    if (!status) status = pays(r, *out, begun, &stores, err);
    if (status || !stores) return status;
    place_of(r, &at);
    status = at.failed ? cnri_out_of_memory(err, "cache") : keep(r, *out, &at, err);
    if (!status) (*out)->origin = cnri_strdup("miss: nothing is stored of this net");
    place_free(&at);
    return status;
}

/* ---- a compiled model ---- */

/* Writes the programs in the file to the folder where the devices' plugins look for them. */
static void unpack(const cnri_devices *devices, const cnri_cached *c) {
    const size_t prefix = strlen(CNRI_PART_KEPT);
    for (int32_t i = c->n_blobs; i < c->n_blobs + c->n_parts; i++) {
        const cnri_cached_blob *part = &c->blobs[i];
        const char *name = part->name + prefix;
        cnr_error why = CNR_ERROR_INIT;
        void *there = NULL;
        uint64_t bytes;
        if (strncmp(part->name, CNRI_PART_KEPT, prefix) != 0) continue;
        if (!cnri_same_fingerprint(part->data, part->bytes, part->print))
            cnri_log(CNR_LOG_WARN, "plan", "%s is damaged: it is compiled again", name);
        else if (cnri_kept_load(devices->cache_dir, name, part->bytes, &there, &bytes, NULL) &&
                 cnri_kept_save(devices->cache_dir, name, part->data, part->bytes, &why))
            cnri_log(CNR_LOG_INFO, "plan", "%s: %s", why.where, why.text);
        cnri_free(there);
    }
}

/* Plans by the compiled file that the net was loaded from. If it does not fit, *out stays NULL
 * and *origin says why; free it with cnri_free. Kernels read its blobs unchecked, so it is only
 * used if nobody else can have written the file. */
static cnr_status try_compiled(const cnri_plan_request *r, cnr_plan **out, char **origin,
                               cnr_error *err) {
    const cnri_plan_request mine = {r->model, r->options, r->set, r->types, r->n, true};
    const char *path = r->model->path;
    cnri_text identity = {0};
    cnri_mapping file;
    cnri_cached c = {0};
    cnr_error why = CNR_ERROR_INIT;
    char *what = NULL;
    cnri_plan_identity(&mine, &identity);
    cnr_status status = identity.failed ? cnri_out_of_memory(err, path) : CNR_OK;
    const bool there = !status && cnri_map_file(path, &file, &why) == CNR_OK;
    if (there && (status = cnri_cached_read(path, file, &c, err)) != CNR_OK) cnri_unmap_file(&file);
    if (!status && !there) *origin = cnri_format("stale: %s", why.text);
    else if (!status && file.copied)
        *origin = cnri_strdup("stale: can be written by others than its owner");
    else if (!status) {
        if (!(what = difference(c.identity, identity.at, true))) unpack(r->set->devices, &c);
        cnri_free(what);
        status = try_opened(&mine, &c, identity.at, out, origin, &what, &why);
        if (status == CNR_E_MEMORY) cnri_fail(err, status, why.where, "%s", why.text);
        else status = CNR_OK;
    }
    cnri_cached_close(&c);
    cnri_text_free(&identity);
    cnri_free(what);
    return status || *origin ? status : cnri_out_of_memory(err, path);
}

/* Makes the plan without a cache, by a compiled model if there is one. */
static cnr_status plan_compiled(const cnri_plan_request *r, cnr_plan **out, char **origin,
                                cnr_error *err) {
    const cnr_model *m = r->model;
    if (!m->graph->is_compiled || !m->path || r->options->training) return CNR_OK;
    const cnr_status status = try_compiled(r, out, origin, err);
    if (status) return status;
    cnri_log(*out ? CNR_LOG_INFO : CNR_LOG_WARN, m->path, "%s%s", *origin,
             *out ? "" : ": planned anew");
    return CNR_OK;
}

/* Takes a stored plan if it fits; otherwise makes one and stores it. */
static cnr_status plan_cached(const cnri_plan_request *r, cnr_plan **out, cnr_error *err) {
    place at;
    cnri_coding coding; /* a codec that is not there is no reason to store in clear */
    CNR_TRY(cnri_coding_open(r->model->cache_codec, r->model->cache_key_file, &coding, err));
    const bool in_clear = !codecs_of(r) && cnri_coding_is_keyed(&coding);
    cnri_coding_close(&coding);
    if (in_clear) {
        cnri_log(CNR_LOG_WARN, r->model->graph->name,
                 "no plan is stored: under a memory bound it would not be encrypted");
        return make(r, NULL, out, err);
    }
    if (r->model->own_cache && !own_has(r->model)) return plan_first(r, out, err);
    place_of(r, &at);
    const cnr_status status =
        at.failed ? cnri_out_of_memory(err, r->model->cache) : plan_at(r, &at, out, err);
    place_free(&at);
    return status;
}

/* Makes a plan, by a stored one if the model has a cache. */
static cnr_status plan_anew(const cnri_plan_request *r, cnr_plan **out, cnr_error *err) {
    return r->model->cache && !r->options->training ? plan_cached(r, out, err)
                                                    : make(r, NULL, out, err);
}

/* Plans again without the kernels that a compiled model forces, if they are not available here. */
static cnr_status plan_without_kernels(const cnri_plan_request *r, cnr_plan **out, cnr_error *err) {
    cnri_plan_request bare = *r;
    cnri_plan_options options = *r->options;
    cnr_error why = CNR_ERROR_INIT;
    const cnr_status status = plan_anew(r, out, &why);
    if (!status) return CNR_OK;
    if (status == CNR_E_MEMORY) return cnri_fail(err, status, why.where, "%s", why.text);
    cnri_log(CNR_LOG_WARN, r->model->path, "%s: %s: planned without the kernels that it forces",
             why.where, why.text);
    options.kernels = NULL;
    bare.options = &options;
    return plan_anew(&bare, out, err);
}

/* Makes a plan in *out: of a compiled net, from the cache, or anew and then stored. Method of the
 * plan services. */
static cnr_status stored_plan(const cnri_plan_request *r, cnr_plan **out, cnr_error *err) {
    const cnr_graph *g = r->model->graph;
    const bool brings = g->is_compiled && cnri_graph_meta(g, "plan.kernels") && r->model->path;
    char *origin = NULL;
    *out = NULL;
    cnr_status status = plan_compiled(r, out, &origin, err);
    if (!status && !*out)
        status = brings ? plan_without_kernels(r, out, err) : plan_anew(r, out, err);
    if (!status && !(*out)->origin) (*out)->origin = origin;
    else cnri_free(origin);
    return status;
}

void cnri_keep_register(void) { cnri_plan_keeper_register(stored_plan); }
