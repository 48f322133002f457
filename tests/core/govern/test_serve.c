/* The helper's protocol: right answers, wrong lines, hundreds of thousands of made-up ones; who
 * sets, and that all is put back when a client goes. */
#include "govern/govern.h"
#include "work/work.h"
#include "tests/tap.h"
#include <unistd.h>

static cnri_serving *s;

/* The helper's answer to a client's line. */
static const char *ask(int client, const char *line) {
    static char out[CNRI_SERVING_ROOM];
    cnri_serving_answer(s, client, line, out);
    return out;
}

/* The clock as the helper shows it. */
static uint64_t hz(void) {
    unsigned long long now = 0;
    sscanf(ask(9, "look 0"), "ok %llu", &now);
    return now;
}

/* The helper's answers to each request. */
static void test_answers(void) {
    is_text(ask(1, "hello"), "ok 2 2\n", "what there is");
    is_text(ask(1, "meter 0"), "ok 1 20 0 1000000 0 0 gpu\topencl:0\n", "a meter");
    ok(strncmp(ask(1, "read 1"), "ok 45500 ", 9) == 0, "what it reads");
    is_text(ask(1, "knob 0"), "ok 3 1 100 177000000 600000000 1 4 gpu\topencl:0\n", "a knob");
    is_text(ask(1, "step 0 1"), "ok 420000000\n", "a step of it");
    ok(strncmp(ask(1, "look 0"), "ok 600000000 37 4 45500 ", 24) == 0, "how it is");
    is_text(ask(1, "set 0 420000000 -1"), "ok\n", "a setting");
    is_int((long long)hz(), 420000000, "is made");
    ok(strstr(ask(1, "set 0 177000000 -1"), "too soon") != NULL,
       "not sooner than the knob takes it");
    is_text(ask(2, "set 0 177000000 -1"), "no -13 another client sets the knobs\n",
            "nor by another");
    cnri_serving_gone(s, 2);
    is_int((long long)hz(), 420000000, "whose going changes nothing");
    cnri_serving_gone(s, 1);
    is_int((long long)hz(), 600000000, "who set it goes: all is put back");
    usleep(110000);
    is_text(ask(2, "set 0 99999999999999 99"), "ok\n", "then another may");
    is_int((long long)hz(), 600000000, "within the bounds that were found");
    is_text(ask(2, "restore"), "ok\n", "put back by asking");
    cnri_serving_gone(s, 2);
}

/* Requests that are wrong are refused. */
static void test_wrong(void) {
    static const char *const wrong[] = {"",
                                        " ",
                                        "hello 1",
                                        "hell",
                                        "helloo",
                                        "meter",
                                        "meter 2",
                                        "meter -1",
                                        "meter 0 0",
                                        "meter x",
                                        "read 9999999999999999999",
                                        "knob 99",
                                        "step 0",
                                        "step 0 3",
                                        "step 0 -1",
                                        "step 1 0",
                                        "look",
                                        "set",
                                        "set 0 1",
                                        "set 0 -1 0",
                                        "set 0 1 -2",
                                        "set 0 1 4294967296",
                                        "set 1 400000000 -1",
                                        "set 7 1 1",
                                        "SET 0 1 1",
                                        "set  0 1 1",
                                        "set 0 1 1 ",
                                        "set 0 1e9 1",
                                        "restore 1",
                                        "\x01\x02",
                                        "hello\t",
                                        "knob 0\r",
                                        "exec /bin/sh"};
    int refused = 0;
    for (size_t i = 0; i < CNRI_COUNT(wrong); i++) {
        const char *got = ask(1, wrong[i]);
        const int good = strncmp(got, "no -", 4) == 0 && strchr(got, '\n') == got + strlen(got) - 1;
        refused += good;
        if (!good) note("\"%s\": %s", wrong[i], got);
    }
    is_int(refused, (long long)CNRI_COUNT(wrong),
           "lines that are wrong get an answer of one line that says so");
    is_int((long long)hz(), 600000000, "and nothing was set");
}

/* Random requests never crash the helper. */
static void test_fuzz(void) {
    static const char *const words[] = {"hello",
                                        "meter",
                                        "read",
                                        "knob",
                                        "step",
                                        "look",
                                        "set",
                                        "restore",
                                        "0",
                                        "1",
                                        "-1",
                                        " ",
                                        "  ",
                                        "420000000",
                                        "18446744073709551616",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "x",
                                        "\t",
                                        "%s%n"};
    char line[160];
    int bad = 0;
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 300000; i++) {
        size_t n = 0;
        for (int w = 0; w < 6; w++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            const size_t k = state % (CNRI_COUNT(words) + 4);
            if (k < CNRI_COUNT(words))
                n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", w ? " " : "", words[k]);
            else if (n + 1 < sizeof line) line[n++] = (char)(1 + state / 64 % 255);
            if (n >= sizeof line - 1) n = sizeof line - 1;
            line[n] = 0;
        }
        const char *got = ask((int)(state % 3), line);
        const size_t length = strlen(got);
        bad += length < 3 || length >= CNRI_SERVING_ROOM || strchr(got, '\n') != got + length - 1 ||
               (strncmp(got, "ok", 2) != 0 && strncmp(got, "no -", 4) != 0);
        if (i % 1000 == 0) cnri_serving_gone(s, (int)(state % 3));
    }
    is_int(bad, 0, "300000 made-up lines: one line each, that says ok or no");
    for (int i = 0; i < 3; i++) cnri_serving_gone(s, i);
    is_int((long long)hz(), 600000000, "and all is as it was");
}

int main(void) {
    const char *const dirs[] = {CNRT_BUILD_DIR "/tests/core/host/gauges/gauges.so", NULL};
    const cnr_open_options o = {.size = sizeof o,
                                .plugin_dirs = dirs,
                                .no_default_dirs = 1,
                                .log_level = CNR_LOG_ERROR};
    const cnr_gauge_options gauges = {.size = sizeof gauges};
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt;
    is_int(cnr_open(&rt, &o, &err), CNR_OK, "a machine of made-up gauges");
    is_int(cnri_serving_open(&gauges, &s, &err), CNR_OK, "served");
    test_answers();
    test_wrong();
    test_fuzz();
    cnri_serving_close(s);
    cnr_close(rt);
    return done();
}
