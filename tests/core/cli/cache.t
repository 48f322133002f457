#!/usr/bin/perl
# cnnrun cache lists, shows, verifies, moves and clears what is kept between runs; limits, and the order of
# removal.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use JSON::PP;
use Test::More;

my $root = abs_path($0 =~ s{tests/core/[^/]*/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $dir = tempdir(CLEANUP => 1);
my ($lenet, $cifar) = map { "$root/scripts/nets/$_.lua" } qw(lenet5 cifar10_quick);
delete @ENV{qw(MODEL_CACHE_DISABLE MODEL_CACHE_MAXSIZE)};
$ENV{CNNRUN_CACHE} = '';

sub cnnrun { # exit code, stdout and stderr
    my $out = `$build/cnnrun @_ 2>&1`;
    return ($? >> 8, $out);
}
# The entries that `cache list` tells.
sub list { my ($code, $out) = cnnrun("cache list --json --cache $_[0]"); return map { decode_json($_) } split /\n/, $out }
# Runs `warm` with a cache folder.
sub warm { return cnnrun("warm @_[1 .. $#_] --cache $_[0] --json") }

warm("$dir/a", $lenet);
warm("$dir/a", $cifar, '--weights random:1');
warm("$dir/a", $lenet, '--batch 2');
my @rows = list("$dir/a");
my $total = pop @rows;
is_deeply [map { $_->{net} } @rows], [qw(lenet5 cifar10_quick lenet5)], 'plans, the one used longest ago first';
ok $rows[0]{blobs} > 0 && $rows[0]{used} =~ /^\d{4}-\d\d-\d\dT/ && $rows[0]{kind} eq 'plan', 'with their blobs and times';
my $bytes = 0;
$bytes += -s "$dir/a/$_->{file}" for @rows;
is_deeply $total, { folder => "$dir/a", files => 3, bytes => $bytes, limit => 4 << 30, left => (4 << 30) - $bytes },
    'and the room that is left';
my ($code, $out) = cnnrun("cache list --cache $dir/a");
like $out, qr/^plan .*lenet5-\w{16}\.plan\n.*^3 files of .* MB in \Q$dir\E\/a, room for /ms, 'as text';

# ---- show, verify ----
($code, $out) = cnnrun("cache show lenet5 --cache $dir/a");
is scalar(() = $out =~ /^shapes f32x\d+x1x28x28$/mg), 2, 'show: what the plans of a net were made for' or diag $out;
($code, $out) = cnnrun("cache show $rows[0]{file} --json --cache $dir/a");
like decode_json($out)->{made_for}, qr/^weights \w{32}$/m, '... as JSON';
($code, $out) = cnnrun("cache verify --cache $dir/a");
is_deeply [$code, scalar(() = $out =~ /: ok$/mg)], [0, 3], 'verify: all are sound';
open my $file, '+<', "$dir/a/$rows[1]{file}" or die;
seek $file, 4096, 0;
print $file "\xff\xff\xff\xff";
close $file;
($code, $out) = cnnrun("cache verify --cache $dir/a");
ok $code == 4 && $out =~ /^\Q$rows[1]{file}\E: 1 damaged blob$/m, '... and one that is not is named' or diag "$code $out";
($code, $out) = cnnrun("cache verify lenet5 --cache $dir/a");
is $code, 0, '... of these nets alone';

# ---- export, import, clear ----
my $name = $rows[0]{file};
($code, $out) = cnnrun("cache export $name -o $dir/$name --cache $dir/a");
is $code, 0, 'export' or diag $out;
($code, $out) = cnnrun("cache import $dir/$name --cache $dir/b");
is $code, 0, 'import' or diag $out;
($code, $out) = warm("$dir/b", $lenet);
is decode_json($out)->{origin}, 'hit', '... and it is found there';
($code, $out) = cnnrun("cache import $lenet --cache $dir/b");
ok $code && $out =~ /lenet5\.lua: want the name that it had in the cache/, 'what is no plan is not imported' or diag $out;
system "head -c 5000 $dir/$name >$dir/short-0123456789abcdef.plan; chmod 600 $dir/short*";
($code, $out) = cnnrun("cache import $dir/short-0123456789abcdef.plan --cache $dir/b");
ok $code && $out =~ /damaged/, '... nor a part of one' or diag $out;
my $left = -s "$dir/$name";
($code, $out) = cnnrun("cache import $dir/$name --cache $dir/small --cache-limit " . ($left - 1));
ok $code && $out =~ /$name: $left bytes: the cache may hold / && !-e "$dir/small/$name", '... nor one beyond the limit'
    or diag $out;
system "mkdir $dir/full && chmod 700 $dir/full && cp $dir/$name $dir/full/old-0123456789abcdef.plan && chmod 600 $dir/full/*";
utime 1, 1, "$dir/full/old-0123456789abcdef.plan";
($code, $out) = cnnrun("cache import $dir/$name --cache $dir/full --cache-limit " . ($left + 10));
is_deeply [map { s{.*/}{}r } glob "$dir/full/*"], [$name], 'what was used longest ago makes room for it';
($code, $out) = cnnrun("cache clear lenet5 --cache $dir/a");
like $out, qr/^2 files of /, 'clear: the plans of a net';
is_deeply [map { $_->{net} // () } list("$dir/a")], ['cifar10_quick'], '... and no others';
($code, $out) = cnnrun("cache clear vgg --cache $dir/a");
ok $code && $out =~ /vgg: nothing of that name is kept in /, 'a name that is not there' or diag $out;
open my $other, '>', "$dir/a/notes.txt" or die;
close $other;
cnnrun("cache clear --cache $dir/a");
ok -e "$dir/a/notes.txt" && list("$dir/a") == 1, 'clear alone: all that can be made again, nothing else';

# ---- the limit, and what goes first ----
my $size = -s "$dir/$name";
for (['lru', 1, 2], ['fifo', 2, 1]) {
    my ($policy, @left) = @$_;
    my $folder = "$dir/$policy";
    my @words = ('--cache-limit', int(2.6 * $size), '--cache-policy', $policy);
    warm($folder, $lenet, @words, '--batch', 1);
    warm($folder, $lenet, @words, '--batch', 2);
    warm($folder, $lenet, @words, '--batch', 1); # a hit
    warm($folder, $lenet, @words, '--batch', 3);
    my %hit = map { my ($c, $o) = warm("$dir/$policy", $lenet, '--batch', $_); ($_ => decode_json($o)->{origin} eq 'hit') } $left[0];
    ok $hit{$left[0]}, "$policy: batch $left[0] is still there";
    (undef, $out) = warm("$dir/$policy", $lenet, '--batch', $left[1]);
    like decode_json($out)->{origin}, qr/^miss/, "... and batch $left[1] went";
}
open my $bin, '>', "$dir/lru/kernel.clbin" or die;
print $bin 'x' x (4 * $size);
close $bin;
utime 1, 1, "$dir/lru/kernel.clbin";
warm("$dir/lru", $lenet, '--cache-limit', 3 * $size, '--batch', 4);
ok !-e "$dir/lru/kernel.clbin", 'what plugins compiled counts too';
($code, $out) = warm("$dir/lru", $lenet, '--cache-policy', 'mru');
ok $code && $out =~ /want(?:ed)? (?:one of )?lru/, 'another policy is none' or diag $out;

# ---- side by side: environments, structures, weights ----
{
    my $folder = "$dir/beside";
    my $origin = sub { my (undef, $out) = warm($folder, @_); return eval { decode_json($out)->{origin} } // $out };
    system "cp $lenet $dir/lenet5.lua && cp $root/scripts/nets/lenet5.cnr $dir";
    open my $in, '<', $lenet or die;
    my $text = do { local $/; <$in> } =~ s/out = 500/out = 400/r;
    open my $wide, '>', "$dir/narrow.lua" or die;
    print $wide $text;
    close $wide;
    my @kinds = ([$lenet], [$lenet, '--threads 1'], ["$dir/narrow.lua", '--weights random:1']);
    like $origin->(@$_), qr/^miss: /, "@$_: a miss" =~ s{\S*/}{}gr for @kinds;
    is $origin->(@$_), 'hit', '... then each has its own plan' for @kinds;
    like $origin->("$dir/narrow.lua", '--weights random:2'), qr/^weights-replaced: [1-9] of /, 'other weights: replaced';
    is $origin->("$dir/narrow.lua", "--weights random:$_"), 'hit', '... and those of before stay beside them' for 1, 2;
    $origin->("$dir/narrow.lua", "--weights random:$_") for 3 .. 5;
    is scalar(grep { /lenet5/ } glob "$folder/*.plan"), 6, 'up to four of one net, environment and options';
    is $origin->("$dir/narrow.lua", '--weights random:2'), 'hit', '... the newest';
    like $origin->("$dir/narrow.lua", '--weights random:1'), qr/^weights-replaced/, '... not the oldest';
}

# ---- X19's switches ----
{
    local $ENV{CNNRUN_CACHE} = "$dir/env";
    local $ENV{MODEL_CACHE_DISABLE} = 1;
    local $ENV{MODEL_CACHE_MAXSIZE};
    delete $ENV{MODEL_CACHE_MAXSIZE};
    cnnrun("run $lenet $root/scripts/nets/digits/three.png");
    ok !-e "$dir/env", 'MODEL_CACHE_DISABLE: nothing is kept';
    $ENV{MODEL_CACHE_DISABLE} = 0;
    cnnrun($_) for 'plugins', "show $lenet";
    ok !-e "$dir/env", 'commands that keep nothing make no folder';
    $ENV{MODEL_CACHE_MAXSIZE} = '10K';
    ($code, $out) = cnnrun("run $lenet $root/scripts/nets/digits/three.png");
    like $out, qr/not stored: about \d+ bytes, the cache may hold 10240/, 'MODEL_CACHE_MAXSIZE is the limit';
    $ENV{MODEL_CACHE_MAXSIZE} = 'much';
    ($code, $out) = cnnrun("run $lenet $root/scripts/nets/digits/three.png");
    ok $code && $out =~ /MODEL_CACHE_MAXSIZE: "much": want bytes/, '... and is checked' or diag $out;
}
# ---- the user's own folder ----
{
    local %ENV = (%ENV, HOME => "$dir/home");
    delete @ENV{qw(CNNRUN_CACHE XDG_CACHE_HOME MODEL_CACHE_MAXSIZE)};
    mkdir $ENV{HOME};
    my $digit = "$root/scripts/nets/digits/three.png";
    my $run = sub { my ($code, $out) = cnnrun("run $lenet $digit --json @_"); return eval { decode_json($out)->{cache} } // "none, $code" };
    ($code, $out) = cnnrun("warm $lenet --json");
    is scalar(my @plans = glob "$dir/home/.cache/cnnrun/lenet5-*.plan"), 1, 'warm without a folder: in the user\'s own' or diag $out;
    is $run->(), 'hit', '... where runs look';
    is $run->('--no-cache'), 'none, 0', '... but with --no-cache';
    { local $ENV{MODEL_CACHE_DISABLE} = 1; is $run->(), 'none, 0', '... or MODEL_CACHE_DISABLE' }
    { local $ENV{CNNRUN_CACHE} = ''; is $run->(), 'none, 0', '... or an empty CNNRUN_CACHE' }
    like((cnnrun('cache list'))[1], qr/1 file of .* in \Q$dir\E\/home\/\.cache\/cnnrun/, 'cache lists it');
    my @sim = qw(--board odroid_xu3 --device sim:a15);
    { local $ENV{XDG_CACHE_HOME} = "$dir/xdg"; is $run->(@sim), 'miss', 'a device that is not the host: stored' }
    is scalar(@plans = glob "$dir/xdg/cnnrun/lenet5-*.plan"), 1, '... below XDG_CACHE_HOME';
    for my $home ('/proc', '', undef) { # no folder can be made there; none is named; HOME is not set
        local $ENV{HOME} = $home;
        delete $ENV{HOME} if !defined $home;
        ($code, $out) = cnnrun("run $lenet $digit -q --json @sim");
        ok $code == 0 && $out =~ /^\{.*\}\n\z/, 'a home that is ' . ($home // 'not set') . ': no word' or diag $out;
    }
}

# ---- codecs ----
SKIP: {
    skip 'the plugins codec-zstd and codec-sodium were not built', 17 if grep { !-e "$build/plugins/codec-$_.so" } qw(zstd sodium);
    my $answer = sub { my ($code, $out) = cnnrun("run $lenet $root/scripts/nets/digits/three.png --json @_"); return $out =~ s/^.*?(\[.*\]).*/$1/sr };
    my $origin = sub { my (undef, $out) = warm(@_); return eval { decode_json($out =~ s/^cnnrun: .*\n//mr)->{origin} } // $out };
    my $plain = $answer->();
    for my $codec ('zstd', 'sodium', 'zstd,sodium') {
        local $ENV{CNNRUN_CACHE_KEY} = 'the first key';
        my $folder = "$dir/by-$codec";
        $origin->($folder, $lenet, '--cache-codec', $codec);
        is $origin->($folder, $lenet), 'hit', "$codec: a hit";
        is $answer->("--cache $folder"), $plain, '... with the same answer';
    }
    open my $f, '>', "$dir/codec.lua" or die;
    print $f qq{local c = require "cnnrun"\nreturn function() c.load("$lenet", { cache = "$dir/lua", cache_codec = "zstd", cache_limit = 1 << 30, cache_policy = "fifo" }):profile { runs = 1 } end\n};
    close $f;
    is((cnnrun("--trust $dir/codec.lua"))[0], 0, 'a trusted script names a codec');
    is $origin->("$dir/lua", $lenet, '--cache-codec zstd'), 'hit', '... and its plan is stored so';
    ($code, $out) = cnnrun("--cache-codec zstd --trust $dir/codec.lua");
    ok $code == 1 && $out =~ /--cache-codec has no use here: .*cache_codec = /, 'in front of an experiment a codec is refused' or diag $out;
    cmp_ok -s (glob "$dir/by-zstd/*")[0], '<', .95 * -s (glob "$dir/b/*")[0], 'zstd makes it smaller';
    like $origin->("$dir/by-sodium", $lenet), qr/^stale: sodium: needs a key: --cache-key-file FILE, or CNNRUN_CACHE_KEY/, 'sodium wants its key';
    $origin->("$dir/key", $lenet, '--cache-codec sodium --cache-key-file', $lenet);
    like $origin->("$dir/key", $lenet, '--cache-key-file', $cifar), qr/^stale: sodium: the key is another/, '... and no other';
    like $origin->("$dir/none", $lenet, '--cache-codec lzw'), qr/^cnnrun warm: lzw: no plugin brought a codec of that name; there are (?:zstd, sodium|sodium, zstd)/m, 'an unknown codec';
    ok !-e "$dir/none" || !glob("$dir/none/*"), '... and nothing is stored in clear';
    local $ENV{CNNRUN_CACHE_KEY} = 'the first key';
    $origin->("$dir/turned", $lenet);
    like $origin->("$dir/turned", $lenet, '--cache-codec sodium'), qr/^stale: it was stored by other codecs/, 'encryption that is turned on';
    is $origin->("$dir/turned", $lenet, '--cache-codec sodium'), 'hit', '... replaces the plan';
    my (undef, $said) = warm("$dir/bound", $lenet, '--memory', '100M', '--cache-codec', 'sodium');
    ok $said =~ /no plan is stored: under a memory bound/ && !glob("$dir/bound/*.plan"), '... and under a bound nothing is stored in clear' or diag $said;
}

for (['cache look --cache x', qr/look: want list, show/], ['cache list', qr/which folder\? --cache DIR/]) {
    ($code, $out) = cnnrun($_->[0]);
    ok $code && $out =~ $_->[1], "$_->[0]: told" or diag $out;
}

# ---- X19's JSON of a graph ----
($code, $out) = cnnrun("show $lenet --graph-json");
my $graph = decode_json($out);
is_deeply [sort keys %{$graph->{environment}}], [qw(DNNCLrtversion DNNCLversion Driverversion Hardwareversion)], 'an environment of four versions';
my %node = map { $_->{name} => $_ } @{$graph->{structure}};
is scalar(keys %node), scalar(@{$graph->{structure}}), 'names are unique';
is_deeply [map { $node{$_}{tensortype} } qw(data conv1.weight conv1.bias)], [qw(Placeholder Filter Const)], 'tensors';
is_deeply $node{ip2}, { name => 'ip2', optype => 'dense', inputs => [qw(relu1 ip2.weight ip2.bias)],
    attrs => [{ key => 'out', value => '10' }, { key => 'bias', value => 'true' }] }, 'operations';
my %static = map { my $n = $_->{name}; map { ("$n $_->{key}" => $_->{value}) } @{$_->{staticdata}} } @{$graph->{weights}};
is scalar(keys %static), 8, 'a digest for each tensor that is bound';
(undef, $out) = cnnrun("show $lenet --weights random:5 --graph-json");
is_deeply decode_json($out)->{structure}, $graph->{structure}, 'other weights, the same structure';
done_testing;
