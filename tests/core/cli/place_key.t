#!/usr/bin/perl
# What cnnrun place keeps is found again by all that it follows from. Each option of the command is changed in
# turn, and so are the net, the policy and the board: another placement is wanted then, or it can't matter. An
# option without a decision here makes this red.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
mkdir "$tmp/cache";
chmod 0700, "$tmp/cache";

# Writes a file; returns its path.
sub written {
    my ($name, $text) = @_;
    open my $file, '>', "$tmp/$name" or die;
    print $file $text;
    close $file;
    return "$tmp/$name";
}
# Writes the net; returns its path.
sub net { return written('net.lua', <<"END") }
local c = require "cnnrun"
return c.net { name = "net", input = { "x", shape = { "batch", 3, "side", "side" } @{[$_[1] // '']} },
  c.conv2d { "a", out = $_[0], kernel = 3 }, c.relu { "b" }, c.global_average_pool { "c" }@{[$_[2] // '']} }
END
# Writes a policy that answers so; returns its path.
sub policy { return written('mine.lua', "return { place = function(rows, seen) return { a = '$_[0]' } end }\n") }
# Copies the board; returns its path.
sub board { copy("$root/scripts/boards/odroid_xu3.lua", "$tmp/board.lua"); return "$tmp/board.lua" }

my %base = ('--policy' => policy('sim:gpu4'), '--symbol' => 'side=32', '--board' => board() . ',dry', '--devices' => 'sim:gpu4,sim:gpu2,sim:cpu',
            '--weights' => 'random:1', '--runs' => 1, '--cache' => "$tmp/cache");
my $net = net(8);

# [ file, found, code, text on stderr ]
sub place {
    my ($more, @words) = @_;
    my %all = (%base, %$more);
    my @line = map { ($_, $all{$_}) } grep { defined $all{$_} } sort keys %all;
    my $out = do {
        open my $pipe, '-|', 'sh', '-c', 'exec "$@" 2>"$0"', "$tmp/stderr", "$build/cnnrun", 'place', $net, @line, @words,
            '--json' or die;
        local $/;
        <$pipe>;
    };
    my ($end) = grep { exists $_->{found} } map { decode_json $_ } split /\n/, $out // '';
    my $said = do { local (@ARGV, $/) = "$tmp/stderr"; <> };
    return [$end->{file}, $end->{found} ? 1 : 0, $?, $said];
}

my $first = place({});
ok($first->[0] && !$first->[1], 'the first is made, and kept') or diag $first->[3];
is_deeply([@{place({})}[0, 1]], [$first->[0], 1], 'the second is found');

# ---- inputs: files with the same name ----

# A test: after the edit the placement is made anew.
sub edited {
    my ($what) = @_;
    my $got = place({});
    ok($got->[0] && !$got->[1] && $got->[0] ne $first->[0], "$what edited: placed anew") or diag "@{$got}[0, 3]";
}
policy('sim:gpu2');
edited('the policy');
policy('sim:gpu4');
net(9);
edited('the net');
net(8, '', ', place = { a = "sim:cpu" }');
edited("the net's own wish");
net(8);
my $text = do { local (@ARGV, $/) = board(); <> };
written('board.lua', $text =~ s/launch = assumed\(10e-6/launch = assumed(11e-6/r);
edited('the board');
board();
is(place({})->[1], 1, 'all as it was: found');

# ---- options: other => words that must not find it; same => why it can't matter ----

my %decided = (
    '--runs' => { other => [2] }, '--batch' => { other => [2] }, '--always' => { other => [''] },
    '--threshold' => { other => [2] }, '--policy' => { other => ['best'] },
    '--policy-option' => { other => ['objective=time'] },
    '--threads' => { other => [1] }, '--weights' => { other => ['random:2'] },
    '--weights-type' => { other => ['fp16'] }, '--arithmetic' => { other => ['fp16'] },
    '--symbol' => { other => ['side=40'] }, '--no-rewrite' => { other => ['fuse'] },
    '--kernel' => { other => ['conv=reference'] }, '--devices' => { other => ['sim:gpu4,sim:cpu'] },
    '--memory' => { other => ['1M'] }, '--deterministic' => { other => [''] },
    '--cpu-isa' => { other => ['generic'], with => { '--devices' => 'cpu', '--board' => undef, '--policy' => 'fastest' } },
    '--board' => { other => ["$tmp/board.lua,dry,units.1.launch=0.02"] },
    '--clock' => { same => 'the board has its own; without a board it is another key', },
    '--sysfs-root' => { other => [$tmp] }, '--meter-address' => { other => ['/dev/null'] },
    '--resize' => { same => 'the sizes that a net is placed at are its own' },
    '--governor' => { same => 'nothing is kept or found (below)' },
    map({ $_ => { same => 'it stands for other options' } } qw(--mode --no-inplace --no-share)),
    '--again' => { same => 'it looks for none' },
    '--output' => { same => 'it says where else to write' },
    '--device' => { same => 'each of --devices is measured' },
    '--plugin-dir' => { same => 'the plugins that are loaded count' },
    map({ $_ => { same => 'the plugins that are loaded and drive devices count' } } qw(--plugin-order --skip-plugin)),
    '--trust' => { same => 'the net that comes of it counts' },
    '--group' => { same => 'place runs alone' },
    map({ $_ => { same => 'it says how things are told' } } qw(--json --verbose --quiet --help)),
    map({ $_ => { same => 'pictures are not looked at' } }
        qw(--preset --crop --mean --std --scale --channels --letterbox)));

# Of load options the table says which keys they enter: a net's, and what its weights come of, may have words above.
my $table = do { local (@ARGV, $/) = "$root/core/engine/run/load_options.h"; <> };
my %enters = $table =~ /X\((?:ALL|PROGRAM), [^"]*"[^"]*",[\s\\]*"(--[a-z-]+)",[\s\\]*(?:"[^"]*"|NULL),[\s\\]*\w+,[\s\\]*([A-Z]+),/g;
cmp_ok(scalar keys %enters, '>', 18, 'rows of the table');
for my $option (sort keys %enters) {
    my $counts = $enters{$option} !~ /^(?:NOTHING|PASSES|NET)$/;
    is($decided{$option}{other} || $decided{$option}{same} ? 1 : 0, 1, "$option enters a key: words that show it") if $counts;
    is($decided{$option}{other}, undef, "$option enters none: none that deny it") if $enters{$option} =~ /^(?:NOTHING|PASSES)$/;
    $decided{$option} //= { same => 'by the table' };
}

# The command's own and what commands have in common.
my %known;
for my $help (`$build/cnnrun help place`, `$build/cnnrun help options`) {
    $known{$1} = 1 if $help =~ /^\s+(?:-\w, )?(--[a-z-]+)/;
}
cmp_ok(scalar keys %known, '>', 35, 'the options that there are');
is(join(' ', grep { !$decided{$_} } sort keys %known), '', 'each has a decision here');
is(join(' ', grep { !$known{$_} } sort keys %decided), '', 'and none is here that is not there');

for my $option (sort grep { $decided{$_}{other} } keys %decided) {
    my $d = $decided{$option};
    my $with = $d->{with} // {};
    my $plain = $d->{with} ? place($with)->[0] : $first->[0];
    for my $value (@{$d->{other}}) {
        my @words = $value eq '' ? ($option) : ();
        my %more = (%$with, $value eq '' ? () : ($option => $value));
        my ($one, $two) = (place(\%more, @words), place(\%more, @words));
        ok($one->[0] && !$one->[1] && $one->[0] ne $plain, "$option $value: placed anew") or diag "@{$one}[0, 3]";
        is_deeply([@{$two}[0, 1]], [$one->[0], 1], "$option $value: and found by the same words");
    }
}
is_deeply([@{place({ '--devices' => 'sim:gpu2,sim:gpu4,sim:cpu' })}[1]], [0], 'the order of devices counts');
is(place({})->[1], 1, 'what was first is still there');

# ---- what is neither kept nor found ----

my $governed = place({ '--governor' => 'fixed,at=lowest' });
ok(!$governed->[1] && !defined $governed->[0], 'under a governor nothing is found or kept');
like($governed->[3], qr/neither kept nor taken over/, 'which is reported') or diag $governed->[3];

# ---- what is taken over can be written, too, and is what other commands follow ----

policy('sim:gpu2');
place({}, '--always');
policy('sim:gpu4');
place({}, '--always');
policy('sim:gpu2');
is(place({}, '--always', '-o', "$tmp/written.lua")->[1], 1, 'a policy as it was before: found');
my $text_written = do { local (@ARGV, $/) = "$tmp/written.lua"; <> };
like($text_written, qr/devices = \{ "sim:gpu4", "sim:gpu2", "sim:cpu" \}/, 'a placement that was found is written whole');
my $shown = `$build/cnnrun show $net --weights random:1 --board $base{'--board'} --symbol side=32 --cache $tmp/cache 2>&1`;
like($shown, qr/\ba\b.*sim:gpu2/, 'other commands follow what was asked for last') or diag $shown;
done_testing;
