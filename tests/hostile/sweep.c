/* Runs one command of the program over and over, with another allocation failing each time, and
 * compares: the same answer and the same files, or an error that speaks of memory and no new file.
 *
 *     sweep PLUGINS FOLDER POINTS COMMAND WORDS...
 *
 * A checkpoint may be left behind an error: then the command, run again, has to end with the same
 * files. The command works in a copy of FOLDER. POINTS: how many allocations to try (0: all of
 * them), each failing once and then failing on. Plugins are loaded once; every try is a fork of
 * that. */
#define _GNU_SOURCE
#include "lua/script.h"
#include "run/run.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int cnnrun_main(int argc, char **argv); /* core/program/cli/main.c */

enum { MOST_FILES = 64, MOST_SECONDS = 120, SHOWN = 6 };
/* One allocation fails, or all from it on. */
typedef enum mode { ONCE, ON, MODES } mode;

/* A file's name and digest. */
typedef struct file {
    char name[256];
    uint8_t print[16];
} file;
/* The files of a folder. */
typedef struct folder {
    file at[MOST_FILES];
    int n;
} folder;
/* How a run ended, and what it left. */
typedef struct outcome {
    char *out, *err;
    int status; /* of waitpid */
    folder left;
    bool strays; /* went on from the checkpoint that was left, to other files */
} outcome;

static struct {
    char **words;
    int n_words;
    const char *from, *checkpoint; /* the file of --checkpoint, or NULL */
    char base[64], work[96], out[96], err[96];
    int64_t *count; /* shared with children: allocations they made */
    folder before;
    outcome good;
} sweep;

/* Ends the program with a message. */
static void die(const char *what) {
    perror(what);
    exit(2);
}

/* ---- folders: flat, but for one level below ---- */

/* The bytes of a file; *n their number. */
static char *slurp(const char *path, size_t *n) {
    FILE *in = fopen(path, "rb");
    size_t room = 1 << 16;
    char *text = malloc(room);
    *n = 0;
    if (!in || !text) die(path);
    for (size_t got; (got = fread(text + *n, 1, room - *n - 1, in)) > 0;) {
        *n += got;
        if (room - *n < 2 && !(text = realloc(text, room *= 2))) die(path);
    }
    fclose(in);
    text[*n] = 0;
    return text;
}

/* Lists a folder with all below it. */
static void look(const char *path, const char *prefix, folder *out) {
    DIR *d = opendir(path);
    char full[700];
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat info;
        size_t n;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(full, sizeof full, "%s/%s", path, e->d_name);
        if (stat(full, &info) != 0) die(full);
        if (S_ISDIR(info.st_mode)) {
            char below[300];
            snprintf(below, sizeof below, "%s/", e->d_name);
            look(full, below, out);
            continue;
        }
        if (out->n == MOST_FILES) die("too many files");
        file *f = &out->at[out->n++];
        snprintf(f->name, sizeof f->name, "%.40s%.200s", prefix, e->d_name);
        char *text = slurp(full, &n);
        cnri_fingerprint(text, n, f->print);
        free(text);
    }
    if (d) closedir(d);
}

/* A file of that name, or NULL. */
static const file *find(const folder *in, const char *name) {
    for (int i = 0; i < in->n; i++)
        if (strcmp(in->at[i].name, name) == 0) return &in->at[i];
    return NULL;
}

/* True: both files hold the same. */
static bool same_file(const file *a, const file *b) {
    return a && b && memcmp(a->print, b->print, sizeof a->print) == 0;
}

/* True: both folders hold the same. */
static bool same_folder(const folder *a, const folder *b) {
    for (int i = 0; i < a->n; i++)
        if (!same_file(&a->at[i], find(b, a->at[i].name))) return false;
    return a->n == b->n;
}

/* Removes the folders. */
static void clean(void) {
    char line[200];
    snprintf(line, sizeof line, "rm -rf '%s'", sweep.base);
    if (system(line) != 0) die(line);
}

