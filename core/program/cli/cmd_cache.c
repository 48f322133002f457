/* cnnrun cache: files kept between runs: stored plans, and programs that plugins compiled. */
#include "cli/cli.h"
#include "store/store.h"
#include "people/people.h"
#include "keep/keep.h"
#include <time.h>

/* Options of cache. */
typedef struct cache {
    const char *output, *folder;
    uint64_t limit;
} cache;
/* A row of the table of options. */
#define ROW(member, name, ...) CNRI_OPTION(cache, member, name, __VA_ARGS__)
static const cnri_option options[] =
    {ROW(folder, "--cache", "DIR", "the folder (CNNRUN_CACHE; the user's own)"),
     ROW(limit, "--cache-limit", "BYTES", "most bytes that it may hold (4G)"),
     ROW(output, "--output", "FILE", "of export: where to", .letter = 'o', .writes = true)};
#undef ROW

/* The folder of the cache and its files. */
typedef struct work {
    cnri_call *call;
    const cache *options;
    const char *folder;
    cnri_cache_files files;
} work;

/* *out: bytes that the cache may have, by the options or the default. */
static cnr_status limit_of(const work *w, uint64_t *out, cnr_error *err) {
    return cnri_cache_limit(w->call->common.load.cache_bytes, out, err);
}

/* ---- list ---- */

/* Result: a file. */
typedef struct listed {
    const char *file, *kind;
    char net[64], used[24];
    uint64_t bytes;
    int64_t blobs;
} listed;
static const cnri_field listed_fields[] = {CNRI_KEY(listed, file),
                                           CNRI_KEY(listed, kind),
                                           CNRI_KEY(listed, net),
                                           CNRI_KEY(listed, bytes),
                                           CNRI_KEY(listed, used),
                                           CNRI_MAYBE(listed, "blobs", blobs)};
static const cnri_record listed_record =
    CNRI_RECORD(listed_fields, "{kind:-9} {bytes:10.2M} MB  {used}  {file}\n");

/* Result: the folder. */
typedef struct total {
    const char *folder;
    int64_t files;
    uint64_t bytes, limit, left;
} total;
static const cnri_field total_fields[] = {CNRI_KEY(total, folder), CNRI_KEY(total, files),
                                          CNRI_KEY(total, bytes), CNRI_KEY(total, limit),
                                          CNRI_KEY(total, left)};
static const cnri_record total_record =
    CNRI_RECORD(total_fields, "{files} file{files+s} of {bytes:.2M} MB in {folder}, room for "
                              "{left:.2M} MB (--cache-limit {limit:.0M} MB)\n");

/* The net's name: the part of the file name before the last "-". */
static void net_of(const cnri_cache_file *file, char *out, size_t room) {
    const char *end = strrchr(file->name, '-');
    snprintf(out, room, "%.*s", file->is_plan && end ? (int)(end - file->name) : 0, file->name);
}

static char *path_of(const work *w, const char *name) { return cnri_path_join(w->folder, name); }

/* Number of blobs in a plan; CNRI_NONE: the file is no plan, or damaged. */
static int64_t count_blobs(const work *w, const cnri_cache_file *file) {
    char *path = path_of(w, file->name);
    cnri_cached c;
    int64_t n = CNRI_NONE;
    if (path && file->is_plan && cnri_cached_open(path, &c, NULL) == CNR_OK) {
        n = c.n_blobs;
        cnri_cached_close(&c);
    }
    cnri_free(path);
    return n;
}

/* cache list: prints each file of the folder, and the totals. */
static cnr_status list(work *w, cnr_error *err) {
    total t = {.folder = w->folder, .files = w->files.n};
    cnr_status status = limit_of(w, &t.limit, err);
    for (int32_t i = 0; i < w->files.n && !status; i++) {
        const cnri_cache_file *file = &w->files.at[i];
        const time_t seconds = (time_t)(file->used_ns / 1000000000);
        struct tm when;
        listed l = {.file = file->name,
                    .kind = file->is_plan ? "plan" : "compiled",
                    .bytes = file->bytes,
                    .blobs = count_blobs(w, file)};
        net_of(file, l.net, sizeof l.net);
        if (gmtime_r(&seconds, &when)) strftime(l.used, sizeof l.used, "%Y-%m-%dT%H:%M:%SZ", &when);
        t.bytes += file->bytes;
        status = cnri_tell(w->call, &listed_record, &l, err);
    }
    t.left = t.limit > t.bytes ? t.limit - t.bytes : 0;
    return status ? status : cnri_tell(w->call, &total_record, &t, err);
}

