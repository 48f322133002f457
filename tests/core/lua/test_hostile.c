/* Every script of hostile/ is run as a net: it ends in time, with the words of its first line, "--
 * want: text" (or "ok": it returns no net, and nothing else is wrong with it). */
#include "lua/script.h"
#include "tap.h"
#include <dirent.h>
#include <unistd.h>

enum { MAX_SECONDS = 60 };

/* Compares two names, for qsort. */
static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The first line's "-- want: " text; bytecode has none, and one answer. */
static void read_want(const char *path, char *out, size_t room) {
    char line[256] = "";
    FILE *f = fopen(path, "r");
    if (f && !fgets(line, sizeof line, f)) line[0] = 0;
    if (f) fclose(f);
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "-- want: ", 9) == 0) snprintf(out, room, "%s", line + 9);
    else snprintf(out, room, "attempt to load a binary chunk");
}

/* A test: the script of that name fails with the message in its first line. */
static void judge(const char *name) {
    char path[512], want[256];
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    const cnr_load_options options = {.size = sizeof options, .weights = "none"};
    snprintf(path, sizeof path, CNRT_SOURCE_DIR "/tests/core/lua/hostile/%s", name);
    read_want(path, want, sizeof want);
    const char *said = strcmp(want, "ok") == 0 ? "the script returns nothing" : want;
    const uint64_t usual = cnri_script_cpu_ns;
    if (strcmp(want, "longer than it may") == 0) cnri_script_cpu_ns = usual / 5;
    alarm(MAX_SECONDS);
    const uint64_t begun = cnri_now_ns();
    const cnr_status status = cnri_lua_load(NULL, path, &options, &g, &err);
    const double seconds = (double)(cnri_now_ns() - begun) / 1e9;
    alarm(0);
    cnri_script_cpu_ns = usual; /* for which the last test waits */
    const int good = status != CNR_OK && !g && strstr(err.text, said) != NULL;
    ok(good, "%s: %s", name, want);
    if (!good) note("%s: %s", err.where, err.text);
    if (seconds > 3) note("%s took %.1f s", name, seconds);
    cnri_graph_free(g);
}

/* Parsing that takes the square of the text's length: there is a limit on its time too. */
static void long_to_parse(void) {
    char path[] = "/tmp/cnnrun-parse-XXXXXX";
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    const int file = mkstemp(path);
    FILE *f = file >= 0 ? fdopen(file, "w") : NULL;
    if (!ok(f != NULL, "a file")) return;
    fputs("local x\nif x then\n", f);
    for (int i = 0; i < 200000; i++) fputs("elseif x then\n", f);
    fputs("end\n", f);
    fclose(f);
    alarm(MAX_SECONDS);
    const cnr_status status = cnri_lua_load(NULL, path, NULL, &g, &err);
    alarm(0);
    ok(status != CNR_OK && !g, "200,000 times elseif: refused");
    has_text(err.text, "longer than it may", "for the time that they take to parse");
    unlink(path);
}

int main(void) {
    char *names[200];
    int n = 0;
    cnr_error err = CNR_ERROR_INIT;
    DIR *folder = opendir(CNRT_SOURCE_DIR "/tests/core/lua/hostile");
    if (!folder) return 1;
    for (struct dirent *entry; (entry = readdir(folder)) && n < 200;)
        if (strstr(entry->d_name, ".lua")) names[n++] = strdup(entry->d_name);
    closedir(folder);
    qsort(names, (size_t)n, sizeof *names, compare);
    cnri_graph_install(cnri_host_mutable());
    cnri_lua_install();
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    if (cnri_plugins_load(dirs, false, &err) != CNR_OK) note("%s", err.text);
    cnri_log_to(NULL, NULL, CNR_LOG_ERROR);
    if (!cnri_op_find("conv")) skip("hostile scripts", "no operators: build the plugins");
    else
        for (int i = 0; i < n; i++) judge(names[i]);
    long_to_parse();
    for (int i = 0; i < n; i++) free(names[i]);
    return done();
}
