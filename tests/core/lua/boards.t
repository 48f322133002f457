#!/usr/bin/perl
# Board files with mistakes: each is told (file, key, what is wanted), or means what a board without it means.
# 60 are drawn; CNNRUN_LONG=1 draws 500, CNNRUN_SEED=N others. And the README's table is the program's.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
my $seed = $ENV{CNNRUN_SEED} // 25;
my $count = $ENV{CNNRUN_LONG} ? 500 : 60;
my $net = "$root/scripts/nets/lenet5.lua";
# Writes a file; returns its path.
sub write_file { open my $f, '>', "$tmp/$_[0]" or die; print $f $_[1]; close $f; return "$tmp/$_[0]" }

# ---- the documentation ----

my %key = map { $_->{key} => $_ } map { decode_json $_ } `$build/cnnrun boards --json`;
my $table = '';
for my $k (map { decode_json $_ } `$build/cnnrun boards --json`) {
    my $range = defined $k->{low} ? sprintf '%s to %s', $k->{low} + 0, $k->{high} + 0 : $k->{of} ? "of `$k->{of}`" : '';
    $table .= sprintf "| `%s` | %s | %s | %s | %s | %s |\n", $k->{key}, $k->{type}, $k->{unit} // '', $range,
        $k->{required} ? 'required' : $k->{default}, $k->{help} // '';
}
my $readme = do { local (@ARGV, $/) = "$root/core/docs/boards.md"; <> };
ok(index($readme, $table) >= 0, "the README's table of keys is what cnnrun boards lists") or diag $table;

# ---- what a board does: seconds and joules of a net on each unit ----

my $script = write_file('answer.lua', <<'SCRIPT');
local c = require "cnnrun"
local function joules()
  local sum = 0
  for _, g in ipairs(c.gauges()) do
    if g.quantity == "energy" then sum = sum + g.value end
  end
  return sum
end
return function(args)
  for _, d in ipairs(c.devices()) do
    if d.name:find "^sim:" then
      local net, x = c.load(args[1], { device = d.name, weights = "random:1" }), c.tensor { shape = { 1, 1, 28, 28 }, dtype = "f32" }
      net:run { x }
      local t, j = c.now(), joules()
      net:run { x }
      print(string.format("%s %.6g %.4g", d.name, c.now() - t, joules() - j))
    end
  end
end
SCRIPT
# Runs a script on a board; returns success and output.
sub answer {
    my $file = shift;
    my $out = `$build/cnnrun --trust --board $file $script $net 2>&1`;
    return ($? == 0, $out);
}

# ---- mutants of a board: a path into it, and what is done there ----

