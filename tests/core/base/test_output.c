/* Files written whole or not at all: rights kept, links followed, who else writes, who was killed.
 */
#include "base/base.h"
#include "tests/tap.h"
#include "people/people.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/cnnrun-test-XXXXXX";

/* Path of a file in the test's folder, valid for 15 more calls. */
static const char *in_folder(const char *name) {
    static char paths[16][300];
    static int k;
    k = (k + 1) % 16;
    snprintf(paths[k], sizeof paths[k], "%s/%s", folder, name);
    return paths[k];
}

/* Number of files there, hidden ones too, whose names have `part` (NULL: all). */
static int count_files(const char *part) {
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             (!part || strstr(e->d_name, part));
    if (d) closedir(d);
    return n;
}

/* Removes all files of the test's folder. */
static void empty_folder(void) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(d), e->d_name, e->d_type == DT_DIR ? AT_REMOVEDIR : 0);
    if (d) closedir(d);
}

/* Writes a text to a file with these flags of cnri_write_begin; the first failure's status. */
static cnr_status write_text(const char *path, const char *text, uint32_t flags, cnr_error *err) {
    cnri_writer w;
    cnr_status status = cnri_write_begin(&w, path, flags, err);
    if (status) return status;
    status = cnri_write(&w, text, strlen(text), err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

/* A test: the file holds this text. */
static void holds(const char *path, const char *want, const char *what) {
    char *text = NULL;
    cnri_read_file(path, 1 << 20, &text, NULL, NULL);
    is_text(text ? text : "(nothing)", want, what);
    cnri_free(text);
}

/* The file's mode, links not followed; negative: there is none. */
static int mode_of(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 ? (int)(info.st_mode & 07777) : -1;
}

/* A new file has the rights of the mask, a replaced one keeps its own. */
static void test_rights(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *path = in_folder("rights");
    const mode_t mask = umask(027);
    write_text(path, "1", 0, &err);
    is_int(mode_of(path), 0640, "a new file has the usual rights");
    chmod(path, 0604);
    is_int(write_text(path, "2", 0, &err), CNR_OK, "one with odd rights is replaced");
    is_int(mode_of(path), 0604, "and keeps them");
    chmod(path, 06755);
    write_text(path, "2", 0, &err);
    is_int(mode_of(path), 0755, "but never runs as somebody else");
    write_text(path, "3", CNRI_WRITE_PRIVATE, &err);
    is_int(mode_of(path), 0600, "what is kept for ourselves is ours alone");
    umask(mask);
    if (geteuid() == 0) {
        struct stat info;
        chown(path, 65534, 65533);
        chmod(path, 0660);
        is_int(write_text(path, "4", 0, &err), CNR_OK, "root replaces another's file");
        stat(path, &info);
        ok(info.st_uid == 65534 && info.st_gid == 65533 && (info.st_mode & 0777) == 0660,
           "which stays his");
        chmod(folder, 0777);
        const pid_t child = fork();
        if (child == 0) {
            if (setgid(65532) || setuid(65532)) _exit(9);
            _exit(write_text(path, "5", 0, NULL) ? 1 : 0);
        }
        int code = 0;
        waitpid(child, &code, 0);
        is_int(WEXITSTATUS(code), 1, "who could not keep its owner does not replace it");
        chmod(path, 0666);
        const pid_t other = fork();
        if (other == 0) {
            if (setgid(65532) || setuid(65532)) _exit(9);
            _exit(write_text(path, "5", 0, NULL) ? 1 : 0);
        }
        waitpid(other, &code, 0);
        is_int(WEXITSTATUS(code), 1, "not where he may write into it either");
        holds(path, "4", "it is as it was");
        chmod(folder, 0700);
        is_int(count_files("cnnrun-tmp"), 0, "and nothing is beside it");
    } else {
        skip("root replaces", "not root");
        chmod(path, 0444);
        is_int(write_text(path, "5", 0, &err), CNR_E_IO, "a read-only file is not replaced");
    }
    empty_folder();
}

/* A link is written through, and stays a link. */
static void test_links(void) {
    cnr_error err = CNR_ERROR_INIT;
    struct stat info;
    mkdir(in_folder("far"), 0755);
    symlink("far/target", in_folder("link"));
    symlink("link", in_folder("second"));
    is_int(write_text(in_folder("second"), "1", 0, &err), CNR_OK, "a link's target is made");
    holds(in_folder("far/target"), "1", "where it leads, through a second one");
    write_text(in_folder("link"), "2", 0, &err);
    holds(in_folder("far/target"), "2", "or replaced");
    ok(lstat(in_folder("link"), &info) == 0 && S_ISLNK(info.st_mode), "the link stays");
    write_text(in_folder("link"), "3", CNRI_WRITE_PRIVATE, &err);
    holds(in_folder("far/target"), "2", "what is kept for ourselves goes nowhere else");
    ok(lstat(in_folder("link"), &info) == 0 && S_ISREG(info.st_mode), "the link is replaced");
    symlink("loop", in_folder("loop"));
    is_int(write_text(in_folder("loop"), "1", 0, &err), CNR_E_IO, "a link to itself is refused");
    if (geteuid() == 0) {
        symlink("far/target", in_folder("his"));
        lchown(in_folder("his"), 65534, 65534);
        is_int(write_text(in_folder("his"), "4", 0, &err), CNR_OK, "another's link in our folder");
        chmod(folder, 01777);
        is_int(write_text(in_folder("his"), "5", 0, &err), CNR_E_STATE,
               "not where anybody may put it");
        chmod(folder, 0700);
        holds(in_folder("far/target"), "4", "nothing was written there");
    }
    link(in_folder("far/target"), in_folder("hard"));
    write_text(in_folder("hard"), "6", 0, &err);
    holds(in_folder("hard"), "6", "of hard links one is replaced");
    unlink(in_folder("far/target"));
    empty_folder();
}

/* Places that can't be written are refused with a reason. */
static void test_refusals(void) {
    cnr_error err = CNR_ERROR_INIT;
    is_int(write_text("-", "x", 0, &err), CNR_E_ARG, "- is refused");
    has_text(err.text, "./-", "and told how it could be meant");
    is_int(access("-", F_OK), -1, "and not made");
    is_int(write_text("/dev/null", "x", 0, &err), CNR_E_IO, "a device is not replaced");
    is_int(write_text("/dev/full", "x", 0, &err), CNR_E_IO, "whichever it is");
    mkfifo(in_folder("pipe"), 0600);
    is_int(write_text(in_folder("pipe"), "x", 0, &err), CNR_E_IO, "nor a pipe, nor waited for");
    is_int(write_text(folder, "x", 0, &err), CNR_E_IO, "nor a folder");
    is_int(write_text(in_folder("none/"), "x", 0, &err), CNR_E_IO, "a folder that is not");
    is_int(write_text(in_folder(""), "x", 0, &err), CNR_E_IO, "no name");
    is_int(write_text("", "x", 0, &err), CNR_E_IO, "nothing");
    char name[280];
    memset(name, 'n', 255);
    name[255] = 0;
    is_int(write_text(in_folder(name), "long", 0, &err), CNR_OK, "the longest name");
    name[254] = 'm';
    is_int(write_text(in_folder(name), "also", 0, &err), CNR_OK, "and its neighbour");
    empty_folder();
}

/* ---- others at the same time, and those that are no more ---- */

/* A process that is killed while it writes leaves the old file. */
static void test_leftovers(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *path = in_folder("out");
    write_text(path, "good", 0, &err);
    for (int i = 0; i < 3; i++) {
        int ready[2];
        pipe(ready);
        const pid_t child = fork();
        if (child == 0) {
            cnri_writer w[3];
            for (int k = 0; k < 3; k++) cnri_write_begin(&w[k], path, 0, NULL);
            for (int k = 0; k < 3; k++) cnri_write(&w[k], "half", 4, NULL);
            fflush(w[0].file);
            write(ready[1], "x", 1);
            pause();
            _exit(0);
        }
        char c;
        close(ready[1]);
        is_int(read(ready[0], &c, 1), 1, "a process writes three of the same name");
        if (i == 2) { /* while they are alive */
            write_text(path, "better", 0, &err);
            holds(path, "better", "written beside three others");
            is_int(count_files("cnnrun-tmp"), 3, "whose files stay");
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(ready[0]);
    }
    is_int(count_files("cnnrun-tmp"), 3, "killed, they leave theirs behind");
    holds(path, "better", "and what was there");
    write_text(path, "best", 0, &err);
    is_int(count_files(NULL), 1, "which the next write sweeps");
    holds(path, "best", "and writes");
    empty_folder();
}

/* Several writers at once: a writer that finds a left-over temporary must lock it, and its name
 * may be another writer's by then. */
static void test_many_writers(void) {
    enum { WRITERS = 6, TIMES = 60 };
    const char *path = in_folder("many");
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] != 0) continue;
        static char text[40001];
        memset(text, 'a' + i, sizeof text - 1);
        for (int k = 0; k < TIMES; k++)
            if (write_text(path, text, 0, NULL)) _exit(1);
        _exit(0);
    }
    int failed = 0, torn = 0, code, left = WRITERS;
    while (left > 0) {
        char *text = NULL;
        size_t bytes = 0;
        if (cnri_read_file(path, 1 << 20, &text, &bytes, NULL) == CNR_OK)
            torn += bytes != 40000 || strspn(text, (char[]){text[0], 0}) != bytes;
        cnri_free(text);
        if (waitpid(-1, &code, WNOHANG) > 0) {
            failed += code != 0;
            left--;
        }
    }
    is_int(failed, 0, "six writers of one file all succeed");
    is_int(torn, 0, "and whoever reads finds it whole");
    is_int(count_files(NULL), 1, "nothing else is left");
    empty_folder();
}

