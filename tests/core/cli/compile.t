#!/usr/bin/perl
# cnnrun compile: a net, its plan and its prepared weights in one file, which runs by itself, says what does not fit on
# another machine and plans anew there, and is refused when it is damaged.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use JSON::PP;
use Test::More;

my $root = abs_path($0 =~ s{tests/core/[^/]*/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $shared = abs_path(($ENV{CNNRUN_SHARED} // "$root/../shared") . '/data');
my $dir = tempdir(CLEANUP => 1);
my $nets = "$root/scripts/nets";
my $three = "$nets/digits/three.png";
delete @ENV{qw(MODEL_CACHE_DISABLE MODEL_CACHE_MAXSIZE)};
$ENV{CNNRUN_CACHE} = '';
$ENV{HOME} = $dir; # what devices' plugins keep goes there

sub cnnrun { # exit code, stdout, stderr
    my $out = `$build/cnnrun @_ 2>$dir/err`;
    my $code = $? >> 8;
    return ($code, $out, bytes("$dir/err"));
}
# The bytes of a file; '' if it can't be read.
sub bytes { open my $f, '<:raw', shift or return ''; local $/; return <$f> // '' }
# Writes bytes to a file, given as path and text; dies if it can't.
sub write_to { my ($to, $text) = @_; open my $f, '>:raw', $to or die "$to: $!"; print $f $text; close $f }
sub answer { # all scores, as decoded
    my ($code, $out, $err) = cnnrun('run --json --top 1000', @_, $three);
    return { error => "$code: $err" } if $code;
    my $json = decode_json($out);
    delete $json->{ms};
    return $json;
}

# ---- the same answers, to the last digit ----
my $light = "$shared/onnx-light/light_squeezenet.onnx";
my @cases = (
    ['lenet5', "$nets/lenet5.lua"],
    ['made', "$nets/cifar10_quick.lua", '--weights random:1'],
    ['halves', "$nets/squeezenet_v1_1.lua", '--weights random:2', '--weights-type fp16'],
    ['forced', "$nets/lenet5.lua", '--kernel conv1=reference', '--no-rewrite fuse'],
    ['bound', "$nets/mobilenet_v1.lua", '--weights random:3', '--memory 16M', '--deterministic']);
push @cases, ['policy', "$nets/lenet5.lua", '--policy fastest'],
    ['board', "$nets/lenet5.lua", '--board odroid_xu3', '--device sim:gpu4'];
push @cases, ['light', $light] if -e $light;
for (@cases) {
    my ($name, @words) = @$_;
    my ($code, $out, $err) = cnnrun('compile --json', @words, "-o $dir/$name.cnrp");
    is $code, 0, "$name: compiled" or diag $err;
    my $told = decode_json($out);
    ok $told->{model_bytes} + $told->{blob_bytes} < -s "$dir/$name.cnrp" && $told->{blobs} + ($name eq 'board') > 0,
        '... net and blobs'; # a simulated device keeps none
    my $plain = answer(@words);
    my $compiled = answer("$dir/$name.cnrp", $name eq 'board' ? '--board odroid_xu3' : ());
    is delete $compiled->{cache}, 'hit', '... its own plan is followed' or diag explain $compiled;
    delete $plain->{warnings}, delete $compiled->{warnings};
    is_deeply $compiled, $plain, '... the same answer, with no option given again';
}
SKIP: { skip "no $light", 1 unless -e $light; pass 'an ONNX model, too' }
is_deeply [map { s{.*/}{}r } glob "$dir/*.programs $dir/.*tmp"], [], 'nothing is left beside the files';
my ($code, $out, $err) = cnnrun("run -v $dir/lenet5.cnrp $three");
like $err, qr/lenet5\.cnrp: hit$/m, '-v tells';

# ---- all that read nets ----
is((cnnrun("check $dir/lenet5.cnrp"))[0], 0, 'check finds it sound');
like +(cnnrun("show $dir/lenet5.cnrp"))[1], qr/^conv1 .*\n(?:.*\n)*ip2 /m, 'show';
cnnrun("convert $dir/lenet5.cnrp -o $dir/again.cnr");
is_deeply answer("$dir/again.cnr"), answer("$nets/lenet5.lua"), 'convert takes the net out of it';
is_deeply answer("$nets/lenet5.lua --weights $dir/lenet5.cnrp"), answer("$nets/lenet5.lua"), 'weights of another net';
cnnrun("convert $nets/lenet5.lua --weights random:9 -o $dir/other.cnr");
my $other = answer("$dir/lenet5.cnrp --weights $dir/other.cnr");
like delete $other->{cache_why} // '', qr/^\d of \d blobs are prepared again/, 'other weights: replaced inside the plan';
is delete $other->{cache}, 'weights-replaced', '... as told';
is_deeply $other, answer("$dir/other.cnr"), '... the answer is theirs';
write_to("$dir/main.lua", <<~'LUA');
    local c = require "cnnrun"
    return function(args)
        local net = c.load(args[1])
        for i, best in ipairs(net:picture(args[2]):topk(3)) do print(("%d %a"):format(best.index, best.score)) end
    end
    LUA
my %script = map { $_ => (cnnrun("-v $_ $dir/main.lua $dir/lenet5.cnrp $three"))[2] } '', '--trust';
my @scores = map { (cnnrun("$_ $dir/main.lua $dir/lenet5.cnrp $three"))[1] } '', '--trust';
ok $scores[0] && $scores[0] eq $scores[1], 'from a script' or diag explain \@scores, \%script;
ok $script{'--trust'} =~ /: hit$/m && $script{''} !~ /: hit$/m, '... which follows the plan if it is trusted'
    or diag explain \%script;

# ---- another machine, another wish ----
my @others = (['--threads 1', qr/threads changed: was 0, is 1: planned anew/, 'stale']);
my ($isa) = (cnnrun('devices'))[1] =~ /^\s*isa\s+(\S+)/m;
push @others, ['--cpu-isa avx2', qr/device cpu changed: was .*$isa.*, is .*avx2.*: planned anew/, 'stale']
    if ($isa // '') eq 'avx512';
for (@others, ['--no-rewrite fuse', qr/options changed: was.*, is.*no_rewrite=fuse.*: planned anew/, 'stale']) {
    my ($words, $why, $cache) = @$_;
    ($code, $out, $err) = cnnrun("run --json $words $dir/lenet5.cnrp $three");
    ok $code == 0 && $err =~ /lenet5\.cnrp: stale: $why/, "$words: what does not fit is told" or diag "$code: $err";
    my ($plain) = (cnnrun("run --json $words $nets/lenet5.lua $three"))[1];
    $_ = decode_json($_) for $out, $plain;
    is_deeply [$out->{cache}, $out->{top}], [$cache, $plain->{top}], '... and it is planned anew';
}
cnnrun("compile $nets/lenet5.lua --kernel conv1=conv_f32_gemm -o $dir/gemm.cnrp");
($code, $out, $err) = cnnrun("run $dir/gemm.cnrp --skip-plugin cpu-neon --hang-ms 300000 $three");
SKIP: {
    skip 'no device is left', 2 if $err =~ /no device:/;
    like $err, qr/conv_f32_gemm.*: planned without the kernels that it forces/, 'a forced kernel that is not there: told';
    ok $code == 0 && $out =~ /^\s+3 100/m, '... and another runs the node' or diag "$code: $err";
}
my $text = bytes("$dir/lenet5.cnrp");
SKIP: {
    skip 'root trusts root alone', 2 if $> != 0 && !-o "$dir/lenet5.cnrp";
    write_to("$dir/open.cnrp", $text);
    chmod 0666, "$dir/open.cnrp";
    ($code, $out, $err) = cnnrun("run $dir/open.cnrp $three");
    ok $code == 0 && $err =~ /open\.cnrp: stale: can be written by others/, 'whom others can write is not followed'
        or diag "$code: $err";
    like $out, qr/^\s+3 100/m, '... but planned anew';
}

($code, $out, $err) = cnnrun("run $dir/board.cnrp $three");
like $err, qr/sim:gpu4: no such device; .* runs on cpu\n.*stale: options changed/, "a board's device that is not there is told";
ok $code == 0 && $out =~ /^\s+3 100/m, '... and the net runs on the host' or diag "$code: $out";

# ---- a device that compiles: PoCL, say ----
SKIP: {
    my ($device) = (cnnrun('devices'))[1] =~ /^(opencl:0) /m;
    skip 'no OpenCL device', 6 unless $device;
    my $patient = '--hang-ms 300000'; # a busy machine compiles for long
    ($code, $out, $err) = cnnrun("compile --json $nets/lenet5.lua --device $device $patient -o $dir/cl.cnrp");
    cmp_ok decode_json($out || '{}')->{programs} // 0, '>', 0, "$device: its programs are in the file" or diag $err;
    system "rm -rf $dir/.cache";
    ($code, $out, $err) = cnnrun("run -v $patient $dir/cl.cnrp $three");
    like $err, qr/cl\.cnrp: hit$/m, '... its plan is followed';
    like $err, qr/\d programs from the cache, 0 built/, '... and nothing is compiled' or diag $err;
    my $compiled = answer("$dir/cl.cnrp $patient");
    delete $compiled->{cache};
    is_deeply $compiled, answer("$nets/lenet5.lua --device $device $patient"), '... the same answer';
    local $ENV{OCL_ICD_VENDORS} = "$dir/none";
    skip 'the loader finds its drivers elsewhere', 2 if (cnnrun('devices'))[1] =~ /^$device /m;
    ($code, $out, $err) = cnnrun("run $dir/cl.cnrp $three");
    like $err, qr/$device: no such device; .* runs on cpu/, 'where the device is not there, that is told';
    ok $code == 0 && $out =~ /^\s+3 100/m, '... and the net runs on the host' or diag "$code: $out";
}

# ---- refused ----
write_to("$dir/tiny.lua", <<~'LUA');
    local c = require "cnnrun"
    return c.net {
        name = "tiny",
        input = { "data", shape = { "batch", 1, 8, 8 }, channels = "gray" },
        c.conv2d { "conv1", out = 8, kernel = 3 }, c.relu { "relu1" },
        c.dense { "ip1", out = 10 }, c.softmax { "prob" },
    }
    LUA
($code, $out, $err) = cnnrun("compile $dir/tiny.lua --weights random:1 -o $dir/tiny.cnrp");
is $code, 0, 'a small net' or diag $err;
my $tiny = bytes("$dir/tiny.cnrp");
# A test: the file is refused, with this reason.
sub refused {
    my ($file, $why, $name) = @_;
    my ($code, $out, $err) = cnnrun("run $file $three");
    ok $code == 4 && $err =~ /\Q$file\E: $why/, $name or diag "$code: $err";
}
for ([0, "\x88", 'not a \.cnr file, nor a compiled model', 'another magic'],
     [8, pack('V', 4), 'of the newer file version 4, want 3', 'a newer one'],
     [8, pack('V', 2), 'of the older file version 2, want 3: it has to be made again', 'an older one'],
     [100, 'x', 'damaged: the digest of header and directory is wrong', 'another name'],
     [8 + 1024 + unpack('Q', substr $tiny, 24, 8), 'x', 'damaged: bytes between its blobs are not zero', 'bytes that nobody reads']) {
    my ($at, $bytes, $why, $name) = @$_;
    my $changed = $tiny;
    substr($changed, $at, length $bytes) = $bytes;
    write_to("$dir/bad.cnrp", $changed);
    refused("$dir/bad.cnrp", $why, $name);
}
for my $length (0, 50, 4096, length($tiny) - 1) {
    write_to("$dir/bad.cnrp", substr $tiny, 0, $length);
    refused("$dir/bad.cnrp", '', "cut to $length bytes");
}
cnnrun("warm $nets/lenet5.lua --cache $dir/cache");
my ($plan) = glob "$dir/cache/*.plan";
refused($plan, 'is a stored plan without its net: want what "cnnrun compile" wrote', 'a plan of the cache');

# Every byte of the header and 2,000 places more: check refuses each; a run refuses it or gives the right answer, since it
# reads no weights that were prepared.
srand 31;
mkdir "$dir/bad" or die;
my @places = (0 .. 127, map { 128 + int rand(length($tiny) - 128) } 1 .. 2000);
for my $i (0 .. $#places) {
    my $changed = $tiny;
    substr($changed, $places[$i], 1) ^= chr(1 << int rand 8);
    write_to(sprintf("$dir/bad/%04d.cnrp", $i), $changed);
}
($code, $out) = cnnrun("check --json $dir/bad/*.cnrp");
my @sound = grep { $_->{ok} } map { $_->{file} ? $_ : () } map { decode_json($_) } split /\n/, $out;
is_deeply [map { $places[$_->{file} =~ s{.*/(\d+).*}{$1}r] } @sound], [], 'check refuses every damaged copy';
write_to("$dir/all.lua", <<~'LUA');
    local c = require "cnnrun"
    local data = {}
    for i = 1, 64 do data[i] = (i * 37 % 64) / 64 end
    local function answer(path)
        local words, out = {}, c.load(path):run { c.tensor { shape = { 1, 1, 8, 8 }, data = data } }
        for i = 1, #out do words[i] = ("%a"):format(out[i]) end
        return table.concat(words, " ")
    end
    return function(args)
        local right, refused, wrong = answer(args[1]), 0, 0
        for i = 0, tonumber(args[3]) do
            local good, text = pcall(answer, ("%s/%04d.cnrp"):format(args[2], i))
            local said = tostring(text)
            if not good and said:find("%.cnrp") then refused = refused + 1
            elseif not good or text ~= right then wrong = wrong + 1; print(i, text) end
        end
        print(("%d refused, %d wrong"):format(refused, wrong))
    end
    LUA
($code, $out, $err) = cnnrun("--trust $dir/all.lua $dir/tiny.cnrp $dir/bad $#places");
my ($refused, $wrong) = $out =~ /^(\d+) refused, (\d+) wrong$/m;
is $wrong, 0, 'no damaged copy gives another answer' or diag $out, $err;
cmp_ok $refused // 0, '>', @places / 2, "... $refused of " . @places . ' are refused' or diag $out, $err;

# ---- written whole or not at all ----
write_to("$dir/whole.cnrp", $tiny);
$out = `bash -c 'trap "" XFSZ; ulimit -f 100; exec $build/cnnrun compile $nets/lenet5.lua -o $dir/whole.cnrp' 2>&1`;
ok $? && $out =~ /whole\.cnrp/, 'what can not be written to its end is an error' or diag $out;
ok bytes("$dir/whole.cnrp") eq $tiny, '... and what was there stays';
is_deeply [map { s{.*/}{}r } glob "$dir/whole.cnrp.* $dir/.whole*"], [], '... alone';

# ---- what is no compiled model is not written ----
for (["$nets/lenet5.lua -o $dir/x.cnr", qr/-o: want a name that ends in \.cnrp/],
     ["$nets/lenet5.lua", qr/-o/],
     ["$nets/lenet5.lua --symbol batch=2 -o $dir/x.cnrp", qr/--symbol does not go with compile/],
     ["$nets/lenet5.lua --device nowhere -o $dir/x.cnrp", qr/nowhere: no such device/],
     ["$nets/lenet5.lua -o $dir/absent/x.cnrp", qr/absent/]) {
    my ($words, $why) = @$_;
    ($code, $out, $err) = cnnrun("compile $words");
    ok $code && $err =~ $why && !-e "$dir/x.cnrp" && !-e "$dir/x.cnr", "compile $words: refused" =~ s{\Q$dir\E/}{}gr =~ s{\Q$nets\E/}{}r
        or diag "$code: $err";
}
done_testing;
