/* Sources and importers: judged with arbitrary words, with the given files, and with damaged
 * files. */
#define _GNU_SOURCE
#include "conform/judging.h"
#include "run/run.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_READ = 12, DAMAGED = 80 };

/* Words that name nothing, for which accepts is asked too. */
static const char *const words[] = {"",     "x",        "no/such/file", "://", "a:b:c",
                                    "%s%n", "\xff\xfe", "x.",           ".",   "/"};

typedef int32_t (*accepts_fn)(const char *spec, const uint8_t *head, size_t n);

/* Calls accepts with a copy of the word behind which nothing can be read, so that a step past its
 * end crashes. */
static int32_t accepts_word(accepts_fn accepts, const char *word, const uint8_t *head, size_t n) {
    cnri_edge copy;
    if (!cnri_edge_make(&copy, strlen(word) + 1, 1)) return accepts(word, head, n);
    memcpy(copy.at, word, strlen(word) + 1);
    const int32_t score = accepts((const char *)copy.at, head, n);
    cnri_edge_free(&copy);
    return score;
}

/* Calls accepts with strange words and contents. False: it failed. */
static bool ask(cnri_judging *j, accepts_fn accepts) {
    for (const char *const *at = j->o->samples; at && *at; at++) {
        cnri_judging_case(j, "accepts of %s without bytes", *at);
        (void)accepts_word(accepts, *at, NULL, 0);
    }
    for (size_t i = 0; i < CNRI_COUNT(words); i++) {
        for (int32_t k = 0; k < 20; k++) {
            cnri_edge head;
            const size_t n = k < 5 ? (size_t)k : (size_t)cnri_dice_below(&j->dice, 4096);
            if (!cnri_edge_make(&head, n, 1)) return cnri_judging_fail(j, "out of memory");
            cnri_pattern(head.at, n, cnri_dice_next(&j->dice));
            cnri_judging_case(j, "accepts of word %zu with %zu bytes", i, n);
            (void)accepts_word(accepts, words[i], head.at, n);
            const bool whole = cnri_edge_is_whole(&head);
            cnri_edge_free(&head);
            if (!whole) return cnri_judging_fail(j, "accepts wrote to the bytes it was shown");
        }
        cnri_judging_case(j, "accepts of word %zu without bytes", i);
        (void)accepts_word(accepts, words[i], NULL, 0);
    }
    return true;
}

/* The score that a plugin's accepts gives a spec; a file's first bytes are shown to it. */
static int32_t sureness(accepts_fn accepts, const char *spec) {
    cnri_head head = {.n = 0};
    cnr_error err = CNR_ERROR_INIT;
    const bool file = cnri_file_head(spec, &head, &err) == CNR_OK;
    return accepts_word(accepts, spec, file ? head.at : NULL, file ? head.n : 0);
}

/* True if there is a regular file of that path. */
static bool is_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* True if it accepts a sample: a file, or the first of several with commas between them. */
static bool takes(accepts_fn accepts, const char *sample) {
    char first[4096];
    snprintf(first, sizeof first, "%.*s", is_file(sample) ? 4000 : (int)strcspn(sample, ","),
             sample);
    return sureness(accepts, first) > 0;
}

/* True if a source or an importer of the plugin takes a sample. */
static bool any_takes(const cnri_conform_options *o) {
    for (const char *const *at = o->samples; *at; at++) {
        for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_SOURCE); i++) {
            const cnr_source *s = cnri_descriptor_at(CNR_KIND_SOURCE, i);
            if (cnri_owner(s) == o->plugin && takes(s->accepts, *at)) return true;
        }
        for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++) {
            const cnr_importer *m = cnri_descriptor_at(CNR_KIND_IMPORTER, i);
            if (cnri_owner(m) == o->plugin && takes(m->accepts, *at)) return true;
        }
    }
    return false;
}

/* No sample was taken: skips the judgement, or fails it if nothing in the plugin takes one. */
static bool none_given(cnri_judging *j) {
    if (j->o->plugin && j->o->samples && *j->o->samples && !any_takes(j->o))
        return cnri_judging_fail(j, "accepts takes none of the files that --sample gives");
    return cnri_judging_skip(j, "no --sample was given that it reads");
}

/* ---- damaged files ---- */

