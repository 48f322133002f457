/* An interpreter with the address sanitiser in it, twice in one process. */
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

int main(int argc, char **argv) {
    for (int round = 0; round < 2; round++) {
        lua_State *L = luaL_newstate();
        luaL_openlibs(L);
        lua_createtable(L, 1, 0);
        lua_pushstring(L, argv[2]);
        lua_rawseti(L, -2, 1);
        lua_setglobal(L, "arg");
        if (argc < 3 || luaL_dofile(L, argv[1])) {
            fprintf(stderr, "%s\n", lua_tostring(L, -1));
            return 1;
        }
        lua_close(L);
    }
    return 0;
}
