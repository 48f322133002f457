/* Adds the loaders of this room to those that cnr_open knows. */
#include "core/lua/script.h"

void cnri_front_ends_add(void) {
    cnri_lua_install();
}
