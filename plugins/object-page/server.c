/* The server's access rules: everybody who reaches it may look; changes need the token; pages of
 * other hosts (by Origin, or by a name that resolves here) get nothing. */
#include "page.h"
#include "icon.svg.h"
#include "page.css.h"
#include "page.html.h"
#include "page.js.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

/* SILENT_S: libmicrohttpd's timeout, longer than all in peers.c. EVICTED: connections that are shut
 * down but not closed yet, in addition to the limit. */
enum { SILENT_S = 30, EVICTED = 64 };

/* A body that is being received. */
typedef struct request {
    size_t n;
    int too_long;
    char body[PAGE_MOST_BODY + 1];
} request;

/* Sends the response r, of that status and type, and gives it up, also on failure. MHD_NO:
 * failed. */
static enum MHD_Result send_off(struct MHD_Connection *c, unsigned code, const char *type,
                                struct MHD_Response *r) {
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "X-Frame-Options", "DENY");
    MHD_add_response_header(r, "Content-Security-Policy",
                            "default-src 'none'; script-src 'self'; style-src 'self'; img-src "
                            "'self'; "
                            "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                            "frame-ancestors 'none'");
    const enum MHD_Result result = MHD_queue_response(c, code, r);
    MHD_destroy_response(r);
    return result;
}

/* Answers with n bytes of static data, which are not copied. */
static enum MHD_Result answer(struct MHD_Connection *c, unsigned code, const char *type,
                              const void *data, size_t n) {
    struct MHD_Response *r =
        MHD_create_response_from_buffer(n, (void *)(uintptr_t)data, MHD_RESPMEM_PERSISTENT);
    return r ? send_off(c, code, type, r) : MHD_NO;
}

/* Answers with a static line of text. */
static enum MHD_Result say(struct MHD_Connection *c, unsigned code, const char *text) {
    return answer(c, code, "text/plain; charset=utf-8", text, strlen(text));
}

/* Answers 503: too many are connected. */
enum MHD_Result page_full(struct MHD_Connection *c) {
    return say(c, MHD_HTTP_SERVICE_UNAVAILABLE, "too many look already\n");
}

/* ---- checks of the request's origin ---- */

