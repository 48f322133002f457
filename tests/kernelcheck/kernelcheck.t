#!/usr/bin/perl
# kernelcheck finds each planted fault, can repeat one case, and finds none in the plugins that come with
# cnnrun.
use strict;
use warnings;
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $faulty = "$build/tests/kernelcheck/faulty.so";
plan skip_all => "no $faulty" unless -e $faulty;

# What kernelcheck prints, and its status.
sub check {
    my @words = @_;
    open my $from, '-|', "$build/cnnrun", 'kernelcheck', @words or die;
    my $text = do { local $/; <$from> };
    close $from;
    return ($? >> 8, $text);
}

# ---- planted faults: kernel and the words that must tell of it ----
my %faults = (
    overrun      => qr/past the end of output 0/,
    underrun     => qr/bytes before output 0/,
    unwritten    => qr/got (nan|-nan)/,
    blocked      => qr/\{input 0: blocks of (4|8|16) channels, output 0: blocks of \1 channels\}/,
    border       => qr/output 0: \d+ of \d+ wrong/,
    group        => qr/output 0: \d+ of \d+ wrong/,
    illegal      => qr/died of \S.* \(signal [45]\)/,
    wild         => qr/died of \S.* \(signal 11\)/,
    endless      => qr/did not end within 1 s/,
    range        => qr/outside the range/,
    range_short  => qr/wrong.*range/,
    unsteady     => qr/element \d+ was \S+ before and is now \S+ \(range/,
    clobbered    => qr/input 0 was changed/,
    inexact      => qr/1 of \d+ wrong/,
    lossy        => qr/encoding "faulty-lossy": decode gives weights that differ by \S+ of their root mean square/,
    no_chain     => qr/output 0: \d+ of \d+ wrong/,
    not_prepared => qr/died of/,
    blob_changed => qr/the blob was changed/,
    blob_overrun => qr/prepare wrote outside its blob/,
    workspace    => qr/past the end of the workspace/,
    peeking      => qr/got (nan|-nan)/,
    misplaced    => qr/output 0: 1 of \d+ wrong/,
    loses_nan    => qr/got 0, want -?nan/,
    spreads_nan  => qr/got -?nan, want (?!-?nan)/,
);
# first in the order of registration, which what is drawn depends on
my @faulty = ('--plugin-order', 'faulty', '--plugin-dir', $faulty, '--plugin', 'faulty');
for my $name (sort keys %faults) {
    my @more = $name eq 'endless' ? ('--timeout', 1) : (); # others may take their time on a busy machine
    my $cases = @more ? 4 : $name =~ /border|blocked|group|chain/ ? 30 : 10;
    my ($code, $text) = check(@faulty, @more, '--kernel', "faulty_$name", '--cases', $cases);
    is $code, 1, "$name: exit code 1";
    like $text, qr/^not ok 1 - faulty_$name on cpu.*case \d+/m, "$name: not ok, naming a case";
    like $text, $faults{$name}, "$name: told";
}
my ($code, $text) = check(@faulty, '--kernel', 'faulty_sound', '--cases', 10);
is $code, 0, 'a sound kernel passes' or diag $text;
like $text, qr/^ok 1 - faulty_sound on cpu: \d+ cases$/m, 'and says with how many cases';

($code, $text) = check(@faulty, '--kernel', 'faulty_rounded', '--cases', 1000);
is $code, 0, 'no chain makes a fault of what rounding does' or diag $text;

# ---- kernels on the nodes of a net ----
my @net = ('--net', 'scripts/nets/lenet5.lua', '--device', 'cpu');
for my $name (qw(particular lethal)) {
    my ($code, $text) = check(@faulty, '--kernel', "faulty_$name", '--cases', 10);
    is $code, 0, "$name: what is drawn does not show it" or diag $text;
    ($code, $text) = check(@faulty, @net, '--kernel', "faulty_$name");
    is $code, 1, '... but a net does';
    my ($number) = $text =~ /^# faulty_$name on cpu, seed 1, case (\d+): conv1: conv f32\[1,1,28,28\]/m;
    ok defined $number, '... naming node and shape';
    like $text, $name eq 'lethal' ? qr/died of \S.* \(signal [45]\)/ : qr/output 0: 1 of \d+ wrong/, '... and what is wrong';
    like $text, qr/^not ok 1 - faulty_$name on cpu: 1 of 2 cases failed/m, '... and the other layer is judged all the same';
    (undef, $text) = check(@faulty, @net, '--kernel', "faulty_$name", '--case', $number // 0);
    like $text, qr/1 of 1 cases failed/, '... and that one again, alone';
}
{
    my ($code, $text) = check(@net, '-q');
    is $code, 0, 'all kernels of the CPU on the nodes of a net' or diag $text;
    like $text, qr/^# \d+ kernels and plans on 8 nodes of \S+, \d+ cases, 0 failed, 0 nodes not judged$/m, '... and none is left out';
    ($code, $text) = check(@net, '--op', 'conv', '--json');
    my @rows = map { decode_json($_) } split /\n/, $text;
    is "$rows[0]{net} $rows[0]{kernel} $rows[0]{failures}", 'scripts/nets/lenet5.lua conv_f32_gemm 0', '... as JSON';
    ($code, $text) = check('--net', 'none.lua', '--device', 'cpu');
    is $code, 6, 'a net that is not there is a mistake';
}

# ---- operators: what each promises and does not keep ----
my %broken = (
    whole       => qr/was written, which is outside the range.*\(ranges\)/,
    unwritten   => qr/got -?nan, the whole gave .*\(reference\)/,
    past        => qr/died of \S.* \(signal 11\)/,
    region      => qr/reading input 0 outside \d+ to \d+ on axis 0.*\(split_axes\)/,
    in_place    => qr/\(output 0 in place of input 0\) \(in place\)/,
    view        => qr/output 0 lies in input 0 .*\(views\)/,
    apply       => qr/\d+ of \d+ wrong.*\(apply_f32\)/,
    affine      => qr/should be .* the reference gives .*\(channel_affine\)/,
    pass        => qr/output 0 is not input 0 \(pass\)/,
    flipped     => qr/gradient of input 0 \(x\) along .*differences say .*\(gradient\)/,
    no_gradient => qr/differences say .*the hook gave none \(gradient\)/,
    deep        => qr/infer refuses the weights that parameters shapes: .*want f32 of rank 2 \(parameters\)/,
    zero        => qr/begins all weights of two or more axes as 0 \(parameters\)/,
    odd         => qr/begins input 1 in way 7, which is none \(parameters\)/,
    free        => qr/a node with weights and outputs costs nothing \(cost\)/,
);
for my $name (sort keys %broken) {
    my ($code, $text) = check(@faulty, '--op', "faulty_op_$name", '--operators', '--cases', 20);
    is $code, 1, "operator $name: exit code 1";
    like $text, qr/^not ok 1 - operator faulty_op_$name: .*case \d+/m, "operator $name: not ok, naming a case";
    like $text, $broken{$name}, "operator $name: told";
}
($code, $text) = check(@faulty, '--op', 'faulty_op_sound', '--operators');
is $code, 0, 'a sound operator passes' or diag $text;
like $text, qr/^ok 1 - operator faulty_op_sound: \d+ cases$/m, 'and nothing it promises was left unjudged';
($code, $text) = check(@faulty, '--op', 'faulty_op_sound', '--operators', '--json');
my $row = eval { decode_json($text) };
is $row && "$row->{operator} $row->{failures}", 'faulty_op_sound 0', 'and as JSON';

# ---- a driver that only one process at a time can have ----
{
    local $ENV{FAULTY_LONELY} = "$build/tests/kernelcheck/lonely.lock";
    ($code, $text) = check(@faulty, '--kernel', 'lonely_tanh', '--cases', 3);
    is $code, 0, 'a device for one process at a time: children have it' or diag $text;
    like $text, qr/^ok 1 - lonely_tanh on lonely: 3 cases$/m, 'and judge its kernel';
}

($code, $text) = check(@faulty, '--kernel', 'lonely_tanh', '--cases', 3);
like $text, qr/^ok 1 - lonely_tanh on lonely # SKIP there is no such device here$/m,
    'a device that is not here';
like $text, qr/0 failed, 0 not judged; 1 for devices that are not here$/m, '... is told apart';

# ---- one case again, from what was printed ----
(undef, $text) = check(@faulty, '--kernel', 'faulty_inexact', '--seed', 7, '--cases', 5);
my ($seed, $case, $node) = $text =~ /seed (\d+), case (\d+): (.*)/;
(undef, my $again) = check(@faulty, '--kernel', 'faulty_inexact', '--seed', $seed, '--case', $case);
like $again, qr/\Qseed $seed, case $case: $node\E/, 'seed and case give the same node';
like $again, qr/1 of 1 cases failed/, 'alone';
(undef, my $other) = check(@faulty, '--kernel', 'faulty_inexact', '--seed', 8, '--cases', 5);
unlike $other, qr/\Q$node\E/, 'another seed, other nodes';
like $text, qr/^# seed 7$/m, 'the seed is printed';

# ---- the program's ways ----
($code, $text) = check('--kernel', 'no_such_kernel');
is $code, 6, 'a kernel that is not there is a mistake';
($code, $text) = check('--kernel', 'softmax_f32_lanes', '--cases', 3, '--json');
my $object = eval { decode_json($text) };
is $object && $object->{cases}, 3, '--json: an object a test';
($code, $text) = check('--kernel', 'softmax_f32_lanes', '--cases', 2, '--bench');
like $text, qr/^# softmax_f32_lanes case \d+: [\d.]+ ms, [\d.]+ GFLOP\/s/m, '--bench times them';
(undef, $text) = check('--op', 'relu', '--kernel', 'elementwise_f32', '--cases', 3);
like $text, qr/^ok 1 - elementwise_f32 on cpu: 3 cases$/m, '--op picks one for a kernel of any';

# ---- what ships; $CNNRUN_CHECK_CASES, $CNNRUN_CHECK_SEED: further than every day ----
my @long = ('--timeout', 200, '--cases', $ENV{CNNRUN_CHECK_CASES} // 10, '--seed', $ENV{CNNRUN_CHECK_SEED} // 1);
for (['all kernels of the CPU agree with the references', '--device', 'cpu'],
     ['all operators keep what they promise', '--operators']) {
    my ($what, @which) = @$_;
    ($code, $text) = check(@which, @long);
    is $code, 0, $what or diag join "\n", grep { /^(not ok|#)/ } split /\n/, $text;
    # in part: the gradient of fake_quantize passes its steps, so that differences don't agree with it. Not judged:
    # conv_grad_input_f32_winograd, whose shapes are hardly ever drawn (tests/plugins/cpu-neon/test_conv.c has them).
    like $text, qr/^# \d+ kernels and operators, \d+ cases, 0 failed, [01] not judged(?:, 1 in part)?$/m,
        '... each of them in some case, and every promise';
}
done_testing;
