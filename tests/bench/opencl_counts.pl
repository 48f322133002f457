#!/usr/bin/perl
# Counts what kernels would do on a Mali or an Adreno, without one: nets with a family's numbers on Oclgrind (the
# first and last work-group of each launch), and the registers that a compiler for GPUs needs, of 64. One table for
# each family; values beyond its limits are listed below, with exit status 1.
# opencl_counts.pl [FAMILY...] [NET.lua...]
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);

my $here = dirname(abs_path($0));
my $root = abs_path("$here/../..");
my $cnnrun = $ENV{CNNRUN} // "$root/build/cnnrun";
my @nets = grep { /\.lua$/ } @ARGV;
my @families = grep { !/\.lua$/ } @ARGV;
@nets = map { "$root/scripts/nets/$_.lua" } qw(squeezenet_v1_1 mobilenet_v2 resnet18) unless @nets;
@families = qw(midgard mali31 mali adreno3 adreno4 adreno adreno7) unless @families;

# A Mali's local memory is its main memory, and a work-item has 64 registers: what does not fit them is
# scratch. An Adreno's cache is for
# images, which all but a depthwise layer's few weights come through. Bytes loaded a multiply-add: sums of 4 x
# 8 by floats are 1.5; whoever multiplies by a weight once reads 4 for it, and some for the other factor.
my @limits = (
    [qr/^(midgard|mali)/, qr/./, barriers => 0, local => 0, scratch => 0],
    [qr/^(midgard|mali)/, qr/^conv_(panel|packed)/, bytes => 2.5],
    [qr/^adreno/, qr/^(conv_(?!stage)|dense)/, images => 1, bytes => 1.25],
    [qr/./, qr/^(depthwise|dense_packed)$/, bytes => 6],
);

my $dir = tempdir(CLEANUP => 1);
my $shim = "$dir/shim.so";
my $said = `cc -shared -fPIC -o $shim $root/tests/plugins/opencl-mali/shim.c -ldl 2>&1`;
die "no C compiler, or no CL/cl.h: $said" if $?;
die "no oclgrind (package oclgrind)\n" if system "oclgrind --version >$dir/out 2>&1";
my $clang = (grep { system("$_ --print-targets 2>/dev/null | grep -q amdgcn") == 0 } qw(clang clang-14))[0];
delete @ENV{grep { /^(CNNRUN_OPENCL|CNNRUN_CACHE|OCLGRIND_)/ } keys %ENV};

# ---- counting ----

