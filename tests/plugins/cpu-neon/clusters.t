#!/usr/bin/perl
# Clusters of cores, on trees of fixtures (made up after boards' kernels): which there are, what they
# are called, that a net runs on one when it is asked for, and on none unasked.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $net = 'scripts/nets/lenet5.lua';
my $picture = 'scripts/nets/digits/seven.png';
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_OPENCL} = 'none';

# A tree: of each core its part, and what says how fast it is (file => value).
sub tree {
    my ($name, @cores) = @_;
    my $root = "$dir/$name";
    make_path("$root/proc", "$root/sys/devices/system/cpu");
    put("$root/sys/devices/system/cpu/possible", @cores > 1 ? "0-$#cores\n" : "0\n");
    my $info = '';
    for my $i (0 .. $#cores) {
        my ($implementer, $part, $file, $value) = @{$cores[$i]};
        $info .= "processor\t: $i\nBogoMIPS\t: 26.00\nCPU implementer\t: $implementer\n" .
            "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: $part\nCPU revision\t: 4\n\n";
        next unless defined $file;
        my $path = "$root/sys/devices/system/cpu/cpu$i/$file";
        make_path($path =~ s{/[^/]*$}{}r);
        put($path, $value);
    }
    put("$root/proc/cpuinfo", $info);
    return $root;
}
# Writes a file, given as path and text; dies if it can't.
sub put { my ($path, $text) = @_; open my $f, '>', $path or die "$path: $!"; print $f $text; close $f }

sub devices { # the names that a mistake lists
    local $ENV{CNNRUN_SYSFS_ROOT} = shift;
    my $said = `$build/cnnrun run $net $picture --device cpu:mars 2>&1`;
    return $said =~ /there are: (.*)/ ? $1 : $said;
}
# What a run on a made-up machine, whose folder is the first word, says: the decoded classes, or its
# text.
sub answer {
    local $ENV{CNNRUN_SYSFS_ROOT} = shift;
    my $said = `$build/cnnrun run --json @_ $net $picture 2>&1`;
    my $o = eval { decode_json($said) };
    return $o && $o->{top} ? $o->{top}[0]{index} : $said;
}

my $odroid = tree('odroid-xu3', (map { ['0x41', '0xc07', 'cpu_capacity', "448\n"] } 0 .. 3),
                  map { ['0x41', '0xc0f', 'cpu_capacity', "1024\n"] } 0 .. 3);
is devices($odroid), 'cpu, cpu:big, cpu:little', 'four A7 and four A15: big and little';
is answer($odroid, '--device', "cpu:$_"), 7, "LeNet on cpu:$_" for qw(big little);
is answer($odroid), 7, 'and unasked on all of it';

my $three = tree('three', (map { ['0x41', '0xd05', 'cpufreq/cpuinfo_max_freq', "1785600\n"] } 0 .. 3),
                 (map { ['0x41', '0xd0b', 'cpufreq/cpuinfo_max_freq', "2419200\n"] } 0 .. 2),
                 ['0x41', '0xd0b', 'cpufreq/cpuinfo_max_freq', '2956800']);
is devices($three), 'cpu, cpu:big, cpu:middle, cpu:little', 'three speeds, by clocks alone';
my $alike = tree('alike', map { ['0x41', '0xd03', 'cpu_capacity', "1024\n"] } 0 .. 3);
is devices($alike), 'cpu', 'cores that are alike are no clusters';
my $turbo = tree('turbo', map { ['0x00', '0x000', 'cpufreq/cpuinfo_max_freq', 4900000 + 100000 * $_] } 0, 1);
is devices($turbo), 'cpu', 'nor are those that differ by their best clock a little';
my $silent = tree('silent', map { ['0x41', '0xd03'] } 0 .. 3);
is devices($silent), 'cpu', 'a system that says nothing';
my $broken = tree('broken', ['0x41', '0xd03', 'cpu_capacity', "many\n"],
                  ['0x41', '0xd08', 'cpu_capacity', '']);
is devices($broken), 'cpu', 'or nonsense';
make_path("$dir/empty");
is devices("$dir/empty"), 'cpu', 'an empty tree';
is answer("$dir/empty"), 7, 'does not matter to an answer';

# what tuning records and stored plans know of a processor whose lines have no "model name"
sub identity {
    my ($root, $cache) = @_;
    local $ENV{CNNRUN_SYSFS_ROOT} = $root;
    my $said = `$build/cnnrun run -v --cache $cache $net $picture 2>&1 >/dev/null`;
    return $said;
}
my $a53 = tree('a53', map { ['0x41', '0xd03'] } 0, 1);
my $a72 = tree('a72', map { ['0x41', '0xd08'] } 0, 1);
my $own = tree('own', map { ['0x61', '0x022'] } 0, 1);
like identity($a53, "$dir/cache"), qr/miss/, 'a plan for two Cortex-A53 is made';
like identity($a53, "$dir/cache"), qr/hit/, 'and found';
like identity($a72, "$dir/cache"), qr/miss: device cpu changed: was .*Cortex-A53.* is .*Cortex-A72/,
    'but not for two Cortex-A72';
like identity($own, "$dir/cache"), qr/implementer 0x61 part 0x022/, 'a core without a name has its numbers';
done_testing;
