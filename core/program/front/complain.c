/* Reports errors: a line for people on stderr and, with --json, an object on stdout. */
#include "front/front.h"
#include "people/people.h"
#include <unistd.h>

/* Static, because errors may come before options are parsed, and from a signal handler. */
static volatile bool as_json;

/* Makes errors JSON if --json is among the words, as the option parser will find it; words behind
 * "--" are no options. */
void cnri_errors_begin(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0) as_json = true;
}

/* Prints an error as a JSON object: exit code, place and text. */
static void print_object(int code, const char *where, const char *text) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_object(&j, "error");
    cnri_json_int(&j, "code", code);
    cnri_json_text(&j, "place", where);
    cnri_json_text(&j, "text", text);
    (void)cnri_json_print(&j, NULL); /* the exit code tells it too */
}

/* The text without the place, if it repeats it in front. */
static const char *without_place(const char *text, const char *where) {
    const size_t n = strlen(where);
    return n && strncmp(text, where, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2
                                                                                : text;
}

/* Prints an error, with `object` also as JSON; returns the exit code. */
static int tell(const char *command, int code, const char *where, const char *text, bool object) {
    fflush(stdout);
    text = without_place(text, where);
    if (strcmp(where, command) == 0) where = "";
    if (object) print_object(code, where, text);
    cnri_say_message(stderr, text, "cnnrun%s%s: %s%s", *command ? " " : "", command, where,
                     *where ? ": " : "");
    return code;
}

/* True if the place is a word of the command line or looks like a path (has a '.' or '/'), so
 * that a name near it may have been meant. */
static bool is_word_given(const cnri_call *call, const char *where) {
    for (int i = 1; i < call->argc; i++)
        if (strcmp(call->argv[i], where) == 0) return true;
    return strpbrk(where, "./") != NULL;
}

/* Prints an error as a line for people, with a hint, or as JSON unless is_told: then the command
 * has an object of its own. Returns the exit code. */
static int complain(const cnri_call *call, const cnr_error *err, bool is_told) {
    const char *what = *err->text  ? err->text
                       : err->code ? cnr_status_text(err->code)
                                   : "failed, and does not say why";
    char near[4096], text[sizeof err->text + sizeof near + 40];
    /* Who met with it may have taken it for something else. */
    const bool memory = cnri_alloc_failures() > 0;
    const bool hint = err->code == CNR_E_NOT_FOUND && is_word_given(call, err->where) &&
                      cnri_nearest_path(err->where, near, sizeof near);
    snprintf(text, sizeof text, "%s%s%s%s%s",
             memory && err->code != CNR_E_MEMORY ? "out of memory: " : "", what,
             hint ? "; did you mean " : "", hint ? near : "", hint ? "?" : "");
    const int code = cnri_exit_code(memory ? CNR_E_MEMORY : err->code);
    return tell(call->command->name, code ? code : 1, err->where, text, as_json && !is_told);
}

void cnri_complain_at_once(const cnr_error *err) {
    tell("", cnri_exit_code(err->code), err->where, err->text, as_json);
    fflush(stdout);
}

int cnri_complain(const cnri_call *call, const cnr_error *err) {
    return complain(call, err, false);
}

int cnri_complain_line(const cnri_call *call, const cnr_error *err) {
    return complain(call, err, true);
}

int cnri_mistake(const char *command, const char *nearest, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (nearest && n > 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "; did you mean %s?", nearest);
    tell(command, -CNR_E_ARG, "", text, as_json);
    cnri_say(stderr, "cnnrun%s%s --help lists %s\n", *command ? " " : "", command,
             *command ? "all options" : "the commands");
    return -CNR_E_ARG;
}

/* Prints an error as JSON from a signal handler, if --json was given; code: the exit code, text:
 * short and without need of escaping. */
void cnri_error_at_once(const char *text, int code) {
    char line[128] = "{\"error\":{\"code\":   ,\"place\":\"\",\"text\":\"";
    size_t n = strlen(line);
    for (int i = 0, rest = code; i < 3; i++, rest /= 10)
        if (rest > 0) line[19 - i] = (char)('0' + rest % 10);
    const size_t length = strlen(text) < 64 ? strlen(text) : 64;
    memcpy(line + n, text, length);
    memcpy(line + n + length, "\"}}\n", 4);
    n += length + 4;
    if (as_json && write(STDOUT_FILENO, line, n) < 0) return;
    if (write(STDERR_FILENO, "cnnrun: ", 8) < 0 || write(STDERR_FILENO, text, length) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0)
        return;
}
