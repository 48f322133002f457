#!/usr/bin/perl
# Sequences of pictures from a script: their times are kept; numbered files, or the output of a plugin.
use strict;
use warnings;
use Test::More;

my $root = $0 =~ s{tests/core/lua/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
my $plugin = "$build/tests/core/host/gauges/gauges.so";
my $work = `mktemp -d`;
chomp $work;
END { system 'rm', '-rf', $work if $work }

open my $script, '>', "$work/copy.lua" or die;
print $script <<'END';
local c = require "cnnrun"
return function(args)
  local w <close> = c.writer(args[1])
  for i, picture, label, name, time in c.samples(args[2]):each() do
    w:write(picture, { name = name, time = time and time + 1 })
  end
  if args[3] then
    print(pcall(w.write, w, c.tensor { shape = { 1, 1, 1 }, data = { 99 }, dtype = "u8" }))
    print(pcall(w.close, w))
  else w:close() end
  print(pcall(w.close, w))
end
END
close $script;
# What the script prints.
sub run { `$build/cnnrun --plugin-dir $plugin $work/copy.lua @_ 2>&1` }
# The text of a file; "none": there is none.
sub text { open my $in, '<', $_[0] or return "none"; local $/; <$in> }

my $out = run("$work/a.ticks", 'ticks:3');
is($?, 0, 'pictures of a stream to a stream') or diag($out);
is(text("$work/a.ticks"), "tick 0 at 1040 ms\ntick 1 at 1080 ms\ntick 2 at 1120 ms\nend\n",
    'with their names and times');
like($out, qr/false\t.*the writer was closed/, 'closed once');
$out = run("$work/b.ticks", 'ticks:1', 'fail');
like($out, qr/false\t.*no 99 fits.*false\t.*no 99 fits/s, 'a failure is told, and again at the end');
like(text("$work/b.ticks"), qr/given up$/, 'and the plugin hears of it');
$out = run("$work/f-%03d.png", 'ticks:2');
is($?, 0, 'a file each') or diag($out);
ok(-s "$work/f-001.png" && -s "$work/f-002.png" && !-e "$work/f-003.png", 'numbered from 1');
$out = run("$work/none.png", 'ticks:2');
like($out, qr/want one %d where the number goes/, 'a name without a number');
$out = run("$work/a.xyz", 'ticks:2');
like($out, qr/no source plugin writes such sequences/, 'a name nobody writes');
done_testing;
