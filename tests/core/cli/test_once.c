/* cnnrun NET.lua PICTURE searches for plugins once and opens and runs the script once: the system
 * tells how often folders and files are opened (inotify). */
#define _GNU_SOURCE
#include "tap.h"
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/cnnrun-once-XXXXXX", path[128], out[128];
static char
    searched[128]; /* a folder of plugins of its own, which tests beside this one don't open */

/* Counts the opens that inotify reported: *folders, of the folder itself, and *files, of the file
 * `name` in it. */
static void opens(int fd, const char *name, int *folders, int *files) {
    union {
        struct inotify_event event;
        char bytes[65536];
    } buffer;
    *folders = *files = 0;
    for (ssize_t n; (n = read(fd, &buffer, sizeof buffer)) > 0;)
        for (char *at = buffer.bytes; at < buffer.bytes + n;) {
            struct inotify_event e;
            memcpy(&e, at, sizeof e);
            *folders += (e.mask & IN_OPEN) && (e.mask & IN_ISDIR) && e.len == 0;
            *files += (e.mask & IN_OPEN) && e.len && strcmp(at + sizeof e, name) == 0;
            at += sizeof e + e.len;
        }
}

/* Runs the program with its output in a file; returns its status. */
static int run(const char *words) {
    char line[1024];
    snprintf(line, sizeof line, "%s/cnnrun %s > %s 2>&1", CNRT_BUILD_DIR, words, out);
    const int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* How many lines of the output are `text`. */
static int lines(const char *text) {
    char line[4096];
    int n = 0;
    FILE *f = fopen(out, "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        n += strcmp(line, text) == 0;
    }
    if (f) fclose(f);
    return n;
}

/* Writes the net, as text, to `path`. */
static void write_file(const char *text) {
    FILE *f = fopen(path, "w");
    if (f) fputs(text, f);
    if (f) fclose(f);
}

/* A test: the words are searched for once, with this message and exit code. */
static void once(const char *what, const char *words, const char *said, int code) {
    char line[512];
    int searches, n, ignored;
    const int scripts = inotify_init1(IN_NONBLOCK), plugins = inotify_init1(IN_NONBLOCK);
    const uint32_t seen = IN_OPEN | IN_CLOSE; /* equal events that follow each other become one */
    if (inotify_add_watch(scripts, folder, seen) < 0 ||
        inotify_add_watch(plugins, searched, seen) < 0) {
        skip(what, "no inotify");
        return;
    }
    snprintf(line, sizeof line, words, path, CNRT_SOURCE_DIR "/scripts/nets/digits/three.png");
    is_int(run(line), code, what);
    opens(scripts, "s.lua", &ignored, &n);
    is_int(n, 1, "the script is opened once");
    opens(plugins, "", &searches, &ignored);
    is_int(searches, 1, "plugins are searched for once");
    is_int(lines(said), 1, "the script is run once");
    close(scripts);
    close(plugins);
}

int main(void) {
    static const char net[] =
        "print 'begins'\nlocal c = require 'cnnrun'\nreturn c.net { name = 'n',\n"
        "input = { 'x', shape = { 1, 1, 28, 28 }, scale = 1 / 255 }, c.flatten {} }\n";
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/s.lua", folder);
    snprintf(searched, sizeof searched, "%s/plugins", folder);
    if (mkdir(searched, 0700) != 0 || setenv("CNNRUN_PLUGIN_PATH", searched, 1) != 0) return 1;
    snprintf(out, sizeof out, "%s/out", folder);
    write_file(net);
    once("a net on a picture", "run %s %s", "begins", 0);
    once("with options behind it", "%s %s --threads 1 --json --top 2", "begins", 0);
    write_file("print 'begins'\nreturn function(args) print('main', #args) return 7 end\n");
    once("an experiment", "%s %s --threads", "begins", 7);
    is_int(lines("main\t2"), 1, "which is given its words");
    write_file(net);
    is_int(run("run --plugin-dir /nowhere/at/all s.lua"), 1, "a mistake in the options");
    unlink(path);
    unlink(out);
    rmdir(searched);
    rmdir(folder);
    return done();
}
