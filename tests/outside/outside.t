#!/bin/sh
# The view from outside: installs, moves the tree, builds the template and an application against it.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    if [ "$1" = 0 ]; then echo "ok $count - $2"; else
        failed=1
        echo "not ok $count - $2"
        sed 's/^/# /' "$work/log" | tail -n 15
    fi
}
run() { "$@" >"$work/log" 2>&1; }

# Each file that the installation takes from the build is made by what the demo builds, unless
# configuring made it.
ninja -C "$build" -t commands installed >"$work/commands"
find "$build" -name cmake_install.cmake -exec cat {} + | grep -o "\"$build/[^\"\$]*\"" | tr -d '"' |
    grep -v 'cmake_install\.cmake$' | sort -u >"$work/wanted"
(
    grep -q '^build build installed$' "$root/tools/demo.sh" || exit 1
    grep -q 'libcnnrun\.a$' "$work/wanted" || exit 1
    while read -r file; do
        name=${file#"$build/"}
        case $name in cnnrunConfig*.cmake | cnnrun.pc | cnnrun-engine.pc | cnnrun-helper.service | reference/cnnrun-kernelcheck.1 | include/cnnrun/version.h) continue ;; esac
        grep -qF -- "$name" "$work/commands" || { echo "$name" >"$work/log"; exit 1; }
    done <"$work/wanted"
)
ok $? "tools/demo.sh builds all that is installed"
run cmake --install "$build" --prefix "$work/first"; ok $? "cmake --install"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
cd "$work" || exit 1
libdir=$(dirname "$(find "$prefix" -name libcnnrun.a)")

run env -i "$prefix/bin/cnnrun" plugins; ok $? "the moved program finds its plugins without environment"
run env -i "$prefix/bin/cnnrun" run "$prefix/share/cnnrun/scripts/nets/lenet5.lua" \
    "$prefix/share/cnnrun/scripts/nets/digits/three.png"
ok $? "and recognises a picture"

for file in share/man/man1/cnnrun.1 share/bash-completion/completions/cnnrun.bash \
    share/zsh/site-functions/_cnnrun share/fish/vendor_completions.d/cnnrun.fish \
    share/doc/cnnrun/README.md share/doc/cnnrun/plugins/README.md \
    share/doc/cnnrun/plugins/IMPORTING.md share/doc/cnnrun/examples/embed.c; do
    [ -s "$prefix/$file" ] || echo "$file" >>"$work/missing"
done
[ ! -f "$work/missing" ] || cp "$work/missing" "$work/log"
[ ! -f "$work/missing" ]; ok $? "with man page, completions, recipes and examples"

cat >"$work/one.cpp" <<'END'
#include <cnnrun/cnnrun.hpp>
#include <iostream>
int main(int, char **argv) {
    cnnrun::runtime rt;
    cnnrun::net net = rt.load(argv[1]);
    for (auto [index, score] : cnnrun::topk(net.run(argv[2]), 1)) std::cout << index << " " << score << "\n";
}
END
run c++ -std=c++17 -Wall -Wextra -Werror "-I$prefix/include" "$work/one.cpp" -o "$work/one" \
    "-L$libdir" -lcnnrun "-Wl,-rpath,$libdir" &&
    run env -i "$work/one" \
        "$prefix/share/cnnrun/scripts/nets/lenet5.lua" "$prefix/share/cnnrun/scripts/nets/digits/three.png" &&
    grep -q '^3 ' "$work/log"
ok $? "a C++ program of a page recognises a picture"

cp -r "$prefix/share/cnnrun/template" "$work/template"
run cmake -S template -B template/build "-DCMAKE_PREFIX_PATH=$prefix" &&
    run cmake --build template/build
ok $? "the template builds from the prefix"
nm -D --defined-only template/build/plugins/template.so >"$work/log"
[ "$(wc -l <"$work/log")" = 1 ]; ok $? "it exports one symbol"
# as the template's README has them
(cd template && PATH=$prefix/bin:$PATH && cnnrun --plugin-dir build/plugins plugins &&
    cnnrun --plugin-dir build/plugins kernelcheck --plugin template) >"$work/log" 2>&1
[ $? = 0 ] && grep -q '^template ' "$work/log" && grep -q '^ok .*channel_mix' "$work/log"
ok $? "the commands of its README list and judge it"
CNNRUN_PREFIX=$prefix sh template/ci.sh >"$work/log" 2>&1 &&
    grep -q '^# 7 judgements, .* 0 failed' "$work/log" && grep -q '<h1>template 1.0' template/build/plugins/template.html
