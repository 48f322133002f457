/* The plugin: the object "post"; post.so is loaded when one is created. */
#include "about.h"
#include "late.h"
#include <string.h>

/* Writes the option url, where lines are posted to, into `name` if it fits; returns
 * CNR_TOUCHES_NETWORK. */
static int32_t reach(const cnr_attr *const *options, int32_t n, char *name, size_t room) {
    for (int32_t i = 0; i < n; i++)
        if (strcmp(options[i]->name, "url") == 0 && options[i]->type == CNR_ATTR_STRING &&
            strlen(options[i]->s) < room)
            memcpy(name, options[i]->s, strlen(options[i]->s) + 1);
    return CNR_TOUCHES_NETWORK;
}

LATE_OBJECT(object, "object-post/post", POST_NAME, POST_SUMMARY, post_methods, reach)

CNR_PLUGIN("object-post", CNNRUN_VERSION, "JSON posted to an address, by libcurl", "MIT", late_init,
           CNR_TOUCHES_NETWORK)
