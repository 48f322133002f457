#!/usr/bin/perl
# cnnrun-kernelcheck, which uses the engine alone, prints the same as cnnrun kernelcheck.
use strict;
use warnings;
use File::Temp 'tempdir';
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $alone = "$build/cnnrun-kernelcheck";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $faulty = "$build/tests/kernelcheck/faulty.so";
my $dir = tempdir(CLEANUP => 1);
my $net = 'scripts/nets/lenet5.lua';

# A test: the program alone says the same as the command.
sub same {
    my ($words, $name) = @_;
    my ($want, $wanted) = (scalar `$build/cnnrun kernelcheck $words 2>&1`, $? >> 8);
    my ($got, $code) = (scalar `$alone $words 2>&1`, $? >> 8);
    is($got, $want, $name);
    is($code, $wanted, '... with its exit code');
}
same('--help', 'the same help');
same('--cases 0', 'the same mistakes');
same('--op relu --operators --cases 5', 'operators are judged alike');
same("--plugin-dir $faulty --plugin faulty --kernel faulty_overrun --json", 'so is a fault, told as JSON');

is(system("$build/cnnrun convert $net -o $dir/net.cnr"), 0, 'a net as .cnr');
same("--net $dir/net.cnr --device cpu -q", 'the nodes of a net');
my $text = `$alone --net $net 2>&1`;
is($? >> 8, 5, 'a script is refused');
like($text, qr/the engine alone runs no Lua script.*cnnrun convert/, '... and it is told what to do');

my @above = grep { /\b(?:lua|cnri_lua|cnri_govern|cnri_train|cnri_sampler)_/ } `nm $alone`;
is("@above", '', 'nothing of Lua, power and lab is in it');
done_testing;
