/* A stored plan: taken over by whoever plans the same, refused with a reason when anything that it
 * depends on is another, never trusted, on a device in host memory and on one with its own. */
#include "core/plan/lab.h"
#include "store/store.h"
#include "keep/keep.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLURS = 4, MOST_BYTES = 1 << 20 };

static char folder[64];

/* A model x [batch, 4, 3, 2] -> blurs -> affine on a device, whose weights follow `seed`, with a
 * cache of so many bytes; NULL: failed. */
static cnr_model *model(const char *device, uint32_t seed, uint64_t cache_bytes) {
    static const char *const blobs[] = {"f_blur=far_blur_blob", NULL};
    cnr_graph *g = cnri_graph_new("net");
    cnr_tensor t = lab_type(1, 4, 3, 2);
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    t.dim[0] = CNR_DIM_SYMBOL(cnri_graph_symbol(g, "batch"));
    cnr_value x = cnri_graph_input(g, "x", &t);
    for (uint32_t i = 0; i < BLURS; i++) x = lab_blur(g, x, 4, seed + i);
    cnri_graph_output(g, lab_affine(g, x, 2, 1), "y");
    const cnr_load_options load = {.size = sizeof load,
                                   .cache = folder,
                                   .device = device,
                                   .cache_bytes = cache_bytes};
    if (cnri_model_from_graph(lab_rt, g, &load, &m, &err)) {
        note("%s: %s", err.where, err.text);
        return NULL;
    }
    const cnri_plan_options o = {.device = device, .kernels = device[0] == 'f' ? blobs : NULL};
    cnri_model_set_options(m, &o, &err);
    return m;
}

/* One use of the cache: the plan's origin, and the net's answer. */
typedef struct look {
    char origin[512];
    float answer[24 * 16];
    cnri_residency_stats stats;
    uint64_t arena;
} look;

/* Runs the model; *out receives its answers and where the plan came from. True: it ran. */
static bool ask(cnr_model *m, int64_t batch, look *out) {
    static float data[24 * 16];
    cnr_tensor in = lab_type(batch, 4, 3, 2);
    const cnr_tensor *list[] = {&in}, *y;
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    in.data = data;
    for (int64_t i = 0; i < cnr_count(&in); i++) data[i] = (float)(i % 24) - 11;
    memset(out, 0, sizeof *out);
    cnr_status status = cnr_plan_for(m, list, 1, &plan, &err);
    if (!status) status = cnr_run_tensors(m, list, 1, &y, 1, &err);
    if (status) note("%s: %s", err.where, err.text);
    else {
        memcpy(out->answer, y->data, (size_t)y->bytes);
        snprintf(out->origin, sizeof out->origin, "%s", plan->origin ? plan->origin : "none");
        out->arena = cnr_plan_arena_bytes(plan);
        cnri_residency_stats_of(plan, &out->stats);
    }
    cnr_plan_release(plan);
    return status == CNR_OK;
}

/* Runs like a new process would, with a model of its own; *out as ask's. True: it ran. */
static bool fresh(const char *device, uint32_t seed, int64_t batch, look *out) {
    cnr_model *m = model(device, seed, 0);
    const bool good = m && ask(m, batch, out);
    cnr_release(m);
    return good;
}

/* True: the plan came from there. */
static bool begins(const look *l, const char *with) {
    return strncmp(l->origin, with, strlen(with)) == 0;
}

static char *only_file(void) { return cnri_cache_latest(folder, ""); }

static void empty(void) { cnri_cache_trim(folder, 0, NULL, 0); }

/* ---- bytes of the file ---- */

/* A file's bytes. */
typedef struct bytes {
    uint8_t *at;
    size_t n;
} bytes;

/* Reads a file. */
static bytes slurp(const char *path) {
    bytes b = {malloc(MOST_BYTES), 0};
    FILE *f = fopen(path, "rb");
    if (f && b.at) b.n = fread(b.at, 1, MOST_BYTES, f);
    if (f) fclose(f);
    return b;
}

/* Writes a file. */
static void spill(const char *path, const uint8_t *at, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(at, 1, n, f) != n) note("can't write %s", path);
    if (f) fclose(f);
    chmod(path, 0600);
}

