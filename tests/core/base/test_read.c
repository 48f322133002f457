/* Reading: nothing waits, nothing is believed that others could have written, nothing mapped that
 * others could cut short. */
#define _GNU_SOURCE
#include "base/base.h"
#include "tests/tap.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[] = "/tmp/cnnrun-read-XXXXXX";
enum { NOBODY = 65534 };

/* Path of a file in the test's folder, valid for a few calls. */
static const char *in_folder(const char *name) {
    static char path[4][200];
    static int turn;
    char *room = path[turn++ % 4];
    snprintf(room, 200, "%s/%s", folder, name);
    return room;
}

/* Writes a file with this mode; returns its path. */
static const char *spill(const char *name, const char *text, mode_t mode) {
    const char *path = in_folder(name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) note("can't write %s", path);
    if (chmod(path, mode) != 0) note("can't chmod %s", path);
    return path;
}

/* ---- nothing waits ---- */

/* A test: the file is not read. */
static void refused(const char *path, const char *what) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_mapping m;
    char *text, head[8], want[80];
    size_t n;
    snprintf(want, sizeof want, "is %s, want a file", what);
    is_int(cnri_read_file(path, 100, &text, NULL, &err), CNR_E_IO, what);
    is_text(err.text, want, "is told");
    is_int(cnri_map_file(path, &m, &err), CNR_E_IO, "nor is it mapped");
    is_int(cnri_read_head(path, head, sizeof head, &n, &err), CNR_E_IO, "nor its head read");
    ok(cnri_read_kept(path, 100, &text, NULL, &err) != CNR_OK && !text, "nor is it kept");
}

/* What is no regular file is refused, without waiting. */
static void test_no_files(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    alarm(60); /* whoever waits for a pipe does so for ever */
    mkfifo(in_folder("fifo"), 0600);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0) note("no socket");
    if (symlink("fifo", in_folder("to-fifo")) != 0) note("no link");
    refused(in_folder("fifo"), "a pipe");
    refused(in_folder("to-fifo"), "a pipe");
    refused(in_folder("socket"), "a socket");
    refused("/dev/zero", "a device");
    refused(folder, "a directory");
    alarm(0);
    close(fd);
}

/* The first bytes of files of any length. */
static void test_head(void) {
    cnr_error err = CNR_ERROR_INIT;
    char head[4];
    size_t n;
    ok(!cnri_read_head(spill("long", "abcdef", 0600), head, 4, &n, &err) && n == 4 &&
           memcmp(head, "abcd", 4) == 0,
       "the first bytes of a long file");
    ok(!cnri_read_head(spill("short", "ab", 0600), head, 4, &n, &err) && n == 2,
       "all of a short one");
    is_int(cnri_read_head(in_folder("none"), head, 4, &n, &err), CNR_E_NOT_FOUND, "none of none");
}

/* ---- who may cut a file short ---- */

/* True: the mapping is a copy of the file. */
static bool is_copied(const char *path) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_mapping m;
    if (cnri_map_file(path, &m, &err)) return note("%s", err.text), false;
    const bool copied = m.copied;
    const int fd = open(path, O_WRONLY | O_TRUNC);
    close(fd);
    if (copied)
        ok(m.bytes == 6 && memcmp(m.at, "weight", 6) == 0, "what was cut short is still there");
    cnri_unmap_file(&m);
    return copied;
}

/* Which files are mapped, and which others could change and are copied. */
static void test_copies(void) {
    ok(!is_copied(spill("own", "weight", 0644)), "a file of ours is mapped");
    ok(is_copied(spill("shared", "weight", 0664)), "one that a group may write is copied");
    ok(is_copied(spill("open", "weight", 0646)), "and one that all may");
    const char *path = spill("theirs", "weight", 0644);
    if (chown(path, NOBODY, NOBODY) == 0) ok(is_copied(path), "one of somebody else is");
    else skip("one of somebody else is", "the right to give files away");
    cnr_error err = CNR_ERROR_INIT;
    cnri_mapping m;
    spill("open", "weight", 0666);
    cnri_alloc_fail_at(1);
    is_int(cnri_map_file(in_folder("open"), &m, &err), CNR_E_MEMORY, "a copy wants memory");
    cnri_alloc_fail_at(0);
}

