#!/usr/bin/perl
# cnnrun --memory: the process holds no more than the bound allows, weights that kernels read as they are included; the
# answers stay; show tells what stays; a bound that is too small is refused with the bytes that are needed.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $tmp = tempdir(CLEANUP => 1);
my $seven = "$root/scripts/nets/digits/seven.png";
$ENV{CNNRUN_CACHE} = '';
$ENV{CNNRUN_OPENCL} = 'none';

# The JSON lines of a run.
sub run_net { my ($words) = @_; return map { decode_json($_) } grep { /^\{/ } `timeout -s KILL 60 $build/cnnrun $words --json 2>$tmp/err` }
# What was written to stderr.
sub err { open my $f, '<', "$tmp/err" or die; local $/; return <$f> }

open my $f, '>', "$tmp/wide.lua" or die;
print $f <<'END';
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 1, 28, 28 } },
  body = { c.conv { out = 64, kernel = 3, name = "first" }, c.max_pool { kernel = 2, stride = 2 }, c.dense { out = 900, name = "wide" }, c.relu {},
           c.dense { out = 4000, name = "second" }, c.dense { out = 10, name = "last" } } }
END
close $f;
is(system("$build/cnnrun convert $tmp/wide.lua --weights random:1 -o $tmp/wide.cnr -q"), 0, 'a native file of ' . int((-s "$tmp/wide.cnr") / 1e6) . ' MB');

my ($free) = run_net("bench $tmp/wide.cnr --runs 3");
my ($small) = run_net("bench $root/scripts/nets/lenet5.lua --runs 3");
my ($bound) = run_net("bench $tmp/wide.cnr --runs 3 --memory 10M");
cmp_ok($free->{peak_rss_bytes}, '>', 50e6, 'without a bound all of it is in memory');
SKIP: {
    skip 'sanitisers hold memory of their own', 1 if $small->{peak_rss_bytes} > 40e6;
    cmp_ok($bound->{peak_rss_bytes}, '<', $small->{peak_rss_bytes} + 16 * 1048576, 'within 10 MiB it holds these, a small process, and 6 MiB at most');
}
my ($one) = run_net("run $tmp/wide.cnr $seven");
my ($two) = run_net("run $tmp/wide.cnr $seven --memory 10M");
is_deeply($two->{top}, $one->{top}, 'the same answer, piece by piece');