/* ---- which files words name ---- */

/* True if the word names the file: "lenet5" names all plans of that net,
 * "lenet5-0123456789abcdef.plan" that file. */
static bool is_named(const cnri_cache_file *file, const char *word) {
    char net[64];
    net_of(file, net, sizeof net);
    return strcmp(file->name, word) == 0 || (*net && strcmp(net, word) == 0);
}

/* True if the words name the file, or there are no words. */
static bool is_wanted(const work *w, const cnri_cache_file *file) {
    bool wanted = w->call->operands.n == 1;
    for (int32_t i = 1; i < w->call->operands.n; i++)
        wanted = wanted || is_named(file, w->call->operands.at[i]);
    return wanted;
}

/* CNR_E_NOT_FOUND unless each word behind the first names a file of the cache. */
static cnr_status check_words(const work *w, cnr_error *err) {
    for (int32_t i = 1; i < w->call->operands.n; i++) {
        bool found = false;
        for (int32_t k = 0; k < w->files.n; k++)
            found = found || is_named(&w->files.at[k], w->call->operands.at[i]);
        if (!found)
            return cnri_fail(err, CNR_E_NOT_FOUND, w->call->operands.at[i],
                             "nothing of that name is kept in %s; cnnrun cache list", w->folder);
    }
    return CNR_OK;
}

/* ---- show ---- */

/* Prints what a stored plan was made for, and its choices. */
static cnr_status show_plan(work *w, const cnri_cache_file *file, const cnri_cached *c,
                            cnr_error *err) {
    cnri_text text = {0};
    cnri_json j = {0};
    if (w->call->common.json) {
        cnri_json_begin(&j);
        cnri_json_text(&j, "file", file->name);
        cnri_json_text(&j, "made_for", c->identity);
        cnri_json_text(&j, "choices", c->choices);
        cnri_json_list(&j, "blobs");
        for (int32_t i = 0; i < c->n_blobs; i++) {
            cnri_json_object(&j, NULL);
            cnri_json_text(&j, "name", c->blobs[i].name);
            cnri_json_int(&j, "bytes", (int64_t)c->blobs[i].bytes);
            cnri_json_end(&j);
        }
        cnri_json_end(&j);
        return cnri_json_print(&j, err);
    }
    cnri_text_add(&text, "%s\n\n%s\n%s\n", file->name, c->identity, c->choices);
    for (int32_t i = 0; i < c->n_blobs; i++)
        cnri_text_add(&text, "blob %s: %llu bytes\n", c->blobs[i].name,
                      (unsigned long long)c->blobs[i].bytes);
    const bool told = !text.failed && cnri_say_lines(stdout, text.at, text.n) >= 0;
    const cnr_status status =
        told ? CNR_OK : cnri_fail(err, CNR_E_IO, file->name, "can't be shown");
    cnri_text_free(&text);
    return status;
}

/* cache show: prints what the wanted stored plans are made for. */
static cnr_status show(work *w, cnr_error *err) {
    CNR_TRY(check_words(w, err));
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < w->files.n && !status; i++) {
        const cnri_cache_file *file = &w->files.at[i];
        cnri_cached c;
        if (!file->is_plan || !is_wanted(w, file)) continue;
        char *path = path_of(w, file->name);
        status = path ? cnri_cached_open(path, &c, err) : cnri_out_of_memory(err, file->name);
        if (!status) {
            status = show_plan(w, file, &c, err);
            cnri_cached_close(&c);
        }
        cnri_free(path);
    }
    return status;
}

/* ---- verify ---- */

