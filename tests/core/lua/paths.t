#!/usr/bin/perl
# Where a script may write: files named by its words, files below --output's folder, any file when trusted;
# links are followed before the check. And c.write: text and tensors, completely or not at all.
use strict;
use warnings;
use Cwd 'abs_path';
use Test::More;

my $root = abs_path($0 =~ s{tests/core/lua/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $work = `mktemp -d`;
chomp $work;
END { system 'rm', '-rf', $work if $work }
chdir $work or die;

# Writes a file, given as path and text; dies if it can't.
sub put { open my $out, '>', $_[0] or die; print $out $_[1]; close $out }
# The text of a file; "none": there is none.
sub text { open my $in, '<', $_[0] or return "none"; local $/; <$in> }
mkdir $_ for 'made', 'other', 'scripts';
# WORD PATH: writes PATH
put('scripts/write.lua', <<'END');
local c = require "cnnrun"
return function(args)
  c.write(args[#args]:gsub("^@", ""), "hello\n")
  return 0
end
END
put('scripts/below.lua', <<'END');
local c = require "cnnrun"
return function(args)
  c.folder(args.output .. "/sub")
  c.write(args.output .. "/sub/a.txt", "a")
  c.write(args.output .. "/t.npy", c.tensor { data = { 1, 2, 3 } })
  c.tensor { data = { 4, 5 } }:save(args.output .. "/u.npy")
  c.writer(args.output .. "/%d.png"):write(c.tensor { shape = { 2, 2, 3 }, dtype = "u8" })
  print(c.text(args.output .. "/sub/a.txt"), #c.tensor(args.output .. "/t.npy"))
end
END
# What the program prints.
sub run { `$build/cnnrun @_ 2>&1` }

run('scripts/write.lua', 'out.txt');
is(text('out.txt'), "hello\n", 'a word');
run('scripts/write.lua', 'two.txt', '@./two.txt');
is(text('two.txt'), "hello\n", 'the same place by another name');
run('scripts/write.lua', '--out=three.txt,x', '@three.txt');
is(text('three.txt'), "hello\n", 'a part of a word');
run('scripts/write.lua', 'made', '@made/in.txt');
is(text('made/in.txt'), "hello\n", 'below a folder');

my $out = run('scripts/write.lua', 'made', '@other/in.txt');
isnt($?, 0, 'nowhere else');
like($out, qr/scripts.write\.lua:3.*'other.in\.txt' may not be written.*--output DIR.*--trust/s,
    'and the message says what to do');
ok(!-e 'other/in.txt', 'nothing is written');
$out = run('scripts/write.lua', 'made', '@made/../other/in.txt');
ok($? != 0 && !-e 'other/in.txt', 'nor by a way round');
symlink '../other', 'made/link' or die;
$out = run('scripts/write.lua', 'made', '@made/link/in.txt');
ok($? != 0 && !-e 'other/in.txt', 'nor through a link');
like($out, qr/a link that leads elsewhere/, 'which is reported');
symlink '../other/in.txt', 'made/file' or die;
$out = run('scripts/write.lua', 'made', '@made/file');
ok($? != 0 && !-e 'other/in.txt', 'nor through a link to a file');
run('scripts/write.lua', '@scripts/beside.txt');
ok($? != 0 && !-e 'scripts/beside.txt', 'beside the script it may read only');

$out = run('--output', 'kept', 'scripts/below.lua');
is($?, 0, '--output') or diag($out);
is($out, "a\t3\n", 'what lies there can be written and read');
ok(-s 'kept/t.npy' && -s 'kept/u.npy' && -s 'kept/1.png', 'text, arrays, pictures');
run('--output', 'kept', 'scripts/write.lua', '@' . abs_path('kept') . '/b.txt');
is(text('kept/b.txt'), "hello\n", 'by its whole name, too');
$out = run('--output', 'kept', 'scripts/write.lua', '@kept/../other/in.txt');
ok($? != 0 && !-e 'other/in.txt', 'not out of it');
symlink '../other', 'kept/link' or die;
$out = run('--output', 'kept', 'scripts/write.lua', '@kept/link/in.txt');
ok($? != 0 && !-e 'other/in.txt', 'not through a link in it');
$out = run('--output', 'out.txt', 'scripts/write.lua', '@x');
ok($? != 0 && $out =~ /out\.txt: can't be made a folder/, 'a file is no folder');
$out = run('--output', 'kept', "$root/scripts/nets/lenet5.lua", 'x.png');
like($out, qr/--output is for scripts/, 'a net has no use for it');

run('--trust', 'scripts/write.lua', '@other/in.txt');
is(text('other/in.txt'), "hello\n", '--trust');

put('mode.txt', 'before');
chmod 0640, 'mode.txt';
run('scripts/write.lua', 'mode.txt');
is(sprintf('%o', (stat 'mode.txt')[2] & 0777), '640', 'a file that is there keeps its mode');
SKIP: {
    skip 'no /dev/full', 1 if !-e '/dev/full';
    $out = run('scripts/write.lua', '/dev/full');
    ok($? != 0 && $out =~ m{/dev/full}, 'a device is refused');
}
put('scripts/remove.lua', <<'END');
local c = require "cnnrun"
return function(args)
  local path = args[#args]:gsub("^@", "")
  local names, bytes = {}, 0
  for _, file in ipairs(c.files(path:match "^(.*)/")) do names[#names + 1], bytes = file.name, bytes + file.bytes end
  table.sort(names)
  print(table.concat(names, " "), bytes)
  c.remove(path)
end
END
system 'mkdir', '-p', 'held/sub';
put("held/$_", 'abc') for qw(one two);
put('held/three', 'three');
$out = run('scripts/remove.lua', 'held', '@held/one');
is($out, "one three two\t11\n", "a folder's files are listed, folders are not");
is(text('held/one'), 'none', 'a file is removed');
$out = run('scripts/remove.lua', 'held/sub', '@held/two');
ok($? != 0 && $out =~ /'held' may not be read/ && -e 'held/two', 'none that is not named');
$out = run('scripts/remove.lua', 'held', '@held/sub');
ok($? != 0 && $out =~ /want a file, got a folder/ && -d 'held/sub', 'no folder');
$out = run('scripts/remove.lua', 'held', '@held/one');
ok($? != 0 && $out =~ /No such file/, 'nor what is not there');
symlink '../mode.txt', 'held/away' or die;
$out = run('scripts/remove.lua', 'held', '@held/away');
ok($? != 0 && -e 'mode.txt' && -l 'held/away', 'nor a link that leads elsewhere');
put('scripts/date.lua', 'return function() print(table.concat({ require "cnnrun".date() }, " ")) end');
like(`$build/cnnrun scripts/date.lua`, qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d{10}$/, 'the date');
my @left = glob '.*cnnrun-tmp kept/.*cnnrun-tmp';
is(@left, 0, 'nothing is left behind');
done_testing();