/* ---- what is kept ---- */

/* A test: what cache_load gives. */
static void kept_is(cnr_status want, const char *text, const char *what) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_mapping m;
    char *got;
    const cnr_status status = cnri_read_kept(in_folder("kept/x"), 100, &got, NULL, &err);
    is_int(status, want, what);
    if (text) has_text(err.text, text, "and says so");
    cnri_free(got);
    is_int(cnri_map_kept(in_folder("kept/x"), &m, &err), want, "mapped, too");
    cnri_unmap_file(&m);
}

/* What was kept in a folder is read only if nobody else can change it. */
static void test_kept(void) {
    char *path = cnri_strdup(in_folder("kept")), *file = cnri_strdup(in_folder("kept/x"));
    mkdir(path, 0700);
    kept_is(CNR_E_NOT_FOUND, NULL, "what is not there");
    spill("kept/x", "mine", 0600);
    kept_is(CNR_OK, NULL, "what is ours alone is read");
    chmod(file, 0644);
    kept_is(CNR_OK, NULL, "others may read it");
    chmod(file, 0620);
    kept_is(CNR_E_STATE, "written by others", "but not write it");
    chmod(file, 0602);
    kept_is(CNR_E_STATE, "written by others", "nobody");
    chmod(file, 0600);
    chmod(path, 0770);
    kept_is(CNR_E_STATE, "written by others", "nor put another in its place");
    chmod(path, 0703);
    kept_is(CNR_E_STATE, "written by others", "nobody");
    chmod(path, 0700);
    if (chown(file, NOBODY, NOBODY) == 0) {
        kept_is(CNR_E_STATE, "another user", "a file of somebody else");
        if (chown(file, geteuid(), getegid()) || chown(path, NOBODY, NOBODY)) note("chown failed");
        kept_is(CNR_E_STATE, "another user", "a folder of somebody else");
        if (chown(path, geteuid(), getegid())) note("chown failed");
    } else skip("what belongs to others", "the right to give files away");
    kept_is(CNR_OK, NULL, "and it was nothing else");
    rename(file, in_folder("away"));
    if (symlink("../away", file)) note("no link");
    kept_is(CNR_E_STATE, "is a link", "a link to it");
    unlink(file);
    rename(in_folder("away"), file);
    rename(path, in_folder("elsewhere"));
    if (symlink("elsewhere", path)) note("no link");
    kept_is(CNR_E_STATE, "is a link", "a link to the folder");
    unlink(path);
    rename(in_folder("elsewhere"), path);
    unlink(file);
    mkfifo(file, 0600);
    alarm(60);
    kept_is(CNR_E_IO, "is a pipe", "a pipe");
    alarm(0);
    unlink(file);
    cnri_free(path);
    cnri_free(file);
}

/* ---- blocks by name ---- */

/* Loads a cached file and compares its text. */
static cnr_status load(const char *name, const char *want) {
    cnr_error err = CNR_ERROR_INIT;
    void *data;
    uint64_t n;
    const cnr_status status = cnri_kept_load(NULL, name, 100, &data, &n, &err);
    if (status) ok(!data && n == 0 && err.code == (int32_t)status, "nothing comes: %s", err.text);
    else ok(n == strlen(want) && memcmp(data, want, n + 1) == 0, "it is what was kept");
    cnri_free(data);
    return status;
}

