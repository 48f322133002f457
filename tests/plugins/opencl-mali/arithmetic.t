#!/usr/bin/perl
# --arithmetic fp16: kernels that multiply in halves are chosen where that is asked for and the device has it;
# elsewhere that is told, and all is in f32. Here halves are emulated: answers stay what they were, nearly, and
# the kernels keep to what they promise. $CNNRUN_CHECK_CASES, $CNNRUN_CHECK_SEED: further than every day.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;
use FindBin;
use lib "$FindBin::Bin/../..";
use Programs 'quick';

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
my $dir = tempdir(CLEANUP => 1);
delete @ENV{grep { /^CNNRUN_OPENCL/ } keys %ENV};
my $digit = 'scripts/nets/digits/three.png';
my @net = ('scripts/nets/lenet5.lua', '--device', 'opencl:0');

# The exit status, and what was said.
sub told {
    my $text = `$build/cnnrun @_ 2>&1`;
    return ($? >> 8, $text);
}
# The best class of a run.
sub top {
    my ($code, $text) = told('run', @net, '--json', @_, $digit);
    my ($json) = $text =~ /^(\{.*)$/m;
    return $json ? decode_json($json)->{top} : [{index => $text}];
}

my ($code, $text) = told('devices', '--json', '--device', 'opencl:0');
plan skip_all => 'no OpenCL device' if $code == 6;
my $device = decode_json($text);
my $has = $device->{fp16} && $device->{driver};
is $device->{fp16_arithmetic}, $has ? "its kernels never ran on real fp16 hardware" : 'no (cl_khr_fp16)',
    'the device says whether';
($code, $text) = told('show', @net, '--arithmetic', 'fp8');
ok $code != 0 && $text =~ /wanted one of f32 fp16 bf16, got "fp8"/, 'another type is none, and what would be is told' or diag $text;
SKIP: {
    skip 'the device has halves', 1 if $has;
    ($code, $text) = told('show', @net, '--arithmetic', 'fp16');
    ok $code == 0 && $text !~ /_half_/ && $text =~ /warning: lenet5: no device there multiplies for this net in fp16/,
        'without the extension that is told, and all is in f32' or diag $text;
}

$ENV{CNNRUN_OPENCL_HALF} = 'emulated';
for my $class ('opencl-mali', 'opencl-adreno') {
    local $ENV{CNNRUN_OPENCL_CLASS} = $class;
    local $ENV{CNNRUN_OPENCL_TUNE} = $class eq 'opencl-mali' ? 'mali' : 'adreno';
    ($code, $text) = told('show', @net);
    ok $code == 0 && $text !~ /_half_|warning:|never run/, "$class: nobody asks, nobody does" or diag $text;
    ($code, $text) = told('show', @net, '--arithmetic', 'fp16');
    my $halves = () = $text =~ /^\w+ +(?:conv|dense) .*_half_/mg;
    ok $code == 0 && $halves == 4 && $text =~ /^never run on the hardware that it is for: \w+_half_/m,
        '... all convolutions and dense layers do, and that they are untried is said' or diag $text;
    my ($full, $half) = map { top('--arithmetic', $_) } qw(f32 fp16);
    is $full->[0]{index}, 3, '... a three is a three';
    is $half->[0]{index}, 3, '... in halves, too';
    ok $half->[1]{score} != $full->[1]{score}
        && abs($half->[1]{score} / $full->[1]{score} - 1) < 0.1, '... which are not quite what floats are'
        or diag explain [$full, $half];
}

open my $script, '>', "$dir/in.lua" or die;
print $script "local c = require 'cnnrun'\n",
    "return function()\n  local net = c.load('scripts/nets/lenet5.lua', { device = 'opencl:0', arithmetic = 'fp16' })\n",
    "  for _, row in ipairs(net:candidates()) do print(row.kernel) end\nend\n";
close $script;
($code, $text) = told('run', '--trust', "$dir/in.lua");
ok $code == 0 && $text =~ /_half_/, 'scripts may ask for it' or diag "exit $code\n$text";

my @words = ('--device', 'opencl:0', '--timeout', 200, '--arithmetic', 'fp16', '--cases', $ENV{CNNRUN_CHECK_CASES} // 1,
             '--seed', $ENV{CNNRUN_CHECK_SEED} // 1);
($code, $text) = told('kernelcheck', @words);
ok $code == 0 && $text =~ /^# (\d+) kernels and operators, \d+ cases, 0 failed, 0 not judged$/m && $1 >= 9,
    'kernels lie within what roundings to halves make' or diag $text;
done_testing;
