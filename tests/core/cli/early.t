#!/usr/bin/perl
# Errors in output files are found before any work: every file that a command writes (options with FILE in
# --help) is tried before anything is read or computed. And `show` draws no random weights.
use strict;
use warnings;
use FindBin;
use File::Temp qw(tempdir);
use Test::More;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_OPENCL} = 'none';
$ENV{CNNRUN_CACHE} = '';
my $net = "$root/scripts/nets/lenet5.lua";
my $digits = "$dir/digits.txt";
open my $list, '>', $digits or die;
my $i = 0;
print $list "$root/scripts/nets/digits/$_.png ", $i++, "\n" for qw(zero one two three four five six seven eight nine);
close $list;

sub run { # exit code, all that is said
    my @words = @_;
    my $pid = open my $said, '-|';
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        chdir $dir;
        exec 'timeout', 60, "$build/cnnrun", @words;
    }
    local $/;
    my $text = <$said> // '';
    close $said;
    return ($? >> 8, $text);
}

my @train = ('train', $net, '--data', "images:$digits", '--epochs', 1, '--weights', 'random:1', '--no-energy', '--overwrite');
my @written = ([@train, '-o'], [@train, '-o', "$dir/t.cnr", '--curves'], [@train, '-o', "$dir/t.cnr", '--checkpoint'],
               ['quantize', $net, '--data', "images:$digits", '-o'], ['convert', $net, '-o'], ['export', $net, '-o'],
               ['place', $net, '--policy', 'best', '-o'], ['bench', $net, '--trace'],
               map({ ['energy', 'watch', '--seconds', '.1', $_] } qw(--csv --counter --plot)),
               ['govern', 'record', '--seconds', '.1', '-o'], ['prune', $net, '--data', "images:$digits", '-o']);
mkdir "$dir/folder";
for my $words (@written) {
    my $name = join ' ', grep { !m{/|^images:} } @$words;
    for my $path ("$dir/none/x", '', "$dir/folder") {
        my ($code, $said) = run(@$words, $path);
        ok($code && $code != 124 && $said !~ /epoch 1|^cpu/m, "$name '" . ($path =~ s/.*\///r) . "' is refused before work") or diag("$code $said");
    }
}
mkdir "$dir/c.png";
my ($code, $said) = run(@train, '-o', "$dir/t.cnr", '--curves', "$dir/c.csv");
ok($code && $said !~ /epoch 1/, 'so is a picture that could not be written beside a table') or diag($said);
SKIP: {
    skip 'draw-cairo was not built', 3 unless -e "$build/plugins/draw-cairo.so";
    ($code, $said) = run(@train, '-o', "$dir/t.cnr", '--curves', '-inf');
    is($code, 0, 'a name that begins with a dash is a name') or diag($said);
    ok(-s "$dir/-inf" && -s "$dir/-inf.png", 'of both files');
    unlike($said, qr/no flag/, 'and no option of the application that draws');
}

# ---- weights that nobody looks at ----
open my $big, '>', "$dir/big.lua" or die;
print $big 'local c = require "cnnrun"
return c.net { name = "big", input = { "data", shape = { 1, 50000 } }, c.dense { "fc", out = 50000 } }';
close $big;
for my $more ([], ['--dot'], ['--candidates']) {
    my $text = `ulimit -v 4000000; $build/cnnrun show $dir/big.lua --weights random:3 --device cpu @$more 2>&1`;
    ok($? == 0 && $text =~ /fc/, "show @$more of 10 GB of made-up weights makes none") or diag(substr $text, 0, 500);
}
is(scalar(`$build/cnnrun show $net --weights random --device cpu 2>&1`), scalar(`$build/cnnrun show $net --device cpu 2>&1`), 'and tells the same of a net');
SKIP: {
    skip 'needs 12 GB of addresses', 1 if `$build/cnnrun show $dir/big.lua --weights random --device cpu 2>&1` !~ /weights 1\d{10} bytes/;
    my $peak = `$build/cnnrun show $dir/big.lua --weights random --device cpu >/dev/null & pid=\$!; most=0
        while now=\$(sed -n 's/^VmHWM: *\\([0-9]*\\).*/\\1/p' /proc/\$pid/status 2>/dev/null) && [ -n "\$now" ]; do most=\$now; done; echo \$most`;
    cmp_ok($peak, '<', 500_000, "in $peak kB" =~ s/\n//r);
}
like(scalar(`$build/cnnrun show $net --weights random:x 2>&1`), qr/random:SEED/, 'a seed that is none is still an error');
done_testing();
