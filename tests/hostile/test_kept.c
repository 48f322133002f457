/* What is kept between runs, damaged and forged: stored plans, records of times, plugins' blocks.
 * The answer stays right, nothing crashes, waits or grows. CNNRUN_KEPT: how many of each. */
#include "../guests/guests.h"
#include "store/store.h"
#include "keep/keep.h"
#include <dirent.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/cnnrun-kept-XXXXXX";
static uint32_t seed = 1;

/* A number below n, at random. */
static uint32_t dice(uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return n ? (uint32_t)((uint64_t)(seed >> 4) * n >> 28) : 0;
}

/* A file's bytes. */
typedef struct bytes {
    uint8_t *at;
    size_t n;
} bytes;

static char *path_of(const char *name) { return cnri_path_join(folder, name); }

/* Reads a file. */
static bytes slurp(const char *path) {
    bytes b = {0};
    cnr_error err = CNR_ERROR_INIT;
    if (cnri_read_file(path, 64 << 20, (char **)&b.at, &b.n, &err)) note("%s", err.text);
    return b;
}

/* Writes a file. */
static void spill(const char *path, const bytes *b) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(b->at, 1, b->n, file) != b->n) note("can't write %s", path);
    if (file) fclose(file);
    chmod(path, 0600);
}

/* A copy with some of it changed, cut, doubled or moved; within the first `limit` bytes. */
static bytes mutated(const bytes *from, size_t limit) {
    bytes b = {cnri_alloc(2 * from->n + 64), from->n};
    memcpy(b.at, from->at, from->n);
    if (limit > b.n) limit = b.n;
    for (uint32_t k = 1 + dice(4); k > 0 && b.n > 0 && limit > 0; k--) {
        const size_t at = dice((uint32_t)(limit < b.n ? limit : b.n));
        size_t n = 1 + dice(dice(2) ? 8 : 4000);
        if (n > b.n - at) n = b.n - at;
        switch (dice(7)) {
        case 0: b.at[at] ^= (uint8_t)(1u << dice(8)); break;
        case 1: memset(b.at + at, (int)dice(2) * 255, n); break;
        case 2:
            for (size_t i = 0; i < n; i++) b.at[at + i] = (uint8_t)dice(256);
            break;
        case 3: b.n = at; break;
        case 4: memmove(b.at + at, b.at + at + n, b.n - at - n), b.n -= n; break;
        case 5:
            if (b.n + n > 2 * from->n) break;
            memmove(b.at + at + n, b.at + at, b.n - at), b.n += n;
            break;
        default: memmove(b.at + at, b.at + dice((uint32_t)(b.n - n + 1)), n);
        }
    }
    return b;
}

/* ---- the answer ---- */

/* Runs LeNet on the first digit with the cache folder; scores receives its 10 answers, all 0 after
 * a failure, which is noted. Returns room (n bytes), where the plan came from: its `origin`, or
 * "none" if there is no plan or it has none. */
static const char *origin_of(char *room, size_t n, float *scores) {
    const cnr_load_options load = {.size = sizeof load, .device = "cpu", .cache = folder};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    const cnr_tensor *out = NULL;
    cnr_tensor in = {.size = sizeof in,
                     .dtype = CNR_f32,
                     .rank = 4,
                     .dim = {1, 1, 28, 28},
                     .data = guests_digits,
                     .bytes = DIGIT * sizeof(float)};
    memset(scores, 0, 10 * sizeof *scores);
    cnr_status status =
        cnr_load(guests_rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", &load, &m, &err);
    if (!status) status = cnr_plan_for(m, NULL, 0, &plan, &err);
    snprintf(room, n, "%s", plan && plan->origin ? plan->origin : "none");
    if (!status) status = cnr_session_open(plan, &s, &err);
    if (!status) status = cnr_session_set_input(s, 0, &in, &err);
    if (!status) status = cnr_session_run(s, &err);
    if (!status) status = cnr_session_output(s, 0, &out, &err);
    if (!status) memcpy(scores, out->data, 10 * sizeof *scores);
    else note("%s: %s", err.where, err.text);
    cnr_session_close(s);
    cnr_plan_release(plan);
    cnr_release(m);
    return room;
}

/* How many answers were right, and plans used. */
typedef struct tally {
    int32_t right, hits;
    uint64_t longest;
} tally;

/* Runs with the damaged file and counts. */
static void judge(tally *t, const float *want) {
    alarm(TAP_SANITISED ? 240 : 60); /* whoever hangs ends here; others wait for milliseconds */
    char origin[512];
    float scores[10];
    const uint64_t begin = cnri_now_ns();
    const bool hit = strcmp(origin_of(origin, sizeof origin, scores), "hit") == 0;
    const uint64_t took = cnri_now_ns() - begin;
    bool right = true;
    for (int32_t i = 0; i < 10; i++) right = right && fabsf(scores[i] - want[i]) < 1e-4f;
    if (!right) note("wrong, with a plan that is \"%s\"", origin);
    t->right += right;
    t->hits += hit;
    if (took > t->longest) t->longest = took;
}

/* Reports the counts. */
static void report(const tally *t, int32_t n, const char *what) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    ok(t->right == n, "%s: %d of %d answers are right, %d were taken over", what, t->right, n,
       t->hits);
    note("the longest took %.0f ms; %.0f MB at most", (double)t->longest * 1e-6,
         (double)used.ru_maxrss / 1024);
}

