/* Internals of object-page: the shown data, and the server. */
#ifndef PAGE_PAGE_H
#define PAGE_PAGE_H

#include <cnnrun/kit.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

extern const cnr_host *page_host;
extern const cnr_object page_object;

enum { PAGE_TOKEN = 33, PAGE_MOST_ASKED = 4096, PAGE_MOST_BODY = 1024 };

/* Shared, reference-counted bytes: the last client that releases them frees them. */
typedef struct page_block {
    _Atomic int holders;
    _Atomic size_t *counted; /* counter of the page's bytes, to which n is added; NULL: none */
    uint64_t number;
    size_t n;
    uint8_t at[];
} page_block;

typedef struct page_client page_client;

/* What the server waits for on a connection, and so how long it may take. */
typedef enum page_wait {
    PAGE_REQUEST,
    PAGE_HEADERS,
    PAGE_BODY,
    PAGE_ANSWER,
    PAGE_FEED,
    PAGE_WAITS
} page_wait;

/* A connection of the server, from its accept to its close. */
typedef struct page_peer {
    int fd;
    page_wait wait;
    uint64_t since_ns;       /* when the wait began; 0: the server does not wait */
    const page_block *holds; /* the block that is being sent */
    page_client *feed;       /* NULL: it has none */
    _Atomic int evicted;     /* its socket is shut down; libmicrohttpd closes it */
    struct page_peer *next, *previous;
} page_peer;

/* A page and its server; the lock guards all that isn't atomic. */
typedef struct page {
    struct MHD_Daemon *daemon;
    char host[64], token[PAGE_TOKEN];
    _Atomic int port;            /* known once the server runs; read by any thread */
    int any;                     /* listens on all addresses of the machine */
    pthread_mutex_t lock;        /* guards the following members */
    page_block *picture, *state; /* newest JPEG, newest JSON, held; NULL: none yet */
    uint64_t pictures, states;
    page_peer *peers; /* first of all connections */
    /* connections but evicted ones; those with a feed; the limit of n_peers */
    int n_peers, n_feeds, most_peers;
    pthread_cond_t ends; /* wakes the thread that checks deadlines */
    pthread_t deadlines;
    int has_deadlines;           /* the thread that closes late connections runs */
    char asked[PAGE_MOST_ASKED]; /* lines of JSON not fetched yet */
    size_t n_asked;
    _Atomic size_t block_bytes; /* of all blocks still referenced */
    _Atomic uint64_t wanted_ns; /* when a picture was last requested */
    _Atomic int watching;       /* number of clients that look at pictures */
    _Atomic int ending;
} page;

/* ---- feeds.c: blocks sent to clients ---- */
/* A copy of n bytes with one holder; NULL: out of memory. */
page_block *page_block_new(const void *data, size_t n);
/* Gives a block up; the last holder frees it. */
void page_block_drop(page_block *b);
/* Replaces *at by b and wakes waiting feeds. Takes ownership of b. */
void page_renew(page *p, page_block **at, uint64_t *counter, page_block *b);
/* Answers with all blocks of a kind from now on: pictures != 0: JPEG, as multipart; else events. */
enum MHD_Result page_feed(page *p, struct MHD_Connection *c, int pictures);
/* Resumes all feeds, since the page ends. */
void page_wake_all(page *p);
/* Call with the lock held: resumes a feed that waits for a block; ends it if its peer was
 * evicted. */
void page_feed_resume(page_client *c);
/* 1 if the feed is suspended until something new comes. */
int page_feed_waits(const page_client *c);
void page_feed_orphan(page_client *c); /* notes that the feed's connection has closed */

/* ---- peers.c: connections, and how long the server has waited for each ---- */
/* The number of connections that the limit of file descriptors allows. */
int page_peers_limit(void);
/* Sets the limit of connections and starts the thread that closes late ones; fails where that can't
 * start. */
cnr_status page_peers_open(page *p, cnr_error *err);
void page_peers_close(page *p); /* Ends that thread and waits for it. */
/* Called by the server when a connection begins, whose page_peer it puts into *at, and when it
 * ends, which frees that. */
void page_peer_notify(void *p, struct MHD_Connection *c, void **peer,
                      enum MHD_ConnectionNotificationCode what);
/* What is known of a connection; NULL: nothing, as the server has refused it. */
page_peer *page_peer_of(struct MHD_Connection *c);
/* The server now waits for something else on this connection. */
void page_peer_waits(page *p, struct MHD_Connection *c, page_wait wait, const page_block *holds);
/* Call with the lock held: */
/* Gives the peer a feed; 0: too many feeds. */
int page_peers_take_feed(page *p, page_peer *peer, page_client *feed);
void page_peers_free_blocks(page *p); /* evicts the slowest if blocks use too much memory */

/* ---- server.c ---- */
enum MHD_Result page_full(struct MHD_Connection *c); /* answers that there are too many viewers */
/* Starts the server at an address and port (0: any free one, noted in p->port); fails with a
 * reason. */
cnr_status page_listen(page *p, const char *address, int port, cnr_error *err);

/* ---- jpeg.c: NULL: out of memory ---- */
/* The picture as a JPEG; NULL: out of memory. */
page_block *page_jpeg(const cnr_tensor *picture);

#endif
