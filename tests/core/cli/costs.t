#!/usr/bin/perl
# A kernel that states its time is preferred to one with a larger guessed time.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
open my $f, '>', "$tmp/twice.lua" or die;
print $f 'local c = require "cnnrun" return c.net { name = "t", input = { "x", shape = { 1, 64, 28, 28 } }, c["acme.twice"] { "here" } }';
close $f;
my $show = "$build/cnnrun show --device cpu --threads 1 --plugin-dir $build/tests/core/host/neighbours/acme --candidates";

# The rows of the node, by kernel.
sub rows {
    my ($cost) = @_;
    local $ENV{ACME_COST} = $cost;
    return { map { ($_->{kernel} => $_) } grep { defined $_->{kernel} } map { decode_json $_ } `$show --json $tmp/twice.lua` };
}

my $of = rows('6610');
my ($stated, $guessed) = @$of{qw(acme_stated acme_twice)};
is_deeply([@$stated{qw(ns ns_from score)}], [6610, 'estimate', 10], 'a stated time is an estimate');
is_deeply([@$guessed{qw(ns_from score)}], ['guess', 1000], 'a score alone makes a guess');
cmp_ok($guessed->{ns}, '>', 36000, 'of more');
ok($stated->{chosen} && !$guessed->{chosen}, 'the estimate wins against the higher score');
is($stated->{why}, 'the least estimate', 'which is why');
$of = rows($guessed->{ns} + 1000);
ok(!$of->{acme_stated}{chosen} && $of->{acme_twice}{chosen}, 'unless it is more than the guess: then the score decides');
{
    local $ENV{ACME_COST} = 6610;
    my $text = `$show $tmp/twice.lua`;
    like($text, qr/^  kernel +device +takes +layouts +encodings +score +time +from/m, 'people see scores');
    like($text, qr/^\* acme_stated +cpu +1 .* 10 +6\.61 us +estimate/m, 'the cost, and where it comes from');
}
done_testing;
