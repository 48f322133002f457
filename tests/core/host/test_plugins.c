/* Broken plugins are refused with their reason, harmlessly; sound ones load once. */
#include "host/internal.h"
#include "tests/tap.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BROKEN CNRT_BUILD_DIR "/tests/core/host/broken/"
static char folder[] = "/tmp/cnnrun-plugins-XXXXXX";

static char heard[8192];
/* A log: appends what is told. */
static void listen(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg;
    const size_t n = strlen(heard);
    snprintf(heard + n, sizeof heard - n, "%d %s: %s\n", (int)level, who, text);
}

/* A test: a broken plugin is refused, with this reason. */
static void refused(const char *name, const char *why) {
    char path[512];
    snprintf(path, sizeof path, BROKEN "%s.so", name);
    char *got = cnri_plugin_check(path);
    has_text(got, why, name);
    cnri_free(got);
}

/* The plugin of a file, or NULL. */
static const cnri_plugin *plugin_at_path(const char *path) {
    for (int32_t i = 0; i < cnri_plugin_count(); i++)
        if (strcmp(cnri_plugin_at(i)->path, path) == 0) return cnri_plugin_at(i);
    return NULL;
}

/* Copies a file with this mode. */
static void copy(const char *from, const char *to, mode_t mode) {
    char *data = NULL;
    size_t bytes = 0;
    cnri_read_file(from, 1 << 24, &data, &bytes, NULL);
    const int fd = open(to, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes) ok(0, "copy to %s", to);
    if (fd >= 0) close(fd);
    chmod(to, mode);
    cnri_free(data);
}

