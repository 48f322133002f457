/* Feeds: each client gets the newest picture or state after it has read the previous one. A slow
 * client misses some; nobody waits for it. */
#include "page.h"
#include <stdlib.h>

/* A connection that gets all pictures or texts as they come. */
struct page_client {
    page *of;
    struct MHD_Connection *connection;
    page_peer *peer; /* the feed's connection; NULL: closed */
    page_block *now; /* the block being sent; NULL: none */
    size_t sent;     /* of head, block and tail together */
    char head[128];
    size_t n_head;
    uint64_t seen; /* number of the last block */
    /* whether it is a feed of pictures, else of events; waits: it is suspended */
    int pictures, waits;
};

/* A new block with a copy of n bytes and one holder, who calls page_block_drop; NULL: out of
 * memory. */
page_block *page_block_new(const void *data, size_t n) {
    page_block *b = page_host->alloc(sizeof *b + n);
    if (!b) return NULL;
    atomic_init(&b->holders, 1);
    b->counted = NULL;
    b->n = n;
    memcpy(b->at, data, n);
    return b;
}

void page_block_drop(page_block *b) {
    if (!b || atomic_fetch_sub(&b->holders, 1) != 1) return;
    if (b->counted) atomic_fetch_sub(b->counted, b->n);
    page_host->free(b);
}

int page_feed_waits(const page_client *c) { return c->waits; }

void page_feed_resume(page_client *c) {
    if (!c->waits) return;
    c->waits = 0;
    MHD_resume_connection(c->connection);
}

void page_feed_orphan(page_client *c) { c->peer = NULL; }

/* Resumes all feeds, or those of pictures (or else of events) alone. The lock is held. */
static void wake(page *p, int all, int pictures) {
    for (page_peer *peer = p->peers; peer; peer = peer->next)
        if (peer->feed && (all || peer->feed->pictures == pictures)) page_feed_resume(peer->feed);
}

void page_wake_all(page *p) {
    pthread_mutex_lock(&p->lock);
    wake(p, 1, 0);
    pthread_mutex_unlock(&p->lock);
}

void page_renew(page *p, page_block **at, uint64_t *counter, page_block *b) {
    pthread_mutex_lock(&p->lock);
    page_block *old = *at;
    b->number = ++*counter;
    b->counted = &p->block_bytes;
    atomic_fetch_add(b->counted, b->n);
    *at = b;
    wake(p, 0, at == &p->picture);
    page_peers_free_blocks(p);
    pthread_mutex_unlock(&p->lock);
    page_block_drop(old);
}

/* Gives the next block to c; 0: there is none yet, and c is suspended. */
static int take(page_client *c) {
    page *p = c->of;
    pthread_mutex_lock(&p->lock);
    page_block *b = c->pictures ? p->picture : p->state;
    const int fresh = b && b->number != c->seen;
    if (fresh) {
        atomic_fetch_add(&b->holders, 1);
        c->now = b;
        c->seen = b->number;
        c->sent = 0;
        c->peer->since_ns = page_host->now_ns();
        c->peer->holds = b;
    } else if (!atomic_load(&p->ending) && !c->peer->evicted) {
        c->peer->since_ns = 0; /* the last block was sent completely */
        c->waits = 1;
        MHD_suspend_connection(c->connection);
    }
    pthread_mutex_unlock(&p->lock);
    if (fresh && c->pictures)
        c->n_head =
            (size_t)snprintf(c->head, sizeof c->head,
                             "--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %zu\r\n\r\n",
                             c->now->n);
    else if (fresh) c->n_head = (size_t)snprintf(c->head, sizeof c->head, "event: state\ndata: ");
    return fresh;
}

/* Called by the server: fills `to` with the next bytes; waits if there are none. */
static ssize_t read_more(void *arg, uint64_t at, char *to, size_t room) {
    page_client *c = arg;
    static const char *const tails[] = {"\n\n", "\r\n"};
    (void)at;
    if (atomic_load(&c->of->ending) || !c->peer || c->peer->evicted)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!c->now && !take(c)) return 0;
    const struct {
        const void *at;
        size_t n;
    } parts[] = {{c->head, c->n_head}, {c->now->at, c->now->n}, {tails[c->pictures], 2}};
    size_t n = 0, before = 0;
    for (int i = 0; i < 3; i++) {
        const size_t end = before + parts[i].n;
        if (c->sent < end && n < room) {
            const size_t from = c->sent - before;
            size_t some = parts[i].n - from;
            if (some > room - n) some = room - n;
            memcpy(to + n, (const char *)parts[i].at + from, some);
            n += some;
            c->sent += some;
        }
        before = end;
    }
    if (c->sent == before) {
        pthread_mutex_lock(&c->of->lock);
        c->peer->holds = NULL;
        pthread_mutex_unlock(&c->of->lock);
        page_block_drop(c->now);
        c->now = NULL;
    }
    return (ssize_t)n;
}

/* Drops a feed; the server calls it at the end of a connection. */
static void leave(void *arg) {
    page_client *c = arg;
    page *p = c->of;
    pthread_mutex_lock(&p->lock);
    if (c->peer) {
        p->n_feeds -= !c->peer->evicted;
        c->peer->feed = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    if (c->pictures) atomic_fetch_sub(&p->watching, 1);
    page_block_drop(c->now);
    page_host->free(c);
}

/* Answers a request with a feed of pictures (a stream of JPEGs) or else of events, which lasts
 * until its client leaves; 503 if there are too many. MHD_NO: no memory; the server closes the
 * connection. */
enum MHD_Result page_feed(page *p, struct MHD_Connection *connection, int pictures) {
    page_client *c = page_host->alloc(sizeof *c);
    if (!c) return MHD_NO;
    *c = (page_client){.of = p,
                       .connection = connection,
                       .peer = page_peer_of(connection),
                       .pictures = pictures};
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 32 << 10, read_more, c, leave);
    if (!r) {
        page_host->free(c);
        return MHD_NO;
    }
    if (pictures) atomic_fetch_add(&p->watching, 1);
    pthread_mutex_lock(&p->lock);
    const int taken = c->peer && page_peers_take_feed(p, c->peer, c);
    if (!taken) c->peer = NULL;
    pthread_mutex_unlock(&p->lock);
    if (!taken) {
        MHD_destroy_response(r);
        return page_full(connection);
    }
    MHD_add_response_header(r, "Content-Type",
                            pictures ? "multipart/x-mixed-replace; boundary=frame"
                                     : "text/event-stream");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    const enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return result;
}
