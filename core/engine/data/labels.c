/* Reads the names of a net's classes from a file, one on each line. Quotes around a whole line
 * are removed. */
#include "data/data.h"

cnr_status cnri_labels_read(cnr_graph *graph, const char *path, cnr_error *err) {
    char *text;
    size_t bytes;
    int64_t n = 0, named = 0;
    cnri_text clean = {0};
    cnr_status status = cnri_read_file(path, 16 << 20, &text, &bytes, err);
    if (status) return status;
    for (char *line = text, *next; *line; line = next) {
        char *end = line + strcspn(line, "\r\n");
        next = end + strspn(end, "\r");
        if (*next == '\n') next++;
        if (end - line >= 2 && (*line == '\'' || *line == '"') && end[-1] == *line) {
            line++;
            end--;
        }
        cnri_text_add(&clean, "%s%.*s", n ? "\n" : "", (int)(end - line), line);
        n++;
        if (end > line) named = n; /* empty lines at the end do not count */
    }
    status = cnri_labels_check(graph, named, path, err);
    if (status) goto out;
    if (clean.failed || cnri_host.graph_set_meta(graph, "labels", clean.at ? clean.at : ""))
        status = cnri_out_of_memory(err, path);
out:
    cnri_text_free(&clean);
    cnri_free(text);
    return status;
}
