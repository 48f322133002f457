#!/usr/bin/perl
# cnnrun doctor: what can be used, what is missing and the command that installs it; lines and JSON.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib "$FindBin::Bin/../..";
use OtherUser;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
chmod 0755, $tmp;
$ENV{CNNRUN_CACHE} ||= "$tmp/cache";

# JSON rows of a command.
sub rows { my ($command) = @_; return [map { decode_json $_ } `$command 2>$tmp/err`] }
# The row on this matter.
sub row { my ($rows, $what) = @_; return (grep { $_->{what} eq $what } @$rows)[0] // {} }

my $all = rows("$build/cnnrun doctor --json");
is($?, 0, 'the processor runs nets, so that all is well') or diag `cat $tmp/err`;
is(row($all, 'cpu')->{state}, 'works', 'LeNet-5 ran on it');
like(row($all, 'plugins')->{detail}, qr/^\d+ with all their libraries$/, 'plugins');
like(`$build/cnnrun doctor`, qr/^works +cpu +\S/m, 'lines for people');
like(`$build/cnnrun doctor --help`, qr/^usage: cnnrun doctor/, '--help');

{
    local $ENV{CNNRUN_OPENCL} = 'none';
    my $opencl = row(rows("$build/cnnrun doctor --json"), 'opencl');
    is($opencl->{state}, 'missing', 'no OpenCL');
    is($opencl->{command}, 'sudo apt install ocl-icd-libopencl1 pocl-opencl-icd', 'and what brings it');
}

# An installation of its own: the program, some plugins, one of which wants a library that is gone.
make_path("$tmp/x/build/plugins");
OtherUser::copy_for_all("$build/cnnrun", "$tmp/x/build/cnnrun");
OtherUser::copy_for_all("$root/scripts/$_", "$tmp/x/scripts/$_") for qw(apps lib nets);
my $program = "$tmp/x/build/cnnrun";
my $bare = rows("$program doctor --json");
is($? >> 8, 1, 'without plugins nothing runs on the processor');
is(row($bare, 'cpu')->{state}, 'broken', 'and that is said');

OtherUser::copy_for_all("$build/plugins/$_.so", "$tmp/x/build/plugins/$_.so")
    for qw(cpu-neon ops-std source-images meter-powercap);
my $some = rows("$program doctor --json");
is($?, 0, 'with two plugins it does');
like(row($some, 'drawing')->{command}, qr/libcairo2-dev/, 'what brings drawing');
like(row($some, 'videos')->{command}, qr/libavformat-dev/, 'what brings videos');
SKIP: {
    my $script = "cd $tmp && echo 'int gone(void); int gone(void) { return 1; }' >gone.c && "
        . "cc -shared -fPIC -Wl,-soname,libgone_2.so.7 -o libgone.so gone.c && mkdir -p x/build/plugins/source-images && "
        . "echo 'int gone(void); int want(void); int want(void) { return gone(); }' >want.c && "
        . 'cc -shared -fPIC -o x/build/plugins/source-images/codecs.so want.c -L. -lgone';
    skip 'no compiler', 2 if system("($script) 2>/dev/null");
    my $images = row(rows("$program doctor --json"), 'source-images');
    is($images->{state}, 'broken', 'a plugin whose library is gone');
    is($images->{command}, 'sudo apt install libgone-2-7', 'the package, as Debian names it');
}
open my $f, '>', "$tmp/x/build/plugins/odd.so" or die;
print $f "no library\n";
close $f;
chmod 0755, "$tmp/x/build/plugins/odd.so";
is(row(rows("$program doctor --json"), 'odd')->{state}, 'broken', 'a plugin that is refused');
unlink "$tmp/x/build/plugins/odd.so";

# A meter that only root may read.
my $zone = "$tmp/sys/class/powercap/intel-rapl:0";
make_path($zone);
for (['name', 'package-0'], ['energy_uj', 5000000], ['max_energy_range_uj', 262143328850]) {
    open my $out, '>', "$zone/$_->[0]" or die;
    print $out "$_->[1]\n";
}
like(row(rows("$program --sysfs-root $tmp doctor --json"), 'meters')->{detail}, qr/^\d+ that can be read/, 'a meter');
chmod 0400, "$zone/energy_uj" if $> == 0;
chmod 0000, "$zone/energy_uj" if $> != 0;
my $as = $> == 0 ? 'setpriv --reuid=65534 --regid=65534 --clear-groups env CNNRUN_CACHE=/nowhere ' : '';
my $shut = rows("$as$program --sysfs-root $tmp doctor --json");
my ($meter) = grep { $_->{what} eq 'meters' && $_->{state} eq 'missing' } @$shut;
like($meter->{detail} // '', qr/package-0: .*ermission/, 'a meter that may not be read');
is($meter->{command}, 'sudo systemctl enable --now cnnrun-helper', 'and what helps');

done_testing;