my %how = map { $_->{memory_of} => $_->{how} } grep { ($_->{bytes} // 0) > 1e5 } run_net("show $tmp/wide.cnr --memory 10M");
is($how{wide}, 'come in pieces', 'show: the large layer comes in pieces');
is($how{last}, 'stay', 'a small one stays');
like(`$build/cnnrun show $tmp/wide.cnr --memory 10M 2>&1`, qr/^  wide +\d+ bytes come in pieces$/m, 'and in words');

# Convolutions whose packed weights alone are more than the bound run in slices of their channels, with what follows them.
open $f, '>', "$tmp/deep.lua" or die;
print $f <<'END';
local c = require "cnnrun"
local body = { c.conv { out = 192, kernel = 3, stride = 4 } }
for _ = 1, 2 do
  for _, layer in ipairs { c.conv { out = 192, kernel = 3, pad = 1 }, c.batch_norm {}, c.relu {} } do body[#body + 1] = layer end
end
body[#body + 1] = c.global_average_pool {}
body[#body + 1] = c.dense { out = 10 }
return c.net { input = { "x", shape = { 1, 1, 28, 28 } }, body = body }
END
close $f;
is(system("$build/cnnrun convert $tmp/deep.lua --weights random:1 -o $tmp/deep.cnr -q"), 0, 'a net of convolutions');
my ($unsliced) = run_net("run $tmp/deep.cnr $seven");
my ($sliced) = run_net("run $tmp/deep.cnr $seven --memory 1200K");
is($sliced->{top}[0]{index}, $unsliced->{top}[0]{index}, 'the same class in slices') or diag err();
cmp_ok(abs($sliced->{top}[0]{score} - $unsliced->{top}[0]{score}), '<', 1e-4 * abs($unsliced->{top}[0]{score}) + 1e-6, 'and nearly the same score');
cmp_ok(scalar(grep { ($_->{bytes} // 0) > 1e4 && $_->{how} =~ /come/ } run_net("show $tmp/deep.cnr --memory 1200K")), '>', 4, 'show has a line for each slice');

run_net("run $tmp/wide.cnr $seven --memory 1M");
like(err(), qr/a memory bound of 1048576 bytes is too small: .* so want at least (\d+)$/m, 'too small a bound is refused');
my ($needed) = err() =~ /at least (\d+)$/m;
my ($least) = run_net("run $tmp/wide.cnr $seven --memory $needed");
is_deeply($least->{top}, $one->{top}, "the $needed bytes that it names are enough");
run_net("run $tmp/wide.cnr $seven --memory " . int($needed / 2));
like(err(), qr/too small/, 'and half of them are not');
run_net("run $tmp/deep.cnr $seven --memory 100K");
like(err(), qr/at least \d+$/m, 'a net of slices names its least bound too');
($needed) = err() =~ /at least (\d+)$/m;
($least) = run_net("run $tmp/deep.cnr $seven --memory $needed");
is($least->{top}[0]{index}, $unsliced->{top}[0]{index}, 'which is enough at once') or diag err();

# A batch normalisation behind a dense layer whose weights are large is not folded into them: they stay in the file and come in pieces.
open $f, '>', "$tmp/folded.lua" or die;
print $f <<'END';
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 1, 28, 28 } },
  body = { c.flatten {}, c.dense { out = 8192, name = "wide" }, c.batch_norm {}, c.relu {}, c.dense { out = 10 } } }
END
close $f;
is(system("$build/cnnrun convert $tmp/folded.lua --weights random:1 -o $tmp/folded.cnr -q"), 0, 'a net with a normalised dense layer');
my ($folded) = run_net("run $tmp/folded.cnr $seven");
for my $start ('at once', 'while the plan is stored', 'by a stored plan') {
    my ($apart) = run_net("bench $tmp/folded.cnr --runs 3 --memory 10M" . ($start eq 'at once' ? '' : " --cache $tmp/folded"));
  SKIP: {
        skip 'sanitisers hold memory of their own', 1 if $small->{peak_rss_bytes} > 40e6;
        cmp_ok($apart->{peak_rss_bytes}, '<', $small->{peak_rss_bytes} + 16 * 1048576, "its folded weights would not fit: it is bounded, $start") or diag err();
    }
}
my ($apart) = run_net("run $tmp/folded.cnr $seven --memory 10M --cache $tmp/folded");
is($apart->{top}[0]{index}, $folded->{top}[0]{index}, 'and answers the same');
like(`$build/cnnrun run $tmp/folded.cnr $seven --memory 10M --cache $tmp/folded -v 2>&1`, qr/\bhit\b/, 'by the stored plan');

# A constant without axes has no rows to take apart.
open $f, '>', "$tmp/scalar.lua" or die;
print $f <<'END';
local c = require "cnnrun"
local x = c.input { "x", shape = { 1, 1, 28, 28 } }
return c.net { inputs = { x }, outputs = { c.dense { c.mul { x, 0.5 }, out = 3000 } } }
END
close $f;
is(system("$build/cnnrun convert $tmp/scalar.lua --weights random:1 -o $tmp/scalar.cnr -q"), 0, 'a net with a number');
is(scalar(run_net("run $tmp/scalar.cnr $seven --memory 8M")), 1, 'runs') or diag err();

# Weights of other formats lie in a temporary file, so the bound holds for them, too.
for my $made (map { $_->[0] } grep { `$build/cnnrun plugins` =~ /^import-$_->[1] /m } ['wide.onnx', 'onnx']) {
    is(system("$build/cnnrun export $tmp/wide.cnr -o $tmp/$made -q"), 0, $made);
    my ($imported) = run_net("bench $tmp/$made --runs 3 --memory 10M");
  SKIP: {
        skip 'sanitisers hold memory of their own', 3 if $small->{peak_rss_bytes} > 40e6;
        cmp_ok($imported->{peak_rss_bytes}, '<', $small->{peak_rss_bytes} + 17 * 1048576, 'is bounded likewise');
        for my $start ('a plan is stored', 'a stored plan is taken') {
            my ($cached) = run_net("bench $tmp/$made --runs 3 --memory 10M --cache $tmp/cache");
            cmp_ok($cached->{peak_rss_bytes}, '<', $small->{peak_rss_bytes} + 17 * 1048576, "also while $start");
        }
    }
    my ($answer) = run_net("run $tmp/$made $seven --memory 10M");
    is($answer->{top}[0]{index}, $one->{top}[0]{index}, 'and answers the same') or diag err();
    local $ENV{TMPDIR} = '/dev/full';
    is(scalar(run_net("run $tmp/$made $seven --memory 10M")), 1, 'a folder for temporary files that is none: the next is taken') or diag err();
}

# MXNet's arrays are read from their file one by one.
SKIP: {
    skip 'sanitisers hold memory of their own', 1 if $small->{peak_rss_bytes} > 40e6;
    skip 'import-mxnet was not built', 1 unless `$build/cnnrun plugins` =~ /^import-mxnet /m;
    my ($rows, $columns) = (6000, 784);
    open $f, '>', "$tmp/mx-symbol.json" or die;
    print $f encode_json({ nodes => [(map { { op => 'null', name => $_, inputs => [] } } qw(data w b)),
                                     { op => 'FullyConnected', name => 'fc', attrs => { num_hidden => "$rows" }, inputs => [[0, 0, 0], [1, 0, 0], [2, 0, 0]] }],
                           arg_nodes => [0, 1, 2], heads => [[3, 0, 0]] });
    close $f;
    open $f, '>:raw', "$tmp/mx-0000.params" or die;
    print $f pack('Q<3', 0x112, 0, 2), pack('L<l<L<q<2l<3', 0xF993FAC9, 0, 2, $rows, $columns, 1, 0, 0), pack('f<*', map { $_ / $columns } 1 .. $columns) x $rows,
        pack('L<l<L<q<l<3', 0xF993FAC9, 0, 1, $rows, 1, 0, 0), pack('f<', 0) x $rows, pack('Q<', 2), map { pack('Q</a*', $_) } 'arg:w', 'arg:b';
    close $f;
    my ($mxnet) = run_net("bench $tmp/mx-symbol.json --weights $tmp/mx-0000.params --option shape=1,28,28 --runs 3 --memory 4M");
    cmp_ok($mxnet->{peak_rss_bytes} // 1e9, '<', $small->{peak_rss_bytes} + 10 * 1048576, 'MXNet: a file of ' . int((-s "$tmp/mx-0000.params") / 1e6) . ' MB within 4 MiB') or diag err();
}
done_testing;