/* A number of 8 bytes, the lowest first. */
static uint64_t get64(const uint8_t *p) {
    uint64_t x = 0;
    for (int i = 0; i < 8; i++) x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* Writes one. */
static void put64(uint8_t *p, uint64_t x) {
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(x >> 8 * i);
}

/* A count of the header: 0 file, 1 directory, 2 identity, 3 choices, 4 blobs, 5 parts. */
static uint8_t *count_at(bytes b, int i) { return b.at + CNRI_CACHED_COUNTS + 8 * i; }

static uint64_t directory_end(bytes b) { return CNRI_CACHED_HEADER + get64(count_at(b, 1)); }

/* Computes the digest again, like an attacker who wants the changed file to be accepted. */
static void sign(bytes b) {
    const uint64_t end = directory_end(b);
    if (end > CNRI_CACHED_HEADER && end < b.n - CNRI_CACHED_TAIL)
        cnri_sha256_of(b.at, end, b.at + b.n - CNRI_CACHED_TAIL);
}

/* ---- tests ---- */

/* Tests: a plan is stored and used. */
static void round_trip(const char *device) {
    look first, second, third;
    empty();
    ok(fresh(device, 2, 1, &first) && begins(&first, "miss: nothing is stored"),
       "%s: first a miss: %s", device, first.origin);
    is_int((long long)first.stats.prepared, BLURS, "which prepares");
    ok(fresh(device, 2, 1, &second) && strcmp(second.origin, "hit") == 0, "%s: then a hit: %s",
       device, second.origin);
    is_int((long long)second.stats.prepared, 0, "nothing is prepared again");
    is_int((long long)second.stats.kept, BLURS, "all blobs are those of the file");
    ok(memcmp(first.answer, second.answer, sizeof first.answer) == 0, "the answer is the same");
    ok(fresh(device, 3, 1, &third) && begins(&third, "weights-replaced: "), "other weights: %s",
       third.origin);
    ok(memcmp(first.answer, third.answer, sizeof first.answer) != 0, "and other answers");
    ok(fresh(device, 3, 1, &second) && begins(&second, "hit"), "which are kept from then on");
    ok(fresh(device, 3, 2, &second) && begins(&second, "miss: shapes changed: was f32x1x4x3x2"),
       "another batch: %s", second.origin);
    ok(fresh(device, 3, 1, &second) && begins(&second, "hit") && fresh(device, 3, 2, &second) &&
           begins(&second, "hit"),
       "both are kept side by side");
    const char *other = device[0] == 'f' ? "far:1" : "far:0";
    ok(fresh(other, 3, 1, &second) && begins(&second, "miss: ") && strstr(second.origin, "changed"),
       "another device: %s", second.origin);
}

/* The stored identity says something else than today's: each line of it. */
static void identities(const char *device) {
    look was, now;
    empty();
    fresh(device, 2, 1, &was);
    char *path = only_file();
    cnri_cached c;
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(path && !cnri_cached_open(path, &c, &err), "the file opens: %s", err.text)) return;
    char *text = cnri_strdup(c.identity);
    cnri_cached_close(&c);
    int32_t lines = 0, wrong = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        bytes b = slurp(path);
        const size_t end = strcspn(at, "\n");
        uint8_t *last = b.at + CNRI_CACHED_HEADER + (size_t)(at - text) + end - 1;
        *last = *last == 'z' ? 'y' : 'z'; /* the line's last letter */
        sign(b);
        spill(path, b.at, b.n);
        char key[64];
        if (strncmp(at, "weights ", 8) == 0) snprintf(key, sizeof key, "weights-replaced: 0 of ");
        else snprintf(key, sizeof key, "stale: %.*s", (int)strcspn(at, " \n"), at);
        lines++;
        if (!fresh(device, 2, 1, &now) || !begins(&now, key) ||
            memcmp(was.answer, now.answer, sizeof was.answer) != 0) {
            wrong++;
            note("wanted \"%s...\", got \"%s\"", key, now.origin);
        } else note("%s", now.origin);
        if (!fresh(device, 2, 1, &now) || !begins(&now, "hit")) wrong++; /* it was stored anew */
        free(b.at);
    }
    ok(lines >= 8 && wrong == 0, "%s: each of %d things that changed is named", device, lines);
    cnri_free(text);
    cnri_free(path);
}

/* Changes a byte of a file; counts wrong answers. */
static void one_tampering(const char *path, bytes b, const look *was, const char *device,
                          int32_t *wrong, const char *want) {
    look now;
    spill(path, b.at, b.n);
    if (fresh(device, 2, 1, &now) && begins(&now, want) &&
        memcmp(was->answer, now.answer, sizeof was->answer) == 0)
        return;
    if ((*wrong)++ == 0) note("wanted \"%s\", got \"%s\"", want, now.origin);
}