my @boards = ('odroid_xu3', 'jetson_tk1', 'adreno_330', 'htc_one_m9', 'snapdragon_820');
my $walk = write_file('walk.lua', <<'SCRIPT');
local function walk(t, path)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(keys) do
    local at = path .. (math.type(k) == "integer" and "[" .. k .. "]" or "." .. k)
    if k ~= "parameters" and k ~= "notes" and k ~= "clock" then
      print(at, type(t[k]), type(t[k]) ~= "table" and tostring(t[k]) or #t[k])
      if type(t[k]) == "table" then walk(t[k], at) end
    end
  end
end
return function(args) walk(require("lib.board").load(args[1]), "") end
SCRIPT
my (%paths, %right);
for my $b (@boards) {
    $paths{$b} = [map { chomp; [split /\t/] } `$build/cnnrun $walk $b`];
    my ($good, $out) = answer(write_file('whole.lua', "local b = require(\"lib.board\").load \"$b\"\nb.dry = true\nreturn b\n"));
    ok($good && $out =~ /^sim:/, "$b answers") or diag $out;
    $right{$b} = $out;
}

srand $seed;
# One of the words at random.
sub pick { $_[rand @_] }
# A word with one letter wrong.
sub misspelt {
    my $k = shift;
    my $i = int rand(length($k) - 1);
    my $how = int rand 3;
    my $bad = $k;
    substr($bad, $i, 1) = '' if $how == 0;
    substr($bad, $i, 2) = reverse substr($bad, $i, 2) if $how == 1;
    substr($bad, $i, 1) .= 'q' if $how == 2;
    return $bad eq $k ? $k . 'z' : $bad;
}

# Each row: Lua code that changes the board `b`, what the error may name, and a change with the same
# effect. The last is undef if the change must be an error.
sub mutate {
    my $b = shift;
    my ($path, $type, $value) = @{pick(@{$paths{$b}})};
    my ($parent, $last) = $path =~ /^(.*)(\.\w+|\[\d+\])$/;
    my $name = $last =~ s/^\.//r;
    (my $generic = substr $path, 1) =~ s/\[\d+\]/[]/g;
    my $k = $key{$generic};
    my $named = $last =~ /^\./ ? $name : ($parent =~ /(\w+)$/)[0];
    my @ways = ('remove', 'add', 'empty text');
    push @ways, 'misspell' if $last =~ /^\./;
    push @ways, ('text', 'negative', 'nan', 'huge', 'infinite', 'list', 'true') if $type eq 'number';
    push @ways, ('number', 'table', 'renamed') if $type eq 'string';
    push @ways, ('empty', 'number', 'itself') if $type eq 'table';
    push @ways, 'duplicate' if $type eq 'table' && $value > 0;
    push @ways, 'no step', 'no step' if $name eq 'at';
    my $way = pick(@ways);
    my $set = sub { "b$path = $_[0]" };
    return ($way, $path, "b$parent" . '["' . misspelt($name) . "\"] = b$path; b$path = nil", $named) if $way eq 'misspell';
    if ($way eq 'remove') {
        my $code = $last =~ /^\[/ ? "table.remove(b$parent, " . ($last =~ /(\d+)/)[0] . ')' : $set->('nil');
        my $default = $k && !$k->{required} ? $k->{default} : undef;
        my $means = !defined $default ? undef : $default =~ /^(-?[\d.]+|false)$/ ? $set->($default)
            : $default eq 'free' ? $set->('{ gbytes = 0, seconds = 0 }') : $default eq 'nothing' && $name eq 'split' ? $set->('{ seconds = 0, joules = 0 }')
            : $default =~ /^(auto|none|its name|the highest|nothing|the unit's)$/ && $name ne 'members' ? 'b = b' : undef;
        $means = 'anything' if ($default // '') eq "the nearest class's"; # which results call extrapolated
        $means = 'anything' if $last =~ /^\[/; # another board, and a whole one, where nothing names the entry
        return ($way, $path, $code, $named, $means);
    }
    return ($way, $path, $type eq 'table' && $value == 0 ? "b$path.extra = 1" : "b.extra = 1", 'extra') if $way eq 'add';
    return ($way, $path, $set->('""'), $named, $type eq 'string' && $k && $k->{type} eq 'text' && $name ne 'op' ? 'b = b' : undef) if $way eq 'empty text';
    return ($way, $path, $set->('"7x"'), $named) if $way eq 'text';
    return ($way, $path, $set->($value == 0 ? -1 : -abs $value), $named) if $way eq 'negative';
    return ($way, $path, $set->('0/0'), $named) if $way eq 'nan';
    return ($way, $path, $set->('1e30'), $named) if $way eq 'huge';
    return ($way, $path, $set->('1/0'), $named) if $way eq 'infinite';
    return ($way, $path, $set->('{ 1, 2 }'), $named) if $way eq 'list';
    return ($way, $path, $set->('true'), $named, $type eq 'table' ? undef : undef) if $way eq 'true';
    return ($way, $path, $set->('3'), $named) if $way eq 'number';
    return ($way, $path, $set->('{}'), $named) if $way eq 'table';
    return ($way, $path, $set->('"zz"'), $named, $k && $k->{type} =~ /^(text|true, false)/ ? 'anything' : $name eq 'name' ? 'named' : undef) if $way eq 'renamed';
    return ($way, $path, $set->('{}'), $named, $name eq 'transfer' ? $set->('{ gbytes = 0, seconds = 0 }') : undef) if $way eq 'empty';
    return ($way, $path, "b$path.again = b$path", $named) if $way eq 'itself';
    return ($way, $path, $set->($value + .5), $named) if $way eq 'no step';
    return ($way, $path, "table.insert(b$path, b$path\[1])", $named) if $way eq 'duplicate';
}

my (%told, %same, @bad);
for my $i (1 .. $count) {
    my $b = pick(@boards);
    my ($way, $path, $code, $named, $means) = mutate($b);
    my $head = "local b = require(\"lib.board\").load \"$b\"\nb.dry = true\n";
    my $file = write_file("m$i.lua", "$head$code\nreturn b\n");
    my ($good, $out) = answer($file);
    my $what = "$i: $b$path, $way ($code)";
    if (!$good) {
        my $names = $out =~ /m\d+\.lua/ && $out =~ /\Q$named\E|name|members|rail|unit|clock|step/;
        my $wants = $out =~ /want|unknown key|missing|can't be|more than/;
        push @bad, "$what: told badly: $out" unless $names && $wants && length $out < 500;
        $told{$way}++;
    } else {
        my $expected = $out;
        if (!defined $means) { push @bad, "$what: neither told nor meant: $out"; }
        elsif ($means eq 'named') { $expected = ''; push @bad, "$what: a name that was referred to" if $out =~ /error/; }
        elsif ($means ne 'anything') {
            ($good, $expected) = answer(write_file("e$i.lua", "$head$means\nreturn b\n"));
            push @bad, "$what: not what it means: $out against $expected" if !$good || $out ne $expected;
        }
        $same{$way}++;
    }
    unlink glob "$tmp/[em]$i.lua";
}
is(scalar @bad, 0, "$count boards with mistakes (seed $seed): each is told or means the same") or diag join "\n", @bad;
my $sum = 0;
$sum += $_ for values %told;
cmp_ok($sum, '>=', $count / 2, 'most are reported');
diag "told: ", join(', ', map { "$_ $told{$_}" } sort keys %told), "; same: ", join(', ', map { "$_ $same{$_}" } sort keys %same) if $ENV{CNNRUN_LONG};

# ---- files that are no boards ----

for (['return {}', qr/units: missing/], ['return { units = {} }', qr/units: want a list of 1 to/], ['', qr/want a table/], ['return { units', qr/'}' expected/],
     ['local t = { name = "a" } t.notes = t return t', qr/in each other/],
     ['return { clock = "simulatd", units = { { name = "a", rail = "r", host = true, launch = 0, power = { static = 1 }, classes = { { op = "*", gflops = 1 } } } }, rails = { { name = "r" } } }',
      qr/no plugin brought a clock of that name; did you mean simulated/],
     ['local b = require("lib.board").load "odroid_xu3" b.units[4].members = { "cpu" } return b', qr/units\.4\.members\.1: want the name of one of units above/]) {
    my ($good, $out) = answer(write_file('odd.lua', $_->[0]));
    ok(!$good && $out =~ $_->[1], "told: $_->[0]") or diag $out;
}
like(`$build/cnnrun boards odroid_xu3,units.1.launch=-1 2>&1`, qr/odroid_xu3: units\.1\.launch: want a number in s, 0 to 60, got -1/, 'a value of the command line is checked, too');
like(`$build/cnnrun govern default --board odroid_xu3,clocks.1.at=601 --scene monitor 2>&1`, qr/clocks\.1\.at: want the mhz of one of its steps: 177, /, 'and where a board is played');

done_testing;