ok $? "its CI file judges all that it brings and leaves a page"
run "$prefix/bin/cnnrun-kernelcheck" --plugin-dir template/build/plugins --plugin template &&
    grep -q '^ok .*channel_mix' "$work/log"
ok $? "and cnnrun-kernelcheck, over the engine alone, does too"
run "$prefix/bin/cnnrun" plugins --check template/build/plugins/template.so
ok $? "plugins --check approves of it"
run "$prefix/bin/cnnrun" run --plugin-dir template/build/plugins --weights random:1 \
    "$here/template_net.lua" "$prefix/share/cnnrun/scripts/nets/digits/three.png"
ok $? "a Lua net runs its operators"
"$prefix/bin/cnnrun" run --json --plugin-dir template/build/plugins --weights random:1 \
    "$here/template_net.lua" "$prefix/share/cnnrun/scripts/nets/digits/three.png" >"$work/a" 2>"$work/log"
"$prefix/bin/cnnrun" run --json --plugin-dir template/build/plugins --weights random:1 \
    --no-rewrite fuse --no-rewrite layout --no-rewrite fold-affine \
    "$here/template_net.lua" "$prefix/share/cnnrun/scripts/nets/digits/three.png" >"$work/b" 2>"$work/log"
perl -e '
    my @t = map { local @ARGV = $_; join "", <> } @ARGV;
    my @s = map { [ /"score":\s*([-0-9.e]+)/g ] } @t;
    exit 1 unless @{$s[0]} && @{$s[0]} == @{$s[1]};
    for (0 .. $#{$s[0]}) { exit 1 if abs($s[0][$_] - $s[1][$_]) > 1e-4 }' "$work/a" "$work/b"
ok $? "with and without fusion, blocks and folding its answers agree"

cp -r "$prefix/share/cnnrun/template-npu" "$work/npu"
run cmake -S npu -B npu/build "-DCMAKE_PREFIX_PATH=$prefix" && run cmake --build npu/build
ok $? "the example NPU builds from the prefix"
run "$prefix/bin/cnnrun" show "$prefix/share/cnnrun/scripts/nets/lenet5.lua" --plugin-dir npu/build/plugins --device npu &&
    grep -q 'npu_layer+max_pool' "$work/log"
ok $? "and computes regions of a net"

cp -r "$prefix/share/cnnrun/template-kinds" "$work/kinds"
run cmake -S kinds -B kinds/build "-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_INSTALL_PREFIX=$work/own"
CNNRUN_PREFIX=$prefix run sh kinds/ci.sh; ok $? "a plugin of each kind, in C and in C++, builds and conforms"
kinds=$(ls kinds/c kinds/cpp | grep -c '\.') judged=$(grep -c '^# .* judgements, .* 0 failed' "$work/log")
[ "$kinds" -ge 16 ] && [ "$judged" = "$kinds" ]; ok $? "... all $kinds of them"
for kind in device encoding importer knob meter rewrite source 'kernel.*dense' 'operator.*soft'; do
    grep -q "^ok .*$kind" "$work/log" || echo "$kind" >>"$work/unjudged"
done
! grep -E '^ok .*(samples|damaged|settings|readings|answers).*SKIP' "$work/log" | grep -v 'no options' >>"$work/unjudged" &&
    [ ! -s "$work/unjudged" ]
ok $? "... by what fits each"
for plugin in kinds/build/plugins/*.so; do nm -D --defined-only "$plugin"; done >"$work/log"
[ "$(wc -l <"$work/log")" = "$kinds" ] && [ "$(grep -c ' cnr_plugin_query$' "$work/log")" = "$kinds" ]
ok $? "... each exports one function"
run cmake --install kinds/build && [ -f "$work/own/${libdir#"$prefix/"}/cnnrun/plugins/cpp-source.so" ]
ok $? "... and is installed where cnnrun looks"

# Plugins linked into a program.
mkdir "$work/linked" && cp "$prefix/share/doc/cnnrun/examples/linked.c" "$work/linked"
cat >"$work/linked/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(linked C CXX)
find_package(cnnrun REQUIRED COMPONENTS engine)
cnr_add_plugin(c-device STATIC SOURCES ../kinds/c/device.c)
cnr_add_plugin(cpp-operator STATIC SOURCES ../kinds/cpp/operator.cpp)
add_executable(linked linked.c)
target_link_libraries(linked PRIVATE c-device cpp-operator cnnrun::engine-static)
END
cat >"$work/soft.lua" <<'END'
local c = require "cnnrun"
return c.net { name = "soft", input = { "x", shape = { 2, 3 } }, c["beta.soft_threshold"] { threshold = 0.5 } }
END
run cmake -S linked -B linked/build "-DCMAKE_PREFIX_PATH=$prefix" && run cmake --build linked/build &&
    run "$prefix/bin/cnnrun" convert --plugin-dir kinds/build/plugins soft.lua -o soft.cnr
ok $? "a program with two plugins linked in builds"
run env -i CNNRUN_PLUGIN_PATH="$work/kinds/build/plugins" linked/build/linked soft.cnr
[ "$(cat "$work/log")" = "0.5 -1.5 2.5 -3.5 0 0 " ]; ok $? "... and runs a net by them"
if command -v strace >/dev/null; then
    run strace -f -e trace=openat,open -o trace env -i linked/build/linked soft.cnr && grep -q 'soft\.cnr' trace &&
        ! grep -E 'plugins|\.so"' trace | grep -vE 'lib(c|m|stdc\+\+|gcc_s)\.so|ld\.so' >"$work/log"
    ok $? "... and opens no file of a plugin"
fi

cat >"$work/two.lua" <<'END'
local c = require "cnnrun"
return c.net { name = "two", input = { "x", shape = { 1, 1, 28, 28 } },
  function(x) return c.soft_threshold_grad { c.max_pool { x, kernel = 1, stride = 28 }, x } end }
END
"$prefix/bin/cnnrun" show --plugin-dir template/build/plugins "$work/two.lua" >"$work/log" 2>&1
grep -q 'y and dy must be alike' "$work/log"; ok $? "operands that do not fit are refused"

# apply_f32 is optional: without it the reference runs, a range on each thread.
cp -r "$work/template" "$work/bare"
rm -r "$work/bare/build"
sed -i '/\.apply_f32 = apply,/d' "$work/bare/soft_threshold.c"
run cmake -S bare -B bare/build "-DCMAKE_PREFIX_PATH=$prefix" && run cmake --build bare/build
ok $? "the template without its optional hook builds"
cat >"$work/wide.lua" <<'END'
local c = require "cnnrun"
return c.net { name = "wide", input = { "x", shape = { 1, 1, 256, 256 }, scale = 1 / 255 },
  c.max_pool { kernel = 1, stride = 1 }, c.soft_threshold { threshold = 0.1 },
  c.average_pool { kernel = 64, stride = 64 }, c.flatten {} }
END
for threads in 1 2; do
    run "$prefix/bin/cnnrun" run --json --top 16 --device cpu --threads $threads --plugin-dir bare/build/plugins \
        "$work/wide.lua" "$prefix/share/cnnrun/scripts/nets/digits/three.png"
    perl -ne 'print /"score":\s*[-0-9.e]+/g' "$work/log" >"$work/wide-$threads"
done
[ -s "$work/wide-1" ] && cmp -s "$work/wide-1" "$work/wide-2"
ok $? "and answers alike with one thread and with two"

export PKG_CONFIG_PATH=$libdir/pkgconfig
flags=$(pkg-config --cflags cnnrun) libs=$(pkg-config --libs cnnrun)
for language in c c++; do
    # shellcheck disable=SC2086
    case $language in
    c) run cc -std=c99 -Wall -Wextra -Werror $flags -o embed "$prefix/share/doc/cnnrun/examples/embed.c" $libs ;;
    *) run c++ -std=c++11 -Wall -Wextra -Werror $flags -x c++ -o embed "$prefix/share/doc/cnnrun/examples/embed.c" -x none $libs ;;
    esac
    ok $? "an application builds as $language by pkg-config"
    run env -i "LD_LIBRARY_PATH=$libdir" ./embed \
        "$prefix/share/cnnrun/scripts/nets/lenet5.lua" "$prefix/share/cnnrun/scripts/nets/digits/three.png"
    ok $? "and runs in five calls: plugins are found beside the library of a moved tree"
    head -n 1 "$work/log" | grep -q '^3 '; ok $? "and sees a three"
done
mkdir "$work/empty" && cp embed "$work/empty" && cd "$work/empty" || exit 1
cp "$libdir/libcnnrun.so.1" "$work/empty"
run env -i "LD_LIBRARY_PATH=$work/empty" ./embed "$prefix/share/cnnrun/scripts/nets/lenet5.lua" \
    "$prefix/share/cnnrun/scripts/nets/digits/three.png"
grep -q "no plugins (looked for in .*$work/empty/plugins (not there)" "$work/log"
ok $? "in an empty folder it is told where plugins were looked for"
cd "$work" || exit 1

# The engine alone: no Lua, nothing of power, lab and script.
three=$prefix/share/cnnrun/scripts/nets/digits/three.png
lenet=$prefix/share/cnnrun/scripts/nets/lenet5.lua
run "$prefix/bin/cnnrun" convert "$lenet" -o lenet.cnr && run "$prefix/bin/cnnrun" export "$lenet" -o lenet.onnx
ok $? "LeNet as .cnr and as ONNX"
mkdir "$work/engine"
cp "$prefix/share/doc/cnnrun/examples/embed.c" "$work/engine/embed.c"
cat >"$work/engine/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(alone C)
find_package(cnnrun REQUIRED COMPONENTS engine)
add_executable(alone embed.c)
target_link_libraries(alone PRIVATE cnnrun::engine)
add_executable(alone-static embed.c)
target_link_libraries(alone-static PRIVATE cnnrun::engine-static)
target_link_options(alone-static PRIVATE -Wl,--gc-sections)
END
run cmake -S engine -B engine/build -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$prefix" &&
    run cmake --build engine/build
ok $? "an application links the engine alone, shared and static"
for program in alone alone-static; do
    for net in lenet.cnr lenet.onnx; do
        case $program in *static) where=CNNRUN_PLUGIN_PATH=$libdir/cnnrun/plugins ;; *) where=beside=the-library ;; esac
        run env -i "$where" "engine/build/$program" $net "$three"
        head -n 1 "$work/log" | grep -q '^3 '; ok $? "$program recognises a picture with $net"
    done
    run env -i "$where" "engine/build/$program" "$lenet" "$three"
    grep -q 'is in no format that is known here' "$work/log"; ok $? "$program refuses a script"
done
ldd engine/build/alone >"$work/log"
grep -q 'libcnnrun-engine.so.1' "$work/log" && ! grep -q lua "$work/log"; ok $? "it needs no Lua"
strip -o stripped "$libdir/libcnnrun-engine.so.1" && strip -o stripped-static engine/build/alone-static
size stripped stripped-static | sed 's/^/# /'

cat >"$work/closed.c" <<'END'
#include <cnnrun/cnnrun.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static int threads(void) {
    DIR *d = opendir("/proc/self/task");
    int n = -2;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}
/* Loads the library, opens two runtimes, recognises a picture, closes and unloads it; three times. */
int main(int argc, char **argv) {
    for (int round = 0; round < 3 && argc == 4; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
        cnr_status (*open)(cnr_runtime **, const cnr_open_options *, cnr_error *);
        cnr_status (*load)(cnr_runtime *, const char *, const cnr_load_options *, cnr_model **, cnr_error *);
        cnr_status (*run)(cnr_model *, const char *, const cnr_tensor **, cnr_error *);
        void (*close)(cnr_runtime *);
        *(void **)&open = dlsym(library, "cnr_open");
        *(void **)&load = dlsym(library, "cnr_load");
        *(void **)&run = dlsym(library, "cnr_run_picture");
        *(void **)&close = dlsym(library, "cnr_close");
        cnr_runtime *a, *b;
        cnr_model *net;
        const cnr_tensor *scores;
        cnr_error err = CNR_ERROR_INIT;
        if (open(&a, NULL, &err) || open(&b, NULL, &err) || load(b, argv[2], NULL, &net, &err) ||
            run(net, argv[3], &scores, &err))
            return fprintf(stderr, "%s: %s\n", err.where, err.text), 1;
        close(a);
        close(b);
        if (dlclose(library)) return fprintf(stderr, "%s\n", dlerror()), 1;
        if (threads() != 1) return fprintf(stderr, "%d threads are left\n", threads()), 1;
    }
    return argc != 4;
}
END
# shellcheck disable=SC2086
run cc -std=gnu11 -Wall -Wextra $flags -o closed closed.c -ldl; ok $? "a program that loads the library itself builds"
for library in libcnnrun-engine.so.1 libcnnrun.so.1; do
    run env "CNNRUN_PLUGIN_PATH=$plugins" ./closed "$libdir/$library" lenet.cnr "$three"
    ok $? "$library can be closed and loaded again, and leaves no thread"
done
echo "1..$count"
exit $failed
