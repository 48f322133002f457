#!/usr/bin/perl
# -DCNNRUN_PROGRAM=shared: the program links libcnnrun.so.1 and finds it beside itself and in ../lib.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use Test::More;

my $build = abs_path($ENV{CNNRUN_BUILD} || 'build');
my $root = abs_path($0 =~ s{tests/outside/[^/]*$}{}r || '.');
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/libcnnrun.so" unless -e "$build/libcnnrun.so";
my ($ccache) = grep { -x } map { "$_/ccache" } split /:/, $ENV{PATH};

# What a command prints; empty: it failed.
sub run {
    my $out = `@_ 2>&1`;
    return $? == 0 ? $out : (diag($out), '')[1];
}
my $configure = "cmake -S $root -B $dir/b -G Ninja -DCMAKE_BUILD_TYPE=None -DCNNRUN_TESTS=OFF" # compiles fastest
    . ($ccache ? " -DCMAKE_C_COMPILER_LAUNCHER=$ccache" : '');
like(`$configure -DCNNRUN_PROGRAM=dynamic 2>&1`, qr/CNNRUN_PROGRAM: expected static or shared, got dynamic/, 'another word is refused');
ok(run("$configure -DCNNRUN_PROGRAM=shared"), 'it is configured') or BAIL_OUT('cmake');
ok(run("nice ninja -C $dir/b cnnrun"), 'and built');
like(run("ldd $dir/b/cnnrun"), qr{libcnnrun\.so\.1 => $dir/b/}, 'it links the shared library');
system("strip -o $dir/one $dir/b/cnnrun && strip -o $dir/all $build/cnnrun") == 0 or die;
cmp_ok(-s "$dir/one", '<', (-s "$dir/all") / 2, 'and is small');
my @names = map { (split ' ')[-1] } grep { !/ A / } `nm -D --defined-only $dir/b/libcnnrun.so.1`;
is(join(' ', grep { !/^cnr_\w+\@\@CNNRUN_1$|^cnri_\w+\@\@CNNRUN_INSIDE_[\d.]+$/ } @names), '',
    'what the program needs besides the public API has a version of its own');

# Moved, as an installation would have it.
mkdir "$dir/moved";
mkdir "$dir/moved/$_" for qw(bin lib);
run("cp $dir/b/cnnrun $dir/moved/bin && cp $dir/b/libcnnrun.so.1 $dir/moved/lib && mv $dir/b $dir/gone");
my $seen = run("env CNNRUN_PLUGIN_PATH=$build/plugins $dir/moved/bin/cnnrun run $root/scripts/nets/lenet5.lua $root/scripts/nets/digits/three.png");
like($seen, qr/three\.png.*\b3\b/s, 'a moved one recognises a picture');
done_testing;
