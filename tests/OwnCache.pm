# Keeps tests apart from the user's cache folder: an empty CNNRUN_CACHE names none, so no plan is stored unless a test
# names a folder. `prove` loads this by .proverc, ctest and C tests (tap.h) set the same.
package OwnCache;
use strict;
use warnings;

$ENV{CNNRUN_CACHE} //= '';

1;