/* 1 if n letters are an IP address. */
static int is_number(const char *host, size_t n) {
    char text[64];
    unsigned char address[16];
    if (n >= sizeof text) return 0;
    memcpy(text, host, n);
    text[n] = 0;
    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* 1: the Host header names this server, against DNS rebinding. */
static int host_is_ours(const page *p, const char *host) {
    if (!host) return 0;
    char port[16];
    const int bracket = host[0] == '[';
    const char *end = bracket ? strchr(host, ']') : strchr(host, ':');
    const char *name = host + bracket;
    const size_t n = end ? (size_t)(end - name) : strlen(name);
    const char *colon = end && bracket ? end + 1 : end;
    const int number = atomic_load(&p->port);
    snprintf(port, sizeof port, ":%d", number);
    if (bracket && !end) return 0;
    if (colon && *colon ? strcmp(colon, port) != 0 : number != 80) return 0;
    if ((n == 9 && strncmp(name, "localhost", n) == 0) ||
        (n == 9 && strncmp(name, "127.0.0.1", n) == 0) || (n == 3 && strncmp(name, "::1", n) == 0))
        return 1;
    if (p->any) return is_number(name, n);
    return n == strlen(p->host) && strncmp(name, p->host, n) == 0;
}

/* The value of a request's header; NULL: there is none. */
static const char *header(struct MHD_Connection *c, const char *name) {
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* 1 unless another site's page made the request. */
static int origin_is_ours(struct MHD_Connection *c) {
    const char *origin = header(c, "Origin"), *host = header(c, "Host");
    if (!origin) return 1; /* not from a page */
    return host && strncmp(origin, "http://", 7) == 0 && strcmp(origin + 7, host) == 0;
}

/* 1: the request has the page's token; compared in constant time. */
static int token_is_ours(const page *p, struct MHD_Connection *c) {
    const char *given = header(c, "Authorization");
    unsigned differs = 0;
    if (!given || strncmp(given, "Bearer ", 7) != 0 || strlen(given + 7) != strlen(p->token))
        return 0;
    for (size_t i = 0; p->token[i]; i++) differs |= (unsigned)(given[7 + i] ^ p->token[i]);
    return differs == 0;
}

/* ---- requests ---- */

/* Copies at most `room` bytes of the block from `at` on; returns how many. Its readers share the
 * block: a copy for each slow client would fill the memory. */
static ssize_t read_block(void *block, uint64_t at, char *to, size_t room) {
    const page_block *b = block;
    const size_t some = b->n - at < room ? (size_t)(b->n - at) : room;
    memcpy(to, b->at + at, some);
    return (ssize_t)some;
}

static void drop_block(void *block) { page_block_drop(block); }

/* Answers with the newest picture or text at *at, or 503 if there is none yet; holds the block
 * until it is sent. */
static enum MHD_Result newest(page *p, struct MHD_Connection *c, page_block **at,
                              const char *type) {
    pthread_mutex_lock(&p->lock);
    page_block *b = *at;
    if (b) atomic_fetch_add(&b->holders, 1);
    pthread_mutex_unlock(&p->lock);
    if (!b) return say(c, MHD_HTTP_SERVICE_UNAVAILABLE, "nothing has come yet\n");
    struct MHD_Response *r =
        MHD_create_response_from_callback(b->n, 32 << 10, read_block, b, drop_block);
    if (!r) {
        page_block_drop(b);
        return MHD_NO;
    }
    page_peer_waits(p, c, PAGE_ANSWER, b);
    return send_off(c, MHD_HTTP_OK, type, r);
}

/* Answers with a page that is part of the plugin, without its first line. */
static enum MHD_Result embedded(struct MHD_Connection *c, const char *type, const char *text,
                                size_t n) {
    const char *begin = memchr(text, '\n', n); /* after the #line */
    return answer(c, MHD_HTTP_OK, type, begin + 1, n - (size_t)(begin + 1 - text));
}

/* Answers a GET by its path; 404 for unknown ones. */
static enum MHD_Result get(page *p, struct MHD_Connection *c, const char *url) {
    if (strcmp(url, "/") == 0)
        return embedded(c, "text/html; charset=utf-8", page_html, page_html_bytes);
    if (strcmp(url, "/page.js") == 0)
        return embedded(c, "text/javascript; charset=utf-8", page_js, page_js_bytes);
    if (strcmp(url, "/page.css") == 0)
        return embedded(c, "text/css; charset=utf-8", page_css, page_css_bytes);
    if (strcmp(url, "/icon.svg") == 0)
        return embedded(c, "image/svg+xml", icon_svg, icon_svg_bytes);
    if (strcmp(url, "/state.json") == 0) return newest(p, c, &p->state, "application/json");
    if (strcmp(url, "/events") == 0) return page_feed(p, c, 0);
    if (strcmp(url, "/picture.mjpg") == 0) return page_feed(p, c, 1);
    if (strcmp(url, "/picture.jpg") == 0) {
        atomic_store(&p->wanted_ns, page_host->now_ns());
        return newest(p, c, &p->picture, "image/jpeg");
    }
    return say(c, MHD_HTTP_NOT_FOUND, "/, /picture.jpg, /picture.mjpg, /state.json, /events\n");
}

/* Queues one line of JSON, {"NAME": text or number}, for the object's caller. */
static enum MHD_Result set(page *p, struct MHD_Connection *c, const request *r) {
    if (r->too_long) return say(c, MHD_HTTP_CONTENT_TOO_LARGE, "too long\n");
    if (!r->n || r->body[0] != '{' || r->body[r->n - 1] != '}')
        return say(c, MHD_HTTP_BAD_REQUEST, "want an object of JSON\n");
    for (size_t i = 0; i < r->n; i++)
        if ((unsigned char)r->body[i] < ' ') return say(c, MHD_HTTP_BAD_REQUEST, "want one line\n");
    pthread_mutex_lock(&p->lock);
    const int fits = p->n_asked + r->n + 2 <= sizeof p->asked;
    if (fits) {
        memcpy(p->asked + p->n_asked, r->body, r->n);
        p->n_asked += r->n;
        p->asked[p->n_asked++] = '\n';
    }
    pthread_mutex_unlock(&p->lock);
    return fits ? say(c, MHD_HTTP_ACCEPTED, "ok\n")
                : say(c, MHD_HTTP_SERVICE_UNAVAILABLE, "too many\n");
}

/* Answers a request; the server calls it for each piece of one, of *n bytes, of which none are left
 * then. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *data, size_t *n,
                              void **state) {
    page *p = arg;
    request *r = *state;
    (void)version;
    if (!r) {
        *state = r = page_host->alloc(sizeof *r);
        if (!r) return MHD_NO;
        r->n = 0;
        r->too_long = 0;
        page_peer_waits(p, c, PAGE_BODY, NULL);
        return MHD_YES; /* the body follows */
    }
    if (*n) {
        const size_t some = *n < PAGE_MOST_BODY - r->n ? *n : PAGE_MOST_BODY - r->n;
        memcpy(r->body + r->n, data, some);
        r->n += some;
        r->too_long |= some < *n;
        *n = 0;
        return MHD_YES;
    }
    r->body[r->n] = 0;
    page_peer_waits(p, c, PAGE_ANSWER, NULL);
    if (!host_is_ours(p, header(c, "Host")))
        return say(c, MHD_HTTP_MISDIRECTED_REQUEST, "not this host\n");
    if (!origin_is_ours(c)) return say(c, MHD_HTTP_FORBIDDEN, "not for other pages\n");
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) return get(p, c, url);
    if (strcmp(method, "POST") != 0)
        return say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET, or POST /set\n");
    if (strcmp(url, "/set") != 0) return say(c, MHD_HTTP_NOT_FOUND, "POST /set\n");
    if (!token_is_ours(p, c))
        return say(c, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong\n");
    return set(p, c, r);
}

