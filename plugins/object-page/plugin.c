/* The plugin: the object "page", which comes in (page.so) when one is made. */
#include "about.h"
#include "late.h"

LATE_OBJECT(object, "object-page/page", PAGE_NAME, PAGE_SUMMARY, page_methods)

CNR_PLUGIN("object-page", CNNRUN_VERSION, "a live page: pictures, numbers and switches, by libmicrohttpd",
           "MIT", late_init)
