/* The object "dot": renders a graph in the language DOT to SVG or PNG by Graphviz's library.
 *
 * The text may come from anybody, and DOT can name files: pictures, fonts, style sheets. Attributes
 * that do so are refused; so are HTML labels, which can contain them, and comments, which could
 * hide the start of a label. */
#include "about.h"
#include <gvc.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20 };

static const cnr_host *host;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the library has globals */
static GVC_t *context;

/* NULL, or why a DOT text is refused: outside quotes, '<' starts an HTML label, '/' and '#' start
 * comments. */
static const char *refused_text(const char *text) {
    bool quoted = false;
    for (; *text; text++) {
        if (quoted && *text == '\\' && text[1]) text++;
        else if (*text == '"') quoted = !quoted;
        else if (!quoted && strchr("</#", *text))
            return "HTML labels and comments are not taken, the rest of DOT is";
    }
    return NULL;
}

/* An attribute by which a graph could read files; NULL: none. */
static const char *refused_attribute(Agraph_t *graph) {
    static char *const names[] = {"image",    "shapefile",  "imagepath",
                                  "fontpath", "stylesheet", "_background"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int kind = AGRAPH; kind <= AGEDGE; kind++)
            if (agattr(graph, kind, names[i], NULL)) return names[i];
    return NULL;
}

/* Lays out and draws a DOT text in a format; *out: *bytes bytes, to be freed by gvFreeRenderData.
 * CNR_E_ARG: it is refused or malformed. */
static cnr_status draw(const char *text, const char *format, char **out, unsigned *bytes,
                       cnr_error *err) {
    const char *why = refused_text(text);
    if (why) return host->fail(err, CNR_E_ARG, DOT_NAME, "%s", why);
    agseterr(AGMAX); /* its messages would go to stderr */
    if (!context) context = gvContext();
    Agraph_t *graph = context ? agmemread(text) : NULL;
    if (!graph) return host->fail(err, CNR_E_FORMAT, DOT_NAME, "the text is no graph in DOT");
    cnr_status status = CNR_OK;
    if ((why = refused_attribute(graph)))
        status = host->fail(err, CNR_E_ARG, DOT_NAME, "the attribute %s names a file", why);
    else if (gvLayout(context, graph, "dot") != 0)
        status = host->fail(err, CNR_E_UNSUPPORTED, DOT_NAME, "the graph can't be laid out");
    else {
        if (gvRenderData(context, graph, format, out, bytes) != 0 || !*out)
            status =
                host->fail(err, CNR_E_UNSUPPORTED, DOT_NAME, "this Graphviz draws no %s", format);
        gvFreeLayout(context, graph);
    }
    agclose(graph);
    return status;
}

/* A text from a tensor of bytes; NULL: no text, or out of memory. */
static char *text_of(const cnr_tensor *t) {
    if (t->dtype != CNR_u8 || t->rank != 1 || t->dim[0] > MOST_BYTES) return NULL;
    char *text = host->alloc((size_t)t->dim[0] + 1);
    if (!text) return NULL;
    memcpy(text, t->data, (size_t)t->dim[0]);
    text[t->dim[0]] = 0;
    return text;
}

/* Gives a copy of the bytes as a u8 tensor, which the host frees. */
static cnr_status give(cnr_tensor *out, const char *data, unsigned bytes, cnr_error *err) {
    out->data = host->alloc(bytes);
    if (!out->data) return host->fail(err, CNR_E_MEMORY, DOT_NAME, "out of memory");
    memcpy(out->data, data, bytes);
    out->dtype = CNR_u8;
    out->rank = 1;
    out->dim[0] = bytes;
    return CNR_OK;
}

/* Method render: a picture of a graph in the language DOT. */
static cnr_status render(void *state, int32_t method, const cnr_tensor *const *in, int32_t n_in,
                         cnr_tensor *const *out, int32_t n_out, cnr_error *err) {
    (void)state;
    char *graph = n_in == 2 ? text_of(in[0]) : NULL, *format = n_in == 2 ? text_of(in[1]) : NULL;
    char *data = NULL;
    unsigned bytes = 0;
    cnr_status status;
    if (method != 0 || n_out < 1 || !graph || !format)
        status = host->fail(err, CNR_E_ARG, DOT_NAME, "want %s, of at most 16 MiB", *dot_methods);
    else if (strcmp(format, "svg") != 0 && strcmp(format, "png") != 0)
        status = host->fail(err, CNR_E_ARG, DOT_NAME, "format: want svg or png, got %s", format);
    else {
        pthread_mutex_lock(&lock);
        status = draw(graph, format, &data, &bytes, err);
        if (!status) status = give(out[0], data, bytes, err);
        gvFreeRenderData(data);
        pthread_mutex_unlock(&lock);
    }
    host->free(graph);
    host->free(format);
    return status;
}

/* Creates the object, which has no options. */
static cnr_status create(const cnr_attr *const *list, int32_t n, void **state, cnr_error *err) {
    static char nothing;
    (void)list;
    *state = &nothing;
    return n == 0 ? CNR_OK : host->fail(err, CNR_E_ARG, DOT_NAME, "takes no options");
}

static void destroy(void *state) { (void)state; }

static const cnr_object object = {.size = sizeof object,
                                  .n_methods = 1,
                                  .name = DOT_NAME,
                                  .summary = DOT_SUMMARY,
                                  .methods = dot_methods,
                                  .create = create,
                                  .call = render,
                                  .destroy = destroy};

CNR_EXPORT const cnr_object *late_object(const cnr_host *given);
/* Returns the object, and keeps the host; the plugin calls it once the library is loaded. */
const cnr_object *late_object(const cnr_host *given) {
    host = given;
    return &object;
}