/* Makes the work folder anew. */
static void renew_work(void) {
    char line[1200];
    snprintf(line, sizeof line, "rm -rf '%s' && cp -rL '%s' '%s'", sweep.work, sweep.from,
             sweep.work);
    if (system(line) != 0) die(line);
}

/* ---- one try ---- */

/* Sends a stream to a file. */
static void redirect(const char *path, int to) {
    const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (fd < 0 || dup2(fd, to) < 0) _exit(99);
    close(fd);
}

/* The child: runs the command with failure n. */
static void child(int64_t n, mode how) {
    if (chdir(sweep.work) != 0) _exit(99);
    redirect(sweep.out, 1);
    redirect(sweep.err, 2);
    alarm(MOST_SECONDS);
    const int64_t before = cnri_alloc_count();
    if (n > 0) how == ONCE ? cnri_alloc_fail_once(n) : cnri_alloc_fail_at(n);
    const int code = cnnrun_main(sweep.n_words, sweep.words);
    *sweep.count = cnri_alloc_count() - before;
    fflush(NULL);
    _exit(code);
}

/* True if the text before `at` is what stands before a number that a clock made, as JSON has it. */
static bool is_time(const char *text, const char *at) {
    static const char *const ends[] = {"ms\":", "_s\":", "ds\":", "ps\":", "_tick\":"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        if ((size_t)(at - text) > n && memcmp(at - n, ends[i], n) == 0) return true;
    }
    return false;
}

/* Blanks the numbers that a clock made: "ms":1.25, "fps":8e2 and 1.25 ms, whatever else differs is
 * told. */
static void without_times(char *text) {
    for (char *at = text; *at;) {
        const bool before = is_time(text, at);
        const size_t n = strspn(at, before ? "0123456789.e+-" : "0123456789.");
        const bool first = n > 0 && (at == text || !strchr("0123456789.", at[-1]));
        const char *unit = at + n + (at[n] == ' ');
        const bool behind = (strncmp(unit, "ms", 2) == 0 && !isalnum((unsigned char)unit[2])) ||
                            (*unit == 's' && !isalnum((unsigned char)unit[1]));
        if (first && (before || behind)) memmove(at, at + n, strlen(at + n) + 1);
        else at += n > 0 ? n : 1;
    }
}

/* Runs the command; returns how it ended. */
static int run(int64_t n, mode how) {
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) child(n, how);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) die("fork");
    return status;
}

/* Whether the command, undisturbed, ends as it does where there is no checkpoint. */
static bool goes_on(void) {
    folder end = {0};
    const int status = run(0, ONCE);
    look(sweep.work, "", &end);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && same_folder(&end, &sweep.good.left);
}

/* Runs it and keeps what it left. */
static void try(int64_t n, mode how, outcome *o) {
    size_t bytes;
    *o = (outcome){.status = run(n, how)};
    o->out = slurp(sweep.out, &bytes);
    o->err = slurp(sweep.err, &bytes);
    without_times(o->out);
    look(sweep.work, "", &o->left);
    o->strays = sweep.checkpoint && find(&o->left, sweep.checkpoint) && !goes_on();
    if (!same_folder(&o->left, &sweep.before)) renew_work();
}

/* Frees an outcome. */
static void forget(outcome *o) {
    free(o->out);
    free(o->err);
}

/* What is wrong with an outcome; NULL: it is as it should be. */
static const char *fault(const outcome *o) {
    static char text[400];
    if (WIFSIGNALED(o->status)) return WTERMSIG(o->status) == SIGALRM ? "does not end" : "crashes";
    if (strstr(o->err, "Sanitizer") || strstr(o->err, "runtime error:")) return "is unsound";
    const bool fine = WEXITSTATUS(o->status) == 0;
    if (fine && strcmp(o->out, sweep.good.out) != 0) return "gives another answer";
    if (fine && !same_folder(&o->left, &sweep.good.left)) return "gives other files";
    if (o->strays) return "leaves a checkpoint that does not lead to the same files";
    for (int i = 0; i < o->left.n; i++) {
        const file *f = &o->left.at[i];
        if (same_file(f, find(&sweep.before, f->name)) ||
            same_file(f, find(&sweep.good.left, f->name)) ||
            (sweep.checkpoint && strcmp(f->name, sweep.checkpoint) == 0))
            continue;
        snprintf(text, sizeof text, "fails and leaves another %s", f->name);
        return text;
    }
    for (int i = 0; i < sweep.before.n; i++)
        if (!find(&o->left, sweep.before.at[i].name)) return "fails and loses a file";
    if (!fine && !strcasestr(o->err, "memory")) return "fails, and not for memory";
    return NULL;
}

