/* Numbers that no locale touches, suggestions, growing strings, JSON quoting, errors, log. */
#include "base/base.h"
#include "tests/tap.h"
#include "people/people.h"
#include <float.h>
#include <locale.h>
#include <math.h>

/* Numbers in texts are read, and what follows them is left. */
static void test_parse_double(void) {
    static const struct {
        const char *text;
        double want;
        const char *rest;
    } good[] = {{"0", 0, ""},
                {"-1.5", -1.5, ""},
                {"+2e3", 2000, ""},
                {".5", .5, ""},
                {"5.", 5, ""},
                {"1e-3x", 1e-3, "x"},
                {"1,5", 1, ",5"},
                {"0x10", 0, "x10"},
                {"1e", 1, "e"},
                {"12e+", 12, "e+"},
                {"1e400", INFINITY, ""},
                {"-inf", -INFINITY, ""},
                {"4.9406564584124654e-324", 4.9406564584124654e-324, ""},
                {"0.1000000000000000055511151231257827", 0.1, ""}};
    for (size_t i = 0; i < CNRI_COUNT(good); i++) {
        const char *end = NULL;
        double value = 42;
        const bool read = cnri_parse_double(good[i].text, &end, &value);
        ok(read && value == good[i].want && strcmp(end, good[i].rest) == 0, "\"%s\" is read",
           good[i].text);
    }
    static const char *const bad[] = {"", "-", ".", "e5", " 1", "abc", "+-1"};
    for (size_t i = 0; i < CNRI_COUNT(bad); i++) {
        double value;
        ok(!cnri_parse_double(bad[i], NULL, &value), "\"%s\" is no number", bad[i]);
    }
    double nan = 0;
    ok(cnri_parse_double("nan", NULL, &nan) && isnan(nan), "nan is read");
    ok(!cnri_parse_double("1x", NULL, &nan), "without `end` the whole text must be a number");
}

/* Numbers are printed as short as they read back. */
static void test_print_double(void) {
    static const struct {
        double value;
        const char *want;
    } rows[] = {{0, "0"},
                {-0.0, "-0"},
                {1, "1"},
                {0.1, "0.1"},
                {1.0 / 3, "0.3333333333333333"},
                {1e21, "1e+21"},
                {5e-324, "5e-324"},
                {-2.5, "-2.5"},
                {INFINITY, "inf"},
                {-INFINITY, "-inf"},
                {DBL_MAX, "1.7976931348623157e+308"}};
    char text[40];
    for (size_t i = 0; i < CNRI_COUNT(rows); i++) {
        cnri_print_double(text, sizeof text, rows[i].value);
        is_text(text, rows[i].want, "printed as short as it reads back");
    }
    uint64_t state = 88172645463325252u;
    int same = 1;
    for (int i = 0; i < 20000; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        double value, back;
        memcpy(&value, &state, sizeof value);
        if (!isfinite(value)) continue;
        cnri_print_double(text, sizeof text, value);
        same &= cnri_parse_double(text, NULL, &back) && memcmp(&value, &back, sizeof value) == 0;
    }
    ok(same, "20,000 doubles of any bits come back the same");
    is_int(cnri_print_double(text, 4, 1.0 / 3), 18, "a short buffer is told the length wanted");
    is_text(text, "0.3", "and holds what fits");
}

/* Numbers are the same in a locale with a decimal comma. */
static void test_locale(void) {
    char folder[] = "/tmp/cnnrun-locale-XXXXXX", command[200];
    if (!mkdtemp(folder)) return;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>&1", folder);
    FILE *made_by = popen(command, "r");
    if (made_by) pclose(made_by);
    setenv("LOCPATH", folder, 1);
    const char *set = setlocale(LC_ALL, "de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -r %s", folder);
    (void)!system(command);
    if (!set) {
        skip("numbers under a locale with decimal commas", "localedef or de_DE (package locales)");
        return;
    }
    char text[40];
    double value = 0;
    snprintf(text, sizeof text, "%.1f", 1.5);
    is_text(text, "1,5", "this locale writes commas");
    cnri_print_double(text, sizeof text, 1.5);
    is_text(text, "1.5", "we do not");
    ok(cnri_parse_double("2.25", NULL, &value) && value == 2.25, "nor do we read them");
    char *made = cnri_format("%.2f", 0.5);
    is_text(made, "0.50", "nor does formatted text");
    cnri_free(made);
    snprintf(text, sizeof text, "%.1f", 1.5);
    is_text(text, "1,5", "the locale is as it was");
    setlocale(LC_ALL, "C");
}