/* Tests: changed files are refused. */
static void tampering(const char *device) {
    look was;
    int32_t wrong = 0, tried = 0;
    empty();
    fresh(device, 2, 1, &was);
    char *path = only_file();
    const bytes good = slurp(path);
    bytes b = {malloc(good.n), good.n};
    const size_t end = (size_t)directory_end(good);
    for (size_t i = 0; i < CNRI_CACHED_HEADER; i++) { /* every byte of the header */
        memcpy(b.at, good.at, good.n);
        b.at[i] ^= (uint8_t)(1u << i % 8);
        one_tampering(path, b, &was, device, &wrong, "stale: ");
        tried++;
    }
    is_int(wrong, 0, "every byte of the header counts");
    for (size_t i = CNRI_CACHED_HEADER; i < end; i++) { /* and of the directory */
        memcpy(b.at, good.at, good.n);
        b.at[i] ^= 0x20;
        one_tampering(path, b, &was, device, &wrong, "stale: damaged");
        tried++;
    }
    is_int(wrong, 0, "and of the directory");
    for (size_t n = 0; n < good.n; n += n < 160 || n + 160 > good.n ? 1 : 509) {
        b.n = n;
        memcpy(b.at, good.at, n);
        one_tampering(path, b, &was, device, &wrong, "stale: ");
        tried++;
    }
    is_int(wrong, 0, "a file cut short anywhere is refused");
    note("%d files tried", (int)tried);
    b.n = good.n;
    /* a byte of a blob: the plan is good, the blob is made again */
    memcpy(b.at, good.at, good.n);
    b.at[(end + CNRI_CACHED_ALIGN - 1) / CNRI_CACHED_ALIGN * CNRI_CACHED_ALIGN] ^= 1;
    spill(path, b.at, b.n);
    look now;
    ok(fresh(device, 2, 1, &now) && begins(&now, "hit") && now.stats.prepared == 1 &&
           now.stats.kept == BLURS - 1 && memcmp(was.answer, now.answer, sizeof was.answer) == 0,
       "%s: a damaged blob is prepared again", device);
    free(b.at);
    free(good.at);
    cnri_free(path);
}

/* Well signed, and lying. */
static void lies(const char *device) {
    look was;
    int32_t wrong = 0;
    empty();
    fresh(device, 2, 1, &was);
    char *path = only_file();
    const bytes good = slurp(path);
    bytes b = {malloc(good.n), good.n};
    const size_t dir = CNRI_CACHED_HEADER, identity = (size_t)get64(count_at(good, 2));
    const size_t choices = (size_t)get64(count_at(good, 3)), table = dir + identity + choices + 2;
    for (size_t i = 0; i < choices; i++) { /* each letter of the choices */
        memcpy(b.at, good.at, good.n);
        uint8_t *at = b.at + dir + identity + 1 + i;
        *at = *at == '9' ? '8' : '9';
        sign(b);
        one_tampering(path, b, &was, device, &wrong, "stale: ");
    }
    is_int(wrong, 0, "choices that are not what a kernel would say are refused");
    static const struct {
        int where, size;
        uint64_t value;
        const char *want;
    } numbers[] = {{0, 8, 1, "stale: damaged"},
                   {0, 8, UINT64_MAX & ~UINT64_C(4095), "stale: damaged"},
                   {0, 8, 0, "stale: damaged"},
                   {0, 8, UINT64_C(1) << 40, "stale: damaged"},
                   {8, 8, UINT64_MAX, "stale: damaged"},
                   {8, 8, 0, "stale: "},
                   {8, 8, 31, "stale: "},
                   {16, 8, 7, "stale: damaged"},
                   {40, 4, UINT32_MAX, "stale: damaged"},
                   {40, 4, 0, "stale: damaged"},
                   {CNRI_CACHED_ROW, 1, 'q', "stale: "}};
    for (size_t i = 0; i < CNRI_COUNT(numbers); i++) { /* the first blob's row */
        memcpy(b.at, good.at, good.n);
        for (int k = 0; k < numbers[i].size; k++)
            b.at[table + (size_t)numbers[i].where + (size_t)k] =
                (uint8_t)(numbers[i].value >> 8 * k);
        sign(b);
        one_tampering(path, b, &was, device, &wrong, numbers[i].want);
    }
    is_int(wrong, 0, "so are blobs outside the file or of another size or name");
    static const uint64_t values[] = {0,    1,         127,        128,
                                      4096, INT64_MAX, UINT64_MAX, UINT64_MAX - 4095};
    for (int f = 0; f < 6; f++)
        for (size_t v = 0; v < CNRI_COUNT(values); v++) {
            if (get64(count_at(good, f)) == values[v]) continue;
            memcpy(b.at, good.at, good.n);
            put64(count_at(b, f), values[v]);
            sign(b);
            one_tampering(path, b, &was, device, &wrong, "stale: ");
        }
    is_int(wrong, 0, "and numbers in the header that do not fit");
    spill(path, good.at, good.n);
    chmod(path, 0666);
    look now;
    ok(fresh(device, 2, 1, &now) && begins(&now, "stale: can be written by others"),
       "and a file that anyone may have written: %s", now.origin);
    free(b.at);
    free(good.at);
    cnri_free(path);
}

