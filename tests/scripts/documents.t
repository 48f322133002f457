#!/usr/bin/perl
# The documents' commands: every row says what it is, rows and orders add up, CSV and figures are written, and a
# figure is the same through every door: a board's sums, bench, place, govern, the fit and the documents.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $root = abs_path($0 =~ s{tests/scripts/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $tmp = tempdir(CLEANUP => 1);
my $draws = `$build/cnnrun plugins` =~ /^draw-cairo/m;
my $folder = "$root/scripts/documents";

# The text of a file; '' if it can't be read.
sub text { open my $in, '<', $_[0] or return ''; local $/; <$in> }
# Writes a file; returns its path.
sub write_file { open my $f, '>', "$tmp/$_[0]" or die; print $f $_[1]; close $f; return "$tmp/$_[0]" }
# A test: both numbers agree.
sub near { my ($is, $want, $what) = @_; ok(abs($is - $want) <= 1e-5 * abs($want) + 2e-6, $what) or diag("$is, want $want") }

# ---- the commands ----

my %kinds = map { $_ => 1 } 'measured', 'simulated: fitted', 'simulated: predicted', 'no number in the text', "can't";
my %by;
for my $name ('w18', 'cd', 's16', 'x19') {
    my @lines = map { decode_json $_ } `$build/cnnrun --trust $folder/$name.lua --quick --device none --json @{[$draws ? "-o $tmp/$name" : '']} 2>$tmp/log`;
    is($?, 0, "$name: it runs") or diag(text("$tmp/log"));
    my @rows = grep { $_->{row} } @lines;
    my ($summary) = grep { $_->{counts} } @lines;
    is(join(' ', map { $_->{row} } grep { !$kinds{ $_->{kind} // '' } } @rows), '', "$name: each row says what it is: " . @rows);
    is(scalar(grep { $_->{kind} eq "can't" && !length($_->{why} // '') } @rows), 0, 'and why it can\'t');
    my $sum = 0;
    $sum += $_ for values %{ $summary->{counts} };
    is($sum + $summary->{apart}, scalar(grep { defined $_->{document} } @rows), 'the summary counts each row with a number');
    is($summary->{hold}, scalar(grep { $_->{claim} && $_->{holds} } @lines), 'and each order that holds');
    $by{$name}{"$_->{experiment}, $_->{row}, $_->{quantity}"} = $_ for @rows;
    next if !$draws;
    is(() = text("$tmp/$name/$name.csv") =~ /\n/g, @rows + 1, 'a line of the CSV for each');
    my @figures = glob "$tmp/$name/*.svg";
    ok($name eq 'x19' || @figures >= 1, "figures: " . @figures);
}
if ($draws) {
    my @want = map { "fig-$_" } qw(3-12 3-20 3-21 4-1 4-4 4-5 4-6 4-7 5-3 5-4 5-7 5-8);
    is(join(' ', grep { !-s "$tmp/w18/w18-$_.svg" } @want), '', "W18's figures are drawn: @want");
    is(join(' ', grep { !-s "$tmp/s16/s16-$_.svg" } qw(fig-3-4 table-3-2 table-3-3)), '', "and S16's that need no device");
}
for my $r ('fig 4.7, greedy, joules', 'fig 4.7, greedy, watts', 'table 3.6, LeNet-5 on the CPU, EDP', 'table 5.1, fixed 480, watts') {
    my $row = $by{w18}{$r};
    ok($row->{kind} eq 'simulated: predicted' && abs $row->{error} < .03, "$r: predicted within 3%") or diag explain $row;
}
is($by{w18}{'fig 4.7, our work, joules'}{kind}, 'simulated: fitted', 'what was fitted is called so');
is($by{w18}{'4.4, device set, devices'}{ours}, 'gpu4 gpu2', 'the device set is the thesis\'');

like(`$build/cnnrun --board odroid_xu3,dry $folder/cd.lua --quick 2>&1`, qr/--board stands behind the script's name/, 'times of a simulated board are not told as measured');
like(`$build/cnnrun $folder/w18.lua --quick --device none --board nothing 2>&1`, qr/nothing/, 'a board that is not there is reported');

# ---- what wants this machine: X19's phases and tables; LeNet-5 pruned on MNIST ----

SKIP: {
    skip 'draw-cairo was not built', 1 unless $draws;
    my %x = map { ("$_->{row}, $_->{quantity}" => $_) } grep { $_->{row} }
        map { decode_json $_ } `$build/cnnrun --trust $folder/x19.lua --quick --device cpu --json -o $tmp/x19 2>$tmp/log`;
    for my $r ('SqueezeNet, a hit over compiled, ratio', 'SqueezeNet, compiling, of a first start, ratio', 'SqueezeNet, int8, MB', 'SqueezeNet, int8, pictures a second') {
        ok($x{$r}{kind} eq 'measured' && $x{$r}{ours} > 0, "$r: measured") or diag(explain($x{$r}), text("$tmp/log"));
    }
    cmp_ok($x{'SqueezeNet, weights replaced, seconds'}{ours} // 0, '>', 0, 'a start with weights replaced');
    is($x{'ResNet-18, int8, MB'}{why}, '--quick', 'a net that is left out');
    is(join(' ', grep { !-s "$tmp/x19/x19-table-6-$_.svg" } 2 .. 4), '', 'and all tables as pictures');
    my $mnist = ($ENV{CNNRUN_SHARED} // "$root/../shared") . '/data/mnist';
    skip 'no MNIST in ../shared/data', 1 unless -d $mnist;
    my %w = map { ("$_->{row}" => $_) } grep { $_->{row} }
        map { decode_json $_ } `$build/cnnrun --trust $folder/w18.lua --quick --device cpu --board none --mnist $mnist --json -o $tmp/w18 2>$tmp/log`;
    my $cut = $w{'LeNet-5 with ip2 at 5%, not trained on'};
    ok(abs $cut->{error} < .15, "LeNet-5 with ip2 at 5%: $cut->{ours}%, the thesis $cut->{document}") or diag(text("$tmp/log"));
    is(join(' ', grep { !-s "$tmp/w18/w18-$_.svg" } qw(fig-3-14)), '', 'with its curve');
}

# ---- the documents' own kernels, timed one against another ----

my $steps = write_file('steps.lua', <<'END');
local c, json, steps = require "cnnrun", require "lib.json", require "documents.steps"
return function()
  local rows = {}
  local d = { devices = { "cpu" }, options = { quick = true }, row = function(_, r) print(json.encode(r)) end,
              keep = function(_, _, measure) return measure() end }
  local net = c.net { name = "pool", input = { "x", shape = { 1, 4, 64, 64 } }, c.maxpool { kernel = 3, stride = 1 } }
  local own, what = steps(d), { "pooling", net, experiment = "fig 3.5" }
  own:gain(what, "twice the same", 1, { "cpu", "max_pool=max_pool_f32_w18" }, { "cpu", "max_pool=max_pool_f32_w18" })
  own:gain(what, "no GPU", 12, { "cpu", "max_pool=max_pool_f32_w18" }, { "gpu", "max_pool=max_pool_f32_w18_gpu" })
  own:gain(what, "no kernel", 12, { "cpu", "max_pool=max_pool_f32_none" }, { "cpu", "max_pool=max_pool_f32_w18" })
end
END
my %step = map { $_->{row} => $_ } map { decode_json $_ } `cd $tmp && $build/cnnrun $steps 2>$tmp/log`;
is($step{'twice the same'}{ours}, 1, 'a kernel gains nothing over itself, and is timed once') or diag(text("$tmp/log"));
cmp_ok($step{'pooling by max_pool_f32_w18'}{ours} // 0, '>', 0, 'its own time is a row');
is($step{'no GPU'}{why}, 'no OpenCL device here', 'a device that is not there is reported');
like($step{'no kernel'}{why}, qr/max_pool_f32_none/, 'and a kernel that is not');

my $kept = write_file('kept.lua', <<'END');
local c, document = require "cnnrun", require "documents.document"
return function(words)
  -- Measures "a" as `value`, unless it is kept; then stops, or ends.
  local function run(value, quick, stops)
    local good, d = pcall(document.run, { name = "one" }, { device = "none", board = "none", output = words[1], quick = quick }, function(d)
      print(d:keep("a", function() return { value } end)[1])
      if stops then error("interrupted", 0) end
    end)
    if good then d.kept:done() end
  end
  run(1, false, true)
  run(2, false, true)
  run(3, true, true)
  run(4, true, false)
  run(5, true, false)
end
END
mkdir "$tmp/kept";
is(join(' ', split /\n/, `$build/cnnrun $kept $tmp/kept 2>$tmp/log`), '1 1 3 3 5',
   'what was measured before an interruption is kept, unless the options differ or a run ended') or diag(text("$tmp/log"));
like(text("$tmp/log"), qr/taken from an interrupted run: 1 measurements/, 'which is said');

my $total = write_file('total.lua', <<'END');
local document = require "documents.document"
return function()
  local function with(name, ours, ...)
    local claims = { ... }
    return document.run({ name = name }, { device = "none", board = "none" }, function(d)
      d:row { experiment = "1", row = name, quantity = "s", document = 2, ours = ours, kind = document.predicted }
      for _, holds in ipairs(claims) do d:claim("1", name, holds) end
    end)
  end
  print(document.total_text { with("a", 3, true, false), with("b", 2, true) })
end
END
like(`$build/cnnrun $total 2>&1`, qr/^all: 2 rows with a number: .* worst 50% \(a, s\); orders that hold: 2 of 3 \(67%\)$/,
     'the sum of all documents counts rows, errors and orders');

# ---- one number, every door ----

my @fit = map { decode_json $_ } `$build/cnnrun $root/scripts/boards/fit.lua --json adreno_330`;
my %fit = map { $_->{row} => $_ } grep { $_->{row} } @fit;
# The first row of a bench, decoded; dies where there is none.
sub bench { my ($out) = split /\n/, `$build/cnnrun bench @_ --runs 1 --warm 0 --json 2>&1`; my $r = eval { decode_json $out } or die $out; return $r }
my $product = bench('--gemm 512,512,1024 --board odroid_xu3,library=ch3,dry --device sim:gpu4');
is($product->{extrapolated} ? 1 : 0, 0, 'a product of matrices has a class of its own');
my $seconds = $by{w18}{'fig 3.2, product on the GPU, seconds'}{ours};
near($product->{ms_median} * 1e-3, $seconds, "the float4 product: bench, and the document ($seconds s)");
my $watts = $by{w18}{'fig 3.2, product on the GPU, watts'}{ours};
near($watts * $seconds ** 2, $by{w18}{'table 3.1, float4 product on the GPU, EDP'}{ours}, 'and the recipes');
near($watts * $seconds ** 2, .729, 'which is the thesis\' EDP');

my $alexnet = write_file('alexnet.lua', text("$folder/alexnet.lua"));
for (['gpu4', 'fig 3.12, AlexNet on the GPU, seconds'], ['cpu', 'fig 3.11, AlexNet on the CPU, seconds']) {
    my ($unit, $row) = @$_;
    my $is = bench("$alexnet --weights random:1 --board odroid_xu3,library=ch3,dry --device sim:$unit");
    near($is->{ms_median} * 1e-3, $by{w18}{$row}{ours}, "AlexNet on $unit: bench, and the document ($by{w18}{$row}{ours} s)");
    near($is->{joules} / $is->{ms_median} * 1e3, $by{w18}{'fig 3.11, AlexNet on the GPU, watts'}{ours}, 'and its watts') if $unit eq 'gpu4';
}

# FastPoorNet: convolutions on the GPU, the rest on the processor, by place and by the fit
my $poor = "$root/scripts/nets/fastpoornet.lua --weights random:1 --board adreno_330,dry";
my $policy = write_file('convolutions.lua', <<'END');
return { place = function(_, seen)
  local answer = {}
  for _, node in ipairs(seen.nodes) do
    if not node.with then answer[node.name] = node.operator == "conv" and "sim:gpu" or "sim:cpu" end
  end
  return answer
end }
END
my ($measured) = grep { ($_->{row} // '') eq 'measured' } map { decode_json $_ } grep { /^\{/ } `$build/cnnrun place $poor --devices sim:cpu,sim:gpu --policy $policy --runs 1 --json 2>&1`;
my $cpu = bench("$poor --device sim:cpu")->{ms_median} * 1e-3;
near($cpu, $fit{'S16 table 3.1, FastPoorNet on the CPU, seconds'}{ours}, "FastPoorNet on the CPU: bench, and the fit ($cpu s)");
my $with = $fit{'S16 3.4, FastPoorNet with convolutions on the GPU, seconds'}{ours};
ok($measured && abs($measured->{seconds} / $with - 1) < .01, "convolutions on the GPU: place within 1% of the fit's $with s")
    or diag explain $measured;
my $split = write_file('poor.lua', text("$root/scripts/nets/fastpoornet.lua") =~ s/return c\.net \{/return c.net { place = { ["conv*"] = "sim:gpu", ["relu*"] = "sim:gpu", ["*"] = "sim:cpu" },/r);
my $run = bench("$split --weights random:1 --board adreno_330,dry --devices sim:cpu,sim:gpu");
ok(abs($run->{ms_median} * 1e-3 / $with - 1) < .01, "and bench within 1% of the fit's $with s") or diag explain $run;

# the monitor at 480 MHz: played, and the fit's sums
my @played = map { decode_json $_ } grep { /^\{/ } `$build/cnnrun govern fixed,at=480 --scene monitor --seconds 60 --json 2>&1`;
my ($is) = grep { defined } map { $_->{run_seconds} } @played;
near($by{w18}{'table 5.1, fixed 480, seconds'}{ours}, $is, "the monitor at 480 MHz: govern, and the document ($is s)");

# a parameter changed: rows that it is for move, others don't
my $changed = bench("$alexnet --weights random:1 --board odroid_xu3,library=ch3,dry,units.1.classes.1.gflops=9 --device sim:gpu4");
near($changed->{ms_median} * 1e-3, $by{w18}{'fig 3.12, AlexNet on the GPU, seconds'}{ours}, 'the rate of products moves no convolution');
$changed = bench('--gemm 512,512,1024 --board odroid_xu3,library=ch3,dry,units.1.classes.1.gflops=9 --device sim:gpu4');
cmp_ok($changed->{ms_median}, '<', 100, 'but the product');

# devices, shares and frequencies together: never worse than one after the other, and what is written runs so
my $joint = "$root/scripts/place/joint.lua nets.lenet5";
my %choice = map { $_->{choice} => $_ } map { decode_json $_ } `$build/cnnrun $joint --json -o $tmp/joint`;
cmp_ok($choice{joint}{edp}, '<', .98 * $choice{place_then_govern}{edp}, 'joint: less EDP than placing, then choosing frequencies');
my $held = bench("$root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3,dry --devices sim:gpu4,sim:gpu2,sim:cpu --policy $tmp/joint/place.lua --governor $tmp/joint/hold.lua");
ok(abs($held->{edp} / $choice{joint}{edp} - 1) < .03, 'and the simulator takes what was chosen') or diag "$held->{edp}, $choice{joint}{edp}";

done_testing;