/* A file in memory, of which damaged copies are written. */
typedef struct original {
    uint8_t *data;
    size_t n;
    char folder[512], path[1024];
} original;

/* Reads a file and names its damaged copies. False: it failed. */
static bool original_read(original *f, cnri_judging *j, const char *path) {
    const char *tmp = getenv("TMPDIR"), *slash = strrchr(path, '/');
    uint64_t n = 0;
    void *data = NULL;
    cnr_error err = CNR_ERROR_INIT;
    *f = (original){0};
    const cnr_status status = cnri_host.file_read(path, UINT64_C(64) << 20, &data, &n, &err);
    if (!cnri_judging_ok(j, path, status, &err)) return false;
    f->data = data;
    f->n = (size_t)n;
    snprintf(f->folder, sizeof f->folder, "%s/cnnrun-damaged-XXXXXX",
             tmp && *tmp == '/' ? tmp : "/tmp");
    if (!mkdtemp(f->folder)) return cnri_judging_fail(j, "%s: no folder can be made", f->folder);
    snprintf(f->path, sizeof f->path, "%s/%.255s", f->folder, slash ? slash + 1 : path);
    cnri_work_tell("temp", 0, f->path); /* to be removed if this process dies */
    return true;
}

/* Removes the temporary file and folder, and frees the data. */
static void original_free(original *f) {
    if (*f->path) unlink(f->path);
    if (*f->folder) rmdir(f->folder);
    cnri_host.free(f->data);
}

/* Writes damaged version `k` of the file to f->path, over the one before: below 7 cut short (0:
 * empty), else with up to 4 bytes changed, drawn by j's dice, mostly near the beginning where
 * headers are. False: it failed, noted in j. */
static bool write_damaged(const original *f, cnri_judging *j, int32_t k) {
    static const int32_t eighths[] = {0, 1, 2, 4, 6, 7};
    uint8_t *copy = cnri_alloc(f->n + 1);
    size_t n = f->n;
    if (!copy) return cnri_judging_fail(j, "out of memory");
    memcpy(copy, f->data, n);
    if (k < 6) n = n / 8 * (size_t)eighths[k];
    else if (k == 6) n = n ? n - 1 : 0;
    else
        for (int64_t times = 1 + cnri_dice_below(&j->dice, 4); times > 0 && n; times--) {
            const int64_t within =
                cnri_dice_chance(&j->dice, 70) ? cnr_min((int64_t)n, 512) : (int64_t)n;
            const int64_t to = cnri_dice_below(&j->dice, within);
            static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff, ' ', '-', '9'};
            copy[to] = bytes[cnri_dice_below(&j->dice, 8)];
        }
    const int fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0;
    for (size_t done = 0; done < n && good;) {
        const ssize_t got = write(fd, copy + done, n - done);
        good = got > 0;
        done += good ? (size_t)got : 0;
    }
    if (fd >= 0) close(fd);
    cnri_free(copy);
    return good || cnri_judging_fail(j, "%s can't be written", f->path);
}

/* ---- what plugins read, in memory that ends where it ends ---- */

/* Blocks returned by the host table's file_read, in memory whose end is guarded, so that reads
 * past a file's end crash. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cnri_edge lent[64];
static cnr_host own; /* the table as it was */

/* The guarded copy that begins at that address; NULL: none. */
static cnri_edge *lent_at(const void *block) {
    for (size_t i = 0; i < CNRI_COUNT(lent); i++)
        if (lent[i].map && lent[i].at == block) return &lent[i];
    return NULL;
}

/* Stands for the host's file_read: *data, which the plugin frees as usual, lies at the end of a
 * guarded page if there is room for one. */
static cnr_status lend_file(const char *path, uint64_t limit, void **data, uint64_t *bytes,
                            cnr_error *err) {
    const cnr_status status = own.file_read(path, limit, data, bytes, err);
    if (status) return status;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < CNRI_COUNT(lent); i++) {
        if (lent[i].map || !cnri_edge_make(&lent[i], (size_t)*bytes + 1, 1)) continue;
        memcpy(lent[i].at, *data, (size_t)*bytes + 1); /* with the NUL behind it */
        own.free(*data);
        *data = lent[i].at;
        break;
    }
    pthread_mutex_unlock(&lock);
    return CNR_OK;
}

