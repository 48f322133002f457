#!/usr/bin/perl
# --weights-type: kernels that store weights as halves are chosen only if it asks for them; answers stay the
# same.
use strict;
use warnings;
use File::Temp qw(tempfile);
use Test::More;
use FindBin;
use lib "$FindBin::Bin/../..";
use Programs 'quick';

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
my @net = ('scripts/nets/lenet5.lua', '--weights', 'random:1', '--device', 'opencl:0');

# Status and output of a command.
sub told {
    my $text = `$build/cnnrun @_ 2>&1`;
    return ($? >> 8, $text);
}

my ($code, $text) = told('show', @net);
plan skip_all => 'no OpenCL device' if $code == 6 && $text =~ /no such device/;
is $code, 0, 'a net is planned' or diag $text;
unlike $text, qr/_f16_/, 'with weights as they are';
($code, $text) = told('show', @net, '--weights-type', 'fp16');
is $code, 0, 'and with halves' or diag $text;
my $halves = () = $text =~ /(?:conv|dense)_f16_/g;
cmp_ok $halves, '>=', 4, 'by kernels that store them: all convolutions and dense layers' or diag $text;
($code, $text) = told('show', @net, '--weights-type', 'bf16');
like $text, qr/no kernel there stores weights of this net as bf16: they stay as they are/, 'bf16 in vain, and that is reported';
($code, $text) = told('show', @net, '--weights-type', 'fp8');
isnt $code, 0, 'another type is none';
like $text, qr/wanted one of f32 fp16 bf16, got "fp8"/, 'and what would be is reported';

my ($file, $digit) = tempfile(SUFFIX => '.pgm', UNLINK => 1);
print $file "P5\n28 28\n255\n", map { chr((($_ % 28 - 14)**2 + (int($_ / 28) - 14)**2 < 80) ? 255 : 0) } 0 .. 783;
close $file;
my @scores = map { my ($c, $t) = told('run', @net, '--json', $_, $digit); $t } '', '--weights-type fp16';
my @first = map { /"top"\s*:\s*\[\s*\{[^}]*"(?:index|class)"\s*:\s*(\d+)/ ? $1 : "no answer: $_" } @scores;
like $first[0], qr/^\d+$/, 'a picture has a class';
is $first[1], $first[0], 'the same class comes first';
done_testing;
