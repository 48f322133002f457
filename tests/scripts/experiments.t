#!/usr/bin/perl
# The shipped experiments on LeNet, with few pictures: a table, a CSV with the same rows, a picture.
use strict;
use warnings;
use Cwd 'abs_path';
use Test::More;

my $root = abs_path($0 =~ s{tests/scripts/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $data = ($ENV{CNNRUN_SHARED} || "$root/../shared") . '/data/mnist';
my $mnist = -e "$data/t10k-images-idx3-ubyte.gz";
my $net = "$root/scripts/nets/lenet5.lua";
my $folder = "$root/scripts/experiments";
my $work = `mktemp -d`;
chomp $work;
END { system 'rm', '-rf', $work if $work }
chdir $work or die;

# The text of a file; '' if it can't be read.
sub text { open my $in, '<', $_[0] or return ''; local $/; <$in> }
# What a command prints.
sub run { `$build/cnnrun @_ 2>log` }

my $draws = run('plugins') =~ /^draw-cairo/m;

# The rows of out/NAME.csv, each { column => value }, once the experiment has run.
sub experiment {
    my ($name, @words) = @_;
  SKIP: {
        skip "no digits: $data", 4 if grep(/^mnist:/, @words) && !$mnist;
        my $out = run("$folder/$name.lua", $net, @words, '-o', 'out', $draws ? '--svg' : ());
        is($?, $draws ? 0 : 256, "$name: it ends well") or diag($out, text('log'));
        my @lines = split /\n/, text("out/$name.csv");
        my @columns = split /,/, shift @lines // '';
        my @rows = map { my @fields = split /,/, $_, -1; +{ map { $columns[$_] => $fields[$_] } 0 .. $#columns } }
            map { s/"([^"]*)"/$1 =~ tr{,}{;}r/ger } @lines;
        is(() = $out =~ /\n/g, @lines + 1, "$name: a row of the CSV for each line of the table");
      SKIP: {
            skip 'the plugin draw-cairo is not there', 2 if !$draws;
            is(substr(text("out/$name.png"), 0, 4), "\x89PNG", "$name: a picture");
            like(text("out/$name.svg"), qr/<svg.*<\/svg>/s, "$name: and an SVG");
        }
        return @rows;
    }
    return;
}

my @rows = experiment('layers', '--runs', 3);
is(scalar(grep { $_->{ms} > 0 && $_->{kernel} && $_->{device} } @rows), 7, 'layers: seven steps with their times');
is(scalar(grep { $_->{kernel_gflops} > 0 } @rows), scalar(grep { $_->{gflops} > 0 } @rows), 'layers: what kernels do');
cmp_ok(abs(eval { my $sum = 0; $sum += $_->{share} for @rows; $sum } - 1), '<', 1e-6, 'layers: shares of the whole');
@rows = experiment('devices', '--runs', 2, '--devices', 'cpu');
is($rows[-1]{layer}, 'all', 'devices: all layers, and the sum');
cmp_ok($rows[-1]{cpu}, '>', 0, 'devices: times');
if (my @rates = experiment('learning_rate', "mnist:$data", '--rates', '0.000001,0.01,1000', '--limit', 640, '--test', 200)) {
    cmp_ok($rates[1]{top1}, '>', $rates[0]{top1} + .1, 'learning_rate: a good one learns');
    is($rates[2]{top1}, 'diverged', 'learning_rate: one that is too large runs away');
}
if (my @densities = experiment('density', "mnist:$data", '--densities', '1,0.02', '--limit', 320, '--test', 200)) {
    my %top1 = map { ("$_->{layer} $_->{density}" => $_->{top1}) } @densities;
    is(scalar(keys %top1), 12, 'density: four layers, all, and all trained again, twice');
    cmp_ok($top1{'conv1 1'}, '>', .95, 'density: what is whole is right');
    cmp_ok($top1{'all 0.02'}, '<', .5, 'density: what is gone is missed');
}
if (my @bits = experiment('bits', "mnist:$data", '--bits', '2,8', '--test', 200, '--calibrate', 20)) {
    my %top1 = map { ("$_->{weights} $_->{bits}" => $_->{top1}) } @bits;
    cmp_ok($top1{'one scale a layer 8'}, '>', .95, 'bits: eight will do');
    cmp_ok($top1{'one scale a channel 2'}, '>', $top1{'one scale a layer 2'}, 'bits: scales of channels are better');
    ok(exists $top1{'activations; too 8'}, 'bits: the quantised net');
}

# ---- mistakes ----

run("$folder/layers.lua", $net);
is($? >> 8, 1, 'without a folder');
like(text('log'), qr/-o FOLDER is missing: the folder for results$/, 'it says what is wanted');
run("$folder/layers.lua", '-o', 'out');
like(text('log'), qr/usage: cnnrun scripts\/experiments\/layers\.lua NET -o FOLDER/, 'without a net');
run("$folder/learning_rate.lua", $net, 'mnist:nowhere', '-o', 'out');
like(text('log'), qr/nowhere/, 'data that are not there are no divergence');
run("--output through $folder/layers.lua", $net, '--runs', 1);
ok(-s 'through/layers.csv', '--output of the program will do');

# ---- the short one ----

my $lines = grep { !/^\s*(?:--.*)?$/ } split /\n/, text("$folder/faster.lua");
cmp_ok($lines, '<=', 10, "faster.lua: $lines lines");
like(run("$folder/faster.lua", $net, 'cpu', 'cpu'), qr/^\d*\.?\d+\n$/, 'faster.lua: a time');
done_testing();
