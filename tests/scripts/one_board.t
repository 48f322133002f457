#!/usr/bin/perl
# Every board has one model: the time of a convolution on each unit at each step of its clock, and the idle
# power, are the same in cnnrun bench, in a simulated scene and in lib/board.lua.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
# Writes a file; returns its path.
sub write_file { open my $f, '>', "$tmp/$_[0]" or die; print $f $_[1]; close $f; return "$tmp/$_[0]" }
# How far a number is outside of its bounds, a little wider than wanted; above 0: outside.
sub off { my ($is, $want) = @_; return abs($is - $want) - 1e-5 * abs($want) - 2e-6 } # counters tell microjoules

my $net = write_file('conv.lua', <<'END');
local c = require "cnnrun"
return c.net { input = { shape = { 1, 64, 128, 128 } }, c.conv { "x", out = 64, kernel = 3, pad = 1, bias = false } }
END
# A row for each unit and step: what Lua has of that net's layer, and what a scene is told to do.
my $lua = write_file('lua.lua', <<'END');
local board, json = require "lib.board", require "lib.json"
local products = 2 * 64 * 128 * 128 * 64 * 9
return function(args)
  local b = require("boards." .. args[1])
  if type(b) == "function" then b = b { seed = tonumber(args[2]) } end
  for i, clock in ipairs(b.clocks) do
    for step, at in ipairs(clock.steps) do
      clock.at = at.mhz
      board.machine(b, true)
      for _, unit in ipairs(b.units) do
        if unit.clock == clock.name then
          local function work(bytes) return board.work(b, unit, { op = "conv", flops = products, products = products, bytes = bytes }) end
          local seconds, joules = work(4 * (2 * 64 * 128 * 128 + 64 * 64 * 9))
          local alone, without = work(0)
          print(json.encode { clock = i, name = clock.name, mhz = at.mhz, unit = unit.name, seconds = seconds, joules = joules,
            idle = board.idle_watts(b), watts = without / alone, compute = alone - unit.launch,
            megacycles = (alone - unit.launch) * at.mhz })
        end
      end
    end
    clock.at = nil
  end
end
END
# Scenes at steps of boards: seconds and watts of each.
my $play = write_file('play.lua', <<'END');
local c, json = require "cnnrun", require "lib.json"
return function(args)
  for i = 1, #args, 3 do
    local g = c.govern { board = args[i], scene = args[i + 1], seconds = tonumber(args[i + 2]) }
    print(json.encode { seconds = g.run_seconds, watts = g.run_joules / g.run_seconds })
  end
end
END

