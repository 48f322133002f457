#!/usr/bin/perl
# The study that others will script against, and the experiments that core/docs/scripting.md shows, on real
# digits: they run as they stand there, learn something, and end with a table and a picture.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(time);

my $root = $0 =~ s{tests/core/lua/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
my $mnist = ($ENV{CNNRUN_SHARED} // "$root/../shared") . '/data/mnist';
plan skip_all => "no digits: $mnist" unless -e "$mnist/train-images-idx3-ubyte.gz" || -e "$mnist/train-images-idx3-ubyte";
my $dir = tempdir(CLEANUP => 1);
my $net = "$root/scripts/nets/lenet5.lua";

# The text of a file; '' if it can't be read.
sub text { open my $in, '<:raw', $_[0] or return ''; local $/; return scalar <$in> }
# Writes a file; returns its path.
sub put { my ($path, $text) = @_; open my $out, '>', $path or die; print $out $text; close $out; return $path }
# Runs a script; its output, or undef with what it said.
sub run {
    my ($what, @words) = @_;
    my $begun = time;
    my $out = qx{"$build/cnnrun" -q @words 2>"$dir/err"};
    my $good = $? == 0;
    diag(sprintf '%s: %.1f s', $what, time - $begun);
    diag(text("$dir/err")) unless $good;
    return $good ? $out : undef;
}
# The rows of a CSV file, without its head, as lists of cells.
sub table { my ($path) = @_; my (undef, @rows) = split /\n/, text($path); return map { [split /,/] } @rows }
# A test: the file is a PNG.
sub is_picture { my ($path, $what) = @_; like(text($path), qr/^\x89PNG.{1000}/s, $what) }

my $out = run('the study', "$root/tests/core/lua/study.lua", $net, "mnist:$mnist", "$dir/a.csv", "$dir/a.png");
ok defined $out, 'the study runs';
my @rows = table("$dir/a.csv");
is join(' ', map { $_->[0] } @rows), '0.5 0.2 0.1', 'three densities';
is scalar(grep { $_->[1] > 0.9 && $_->[1] <= 1 } @rows), 3, 'of nets that were trained: more than 90% are right';
is scalar(() = ($out // '') =~ /^\S+\t\S+\t\S+\tcpu\S*\t[0-9.e-]+\t[0-9.e+]+$/mg), 7, 'a row a step';
is_picture("$dir/a.png", 'and a picture');

my @code = text("$root/core/docs/scripting.md") =~ /^```lua\n(.*?)^```/msg;
my ($schedule) = grep { /cnnrun schedule\.lua/ } @code;
my ($prune) = grep { /cnnrun prune\.lua/ } @code;
ok(($schedule =~ tr/\n//) <= 15, 'training with a schedule takes 15 lines');
ok(($prune =~ tr/\n//) <= 25, 'pruning at ten densities takes 25');
$out = run('a schedule', put("$dir/schedule.lua", $schedule), $net, "mnist:$mnist", "$dir/b.cnr");
my ($right) = ($out // '') =~ /right on ([0-9.]+)%/;
ok $right && $right > 85 && -s "$dir/b.cnr", 'training by a schedule' . ($right ? ": $right%" : '');
ok defined run('pruning', put("$dir/prune.lua", $prune), $net, "mnist:$mnist", "$dir/c.csv", "$dir/c.png"),
    'pruning at ten densities';
@rows = table("$dir/c.csv");
is scalar(@rows), 10, 'ten of them';
ok $rows[-1][2] > $rows[-1][1], 'at the lowest, training on helps';
is_picture("$dir/c.png", 'with a plot');
done_testing;
