#!/usr/bin/perl
# cnnrun report and scripts/boards/measured.lua: measuring a simulated board gives back its description.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use FindBin;
use JSON::PP;
use Test::More;

my $root = abs_path("$FindBin::Bin/../../..");
my $build = abs_path($ENV{CNNRUN_BUILD} // "$root/build");
my $dir = tempdir(CLEANUP => 1);
my $program = "CNNRUN_OPENCL=none CNNRUN_CACHE=$dir/cache $build/cnnrun";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";

# What the program prints.
sub said { my $out = `$program @_ 2>$dir/err`; return $out }
# What it wrote to stderr.
sub err { open my $in, '<', "$dir/err"; local $/; return scalar(<$in>) // '' }
# The report in a file.
sub report { open my $in, '<', $_[0] or return {}; local $/; return decode_json(scalar <$in>) }
# Writes a file; returns its path.
sub put { my ($file, $text) = @_; open my $out, '>', "$dir/$file" or die; print $out $text; close $out; return "$dir/$file" }

# ---- a simulated board, in its own time ----
my $board = 'odroid_xu3,dry,rails.1.idle=0.5';
said("report --trust --seconds 60 --board $board --device sim:gpu4 -o $dir/sim.json");
is($?, 0, 'a simulated board is measured') or diag err();
my $sim = report("$dir/sim.json");
ok($sim->{complete} && $sim->{simulated}, 'to the end');
is(scalar @{ $sim->{nets} }, 14, 'a row for each of 14 nets');
my @done = grep { $_->{ms_median} } @{ $sim->{nets} };
cmp_ok(scalar @done, ">", 3, 'most ran: ' . scalar @done);
is(scalar(grep { !$_->{ms_median} && $_->{skipped} !~ /would take about \d+ s|no time/ } @{ $sim->{nets} }), 0, 'others say why not');
is(scalar(grep { !($_->{joules_net} > 0) || abs($_->{idle_watts} - 0.5) > 1e-6 } @done), 0, 'joules above an idle board of 0.5 W');
ok(abs($sim->{sustained}{slower} - 1) < 0.01, 'it does not get slower');
my ($conv) = grep { $_->{op} eq 'conv' } @{ $done[0]{kernels} };
ok($conv->{ms} > 0 && $conv->{flops} > 0 && $conv->{bytes} > 0, "kernels: $conv->{kernel}, $conv->{steps} steps");

my $table = said("scripts/boards/measured.lua $dir/sim.json -o $dir/mine.lua") if chdir $root;
is($?, 0, 'a table and a description are made') or diag err();
like($table, qr/^\| net \| a simulated board, simulated, sim:gpu4 \|\n\|---\|---\|\n\| shufflenet_v2 \| [\d.]+ ms, [\d.]+ J \|/, 'the table');
like(said("boards $dir/mine.lua"), qr/1 units, 1 rails/, 'cnnrun boards takes the description');
# The bench's row to compare with.
sub bench {
    my $said = said("bench scripts/nets/squeezenet_v1_0.lua --weights random:1 --device sim:gpu4 --json --board $_[0]");
    return decode_json((split /\n/, $said)[0]);
}
my ($was, $is) = (bench($board), bench("$dir/mine.lua,dry=true,simulate=true"));
cmp_ok(abs($is->{ms_median} / $was->{ms_median} - 1), '<', 0.03, "a net that was not measured: $was->{ms_median} ms, described $is->{ms_median}");
cmp_ok(abs($is->{joules} / $was->{joules} - 1), '<', 0.05, "and its joules: $was->{joules}, described $is->{joules}");

# ---- this machine ----
said("report --trust --quiet --seconds 1 --name 'a|b' --threads 1 -o $dir/own.json");
is($?, 0, 'this machine, in a second') or diag err();
is(err(), '', 'quiet');
my $own = report("$dir/own.json");
ok($own->{complete} && $own->{devices}[0]{fma_gflops} > 0, 'what its processor can do is measured');
ok((grep { $_->{ms_median} } @{ $own->{nets} }) >= 1, 'a net ran');
like(said("scripts/boards/measured.lua $dir/own.json $dir/sim.json"), qr/^\| net \| a b, cpu \| a simulated board/, 'two machines in a table');
said("scripts/boards/measured.lua $dir/own.json -o $dir/own.lua");
like(said("boards $dir/own.lua"), qr/1 units/, 'and its description');

# ---- stopped, refused ----
my $pid = fork // die;
if (!$pid) {
    open STDOUT, '>', '/dev/null';
    open STDERR, '>', "$dir/err";
    exec "exec env $program report --trust -o $dir/stopped.json --threads 1";
}
my $rows = 0;
while ($rows < 1 && waitpid($pid, 1) == 0) { $rows = @{ report("$dir/stopped.json")->{nets} // [] }; select undef, undef, undef, 0.01 }
kill INT => $pid;
waitpid $pid, 0;
is($? >> 8, 130, 'Ctrl-C stops it');
my $stopped = report("$dir/stopped.json");
ok(!$stopped->{complete} && @{ $stopped->{nets} } >= 1, 'and leaves what was measured');
like(said("scripts/boards/measured.lua $dir/stopped.json"), qr/was stopped before its end/, 'which the table says');
for (['report', qr/cnnrun report --trust/], ['report --trust --device none:3', qr/none:3: no such device/],
    ['report --trust --seconds x', qr/--seconds/], ["scripts/boards/measured.lua $root/README.md", qr/README\.md: is no report/],
    ['scripts/boards/measured.lua ' . put('rows.json', '{"report":1,"devices":[],"nets":[{"net":3}]}'), qr/rows\.json: nets\[1\]/],
    ['scripts/boards/measured.lua ' . put('none.json', '{"report":1,"devices":[],"nets":[]}') . " -o $dir/x.lua", qr/no net that ran/],
    ["scripts/boards/measured.lua $dir/sim.json $dir/own.json -o $dir/x.lua", qr/of one report; got 2/],
    ["scripts/boards/measured.lua $dir/sim.json -o $dir/x.txt", qr/ends in \.lua/]) {
    said($_->[0]);
    ok($? != 0 && err() =~ $_->[1], "refused: $_->[0]" =~ s/\Q$dir\E//gr) or diag err();
}
ok(!-e "$dir/x.lua" && !-e "$dir/x.txt", 'and nothing is written');
done_testing;
