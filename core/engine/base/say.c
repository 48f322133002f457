/* Shows text of others to people: whoever chose a name can neither move the cursor nor forge a
 * line. */
#include "base/base.h"
#include <string.h>

/* Writes the buffered bytes to the file; sets s->failed if that fails. The buffer is empty then. */
static void flush(cnri_sink *s) {
    if (s->n && fwrite(s->at, 1, s->n, s->file) != s->n) s->failed = true;
    s->n = 0;
}

void cnri_sink_put(cnri_sink *s, const char *bytes, size_t n) {
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

/* ---- what is shown of a text ---- */

size_t cnri_shown(const char *from, size_t n, char shown[12], size_t *used) {
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

void cnri_sink_text(cnri_sink *s, const char *text, size_t n) {
    for (size_t i = 0, used; i < n; i += used) {
        char shown[12];
        const size_t bytes = cnri_shown(text + i, n - i, shown, &used);
        cnri_sink_put(s, shown, bytes);
    }
}

void cnri_sink_lines(cnri_sink *s, const char *text, size_t n, const char *indent) {
    for (size_t i = 0; i < n;) {
        size_t plain = i;
        while (plain < n && text[plain] != '\n' && text[plain] != '\t') plain++;
        cnri_sink_text(s, text + i, plain - i);
        if (plain < n) cnri_sink_put(s, text + plain, 1);
        i = plain + 1;
        if (plain + 1 < n && text[plain] == '\n' && text[i] != ' ')
            cnri_sink_put(s, indent, strlen(indent));
    }
}

int cnri_sink_end(cnri_sink *s) {
    flush(s);
    return s->failed ? -1 : s->written > INT32_MAX ? INT32_MAX : (int)s->written;
}