/* Whole numbers at their limits. */
static void test_parse_int(void) {
    int64_t value = 0;
    ok(cnri_parse_int("-9223372036854775808", &value) && value == INT64_MIN, "the least");
    ok(cnri_parse_int("9223372036854775807", &value) && value == INT64_MAX, "the largest");
    ok(cnri_parse_int("+7", &value) && value == 7, "a plus");
    static const char *const bad[] =
        {"", "-", "9223372036854775808", "-9223372036854775809", "1 ", "1.0", "0x1"};
    for (size_t i = 0; i < CNRI_COUNT(bad); i++)
        ok(!cnri_parse_int(bad[i], &value), "\"%s\" is no integer", bad[i]);
}

/* The nearest word of a list, or none. */
static void test_nearest(void) {
    static const char *const words[] = {"stride", "padding", "dilation", "kernel"};
    const int32_t n = CNRI_COUNT(words);
    is_text(cnri_nearest_word("strides", words, n), "stride", "a letter too many");
    is_text(cnri_nearest_word("pading", words, n), "padding", "a letter too few");
    is_text(cnri_nearest_word("kernle", words, n), "kernel", "letters swapped");
    is_text(cnri_nearest_word("KERNEL", words, n), "kernel", "case");
    ok(cnri_nearest_word("banana", words, n) == NULL, "nothing near");
    ok(cnri_nearest_word("", words, n) == NULL && cnri_nearest_word(NULL, words, n) == NULL,
       "no word");
    ok(cnri_nearest_word("x", words, 0) == NULL, "no candidates");
    char long_word[200];
    memset(long_word, 'a', sizeof long_word);
    long_word[199] = 0;
    ok(cnri_nearest_word(long_word, words, n) == NULL, "a word too long to be compared");
}

/* Strings grow; lack of memory is noted in them. */
static void test_strings(void) {
    cnri_text t = {0};
    for (int i = 0; i < 300; i++) cnri_text_add(&t, "%d,", i);
    ok(!t.failed && t.n == strlen(t.at) && strncmp(t.at, "0,1,2,", 6) == 0, "a string grows");
    cnri_text_free(&t);
    cnri_text_json(&t, "a\"b\\c\n\t\x01 \xc3\xa9 \xff \xe2\x82 \xf0\x9f\x98\x80 \xed\xa0\x80");
    is_text(t.at,
            "\"a\\\"b\\\\c\\n\\t\\u0001 \xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd "
            "\xf0\x9f\x98\x80 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"",
            "JSON is escaped, and bytes that are no UTF-8 are replaced");
    cnri_text_free(&t);
    cnri_alloc_fail_at(1);
    cnri_text_add(&t, "lost");
    cnri_alloc_fail_at(0);
    cnri_text_add(&t, "and stays lost");
    ok(t.failed && t.n == 0, "a string without memory says so until it is freed");
    cnri_text_free(&t);
    cnri_alloc_fail_at(1);
    ok(cnri_format("%d", 1) == NULL, "nor is there a format");
    cnri_alloc_fail_at(0);
}

/* An error keeps place and text, cut to its room. */
static void test_errors(void) {
    cnr_error err = CNR_ERROR_INIT;
    char long_text[3000];
    memset(long_text, 'x', sizeof long_text);
    long_text[2999] = 0;
    is_int(cnri_fail(&err, CNR_E_SHAPE, "net.lua:14", "want %d", 3), CNR_E_SHAPE, "fail returns");
    is_text(err.where, "net.lua:14", "where");
    is_text(err.text, "want 3", "text");
    cnri_fail(&err, CNR_E_ARG, long_text, "%s", long_text);
    ok(strlen(err.where) == sizeof err.where - 1 && strlen(err.text) == sizeof err.text - 1,
       "long texts are cut");
    is_int(cnri_fail(NULL, CNR_E_IO, NULL, "x"), CNR_E_IO, "nobody need listen");
}

static char heard[256];
/* A log: keeps the last message. */
static void listen(void *arg, int32_t level, const char *who, const char *text) {
    snprintf(heard, sizeof heard, "%s %d %s: %s", (const char *)arg, (int)level, who, text);
}

/* What the log tells at which level, and to whom. */
static void test_log(void) {
    cnri_log_to(listen, "sink", 1);
    cnri_log(2, "me", "too chatty");
    is_text(heard, "", "chatter above the level is not heard");
    cnri_log(1, "me", "value %d", 5);
    is_text(heard, "sink 1 me: value 5", "the sink hears level, plugin and text");
    cnri_log(0, NULL, "x");
    is_text(heard, "sink 0 : x", "nobody's message");
    cnri_log_to(NULL, NULL, 1);
}

int main(void) {
    test_parse_double();
    test_print_double();
    test_locale();
    test_parse_int();
    test_nearest();
    test_strings();
    test_errors();
    test_log();
    return done();
}
