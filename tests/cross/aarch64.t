#!/usr/bin/env perl
# The same sources on AArch64, run by qemu: kernels against their references, nets against this machine's.
use strict;
use warnings;
use FindBin;
use File::Temp 'tempdir';
use POSIX ();
use Test::More;

my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $cross = $ENV{CNNRUN_AARCH64} // "$root/build-aarch64";
my @qemu = ('qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu');
my $there = grep { -x "$_/$qemu[0]" } split /:/, $ENV{PATH};
plan skip_all => "no $qemu[0]" unless $there;
plan skip_all => "no $cross/cnnrun: tools/test.sh builds it" unless -x "$cross/cnnrun";

# What a command prints.
sub output {
    open my $pipe, '-|', @_ or return "could not start $_[0]: $!";
    local $/;
    my $text = <$pipe>;
    return close $pipe ? $text : ($text // '') . "\nended with $?";
}

# They take a minute each, so they run side by side.
my @names = qw(cpu-neon/test_matrix cpu-neon/test_pool cpu-neon/test_elementwise cpu-neon/test_conv
    sparse-csr/test_csr int8/test_kernels);
my $said = tempdir(CLEANUP => 1);
for my $i (0 .. $#names) {
    next if fork // die "fork: $!";
    open my $file, '>', "$said/$i" or die $!;
    $ENV{CNNRUN_TEST_EVERY} //= 4 if $names[$i] =~ /int8/; # of four instruction sets
    print $file output(@qemu, "$cross/tests/plugins/$names[$i]");
    close $file;
    POSIX::_exit(0);
}
1 while wait != -1;
for my $i (0 .. $#names) {
    my $name = $names[$i];
    my $text = do { local (@ARGV, $/) = "$said/$i"; <> // '' };
    my ($plan) = $text =~ /^1\.\.(\d+)$/m;
    my @bad = $text =~ /^(not ok.*|ended with.*)$/mg;
    my $good = () = $text =~ /^ok /mg;
    ok($name !~ /int8/ || !(grep { $text !~ /^ok \d+ - $_: /m } qw(generic neon dotprod i8mm)),
        "$name: by each instruction set");
    ok(!@bad && $plan && $good == $plan && $plan > ($name =~ /int8/ ? 40 : 50), "$name: kernels agree with the references")
        or diag("$good of ", $plan // 'no', " tests, @bad");
}

# Numbers of both machines, and how far apart they are, of the largest.
my $dir = tempdir(CLEANUP => 1);
# The answers of a net under qemu.
sub answers {
    my ($net, $weights, $picture, @cpu) = @_;
    my $file = $net =~ /\.cnr$/ ? "$dir/$net" : "$root/scripts/nets/$net.lua";
    my @net = ("$root/tests/cross/answers.lua", $file, $weights);
    my @here = split ' ', output("$build/cnnrun", @net, $picture, "$dir/$net.npy");
    my @there = split ' ', output(@qemu, @cpu, "$cross/cnnrun", @net, "$dir/$net.npy");
    my ($top, $far) = (0, 0);
    for my $i (0 .. $#here) {
        $top = $i if $here[$i] > $here[$top];
        my $d = abs($here[$i] - ($there[$i] // 'nan'));
        $far = $d unless $d <= $far;
    }
    ok(@here > 1 && @here == @there && $far <= 1e-5 * $here[$top], "$net: the same answers @cpu")
        or diag("$far apart, of $here[$top]; ", scalar @here, ' and ', scalar @there, ' numbers');
    return (sort { $there[$b] <=> $there[$a] } 0 .. $#there)[0];
}
is(answers('lenet5', '-', "$root/scripts/nets/digits/three.png"), 3, 'a three is a three');
answers('squeezenet_v1_1', 'random:1', "$root/scripts/nets/digits/seven.png");

# int8 by each processor's own instructions: without SDOT, with it, with SMMLA.
my $digits = "$root/scripts/nets/digits";
my @quantize = ("$build/cnnrun", 'quantize', "$root/scripts/nets/lenet5.lua", '--data', $digits, '--all', '-q', '-o');
output(@quantize, "$dir/lenet8.cnr");
is(answers('lenet8.cnr', '-', "$digits/three.png", '-cpu', $_), 3, "int8 on $_: a three is a three")
    for qw(cortex-a53 neoverse-n1 max);
done_testing();
