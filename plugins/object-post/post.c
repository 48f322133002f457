/* The object "post": sends lines of JSON to one address, given by the script, with libcurl. */
#include "about.h"
#include <curl/curl.h>
#include <pthread.h>
#include <string.h>

enum { SECONDS = 5 };

static const cnr_host *host;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A connection to an address: curl's handle and the headers of each request. */
typedef struct post {
    CURL *curl;
    struct curl_slist *headers;
} post;

static void begin(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

/* Discards the answer: returns its size, as curl wants. */
static size_t ignore(char *data, size_t size, size_t n, void *arg) {
    (void)data, (void)arg;
    return size * n;
}

/* Closes the connection and frees all. */
static void destroy(void *state) {
    post *p = state;
    if (p->curl) curl_easy_cleanup(p->curl);
    curl_slist_free_all(p->headers);
    host->free(p);
}

/* Creates the object for the only option `url`, without connecting; *state receives it. Fails with
 * a reason. */
static cnr_status create(const cnr_attr *const *list, int32_t n, void **state, cnr_error *err) {
    if (n != 1 || strcmp(list[0]->name, "url") != 0 || list[0]->type != CNR_ATTR_STRING)
        return host->fail(err, CNR_E_ARG, "post", "want the option url, an http or https address");
    pthread_once(&once, begin);
    post *p = host->alloc(sizeof *p);
    if (!p) return host->fail(err, CNR_E_MEMORY, "post", "out of memory");
    p->curl = curl_easy_init();
    p->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!p->curl || !p->headers) {
        destroy(p);
        return host->fail(err, CNR_E_MEMORY, "post", "out of memory");
    }
    curl_easy_setopt(p->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
    curl_easy_setopt(p->curl, CURLOPT_TIMEOUT, (long)SECONDS);
    curl_easy_setopt(p->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, ignore);
    if (curl_easy_setopt(p->curl, CURLOPT_URL, list[0]->s) != CURLE_OK) {
        destroy(p);
        return host->fail(err, CNR_E_MEMORY, "post", "out of memory");
    }
    *state = p;
    return CNR_OK;
}

/* Sends the text to the address; if it does not answer, warns and goes on. */
static cnr_status send_text(void *state, int32_t method, const cnr_tensor *const *in, int32_t n_in,
                            cnr_tensor *const *out, int32_t n_out, cnr_error *err) {
    post *p = state;
    long code = 0;
    (void)out, (void)n_out;
    if (method != 0 || n_in != 1 || in[0]->dtype != CNR_u8 || in[0]->rank != 1)
        return host->fail(err, CNR_E_ARG, "post", "want send(json)");
    curl_easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)in[0]->dim[0]);
    curl_easy_setopt(p->curl, CURLOPT_POSTFIELDS, (const char *)in[0]->data);
    const CURLcode done = curl_easy_perform(p->curl);
    curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &code);
    if (done != CURLE_OK)
        host->log(CNR_LOG_WARN, "object-post", "not sent: %s", curl_easy_strerror(done));
    else if (code >= 400) host->log(CNR_LOG_WARN, "object-post", "refused with %ld", code);
    return CNR_OK;
}

static const cnr_object object = {.size = sizeof object,
                                  .n_methods = 1,
                                  .name = POST_NAME,
                                  .summary = POST_SUMMARY,
                                  .methods = post_methods,
                                  .create = create,
                                  .call = send_text,
                                  .destroy = destroy};

CNR_EXPORT const cnr_object *late_object(const cnr_host *given);
/* What the plugin calls once to get the object's table, with the host's functions. */
const cnr_object *late_object(const cnr_host *given) {
    host = given;
    return &object;
}
