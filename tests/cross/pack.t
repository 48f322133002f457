#!/usr/bin/perl
# tools/pack.pl: a static program of one net gives the answers of cnnrun. It is built for AArch64 and run by
# qemu.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use FindBin;
use JSON::PP;
use Test::More;

my $root = abs_path("$FindBin::Bin/../..");
my $build = abs_path($ENV{CNNRUN_BUILD} // "$root/build");
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
$ENV{CNNRUN_OPENCL} = 'none';

# What a command prints.
sub said { my $out = `$_[0] 2>$dir/err`; return $out }
# What it wrote to stderr.
sub err { open my $in, '<', "$dir/err"; local $/; return scalar(<$in>) // '' }
my $pack = "$root/tools/pack.pl";
like(said("$pack --help"), qr/^usage: tools\/pack\.pl NET -o DIR/, '--help');
for (['', qr/expected NET -o DIR/], ["none.cnr -o $dir/x", qr/none\.cnr/],
    ["$root/scripts/nets/lenet5.lua -o $dir/x --toolchain none.cmake", qr/none\.cmake: no such file/],
    ["$root/scripts/nets/lenet5.lua -o $dir/x --name a/b", qr/--name a\/b: expected letters/]) {
    said("$pack $_->[0]");
    ok($? != 0 && err() =~ $_->[1], 'refused: ' . $_->[0] =~ s/\Q$dir\E|\Q$root\E//gr) or diag err();
}

SKIP: {
    skip 'left out: the compiler takes minutes; CNNRUN_PACK=DIR builds there and tries it', 1 unless $ENV{CNNRUN_PACK};
    skip 'no aarch64-linux-gnu-gcc', 1 if system('aarch64-linux-gnu-gcc --version >/dev/null 2>&1');
    skip 'no qemu-aarch64-static', 1 if system('qemu-aarch64-static --version >/dev/null 2>&1');
    my $to = $ENV{CNNRUN_PACK};
    my $told = said("$pack $root/scripts/nets/lenet5.lua -o $to --toolchain $root/tests/cross/aarch64.cmake");
    is($?, 0, 'LeNet-5 is packed') or diag err();
    my ($bytes) = $told =~ / (\d+) bytes: model/;
    cmp_ok($bytes // 1e9, '<', 3.2e6, 'in ' . ($bytes // 'no') . ' bytes');
    is(-s "$to/lenet5", $bytes, 'as it says');
    like(said("aarch64-linux-gnu-readelf -l $to/lenet5"), qr/AArch64|LOAD/, 'a program');
    unlike(said("aarch64-linux-gnu-readelf -l $to/lenet5"), qr/INTERP|DYNAMIC/, 'that is static');
    unlike(said("strings $to/lenet5"), qr/^(?:lua_|Lua 5)|conv_transpose_f32|non_max_suppression/m, 'without Lua, and without what it does not use');
    my $bill = decode_json(do { local (@ARGV, $/) = "$to/lenet5.spdx.json"; scalar <> });
    is($bill->{spdxVersion}, 'SPDX-2.3', 'a bill of materials');
    is(join(' ', map { $_->{name} } @{ $bill->{packages} }), 'lenet5 cnnrun lenet5.lua glibc', 'of four packages');

    # 28x28 floats, the same for both: the program's answers to a .npy, this one's to the raw numbers
    my @x = map { ($_ * 37 % 101) / 101 } 0 .. 783;
    open my $raw, '>:raw', "$dir/x.raw" or die;
    print $raw pack 'f<*', @x;
    close $raw;
    open my $script, '>', "$dir/answers.lua" or die;
    print $script "local c = require 'cnnrun'\nreturn function(w)\n  local x = c.tensor { shape = { 1, 1, 28, 28 }, data = {",
        join(',', map { sprintf '%.9g', $_ } unpack 'f<*', pack 'f<*', @x), "} }\n",
        "  local y = c.load(w[1]):run(x)\n  for i = 1, #y do print(('%.9g'):format(y[i])) end\n  return 0\nend\n";
    close $script;
    my @want = split /\n/, said("$build/cnnrun $dir/answers.lua $root/scripts/nets/lenet5.lua --trust");
    is(scalar @want, 10, 'answers of cnnrun') or diag err();
    for my $cpu (qw(cortex-a53 cortex-a72 cortex-a76 neoverse-n1 max)) {
        my @got = unpack 'f<*', said("qemu-aarch64-static -cpu $cpu $to/lenet5 --threads 1 --raw $dir/x.raw");
        my $worst = @got == 10 && @want == 10 ? 0 : 9;
        for (0 .. $#want) { my $d = abs(($got[$_] // 9) - $want[$_]); $worst = $d if $d > $worst }
        cmp_ok($worst, '<', 1e-5, "$cpu: the same answers within $worst") or diag err();
    }
    my $run = "qemu-aarch64-static $to/lenet5";
    like(said("$run --top 1 $dir/x.raw"), qr/^\d \d [\d.e-]+\n$/, 'the best class, its label and score');
    like(said("$run --about"), qr/^input data f32 1x1x28x28\noutput prob f32 1x10\nmodel \d+ bytes\n$/, '--about');
    for (["$dir/none.raw", qr/none\.raw: No such file/], ["$dir/err", qr/has 0 bytes; expected 3136: f32|has more|has \d+ bytes/],
        ['--tops', qr/unknown option/], ['--top 0 x', qr/--top: expected a whole number/]) {
        said("$run $_->[0]");
        ok($? != 0 && err() =~ $_->[1], 'refused: ' . $_->[0] =~ s/\Q$dir\E//r) or diag err();
    }

    # nets in int8 and with sparse weights, for ARMv7
    skip 'no arm-linux-gnueabihf-gcc', 1 if system('arm-linux-gnueabihf-gcc --version >/dev/null 2>&1');
    said("$build/cnnrun quantize $root/scripts/nets/lenet5.lua --data $root/scripts/nets/digits --all -q -o $dir/int8.cnr");
    said("$build/cnnrun convert $root/scripts/nets/lenet5.lua --encode sparse-csr:keep=0.2 -q -o $dir/sparse.cnr");
    for my $one (qw(int8 sparse)) {
        like(said("$pack $dir/$one.cnr -o $to/armv7 --toolchain $root/tests/cross/armv7.cmake"), qr/_(?:int8|csr)/, "$one: packed") or diag err();
        my @here = split /\n/, said("$build/cnnrun $dir/answers.lua $dir/$one.cnr --trust");
        my @there = unpack 'f<*', said("qemu-arm-static $to/armv7/$one --threads 1 --raw $dir/x.raw");
        my $far = @here == 10 && @there == 10 ? 0 : 9;
        for (0 .. $#here) { my $d = abs(($there[$_] // 9) - $here[$_]); $far = $d if $d > $far }
        cmp_ok($far, '<', 1e-5, "$one: the same answers within $far") or diag err();
    }
}
done_testing;