/* Stands for the host's free: frees a lent file, or passes the block on. */
static void take_back(void *block) {
    pthread_mutex_lock(&lock);
    cnri_edge *e = block ? lent_at(block) : NULL;
    if (e) cnri_edge_free(e);
    pthread_mutex_unlock(&lock);
    if (!e) own.free(block);
}

/* Stands for the host's resize: a lent file moves to ordinary memory; NULL: out of memory. */
static void *resize_lent(void *block, size_t bytes) {
    pthread_mutex_lock(&lock);
    cnri_edge *e = block ? lent_at(block) : NULL;
    void *larger = e ? own.alloc(bytes) : NULL;
    if (larger) memcpy(larger, e->at, e->bytes < bytes ? e->bytes : bytes);
    if (larger) cnri_edge_free(e);
    pthread_mutex_unlock(&lock);
    return e ? larger : own.resize(block, bytes);
}

static uint8_t poison; /* what new memory of plugins holds */

/* Stands for the host's alloc: memory filled with the byte `poison`. */
static void *alloc_poisoned(size_t bytes) {
    void *block = own.alloc(bytes);
    if (block) memset(block, poison, bytes);
    return block;
}

/* Replaces the host's functions of files and memory in this process, for good. */
static void lend_files(void) {
    cnr_host *host = cnri_host_mutable();
    if (host->file_read == lend_file) return;
    own = *host;
    host->file_read = lend_file;
    host->alloc = alloc_poisoned;
    host->free = take_back;
    host->resize = resize_lent;
}

/* Calls fn for each of the caller's samples that `accepts` takes, until one is false; skipped
 * without any. */
static bool each_sample(cnri_judging *j, accepts_fn accepts,
                        bool (*fn)(cnri_judging *j, const char *spec)) {
    bool good = true;
    int32_t n = 0;
    lend_files();
    for (const char *const *at = j->o->samples; at && *at && good; at++) {
        if (!takes(accepts, *at)) continue;
        n++;
        good = fn(j, *at);
    }
    return n ? good : none_given(j);
}

/* ---- the same again: what is read does not depend on what memory held before ---- */

static uint64_t seen; /* digest of all pictures, or of all weights */

/* Adds data to the digest of all that was read. */
static void see(const void *data, uint64_t bytes) {
    uint8_t print[16];
    uint64_t part;
    cnri_fingerprint(data, bytes, print);
    memcpy(&part, print, sizeof part);
    seen = (seen ^ part) * UINT64_C(1099511628211);
}

/* Number of lent files that were not freed. */
static int32_t count_lent(void) {
    int32_t n = 0;
    for (size_t i = 0; i < CNRI_COUNT(lent); i++) n += lent[i].map != NULL;
    return n;
}

/* True if reading twice gives the same, whatever memory contained before, and keeps no more files;
 * false, with a finding. */
static bool same_again(cnri_judging *j, const char *word,
                       bool (*read)(cnri_judging *, const char *)) {
    static const uint8_t poisons[] = {0xa5, 0x3c};
    uint64_t first = 0;
    int32_t held = 0;
    for (int32_t i = 0; i < 2; i++) {
        poison = poisons[i];
        seen = 0;
        if (!read(j, word)) return false;
        if (i == 0) first = seen, held = count_lent();
    }
    if (count_lent() > held)
        return cnri_judging_fail(j, "the bytes of a file are not freed, each time that it is read");
    return seen == first ||
           cnri_judging_fail(j, "read again, it gives other bytes: some are never written");
}

/* ---- sources ---- */

/* False, with a finding: a sample's picture has a wrong type or shape, or the sample no name. */
static bool judge_picture(cnri_judging *j, const cnr_sample *s) {
    const cnr_tensor *p = &s->picture;
    const bool shaped =
        p->rank == 3 && p->dim[0] > 0 && p->dim[1] > 0 && (p->dim[2] == 1 || p->dim[2] == 3);
    if (!memchr(s->name, 0, sizeof s->name)) return cnri_judging_fail(j, "a name has no end");
    if (!s->name[0]) return cnri_judging_fail(j, "a sample has no name: a file, or a number");
    if (p->dtype != CNR_u8 || !shaped || !p->data)
        return cnri_judging_fail(j, "a picture is no u8 of H W C with 1 or 3 channels");
    if (p->bytes != cnr_dense_bytes(p))
        return cnri_judging_fail(j, "a picture of %lld x %lld x %lld has %llu bytes",
                                 (long long)p->dim[0], (long long)p->dim[1], (long long)p->dim[2],
                                 (unsigned long long)p->bytes);
    return true;
}

