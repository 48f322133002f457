/* The plugin: the object "post", which comes in (post.so) when one is made. */
#include "about.h"
#include "late.h"

LATE_OBJECT(object, "object-post/post", POST_NAME, POST_SUMMARY, post_methods)

CNR_PLUGIN("object-post", CNNRUN_VERSION, "JSON posted to an address, by libcurl", "MIT", late_init)
