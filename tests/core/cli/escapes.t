#!/usr/bin/perl
# Untrusted text (names, labels, files, errors) is escaped in the output of every command.
use strict;
use warnings;
use File::Temp qw(tempdir);
use File::Copy;
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";

# Runs a command and returns both of its outputs together, and its exit code.
sub told {
    my @words = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/told" or die;
        open STDERR, '>>&', \*STDOUT or die;
        exec "$build/cnnrun", @words or die;
    }
    waitpid $pid, 0;
    my $code = $? >> 8;
    local (@ARGV, $/) = ("$dir/told");
    return (scalar(<>) // '', $code);
}

# Writes a file, given as name and text; dies if it can't.
sub spill {
    my ($name, $text) = @_;
    open my $file, '>', $name or die "$name: $!";
    print $file $text;
    close $file;
}

# Escapes of each sort, and a line that wants to look like ours.
my $evil = "\e]52;c;aGk=\a\xc2\x9b31m\x9b\xe2\x80\xae\r\nFORGED";
my $lua = join '', map { sprintf '\\x%02x', ord } split //, $evil;

# A test: a text has nothing that a terminal would obey.
sub harmless {
    my ($text, $what) = @_;
    my @bad;
    push @bad, 'a control character' if $text =~ /[\x00-\x08\x0b-\x1f\x7f]/;
    push @bad, 'one of C1' if $text =~ /\xc2[\x80-\x9f]/ || $text !~ /^(?:[\x00-\x7f]|[\xc2-\xf4][\x80-\xbf]+)*$/;
    push @bad, 'an override' if $text =~ /\xe2\x80[\xa8-\xae]/;
    push @bad, 'a forged line' if $text =~ /^FORGED/m;
    ok !@bad, $what or diag(join(', ', @bad) . " in: " . JSON::PP->new->ascii->encode([$text]));
}

spill("$dir/net.lua", <<"END");
local c = require "cnnrun"
return c.net {
  name = "net$lua", labels = { "label$lua", "two", "three", "four" },
  input = { "in$lua", shape = { "batch", 1, 4, 4 } },
  c.flatten {}, c.dense { "node$lua", out = 4 }, c.softmax { "out$lua" },
}
END
my $picture = "$dir/pic$evil.png";
copy('scripts/nets/digits/one.png', $picture) or die;
my $set = "$dir/set$evil";
mkdir $set or die "$set: $!";
copy('scripts/nets/digits/one.png', "$set/$evil.png") or die;
my @net = ("$dir/net.lua", '--weights', 'random:1');

for my $case (
    [qr/node\\x1b\]52;c;aGk=\\x07\\u009b31m\\x9b\\u202e\\r\\nFORGED/, 'show', $net[0]],
    [undef, 'show', $net[0], '--no-such-option', "x$evil"],
    [qr/label\\x1b/, 'run', @net, $picture], [qr/FORGED/, 'run', @net, '--quiet', $set],
    [qr/FORGED/, 'run', @net, '-v', '-v', '-v', $picture],
    [qr/node\\x1b/, 'bench', @net, '--profile', '--runs', '1'],
    [qr/FORGED/, 'run', @net, "$dir/none$evil.png"], [qr/FORGED/, "$dir/none$evil"],
    [qr/FORGED/, 'check', $picture], [qr/FORGED/, 'import', $picture, '-o', "$dir/x.cnr"],
    [qr/--no\\x1b/, 'show', $net[0], "--no$evil"], [qr/FORGED/, 'ops', $evil],
    [qr/FORGED/, 'plugins', '--check', $picture], [qr/FORGED/, 'verify', $picture, $set],
    [qr/FORGED/, 'eval', @net, '--data', "mnist:$evil"],
    [undef, 'warm', @net, '--cache', "$dir/cache$evil"],
    [qr/FORGED/, 'export', @net, '-o', "$dir/x.$evil"],
    [qr/FORGED/, 'run', @net, '--device', $evil, $picture],
) {
    my ($wanted, @words) = @$case;
    my ($text, $code) = told(@words);
    my $name = join ' ', grep { !/FORGED/ } map { s/\Q$dir\E/DIR/r } @words;
    harmless $text, $name;
    like $text, $wanted, '... and shows what it is' if $wanted;
}

# ---- scripts: print and note keep lines, and errors of a script are told like any other ----
spill("$dir/say.lua", <<"END");
local c = require "cnnrun"
return function()
  print("one\\ttwo\\nthree\\x1b[31m", 4)
  c.note("beside\\x1b[31m\\x9b")
  error("wrong\\x1b[31m\\nFORGED")
end
END
my ($text) = told("$dir/say.lua");
harmless $text, 'a script that prints, notes and fails';
like $text, qr/^one\ttwo\nthree\\x1b\[31m\t4$/m, '... whose lines are kept';
like $text, qr/^beside\\x1b\[31m\\x9b$/m, '... on stderr too';

# ---- JSON gives back what was there, in letters that do no harm ----
($text) = told('show', '--json', $net[0]);
harmless $text, 'show --json';
my ($node) = grep { ($_->{node} // '') =~ /^node/ } map { decode_json($_) } grep { /^\{/ } split /\n/, $text;
is $node->{node}, "node\e]52;c;aGk=\a\x{9b}31m\x{fffd}\x{202e}\r\nFORGED", '... means the same';
done_testing;