/* Reads sample `index`; *ended: there is none. may_fail: an error with a text is allowed. False: it
 * failed. */
static bool read_sample(cnri_judging *j, const cnr_source *source, void *state, int64_t index,
                        bool may_fail, bool *ended) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_sample s = {.size = sizeof s, .label = -1, .picture = {.size = sizeof s.picture}};
    const cnr_status status = source->read(state, index, &s, &err);
    *ended = status != CNR_OK;
    bool good = may_fail ? cnri_judging_spoke(j, "read", status, &err)
                         : cnri_judging_ok(j, "read", status, &err);
    if (good && !status) good = judge_picture(j, &s);
    /* where the picture claims more than it has, somebody reads what is not its own */
    if (good && !status) {
        uint8_t *copy = cnri_alloc((size_t)s.picture.bytes + 1);
        if (copy) memcpy(copy, s.picture.data, (size_t)s.picture.bytes);
        if (copy && !may_fail) see(copy, s.picture.bytes);
        cnri_free(copy);
    }
    cnri_host.free(s.picture.data);
    return good;
}

/* Reads all samples of a source; damaged: errors are allowed. False: it failed. */
static bool read_source(cnri_judging *j, const char *spec, bool damaged) {
    const cnr_source *source = j->descriptor;
    cnr_source_info info = {.size = sizeof info};
    cnr_error err = CNR_ERROR_INIT;
    void *state = NULL;
    bool ended = false;
    const cnr_status status = source->open(spec, NULL, &state, &info, &err);
    if (!(damaged ? cnri_judging_spoke(j, "open", status, &err)
                  : cnri_judging_ok(j, "open", status, &err)))
        return false;
    if (status) return true;
    bool good = info.count >= -1 && info.classes >= 0;
    if (!good) cnri_judging_fail(j, "open tells %lld samples", (long long)info.count);
    for (int64_t i = 0; good && !ended && i < MOST_READ && (info.count < 0 || i < info.count); i++)
        good = read_sample(j, source, state, i, damaged || info.count < 0, &ended);
    if (good && info.count >= 0 && !damaged) { /* behind the last one */
        good = read_sample(j, source, state, info.count, true, &ended);
        if (good && !ended)
            good = cnri_judging_fail(j, "it reads sample %lld of %lld", (long long)info.count,
                                     (long long)info.count);
    }
    source->close(state);
    return good;
}

static bool read_whole(cnri_judging *j, const char *spec) { return read_source(j, spec, false); }

/* Reads a source twice; false, with a finding, if it fails or differs. */
static bool source_sample(cnri_judging *j, const char *spec) {
    cnri_judging_case(j, "%s", spec);
    return same_again(j, spec, read_whole);
}

/* Reads damaged copies of a source's file. False: it failed. */
static bool source_damaged(cnri_judging *j, const char *spec) {
    original f;
    if (!is_file(spec)) return true;
    bool good = original_read(&f, j, spec);
    for (int32_t k = 0; k < DAMAGED && good; k++) {
        cnri_judging_case(j, "%s, damaged in way %d of seed %lld", spec, (int)k,
                          (long long)j->o->check.seed);
        good = write_damaged(&f, j, k) && read_source(j, f.path, true);
    }
    original_free(&f);
    return good;
}

/* Judges what accepts says of words and files that are not the source's own. False: a finding says
 * why it isn't so. */
bool cnri_judge_source_asked(cnri_judging *j) {
    const cnr_source *s = j->descriptor;
    return ask(j, s->accepts);
}

/* Judges that the source reads the samples given, twice alike; skipped without any. False: a
 * finding says why it isn't so. */
bool cnri_judge_source_samples(cnri_judging *j) {
    const cnr_source *s = j->descriptor;
    return each_sample(j, s->accepts, source_sample);
}

/* Judges that the source reads damaged samples without crashing; skipped without any. False: a
 * finding says why it isn't so. */
