#!/usr/bin/env perl
# The same sources on ARMv7 with NEON, run by qemu: kernels against their references, nets against this machine's, weights in
# int8 and sparse, training, memory. CNNRUN_ARMV7_ALL=1 instead runs every C test that build-armv7 has, which takes an hour.
use strict;
use warnings;
use File::Temp 'tempdir';
use FindBin;
use Test::More;

my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $cross = $ENV{CNNRUN_ARMV7} // "$root/build-armv7";
my @qemu = ('qemu-arm-static', '-L', '/usr/arm-linux-gnueabihf');
plan skip_all => "no $qemu[0]" unless grep { -x "$_/$qemu[0]" } split /:/, $ENV{PATH};
plan skip_all => "no $cross/cnnrun: tools/test.sh builds it" unless -x "$cross/cnnrun";
$ENV{CNNRUN_OPENCL} = 'none';
my $dir = tempdir(CLEANUP => 1);

# What a command prints on both streams, and how it ended where that is not well.
sub output {
    my $pid = open(my $pipe, '-|') // die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec(@_) or die "$_[0]: $!";
    }
    local $/;
    my $text = <$pipe> // '';
    return close $pipe ? $text : "$text\nended with $?";
}

# Runs a C test by qemu; each of its lines must be ok.
sub passes {
    my ($name, $least) = @_;
    my $text = output(@qemu, "$cross/tests/$name");
    my ($plan, $skip) = $text =~ /^1\.\.(\d+)(?: # SKIP (.*))?$/m;
    my @bad = $text =~ /^(not ok.*|ended with.*)$/mg;
    my $good = () = $text =~ /^ok /mg;
    ok(!@bad && defined $plan && $good == $plan && ($skip || $plan >= $least), $name . ($skip ? " (skips: $skip)" : ''))
        or diag("$good of ", $plan // 'no', " tests\n", join "\n", @bad);
}

if ($ENV{CNNRUN_ARMV7_ALL}) {
    open my $list, '-|', 'find', "$cross/tests", '-name', 'test_*', '-perm', '-u+x', '-type', 'f' or die $!;
    my @all = sort map { chomp; s{^\Q$cross\E/tests/}{}r } <$list>;
    passes($_, 1) for grep { !$ENV{CNNRUN_ARMV7_ONLY} || /$ENV{CNNRUN_ARMV7_ONLY}/ } @all;
} else {
    $ENV{CNNRUN_TEST_EVERY} //= 16;
    passes(@$_) for ['plugins/cpu-neon/test_conv', 50], ['plugins/sparse-csr/test_csr', 30], ['plugins/int8/test_kernels', 22],
        ['core/store/test_store', 50];
}

# Vectors are vectors: the microkernels multiply registers of four floats by lanes.
my $code = output('arm-linux-gnueabihf-objdump', '-d', "$cross/plugins/cpu-neon.so");
cmp_ok(scalar(() = $code =~ /vmla\.f32\s+q\d+/g), '>', 500, 'cpu-neon multiplies vectors of four floats');

# Numbers of both machines, and how far apart they are, of the largest.
sub answers {
    my ($net, $weights, $picture, $there) = @_;
    my $file = $net =~ /\.cnr$/ ? "$dir/$net" : "$root/scripts/nets/$net.lua";
    my @net = ("$root/tests/cross/answers.lua", $file, $weights);
    my @here = split ' ', output("$build/cnnrun", @net, $picture, "$dir/$net.npy");
    my @there = split ' ', output(@qemu, @{ $there->{emulator} }, "$cross/cnnrun", @net, "$dir/$net.npy", @{ $there->{words} });
    my ($top, $far) = (0, 0);
    for my $i (0 .. $#here) {
        $top = $i if $here[$i] > $here[$top];
        my $d = ($there[$i] // '') =~ /^-?[\d.]/ ? abs($here[$i] - $there[$i]) : 9;
        $far = $d unless $d <= $far;
    }
    ok(@here > 1 && @here == @there && $far <= 1e-4 * $here[$top], "$net: the same answers")
        or diag("$far apart, of $here[$top]; ", scalar @here, " and @there");
    return (sort { $there[$b] <=> $there[$a] } 0 .. $#here)[0];
}
my $digits = "$root/scripts/nets/digits";
is(answers('lenet5', '-', "$digits/three.png"), 3, 'a three is a three');
answers('squeezenet_v1_1', 'random:1', "$digits/seven.png");
output("$build/cnnrun", 'quantize', "$root/scripts/nets/lenet5.lua", '--data', $digits, '--all', '-q', '-o', "$dir/lenet8.cnr");
is(answers('lenet8.cnr', '-', "$digits/three.png"), 3, 'in int8, too');
output("$build/cnnrun", 'convert', "$root/scripts/nets/lenet5.lua", '-q', '--encode', 'sparse-csr:keep=0.3', '-o', "$dir/sparse.cnr");
is(answers('sparse.cnr', '-', "$digits/three.png"), 3, 'and with sparse weights');

# AlexNet: 244 MB of weights in an address space of 2 GB, of which 100 MB may be used.
my $reserve = output(qw(arm-linux-gnueabihf-gcc -shared -fPIC -o), "$dir/reserve.so", "$root/tests/cross/reserve.c");
is($reserve, '', 'half of the address space is taken');
output("$build/cnnrun", 'convert', "$root/scripts/nets/alexnet.lua", '--weights', 'random:1', '-q', '-o', "$dir/alexnet.cnr");
answers('alexnet.cnr', '-', "$digits/seven.png", { emulator => ['-E', "LD_PRELOAD=$dir/reserve.so"], words => ['-', 100e6] });
done_testing();
