#!/usr/bin/perl
# Kernels that multiply in halves, every variant of the tables, for many windows: clang compiles them for real
# halves, without a device; their products are halves.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Temp qw(tempfile);
use Test::More;

my $root = dirname($0) . '/../../..';
my ($clang) = grep { !system "command -v $_ >/dev/null 2>&1" } qw(clang clang-15 clang-14 clang-16 clang-19);
plan skip_all => 'clang is not installed' unless $clang;
my @words = ($clang, qw(-x cl -cl-std=CL1.2 -target spir64 -Xclang -cl-ext=+cl_khr_fp16 -Werror=implicit),
             qw(-O0 -S -emit-llvm -o -));

# The text of a file; dies if it can't be read.
sub text_of {
    my ($file) = @_;
    open my $in, '<', $file or die "$file: $!";
    local $/;
    return <$in>;
}

my $terms = text_of("$root/kernels/common/terms.cl");
my %heads = ( # as chain.c writes them
    none => "#define CHAIN_NONE\n#define CHAIN_PARAMETERS\n#define CHAIN_PASS\n"
        . "float chain(float v, int at CHAIN_PARAMETERS) {\n    return v;\n}\n",
    added => "#define CHAIN_PARAMETERS , __global const float *e0, int e0_at\n#define CHAIN_PASS , e0, e0_at\n"
        . "float chain(float v, int at CHAIN_PARAMETERS) {\n"
        . "    { const float x = v, y = e0[e0_at + at]; v = x + y; }\n    return v;\n}\n");

# What the compiler made of it, and what it said.
sub compiled {
    my ($head, $text, @options) = @_;
    my ($out, $file) = tempfile(SUFFIX => '.cl', UNLINK => 1);
    print $out $terms, $head, $text;
    close $out;
    my (undef, $said) = tempfile(UNLINK => 1);
    my $ir = `@words -DMAD=mad -DHALF -DHALF_MATH @options $file 2>$said`;
    return ($? ? undef : $ir, text_of($said));
}

# One test a kernel: it compiles in all of these ways, and all products in it are of `type`.
sub is_half {
    my ($kernel, $file, $type, @ways) = @_;
    my $text = text_of("$root/kernels/common/$file.cl");
    my @faults;
    for my $way (@ways) {
        for my $head (sort keys %heads) {
            my ($ir, $said) = compiled($heads{$head}, $text, @$way);
            my ($body) = ($ir // '') =~ /^define [^\n]* spir_kernel void \@$kernel\(.*?^\}/msg ? $& : '';
            my @products = $body =~ /call spir_func [^@]*\@_Z\d+(?:multiply_add|mad|fma)(\w+?)\(/g;
            push @faults, "@$way, $head: $said" if !defined $ir;
            push @faults, "@$way, $head: products of @products" if defined $ir
                && (!@products || grep { $_ ne "${type}S_S_" } @products);
        }
    }
    ok !@faults, "$kernel, " . 2 * @ways . ' ways' or diag join "\n", @faults[0 .. ($#faults > 2 ? 2 : $#faults)];
}

my ($ir, $said) = compiled($heads{none}, '', '-DPROBE', '-D__IMAGE_SUPPORT__=1');
like $ir // $said, qr/void \@probe_image\(/, 'what devices are asked with';
($ir, $said) = compiled($heads{none}, "__kernel void odd(__global half *x) { x[0] = no_such(x[1]); }\n");
is $ir, undef, 'what does not compile is told from what does';

# Edges, strides, dilations of windows: depth, height, width.
my @windows = ([[1, 1, 1], [1, 1, 1], [1, 1, 1]], [[1, 1, 1], [1, 2, 2], [1, 1, 1]], [[1, 3, 3], [1, 1, 1], [1, 1, 1]],
               [[1, 3, 3], [1, 2, 2], [1, 2, 3]], [[1, 5, 5], [1, 1, 1], [1, 1, 1]], [[1, 7, 7], [1, 2, 2], [1, 1, 1]],
               [[1, 11, 11], [1, 4, 4], [1, 1, 1]], [[1, 1, 16], [1, 1, 2], [1, 1, 1]]);
# Build options of a window.
sub window {
    my ($first, @w) = @_;
    my @names = map { my $kind = $_; map { "$kind$_" } qw(D H W) } qw(K S D);
    my @numbers = map { @$_ } @w;
    return map { my $axis = substr $names[$_], 1; $axis eq 'D' && $first ? () : "-D$names[$_]=$numbers[$_]" } 0 .. 8;
}

my @whole = ([[3, 3, 3], [1, 2, 1], [1, 1, 2]], @windows);
for my $image ([], ['-DIMAGE']) {
    is_half('conv_packed', 'conv_packed', 'Dv4_Dh', map { [window(0, @$_), @$image] } @whole);
    is_half('dense_packed', 'dense_packed', 'Dv4_Dh', map { ["-DROWS=$_", @$image] } 1, 4);
}

my %panels;
for my $file (glob "$root/plugins/opencl-*/tune/*.c") {
    my $tables = join ' ', text_of($file) =~ /static const ocl_panel \w+\[\] = \{(.*?)\};/sg;
    $panels{"$1 $2 $3"}++ while $tables =~ /\{(\d+), (\d+), (\d+), \d+\}/g;
}
cmp_ok scalar keys %panels, '>', 6, 'there are rows of panels';
for my $row (sort keys %panels) {
    my ($mt, $nv, $vw) = split / /, $row;
    my @ways = map { ["-DMT=$mt", "-DNV=$nv", "-DVW=$vw", '-DPW=' . $_->[1][2], window(1, @$_)] } @windows;
    is_half('conv_panel', 'conv_panel', "Dv${vw}_Dh", @ways);
}
done_testing;
