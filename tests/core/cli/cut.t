#!/usr/bin/perl
# A mapped model that is truncated during use: the program reports it and ends.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Copy;
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(sleep);

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
my $dir = abs_path(tempdir(CLEANUP => 1));
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";

# Loads the model, says so by making a folder, waits for another, runs it.
open my $script, '>', "$dir/run.lua" or die;
print $script <<'END';
local c = require "cnnrun"
return function(args)
  local m = c.load(args[1])
  c.folder(args[2] .. "/loaded")
  local begin = c.now()
  while not c.exists(args[2] .. "/go") and c.now() - begin < 20 do end
  local x = c.tensor { shape = { 1, 1, 28, 28 }, dtype = "f32" }
  print("ran", m:run { x } ~= nil)
end
END
close $script;

# Exit code, what ended it, what it said.
sub run_and_cut {
    my ($mode) = @_;
    system('rm', '-rf', "$dir/at");
    mkdir "$dir/at";
    system("$build/cnnrun", 'convert', 'scripts/nets/lenet5.lua', '-o', "$dir/net.cnr") == 0 or return;
    chmod $mode, "$dir/net.cnr";
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/told" or die;
        open STDERR, '>>&', \*STDOUT or die;
        exec "$build/cnnrun", "run", "--trust", "$dir/run.lua", "$dir/net.cnr", "$dir/at" or die;
    }
    for (1 .. 400) { last if -d "$dir/at/loaded"; sleep 0.05 }
    truncate "$dir/net.cnr", 0;
    mkdir "$dir/at/go";
    waitpid $pid, 0;
    my $status = $?;
    local (@ARGV, $/) = ("$dir/told");
    return ($status >> 8, $status & 127, scalar(<>) // '');
}

my ($code, $signal, $text) = run_and_cut(0644);
ok $code == 3 && $signal == 0, 'a model of ours that is cut short is an error' or diag("$code $signal $text");
like $text, qr/^cnnrun: a model's file was cut short/m, 'and told';
($code, $signal, $text) = run_and_cut(0666);
ok $code == 0 && $text =~ /ran\ttrue/, 'one that others could have cut short runs on, as it was copied'
    or diag("$code $signal $text");
done_testing;
