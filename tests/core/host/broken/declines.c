/* Does not want this host. */
#include "broken.h"
BROKEN_ENTRY(NULL)
