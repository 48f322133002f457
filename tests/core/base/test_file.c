/* Files mapped, read and written whole; paths; digests; clock. */
#include "base/base.h"
#include "tests/tap.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/cnnrun-test-XXXXXX";

/* Path of a file in the test's folder, valid for three more calls. */
static const char *in_folder(const char *name) {
    static char paths[4][256];
    static int k;
    k = (k + 1) % 4;
    snprintf(paths[k], sizeof paths[k], "%s/%s", folder, name);
    return paths[k];
}

/* Number of files in the test's folder. */
static int files_in_folder(void) {
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d) closedir(d);
    return n;
}

/* Writes the text to a file; the writer's status. */
static cnr_status write_file(const char *path, const char *text, cnr_error *err) {
    cnri_writer w;
    cnr_status status = cnri_write_begin(&w, path, 0, err);
    if (status != CNR_OK) return status;
    status = cnri_write(&w, text, strlen(text), err);
    if (status == CNR_OK) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

/* Files are written whole or not at all, and keep their rights. */
static void test_writing(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *path = in_folder("a");
    char *text = NULL;
    size_t bytes = 0;
    is_int(write_file(path, "first", &err), CNR_OK, "a file is written");
    is_int(write_file(path, "second", &err), CNR_OK, "and replaced");
    is_int(cnri_read_file(path, 100, &text, &bytes, &err), CNR_OK, "and read");
    ok(bytes == 6 && text && strcmp(text, "second") == 0, "as it was written, NUL behind");
    cnri_free(text);

    cnri_writer w;
    cnri_write_begin(&w, path, 0, &err);
    cnri_write(&w, "half", 4, &err);
    is_int(files_in_folder(), 2, "a temporary stands beside it meanwhile");
    cnri_write_abandon(&w);
    is_int(files_in_folder(), 1, "abandoning removes it");
    cnri_read_file(path, 100, &text, NULL, &err);
    is_text(text, "second", "and leaves the old file");
    cnri_free(text);

    struct stat info;
    stat(path, &info);
    const mode_t mask = umask(0);
    umask(mask);
    is_int(info.st_mode & 0777, 0666 & ~mask, "written with the usual rights");
    is_int(write_file(in_folder("no/such"), "x", &err), CNR_E_NOT_FOUND, "no folder, no file");
    has_text(err.where, "no/such", "the error names the path");
    is_int(write_file("/dev/null", "x", &err), CNR_E_IO, "a device is not replaced");
    is_int(write_file(folder, "x", &err), CNR_E_IO, "nor a folder");
}

/* What reading a file gives: text, missing files, and those that are too long. */
static void test_reading(void) {
    cnr_error err = CNR_ERROR_INIT;
    char *text = NULL;
    size_t bytes = 1;
    is_int(cnri_read_file(in_folder("none"), 10, &text, NULL, &err), CNR_E_NOT_FOUND, "missing");
    has_text(err.text, "No such file", "and the system's reason");
    is_int(cnri_read_file(folder, 10, &text, NULL, &err), CNR_E_IO, "a folder is no file");
    is_int(cnri_read_file(in_folder("a"), 5, &text, NULL, &err), CNR_E_LIMIT, "a limit holds");
    ok(text == NULL, "nothing is handed out on an error");
    is_int(cnri_read_file(in_folder("a"), 6, &text, NULL, &err), CNR_OK, "at the limit is fine");
    cnri_free(text);
    is_int(cnri_read_file("/proc/self/status", 1 << 20, &text, &bytes, &err), CNR_OK,
           "files that tell no size are read");
    ok(bytes > 100 && strlen(text) == bytes, "in full");
    cnri_free(text);
    is_int(cnri_read_file("/dev/zero", 100000, &text, NULL, &err), CNR_E_IO, "no device is read");
    is_int(cnri_read_file(in_folder("none"), 1, &text, NULL, NULL), CNR_E_IO, "without a record");
    int64_t n = 1;
    cnr_status status;
    do {
        cnri_alloc_fail_at(n++);
        status = cnri_read_file("/proc/self/status", 1 << 20, &text, NULL, &err);
        cnri_alloc_fail_at(0);
    } while (status == CNR_E_MEMORY);
    is_int(status, CNR_OK, "memory may run out at any point");
    ok(n > 2, "and did");
    cnri_free(text);
    n = 1;
    do {
        cnri_alloc_fail_at(n++);
        status = write_file(in_folder("a"), "third", &err);
        cnri_alloc_fail_at(0);
    } while (status == CNR_E_MEMORY);
    ok(status == CNR_OK && n > 3 && files_in_folder() == 1,
       "in writing too, leaving nothing behind");
}

/* A mapped file has the file's bytes, also an empty one. */
static void test_mapping(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_mapping m;
    write_file(in_folder("m"), "mapped", &err);
    is_int(cnri_map_file(in_folder("m"), &m, &err), CNR_OK, "a file is mapped");
    ok(m.bytes == 6 && memcmp(m.at, "mapped", 6) == 0, "with its bytes");
    cnri_unmap_file(&m);
    ok(m.at == NULL && m.bytes == 0, "and unmapped");
    write_file(in_folder("m"), "", &err);
    is_int(cnri_map_file(in_folder("m"), &m, &err), CNR_OK, "an empty file is mapped");
    ok(m.bytes == 0, "to nothing");
    cnri_unmap_file(&m);
    is_int(cnri_map_file(in_folder("none"), &m, &err), CNR_E_NOT_FOUND, "a missing one is not");
    is_int(cnri_map_file("/dev/null", &m, &err), CNR_E_IO, "nor a device");
}

/* A test: what cnri_path_join gives. */
static void join_is(const char *directory, const char *name, const char *want) {
    char *path = cnri_path_join(directory, name);
    is_text(path, want, "joined");
    cnri_free(path);
}

/* A test: what cnri_path_dir gives. */
static void dir_is(const char *path, const char *want) {
    char *dir = cnri_path_dir(path);
    is_text(dir, want, "the folder of a path");
    cnri_free(dir);
}

/* Paths are joined and split as they should be. */
static void test_paths(void) {
    join_is("a", "b", "a/b");
    join_is("a/", "b", "a/b");
    join_is("", "b", "b");
    join_is("a", "/b", "/b");
    dir_is("a/b/c", "a/b");
    dir_is("a", ".");
    dir_is("/a", "/");
    char *dir = cnri_executable_dir();
    ok(dir && strstr(CNRT_BUILD_DIR "/tests/core/base", dir) != NULL, "where this program lies");
    cnri_free(dir);
}

/* A test: the SHA-256 digest. */
static void digest_is(const void *data, size_t bytes, const char *want, const char *what) {
    uint8_t digest[32];
    char text[65];
    cnri_sha256_of(data, bytes, digest);
    cnri_hex(digest, 32, text);
    is_text(text, want, what);
}

/* FIPS 180-4's own examples. */
static void test_digests(void) {
    digest_is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "nothing");
    digest_is("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
    digest_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", "56 bytes");
    static uint8_t million[1000000], digest[32], pieces[32];
    memset(million, 'a', sizeof million);
    digest_is(million, sizeof million,
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "a million a");
    cnri_sha256 s;
    cnri_sha256_begin(&s);
    for (size_t at = 0, n = 1; at < sizeof million; at += n, n = n * 7 % 331 + 1) {
        if (n > sizeof million - at) n = sizeof million - at;
        cnri_sha256_add(&s, million + at, n);
    }
    cnri_sha256_end(&s, pieces);
    cnri_sha256_of(million, sizeof million, digest);
    ok(memcmp(digest, pieces, 32) == 0, "in pieces of any size");
}

/* The monotonic clock goes on. */
static void test_clock(void) {
    const uint64_t before = cnri_now_ns();
    usleep(2000);
    const uint64_t passed = cnri_now_ns() - before;
    ok(passed >= 2000000 && passed < 5000000000u, "two milliseconds take some time");
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    test_writing();
    test_reading();
    test_mapping();
    test_paths();
    test_digests();
    test_clock();
    unlink(in_folder("a"));
    unlink(in_folder("m"));
    ok(rmdir(folder) == 0, "nothing else was left");
    return done();
}
