/* What is known of the object "post" before libcurl comes in. */
#ifndef POST_ABOUT_H
#define POST_ABOUT_H

#include <cnnrun/kit.h>

#define POST_NAME "post"
#define POST_SUMMARY "Lines of JSON posted to an address: post { url }."
static const char *const post_methods[] = {"send(json)"};

#endif