/* ---- what goes on with a plan that was taken over ---- */

/* Tests: one weight is replaced. */
static void new_weight(const char *device) {
    look was, now;
    cnr_error err = CNR_ERROR_INIT;
    float numbers[4] = {1, -2, 3, 0.5f};
    cnr_tensor w = {.size = sizeof w,
                    .dtype = CNR_f32,
                    .rank = 1,
                    .dim = {4},
                    .data = numbers,
                    .bytes = sizeof numbers};
    empty();
    fresh(device, 2, 1, &was);
    cnr_model *a = model(device, 2, 0), *b = model(device, 2, 0);
    cnr_plan *plan = NULL;
    look before, after, plain;
    ask(a, 1, &before);
    cnr_plan_for(a, NULL, 0, &plan, &err);
    const char *name = NULL;
    for (int32_t i = 0; i < plan->graph->values.n && !name; i++)
        if (plan->graph->values.at[i].name && plan->graph->values.at[i].name[0] == 'w')
            name = plan->graph->values.at[i].name;
    ok(begins(&before, "hit") && !cnr_plan_set_weight(plan, name, &w, &err),
       "%s: a new weight in a plan that was taken over: %s", device, err.text);
    ask(a, 1, &after);
    cnri_free(b->cache);
    b->cache = NULL;
    cnri_graph_fill(b->graph, cnri_graph_find(b->graph, name), &w, &err);
    ask(b, 1, &plain);
    ok(memcmp(after.answer, before.answer, sizeof after.answer) != 0 &&
           memcmp(after.answer, plain.answer, sizeof after.answer) == 0,
       "answers as a plan does that was made for it");
    cnr_plan_release(plan);
    cnr_release(a);
    cnr_release(b);
    ok(fresh(device, 2, 1, &now) && begins(&now, "hit") &&
           memcmp(now.answer, was.answer, sizeof was.answer) == 0,
       "and the file is as it was");
}

/* Tests: bounds of memory. */
static void bounded(const char *device) {
    look was, now;
    cnr_error err = CNR_ERROR_INIT;
    empty();
    fresh(device, 2, 1, &was);
    cnr_model *m = model(device, 2, 0);
    cnri_plan_options o = m->plan_options;
    static const char *const blobs[] = {"f_blur=far_blur_blob", NULL};
    const uint64_t bound = device[0] == 'f' ? 32 : 64; /* two of four blobs */
    o.kernels = device[0] == 'f' ? blobs : NULL;
    o.device = device;
    cnri_model_set_options(m, &o, &err);
    (void)ask(m, 1, &now);
    o.memory_bound = bound + now.arena;
    cnri_model_set_options(m, &o, &err);
    ok(ask(m, 1, &now) && begins(&now, "miss"), "%s: a bound has a plan of its own", device);
    cnr_release(m);
    m = model(device, 2, 0);
    cnri_model_set_options(m, &o, &err);
    const bool ran = ask(m, 1, &now) && ask(m, 1, &now);
    ok(ran && begins(&now, "hit") && now.stats.peak <= bound && now.stats.evicted > 0 &&
           now.stats.prepared == 0 && memcmp(now.answer, was.answer, sizeof was.answer) == 0,
       "%s: under a bound blobs come from the file and go: at most %d bytes, %d came, %d went",
       device, (int)now.stats.peak, (int)now.stats.kept, (int)now.stats.evicted);
    cnr_release(m);
}

/* Bytes and number of files in the folder. */
static uint64_t folder_bytes(int32_t *files) {
    uint64_t sum = 0;
    DIR *d = opendir(folder);
    *files = 0;
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char path[400];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        sum += (uint64_t)info.st_size;
        ++*files;
    }
    if (d) closedir(d);
    return sum;
}

