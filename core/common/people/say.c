/* Formats text for people, with what is in it escaped (base/say.c). */
#include "people/people.h"
#include <string.h>

/* Number of terminal columns that `text` takes, counting each character as one. */
static int64_t columns_of(const char *text, size_t n) {
    int64_t columns = 0;
    for (size_t i = 0, used; i < n; i += used) {
        char shown[12];
        const size_t bytes = cnri_shown(text + i, n - i, shown, &used);
        columns += (unsigned char)shown[0] >= 0x80 ? 1 : (int64_t)bytes;
    }
    return columns;
}

/* Writes n blanks; none if n <= 0. */
static void pad(cnri_sink *s, int64_t n) {
    for (; n > 0; n--) cnri_sink_put(s, " ", 1);
}

/* ---- formats ---- */

/* One parsed conversion of a printf format: flags, length modifier, conversion letter, width and
 * precision. */
typedef struct spec {
    char flags[8], length[3], letter;
    /* minimum width in columns (0: none) and precision; precision -1: not given */
    int width, precision;
} spec;

/* A va_list in a struct, so that functions can take arguments from it by address. */
typedef struct arguments {
    va_list list;
} arguments;

/* Reads a width or precision at *at and moves past it; '*' takes it from the arguments. At most
 * about 100,000. */
static int number(const char **at, arguments *args) {
    int n = 0;
    if (**at == '*') return ++*at, va_arg(args->list, int);
    for (; **at >= '0' && **at <= '9'; ++*at) n = n > 9999 ? n : 10 * n + **at - '0';
    return n;
}

/* Parses a conversion; *at points behind the '%' and is moved past its letter. */
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

/* Writes a text escaped, padded to the width in terminal columns of the escaped
 * text. The precision limits bytes of the text itself. NULL:
 * "(null)". */
static void put_string(cnri_sink *s, const spec *f, const char *text) {
    if (!text) text = "(null)";
    const size_t n = f->precision >= 0 ? strnlen(text, (size_t)f->precision) : strlen(text);
    const int64_t gap = f->width ? f->width - columns_of(text, n) : 0;
    const bool left = strchr(f->flags, '-') != NULL;
    if (!left) pad(s, gap);
    cnri_sink_text(s, text, n);
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

/* Takes the next floating-point argument, as a double; length "L": it is a long double. */
static double real_of(const char *length, arguments *args) {
    return *length == 'L' ? (double)va_arg(args->list, long double) : va_arg(args->list, double);
}

/* Formats the next argument with printf as its spec says, in the widest type of its kind, and
 * writes it. */
static void put_number(cnri_sink *s, const spec *f, arguments *args) {
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
    if (n > 0) cnri_sink_put(s, shown, (size_t)n < sizeof shown ? (size_t)n : sizeof shown - 1);
}

/* Writes by a printf format; text arguments are escaped, the format itself is written as it is. */
static void put_format(cnri_sink *s, const char *format, va_list list) {
    arguments args;
    va_copy(args.list, list);
    while (*format) {
        const size_t plain = strcspn(format, "%");
        cnri_sink_put(s, format, plain); /* the format's own text, newlines included */
        format += plain;
        if (!*format) break;
        format++;
        const spec f = parse(&format, &args);
        if (f.letter == '%') cnri_sink_put(s, "%", 1);
        else if (f.letter == 's') put_string(s, &f, va_arg(args.list, const char *));
        else if (f.letter == 'c') {
            const char one[2] = {(char)va_arg(args.list, int), 0};
            put_string(s, &f, one);
        } else if (f.letter) put_number(s, &f, &args);
    }
    va_end(args.list);
}

/* ---- to files and strings ---- */

int cnri_sayv(FILE *to, const char *format, va_list args) {
    cnri_sink s = {.file = to};
    put_format(&s, format, args);
    return cnri_sink_end(&s);
}

int cnri_say(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = cnri_sayv(to, format, args);
    va_end(args);
    return n;
}

int cnri_say_lines(FILE *to, const char *text, size_t bytes) {
    cnri_sink s = {.file = to};
    cnri_sink_lines(&s, text, bytes, "");
    return cnri_sink_end(&s);
}

int cnri_say_message(FILE *to, const char *text, const char *head, ...) {
    cnri_sink s = {.file = to};
    va_list args;
    va_start(args, head);
    put_format(&s, head, args);
    va_end(args);
    cnri_sink_lines(&s, text, strlen(text), "  ");
    cnri_sink_put(&s, "\n", 1);
    return cnri_sink_end(&s);
}

void cnri_text_say(cnri_text *t, const char *format, ...) {
    cnri_sink s = {.text = t};
    va_list args;
    va_start(args, format);
    put_format(&s, format, args);
    va_end(args);
}