/* Files that are being written are dropped at once, by their own process only. */
static void test_drop(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_writer w, others[40];
    cnri_write_begin(&w, in_folder("dropped"), 0, &err);
    const pid_t child = fork();
    if (child == 0) {
        cnri_write_drop_all();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    is_int(count_files(NULL), 1, "a child drops nothing of its parent's");
    cnri_write_drop_all();
    is_int(count_files(NULL), 0, "a handler removes what is being written");
    is_int(cnri_write_commit(&w, &err), CNR_E_NOT_FOUND, "which then fails");
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%d", i);
        cnri_write_begin(&others[i], in_folder(name), 0, &err);
    }
    is_int(count_files(NULL), 40, "more than the table has rows for");
    for (int i = 0; i < 40; i++) cnri_write_abandon(&others[i]);
    is_int(count_files(NULL), 0, "abandoned all the same");
}

/* A full disk or a limit is told, and leaves the old file. */
static void test_limits(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *path = in_folder("large");
    write_text(path, "small", 0, &err);
    const pid_t child = fork();
    if (child == 0) {
        static char text[300001];
        cnr_error why = CNR_ERROR_INIT;
        const struct rlimit limit = {100000, 100000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        memset(text, 'x', sizeof text - 1);
        const cnr_status status = write_text(path, text, 0, &why);
        _exit(status == CNR_E_IO && strstr(why.text, "too large") ? 0 : 1);
    }
    int code = 1;
    waitpid(child, &code, 0);
    is_int(code, 0, "a file that may not be so large is an error that says so");
    holds(path, "small", "what was there is there");
    is_int(count_files(NULL), 1, "and nothing else");
    empty_folder();
}

/* An output that is one of the inputs is refused. */
static void test_check(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *path = in_folder("a,b");
    write_text(path, "input", 0, &err);
    link(path, in_folder("hard"));
    symlink("a,b", in_folder("soft"));
    char listed[320], pair[640];
    snprintf(listed, sizeof listed, "images:%s", in_folder("hard"));
    snprintf(pair, sizeof pair, "%s,%s", in_folder("x"), in_folder("hard"));
    const char *const words[] = {NULL,   path, in_folder("hard"),  in_folder("soft"),
                                 listed, pair, in_folder("other"), "none"};
    for (int32_t i = 1; i < 6; i++) {
        is_int(cnri_write_check(path, &words[i], 1, &err), CNR_E_ARG, "an input is no output");
        has_text(err.text, words[i], "and which is told");
    }
    is_int(cnri_write_check(in_folder("soft"), words, 2, &err), CNR_E_ARG, "nor through a link");
    is_int(cnri_write_check(path, &words[6], 2, &err), CNR_OK, "other words are no matter");
    is_int(cnri_write_check(path, words, 1, &err), CNR_OK, "nor none");
    is_int(cnri_write_check(in_folder("no/where"), words, 1, &err), CNR_E_NOT_FOUND,
           "that it can't be written is told");
    is_int(count_files("cnnrun-tmp"), 0, "nothing stays of the trial");
    holds(path, "input", "the file is as it was");
    empty_folder();
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    test_rights();
    test_links();
    test_refusals();
    test_leftovers();
    test_many_writers();
    test_drop();
    test_limits();
    test_check();
    empty_folder();
    rmdir(in_folder("far"));
    ok(rmdir(folder) == 0, "nothing else was left");
    return done();
}
