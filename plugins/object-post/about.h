/* Facts about the object "post" that are known before libcurl is loaded. */
#ifndef POST_ABOUT_H
#define POST_ABOUT_H

#include <cnnrun/kit.h>

#define POST_NAME "post"
#define POST_SUMMARY "Lines of JSON posted to an address: post { url }."
static const char *const post_methods[] = {"send(json)"};

#endif