/* Tries all failures of a mode; returns how many went wrong. */
static int all(mode how, int64_t count, int64_t points) {
    static const char *const names[] = {"once", "from there on"};
    const int64_t step = points > 0 && count > points ? count / points : 1;
    int64_t identical = 0, errors = 0;
    int bad = 0;
    /* Odd places of a stride, so that one which is a multiple of a loop's does not see one spot. */
    for (int64_t k = 0; k * step < count; k++) {
        const int64_t n = 1 + k * step + k * 7 % step;
        outcome o;
        if (n > count) break;
        try(n, how, &o);
        const char *what = fault(&o);
        if (what && bad++ < SHOWN)
            printf("# allocation %lld failing %s: %s (code %d): %.300s\n", (long long)n, names[how],
                   what, WIFEXITED(o.status) ? WEXITSTATUS(o.status) : -1, o.err);
        if (!what && WEXITSTATUS(o.status) == 0) identical++;
        else if (!what) errors++;
        forget(&o);
    }
    printf("# failing %s: %lld points of %lld, %lld identical, %lld errors, %d other\n", names[how],
           (long long)(identical + errors + bad), (long long)count, (long long)identical,
           (long long)errors, bad);
    fflush(stdout);
    return bad;
}

/* Twice, since what differs from run to run by itself can't be compared. */
static int64_t learn(void) {
    outcome again;
    try(0, ONCE, &sweep.good);
    if (!WIFEXITED(sweep.good.status) || WEXITSTATUS(sweep.good.status) != 0) {
        printf("# the command fails by itself: %s\n", sweep.good.err);
        clean();
        exit(2);
    }
    try(0, ONCE, &again);
    if (strcmp(again.out, sweep.good.out) != 0 || !same_folder(&again.left, &sweep.good.left)) {
        printf("# the command gives one thing now, another then: %s%s\n", sweep.good.out,
               again.out);
        clean();
        exit(2);
    }
    forget(&again);
    return *sweep.count;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    const char *dirs[] = {argv[1], NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = 1,
                                      .no_default_dirs = 1,
                                      .log_level = CNR_LOG_WARN};
    cnr_runtime *rt = NULL;
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_install();
    if (cnr_open(&rt, &options, &err) != CNR_OK) die(err.text);
    sweep.from = argv[2];
    sweep.words = argv + 3;
    sweep.n_words = argc - 3;
    for (int i = 4; i + 1 < argc; i++)
        if (strcmp(argv[i], "--checkpoint") == 0) sweep.checkpoint = argv[i + 1];
    const int64_t points = atoll(argv[3]);
    argv[3] = "cnnrun";
    snprintf(sweep.base, sizeof sweep.base, "%s/cnnrun-sweep-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(sweep.base)) die(sweep.base);
    snprintf(sweep.work, sizeof sweep.work, "%s/work", sweep.base);
    snprintf(sweep.out, sizeof sweep.out, "%s/out", sweep.base);
    snprintf(sweep.err, sizeof sweep.err, "%s/err", sweep.base);
    sweep.count =
        mmap(NULL, sizeof *sweep.count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sweep.count == MAP_FAILED) die("mmap");
    renew_work();
    look(sweep.work, "", &sweep.before);
    const int64_t count = learn();
    int bad = 0;
    for (mode how = ONCE; how < MODES; how++) bad += all(how, count, points);
    clean();
    return bad > 0;
}
