#!/bin/sh
# Builds the relocatable folder and the wheel in a bare machine that tools/package.sh has made.
#   build.sh TREE SYSROOT NAME OUT    writes OUT/NAME/ (the folder), OUT/*.whl and OUT/libraries/
# Compiler and tools are the machine's; headers and libraries are those of the older Debian in SYSROOT.
set -eu
tree=$1 name=$3 out=$4
export SYSROOT="$2" CFLAGS CC="gcc --sysroot=$2"
CFLAGS="-ffile-prefix-map=$tree=. -ffile-prefix-map=$SYSROOT= -fstack-protector-strong -D_FORTIFY_SOURCE=2"
export LDFLAGS='-Wl,-z,relro,-z,now,--disable-new-dtags'
libdir=$SYSROOT/usr/lib/x86_64-linux-gnu
export PKG_CONFIG_SYSROOT_DIR="$SYSROOT" PKG_CONFIG_LIBDIR="$libdir/pkgconfig:$SYSROOT/usr/share/pkgconfig"
cd "$tree"
umask 022
chmod -R go-w .
mkdir -p "$out/libraries"

# Links of an unpacked system lead to the root; here the root is the sysroot.
find "$SYSROOT/usr/lib" "$SYSROOT/lib" "$SYSROOT/lib64" -type l -lname '/*' ! -lname "$SYSROOT/*" | while read -r link; do
    ln -snf "$SYSROOT$(readlink "$link")" "$link"
done

# DT_RPATH, unlike DT_RUNPATH, also serves what a library opens: plugins, and what these need.
cmake -S . -B build -G Ninja --toolchain tools/portable/toolchain.cmake -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_FLAGS_RELEASE=-O2 -DCNNRUN_TESTS=OFF -DCNNRUN_WERROR=OFF \
    -DCMAKE_INSTALL_PREFIX="/opt/$name" -DCMAKE_INSTALL_LIBDIR=lib "-DCMAKE_INSTALL_RPATH=\$ORIGIN/../lib"
ninja -C build installed
DESTDIR=$tree/stage ninja -C build install/strip
mv "stage/opt/$name" "$out/$name"
rm -r "$out/$name/lib/systemd" # whose unit names the folder

# Libraries that the files of a folder need and that glibc does not have, and what these need in turn.
needed() {
    find "$@" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec readelf -d {} + 2>/dev/null |
        sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | sort -u |
        grep -vE '^(lib(c|m|dl|rt|pthread)\.so\.|ld-linux|libcnnrun)' || true
}
while :; do
    more=
    for library in $(needed "$out/$name" "$out/libraries"); do
        [ -e "$out/libraries/$library" ] && continue
        cp -L "$libdir/$library" "$out/libraries/" 2>/dev/null ||
            cp -L "$SYSROOT/lib/x86_64-linux-gnu/$library" "$out/libraries/"
        strip --strip-unneeded "$out/libraries/$library"
        more=1
    done
    [ "$more" ] || break
done
chmod 644 "$out/libraries/"*
cp "$out/libraries/"* "$out/$name/lib/"
find "$out/$name" -name '*.a' -exec strip -D --strip-debug {} +

# What their licences want to go with them.
licences=$out/$name/share/doc/cnnrun/licences
mkdir -p "$licences"
cp LICENSE "$licences/cnnrun"
for package in zlib1g liblua5.4 libjpeg62-turbo libpng libprotobuf-c libmsgpack libjansson libzstd libgif; do
    cp -L "$SYSROOT/usr/share/doc/$package-dev/copyright" "$licences/$package"
done

# Python's headers are the machine's; they ask for one beside them.
cd core/bind/python
CFLAGS="$CFLAGS -idirafter /usr/include" LDSHARED="$CC -B$libdir -L$libdir -shared" \
    CNNRUN_BUILD=$tree/build CNNRUN_AUDITWHEEL=1 CNNRUN_LICENCES=$licences python3 setup.py -q bdist_wheel -d "$out"