my @boards = grep { !/measured/ && `grep -l "return board.new {" $_` } glob "$root/scripts/boards/*.lua"; # measured.lua writes such files
cmp_ok(scalar @boards, '>=', 5, 'boards');
for my $board ((map { m{(\w+)\.lua$} } @boards), 'drawn 3', 'drawn 8') {
    my ($name, $seed) = split ' ', $board;
    my @rows = map { decode_json $_ } `$build/cnnrun $lua $board`;
    my (%clock, @scenes, @bad);
    push @{ $clock{"$_->{clock} $_->{mhz}"} }, $_ for @rows;
    my $number = 0;
    for my $key (sort keys %clock) {
        my @units = @{ $clock{$key} };
        my $r = $units[0];
        # of the program: nothing goes to a device's memory and back, which is no part of the work
        my $file = write_file("b$number.lua", 'local b = require "boards.' . $name . "\"\n" . "if type(b) == 'function' then b = b { seed = @{[$seed || 'nil']} } end\n" . <<"END");
b.clocks[$r->{clock}].at, b.dry = $r->{mhz}, true
for _, u in ipairs(b.units) do u.transfer = nil end
return b
END
        for my $u (@units) {
            my $out = `$build/cnnrun bench $net --weights random:1 --board $file --device sim:$u->{unit} --runs 1 --warm 0 --json 2>&1`;
            my $is = eval { decode_json((split /\n/, $out)[0]) } // {};
            push @bad, "$u->{unit} at $u->{mhz}: $out" and next unless $is->{joules};
            push @bad, "$u->{unit} at $u->{mhz}: $is->{ms_median} ms" if off($is->{ms_median} * 1e-3, $u->{seconds}) > 0;
            my $joules = $is->{joules} - $u->{idle} * $is->{joules} / $is->{watts};
            push @bad, "$u->{unit} at $u->{mhz}: $joules J, want $u->{joules}" if off($joules, $u->{joules}) > 3e-6;
            push @bad, "idle at $u->{mhz}: $is->{idle_watts} W" if off($is->{idle_watts}, $u->{idle}) > 0;
        }
        my $scene = write_file("s$number.lua", "return { phases = { { clock = \"$r->{name}\", megacycles = $r->{megacycles}, run = true } } }");
        my $sum = 0;
        $sum += $_->{watts} for @units; # all that follow the clock work
        push @scenes, { args => "$file $scene " . 3.5 * $r->{compute}, seconds => $r->{compute}, watts => $sum + $r->{idle}, what => "$r->{name} at $r->{mhz}" };
        $number++;
    }
    my $still = write_file('still.lua', 'return { phases = { { seconds = .5, run = true } } }');
    push @scenes, { args => "$tmp/b0.lua $still 1.6", seconds => .5, watts => $rows[0]{idle}, what => 'idle' };
    my @played = map { decode_json $_ } `$build/cnnrun $play @{[map { $_->{args} } @scenes]}`;
    for my $s (@scenes) {
        my $is = shift @played // { seconds => 0, watts => 0 };
        push @bad, "scene, $s->{what}: $is->{seconds} s, want $s->{seconds}" if off($is->{seconds}, $s->{seconds}) > 0;
        push @bad, "scene, $s->{what}: $is->{watts} W, want $s->{watts}" if off($is->{watts}, $s->{watts}) > 0;
    }
    is(join("\n", @bad), '', "$board: " . @rows . ' figures of units at steps by bench and Lua, ' . @scenes . ' by scenes');
}

# Nobody has checked what a script says of a machine.
my $bad = write_file('bad.lua', <<'END');
local c = require "cnnrun"
local good = "rails=1\nrails.1.name=r\nclocks=1\nclocks.1.name=k\nclocks.1.steps=1\nclocks.1.steps.1.mhz=100\nunits=1\nunits.1.name=u\nunits.1.rail=r\n"
local function try(board, f)
  local ok, why = pcall(function() return f(c.object("simulated", { board = board })) end)
  print(ok and "nothing" or why)
end
local function none() end
return function()
try("nonsense", none)
try(good .. "units=2", none)
try(good .. "clocks.1.steps=0", none)
try(good .. "clocks.1.steps.1.mhz=-1", none)
try(good, function(m) m:takes("x", "conv", { 1, 1, 1, 0 }) end)
try(good, function(m) m:takes("u", "conv", {}) end)
try(good, function(m) m:takes("u") end)
try(good, function(m) m:set(2, 1e8) end)
try(good, function(m) m:clock(0 / 0) end)
try(good, function(m) m:pass(1) end)
try(good .. "phases=1\nphases.1.seconds=1e-12", function(m) m:pass(1e-3) end)
end
END
my @told = split /\n/, `$build/cnnrun $bad 2>&1`;
my @want = (qr/no board at all/, qr/units\.2: want the name of its rail/, (qr/clocks\.1: want steps of rising mhz/) x 2, qr/no such unit/, qr/nothing/,
    qr/not so many arguments/, (qr/there are 1 clocks/) x 2, qr/nothing is played: want a scene/, qr/nothing/);
like(shift @told // '', $_, "told: $_") for @want;
# A parameter that changes moves the rows that it is for, and no others.
my @moved = split /\n/, `$build/cnnrun $root/tests/scripts/moved.lua 2>&1`;
is(join("\n", grep { !/^(ok|1\.\.20$)/ } @moved), '', 'a parameter of each class moves the rows that it is for: ' . grep { /^ok/ } @moved);

done_testing;
