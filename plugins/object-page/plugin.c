/* The plugin: the object "page"; page.so is loaded when one is created. */
#include "about.h"
#include "late.h"
#include <stdio.h>
#include <string.h>

/* The address that it listens on: "8080", a port of this machine only, or "0.0.0.0:8080",
 * "[::]:8080". */
static int32_t reach(const cnr_attr *const *options, int32_t n, char *name, size_t room) {
    const char *address = "127.0.0.1";
    int64_t port = 0;
    for (int32_t i = 0; i < n; i++) {
        if (strcmp(options[i]->name, "address") == 0 && options[i]->type == CNR_ATTR_STRING)
            address = options[i]->s;
        if (strcmp(options[i]->name, "port") == 0 && options[i]->type == CNR_ATTR_INT)
            port = options[i]->i;
    }
    const int six = strchr(address, ':') != NULL;
    if (strcmp(address, "127.0.0.1") == 0) snprintf(name, room, "%lld", (long long)port);
    else
        snprintf(name, room, "%s%s%s:%lld", six ? "[" : "", address, six ? "]" : "",
                 (long long)port);
    return CNR_TOUCHES_NETWORK;
}

LATE_OBJECT(object, "object-page/page", PAGE_NAME, PAGE_SUMMARY, page_methods, reach)

CNR_PLUGIN("object-page", CNNRUN_VERSION,
           "a live page: pictures, numbers and switches, by libmicrohttpd", "MIT", late_init,
           CNR_TOUCHES_NETWORK)
