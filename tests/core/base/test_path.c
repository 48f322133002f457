/* Where paths lead: what a file names lies beside it, whatever links say. */
#define _GNU_SOURCE
#include "base/base.h"
#include "tests/tap.h"
#include "people/people.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PATH_MAX] = "/tmp/cnnrun-path-XXXXXX";

/* Path of a file in the test's folder, valid for three more calls. */
static const char *at(const char *name) {
    static char path[4][PATH_MAX];
    static int turn;
    char *room = path[turn++ % 4];
    snprintf(room, PATH_MAX, "%.3000s/%s", folder, name);
    return room;
}

/* Makes an empty file. */
static void make(const char *name) {
    const int fd = open(at(name), O_CREAT | O_WRONLY, 0644);
    if (fd < 0) note("can't make %s", name);
    close(fd);
}

/* Makes a symbolic link. */
static void link_to(const char *target, const char *name) {
    if (symlink(target, at(name)) != 0) note("can't link %s", name);
}

/* want: below the folder; NULL: it is refused with `code`. */
static void beside(const char *from, const char *name, const char *want, cnr_status code) {
    cnr_error err = CNR_ERROR_INIT;
    char *path = NULL;
    const cnr_status status = cnri_path_beside(at(from), name, &path, &err);
    if (want)
        ok(status == CNR_OK && path && strcmp(path, at(want)) == 0, "%s of %s is %s: %s %s", name,
           from, want, path ? path : "", err.text);
    else ok(status == code && !path, "%s of %s is refused: %s", name, from, err.text);
    cnri_free(path);
}

/* Which paths lie beside a net, so that its script may read them. */
static void test_beside(void) {
    mkdir(at("net"), 0755);
    mkdir(at("net/deep"), 0755);
    mkdir(at("other"), 0755);
    make("net/a.lua"), make("net/labels"), make("net/deep/w"), make("other/secret"),
        make("netsecret");
    link_to("labels", "net/near");
    link_to("deep/../labels", "net/round");
    link_to("../other/secret", "net/out");
    link_to("/etc/passwd", "net/far");
    link_to("../other", "net/dir");
    link_to("nowhere", "net/lost");
    link_to("circle", "net/circle");
    link_to("../netsecret", "net/prefix");
    beside("net/a.lua", "labels", "net/labels", 0);
    beside("net/a.lua", "./deep//w", "net/deep/w", 0);
    beside("net/a.lua", "near", "net/labels", 0);
    beside("net/a.lua", "round", "net/labels", 0);
    beside("net/a.lua", "out", NULL, CNR_E_FORMAT);
    beside("net/a.lua", "far", NULL, CNR_E_FORMAT);
    beside("net/a.lua", "prefix", NULL, CNR_E_FORMAT);
    beside("net/a.lua", "dir/secret", NULL, CNR_E_FORMAT);
    beside("net/a.lua", "../other/secret", NULL, CNR_E_FORMAT);
    beside("net/a.lua", "deep/../labels", NULL, CNR_E_FORMAT);
    beside("net/a.lua", "/etc/passwd", NULL, CNR_E_FORMAT);
    beside("net/a.lua", "", NULL, CNR_E_FORMAT);
    beside("net/a.lua", "none", NULL, CNR_E_NOT_FOUND);
    beside("net/a.lua", "lost", NULL, CNR_E_NOT_FOUND);
    beside("net/a.lua", "circle", NULL, CNR_E_IO);
    beside("nonet/a.lua", "labels", NULL, CNR_E_NOT_FOUND);
}

/* hub/snapshots/REV/model -> ../../blobs/1234, as caches of downloads have it */
static void test_cache(void) {
    mkdir(at("hub"), 0755), mkdir(at("hub/blobs"), 0755), mkdir(at("hub/snapshots"), 0755);
    mkdir(at("hub/snapshots/1"), 0755);
    make("hub/blobs/aa"), make("hub/blobs/bb"), make("hub/token");
    link_to("../../blobs/aa", "hub/snapshots/1/model.onnx");
    link_to("../../blobs/bb", "hub/snapshots/1/model.onnx_data");
    link_to("../../token", "hub/snapshots/1/stolen");
    link_to("/etc/passwd", "hub/snapshots/1/far");
    make("hub/snapshots/1/plain.onnx");
    beside("hub/snapshots/1/model.onnx", "model.onnx_data", "hub/blobs/bb", 0);
    beside("hub/snapshots/1/model.onnx", "stolen", NULL, CNR_E_FORMAT);
    beside("hub/snapshots/1/model.onnx", "far", NULL, CNR_E_FORMAT);
    beside("hub/snapshots/1/plain.onnx", "model.onnx_data", NULL, CNR_E_FORMAT);
    if (chown(at("hub/blobs/bb"), 65534, 65534) == 0)
        beside("hub/snapshots/1/model.onnx", "model.onnx_data", NULL, CNR_E_FORMAT);
    else skip("another owner's blob is refused", "the right to give files away");
}

/* A test: whether a path leads below the folder `given`, as it should (want) or not. */
static void leads(const char *path, const char *given, bool want) {
    ok(cnri_path_leads_below(at(path), at(given)) == want, "%s %s %s", path,
       want ? "leads below" : "leads out of", given);
}

/* Which paths lead into a folder, by links too. */
static void test_leads(void) {
    leads("net/labels", "net", true);
    leads("net", "net", true);
    leads("net/near", "net/labels", true);
    leads("net/out", "net", false);
    leads("net/out", "other", true);
    leads("net/dir/new", "net", false);
    leads("net/dir/new", "other", true);
    leads("net/new", "net", true);
    leads("new", "new", true);
    leads("net/lost", "net", false); /* would be made where the link leads */
    leads("net/none/new", "net", false);
    leads("net/new/..", "net", false);
    leads("netsecret", "net", false);
    if (chdir(at("net")) != 0) note("can't go there");
    ok(cnri_path_leads_below("labels", ".") && cnri_path_leads_below("new", ".") &&
           !cnri_path_leads_below("out", ".") && cnri_path_leads_below("/etc/passwd", "/"),
       "relative ones, and the root");
}

int main(void) {
    char command[PATH_MAX + 10], real[PATH_MAX];
    cnr_error err = CNR_ERROR_INIT;
    char *path;
    if (!ok(mkdtemp(folder) && realpath(folder, real), "a folder")) return done();
    memcpy(folder, real, sizeof folder);
    test_beside();
    test_cache();
    test_leads();
    for (int64_t n = 1, status = CNR_E_MEMORY; status == CNR_E_MEMORY; n++) {
        cnri_alloc_fail_at(n);
        status = cnri_path_beside(at("net/a.lua"), "labels", &path, &err);
        cnri_alloc_fail_at(0);
        cnri_free(path);
        if (status != CNR_E_MEMORY) is_int(status, CNR_OK, "memory that runs out is told");
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    is_int(system(command), 0, "cleaned up");
    return done();
}
