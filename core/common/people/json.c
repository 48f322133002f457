/* Text in JSON. */
#include "people/people.h"
#include <string.h>

/* Adds one character to a JSON text. Readers get back the same character; those that a terminal
 * would act on are escaped. */
static void add_code(cnri_text *t, uint32_t code) {
    if (code < 0x10000) cnri_text_add(t, "\\u%04x", (unsigned)code);
    else
        cnri_text_add(t, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
                      (unsigned)(0xdc00 + (code & 0x3ff)));
}

void cnri_text_json(cnri_text *t, const char *text) {
    const char *p = text ? text : "", *end = p + strlen(p);
    cnri_text_bytes(t, "\"", 1);
    while (p < end) {
        uint32_t code;
        const int n = cnri_utf8(p, (size_t)(end - p), &code);
        if (*p == '"' || *p == '\\') cnri_text_add(t, "\\%c", *p);
        else if (*p == '\n') cnri_text_bytes(t, "\\n", 2);
        else if (*p == '\t') cnri_text_bytes(t, "\\t", 2);
        else if (!n) cnri_text_bytes(t, "\xef\xbf\xbd", 3); /* U+FFFD */
        else if (cnri_is_unprintable(code)) add_code(t, code);
        else cnri_text_bytes(t, p, (size_t)n);
        p += n ? n : 1;
    }
    cnri_text_bytes(t, "\"", 1);
}

void cnri_text_simulated(cnri_text *t) {
    if (!cnri_clock_is_real()) cnri_text_add(t, ",\"simulated\":true");
}
