#!/usr/bin/perl
# Built programs in the cache, with real processes: some run at once, some are killed at any moment. Later
# processes find complete programs or none. $CNNRUN_KILLS: how many are killed (6).
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use POSIX qw(:sys_wait_h);
use Test::More;
use Time::HiRes qw(sleep time);

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
my $net = abs_path(dirname($0) . '/../../../scripts/nets/lenet5.lua');
my $dir = tempdir(CLEANUP => 1);
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
delete @ENV{grep { /^CNNRUN_OPENCL/ } keys %ENV};
$ENV{POCL_CACHE_DIR} //= "$build/opencl-cache/pocl"; # else each process compiles for a minute
my @show = ("$build/cnnrun", 'show', '--device', 'opencl:0', '-vv', $net);

sub begin { # in a process of its own; stderr goes to a file
    my ($cache, $name, @words) = @_;
    my $pid = fork // die;
    return $pid if $pid;
    $ENV{CNNRUN_CACHE} = $cache;
    open STDOUT, '>', '/dev/null' or die;
    open STDERR, '>', "$dir/$name.err" or die;
    exec @words;
}
# What a run logged.
sub log_of { local (@ARGV, $/) = ("$dir/$_[0].err"); <> // '' }
sub start { # status, programs built, found, damaged
    my ($cache, $name, @words) = @_;
    waitpid begin($cache, $name, @words ? @words : @show), 0;
    my ($status, $log) = ($?, log_of($name));
    return ($status, map { my $n = () = $log =~ /$_/g; $n } 'cache miss', 'cache hit', 'damaged');
}

my ($status, $built, $found) = start("$dir/first", 'first');
plan skip_all => 'no OpenCL device' if $status >> 8 == 6;
ok $status == 0 && $built > 3 && $found == 0, "the first start builds $built programs";
is_deeply [(start("$dir/first", 'second'))[0, 1, 2]], [0, 0, $built], 'the second finds them';
my $took = time;
start("$dir/first", 'timed');
$took = time - $took;

my ($warm) = start("$dir/warm", 'warm', "$build/cnnrun", 'warm', '--device', 'opencl:0', $net);
is_deeply [$warm, (start("$dir/warm", 'warmed'))[0, 1]], [0, 0, 0], 'after warm the first start builds none';

my @pids = map { begin("$dir/many", "many$_", @show) } 1 .. 4;
my @ends = map { waitpid $_, 0; $? } @pids;
is_deeply [@ends, (start("$dir/many", 'after'))[0, 1, 3]], [0, 0, 0, 0, 0, 0, 0],
    'four at once: all come through, and leave whole programs';
my @kept = glob "$dir/many/*.clbin";
is scalar @kept, $built, 'one of each';

my ($killed, $bad) = (0, 0);
my $kills = $ENV{CNNRUN_KILLS} // 6;
for my $i (1 .. $kills) {
    my $pid = begin("$dir/killed", "killed$i", @show);
    sleep $took * (0.3 + 1.2 * $i / $kills);
    kill 9, $pid;
    waitpid $pid, 0;
    $killed += ($? & 127) == 9;
    unlink((glob "$dir/killed/*.clbin")[0] // ()) if $i % 2; # so that something is left to be written
}
my @last = start("$dir/killed", 'last');
is_deeply [@last[0, 3]], [0, 0], "after $killed of $kills were killed nothing is damaged";
is_deeply [(start("$dir/killed", 'again'))[0, 1]], [0, 0], 'and the next start finds all';
my @left = grep { !/\.(clbin|drivers|plan)$/ } glob "$dir/killed/{*,.*cnnrun-tmp}";
note "left: @left" if @left; # of a killed one, until the same program is written again
done_testing;