/* Blocks in the cache are stored and loaded by their names; bad names are refused. */
static void test_blocks(void) {
    static const char *const bad[] = {"", ".hidden", "../up", "a/b", "a b", "a\n"};
    cnr_error err = CNR_ERROR_INIT;
    setenv("CNNRUN_CACHE", in_folder("deep/er/cache"), 1);
    is_int(load("a.bin", ""), CNR_E_NOT_FOUND, "nothing is kept yet");
    is_int(cnri_kept_save(NULL, "a.bin", "block", 5, &err), CNR_OK, "a block is kept");
    is_int(load("a.bin", "block"), CNR_OK, "and comes back");
    struct stat info;
    ok(stat(in_folder("deep/er/cache"), &info) == 0 && (info.st_mode & 0777) == 0700 &&
           stat(in_folder("deep/er/cache/a.bin"), &info) == 0 && (info.st_mode & 0777) == 0600,
       "nobody else sees it");
    is_int(cnri_kept_save(NULL, "a.bin", "", 0, &err), CNR_OK, "an empty one takes its place");
    is_int(load("a.bin", ""), CNR_OK, "and comes back");
    for (size_t i = 0; i < CNRI_COUNT(bad); i++) {
        is_int(cnri_kept_save(NULL, bad[i], "x", 1, &err), CNR_E_ARG, "a name that is none");
        is_int(load(bad[i], ""), CNR_E_ARG, "neither way");
    }
    char large[200] = "";
    is_int(cnri_kept_save(NULL, "b.bin", large, sizeof large, &err), CNR_OK, "a large one");
    is_int(load("b.bin", ""), CNR_E_LIMIT, "the limit holds");
    cnri_kept_save(NULL, "a.bin", "block", 5, &err);
    char *file, *path = cnri_strdup(in_folder("deep/er/cache/a.bin"));
    size_t n, wrong = 0;
    cnri_read_file(path, 1000, &file, &n, &err);
    for (size_t i = 0; i <= n; i++) { /* each byte changed, then one more and one less */
        void *data;
        uint64_t bytes;
        FILE *out = fopen(path, "w");
        if (i < n) file[i] ^= 1;
        fwrite(file, 1, i < n ? n : n - 1, out);
        fclose(out);
        if (i < n) file[i] ^= 1;
        wrong += cnri_kept_load(NULL, "a.bin", 100, &data, &bytes, NULL) != CNR_E_FORMAT;
        cnri_free(data);
    }
    is_int((long long)wrong, 0, "what was changed or cut short is refused");
    cnri_free(file);
    chmod(path, 0666);
    is_int(load("a.bin", ""), CNR_E_STATE, "so is what others could have written");
    chmod(in_folder("deep/er/cache"), 0777);
    is_int(cnri_kept_save(NULL, "c.bin", "x", 1, &err), CNR_E_STATE,
           "nothing is put where others write");
    chmod(in_folder("deep/er/cache"), 0700);
    unsetenv("CNNRUN_CACHE");
    setenv("HOME", in_folder("home"), 1);
    mkdir(in_folder("home"), 0755);
    is_int(cnri_kept_save(NULL, "a.bin", "x", 1, &err), CNR_OK, "without CNNRUN_CACHE");
    is_int(access(in_folder("home/.cache/cnnrun/a.bin"), F_OK), 0, "it is in the home folder");
    unsetenv("HOME");
    is_int(load("a.bin", ""), CNR_E_NOT_FOUND, "without a home there is nothing");
    is_int(cnri_kept_save(NULL, "a.bin", "x", 1, &err), CNR_E_NOT_FOUND, "and nowhere to keep it");
    cnri_free(path);
    setenv("CNNRUN_CACHE", in_folder("deep/er/cache"), 1);
    for (int64_t at = 1, status = CNR_E_MEMORY; status == CNR_E_MEMORY; at++) {
        cnri_alloc_fail_at(at);
        status = cnri_kept_save(NULL, "m.bin", "block", 5, &err);
        cnri_alloc_fail_at(0);
        if (status != CNR_E_MEMORY) is_int(status, CNR_OK, "memory that runs out is told");
    }
    for (int64_t at = 1, status = CNR_E_MEMORY; status == CNR_E_MEMORY; at++) {
        void *data;
        uint64_t bytes;
        cnri_alloc_fail_at(at);
        status = cnri_kept_load(NULL, "m.bin", 100, &data, &bytes, &err);
        cnri_alloc_fail_at(0);
        cnri_free(data);
        if (status != CNR_E_MEMORY) is_int(status, CNR_OK, "in reading, too");
    }
}

int main(void) {
    char command[100];
    umask(022);
    if (!ok(mkdtemp(folder) != NULL, "a folder")) return done();
    test_no_files();
    test_head();
    test_copies();
    test_kept();
    test_blocks();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    is_int(system(command), 0, "cleaned up");
    return done();
}