/* Tests: the limit of the folder's bytes. */
static void limit(void) {
    look l;
    int32_t files;
    empty();
    cnr_model *m = model("near", 2, 0);
    ask(m, 1, &l);
    cnr_release(m);
    const uint64_t one = folder_bytes(&files), most = 3 * one + one / 2;
    m = model("near", 2, most);
    bool kept = true;
    for (int64_t batch = 2; batch <= 9; batch++) {
        ask(m, batch, &l);
        kept = kept && folder_bytes(&files) <= most;
    }
    ok(kept && files == 3, "the folder holds %d plans, %llu of %llu bytes", (int)files,
       (unsigned long long)folder_bytes(&files), (unsigned long long)most);
    cnr_release(m);
    ok(fresh("near", 2, 9, &l) && begins(&l, "hit") && fresh("near", 2, 2, &l) &&
           begins(&l, "miss"),
       "the oldest went");
    m = model("near", 2, 1000);
    ok(ask(m, 5, &l) && begins(&l, "miss"), "one that is larger than the folder is not stored");
    cnr_release(m);
}

/* Tests: a folder that cannot be written. */
static void unwritable(void) {
    look l;
    char was[sizeof folder];
    memcpy(was, folder, sizeof was);
    snprintf(folder, sizeof folder, "/dev/null/cache");
    ok(fresh("near", 2, 1, &l) && begins(&l, "miss: "),
       "a folder that can't be: planned all the same: %s", l.origin);
    memcpy(folder, was, sizeof folder);
}

/* Log sink: counts messages on the variable. */
static void hear_size(void *arg, int32_t level, const char *who, const char *text) {
    *(int32_t *)arg += level == CNR_LOG_WARN && strcmp(who, "cache") == 0 &&
                       strstr(text, "MODEL_CACHE_MAXSIZE: \"much\": want bytes") != NULL;
}

/* Variables that forbid to store, or that say no size: the same for applications as for commands.
 */
static void variables(void) {
    int32_t files, told = 0;
    look l;
    empty();
    setenv("MODEL_CACHE_DISABLE", "1", 1);
    ok(fresh("near", 2, 1, &l) && strcmp(l.origin, "none") == 0,
       "MODEL_CACHE_DISABLE: no cache: %s", l.origin);
    unsetenv("MODEL_CACHE_DISABLE");
    setenv("MODEL_CACHE_MAXSIZE", "much", 1);
    cnri_log_to(hear_size, &told, CNR_LOG_WARN);
    const bool ran = fresh("near", 2, 1, &l);
    cnri_log_to(NULL, NULL, -1);
    unsetenv("MODEL_CACHE_MAXSIZE");
    folder_bytes(&files);
    ok(ran && told == 1 && files == 0, "MODEL_CACHE_MAXSIZE=much: told, and nothing is stored");
}

/* Memory runs out anywhere on the way: an error or a plan, never a crash. */
static void starve(void) {
    cnr_error err = CNR_ERROR_INIT;
    look l;
    empty();
    for (int32_t pass = 0; pass < 2; pass++) { /* storing, then taking over */
        int32_t n = 1, other = 0;
        bool good = false;
        for (; n < 20000 && !good; n++) {
            cnr_model *m = model("near", 2, 0);
            cnr_plan *plan = NULL;
            if (pass == 0) empty();
            err.code = 0;
            cnri_alloc_fail_at(n);
            const cnr_status status = cnr_plan_for(m, NULL, 0, &plan, &err);
            cnri_alloc_fail_at(0);
            if (status && status != CNR_E_MEMORY) other++;
            int32_t files;
            folder_bytes(&files);
            good = !status && (pass ? strcmp(plan->origin, "hit") == 0 : files == 1);
            if (!status) cnr_plan_release(plan);
            cnr_release(m);
        }
        ok(good && other == 0, "%s after %d failures of allocation, each told as such",
           pass ? "taken over" : "stored", (int)n - 1);
        fresh("near", 2, 1, &l);
    }
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    static const char *const devices[] = {"near", "far:0"};
    snprintf(folder, sizeof folder, "/tmp/cnnrun-plans-XXXXXX");
    if (!ok(mkdtemp(folder) != NULL && lab_open(&err) == CNR_OK, "a folder and a plugin"))
        return done();
    cnri_log_to(NULL, NULL, -1);
    for (size_t i = 0; i < CNRI_COUNT(devices); i++) {
        round_trip(devices[i]);
        identities(devices[i]);
        new_weight(devices[i]);
        bounded(devices[i]);
    }
    tampering("near");
    lies("near");
    lies("far:0");
    limit();
    unwritable();
    variables();
    starve();
    empty();
    rmdir(folder);
    cnr_close(lab_rt);
    return done();
}