/* ---- stored plans ---- */

/* Path of the stored plan. */
static char *plan_file(void) {
    DIR *d = opendir(folder);
    char *path = NULL;
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (!path && strstr(e->d_name, CNRI_PLAN_SUFFIX)) path = path_of(e->d_name);
    if (d) closedir(d);
    return path;
}

/* A number of 8 bytes, the lowest first. */
static uint64_t number(const uint8_t *p) {
    uint64_t x = 0;
    for (int i = 0; i < 8; i++) x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* As whoever could write it would: digests made right again. The blobs, which nobody but their
 * writer can know to be wrong, stay as they are. */
static bytes forged(const bytes *good) {
    enum { HEADER = CNRI_CACHED_HEADER, TAIL = CNRI_CACHED_TAIL };
    const size_t n = (size_t)number(good->at + CNRI_CACHED_COUNTS + 8);
    const size_t room = (HEADER + n + 4095) / 4096 * 4096 - HEADER; /* up to the first blob */
    const bytes directory = {good->at + HEADER, n};
    bytes changed = mutated(&directory, n), b = {cnri_alloc(good->n), good->n};
    if (changed.n > room) changed.n = room;
    memcpy(b.at, good->at, good->n);
    memset(b.at + HEADER, 0, room);
    memcpy(b.at + HEADER, changed.at, changed.n);
    for (int i = 0; i < 8; i++)
        b.at[CNRI_CACHED_COUNTS + 8 + i] = (uint8_t)((uint64_t)changed.n >> 8 * i);
    if (dice(3) == 0) b.at[CNRI_CACHED_COUNTS + dice(HEADER - 16)] ^= (uint8_t)(1u << dice(8));
    const uint64_t signs = HEADER + number(b.at + CNRI_CACHED_COUNTS + 8);
    if (signs < b.n - TAIL) cnri_sha256_of(b.at, signs, b.at + b.n - TAIL);
    cnri_free(changed.at);
    return b;
}

/* Tests: damaged plans. */
static void plans(int32_t n, const float *want) {
    char *path = plan_file();
    if (!ok(path != NULL, "a plan is stored")) return;
    bytes good = slurp(path);
    tally damaged = {0}, forgeries = {0};
    for (int32_t i = 0; i < n; i++) {
        bytes b = mutated(&good, dice(2) ? 4096 : good.n);
        spill(path, &b);
        cnri_free(b.at);
        judge(&damaged, want);
    }
    report(&damaged, n, "damaged plans");
    for (int32_t i = 0; i < n; i++) {
        bytes b = forged(&good);
        spill(path, &b);
        cnri_free(b.at);
        judge(&forgeries, want);
    }
    report(&forgeries, n, "forged plans");
    unlink(path);
    cnri_free(good.at);
    cnri_free(path);
}

/* True if the bytes are refused, or if a blob or part is told to be damaged, so that it is not
 * used. */
static bool is_refused(const bytes *b) {
    cnri_cached c;
    if (cnri_cached_read("memory", (cnri_mapping){.at = b->at, .bytes = b->n}, &c, NULL))
        return true;
    bool good = true;
    for (int32_t i = 0; i < c.n_blobs + c.n_parts; i++)
        good = good && cnri_same_fingerprint(c.blobs[i].data, c.blobs[i].bytes, c.blobs[i].print);
    cnri_free(c.blobs);
    return !good;
}

/* Tests: one changed byte, at each of the first 4,096 places and at `n` places more. */
static void places(const char *path, int32_t n, const char *what) {
    bytes b = slurp(path);
    int32_t refused = 0;
    ok(!is_refused(&b), "%s is whole", what);
    for (int32_t i = 0; i < 4096 + n; i++) {
        const size_t at = i < 4096 ? (size_t)i % b.n : dice((uint32_t)b.n);
        const uint8_t was = b.at[at];
        b.at[at] ^= (uint8_t)(1 + dice(255));
        refused += is_refused(&b);
        b.at[at] = was;
    }
    ok(refused == 4096 + n, "%s: %d of %d copies with a changed byte are refused", what, refused,
       4096 + n);
    cnri_free(b.at);
}

/* Tests: changed bytes of a stored plan and of a compiled model. */
static void all_places(int32_t n) {
    char *plan = plan_file(), *compiled = path_of("net" CNRI_COMPILED_SUFFIX);
    char *command = cnri_format("%s/cnnrun compile %s/scripts/nets/lenet5.lua -q -o %s >/dev/null",
                                CNRT_BUILD_DIR, CNRT_SOURCE_DIR, compiled);
    if (plan) places(plan, n, "a stored plan");
    if (system(command) == 0) places(compiled, n, "a compiled model");
    else skip("a compiled model", "the program cnnrun");
    unlink(compiled);
    cnri_free(command);
    cnri_free(compiled);
    cnri_free(plan);
}

/* ---- records of times ---- */

/* Puts the digest behind the bytes. */
static void seal(bytes *b) {
    uint8_t digest[32];
    char hex[65];
    char *whole;
    cnri_sha256_of(b->at, b->n, digest);
    cnri_hex(digest, sizeof digest, hex);
    whole = cnri_format("%.*s{\"sha256\":\"%s\"}\n", (int)b->n, (char *)b->at, hex);
    cnri_free(b->at);
    *b = (bytes){(uint8_t *)whole, strlen(whole)};
}

/* Tests: damaged records. */
static void records(int32_t n, const float *want) {
    char *path = path_of("tuning.jsonl"), *plan = plan_file();
    cnri_text text = {0};
    cnri_tuning t = {0};
    cnr_error err = CNR_ERROR_INIT;
    tally damaged = {0};
    for (int32_t i = 0; i < 40; i++) {
        char key[33];
        uint8_t raw[16];
        for (int32_t k = 0; k < 16; k++) raw[k] = (uint8_t)dice(256);
        cnri_hex(raw, 16, key);
        if (cnri_tuning_set(&t, key, i % 2 ? "conv_f32_gemm" : "dense_f32_dot",
                            (cnri_cost){.ns = i + 1}, &err))
            break;
    }
    cnri_tuning_print(&t, &text);
    const bytes good = {(uint8_t *)text.at, text.n};
    for (int32_t i = 0; i < n; i++) {
        const bool sealed = dice(2);
        const bytes rows = {good.at, sealed && good.n > 80 ? good.n - 80 : good.n};
        bytes b = mutated(&rows, rows.n);
        if (sealed) seal(&b);
        spill(path, &b);
        cnri_free(b.at);
        if (plan) unlink(plan);
        judge(&damaged, want);
    }
    report(&damaged, n, "records of times");
    unlink(path);
    cnri_text_free(&text);
    cnri_vec_free(&t.rows);
    cnri_free(path);
    cnri_free(plan);
}

/* ---- blocks of plugins ---- */

/* Tests: damaged blocks that plugins keep. */
static void blocks(int32_t n) {
    char *path = path_of("program.clbin");
    cnr_error err = CNR_ERROR_INIT;
    uint8_t block[3000];
    int32_t right = 0, same = 0;
    for (size_t i = 0; i < sizeof block; i++) block[i] = (uint8_t)dice(256);
    setenv("CNNRUN_CACHE", folder, 1);
    is_int(cnri_kept_save(NULL, "program.clbin", block, sizeof block, &err), CNR_OK,
           "a block is kept");
    bytes good = slurp(path);
    for (int32_t i = 0; i < n; i++) {
        bytes b = mutated(&good, dice(2) ? 80 : good.n);
        const bool whole = b.n == good.n && memcmp(b.at, good.at, b.n) == 0;
        void *data;
        uint64_t got;
        spill(path, &b);
        const cnr_status status = cnri_kept_load(NULL, "program.clbin", 1 << 20, &data, &got, &err);
        right += whole ? status == CNR_OK && got == sizeof block && !memcmp(data, block, got)
                       : status == CNR_E_FORMAT && !data;
        same += whole;
        cnri_free(data);
        cnri_free(b.at);
    }
    ok(right == n, "%d of %d damaged blocks are told from whole ones (%d)", right, n, same);
    unlink(path);
    cnri_free(good.at);
    cnri_free(path);
}

int main(void) {
    const struct rlimit most = {.rlim_cur = (rlim_t)2 << 30, .rlim_max = (rlim_t)2 << 30};
    const char *count = getenv("CNNRUN_KEPT");
    const int32_t n = count && atoi(count) > 0 ? atoi(count) : 40;
    cnr_error err = CNR_ERROR_INIT;
    float want[10];
    char origin[512];
    if (!TAP_SANITISED && setrlimit(RLIMIT_DATA, &most) != 0) note("no limit of memory");
    if (!ok(mkdtemp(folder) && !guests_open(1, &err), "plugins load: %s", err.text)) return done();
    cnri_log_to(NULL, NULL, -1);
    cnr_model *m = guests_lenet(NULL);
    const bool pictures = m && guests_load_digits(m->graph) > 0;
    cnr_release(m);
    if (!pictures) {
        skip("damaged and forged", "pictures of digits");
        return done();
    }
    origin_of(origin, sizeof origin, want);
    has_text(origin, "miss", "a plan is made");
    float again[10];
    is_text(origin_of(origin, sizeof origin, again), "hit", "and taken over");
    all_places(10 * n);
    plans(n, want);
    origin_of(origin, sizeof origin, want);
    records(n, want);
    blocks(n);
    cnri_cache_trim(folder, 0, NULL, 0);
    is_int(rmdir(folder), 0, "nothing else is left in the folder");
    cnr_close(guests_rt);
    return done();
}
