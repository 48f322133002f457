#!/usr/bin/perl
# Several processes of one job by a real mpirun: the same losses on 1, 2 and 4 ranks; judging, pruning, tuning and
# sweeps; ranks that are killed; ranks on "hosts", which are network namespaces. CNNRUN_KILLS=50: so many moments.
use strict;
use warnings;
no warnings 'qw'; # commas in words are meant
use File::Temp 'tempdir';
use JSON::PP;
use POSIX ':sys_wait_h';
use Test::More;
use Time::HiRes qw(sleep time);

my $build = $ENV{CNNRUN_BUILD} || 'build';
my $data = ($ENV{CNNRUN_SHARED} || '../shared') . '/data/mnist';
plan skip_all => 'no plugin group-mpi in the build (needs libopenmpi-dev or libmpich-dev)' if !-e "$build/plugins/group-mpi.so";
plan skip_all => 'no mpirun (openmpi-bin)' if system('mpirun --version >/dev/null 2>&1') != 0;
plan skip_all => "no MNIST at $data" if !glob "$data/t10k-images-idx3-ubyte*";

my $dir = tempdir(CLEANUP => 1);
@ENV{qw(OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe)} = (1, 1, 1);
my $net = 'scripts/nets/lenet5.lua';

# The whole text of a file; empty: there is none.
sub slurp { my ($f) = @_; open my $in, '<:raw', $f or return ''; local $/; return scalar <$in> // '' }
# Writes a file, given as path and text; dies if it can't.
sub spew { my ($f, $t) = @_; open my $o, '>:raw', $f or die "$f: $!"; print $o $t; close $o }

# Begins a job whose output goes to $dir/out and $dir/err; its process id.
sub begin {
    my (@words) = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/out";
        open STDERR, '>', "$dir/err";
        open STDIN, '<', '/dev/null';
        exec @words or die;
    }
    return $pid;
}
# Runs a job; returns its status.
sub job { waitpid begin(@_), 0; return $? >> 8 || $? }
# The words before a command that start n processes.
sub ranks { my ($n) = @_; return $n > 1 ? ('mpirun', '-n', $n) : () }
# The JSON lines of the last job.
sub lines { return map { decode_json($_) } grep {/^\{/} split /\n/, slurp("$dir/out") }
my @train = ("$build/cnnrun", 'train', $net, '--data', "mnist:$data:test", '--eval', '', '--seed', 3, qw(--deterministic
    --limit 1500 --threads 1 --overwrite --json));
# How far a is from b, as a part of b.
sub apart { my ($a, $b) = @_; return abs($a - $b) / abs $b }

# ---- the same seed, the same loss ----

my %loss;
for my $n (1, 2, 4) {
    is(job(ranks($n), @train, qw(--epochs 1 -o), "$dir/$n.cnr"), 0, "an epoch on $n ranks") or diag slurp("$dir/err");
    my @told = lines();
    is(scalar @told, 2, 'one of them tells');
    $loss{$n} = $told[0]{loss};
}
for my $n (2, 4) {
    my $apart = apart($loss{$n}, $loss{1});
    cmp_ok($apart, '<=', 1e-5, sprintf 'the loss on %d ranks is that on one (%.1e apart)', $n, $apart);
}
# Batch normalisation takes the statistics of the whole batch, also where the parts differ by a sample.
spew("$dir/norm.lua", <<'LUA');
local c = require "cnnrun"
return c.net { name = "norm", input = { "data", shape = { "batch", 1, 28, 28 }, scale = 1 / 128, mean = { 128 } },
  c.conv2d { "conv", out = 6, kernel = 5, stride = 2 }, c.batch_norm { "bn" }, c.relu {}, c.dense { "ip", out = 10 }, c.softmax { "prob" } }
LUA
my %norm;
for my $case ([1], [2], [3], [2, '--local-statistics']) {
    my ($n, @local) = @$case;
    my @words = map { $_ eq $net ? "$dir/norm.lua" : $_ eq '1500' ? 320 : $_ } @train;
    is(job(ranks($n), @words, qw(--weights random:1 --batch 32 --epochs 1 --validation 0), @local, '-o', "$dir/norm$n.cnr"), 0, "batch normalisation on $n ranks @local")
        or diag slurp("$dir/err");
    my @told = lines();
    $norm{"$n@local"} = $told[0]{loss};
}
for my $n (2, 3) {
    my $apart = apart($norm{$n}, $norm{1});
    cmp_ok($apart, '<=', 1e-5, sprintf 'its loss on %d ranks is that on one (%.1e apart)', $n, $apart);
}
cmp_ok(apart($norm{'2--local-statistics'}, $norm{1}), '>', 1e-4, '--local-statistics keeps those of each part');
is(job(ranks(2), @train, qw(--epochs 1 --batch 1 -o), "$dir/x.cnr") != 0, 1, 'a batch of 1 is not for 2 ranks');
like(slurp("$dir/err"), qr/batch: 1 samples can't be shared by 2 processes/, 'and that is reported');
is(scalar(() = slurp("$dir/err") =~ /can't be shared/g), 1, 'once');
is(job(ranks(2), @train, qw(--group none --epochs 1 --limit 200 -o), "$dir/none.cnr"), 0, '--group none');
is(scalar(lines()), 4, 'has each work alone');
isnt(job("$build/cnnrun", 'eval', "$dir/1.cnr", '--data', "mnist:$data:test", '--group', 'nosuch'), 0, 'a group nobody has');
like(slurp("$dir/err"), qr/no loaded plugin has such a group/, 'is refused');

# ---- judging ----

my @judge = ("$build/cnnrun", 'eval', "$dir/1.cnr", '--data', "mnist:$data:test", qw(--limit 1001 --threads 1 --json));
job(@judge);
my ($one) = lines();
is(job(ranks(3), @judge, '-o', "$dir/report.html"), 0, 'eval on 3 ranks') or diag slurp("$dir/err");
my ($three) = lines();
is_deeply([@$three{qw(n top1 top5 confusion)}], [@$one{qw(n top1 top5 confusion)}], 'counts what one counts');
cmp_ok(apart($three->{loss}, $one->{loss}), '<', 1e-9, 'and the same loss');
cmp_ok(-s "$dir/report.html", '>', 1000, 'rank 0 writes the page');

# ---- pruning, tuning, sweeps ----

spew("$dir/few.lua", <<'LUA');
return require "lib.prune".schedule {
  layers = { ip1 = 0.1 }, rates = { 0.3 }, train = { epochs = 1, rate = 0.002 }, finish = { epochs = 1, rate = 0.002 },
}
LUA
my %kept;
for my $n (1, 2) {
    is(job(ranks($n), "$build/cnnrun", 'prune', "$dir/1.cnr", "$dir/few.lua", '--data', "mnist:$data:test", '--eval', '',
        qw(--limit 300 --no-scan --threads 1 --deterministic --json -o), "$dir/pruned$n.cnr"), 0, "prune on $n ranks") or diag slurp("$dir/err");
    $kept{$n} = [map { $_->{kept} } grep { defined $_->{kept} } lines()];
}
cmp_ok(scalar @{ $kept{1} }, '>', 1, 'steps are reported');
is_deeply($kept{2}, $kept{1}, 'leaves as much');
mkdir "$dir/cache";
is(job(ranks(2), "$build/cnnrun", 'tune', $net, '--cache', "$dir/cache", '--no-energy', '--threads', 1), 0, 'tune on 2 ranks') or diag slurp("$dir/err");
mkdir "$dir/cache1";
job("$build/cnnrun", 'tune', $net, '--cache', "$dir/cache1", '--no-energy', '--threads', 1);
is(scalar(() = slurp("$dir/cache/tuning.jsonl") =~ /\n/g), scalar(() = slurp("$dir/cache1/tuning.jsonl") =~ /\n/g),
    'has on record what one process measures');
spew("$dir/study.lua", "return function(p) return { square = p.x * p.x + p.seed } end\n");
is(job(ranks(2), "$build/cnnrun", 'sweep', "$dir/study.lua", qw(--grid x=1,2,3 --seeds 1..2 -o), "$dir/points"), 0, 'a sweep on 2 ranks')
    or diag slurp("$dir/err");
is(join(' ', slurp("$dir/points/results.jsonl") =~ /"square":(\d+)/g), '2 3 5 6 10 11', 'has all points');
is(scalar(() = slurp("$dir/out") =~ /points are done/g), 1, 'and one tells');

# ---- a rank that dies ----

# The processes of the ranks below mpirun.
sub children {
    my ($of) = @_;
    my @found;
    for my $path (glob '/proc/[0-9]*/stat') {
        my ($pid, $parent) = slurp($path) =~ /^(\d+) \(cnnrun\) \S (\d+)/ or next;
        push @found, $pid if $parent == $of;
    }
    return sort { $a <=> $b } @found;
}

my @long = (@train, qw(--epochs 2 --checkpoint-every 0.1 -o), "$dir/long.cnr");
my $takes = -time;
is(job(ranks(2), @long), 0, 'two epochs') or diag slurp("$dir/err");
$takes += time;
my $whole = (lines())[1]{loss};
my $moments = $ENV{CNNRUN_KILLS} || 3;
my ($ended, $told, $resumed, $longest, $inside) = (0, 0, 0, 0, 0);
for my $k (1 .. $moments) {
    unlink "$dir/c.ckpt";
    my $pid = begin(ranks(2), @long, '--checkpoint', "$dir/c.ckpt");
    for (1 .. 500) { my @there = children($pid); last if @there == 2; sleep 0.02 } # the machine may be busy
    sleep $takes * $k / ($moments + 1);
    my @victims = children($pid);
    kill 9, $victims[$k % 2] if @victims == 2;
    my ($begun, $over) = (time, 0);
    for (1 .. 200) { last if $over = waitpid($pid, WNOHANG); sleep 0.05 }
    my ($took, $code) = (time - $begun, $?);
    if (!$over) { kill 9, $pid, children($pid); waitpid $pid, 0 }
    if ($over && $code == 0 || @victims < 2) { diag "moment $k came too late"; next }
    $inside++;
    $longest = $took if $took > $longest;
    $ended++ if $over && $took < 5;
    $told++ if slurp("$dir/err") =~ /exited on signal 9|has ended, or hangs/;
    my $had = -e "$dir/c.ckpt"; # goes with the training's end
    my $again = $k % 2 ? 1 : 3; # another number of ranks
    my $good = job(ranks($again), @long, '--checkpoint', "$dir/c.ckpt") == 0;
    my @rows = lines();
    diag sprintf 'moment %d: %.1f s, %s, goes on %s', $k, $took, $had ? 'a checkpoint' : 'none yet', $good ? 'well' : slurp("$dir/err")
        if $ENV{CNNRUN_KILLS} || !$good;
    $resumed++ if $good && apart((grep { defined $_->{loss} } @rows)[-1]{loss}, $whole) < 1e-4;
}
cmp_ok($inside, '>', 0, "of $moments kills some came in time");
is($ended, $inside, sprintf 'the job ends within 5 s (the longest took %.1f)', $longest);
is($told, $inside, 'and tells why');
is($resumed, $inside, 'and goes on with another number of ranks, to the same loss');

# ---- hosts ----

my ($bridge, @spaces) = ("cnr$$", "cnra$$", "cnrb$$");
# True: the command succeeds; it prints nothing.
sub quiet { return system("$_[0] >/dev/null 2>&1") == 0 }
# Why namespaces that play hosts cannot be made here; nothing: they can.
sub lacks_hosts {
    return 'not root' if $> != 0;
    return 'no ip (iproute2)' if !quiet('ip -V');
    return 'no unshare' if !quiet('unshare -u true');
    return 'the kernel makes no bridges' if !quiet("ip link add $bridge type bridge");
    return 'the bridge takes no address' if !quiet("ip addr add 10.77.0.1/24 dev $bridge && ip link set $bridge up");
    for my $i (0, 1) {
        my $s = $spaces[$i];
        return 'no namespaces, or no pairs of devices between them'
            if !quiet("ip netns add $s && ip link add v$i$bridge type veth peer name eth0 netns $s && ip link set v$i$bridge master $bridge up && " .
            "ip -n $s addr add 10.77.0.1$i/24 dev eth0 && ip -n $s link set eth0 up && ip -n $s link set lo up");
    }
    return 0;
}
# Removes those namespaces.
sub remove_hosts { quiet("ip netns del $_") for @spaces; quiet("ip link del $bridge") }
SKIP: {
    my $lacks = lacks_hosts();
    if ($lacks) { remove_hosts(); skip "ranks on hosts: $lacks", 3 }
    spew("$dir/agent", "#!/bin/sh\n# agent HOST COMMAND...: as ssh, into a namespace\ncase \$1 in *.10) ns=$spaces[0];; *) ns=$spaces[1];; esac\n" .
        "shift\nexec ip netns exec \$ns unshare -u sh -c \"hostname \$ns; exec \$*\"\n");
    chmod 0755, "$dir/agent";
    my $hosts = '10.77.0.10,10.77.0.11';
    my @hosts = ('mpirun', '--host', $hosts, qw(--mca btl tcp,self --mca oob_tcp_if_include 10.77.0.0/24
        --mca btl_tcp_if_include 10.77.0.0/24 --mca plm_rsh_agent), "$dir/agent", '-n', 2);
    is(job(@hosts, @train, qw(--epochs 1 -o), "$dir/hosts.cnr"), 0, 'two hosts') or diag slurp("$dir/err");
    my ($row) = lines();
    cmp_ok(apart($row->{loss} // 0, $loss{1}), '<=', 1e-5, 'and the same loss');
    my ($bytes) = `ip -n $spaces[0] -s link show eth0` =~ /RX:[^\n]*\n\s*(\d+)/;
    cmp_ok($bytes, '>', 20e6, "gradients went through the network ($bytes bytes)");
    remove_hosts();
}
done_testing();