# For each launch: kernel, program, work-items, work-items of a group, bytes of local memory; then counts.
sub launches {
    my ($class, $family, $net) = @_;
    local %ENV = (%ENV, CNNRUN_OPENCL => $shim, SHIM_LIBRARY => 'liboclgrind-rt.so', SHIM_ALONE => 1, SHIM_SOURCES => $dir,
                  SHIM_LAUNCHES => "$dir/launches", CNNRUN_CACHE => "$dir/cache-" . rand,
                  CNNRUN_OPENCL_CLASS => $class, CNNRUN_OPENCL_TUNE => $family);
    unlink "$dir/launches";
    my @words = ('run', '--device', 'opencl:0', '--weights', 'random:1', $net,
                 "$root/scripts/nets/digits/three.png");
    system 'sh', '-c', 'exec "$@" >"$0/out" 2>&1', $dir, 'oclgrind', '--quick', '--inst-counts', '--num-threads',
        1, '--global-mem-size', 1 << 31, $cnnrun,
        @words;
    my $text = do { local (@ARGV, $/) = "$dir/out"; <> // '' };
    die "$net: exit status " . ($? >> 8) . ": $text" if $?;
    my @all;
    open my $file, '<', "$dir/launches" or die "$net: nothing was launched\n";
    while (<$file>) {
        my ($kernel, $program, @n) = split;
        push @all, {kernel => $kernel, program => $program, group => $n[3] * $n[4] * $n[5],
                    groups => $n[0] * $n[1] * $n[2] / ($n[3] * $n[4] * $n[5]), local => $n[6]};
    }
    my @parts = split /^Instructions executed for kernel '(\w+)':\n/m, $text;
    shift @parts;
    die "$net: " . @parts / 2 . ' reports of ' . @all . " launches\n" if @parts != 2 * @all;
    for my $launch (@all) {
        my ($kernel, $counts) = splice @parts, 0, 2;
        die "$net: $kernel where $launch->{kernel} was launched\n" if $kernel ne $launch->{kernel};
        count($launch, $counts);
    }
    return @all;
}

# Counts multiply-adds, loads and barriers of a kernel in the trace.
sub count {
    my ($launch, $text) = @_;
    $launch->{$_} = 0 for qw(macs loaded imaged barriers);
    while ($text =~ /^\s*([\d,]+) - (.*)$/mg) {
        my ($n, $what) = ($1 =~ tr/,//dr, $2);
        if ($what =~ /^load global \(([\d,]+) bytes\)/) { $launch->{loaded} += $1 =~ tr/,//dr }
        elsif ($what =~ /^call \w*vload(_half)?(\d+)\w*PU3AS1/) { $launch->{loaded} += ($1 ? 2 : 4) * $n * $2 }
        elsif ($what =~ /^call _Z3(?:mad|fma)(?:Dv(\d+)_)?/) { $launch->{macs} += $n * ($1 // 1) }
        elsif ($what =~ /^call \w*read_imagef/) { $launch->{imaged} += 16 * $n }
        elsif ($what =~ /^call \w*barrier/) { $launch->{barriers} += $n }
    }
}

# ---- registers: with all that ids lead to held by each work-item, as where there are no scalar units ----

my %compiled;
# Registers that the compiler needs for the kernel.
sub registers {
    my ($kernel, $program) = @_;
    my ($text, $options) = map { local (@ARGV, $/) = "$dir/$program.$_"; <> // '' } qw(cl options);
    my $known = $compiled{"$kernel $options $text"};
    return @$known if $known;
    return (undef, undef) unless $clang;
    my $listing = `$clang -x cl $options -Xclang -finclude-default-header -include $here/registers.h -O2 -S -o - \\
        -target amdgcn-amd-amdhsa -mcpu=gfx906 -nogpulib -w $dir/$program.cl 2>&1`;
    die "$program.cl $options: $listing" if $?;
    my ($scratch, $registers) = $listing =~
        /\.name:\s+\Q$kernel\E\n\s+\.private_segment_fixed_size:\s+(\d+)\n.*?\.vgpr_count:\s+(\d+)/s;
    return @{$compiled{"$kernel $options $text"} = [$registers, $scratch]};
}

# ---- output ----

sub built { # what of the options tells kernels of a name apart
    my ($program) = @_;
    my $options = do { local (@ARGV, $/) = "$dir/$program.options"; <> // '' };
    my %of = $options =~ /-D(\w+)=(\S+)/g;
    my @words = map { defined $of{$_} ? "$_$of{$_}" : () } qw(MT NV VW BM BN KH KW SH ROWS TILES);
    return join ' ', @words;
}

my @broken;
# Compares a kernel's counts with the limits.
sub judge {
    my ($family, $name, $row) = @_;
    for (@limits) {
        my ($families, $kernels, %limit) = @$_;
        next if $family !~ $families || $row->{kernel} !~ $kernels;
        for my $what (sort keys %limit) {
            my $is = $row->{$what};
            next if !defined $is || $what eq 'bytes' && !$row->{macs};
            push @broken, "$family: $name: $what $is, limit $limit{$what}"
                if $what eq 'images' ? $is < $limit{$what} : $is > $limit{$what};
        }
    }
}

for my $family (@families) {
    my %rows;
    my $class = $family =~ /^adreno/ ? 'opencl-adreno' : $family =~ /^(nvidia|desktop)/ ? 'opencl-desktop' : 'opencl-mali';
    for my $net (@nets) {
        for my $launch (launches($class, $family, $net)) {
            my ($registers, $scratch) = registers($launch->{kernel}, $launch->{program});
            my $row = $rows{"$launch->{kernel} " . built($launch->{program})} //=
                {kernel => $launch->{kernel}, map { $_ => 0 } qw(launches macs loaded imaged barriers local
                                                                 group groups registers scratch)};
            $row->{launches}++;
            $row->{$_} += $launch->{$_} for qw(macs loaded imaged barriers);
            for (['local', $launch->{local}], ['group', $launch->{group}], ['groups', $launch->{groups}],
                 ['registers', $registers // 0], ['scratch', $scratch // 0]) {
                $row->{$_->[0]} = $_->[1] if $_->[1] > $row->{$_->[0]};
            }
        }
    }
    printf "%-44s %8s %6s %8s %7s %7s %8s %6s %9s %8s\n", $family, 'launches', 'items', 'groups', 'B/MAC',
        'image', 'barriers', 'local', 'registers', 'scratch';
    for my $name (sort keys %rows) {
        my $row = $rows{$name};
        my $macs = $row->{macs} || 1;
        $row->{bytes} = sprintf '%.2f', $row->{loaded} / $macs;
        $row->{images} = $row->{imaged} ? 1 : 0;
        printf "%-44s %8d %6d %8d %7s %7s %8d %6d %9s %8s\n", $name, @$row{qw(launches group groups)},
            $row->{macs} ? ($row->{bytes}, sprintf '%.2f', $row->{imaged} / $macs) : ('-', '-'),
            @$row{qw(barriers local)}, $clang ? @$row{qw(registers scratch)} : ('-', '-');
        judge($family, $name, $row);
    }
    print "\n";
}
print "beyond its limit: $_\n" for @broken;
exit(@broken ? 1 : 0);
