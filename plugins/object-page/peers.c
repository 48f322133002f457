/* Connections: how long the server has waited for each, deadlines, and eviction of the slowest near
 * the limits of number or memory. libmicrohttpd only measures silence, so a client that sends a
 * byte a second would never time out. */
#include "page.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    MOST_PEERS = 256,
    LEAST_PEERS = 8,
    MOST_BLOCK_BYTES = 32 << 20,
    SEND_BUFFER_BYTES = 64 << 10,
    LOOK_MS = 250
};

/* Seconds for: a whole request line, all headers, a body; reading an answer; one block of a
 * feed. */
static const uint64_t deadline_s[PAGE_WAITS] = {
    [PAGE_REQUEST] = 10, [PAGE_HEADERS] = 5, [PAGE_BODY] = 5, [PAGE_ANSWER] = 10, [PAGE_FEED] = 10};

/* The number of connections that the limit of file descriptors allows. A quarter of the file
 * descriptors; the others are for files, devices and sources. */
int page_peers_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= MOST_PEERS)
        return MOST_PEERS;
    return limit.rlim_cur / 4 < LEAST_PEERS ? LEAST_PEERS : (int)(limit.rlim_cur / 4);
}

/* ---- eviction; all with the lock held ---- */

/* Shuts down the socket, which wakes the server's thread to close it. Unsent data is dropped. */
static void evict(page *p, page_peer *peer) {
    const struct linger at_once = {.l_onoff = 1};
    atomic_store(&peer->evicted, 1);
    p->n_peers--;
    if (peer->feed) p->n_feeds--;
    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    shutdown(peer->fd, SHUT_RDWR);
    if (peer->feed) page_feed_resume(peer->feed);
}

/* Nanoseconds that a connection has been waited for at `now`; 0: it isn't waited for. */
static uint64_t waited(const page_peer *peer, uint64_t now) {
    return peer->since_ns && now > peer->since_ns ? now - peer->since_ns : 0;
}

/* The connection with the longest wait, of at least `least`: feeds only, or holders of a block
 * only. NULL: none. */
static page_peer *slowest(const page *p, int feeds, int holders, uint64_t least) {
    const uint64_t now = page_host->now_ns();
    page_peer *found = NULL;
    for (page_peer *peer = p->peers; peer; peer = peer->next) {
        if (atomic_load(&peer->evicted) || (feeds && !peer->feed) || (holders && !peer->holds))
            continue;
        const uint64_t ns = waited(peer, now);
        if (ns < least) continue;
        least = ns;
        found = peer;
    }
    return found;
}

void page_peers_free_blocks(page *p) {
    if (atomic_load(&p->block_bytes) <= MOST_BLOCK_BYTES) return;
    page_peer *first = slowest(p, 0, 1, UINT64_C(1000000000));
    const page_block *b = first ? first->holds : NULL;
    for (page_peer *peer = p->peers; peer && b; peer = peer->next)
        if (peer->holds == b && !atomic_load(&peer->evicted)) evict(p, peer);
}

/* Gives the peer a feed, if need be in place of a slow peer's; 0: too many feeds. */
int page_peers_take_feed(page *p, page_peer *peer, page_client *feed) {
    if (p->n_feeds >= p->most_peers - p->most_peers / 4) { /* the others are for single requests */
        page_peer *slow = slowest(p, 1, 0, UINT64_C(1000000000));
        if (!slow) return 0;
        evict(p, slow);
    }
    /* a client that does not read occupies this and the block */
    const int bytes = SEND_BUFFER_BYTES;
    setsockopt(peer->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (!atomic_load(&peer->evicted)) p->n_feeds++;
    peer->feed = feed;
    peer->wait = PAGE_FEED;
    peer->since_ns = 0;
    return 1;
}

/* Whether the client left while its feed waits for a block, which the server's thread does not
 * check. */
static int has_left(const page_peer *peer) {
    char byte;
    return peer->feed && page_feed_waits(peer->feed) &&
           recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Thread: closes connections that are waited for too long. */
static void *watch_deadlines(void *arg) {
    page *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->ending)) {
        struct timespec until;
        const uint64_t now = page_host->now_ns();
        for (page_peer *peer = p->peers; peer; peer = peer->next)
            if (!atomic_load(&peer->evicted) &&
                (waited(peer, now) > deadline_s[peer->wait] * UINT64_C(1000000000) ||
                 has_left(peer)))
                evict(p, peer);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
        pthread_cond_timedwait(&p->ends, &p->lock, &until);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the list ---- */

cnr_status page_peers_open(page *p, cnr_error *err) {
    p->most_peers = page_peers_limit();
    p->has_deadlines = pthread_create(&p->deadlines, NULL, watch_deadlines, p) == 0;
    return p->has_deadlines
               ? CNR_OK
               : page_host->fail(err, CNR_E_MEMORY, "page", "no thread can be started");
}

/* Ends the thread of deadlines and waits for it. */
void page_peers_close(page *p) {
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->ends);
    pthread_mutex_unlock(&p->lock);
    if (p->has_deadlines) pthread_join(p->deadlines, NULL);
}

/* Puts a new connection, of socket fd, into the list; if there are too many now, the slowest is
 * closed. */
static void arrive(page *p, page_peer *peer, int fd) {
    *peer = (page_peer){.since_ns = page_host->now_ns(), .fd = fd};
    pthread_mutex_lock(&p->lock);
    peer->next = p->peers;
    if (p->peers) p->peers->previous = peer;
    p->peers = peer;
    if (++p->n_peers > p->most_peers) evict(p, slowest(p, 0, 0, 0));
    pthread_mutex_unlock(&p->lock);
}

/* Takes a connection out of the list and frees it; its feed, if any, has no peer then. */
static void leave(page *p, page_peer *peer) {
    pthread_mutex_lock(&p->lock);
    if (peer->previous) peer->previous->next = peer->next;
    else p->peers = peer->next;
    if (peer->next) peer->next->previous = peer->previous;
    if (peer->feed) page_feed_orphan(peer->feed);
    if (!atomic_load(&peer->evicted)) {
        p->n_peers--;
        p->n_feeds -= peer->feed != NULL;
    }
    pthread_mutex_unlock(&p->lock);
    page_host->free(peer);
}

/* Called by the server when a connection begins, whose page_peer it puts into *at, and when it
 * ends, which frees that. */
void page_peer_notify(void *arg, struct MHD_Connection *c, void **at,
                      enum MHD_ConnectionNotificationCode what) {
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        page_peer *peer = *at = page_host->alloc(sizeof *peer);
        const int fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        if (peer) arrive(arg, peer, fd);
        else shutdown(fd, SHUT_RDWR); /* without an entry it would have no deadline */
    } else if (*at) {
        leave(arg, *at);
        *at = NULL;
    }
}

page_peer *page_peer_of(struct MHD_Connection *c) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void page_peer_waits(page *p, struct MHD_Connection *c, page_wait wait, const page_block *holds) {
    page_peer *peer = page_peer_of(c);
    if (!peer) return;
    pthread_mutex_lock(&p->lock);
    peer->wait = wait;
    peer->since_ns = page_host->now_ns();
    peer->holds = holds;
    pthread_mutex_unlock(&p->lock);
}
