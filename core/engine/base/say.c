/* Text for people, on a terminal or in a log: what a name, a label or an error holds is shown and
 * never obeyed.
 *
 * Control characters of either set, what turns the direction of writing, separators of lines and
 * bytes that are no UTF-8 are spelled out (\n, \x1b, \u202e): whoever chose a node's name can
 * neither move the cursor nor forge a line. */
#include "base/base.h"
#include <string.h>

/* The destination of text: a file, through a buffer so that a message is one write, or a string. */
typedef struct sink {
    FILE *file;
    cnri_text *text;
    char at[1024];
    size_t n;
    int64_t written; /* bytes written so far */
    bool failed;
} sink;

/* Writes what is buffered to the file. */
static void flush(sink *s) {
    if (s->n && fwrite(s->at, 1, s->n, s->file) != s->n) s->failed = true;
    s->n = 0;
}

/* Adds bytes to the output, or to the text if the sink has one. */
static void put(sink *s, const char *bytes, size_t n) {
    s->written += (int64_t)n;
    if (s->text) {
        cnri_text_bytes(s->text, bytes, n);
        return;
    }
    while (n > 0) {
        const size_t part = n < sizeof s->at - s->n ? n : sizeof s->at - s->n;
        memcpy(s->at + s->n, bytes, part);
        s->n += part;
        bytes += part;
        n -= part;
        if (s->n == sizeof s->at) flush(s);
    }
}

/* Adds n spaces. */
static void pad(sink *s, int64_t n) {
    for (; n > 0; n--) put(s, " ", 1);
}

/* ---- what is shown of a text ---- */

/* Writes the character at `from`, which has at least n bytes, in its escaped form to `shown`.
 * *used: bytes of `from` that it takes. */
static size_t show(const char *from, size_t n, char shown[12], size_t *used) {
    uint32_t c = 0;
    const int length = cnri_utf8(from, n, &c);
    *used = length ? (size_t)length : 1;
    if (length && !cnri_is_unprintable(c)) {
        memcpy(shown, from, (size_t)length);
        return (size_t)length;
    }
    const char letter = !length ? 0 : c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : 0;
    if (letter) return (size_t)snprintf(shown, 12, "\\%c", letter);
    if (!length || c < 0x80) return (size_t)snprintf(shown, 12, "\\x%02x", (unsigned char)*from);
    return (size_t)snprintf(shown, 12, c > 0xffff ? "\\U%06x" : "\\u%04x", (unsigned)c);
}

/* Number of terminal columns that `text` takes, counting each character as one. */
static int64_t columns_of(const char *text, size_t n) {
    int64_t columns = 0;
    for (size_t i = 0, used; i < n; i += used) {
        char shown[12];
        const size_t bytes = show(text + i, n - i, shown, &used);
        columns += (unsigned char)shown[0] >= 0x80 ? 1 : (int64_t)bytes;
    }
    return columns;
}

/* Adds text with control characters and invalid UTF-8 escaped. */
static void put_text(sink *s, const char *text, size_t n) {
    for (size_t i = 0, used; i < n; i += used) {
        char shown[12];
        const size_t bytes = show(text + i, n - i, shown, &used);
        put(s, shown, bytes);
    }
}

/* Writes lines with newlines and tabs kept. All but the first get `indent` in front, unless they
 * are indented already. */
static void put_lines(sink *s, const char *text, size_t n, const char *indent) {
    for (size_t i = 0; i < n;) {
        size_t plain = i;
        while (plain < n && text[plain] != '\n' && text[plain] != '\t') plain++;
        put_text(s, text + i, plain - i);
        if (plain < n) put(s, text + plain, 1);
        i = plain + 1;
        if (plain + 1 < n && text[plain] == '\n' && text[i] != ' ') put(s, indent, strlen(indent));
    }
}

/* ---- formats ---- */

/* One parsed conversion of a format, as "%-8.3lld". */
typedef struct spec {
    char flags[8], length[3], letter;
    int width, precision; /* -1: not given */
} spec;

/* A va_list that functions can pass on by address. */
typedef struct arguments {
    va_list list;
} arguments;

/* Reads a width or precision: digits, or the next argument for *. */
static int number(const char **at, arguments *args) {
    int n = 0;
    if (**at == '*') return ++*at, va_arg(args->list, int);
    for (; **at >= '0' && **at <= '9'; ++*at) n = n > 9999 ? n : 10 * n + **at - '0';
    return n;
}

/* Parses the format behind a '%'. */
static spec parse(const char **at, arguments *args) {
    spec s = {.width = 0, .precision = -1};
    size_t n = strspn(*at, "-+ #0");
    memcpy(s.flags, *at, n < sizeof s.flags - 2 ? n : sizeof s.flags - 2);
    *at += n;
    s.width = number(at, args);
    if (s.width < 0) {
        s.width = -s.width;
        strcat(s.flags, "-");
    }
    if (**at == '.') {
        ++*at;
        s.precision = number(at, args);
    }
    for (n = 0; **at && strchr("hljztL", **at); ++*at)
        if (n < sizeof s.length - 1) s.length[n++] = **at;
    s.letter = **at;
    if (s.letter) ++*at;
    return s;
}

