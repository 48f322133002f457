#!/usr/bin/perl
# Whatever leaves while a simulated board's clock is in force says so: each line of JSON, the text, each CSV and
# picture of every command, and what scripts get. A command that is in neither list below fails.
use strict;
use warnings;
use FindBin;
use Cwd 'abs_path';
use JSON::PP;
use Test::More;

my $root = abs_path("$FindBin::Bin/../../..");
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $work = `mktemp -d`;
chomp $work;
END { chdir '/'; system 'rm', '-rf', $work if $work }
chdir $work or die;
delete $ENV{XDG_RUNTIME_DIR};
$ENV{CNNRUN_CACHE} = '';

# The text of a file; '' if it can't be read.
sub text { open my $in, '<', $_[0] or return ''; local $/; <$in> }
# Writes a file, given as path and text; dies if it can't.
sub write_file { open my $f, '>', $_[0] or die; print $f $_[1]; close $f }
my $board = '--board jetson_tk1,dry';
my $net = "$root/scripts/nets/lenet5.lua --weights random:1";

# Digits that are none: what they hold makes no difference to a board that computes nothing.
for my $class (0 .. 9) {
    mkdir "digits" unless $class;
    mkdir "digits/$class";
    write_file("digits/$class/$_.pgm", "P5 28 28 255\n" . chr(25 * $class + $_) x 784) for 0 .. 3;
}
my $data = '--data digits';

my %times = ( # commands with figures that are of the clock, or of its meters
    run => "$net digits/3/0.pgm --energy",
    train => "$root/scripts/nets/lenet5.lua $data -o trained.cnr --epochs 1 --batch 8 --eval ''",
    eval => "$net $data",
    bench => "$net --runs 1 --profile --trace trace.json",
    warm => "$net --cache kept",
    place => "$net --runs 1 --policy greedy -o placed.lua",
    tune => "$net --cache timed",
    show => "$net",
    quantize => "$net $data -o bits.cnr --limit 4 --check 4",
    devices => '',
    gauges => '',
    govern => 'edp --scene monitor --seconds 2',
    energy => 'log --seconds .2 --csv log.csv --counter counter.json',
    verify => undef, # tells right and wrong alone
    sweep => undef,  # tells seconds of processes; what points measure is marked in its tables
    prune => undef,  # trains, evaluates and profiles as the others do
);
my @timeless = qw(cache devicecheck conform import convert compile check plugins boards helper ops lua export kernelcheck completions);
my @more = ("show $net --candidates", "place $net --runs 1 --policy split", 'energy list', 'energy watch --seconds .2',
            "bench --gemm 64,64,64 --runs 1 --device sim:gpu", 'govern record -o scene.csv --scene monitor --seconds 2');

my %known = map { $_ => 1 } keys %times, @timeless;
my @commands = map { /^  ([a-z]+) {2,}/ ? $1 : () } `$build/cnnrun help commands`;
is(join(' ', grep { !$known{$_} && $_ ne 'help' && $_ ne 'options' } @commands), '', 'all commands are looked at');
cmp_ok(scalar @commands, '>', 20, 'of which there are some');

for my $line ((map { "$_ $times{$_}" } grep { defined $times{$_} } sort keys %times), @more) {
    my ($name) = $line =~ /^(\w+(?: (?:list|watch|log|record))?)/;
    $name .= ' --candidates' if $line =~ /candidates/;
    $name .= ' --gemm' if $line =~ /gemm/;
    my $out = `$build/cnnrun $line $board 2>log`;
    is($?, 0, "$name: runs") or diag(text('log'));
    like($out, qr/simulated/, "$name: the text says simulated");
    unlink $1 if $line =~ /-o (\S+)/;
    my @rows = grep { /^\{/ } split /\n/, `$build/cnnrun $line $board --json 2>log`;
    my @silent = grep { !(decode_json($_)->{simulated} || /"source":"simulated"/) } @rows;
    ok(@rows && !@silent, "$name: and each line of JSON") or diag(text('log'), @silent);
}

like(text('log.csv'), qr/\A[^\n]*,simulated\n(?:[^\n]*,true\n)+\z/, 'energy --csv: a column in each row');
ok(decode_json(text('counter.json'))->{simulated}, 'the counter');
ok(decode_json(text('trace.json'))->{simulated}, 'the trace');
like(text('placed.lua'), qr/simulated/, 'a placement');
like(text('scene.csv'), qr/simulated/, 'a recording');

# ---- scripts ----
write_file('asks.lua', <<"END");
local c = require "cnnrun"
return function()
  local net = c.load("$root/scripts/nets/lenet5.lua", { weights = "random:1" })
  local p = net:profile { runs = 1, energy = true }
  local told = { simulated = c.simulated(), time = net:time(1).simulated, profile = p.simulated, step = p[1].simulated,
                 energy = (p.energy or {}).source, evaluate = net:evaluate { data = "digits" }.simulated,
                 gauges = (c.gauges()[1] or {}).simulated }
  for name, value in pairs(told) do print(name, value) end
end
END
# What a command is asked and answers.
sub asks { my $words = shift; return { map { split /\t/ } split /\n/, `cd $work && $build/cnnrun $words --trust asks.lua 2>log` } }
my $told = asks($board);
is_deeply($told, { (map { $_ => 'true' } qw(simulated time profile step evaluate gauges)), energy => 'simulated' },
          'results of scripts') or diag(explain $told, text('log'));
is(asks('')->{simulated}, 'false', 'a real machine is none');

my $out = `$build/cnnrun $board $root/scripts/experiments/layers.lua $net --runs 1 -o out 2>log`;
like($out, qr/\A[^\n]* simulated\n(?:[^\n]* true\n)+\z/, 'an experiment: its table');
like(text('out/layers.csv'), qr/\A[^\n]*,simulated\n(?:[^\n]*,true\n)+\z/, 'and its CSV');
SKIP: {
    skip 'the plugin draw-cairo is not there', 3 if `$build/cnnrun plugins` !~ /^draw-cairo/m;
    `$build/cnnrun energy log --seconds .2 --plot power.svg $board 2>log`;
    my $live = text('power.svg');
    `$build/cnnrun $root/scripts/apps/power.lua log.csv later.svg 2>log`;
    cmp_ok(length text('later.svg'), '>', 1000, 'curves of a log are drawn without a board');
    is(text('later.svg') =~ tr/\n//, $live =~ tr/\n//, 'and look as those that were drawn on it');
    `sed 's/,[^,]*\$//' log.csv >bare.csv; $build/cnnrun $root/scripts/apps/power.lua bare.csv bare.svg 2>log`;
    isnt(text('bare.svg'), text('later.svg'), 'with a word that others lack');
}

done_testing;
