#!/usr/bin/perl
# Android's C library: what core/cmake/bionic.h adds, functions that Android 9 lacks, and with
# CNNRUN_BIONIC=DIR (a checkout of AOSP's platform/bionic) and clang, every C file against its headers (3 minutes).
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;
use Text::ParseWords qw(shellwords);

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
my $root = abs_path(dirname($0) . '/../..');
my $dir = tempdir(CLEANUP => 1);

my $said = `cc -O1 -Wall -Wextra -Werror -I$root/core/cmake -o $dir/bionic $root/tests/cross/bionic.c 2>&1`;
is $said, '', 'bionic.h compiles';
system "echo 1 >$dir/from; echo 2 >$dir/to";
like `$dir/bionic $dir/from $dir/to`, qr/\Aok 1[^\n]*\nok 2[^\n]*\nok 3[^\n]*\n1\.\.3\Z/, 'and does what glibc does';

# Functions of glibc 2.36 that bionic lacks at API level 28 and a program like ours could call. Some came later:
# 29 getloadavg timespec_get, 30 memfd_create renameat2 sem_clockwait statx, 33 backtrace, 34 close_range copy_file_range,
# 36 pthread_setaffinity_np qsort_r.
my @absent = qw(
    a64l argz_add argp_parse backtrace backtrace_symbols backtrace_symbols_fd canonicalize_file_name close_range
    confstr copy_file_range cuserid dladdr1 dlinfo dlmopen eaccess ecvt euidaccess explicit_bzero fcloseall fcvt fopencookie
    gcvt get_current_dir_name getcontext getdate getdents64 getloadavg glob64
    gnu_get_libc_version getrpcbyname getutxent l64a mallinfo2 malloc_trim malloc_stats makecontext
    memfd_create mq_open obstack_free parse_printf_format
    posix_spawn_file_actions_addclosefrom_np pthread_attr_setaffinity_np pthread_cancel pthread_setcancelstate
    pthread_setcanceltype pthread_testcancel pthread_getaffinity_np pthread_setaffinity_np pthread_mutexattr_setrobust
    pthread_mutex_consistent pthread_timedjoin_np pthread_tryjoin_np pthread_yield qsort_r random_r rawmemchr
    renameat2 rpmatch secure_getenv setcontext shm_open shm_unlink sem_clockwait sigandset sigorset sigisemptyset
    srandom_r statx strfry strverscmp swapcontext timespec_get twalk_r versionsort wordexp);
my %added = map { $_ => 1 } qw(renameat2 secure_getenv strverscmp); # by bionic.h
# In #if __GLIBC__, or in files that an app has no use for.
my %guarded = map { $_ => 1 } qw(dladdr1 gnu_get_libc_version malloc_trim posix_spawn_file_actions_addclosefrom_np pthread_attr_setaffinity_np);
my %absent = map { $_ => 1 } grep { !$added{$_} && !$guarded{$_} } @absent;
for my $file (grep { -e } "$build/libcnnrun-engine.so.1", "$build/libcnnrun.so.1", "$build/libcnnrun-jni.so",
              map { "$build/plugins/$_.so" } qw(ops-std cpu-neon opencl-mali opencl-adreno opencl-desktop int8 sparse-csr import-caffe
              import-cnndroid import-darknet import-onnx source-images object-tld meter-battery meter-hwmon knob-cpufreq knob-kgsl)) {
    my @wants = grep { $absent{$_} } map { /\bU ([^\s\@]+)/ ? $1 : () } `nm -D --undefined-only $file`;
    is "@wants", '', $file =~ s{.*/}{}r . ' calls nothing that Android 9 lacks';
}

SKIP: {
    my $bionic = $ENV{CNNRUN_BIONIC};
    skip 'left out: CNNRUN_BIONIC names a checkout of platform/bionic', 1 unless $bionic;
    my ($clang) = grep { system("command -v $_ >/dev/null 2>&1") == 0 } qw(clang clang-14);
    skip 'no clang', 1 unless $clang;
    mkdir "$dir/else"; # headers of other libraries, without glibc's
    for my $base (qw(/usr/include /usr/include/x86_64-linux-gnu)) {
        symlink $_, "$dir/else/" . s{.*/}{}r for grep { -e && !-e "$dir/else/" . s{.*/}{}r } map { glob "$base/$_" }
            qw(CL png* jpeglib.h jmorecfg.h jerror.h jconfig.h gif_lib.h zstd.h zlib.h zconf.h lua5.4* curl jansson*.h libav* libsw*
               libheif microhttpd.h msgpack* protobuf-c tiff*.h webp zip*.h);
    }
    my @kernel = map { ('-isystem', "$bionic/libc/kernel/$_") } qw(uapi/asm-arm64 uapi android/uapi);
    my (@failed, $n);
    for my $c (@{decode_json(do { local (@ARGV, $/) = "$build/compile_commands.json"; <> })}) {
        next unless $c->{file} =~ m{^\Q$root\E/(?:core|plugins)/.*\.c$};
        next if $c->{file} =~ m{/(?:draw-cairo|draw-graphviz|group-mpi)/};
        my @words = shellwords($c->{command});
        next if grep { /^-m/ } @words; # for another processor
        my @java = map { ('-isystem', $words[$_ + 1]) } grep { $words[$_] eq '-isystem' && $words[$_ + 1] =~ /jvm|lua/ } 0 .. $#words;
        my @flags = grep { /^-(?:[ID]|std)/ } @words;
        my @run = ($clang, '--target=aarch64-linux-android28', '-fsyntax-only', '-nostdlibinc', '-include', "$root/core/cmake/bionic.h",
                   '-isystem', "$bionic/libc/include", @kernel, @java, '-idirafter', "$dir/else", '-Wall',
                   '-Wno-nullability-completeness', '-Werror=implicit-function-declaration', @flags, $c->{file});
        $n++;
        push @failed, $c->{file} if system 'sh', '-c', 'cd "$0" && exec "$@" 2>>' . "$dir/log", $c->{directory}, @run;
    }
    ok $n > 100 && !@failed, "$n files compile against bionic's headers" or diag join "\n", @failed, `grep error: $dir/log | head -20`;
}
done_testing;