/* Prints %s: escaped, padded to columns as shown rather than to bytes. */
static void put_string(sink *s, const spec *f, const char *text) {
    if (!text) text = "(null)";
    const size_t n = f->precision >= 0 ? strnlen(text, (size_t)f->precision) : strlen(text);
    const int64_t gap = f->width ? f->width - columns_of(text, n) : 0;
    const bool left = strchr(f->flags, '-') != NULL;
    if (!left) pad(s, gap);
    put_text(s, text, n);
    if (left) pad(s, gap);
}

static long long signed_of(const char *length, arguments *args) {
    if (strcmp(length, "ll") == 0) return va_arg(args->list, long long);
    if (*length == 'l') return va_arg(args->list, long);
    if (*length == 'j') return va_arg(args->list, intmax_t);
    if (*length == 'z' || *length == 't') return va_arg(args->list, ptrdiff_t);
    return va_arg(args->list, int);
}

static unsigned long long unsigned_of(const char *length, arguments *args) {
    if (strcmp(length, "ll") == 0) return va_arg(args->list, unsigned long long);
    if (*length == 'l') return va_arg(args->list, unsigned long);
    if (*length == 'j') return va_arg(args->list, uintmax_t);
    if (*length == 'z' || *length == 't') return va_arg(args->list, size_t);
    return va_arg(args->list, unsigned);
}

/* Takes a floating-point argument of the given length. */
static double real_of(const char *length, arguments *args) {
    return *length == 'L' ? (double)va_arg(args->list, long double) : va_arg(args->list, double);
}

/* Formats a number with printf, in the widest type of its kind. */
static void put_number(sink *s, const spec *f, arguments *args) {
    char format[40], precision[16] = "", shown[512];
    const bool whole = strchr("diuxXo", f->letter) != NULL;
    if (f->precision >= 0) snprintf(precision, sizeof precision, ".%d", f->precision);
    snprintf(format, sizeof format, "%%%s%.0d%s%s%c", f->flags, f->width, precision,
             whole ? "ll" : "", f->letter);
    int n;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (f->letter == 'd' || f->letter == 'i')
        n = snprintf(shown, sizeof shown, format, signed_of(f->length, args));
    else if (whole) n = snprintf(shown, sizeof shown, format, unsigned_of(f->length, args));
    else if (f->letter == 'p')
        n = snprintf(shown, sizeof shown, format, va_arg(args->list, void *));
    else n = snprintf(shown, sizeof shown, format, real_of(f->length, args));
#pragma GCC diagnostic pop
    if (n > 0) put(s, shown, (size_t)n < sizeof shown ? (size_t)n : sizeof shown - 1);
}

/* Prints a whole format with its arguments. */
static void put_format(sink *s, const char *format, va_list list) {
    arguments args;
    va_copy(args.list, list);
    while (*format) {
        const size_t plain = strcspn(format, "%");
        put(s, format, plain); /* the format's own text, newlines included */
        format += plain;
        if (!*format) break;
        format++;
        const spec f = parse(&format, &args);
        if (f.letter == '%') put(s, "%", 1);
        else if (f.letter == 's') put_string(s, &f, va_arg(args.list, const char *));
        else if (f.letter == 'c') {
            const char one[2] = {(char)va_arg(args.list, int), 0};
            put_string(s, &f, one);
        } else if (f.letter) put_number(s, &f, &args);
    }
    va_end(args.list);
}

/* ---- to files and strings ---- */

/* Flushes; returns the bytes written, or -1 if a write failed. */
static int done(sink *s) {
    flush(s);
    return s->failed ? -1 : s->written > INT32_MAX ? INT32_MAX : (int)s->written;
}

int cnri_sayv(FILE *to, const char *format, va_list args) {
    sink s = {.file = to};
    put_format(&s, format, args);
    return done(&s);
}

int cnri_say(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = cnri_sayv(to, format, args);
    va_end(args);
    return n;
}

int cnri_say_lines(FILE *to, const char *text, size_t bytes) {
    sink s = {.file = to};
    put_lines(&s, text, bytes, "");
    return done(&s);
}

int cnri_say_message(FILE *to, const char *text, const char *head, ...) {
    sink s = {.file = to};
    va_list args;
    va_start(args, head);
    put_format(&s, head, args);
    va_end(args);
    put_lines(&s, text, strlen(text), "  ");
    put(&s, "\n", 1);
    return done(&s);
}

void cnri_text_say(cnri_text *t, const char *format, ...) {
    sink s = {.text = t};
    va_list args;
    va_start(args, format);
    put_format(&s, format, args);
    va_end(args);
}
