# Compiles for an older Linux: headers and libraries are those of the folder SYSROOT (environment).
set(CMAKE_SYSROOT $ENV{SYSROOT})
# gcc looks into the folders beside its own before it looks into those of the sysroot.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-B$ENV{SYSROOT}/usr/lib/x86_64-linux-gnu -L$ENV{SYSROOT}/usr/lib/x86_64-linux-gnu -static-libgcc")
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