/* Result: a verified file. */
typedef struct verified {
    const char *file, *error;
    bool ok;
    int64_t damaged;
} verified;
static const cnri_field verified_fields[] = {CNRI_KEY(verified, file), CNRI_KEY(verified, ok),
                                             CNRI_KEY(verified, damaged),
                                             CNRI_KEY(verified, error)};
static const cnri_record verified_record =
    CNRI_RECORD(verified_fields,
                "{file}: {error?{error}|{ok?ok|{damaged} damaged blob{damaged+s}}}\n");

/* cache verify: checks the digests of the wanted plans, prints each; fails if any is damaged. */
static cnr_status verify(work *w, cnr_error *err) {
    CNR_TRY(check_words(w, err));
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < w->files.n && !status; i++) {
        const cnri_cache_file *file = &w->files.at[i];
        cnr_error why = CNR_ERROR_INIT;
        cnri_cached c;
        if (!file->is_plan || !is_wanted(w, file)) continue;
        verified v = {.file = file->name};
        char *path = path_of(w, file->name);
        if (!path) return cnri_out_of_memory(err, file->name);
        if (cnri_cached_open(path, &c, &why)) v.error = why.text;
        else {
            for (int32_t k = 0; k < c.n_blobs; k++)
                v.damaged +=
                    !cnri_same_fingerprint(c.blobs[k].data, c.blobs[k].bytes, c.blobs[k].print);
            cnri_cached_close(&c);
        }
        v.ok = !v.error && !v.damaged;
        if (!v.ok) w->call->code = -CNR_E_FORMAT;
        status = cnri_tell(w->call, &verified_record, &v, err);
        cnri_free(path);
    }
    return status;
}

/* ---- clear ---- */

/* cache clear: removes the wanted files, all without words, and prints how much. */
static cnr_status clear(work *w, cnr_error *err) {
    CNR_TRY(check_words(w, err));
    total t = {.folder = w->folder};
    for (int32_t i = 0; i < w->files.n; i++) {
        const cnri_cache_file *file = &w->files.at[i];
        if (!is_wanted(w, file)) continue;
        if (!cnri_cache_remove(w->folder, file->name))
            return cnri_fail_errno(err, file->name, "can't be removed");
        t.files++;
        t.bytes += file->bytes;
    }
    static const cnri_field fields[] = {CNRI_KEY(total, folder), CNRI_KEY(total, files),
                                        CNRI_KEY(total, bytes)};
    static const cnri_record record =
        CNRI_RECORD(fields, "{files} file{files+s} of {bytes:.2M} MB removed from {folder}\n");
    return cnri_tell(w->call, &record, &t, err);
}

/* ---- export, import ---- */

/* Writes a stored plan to another path, through a temporary file. */
static cnr_status copy(const cnri_cached *c, const char *to, uint32_t flags, cnr_error *err) {
    cnri_writer out;
    CNR_TRY(cnri_write_begin(&out, to, flags, err));
    const cnr_status status = cnri_write(&out, c->file.at, c->file.bytes, err);
    if (!status) return cnri_write_commit(&out, err);
    cnri_write_abandon(&out);
    return status;
}

/* cache export: copies one stored plan to the output file. */
static cnr_status export_plan(work *w, cnr_error *err) {
    const char *word = w->call->operands.n == 2 ? w->call->operands.at[1] : NULL;
    const cnri_cache_file *found = NULL;
    cnri_cached c;
    if (!word || !w->options->output)
        return cnri_fail(err, CNR_E_ARG, "export", "want cnnrun cache export NAME -o FILE");
    CNR_TRY(check_words(w, err));
    for (int32_t i = 0; i < w->files.n; i++) /* of a net the one used last */
        if (w->files.at[i].is_plan && is_named(&w->files.at[i], word)) found = &w->files.at[i];
    if (!found) return cnri_fail(err, CNR_E_ARG, word, "is no plan");
    char *path = path_of(w, found->name);
    cnr_status status = path ? cnri_cached_open(path, &c, err) : cnri_out_of_memory(err, word);
    if (!status) {
        status = copy(&c, w->options->output, CNRI_WRITE_PRIVATE, err);
        cnri_cached_close(&c);
    }
    cnri_free(path);
    return status;
}