bool cnri_judge_source_damaged(cnri_judging *j) {
    const cnr_source *s = j->descriptor;
    return each_sample(j, s->accepts, source_damaged);
}

/* ---- importers ---- */

/* False, with a finding: a constant's data hasn't the size of its shape, or there are no inputs or
 * outputs. */
static bool judge_graph(cnri_judging *j, const cnr_graph *g) {
    if (g->outputs.n < 1) return cnri_judging_fail(j, "the net has no outputs");
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnri_value *v = &g->values.at[i];
        if (v->is_input && cnr_count(v->type) == 0)
            return cnri_judging_fail(j, "input %s has no elements", v->name);
        if (v->type->data && !v->type->encoding && v->type->bytes != cnr_dense_bytes(v->type))
            return cnri_judging_fail(j, "weight %s has %llu bytes, its shape %llu", v->name,
                                     (unsigned long long)v->type->bytes,
                                     (unsigned long long)cnr_dense_bytes(v->type));
    }
    return true;
}

/* Imports a net from files; damaged: errors are allowed. False: it failed. */
static bool import_paths(cnri_judging *j, const char *const *paths, int32_t n, bool damaged) {
    const cnr_import_args args = {.size = sizeof args, .paths = paths, .n_paths = n};
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    const cnr_status status = cnri_import(j->descriptor, &args, false, &g, &err);
    bool good = damaged ? cnri_judging_spoke(j, "import", status, &err)
                        : cnri_judging_ok(j, "import", status, &err);
    if (good && !status && !damaged) good = judge_graph(j, g);
    for (int32_t v = 0; good && !status && !damaged && v < g->values.n; v++)
        if (g->values.at[v].type->data)
            see(g->values.at[v].type->data, g->values.at[v].type->bytes);
    if (!status) cnri_graph_free(g);
    return good;
}

/* Imports the files of a word, "net.cfg,net.weights". False: it failed. */
static bool import_whole(cnri_judging *j, const char *word) {
    cnri_paths paths = {0};
    cnr_error err = CNR_ERROR_INIT;
    const bool good = cnri_judging_ok(j, word, cnri_paths_add(&paths, word, &err), &err) &&
                      import_paths(j, (const char *const *)paths.at, paths.n, false);
    cnri_paths_free(&paths);
    return good;
}

/* Imports the files of a word twice; false, with a finding, if it fails or differs. */
static bool importer_sample(cnri_judging *j, const char *word) {
    cnri_judging_case(j, "%s", word);
    return same_again(j, word, import_whole);
}

/* Imports files of which one is damaged. False: it failed. */
static bool importer_damaged(cnri_judging *j, const char *word) {
    cnri_paths paths = {0};
    cnr_error err = CNR_ERROR_INIT;
    bool good = cnri_judging_ok(j, word, cnri_paths_add(&paths, word, &err), &err);
    for (int32_t which = 0; which < paths.n && good; which++) { /* one file at a time */
        char *whole = paths.at[which];
        original f;
        good = original_read(&f, j, whole);
        paths.at[which] = f.path;
        for (int32_t k = 0; k < DAMAGED && good; k++) {
            cnri_judging_case(j, "%s, damaged in way %d of seed %lld", whole, (int)k,
                              (long long)j->o->check.seed);
            good = write_damaged(&f, j, k) &&
                   import_paths(j, (const char *const *)paths.at, paths.n, true);
        }
        paths.at[which] = whole;
        original_free(&f);
    }
    cnri_paths_free(&paths);
    return good;
}

/* Judges what accepts says of words and files that are not the importer's own. False: a finding
 * says why it isn't so. */
bool cnri_judge_importer_asked(cnri_judging *j) {
    const cnr_importer *i = j->descriptor;
    return ask(j, i->accepts);
}

/* Judges that the importer reads the samples given, twice alike; skipped without any. False: a
 * finding says why it isn't so. */
bool cnri_judge_importer_samples(cnri_judging *j) {
    const cnr_importer *i = j->descriptor;
    return each_sample(j, i->accepts, importer_sample);
}

/* Judges that the importer reads damaged samples without crashing; skipped without any. False: a
 * finding says why it isn't so. */
bool cnri_judge_importer_damaged(cnri_judging *j) {
    const cnr_importer *i = j->descriptor;
    return each_sample(j, i->accepts, importer_damaged);
}
