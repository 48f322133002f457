# A toolchain: Debian's compiler for AArch64, its own libraries alone, and qemu to run what was built.
#     cmake -S . -B build-aarch64 -DCMAKE_TOOLCHAIN_FILE=tests/cross/aarch64.cmake -DCNNRUN_CROSS_LUA=DIR
# DIR is liblua5.4-dev:arm64, unpacked (tools/test.sh fetches it).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-gcc) # only tests hold C++, and they stay here
set(CMAKE_CXX_COMPILER_FORCED TRUE)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CNNRUN_CROSS_LUA)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu ${CNNRUN_CROSS_LUA})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${CNNRUN_CROSS_LUA}/none)
set(CMAKE_C_FLAGS_INIT "-isystem ${CNNRUN_CROSS_LUA}/usr/include/aarch64-linux-gnu")
