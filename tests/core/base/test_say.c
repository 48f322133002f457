/* Text for people: formats as printf has them, and nothing that a terminal would obey. */
#include "base/base.h"
#include "tests/tap.h"
#include "people/people.h"

static char told[8192];

/* Returns, as text, what cnri_say writes to a FILE. */
static const char *CNRI_PRINTF(1, 2) said(const char *format, ...) {
    FILE *file = tmpfile();
    va_list args;
    va_start(args, format);
    const int n = cnri_sayv(file, format, args);
    va_end(args);
    rewind(file);
    const size_t got = fread(told, 1, sizeof told - 1, file);
    told[got] = 0;
    fclose(file);
    return n == (int)got ? told : "the number of bytes is wrong";
}

/* Formats print as by printf. */
static void test_formats(void) {
    char want[400];
    const char *volatile none = NULL; /* the compiler would see it */
/* A test: said as printf would. */
#define SAME(...) \
    (snprintf(want, sizeof want, __VA_ARGS__), is_text(said(__VA_ARGS__), want, "as printf"))
    SAME("plain 100%% sure\n");
    SAME("[%d] [%5d] [%-5d] [%05d] [%+d] [%*d]", -3, 42, 42, 42, 42, 7, 1);
    SAME("[%lld] [%llu] [%zu] [%ld] [%u] [%x] [%#X] [%o]", -(1ll << 40), ~0ull, (size_t)9, -5l, 7u,
         255u, 255u, 8u);
    SAME("[%.3f] [%8.2f] [%-8.1f] [%g] [%.6g] [%10.4g] [%e]", 1.5, 3.14159, 2.0, 1e-9, 0.1, 1e6,
         2.5);
    SAME("[%s] [%6s] [%-6s] [%.2s] [%.*s] [%*s] [%-*s]", "a", "b", "c", "defg", 3, "hijkl", 4, "m",
         4, "n");
    SAME("[%c%c] [%3c]", 'x', 'y', 'z');
    SAME("%300d", 1);
#undef SAME
    is_text(said("%s", none), "(null)", "no text is no crash");
    is_text(said("[%-6s] [%3s]", "\xc3\xa9t\xc3\xa9", "\xe2\x82\xac"),
            "[\xc3\xa9t\xc3\xa9   ] [  \xe2\x82\xac]", "widths count characters");
    char *large = cnri_format("%5000s", "end");
    is_text(said("%s", large), large, "more than a buffer");
    cnri_free(large);
}

/* Control characters in texts are printed as escapes. */
static void test_escapes(void) {
    static const struct {
        const char *text, *want, *what;
    } rows[] = {{"\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07", "a clipboard's escape"},
                {"a\nok 1 - forged", "a\\nok 1 - forged", "a newline"},
                {"a\tb\rc\x7f", "a\\tb\\rc\\x7f", "tab, return, delete"},
                {"\xc2\x9b"
                 "31m",
                 "\\u009b31m", "C1 in UTF-8"},
                {"\x9b"
                 "31m",
                 "\\x9b31m", "C1 as a byte"},
                {"\xe2\x80\xae"
                 "gpj",
                 "\\u202egpj", "an override of direction"},
                {"\xe2\x81\xa6"
                 "x\xe2\x81\xa9",
                 "\\u2066x\\u2069", "an isolate"},
                {"\xe2\x80\xa8", "\\u2028", "a separator of lines"},
                {"\xf3\xa0\x81\x81", "\\U0e0041", "a tag"},
                {"\xc0\xaf\xed\xa0\x80\xf5", "\\xc0\\xaf\\xed\\xa0\\x80\\xf5", "what is no UTF-8"},
                {"\xe2\x82", "\\xe2\\x82", "a sequence that ends early"},
                {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \\ \"",
                 "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \\ \"",
                 "letters, signs and pictures stay"}};
    for (size_t i = 0; i < CNRI_COUNT(rows); i++)
        is_text(said("%s", rows[i].text), rows[i].want, rows[i].what);
    is_text(said("%c", 0x1b), "\\x1b", "a character too");
    is_text(said("[%-8s]", "\n\n"), "[\\n\\n    ]", "widths count what is shown");
    is_text(said("%.2s|", "\xc3\xa9"), "\xc3\xa9|", "a precision in bytes");
    is_text(said("%.1s|", "\xc3\xa9"), "\\xc3|", "that cuts a character");
}

/* Texts with line ends and tabs are printed line by line, without other control characters. */
static void test_lines(void) {
    FILE *file = tmpfile();
    cnri_say_lines(file, "a\tb\nc\x1b\x00z\n", 9);
    cnri_say_message(file, "1 problem:\nnet: x\n  kept", "cnnrun %s: ", "ru\nn");
    rewind(file);
    told[fread(told, 1, sizeof told - 1, file)] = 0;
    fclose(file);
    is_text(told, "a\tb\nc\\x1b\\x00z\ncnnrun ru\\nn: 1 problem:\n  net: x\n  kept\n",
            "lines stay lines, those of messages are indented");
    cnri_text t = {0};
    cnri_text_say(&t, "%-4s|", "\x1b");
    cnri_text_say(&t, "%d\n", 5);
    is_text(t.at, "\\x1b|5\n", "into a string");
    cnri_text_free(&t);
    cnri_text_json(&t, "\x1b\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\xc3\xa9\x7f");
    is_text(t.at, "\"\\u001b\\u009b\\u202e\\udb40\\udc41\xc3\xa9\\u007f\"", "JSON spells them too");
    cnri_text_free(&t);
}

/* A full output is told. */
static void test_refused(void) {
    FILE *file = fopen("/dev/full", "w");
    if (!file) {
        skip("a full disk is told", "/dev/full");
        return;
    }
    setvbuf(file, NULL, _IONBF, 0);
    ok(cnri_say(file, "%s", "x") == -1, "a full disk is told");
    fclose(file);
}

int main(void) {
    test_formats();
    test_escapes();
    test_lines();
    test_refused();
    return done();
}
