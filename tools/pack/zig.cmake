# A toolchain: the compiler of the Python package ziglang (pip install ziglang), with musl as its static C library.
#     python3 -m venv zig && zig/bin/pip install ziglang
#     CNNRUN_ZIG=zig/bin/python CNNRUN_ZIG_TARGET=aarch64-linux-musl tools/pack.pl ... --toolchain tools/pack/zig.cmake
set(CMAKE_SYSTEM_NAME Linux)
if(NOT DEFINED ENV{CNNRUN_ZIG})
  message(FATAL_ERROR "CNNRUN_ZIG: expected the Python that has ziglang")
endif()
set(target aarch64-linux-musl)
if(DEFINED ENV{CNNRUN_ZIG_TARGET})
  set(target $ENV{CNNRUN_ZIG_TARGET})
endif()
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR ${target})
set(CMAKE_C_COMPILER $ENV{CNNRUN_ZIG} -m ziglang cc -target ${target})
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})
