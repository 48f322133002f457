/* Facts about the object "page" that are known before its libraries are loaded. */
#ifndef PAGE_ABOUT_H
#define PAGE_ABOUT_H

#include <cnnrun/kit.h>

#define PAGE_NAME "page"
#define PAGE_SUMMARY "A live page on HTTP: page { port, address, token }."
enum { PICTURE, TELL, ASKED, ADDRESS, WANTED, METHODS };
static const char *const page_methods[METHODS] = {"picture(picture)", "tell(json)",
                                                  "asked() -> lines of json", "address() -> url",
                                                  "wanted() -> whether somebody looks"};

#endif
