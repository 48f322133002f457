#!/usr/bin/perl
# Nets of the zoo, and mixed.lua beside this file, wholly on the OpenCL device, with the processor's answers.
# NETS="alexnet vgg16 ...": others than these few, which have each operator of the zoo between them.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;
use FindBin;
use lib "$FindBin::Bin/../..";
use Programs;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $root = $0 =~ s{tests/plugins/[^/]*/[^/]*$}{}r || '.';
my $nets = "$root/scripts/nets";
my $dir = tempdir(CLEANUP => 1);
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
my @nets = split ' ', $ENV{NETS} // 'mixed cifar10_full squeezenet_v1_1 shufflenet_v2 mobilenet_v3 yolov4_tiny';

# Runs the program; returns status, output and messages.
sub cnnrun {
    my $text = `$build/cnnrun @_ 2>$dir/err`;
    return ($? >> 8, $text, do { local (@ARGV, $/) = "$dir/err"; <> // '' });
}
my ($code, $text, $err) = cnnrun('show', '--device', 'opencl:0', "$nets/lenet5.lua");
plan skip_all => 'no OpenCL device' if $code == 6;
for my $net (@nets) {
    my $file = $net eq 'mixed' ? $0 =~ s{[^/]*$}{mixed.lua}r : "$nets/$net.lua";
    my @words = ($file, '--weights', 'random:3');
    ($code, $text, $err) = cnnrun('show', '--json', '--device', 'opencl:0', @words);
    my @rows = map { decode_json($_) } split /\n/, $text;
    my @away = grep { ($_->{device} // '') eq 'cpu' } @rows;
    ok $code == 0 && @rows > 3 && !@away, "$net: every node runs on the device"
        or diag join "\n", $err, map { "$_->{node}: $_->{op}" } @away;
    next if $net =~ /yolo/; # boxes, which have tests of their own
    my %tensor;
    for my $device ('cpu', 'opencl:0') {
        ($code, $text, $err) = cnnrun('run', '--json', '--device', $device, '--top', 20, '--hang-ms', 200_000, @words, # it compiles in its first run
                                      "$nets/digits/three.png");
        my $line = $code ? {} : decode_json((split /\n/, $text)[0]);
        $tensor{$device} = { map { $_->{index} => $_->{score} } @{$line->{top} // []} };
    }
    my ($want, $got) = @tensor{'cpu', 'opencl:0'};
    my @off = grep { abs(($got->{$_} // 0) - $want->{$_}) > 1e-4 * abs($want->{$_}) + 1e-7 } keys %$want;
    ok %$want && !@off, "$net: the processor's scores"
        or diag "$err; " . join ' ', map { "$_: $want->{$_} " . ($got->{$_} // 'none') } @off;
}
done_testing;
