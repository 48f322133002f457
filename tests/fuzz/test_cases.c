/* Replays the seeds of each fuzz target (corpus/TARGET/) and earlier findings (cases/TARGET/).
 * Nothing may crash, and valid files must be accepted. Importers that are not built are skipped. */
#include "tests/fuzz/targets.h"
#include "tests/tap.h"
#include <dirent.h>
#include <time.h>

/* Seconds by the monotonic clock. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Replays all files of one target; if `sound`, each must be accepted. */
static void replay(const char *folder, const char *target, int sound) {
    char path[1200];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        uint8_t *data = fuzz_read(path, &n);
        if (!data) {
            ok(0, "%s can be read", path);
            continue;
        }
        const double begun = now();
        const int taken = fuzz_run(target, data, n);
        const double took = now() - begun;
        cnri_free(data);
        if (taken < 0) skip(e->d_name, target);
        else if (!ok((taken || !sound) && took < 20, "%s %s", target, e->d_name))
            note("%s; %.1f s", fuzz.why, took);
    }
    if (d) closedir(d);
}

/* Runs all cases of a folder; sound: they must be taken. */
static void replay_all(const char *folder, int sound) {
    char path[700];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        replay(path, e->d_name, sound && strcmp(e->d_name, "schema") != 0);
    }
    if (d) closedir(d);
}

int main(void) {
    if (!fuzz_open(CNRT_BUILD_DIR "/plugins")) return 1;
    replay_all(CNRT_SOURCE_DIR "/tests/fuzz/corpus", 1);
    replay_all(CNRT_SOURCE_DIR "/tests/fuzz/cases", 0);
    ok(tap_count > 5, "there were files");
    fuzz_close();
    return done();
}
