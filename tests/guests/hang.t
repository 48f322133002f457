#!/usr/bin/perl
# A device whose N-th call hangs or crashes: the run goes on on --fallback, or fails and names who it was. Draws places by
# seed; CNNRUN_HANG_PLACES says how many, 0: all of them.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use JSON::PP;
use Test::More;
use Time::HiRes 'time';

my $root = abs_path($0 =~ s{tests/guests/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $plugin = "$build/tests/guests/hang/hang.so";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => "no $plugin" unless -e $plugin;
my $dir = tempdir(CLEANUP => 1);
my $other = $ENV{CNNRUN_HANG_NET}; # another net of the zoo, with more calls
my $name = $other ? "$other.lua --weights random:1" : 'lenet5.lua';
my $net = "$root/scripts/nets/$name $root/scripts/nets/digits/three.png";
my $on = "run --json $net --plugin-dir $plugin --device hang";

# Runs the program; returns status and output.
sub cnnrun { my $out = `timeout -k 1 20 $build/cnnrun @_ 2>$dir/err`; return ($?, $out) }
# What it wrote to stderr.
sub said { open my $in, '<', "$dir/err" or return ''; local $/; return <$in> // '' }
# The classes of a result in JSON, as text; "none": it is none.
sub classes {
    my ($json) = eval { decode_json($_[0]) } or return 'none';
    return join ' ', map { sprintf '%d:%.3f', $_->{index}, $_->{score} } @{$json->{top}};
}

my (undef, $plain) = cnnrun("run --json $net --device cpu");
$ENV{CNNRUN_HANG_COUNT} = "$dir/count";
my (undef, $out) = cnnrun("$on --fallback cpu");
is classes($out), classes($plain), 'the device works' or diag said();
my $n = do { open my $in, '<', "$dir/count" or die; <$in> + 0 };
cmp_ok $n, '>', 40, "it was called $n times";

# ---- counters of a device ----
my $there = "$root/scripts/nets/lenet5.lua --plugin-dir $plugin --device hang";
(undef, $out) = cnnrun("bench --profile --json --runs 2 $there");
like $out, qr/"node":"conv1".*"counters":"cycles=1234 clock=low"/, 'counters of the device are told with each step' or diag $out, said();
(undef, $out) = cnnrun("bench --profile --runs 2 $there");
like $out, qr/^.*conv1 .* cycles=1234 clock=low$/m, '... and people see them';
cnnrun("bench --profile --runs 1 $there --trace $dir/trace.json");
like do { local (@ARGV, $/) = "$dir/trace.json"; <> }, qr/"counters":"cycles=1234 clock=low"/, '... in traces, too';

my $places = $ENV{CNNRUN_HANG_PLACES} // 8;
my $seed = $ENV{CNNRUN_SEED} // time;
srand $seed;
note "seed $seed";
my @at = $places ? map { 1 + int rand $n } 1 .. $places : 1 .. $n;
my (@wrong, @unnamed, @crashes);
for my $at (@at) {
    $ENV{CNNRUN_HANG_AT} = $at;
    (undef, my $got) = cnnrun("$on --fallback cpu --hang-ms 60");
    push @wrong, "$at: " . said() unless classes($got) eq classes($plain) && said() =~ /hangs: .* has not returned/;
    (my $code, $got) = cnnrun("$on --hang-ms 60"); # after the answer, when the session closes, it is a warning
    push @unnamed, "$at: $code " . said()
        unless ($code >> 8 == 10 || (!$code && classes($got) eq classes($plain))) && said() =~ /hang: hangs: .+ has not returned for/m;
    $ENV{CNNRUN_HANG_AT} = -$at;
    ($code) = cnnrun($on);
    push @crashes, "$at: $code " . said() unless $code && said() =~ /plugin.* hang/;
}
ok !@wrong, 'where it hangs, the fallback answers' or diag join "\n", @wrong;
ok !@unnamed, 'without a fallback the run fails, and says which call of which device hangs' or diag join "\n", @unnamed;
ok !@crashes, 'a crash names the plugin' or diag join "\n", @crashes;

# By default the program ends by itself after ten seconds, and runs cost nothing more.
$ENV{CNNRUN_HANG_AT} = 1 + int rand $n - 3;
my ($ends) = cnnrun($on);
is $ends >> 8, 10, "without any option the program ends (call $ENV{CNNRUN_HANG_AT})" or diag said();
like said(), qr/^cnnrun: hang: hangs: .+ has not returned for 10 s/m, '... and says why';

$ENV{CNNRUN_HANG_AT} = 30;
my $before = time;
my ($code) = cnnrun("$on --hang-ms 1500");
my $took = time - $before;
ok $code && $took > 1.4 && $took < 15, 'the limit is the option\'s' or diag "$took s";
done_testing;
