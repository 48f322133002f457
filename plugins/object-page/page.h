/* Inside object-page: what is shown, and the server that shows it. */
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

/* Bytes that several clients may be reading: the last who lets go frees them. */
typedef struct page_block {
    _Atomic int holders;
    _Atomic size_t
        *counted; /* the page's sum of bytes, n of which are this one's; NULL: not counted */
    uint64_t number;
    size_t n;
    uint8_t at[];
} page_block;

typedef struct page_client page_client;

/* What the server waits for at a connection. */
typedef enum page_wait {
    PAGE_REQUEST,
    PAGE_HEADERS,
    PAGE_BODY,
    PAGE_ANSWER,
    PAGE_FEED,
    PAGE_WAITS
} page_wait;

/* A connection. */
typedef struct page_peer {
    int fd;
    page_wait wait;
    uint64_t since_ns;       /* when the wait began; 0: the client owes nothing */
    const page_block *holds; /* the block that it is sent */
    page_client *feed;       /* NULL: it has none */
    _Atomic int evicted;     /* its socket is shut; MHD closes it */
    struct page_peer *next, *previous;
} page_peer;

typedef struct page {
    struct MHD_Daemon *daemon;
    char host[64], token[PAGE_TOKEN];
    _Atomic int port;            /* known only once the server runs, and may be asked */
    int any;                     /* it listens on all of the machine's addresses */
    pthread_mutex_t lock;        /* of what follows */
    page_block *picture, *state; /* the newest JPEG; the newest JSON */
    uint64_t pictures, states;
    page_peer *peers;                 /* all connections */
    int n_peers, n_feeds, most_peers; /* evicted ones apart; of these with a feed; the limit */
    pthread_cond_t ends;              /* wakes the thread that watches deadlines */
    pthread_t deadlines;
    int has_deadlines;           /* that thread runs */
    char asked[PAGE_MOST_ASKED]; /* lines of JSON that nobody has taken yet */
    size_t n_asked;
    _Atomic size_t block_bytes; /* of all blocks that somebody still holds */
    _Atomic uint64_t wanted_ns; /* when a picture was last asked for */
    _Atomic int watching;       /* clients of pictures */
    _Atomic int ending;
} page;

/* ---- feeds.c: what clients are sent, one behind the other ---- */
page_block *page_block_new(const void *data, size_t n);
void page_block_drop(page_block *b);
/* Puts a newer one in the place of *at, and wakes who waits. Takes b over. */
void page_renew(page *p, page_block **at, uint64_t *counter, page_block *b);
/* Answers with all blocks of a kind from now on: pictures != 0: JPEG, as multipart; else events. */
enum MHD_Result page_feed(page *p, struct MHD_Connection *c, int pictures);
void page_wake_all(page *p);
/* With the lock held: a feed that waits for a block goes on, and ends if its peer was evicted. */
void page_feed_resume(page_client *c);
int page_feed_waits(const page_client *c);
void page_feed_orphan(page_client *c); /* its peer is gone */

/* ---- peers.c: who is connected, and how long the server has waited for each ---- */
/* How many connections the process's limit of descriptors allows. */
int page_peers_limit(void);
cnr_status page_peers_open(page *p, cnr_error *err);
void page_peers_close(page *p);
void page_peer_notify(void *p, struct MHD_Connection *c, void **peer,
                      enum MHD_ConnectionNotificationCode what);
page_peer *page_peer_of(struct MHD_Connection *c);
/* The server waits for something else from now on. */
void page_peer_waits(page *p, struct MHD_Connection *c, page_wait wait, const page_block *holds);
/* With the lock held: */
int page_peers_take_feed(page *p, page_peer *peer, page_client *feed); /* 0: too many have one */
void page_peers_free_blocks(page *p); /* evicts the slowest where blocks take too much memory */

/* ---- server.c ---- */
enum MHD_Result page_full(struct MHD_Connection *c); /* answers that too many look */
cnr_status page_listen(page *p, const char *address, int port, cnr_error *err);

/* ---- jpeg.c: NULL: out of memory ---- */
page_block *page_jpeg(const cnr_tensor *picture);

#endif
