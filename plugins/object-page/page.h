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

enum { PAGE_MOST_CLIENTS = 256, PAGE_TOKEN = 33, PAGE_MOST_ASKED = 4096, PAGE_MOST_BODY = 1024 };

/* Bytes that several clients may be reading: the last who lets go frees them. */
typedef struct page_block {
    _Atomic int holders;
    uint64_t number;
    size_t n;
    uint8_t at[];
} page_block;

typedef struct page_client page_client;

typedef struct page {
    struct MHD_Daemon *daemon;
    char host[64], token[PAGE_TOKEN];
    _Atomic int port; /* known only once the server runs, and may be asked */
    int any;          /* it listens on all of the machine's addresses */
    pthread_mutex_t lock; /* of what follows */
    page_block *picture, *state; /* the newest JPEG; the newest JSON */
    uint64_t pictures, states;
    page_client *clients; /* of pictures and of events, as long as they stay */
    char asked[PAGE_MOST_ASKED]; /* lines of JSON that nobody has taken yet */
    size_t n_asked;
    _Atomic uint64_t wanted_ns;  /* when a picture was last asked for */
    _Atomic int watching;        /* clients of pictures */
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

/* ---- server.c ---- */
cnr_status page_listen(page *p, const char *address, int port, cnr_error *err);

/* ---- jpeg.c: NULL: out of memory ---- */
page_block *page_jpeg(const cnr_tensor *picture);

#endif
