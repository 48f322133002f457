#!/usr/bin/perl
# Rows that are measured: times, joules and clocks of each kernel on each device, and what lies between two
# devices, on a simulated board, whose meters and clocks are its model's; what planning makes of the record.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $net = 'scripts/nets/lenet5.lua';
my $dir = tempdir(CLEANUP => 1);
my $board = '--board odroid_xu3';
my $devices = '--devices sim:a15,sim:gpu4';
$ENV{CNNRUN_OPENCL} = 'none';
$ENV{CNNRUN_CACHE} = '';

# JSON lines of a command.
sub json { map { decode_json($_) } grep { /^\{/ } split /\n/, `$build/cnnrun @_ --json` }
# Rows of candidates; the last line first.
sub rows {
    my @lines = json('show', $net, '--candidates', $board, @_);
    return (pop @lines, @lines);
}
# The record of times.
sub record { open my $f, '<', "$_[0]/tuning.jsonl" or return ''; local $/; return <$f> }

my ($tuned) = json('tune', $net, $board, $devices, '--cache', "$dir/cache");
cmp_ok $tuned->{rows}, '>=', 14, 'seven layers on two devices are on record';
cmp_ok $tuned->{joules}, '>=', 14, 'with joules: the board has meters';

my ($end, @rows) = rows($devices, '--cache', "$dir/cache");
my @measured = grep { $_->{ns_from} eq 'recorded' } @rows;
is_deeply [sort keys %{{map { $_->{device} => 1 } @measured}}], ['sim:a15', 'sim:gpu4'], 'rows of both are measured';
is scalar(grep { !($_->{joules} > 0 && $_->{joules_from} eq 'recorded') } @measured), 0, 'each with joules';
is_deeply [sort keys %{{map { ($_->{mhz} // 'none') => 1 } grep { $_->{device} eq 'sim:a15' } @measured}}], [1800],
    'and with the clock of its device, where a knob says which that is';
my ($big) = grep { $_->{node} eq 'conv2' && $_->{device} eq 'sim:a15' && $_->{chosen} } @rows;
is $big->{by}, 'record', 'the record decides';
is scalar(grep { $_->{source} ne 'recorded' } @{$end->{links}}), 0, 'copies are measured, too';
is scalar(grep { $_->{ns_from} eq 'recorded' } (rows($devices, '--cache', "$dir/cache", '--deterministic'))[1 .. 20]), 0,
    'a deterministic plan sees none of it';

open my $f, '>', "$dir/least.lua" or die;
print $f <<'LUA';
return { place = function(rows)
  local best = {}
  for _, r in ipairs(rows) do
    if r.joules and (not best[r.node] or r.joules < best[r.node].joules) then best[r.node] = r end
  end
  return best
end }
LUA
close $f;
($end, @rows) = rows($devices, '--cache', "$dir/cache", '--policy', "$dir/least.lua");
is $end->{failure}, undef, 'a policy for the least joules';
my %on = map { ($_->{node} => $_->{device}) } grep { $_->{chosen} } @rows;
is $on{conv2}, 'sim:gpu4', 'takes the convolution to the device that needs less';

my @first = json('show', $net, $board, $devices, '--cache', "$dir/cache", '--policy', "$dir/least.lua");
is +(grep { ($_->{node} // '') eq 'conv2' } @first)[0]{device}, 'sim:gpu4', 'and so does show without --candidates';

# records of before had times alone
my $old = record("$dir/cache") =~ s/,"(?:rest|joules|mhz)":[0-9.e+-]+//gr =~ s/\{"sha256".*\n//r;
mkdir "$dir/old";
require Digest::SHA;
open $f, '>', "$dir/old/tuning.jsonl" or die;
print $f $old, '{"sha256":"', Digest::SHA::sha256_hex($old), "\"}\n";
close $f;
chmod 0600, "$dir/old/tuning.jsonl";
chmod 0700, "$dir/old";
($end, @rows) = rows($devices, '--cache', "$dir/old");
@measured = grep { $_->{ns_from} eq 'recorded' } @rows;
ok @measured >= 14 && !grep({ defined $_->{joules} } @measured), 'a record of times alone is read';

my ($times) = json('tune', $net, $board, $devices, '--no-energy', '--cache', "$dir/times");
is "$times->{joules} " . ($times->{rows} > 0), '0 1', '--no-energy leaves meters alone';
unlike record("$dir/times"), qr/joules/, 'so none are on record';

# a stored plan knows the record that its policy saw
sub origin { my $said = `$build/cnnrun run -v $net scripts/nets/digits/seven.png $board $devices --cache $dir/cache --policy $dir/least.lua 2>&1 >$dir/out`;
             return $said =~ /\.plan: (.*)/ ? $1 : $said }
like origin(), qr/^miss/, 'a plan by that policy';
is origin(), 'hit', 'is stored';
json('tune', $net, $board, $devices, '--batch', 2, '--cache', "$dir/cache");
like origin(), qr/^stale: tuning changed/, 'until the record says more';

# a loaded machine: two others want the only processor that tune may use
SKIP: {
    skip 'no /proc/self/schedstat or no taskset', 2 unless -r '/proc/self/schedstat' && !system 'taskset -c 0 true 2>/dev/null';
    my @busy = map { my $pid = fork // die; if (!$pid) { exec 'timeout', 60, 'taskset', '-c', 0, 'perl', '-e', '1 while 1' or exit 1 } $pid } 1, 2;
    my $out = `taskset -c 0 $build/cnnrun tune $net --device cpu --threads 1 --cache $dir/loaded --json 2>$dir/err`;
    kill TERM => @busy;
    waitpid $_, 0 for @busy;
    like do { local (@ARGV, $/) = "$dir/err"; <> }, qr/tune: other processes kept these threads waiting for \d+% of their time/, 'a loaded machine is told';
    is eval { decode_json($out)->{repeats} }, 3, '... and all is timed three times' or diag $out;
}
done_testing;
