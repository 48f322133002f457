/* The object "page": a live page of pictures and numbers, with controls. */
#include "about.h"
#include "page.h"
#include <stdlib.h>
#include <sys/random.h>

const cnr_host *page_host;

enum { WANTED_S = 5 };

/* Keeps the given token (8 to 32 letters, digits, - and _; else CNR_E_ARG), or with NULL makes a
 * random one. */
static cnr_status make_token(page *p, const char *given, cnr_error *err) {
    unsigned char noise[(PAGE_TOKEN - 1) / 2];
    if (given) {
        const size_t n = strlen(given);
        if (n < 8 || n >= sizeof p->token ||
            strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != n)
            return page_host->fail(err, CNR_E_ARG, "page",
                                   "token: want 8 to 32 letters, digits, - and _");
        memcpy(p->token, given, n + 1);
        return CNR_OK;
    }
    if (getrandom(noise, sizeof noise, 0) != (ssize_t)sizeof noise)
        return page_host->fail(err, CNR_E_IO, "page", "no random numbers for a token");
    for (size_t i = 0; i < sizeof noise; i++) snprintf(p->token + 2 * i, 3, "%02x", noise[i]);
    return CNR_OK;
}

/* Wakes and ends all feeds, stops the server and frees all. */
static void destroy(void *state) {
    page *p = state;
    atomic_store(&p->ending, 1);
    page_wake_all(p);
    page_peers_close(p);
    if (p->daemon) MHD_stop_daemon(p->daemon);
    page_block_drop(p->picture);
    page_block_drop(p->state);
    pthread_cond_destroy(&p->ends);
    pthread_mutex_destroy(&p->lock);
    page_host->free(p);
}

/* Creates the page from its options address, token and port, and starts the server; *state receives
 * it. Fails with a reason. */
static cnr_status create(const cnr_attr *const *list, int32_t n, void **state, cnr_error *err) {
    const char *address = "127.0.0.1", *token = NULL;
    int64_t port = 0;
    for (int32_t i = 0; i < n; i++) {
        if (strcmp(list[i]->name, "address") == 0 && list[i]->type == CNR_ATTR_STRING)
            address = list[i]->s;
        else if (strcmp(list[i]->name, "token") == 0 && list[i]->type == CNR_ATTR_STRING)
            token = list[i]->s;
        else if (strcmp(list[i]->name, "port") == 0 && list[i]->type == CNR_ATTR_INT)
            port = list[i]->i;
        else
            return page_host->fail(err, CNR_E_ARG, "page",
                                   "no option '%s' of this kind: port (0: any), "
                                   "address (127.0.0.1), token",
                                   list[i]->name);
    }
    if (port < 0 || port > 65535)
        return page_host->fail(err, CNR_E_ARG, "page", "port: want 0 to 65535");
    page *p = page_host->alloc(sizeof *p);
    if (!p) return page_host->fail(err, CNR_E_MEMORY, "page", "out of memory");
    memset(p, 0, sizeof *p);
    pthread_condattr_t steady;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&p->ends, &steady);
    pthread_condattr_destroy(&steady);
    cnr_status status = make_token(p, token, err);
    if (!status) status = page_peers_open(p, err);
    if (!status) status = page_listen(p, address, (int)port, err);
    if (status) destroy(p);
    else *state = p;
    return status;
}

/* ---- methods ---- */

/* Gives a text as a u8 vector of its n bytes, with data from the host's alloc; fails with
 * CNR_E_MEMORY. */
static cnr_status give_text(const char *text, size_t n, cnr_tensor *out, cnr_error *err) {
    out->dtype = CNR_u8;
    out->rank = 1;
    out->dim[0] = (int64_t)n;
    out->data = page_host->alloc(n + 1);
    if (!out->data) return page_host->fail(err, CNR_E_MEMORY, "page", "out of memory");
    memcpy(out->data, text, n);
    return CNR_OK;
}

/* 1 if somebody watches, or asked for a picture lately. */
static int is_wanted(const page *p) {
    const uint64_t asked = atomic_load(&p->wanted_ns);
    return atomic_load(&p->watching) > 0 || !p->picture ||
           (asked && page_host->now_ns() - asked < WANTED_S * UINT64_C(1000000000));
}