/* Frees what a request kept; the server calls it when one is done. */
static void done(void *arg, struct MHD_Connection *c, void **state,
                 enum MHD_RequestTerminationCode why) {
    (void)why;
    page_peer_waits(arg, c, PAGE_REQUEST, NULL);
    page_host->free(*state);
    *state = NULL;
}

/* Notes that a request begins, whose headers are waited for; returns NULL, since there is nothing
 * to keep yet. */
static void *begin(void *arg, const char *uri, struct MHD_Connection *c) {
    (void)uri;
    page_peer_waits(arg, c, PAGE_HEADERS, NULL);
    return NULL; /* the request's state */
}

/* Log function of the server: logs a line for debugging. */
static void tell(void *arg, const char *format, va_list list) {
    char text[300];
    (void)arg;
    vsnprintf(text, sizeof text, format, list);
    text[strcspn(text, "\r\n")] = 0;
    page_host->log(CNR_LOG_DEBUG, "object-page", "%s", text);
}

cnr_status page_listen(page *p, const char *address, int port, cnr_error *err) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    const int is6 = strchr(address, ':') != NULL;
    if (inet_pton(is6 ? AF_INET6 : AF_INET, address, is6 ? (void *)&v6.sin6_addr : &v4.sin_addr) !=
        1)
        return page_host->fail(err, CNR_E_ARG, "page", "want an address in numbers, got '%s'",
                               address);
    snprintf(p->host, sizeof p->host, "%s", address);
    atomic_store(&p->port, port);
    p->any = strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
    const unsigned polling =
        MHD_is_feature_supported(MHD_FEATURE_EPOLL) == MHD_YES ? MHD_USE_EPOLL : MHD_USE_POLL;
    p->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | polling | MHD_USE_ERROR_LOG |
                                     MHD_ALLOW_SUSPEND_RESUME | (is6 ? MHD_USE_IPv6 : 0),
                                 (uint16_t)port, NULL, NULL, handle, p, MHD_OPTION_EXTERNAL_LOGGER,
                                 tell, NULL, MHD_OPTION_SOCK_ADDR,
                                 is6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)(p->most_peers + EVICTED),
                                 MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10),
                                 MHD_OPTION_NOTIFY_COMPLETED, done, p, MHD_OPTION_NOTIFY_CONNECTION,
                                 page_peer_notify, p, MHD_OPTION_URI_LOG_CALLBACK, begin, p,
                                 MHD_OPTION_END);
    if (!p->daemon)
        return page_host->fail(err, CNR_E_IO, "page", "can't listen on %s, port %d: %s", address,
                               port, strerror(errno));
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(p->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (info) atomic_store(&p->port, info->port);
    return CNR_OK;
}