/* Path in the test's folder, valid until the next call. */
static const char *in_folder(const char *name) {
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Memory runs out at the first allocation, the second ... until the plugin loads. */
static void test_sound(void) {
    char *why;
    int64_t n = 0;
    do {
        cnri_alloc_fail_at(++n);
        why = cnri_plugin_check(BROKEN "sound.so");
        cnri_alloc_fail_at(0);
        cnri_free(why);
    } while (!cnri_op_find("test_sound") && n < 1000);
    ok(cnri_op_find("test_sound") != NULL,
       "the sound plugin loads, after memory ran out at %d points", (int)n - 1);
    ok(n > 5, "and there were some");
    ok(cnri_plugin_check(BROKEN "sound.so") == NULL, "checked again, it is still good");
    is_int(cnri_plugin_count(), 1, "and seen once");
    int32_t kind = 0;
    const char *name = "";
    ok(cnri_plugin_item(0, 0, &kind, &name) && kind == CNR_KIND_OPERATOR &&
           strcmp(name, "test_sound") == 0,
       "what it brought");
    ok(!cnri_plugin_item(0, 1, &kind, &name) && !cnri_plugin_item(5, 0, &kind, &name), "no more");
    const cnri_plugin *p = cnri_plugin_at(0);
    ok(p->desc && !p->refused && strcmp(p->version, "1.2") == 0 && p->path[0] == '/', "its entry");
    ok(cnri_owner(cnri_op_find("test_sound")) == p, "owns the operator");
}

static void keep_problem(void *arg, const char *text) { snprintf(arg, 512, "%s", text); }

/* Broken plugins are refused with the reason. */
static void test_refusals(void) {
    refused("wrong_magic", "wrong magic deadbeef, want 504e4e43");
    refused("short_struct", "its description has");
    refused("newer_minor",
            "wants ABI 2.1, this host has 2.0: build it with a lower CNR_ABI_WANTED");
    refused("other_major", "built for ABI 3.0, this host has 2.0: build it again");
    refused("wrong_signature", "built with pointers of");
    refused("wrong_order", "byte order, want");
    refused("no_name", "has no name");
    refused("no_init", "has no init");
    refused("no_symbol", "does not export cnr_plugin_query");
    refused("declines", "declines this host");
    refused("undefined", "cnrt_nobody_has_this");
    refused("duplicate", "a plugin of that name is loaded already, from " BROKEN "sound.so");
    ok(cnri_op_find("test_duplicate") == NULL, "the second of a name registers nothing");
    refused("failing_init", "its init failed: failing: the vendor's library said no");
    ok(cnri_op_find("test_failing_init") == NULL, "what a failing init registered is not there");
    is_int(cnri_descriptor_count(CNR_KIND_OPERATOR), 1, "one operator in all");
    char *why = cnri_plugin_check(BROKEN "same_operator.so");
    ok(why == NULL && cnri_op_find("test_same_own"), "a name that is taken leaves the rest");
    ok(strcmp(cnri_owner(cnri_op_find("test_sound"))->name, "sound") == 0, "the first one has it");
    char text[512] = "";
    const cnri_plugin *p = cnri_owner(cnri_op_find("test_same_own"));
    is_int(cnri_plugin_problems(p, keep_problem, text), 1, "which is a problem of the second");
    is_text(text,
            "operator \"test_sound\" of plugin same-operator is left out: plugin sound has one of "
            "that name",
            "told with both names");
    cnri_free(why);
    refused("nothing_there", "No such file");
}

/* A plugin that needs what the machine lacks is not loaded. */
static void test_needs(void) {
    refused("unmet_need", "needs the processor feature fp32x9000, which this machine lacks");
    ok(getenv("CNRT_UNMET") == NULL, "its constructor did not run");
    char *why = cnri_plugin_check(BROKEN "met_need.so");
    ok(why == NULL, "needs that are met load");
    if (why) note("%s", why);
    cnri_free(why);
    is_text(getenv("CNRT_MET"), "1", "and there the constructor ran");
}

/* Broken files: checking only reads a file, so its contents must do no harm. */
static void test_hostile_files(void) {
    char *data = NULL;
    size_t bytes = 0;
    bool failed = false;
    cnri_read_file(BROKEN "unmet_need.so", 1 << 24, &data, &bytes, NULL);
    FILE *file = fopen(in_folder("hostile.so"), "wb");
    if (!data || !file) {
        ok(0, "a file to spoil");
        return;
    }
    uint64_t random = 7;
    int judged = 0;
    for (int i = 0; i < 3000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t head = 64, tail = bytes < 2600 ? bytes : 2600; /* headers stand at both ends */
        const size_t pick = (size_t)(random >> 33) % (head + tail);
        const size_t at = pick < head ? pick : bytes - tail + (pick - head);
        const char saved = data[at];
        data[at] = (char)(random >> 24);
        rewind(file);
        fwrite(data, 1, bytes, file);
        fflush(file);
        cnri_free(cnri_needs_unmet(in_folder("hostile.so"), &failed));
        data[at] = saved;
        judged++;
    }
    is_int(judged, 3000, "3,000 files with one wrong byte are judged without a crash");
    for (size_t cut = 0; cut < bytes; cut += cut < 200 ? 1 : 997) {
        if (ftruncate(fileno(file), 0) != 0) break;
        rewind(file);
        fwrite(data, 1, cut, file);
        fflush(file);
        char *why = cnri_needs_unmet(in_folder("hostile.so"), &failed);
        if (!why && cut < 64) ok(0, "a file of %zu bytes needs nothing", cut);
        cnri_free(why);
    }
    ok(!failed, "nor are those cut short");
    fclose(file);
    cnri_free(data);
    unlink(in_folder("hostile.so"));
    FILE *text = fopen(in_folder("text.so"), "w");
    if (text)
        fputs("This is not a library, and yet it is longer than an ELF header must be.", text);
    if (text) fclose(text);
    char *why = cnri_plugin_check(in_folder("text.so"));
    has_text(why, "not a shared library", "a text file");
    cnri_free(why);
    unlink(in_folder("text.so"));
}

/* Which files of folders are loaded. */
static void test_folders(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *dirs[] = {folder, NULL};
    char linked[300];
    copy(BROKEN "sound.so", in_folder("copy.so"), 0644);
    copy(BROKEN "wrong_magic.so", in_folder("magic.so"), 0644);
    copy(BROKEN "no_symbol.so", in_folder("open.so"), 0666);
    copy(BROKEN "no_symbol.so", in_folder("notes.txt"), 0644);
    copy(BROKEN "plain.so", in_folder("first.so"), 0644);
    snprintf(linked, sizeof linked, "%s", in_folder("linked.so"));
    if (link(in_folder("first.so"), linked) != 0) note("no hard links here");
    heard[0] = 0;
    cnri_log_to(listen, NULL, CNR_LOG_INFO);
    is_int(cnri_plugins_load(dirs, false, &err), CNR_OK, "bad plugins in a folder are no failure");
    has_text(heard, "copy.so: skipped: a plugin of that name", "a copy is a duplicate by name");
    has_text(heard, "2 ", "which is nothing to worry about");
    has_text(heard, "linked.so: skipped: the same file as", "a link by its inode");
    has_text(heard, "magic.so: skipped: wrong magic", "a broken one is logged");
    has_text(heard, "open.so: the file can be written by anyone",
             "so is one that anyone can change");
    ok(strstr(heard, "notes.txt") == NULL, "other files are left alone");
    const cnri_plugin *p = plugin_at_path(in_folder("magic.so"));
    ok(p && !p->desc && p->refused && strcmp(p->name, "magic") == 0, "the reason is kept");
    const int32_t before = cnri_plugin_count();
    heard[0] = 0;
    is_int(cnri_plugins_load(dirs, false, &err), CNR_OK, "searching again");
    ok(cnri_plugin_count() == before && strstr(heard, "magic") == NULL, "changes nothing");
    cnri_log_to(NULL, NULL, CNR_LOG_WARN);
    unlink(linked);
    unlink(in_folder("first.so"));
    unlink(in_folder("copy.so"));
    unlink(in_folder("open.so"));
    unlink(in_folder("notes.txt"));
}

/* A plugin that is named must load. */
static void test_named(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *file[] = {in_folder("magic.so"), NULL};
    is_int(cnri_plugins_load(file, false, &err), CNR_E_VERSION,
           "a bad plugin named outright fails");
    has_text(err.text, "refused: wrong magic", "with the reason");
    has_text(err.where, "magic.so", "and the file");
    unlink(in_folder("magic.so"));
    const char *gone[] = {"/no/such/folder", NULL};
    is_int(cnri_plugins_load(gone, false, &err), CNR_E_NOT_FOUND, "so does a folder not there");
    const char *none[] = {NULL};
    is_int(cnri_plugins_load(none, false, &err), CNR_OK, "no folders at all are fine");
    is_int(cnri_plugins_load(NULL, false, &err), CNR_OK, "nor is a list needed");
}

int main(void) {
    cnri_log_to(listen, NULL, CNR_LOG_INFO);
    if (!mkdtemp(folder)) return 1;
    test_sound();
    test_refusals();
    test_needs();
    test_hostile_files();
    test_folders();
    test_named();
    cnri_plugins_finish();
    ok(rmdir(folder) == 0, "nothing is left behind");
    return done();
}
