#!/usr/bin/perl
# 64 plugins that lie, crash, exit or never return: each is reported, and none ends the program.
use strict;
use warnings;
use Test::More;

my $root = $0 =~ s{tests/core/host/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
my $broken = "$build/tests/core/host/broken";
my $work = `mktemp -d`;
chomp $work;
END { system 'rm', '-rf', $work if $work }

# What each says when it is looked at; undef: it loads, and a net shows what is wrong.
my @check = (
    [1 .. 5, qr/ended the process .* while it was being opened/],
    [6, qr/did not come back within/],
    [7, qr/ended the process \(exit code 0\) while it was being opened/],
    [10, qr/the plugin has 32 for any operator already/],
    [11, qr/has more than 256 attributes/],
    [12, 13, qr/has attribute rows of no possible size/],
    [14, qr/has an attribute without a name/],
    [15, qr/has an attribute whose name has no end/],
    [16, qr/has an attribute whose choices have no end/],
    [17, 18, qr/has more than 128 ports/],
    [19, 20, qr/has port rows of no possible size/],
    [21, qr/has a variadic port that is not the last/],
    [22, qr/has a port with an impossible minimum/],
    [23, qr/has a port without a name/],
    [24, 28, qr/without a name, or without its size in front/],
    [25, qr/has a size of more than 65536 bytes/],
    [26, qr/has aliases without end/],
    [27, qr/has the hook input_range but not split_axes/],
    [29, qr/this host knows no kind -3/],
    [30, 40, 41, qr/its init failed: no reason given/],
    [31, qr/has only one of the hooks prepare and prepare_size/],
    [32, qr/has encodings without end/],
    [33, qr/has only some of the hooks event_record, event_wait and event_free/],
    [34, qr/has the hook event_elapsed but not event_record/],
    [35, qr/lacks the hooks of streams/],
    [36, qr/has more than 4096 methods/],
    [37, qr/has no method names/],
    [38, qr/lacks the hooks encode_size and encode/],
    [39, qr/lacks the hooks accepts, open, read and close/],
);
# What a net with its operator comes to; undef: hooks whose answers are put aside, so the net runs.
my @run = (
    [8, 9, qr/unknown operator 'hostile'/],
    [42, 45, qr/gave its output no valid type/],
    [43, qr/gave its output a dimension below zero/],
    [44, qr/its output is too large/],
    [46, 47, qr/its inputs do not fit/],
    [48, qr/the reference failed without saying why: device failed/],
    [49, qr/a block of \d+ bytes is wanted/],
    [50 .. 53, 55, undef],
    [54, qr/wants a blob that cannot be had/],
    [56, qr/hostile_kernel failed without saying why: not supported/],
    [57, qr/opened without any memory/],
    [58, qr/one allocation holds at most 1/],
    [59, qr/gave no memory for/],
    [60, 62, undef],
    [61, qr/no such device/],
    [63, undef],
    [64, qr/hostile failed without saying why: not a status of ours/],
);
my (%check, %run);
for (@check) { my @case = @$_; my $want = pop @case; $check{$_} = $want for @case }
for (@run) { my @case = @$_; my $want = pop @case; $run{$_} = $want for @case }

# stdout, stderr, exit code; a minute is a hang, 128 and more a signal
sub run {
    my $out = `timeout -k 1 60 $build/cnnrun @_ 2>$work/err`;
    my $code = $? >> 8 | ($? & 127 ? 128 : 0);
    open my $in, '<', "$work/err" or die;
    local $/;
    return ($out, <$in> // '', $code);
}
# True: a process ended by itself, with this status.
sub lives { $_[0] != 124 && $_[0] < 128 }

open my $net, '>', "$work/net.lua" or die;
print $net 'local c = require "cnnrun" return c.net { name = "h", input = { "x", shape = ',
    '{ 1, 1, 28, 28 }, scale = 1 / 255 }, c.relu {}, c.hostile {}, c.flatten {} }';
close $net;
my $digit = "$root/scripts/nets/digits/three.png";
(my $plain = `cat $work/net.lua`) =~ s/c\.hostile \{\}, //;
open my $other, '>', "$work/plain.lua" or die;
print $other $plain;
close $other;
my ($want) = run("run --json --top 9 --device cpu $work/plain.lua $digit");
my $scores = join ' ', $want =~ /"score":[-0-9.e]+/g;

for my $case (1 .. 64) {
    my $file = "$broken/hostile$case.so";
    my ($out, $err, $code) = run("plugins --check $file");
    if (defined $check{$case}) {
        ok(lives($code) && $code != 0 && $err =~ $check{$case}, "$case is refused: $check{$case}")
            or diag("exit code $code: $err");
        next if $case == 6; # it would not come back here either; Ctrl-C ends it
        ($out, $err, $code) = run("run --plugin-dir $file $work/plain.lua $digit");
        ok(lives($code) && ($code != 0 && $err =~ /hostile$case\.so/ || $case == 7),
            'and named when a net wants it') or diag("exit code $code: $err");
        next;
    }
    is($code, $case == 9 ? 7 : 0, "$case loads") or diag($err);
    like($err, qr/has 100000 problems beside the installed plugins/, 'for operators that nobody has')
        if $case == 9;
    my $device = $case >= 57 && $case <= 62 ? 'hostile' : 'cpu';
    ($out, $err, $code) =
        run("run --json --top 9 --device $device --plugin-dir $file $work/net.lua $digit");
    if (defined $run{$case}) {
        ok(lives($code) && $code != 0 && $err =~ $run{$case}, "and is told: $run{$case}")
            or diag("exit code $code: $err");
    } else {
        is("$code " . join(' ', $out =~ /"score":[-0-9.e]+/g), "0 $scores",
            'and what it says is put aside') or diag($err);
    }
}
done_testing;
