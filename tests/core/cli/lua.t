#!/usr/bin/perl
# cnnrun lua: every name of the Lua API has a line of help and an annotation; unknown words are errors with a
# suggestion.
use strict;
use warnings;
use Cwd 'abs_path';
use JSON::PP;
use Test::More;

my $root = abs_path($0 =~ s{tests/core/cli/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $work = `mktemp -d`;
chomp $work;
END { system 'rm', '-rf', $work if $work }
chdir $work or die;

# Writes a file, given as path and text; dies if it can't.
sub put { open my $out, '>', $_[0] or die; print $out $_[1]; close $out }
# The text of a file; '' if it can't be read.
sub text { open my $in, '<', $_[0] or return ''; local $/; <$in> }
# What the program prints with these words, on both outputs.
sub run { `$build/cnnrun @_ 2>&1` }

# ---- what there is ----

put('names.lua', <<'END');
local c = require "cnnrun"
return function()
  local last
  for name, f in pairs(c) do
    assert(type(f) == "function" and (not last or last < name))
    last = name
    print(name)
  end
end
END
my @names = split /\n/, run('names.lua');
is($?, 0, 'pairs(c) gives words in order') or diag(@names);
cmp_ok(scalar @names, '>', 200, scalar(@names) . ' names in the module');

my @rows = map { decode_json($_) } split /\n/, run('lua', '--json');
is($?, 0, 'the reference as JSON');
my (%help, %count);
for my $row (@rows) {
    $help{$row->{call}} = $row->{help};
    $count{$row->{part} =~ s/^lib\..*/lib/r}++;
}
my @poor = grep { !length $_->{help} } @rows;
is(join(' ', map { $_->{call} } @poor), '', 'functions without a line of help: 0 of ' . @rows);
is(join(' ', map { $_->{call} } grep { my $row = $_; grep { !length $_->{type} } @{$row->{options}} } @rows), '',
    'keys of their tables without a type: 0');
cmp_ok($count{$_} || 0, '>', 2, "there are functions of $_") for 'cnnrun', 'cnnrun.Net', 'cnnrun.Tensor', 'lib';

my $out = run('lua', '--annotations', 'types');
is($?, 0, 'a type file');
my $types = text('types/cnnrun.lua');
like($out, qr{"workspace.library": \["\Q$work\E/types"}, 'and the settings by which it is found');
my %aliases = map { $_ => 1 } $types =~ /^c\["(\w+)"\] = c\["\w+"\]$/mg;
my @unknown = grep { !exists $help{"c.$_"} && !$aliases{$_} } @names;
is("@unknown", '', 'names of the module without help: 0');
@unknown = grep { $types !~ /^function c\.\Q$_\E\(|^c\["\Q$_\E"\] = /m } @names;
is("@unknown", '', 'names of the module without an annotation: 0');
@unknown = ();
for my $row (@rows) {
    next if $row->{call} =~ /^c\./ || $row->{part} =~ /^lib\./; # lib's own files have theirs
    my ($owner, $name) = split /:/, $row->{call};
    push @unknown, $row->{call} if $types !~ /^function \w+:\Q$name\E\(/m;
}
is("@unknown", '', 'methods without an annotation: 0');
my %described;
for my $part ($types =~ /((?:^---.*\n)*^(?:function |c\[)[^\n]*)/mg) {
    next if $part =~ /\] = c\[/;
    my ($name) = $part =~ /^(?:function )?(c\S+?|\w+:\w+)\(/m;
    my $params = () = $part =~ /^---\@param/mg;
    my ($args) = $part =~ /\(([^()]*)\)(?: end)?$/;
    my $want = () = ($args // '') =~ /[^,\s]+/g;
    push @unknown, "$name($params)" if $params != $want;
}
is("@unknown", '', 'a type for each parameter');
put('parse.lua', "return function()\n" . ($types =~ s/^return c$//mr) . "end\n");
run('parse.lua');
is($?, 0, 'the file is Lua');
like($types, qr/^---\@field kernel_shape\? integer\|integer\[\] extent of the window.*default 0/m,
    'attributes as cnnrun ops tells them');
my $again = text('types/cnnrun.lua');
run('lua', '--annotations', 'types');
is(text('types/cnnrun.lua'), $again, 'the same once more');
put('file', '');
$out = run('lua', '--annotations', 'file');
ok($? != 0 && $out =~ /^cnnrun lua: file/, 'a file is no folder');

# ---- one at a time ----

like(run('lua'), qr/^  c\.load\(net, options\?\) .*\n(?:.*\n)*  tensor:topk\(k\?\)(?:.*\n)*  csv\.write\(/m,
    'a line each');
my $one = run('lua', 'load');
like($one, qr/c\.load\(.*takes +net: .*gives +cnnrun\.Net.*weights +string\n.*random:SEED/s, 'one in detail');
my $whole = run('lua', 'c.load');
is(substr($one, 0, length $whole), $whole, 'by its whole name; objects of plugins may have methods of that name');
is(run('lua', 'cnnrun.load'), $whole, 'or the module\'s');
like(run('lua', 'conv2d'), qr/c\.conv .*kernel_shape.*weight +.*an? weight/s, 'a constructor, by an alias');
like(run('lua', 'Tensor:topk'), qr/tensor:topk/, 'a method');
like(run('lua', 'csv'), qr/^lib\.csv: .*\n(?:  csv\.\w+\(.*\n){5}$/, 'a part');
like(run('lua', 'plot.bars'), qr/title .*horizontal +boolean/s, 'the options that one extends, too');
$out = run('lua', 'laod');
ok($? != 0 && $out =~ /laod: no such function; did you mean load\?/, 'a name that is none');

# ---- in scripts ----

my @mistakes = (
    ['return function() c.laod "x" end', qr/has no 'laod' \(did you mean 'load'\?\)/, 'in an experiment'],
    ['local f = c.laod return function() end', qr/mistake\.lua:2: .*'laod' \(did you mean 'load'\?\)/,
        'at its top, before main runs'],
    ['return function() c.tensor { data = { 1 } }:topc() end', qr/no 'topc' \(did you mean 'topk'\?\)/, 'a method'],
    ['return function() c.load = 1 end', qr/not to be changed/, 'an assignment']);
for my $case (@mistakes) {
    put('mistake.lua', "local c = require 'cnnrun'\n$case->[0]\n");
    my $told = run('mistake.lua');
    ok($? != 0 && $told =~ $case->[1], "a mistake: $case->[2]") or diag($told);
}
done_testing();