/* Imports a plan under the name that it had when it was exported. */
static cnr_status import_plan(const work *w, const char *from, uint64_t limit, cnr_error *err) {
    const char *slash = strrchr(from, '/'), *name = slash ? slash + 1 : from;
    const size_t n = strlen(name), tail = strlen(CNRI_PLAN_SUFFIX);
    cnri_cached c;
    if (n <= tail || strcmp(name + n - tail, CNRI_PLAN_SUFFIX) != 0 || *name == '.')
        return cnri_fail(err, CNR_E_ARG, from,
                         "want the name that it had in the cache, NET-DIGEST%s", CNRI_PLAN_SUFFIX);
    CNR_TRY(cnri_cached_open(from, &c, err));
    char *to = path_of(w, name);
    cnr_status status = to ? CNR_OK : cnri_out_of_memory(err, from);
    if (!status && c.file.bytes > limit)
        status = cnri_fail(err, CNR_E_LIMIT, from, "%llu bytes: the cache may hold %llu",
                           (unsigned long long)c.file.bytes, (unsigned long long)limit);
    if (!status) status = cnri_kept_create(w->folder, err);
    if (!status) status = copy(&c, to, CNRI_WRITE_PRIVATE, err);
    if (!status) cnri_cache_trim(w->folder, limit, name, 0);
    cnri_cached_close(&c);
    cnri_free(to);
    return status;
}

/* cache import: copies plans from files into the folder, within its limit. */
static cnr_status import_all(work *w, cnr_error *err) {
    uint64_t limit = 0;
    cnr_status status = limit_of(w, &limit, err);
    if (w->call->operands.n == 1)
        return cnri_fail(err, CNR_E_ARG, "import", "want cnnrun cache import FILE...");
    for (int32_t i = 1; i < w->call->operands.n && !status; i++)
        status = import_plan(w, w->call->operands.at[i], limit, err);
    return status;
}

static const struct {
    const char *name;
    cnr_status (*run)(work *w, cnr_error *err);
} actions[] = {{"list", list},   {"show", show},          {"verify", verify},
               {"clear", clear}, {"export", export_plan}, {"import", import_all}};

/* The command cache. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const cache *given = values;
    call->common.load.cache = given->folder;
    call->common.load.cache_bytes = given->limit;
    work w = {.call = call, .options = given, .folder = cnri_call_cache(call)};
    const int32_t action = CNRI_INDEX_OF(actions, CNRI_COUNT(actions), call->operands.at[0]);
    if (action < 0)
        return cnri_fail(err, CNR_E_ARG, call->operands.at[0],
                         "want list, show, verify, clear, export or import");
    if (!w.folder)
        return cnri_fail(err, CNR_E_ARG, "cache", "which folder? --cache DIR, or CNNRUN_CACHE");
    cnr_status status =
        cnri_cache_list(w.folder, &w.files) ? CNR_OK : cnri_out_of_memory(err, w.folder);
    if (!status) status = actions[action].run(&w, err);
    cnri_cache_list_free(&w.files);
    return status;
}

const cnri_command cnri_cmd_cache = {
    .name = "cache",
    .example = "cnnrun cache list",
    .operands = "list|show|verify|clear|export|import [NAME...]",
    .summary = "Manages the cache folder: stored plans, and programs that plugins compiled.",
    .details =
        "A NAME is a net, for all its plans, or a file of the folder; without one all are meant.\n"
        "  list     what there is, used longest ago first, and the room that is left\n"
        "  show     what a plan was made for, what was chosen, and its blobs\n"
        "  verify   compares each blob with its fingerprint; the exit code tells of damage\n"
        "  clear    removes them\n"
        "  export   writes one plan to FILE; import takes such files\n"
        "Plans of a net lie side by side by devices, threads, structure, options and weights. One "
        "of "
        "another\nmachine is taken, and not found when its net is loaded.\n\n"
        "    cnnrun cache list\n\n"
        "MODEL_CACHE_DISABLE=1 keeps and reads nothing; MODEL_CACHE_MAXSIZE is --cache-limit's "
        "default.",
    .results = CNRI_RESULTS(&listed_record, &total_record, &verified_record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(cache, .output = NULL),
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
