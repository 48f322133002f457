#!/usr/bin/perl
# Regions that a device claims: the example NPU, and a device with chosen claims: selection, results, stored
# plans, policies, refusals.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use JSON::PP;
use Test::More;

my $root = abs_path($0 =~ s{tests/guests/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => "no $build/tests/guests/npu/npu.so" unless -e "$build/tests/guests/npu/npu.so";
my $dir = tempdir(CLEANUP => 1);
my ($lenet, $digit) = ("$root/scripts/nets/lenet5.lua", "$root/scripts/nets/digits/three.png");

# Runs the program; returns status and output.
sub cnnrun { my $out = `$build/cnnrun @_ 2>$dir/err`; return ($? >> 8, $out) }
# Writes a file; returns its path.
sub write_to { my ($name, $what) = @_; open my $to, '>', "$dir/$name" or die $!; print $to $what; close $to or die $! }
# What it wrote to stderr.
sub said { open my $in, '<', "$dir/err" or return ''; local $/; return <$in> // '' }
# JSON rows of a command.
sub rows { my (undef, $out) = cnnrun(@_, '--json'); return map { decode_json($_) } split /\n/, $out }
# The kernel of each node, and the best classes with their scores.
sub kernels { return { map { $_->{node} ? ($_->{node} => $_->{kernel}) : () } rows("show $lenet", @_) } }
# The scores of a run.
sub scores {
    my ($out) = rows("run $lenet $digit", @_);
    return [map { [$_->{index}, sprintf '%.3f', $_->{score}] } @{$out->{top}}];
}
my $npu = "--plugin-dir $build/tests/guests/npu --device npu";
my $plain = scores();
ok @$plain && $plain->[0][0] == 3, 'the digit is a 3' or diag explain $plain;

# ---- the example ----
my $kernels = kernels($npu);
is $kernels->{conv1}, 'npu_layer+max_pool', 'convolution and pooling are one step' or diag said();
is $kernels->{pool1}, '(fused)', '... which computes the second along';
unlike $kernels->{ip1}, qr/npu/, 'what it does not claim runs elsewhere';
is_deeply scores($npu), $plain, 'the answer is that of the processor';
unlike join(' ', values %{kernels($npu =~ s/--device npu//r, '--device cpu')}), qr/npu/, '--device cpu: no region';
is kernels($npu, '--kernel conv1=reference')->{conv1}, 'reference', 'a kernel that is asked for goes before a region';
is kernels($npu, '--kernel conv1=reference')->{conv2}, 'npu_layer+max_pool', '... of its own node';
is kernels($npu, '--fallback cpu')->{conv1}, 'npu_layer+max_pool', '--fallback changes nothing while the device works';
my ($code, $out) = cnnrun("show $lenet $npu --candidates");
like $out, qr/^\* npu_layer +npu:0 +2 .* us estimate .* device: its nodes one by one would run elsewhere$/m,
    'regions are candidates, with their cost and why they are taken' or diag $out;
($code, $out) = cnnrun("kernelcheck --net $lenet $npu");
is $code, 0, 'kernelcheck --net judges the regions by their nodes' or diag $out, said();
($code, $out) = cnnrun("conform $build/tests/guests/npu/npu.so");
is $code, 0, 'conform: the device holds' or diag $out, said();
is scalar(() = $out =~ /^ok .*device npu:0: regions of \S+$/mg), 2, '... and two nets with regions' or diag $out;
# ---- measured times ----
($code, $out) = cnnrun("tune $lenet $npu --cache $dir/tuned");
is $code, 0, 'tune times regions' or diag said();
($code, $out) = cnnrun("show $lenet $npu --cache $dir/tuned --candidates");
is scalar(() = $out =~ /^\* npu_layer +npu:0 +2 .* [um]?s recorded /mg), 2, '... and plans know them' or diag $out, said();
is_deeply scores("$npu --cache $dir/tuned"), $plain, '... with the same answer';

# ---- sizes that vary: what is compiled for a range serves all of it ----
write_to('open.lua', <<'END');
local c = require "cnnrun"
return c.net { input = { "x", shape = { "batch", 3, 12, 12 } }, c.conv2d { "a", out = 4, kernel = 3 }, c.relu {},
  c.max_pool { kernel = 2, stride = 2 }, c.conv2d { "b", out = 5, kernel = 3 } }
END
write_to('ranges.lua', <<'END');
local c = require "cnnrun"
return function(args)
  local file, ranges, data, apart = args[1], { args[2] }, {}, 0
  for _, batch in ipairs { 1, 4, 16 } do
    for i = 1, batch * 432 do data[i] = (i * 37 % 101) / 50 - 1 end
    local x, y = c.tensor { shape = { batch, 3, 12, 12 }, data = data, dtype = "f32" }, {}
    for _, device in ipairs { "npu", "cpu" } do
      local net = c.load(file, { device = device, weights = "random:1", sizes = { batch = batch }, ranges = ranges })
      y[#y + 1] = net:run(x)
    end
    for i = 1, #y[1] do apart = math.max(apart, math.abs(y[1][i] - y[2][i])) end
  end
  for _, d in ipairs(c.devices()) do if d.family == "npu" then print(d.programs, apart < 1e-5) end end
end
END
for (['', '6.0'], ['batch=1..16', '2.0']) {
    my ($range, $programs) = @$_;
    ($code, $out) = cnnrun("--plugin-dir $build/tests/guests/npu --trust $dir/ranges.lua $dir/open.lua $range");
    is $out, "$programs\ttrue\n", "three batches, two layers, range '$range': $programs programs, right answers" or diag said();
}
for (['batch=1..16', 'batch=17', qr/batch: size 17 is not in its range, 1 to 16/], ['batch=3', 'batch=1', qr/batch=3: want NAME=LEAST\.\.LARGEST/],
     ['batch=5..2', 'batch=1', qr/batch=5\.\.2: want/], ['height=1..2', 'batch=1', qr/height: no such dimension/]) {
    ($code) = cnnrun("show $dir/open.lua --weights random:1 --range $_->[0] --symbol $_->[1]");
    ok $code != 0 && said() =~ $_->[2], "--range $_->[0] --symbol $_->[1] is refused" or diag $code, said();
}

my $source = do { local (@ARGV, $/) = "$root/plugins/template-npu/npu.cpp"; <> };
# The example with a mistake in it, as $dir/NAME/npu.so.
sub build_with {
    my ($name, $from, $to) = @_;
    (my $text = $source) =~ s/\Q$from\E/$to/ or die "no $from";
    mkdir "$dir/$name";
    write_to("$name/npu.cpp", $text);
    my $sets = join ' ', map { "-I$_" } "$root/core/include", "$build/include";
    return system("c++ -std=c++17 -O1 -fPIC -shared -fvisibility=hidden $sets $dir/$name/npu.cpp -o $dir/$name/npu.so 2>$dir/err") == 0;
}
SKIP: {
    skip 'no C++ compiler', 3 unless build_with('small', 'work->bytes = ', 'work->bytes = -4 + ') && build_with('wrong', 'readers == 1 && ', '') &&
        build_with('gone', 'run(const cnr_run *r, cnr_error *) {', 'run(const cnr_run *r, cnr_error *err) {
    return host->fail(err, CNR_E_DEVICE, "npu", "it is gone");');
    is_deeply scores("--plugin-dir $dir/gone --device npu --fallback cpu"), $plain, 'a device that is lost: the nodes run on the next one';
    ($code, $out) = cnnrun("conform $dir/small/npu.so");
    ok $code == 1 && $out =~ /^not ok .*device npu:0: regions of \S+: .*wrote past the end of the workspace/m, 'conform finds a workspace that is too small' or diag $out;
    ($code, $out) = cnnrun("conform $dir/wrong/npu.so");
    ok $code == 1 && $out =~ /^not ok .*device npu:0: regions of \S+: .* off by/m, 'conform finds a region that leaves out what others read' or diag $out;
}
($code, $out) = cnnrun("kernelcheck --net $lenet $npu --plugin cpu-neon");
ok $code == 6 && said() =~ /no kernel and no operator is like that/, 'nothing to judge is an error' or diag $out, said();

# ---- stored plans ----
my @origins = map { my ($o) = rows("run $lenet $digit $npu --cache $dir/cache $_"); $o->{cache} } '', '', '--weights random:3', '--weights random:3';
is_deeply \@origins, ['miss', 'hit', 'weights-replaced', 'hit'], 'regions are stored, and take other weights' or diag said();
is_deeply scores($npu, "--cache $dir/cache", '--weights random:3'), scores('--weights random:3'), '... with the right answers';

# ---- policies see regions as rows ----
write_to("$_->[0].lua", <<"END") for ['regions', 'r.takes > 1 and r.kernel == "npu_layer"'], ['none', 'r.device == "cpu" and r.kernel ~= "reference"'];
local function place(rows, seen)
  local answer = {}
  for _, r in ipairs(rows) do
    local node = seen.nodes[r.index]
    if $_->[1] and not answer[node.name] then answer[node.name] = r end
  end
  return answer
end
return { place = place }
END
(my $both = $npu) =~ s/--device npu/--devices cpu,npu/;
$kernels = kernels($both, "--policy $dir/regions.lua");
is $kernels->{conv2}, 'npu_layer+max_pool', 'a policy may pick a region' or diag said();
$kernels = kernels($npu, "--devices cpu,npu --policy $dir/none.lua");
unlike join(' ', values %$kernels), qr/npu/, '... or none' or diag explain $kernels;
is_deeply scores($both, "--policy $dir/regions.lua"), $plain, '... with the same answer';

# ---- whatever is claimed: refused, or right ----
$ENV{CNNRUN_CLAIMS} = '';
my $claims = "--plugin-dir $build/tests/guests/claims --device claims";
for (['0,1', qr/^$/], ['0,4', qr/a node outside reads/], ['1,0', qr/not ascending numbers/], ['0,0', qr/not ascending numbers/],
     ['0,99', qr/not ascending numbers/], ['-1', qr/not ascending numbers/],
     ['0,2,3', qr/a node outside reads a value of it before its last node/]) {
    $ENV{CNNRUN_CLAIMS} = $_->[0];
    ($code, $out) = cnnrun("show $lenet $claims");
    ok $code == 0 && said() =~ $_->[1] && ($out =~ /claims_all/ xor said() ne ''), "claim $_->[0]" or diag $out, said();
}
for my $net ('lenet5', 'cifar10_quick', 'squeezenet_v1_1') {
    for my $how ('all', map { "random:$_" } 1 .. 6) {
        next if $net eq 'squeezenet_v1_1' && $how !~ /[12]/;
        $ENV{CNNRUN_CLAIMS} = $how;
        ($code, $out) = cnnrun("kernelcheck --net $root/scripts/nets/$net.lua $claims");
        is $code, 0, "$net, $how: each value is what the nodes alone give" or diag $out, said();
    }
}
$ENV{CNNRUN_CLAIMS} = 'all';
($code, $out) = cnnrun("show $root/scripts/nets/squeezenet_v1_1.lua --weights random:1 $claims");
is scalar(() = $out =~ /claims_all/g), 1, 'a whole net is one region';
is scalar(() = $out =~ /\(fused\)/g), scalar(() = $out =~ /^\S+ +\S+ +\d+x/mg) - 1, '... of all its nodes' or diag $out;
$ENV{CNNRUN_CLAIMS} = '0,1;1,2;2,3';
($code, $out) = cnnrun("show $lenet $claims");
is scalar(() = $out =~ /claims_all/g), 1, 'of regions that overlap a node gets the one that saves most' or diag $out;
done_testing;
