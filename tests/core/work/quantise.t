#!/usr/bin/perl
# Quantising by script (quantise.lua) and by the program: the source of its noise, and warnings in text and
# JSON.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use FindBin;
use JSON::PP;
use Test::More;

my $build = abs_path($ENV{CNNRUN_BUILD} // 'build');
my $here = $FindBin::Bin;
my $digits = "$here/../../../scripts/nets/digits";
my $dir = tempdir(CLEANUP => 1);
$ENV{XDG_CACHE_HOME} = "$dir/cache";

# Runs cnnrun with these arguments; returns exit code, stdout and stderr.
sub cnnrun {
    my $words = join ' ', map { "'$_'" } @_;
    my $out = qx('$build/cnnrun' $words 2>'$dir/err');
    my $code = $? >> 8;
    open my $f, '<', "$dir/err" or die;
    local $/;
    return ($code, $out, <$f> // '');
}

my ($code, $out, $err) = cnnrun("$here/quantise.lua", $digits, $dir);
is $code, 0, 'the script came to its end';
like $out, qr/^ok \d+ - /m, 'it tells what it could do';
unlike $out, qr/^not ok/m, 'all of it' or diag $out, $err;

# The loud channel made as large as the others, in the weights of both layers, and the way back.
my (%snr, %layers);
for my $how ('', '--equalize', '--correct-bias') {
    ($code, $out, $err) = cnnrun('quantize', "$dir/poor.cnr", '--data', $digits, '-o', "$dir/how.cnr", '--all',
        '--min-snr', -100, '--json', grep { $_ } $how);
    $layers{$how} = join ' ', map { decode_json($_)->{layer} // () } split /\n/, $code ? '' : $out;
    $snr{$how} = $code ? $err : decode_json((split /\n/, $out)[-1]);
}
my @db = map { $snr{$_}{output_snr_db} } '', '--equalize', '--correct-bias';
cmp_ok $db[1], '>', $db[0] + 6, "--equalize: $db[0] dB become $db[1]";
is $layers{'--equalize'}, 'loud quiet last', 'and layers keep their names';
my $gain = $snr{'--correct-bias'}{bias_gain_db};
ok defined $gain && !defined $snr{''}{bias_gain_db}, "--correct-bias tells what it gained: $gain dB";
cmp_ok $db[2], '>=', $db[0] - 0.5, 'and is kept where that is something';

# One layer alone that spoils everything: nothing is written.
my @words = ('--all', '--data', $digits, '-o', "$dir/out.cnr", '--min-snr', -100);
($code, $out, $err) = cnnrun('quantize', "$dir/loud.cnr", @words, '--layers', 'loud');
ok $code != 0 && !-e "$dir/out.cnr", "outputs with nothing in common: an error ($code), nothing written";
like $err, qr/nothing in common.*--min-snr/, 'that says what to do';

# Poor, but something is left: a warning in text and in JSON, by the same words.
my @poor = ('quantize', "$dir/poor.cnr", @words);
($code, $out, $err) = cnnrun(@poor, '--json');
my $told = decode_json((split /\n/, $out)[-1]);
is $code, 0, 'a poor net is written';
is ref $told->{warnings}, 'ARRAY', 'JSON has warnings';
my ($poor) = grep { /outputs differ/ } @{$told->{warnings} // []};
ok $poor, 'one of them for the outputs' or diag $out;
ok exists $told->{agree} && !defined $told->{agree}, 'no classes, no part with the same answer';
ok defined $told->{output_snr_db} && $told->{output_snr_db} < 10, 'the outputs\' signal to noise';
($code, $out, $err) = cnnrun(@poor);
like $err, qr/^cnnrun: warning: .*outputs differ/m, 'text has it, too';
unlike $out, qr/same answer/, 'and no answers where there are none';

# Classes: pictures are labelled by what the float net says of them.
($code, $out, $err) = cnnrun('run', "$dir/classes.cnr", glob("$digits/*.png"), '--json');
open my $list, '>', "$dir/list.txt" or die;
print $list abs_path($_->{input}), " $_->{top}[0]{index}\n" for map { decode_json $_ } split /\n/, $out;
close $list;
($code, $out, $err) = cnnrun('quantize', "$dir/classes.cnr", @words, '--data', "images:$dir/list.txt", '--json');
$told = decode_json((split /\n/, $out)[-1]);
is $told->{top1_float}, 1, 'the float net is right on all';
ok $told->{agree} < 0.95, "the other is not: $told->{agree}";
for my $what ('less accurate by \d+\.\d points: top-1', 'float net\'s answer to \d+\.\d\d% of the pictures only') {
    ok +(grep { /$what/ } @{$told->{warnings} // []}), "a warning in JSON: $what";
    like $err, qr/^cnnrun: warning: .*$what/m, 'and in text';
}
my @names = qw(zero one two three four five six seven eight nine);
open $list, '>', "$dir/list.txt" or die;
print $list abs_path("$digits/$names[$_].png"), " $_\n" for 0 .. 9;
close $list;
($code, $out, $err) = cnnrun('quantize', "$here/../../../scripts/nets/lenet5.lua", '--data', "images:$dir/list.txt",
    '-o', "$dir/lenet.cnr", '--limit', 10, '--json', '--all');
$told = decode_json((split /\n/, $out)[-1]);
ok $code == 0 && $told->{agree} == 1 && $told->{output_snr_db} > 20, 'LeNet agrees';
my $slower = $told->{ms_quantized} > 1.05 * $told->{ms_float};
is !!(grep { /slower here/ } @{$told->{warnings} // []}), !!$slower, 'slower is told where it is so';
# Layers that are faster in 8 bits stay so on a busy machine.
cnnrun('convert', "$here/../../../scripts/nets/cifar10_quick.lua", '--weights', 'random:1', '-o', "$dir/quick.cnr");
my @busy;
my %floats;
for my $load (0, 2) {
    for (1 .. $load) {
        my $child = fork // die;
        if (!$child) { alarm 20; 1 while 1 }
        push @busy, $child;
    }
    ($code, $out, $err) = cnnrun('quantize', "$dir/quick.cnr", '--data', $digits, '--limit', 2, '--check', 0, '--min-snr', -100, '--json',
        '-o', "$dir/quick$load.cnr");
    is $code, 0, "quantized beside $load busy processes" or diag $err;
    $floats{$load} = $code ? -1 : decode_json((split /\n/, $out)[-1])->{float_layers};
}
kill TERM => @busy;
waitpid $_, 0 for @busy;
SKIP: {
    skip 'no layer is faster in 8 bits here, on an idle machine either', 1 if $floats{0} == 5;
    ok $floats{2} >= 0 && $floats{2} < 5, "float layers on a busy machine: $floats{2}, before $floats{0} of 5";
}

done_testing;
