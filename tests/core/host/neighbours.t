#!/usr/bin/perl
# Several plugins together: a name that two of them bring, devices with high scores, typos.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $plugins = "$build/tests/core/host/neighbours";
my $tmp = tempdir(CLEANUP => 1);

# stdout, stderr, exit code
sub run {
    my $out = `$build/cnnrun @_ 2>$tmp/err`;
    my $code = $? >> 8;
    open my $in, '<', "$tmp/err" or die;
    local $/;
    return ($out, <$in> // '', $code);
}
# Writes a file; returns its path.
sub write_file { my ($name, $text) = @_; open my $f, '>', "$tmp/$name" or die; print $f $text; close $f; return "$tmp/$name" }
# The row of a plugin in `plugins --json`.
sub plugin { my ($name, @words) = @_; my ($out) = run("plugins --json @words"); my ($p) = grep { $_->{name} eq $name } map { decode_json $_ } split /\n/, $out; return $p }

my $acme = "--plugin-dir $plugins/acme";
my $net = "$root/scripts/nets/lenet5.lua --weights random:1";
my $digit = "$root/scripts/nets/digits/three.png";

# ---- names ----
my ($out, $err, $code) = run("show $net $acme");
is($code, 0, "a plugin that has its own relu keeps nobody else's operators out") or diag $err;
like($err, qr/operator "relu" of plugin acme is left out: plugin ops-std has one of that name/, 'both are named');
like($err, qr/kernel "acme_relu" of plugin acme is left out: its operator "relu" is plugin ops-std's/,
    'and the kernel that meant the other one');
my ($plain) = run("run --json --top 9 $net $digit");
my ($beside) = run("run --json --top 9 $acme $net $digit");
my $scores = sub { join ' ', $_[0] =~ /"score":[-0-9.e+]+/g };
is($scores->($beside), $scores->($plain), 'a net with relu computes what it did');
my $p = plugin('acme', $acme);
is_deeply([$p->{provides}{operator}, scalar @{$p->{problems}}], [['acme.twice'], 2], 'the rest of the plugin is there');
is_deeply(plugin('ops-std', $acme)->{problems}, [], 'and nothing is wrong with the other');
my $twice = write_file('twice.lua', 'local c = require "cnnrun" return c.net { name = "t", input = { "x", shape = { 1, 4 } }, c["acme.twice"] {} }');
($out, $err, $code) = run("show $acme $twice");
is($code, 0, 'VENDOR.operator in a net') or diag $err;
my ($ops) = run('ops --json');
is_deeply([grep { /\./ } map { decode_json($_)->{name} } split /\n/, $ops], [], 'none of ours has a dot in its name');

# ---- plugins of one name ----
my $impostor = "--plugin-dir $plugins/impostor";
($out, $err, $code) = run("run --json --top 9 $impostor $net $digit");
is("$code " . $scores->($out), '0 ' . $scores->($plain), 'a folder that is searched first displaces no plugin of ours');
is(plugin('cpu-neon', $impostor)->{provides}{device}[0], 'cpu-neon', 'which is the one that loads');
is(plugin('cpu-neon', $impostor, '--plugin-order cpu-neon')->{provides}{device}[0], 'acme-npu', 'unless that is asked for');
($out, $err, $code) = run("plugins --plugin-dir $plugins/impostor/cpu-neon.so");
ok($code && $err =~ /a plugin of that name is loaded already, from /, 'a file that is named must load') or diag "$code $err";

mkdir "$tmp/renamed";
system('cp', "$plugins/acme/acme.so", "$tmp/renamed/zz.so") == 0 or die;
is_deeply([sort @{plugin('acme', "--plugin-dir $tmp/renamed", '--plugin-order acme')->{provides}{operator}}], ['acme.twice', 'relu'],
    '--plugin-order knows a plugin by its own name, whatever its file is called');
is_deeply(plugin('acme', "--plugin-dir $tmp/renamed", '--plugin-order cpu-neon')->{provides}{operator}, ['acme.twice'], 'if it is named');

mkdir "$tmp/loud";
write_file('loud.c', <<'END');
#include <cnnrun/kit.h>
#include <stdio.h>
__attribute__((constructor)) static void open_it(void) { fputs("loud opens\n", stderr); }
static cnr_status init(const cnr_host *h, cnr_registrar *r, cnr_error *e) { (void)h, (void)r, (void)e; return CNR_OK; }
CNR_PLUGIN("loud", "1", "tells when it is opened", "MIT", init, CNR_TOUCHES_NOTHING)
END
system("cc -shared -fPIC -I$root/core/include -I$build/include -o $tmp/loud/zz.so $tmp/loud.c") == 0 or die;
(undef, $err) = run("plugins -v -v --plugin-order nosuch --plugin-dir $tmp/loud");
like($err, qr/ops-std: loaded from.*loud opens/s, 'a name that no plugin has opens no other library early');
(undef, $err) = run("plugins -v -v --plugin-order loud --plugin-dir $tmp/loud");
like($err, qr/loud opens.*ops-std: loaded from/s, '... and the one that it is, first, whatever its file is called');

# ---- devices ----
# The rows of `devices`, by name
sub devices { my ($out) = run("devices --json @_"); return { map { ($_->{name} => $_) } map { decode_json $_ } split /\n/, $out } }
my $d = devices($acme);
ok($d->{cpu}{default} && !$d->{acme}{default}, "a new plugin's device is not the default, whatever it says of itself");
like($d->{cpu}{default_reason}, qr/its score, 100, is the highest among the plugins that come with cnnrun/, 'why the one is');
like($d->{acme}{default_reason}, qr/plugin acme does not come with cnnrun, so its score, 100000, does not count; --device acme or --plugin-order acme/, 'why the other is not');
($out) = run("devices $acme");
like($out, qr/^acme .*?\n    default no: plugin acme does not come/ms, 'people are told, too');
$d = devices($acme, '--plugin-order acme');
ok(!$d->{cpu}{default} && $d->{acme}{default}, 'asked for, it is');
like($d->{acme}{default_reason}, qr/--plugin-order names plugin acme/, 'and why');
{
    local $ENV{ACME_WOKEN} = 1;
    ($out, $err, $code) = run("run --json $acme $net $digit");
    unlike($err, qr/wakes/, 'nor is its driver woken');
    ($out, $err, $code) = run("run --json --device acme $acme $net $digit");
    like($err, qr/wakes/, 'unless its device is named');
    is($code, 0, 'and runs the net') or diag $err;
}
my $script = write_file('d.lua', 'local c = require "cnnrun" return function() for _, d in ipairs(c.devices()) do if d.name == "cpu" then print(d.default, #d.default_reason > 9) end end end');
is((run($script))[0], "true\ttrue\n", 'scripts see the same');

# ---- typos ----
my $typo = "--plugin-dir $plugins/typo";
($out, $err, $code) = run("show $typo $net");
is($code, 0, 'a typo is a warning where a net is wanted');
my @typos = (qr/kernel "acme_typo" is for operator "convv", which no plugin brings; did you mean conv$/m,
    qr/kernel "acme_lost" is for device "cpus", which no plugin brings; did you mean cpu/,
    qr/kernel "acme_code" is for encoding "sparse-crs", which no plugin brings; did you mean sparse-csr/);
like($err, $_, 'which tells it') for @typos;
like($err, qr/acme-typo: has 1 more problem \(/, 'and how many more there are');
($out, $err, $code) = run("plugins --check $plugins/typo/acme-typo.so");
like($out, $_, 'the check tells it') for @typos, qr/kernel "acme_alias" is for operator "conv2d", an alias: kernels are found by "conv"/;
ok($code && $err =~ /has 4 problems beside the installed plugins/, 'as an error') or diag "$code $err";
($out, $err, $code) = run("plugins --check $plugins/acme/acme.so --json");
is_deeply(decode_json((split /\n/, $out)[0])->{problems}, ['operator "relu" is left out: plugin ops-std has one of that name'], 'it sees the installed plugins');
ok($code, 'and a taken name is an error, too');
($out, $err, $code) = run("plugins --check $plugins/impostor/cpu-neon.so");
like($out, qr/a plugin called cpu-neon comes with cnnrun/, "so is a plugin's");
ok($code, 'with its exit code');
($out, $err, $code) = run("plugins --check $build/plugins/ops-std.so");
is($code, 0, 'a plugin of ours has no problem') or diag $out, $err;

# ---- leaving one out ----
ok(!plugin('cpu-neon', '--skip-plugin cpu-neon'), 'a plugin is left out by its name');
($out, $err, $code) = run("show $net --skip-plugin ops-std");
ok($code && $err =~ /unknown operator/, 'and what it brings');
($out, $err, $code) = run("show $net --skip-plugin opsstd");
like($err, qr/--skip-plugin: no plugin "opsstd" was found; did you mean ops-std/, 'a name that is none is reported');
($out, $err, $code) = run("show $net --plugin-order acmee $acme");
like($err, qr/--plugin-order: no plugin "acmee" was found; did you mean acme/, 'in an order, too');
done_testing;
