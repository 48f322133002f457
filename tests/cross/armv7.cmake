# A toolchain: Debian's compiler for ARMv7 with NEON and fused products (Cortex-A7, A15, A17, Krait), its own
# libraries alone, and qemu to run what was built.
#     cmake -S . -B build-armv7 -DCMAKE_TOOLCHAIN_FILE=tests/cross/armv7.cmake -DCNNRUN_CROSS_LUA=DIR
# DIR is liblua5.4-dev:armhf, unpacked (apt-get download, dpkg -x).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CXX_COMPILER arm-linux-gnueabihf-gcc) # only tests hold C++, and they stay here
set(CMAKE_CXX_COMPILER_FORCED TRUE)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm-static -L /usr/arm-linux-gnueabihf)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CNNRUN_CROSS_LUA)
set(CMAKE_FIND_ROOT_PATH /usr/arm-linux-gnueabihf ${CNNRUN_CROSS_LUA})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE arm-linux-gnueabihf)
set(ENV{PKG_CONFIG_LIBDIR} ${CNNRUN_CROSS_LUA}/none)
set(CMAKE_C_FLAGS_INIT "-isystem ${CNNRUN_CROSS_LUA}/usr/include/arm-linux-gnueabihf")