/* Method show: watchers see the picture, u8 of H W C with C 1 or 3, from now on; without watchers
 * nothing is done. */
static cnr_status show(page *p, const cnr_tensor *t, cnr_error *err) {
    if (t->dtype != CNR_u8 || t->rank != 3 || (t->dim[2] != 1 && t->dim[2] != 3) || t->dim[0] < 1 ||
        t->dim[1] < 1 || t->dim[0] > 65500 || t->dim[1] > 65500)
        return page_host->fail(err, CNR_E_ARG, "picture",
                               "want a picture, u8 [height,width,1 or 3]");
    if (!is_wanted(p)) return CNR_OK; /* no client looks */
    page_block *b = page_jpeg(t);
    if (!b) return page_host->fail(err, CNR_E_MEMORY, "page", "out of memory");
    page_renew(p, &p->picture, &p->pictures, b);
    return CNR_OK;
}

/* Method tell: keeps a line of JSON as the newest state, for all feeds of events; fails if it is no
 * line. */
static cnr_status tell(page *p, const cnr_tensor *t, cnr_error *err) {
    if (t->dtype != CNR_u8 || t->rank != 1 || memchr(t->data, '\n', (size_t)t->dim[0]))
        return page_host->fail(err, CNR_E_ARG, "tell", "want a line of JSON");
    page_block *b = page_block_new(t->data, (size_t)t->dim[0]);
    if (!b) return page_host->fail(err, CNR_E_MEMORY, "page", "out of memory");
    page_renew(p, &p->state, &p->states, b);
    return CNR_OK;
}

/* Method asked: what watchers have asked, once. */
static cnr_status asked(page *p, cnr_tensor *out, cnr_error *err) {
    pthread_mutex_lock(&p->lock);
    const cnr_status status = give_text(p->asked, p->n_asked, out, err);
    if (!status) p->n_asked = 0;
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* Method address: the page's address with its token. */
static cnr_status address(const page *p, cnr_tensor *out, cnr_error *err) {
    char text[160];
    const int six = strchr(p->host, ':') != NULL;
    snprintf(text, sizeof text, "http://%s%s%s:%d/#token=%s", six ? "[" : "", p->host,
             six ? "]" : "", atomic_load(&p->port), p->token);
    return give_text(text, strlen(text), out, err);
}

/* Method wanted: gives out 1 if a picture would be seen, else 0. */
static cnr_status wanted(const page *p, cnr_tensor *out, cnr_error *err) {
    double *to = page_host->alloc(sizeof *to);
    if (!to) return page_host->fail(err, CNR_E_MEMORY, "page", "out of memory");
    *to = is_wanted(p);
    out->dtype = CNR_f64;
    out->rank = 0;
    out->data = to;
    return CNR_OK;
}

/* Calls a method by its index, after checking the numbers of inputs and results; fails with the
 * method's reason. */
static cnr_status call_method(void *state, int32_t method, const cnr_tensor *const *in,
                              int32_t n_in, cnr_tensor *const *out, int32_t n_out, cnr_error *err) {
    page *p = state;
    if (method < 0 || method >= METHODS)
        return page_host->fail(err, CNR_E_ARG, "page", "no such method");
    if (n_in != (method < ASKED) || n_out < (method >= ASKED))
        return page_host->fail(err, CNR_E_ARG, "page", "want %s", page_methods[method]);
    switch (method) {
    case PICTURE: return show(p, in[0], err);
    case TELL: return tell(p, in[0], err);
    case ASKED: return asked(p, out[0], err);
    case ADDRESS: return address(p, out[0], err);
    default: return wanted(p, out[0], err);
    }
}

const cnr_object page_object = {.size = sizeof page_object,
                                .n_methods = METHODS,
                                .name = PAGE_NAME,
                                .summary = PAGE_SUMMARY,
                                .methods = page_methods,
                                .create = create,
                                .call = call_method,
                                .destroy = destroy};

CNR_EXPORT const cnr_object *late_object(const cnr_host *host);
/* What the plugin calls once to get the object's table, with the host's functions. */
const cnr_object *late_object(const cnr_host *host) {
    page_host = host;
    return &page_object;
}
