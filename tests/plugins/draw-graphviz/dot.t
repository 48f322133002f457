#!/usr/bin/perl
# The object "dot": graphs become pictures; parts of DOT that could name a file are refused.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
plan skip_all => 'the plugin draw-graphviz is not built' unless -e "$build/plugins/draw-graphviz.so";

open my $f, '>', "$tmp/dot.lua" or die;
print $f <<'END';
local c = require "cnnrun"
return function()
  local dot = c.object("dot")
  local function try(name, text, format)
    local good, got = pcall(dot.render, dot, text, format or "svg")
    print(name, good, good and #got or got)
  end
  try("svg", "digraph { a -> b }")
  try("png", "digraph { a -> b }", "png")
  try("quoted", [[digraph { a [label="</#\" <"] }]])
  try("format", "digraph { a }", "pdf")
  try("syntax", "digraph { a -> ")
  try("empty", "")
  try("html", "digraph { a [label=<<IMG SRC=\"x.png\"/>>] }")
  try("hidden", "digraph { /* \" */ a [label=<b>] /* \" */ }")
  try("image", "digraph { a [image=\"/etc/passwd\"] }")
  try("shape", "digraph { node [shapefile=\"x.png\"]; a }")
  try("style", "graph { stylesheet=\"http://x\"; a }")
  try("background", "graph { _background=\"I 0 0 9 9 1 -x\"; a }")
  try("again", "digraph { a -> b }")
  print("options", pcall(c.object, "dot", { a = 1 }))
end
END
close $f;
my %got = map { /^(\w+)\t(\w+)\t(.*)/ ? ($1 => [$2, $3]) : () } `$build/cnnrun $tmp/dot.lua 2>$tmp/err`;
is($got{$_}[0], 'true', $_) or diag $got{$_}[1] for qw(svg png quoted again);
like($got{html}[1], qr/HTML labels and comments/, 'HTML labels');
like($got{hidden}[1], qr/HTML labels and comments/, 'comments that hide one');
like($got{$_}[1], qr/names a file/, $_) for qw(image shape style background);
like($got{$_}[1], qr/no graph in DOT/, $_) for qw(syntax empty);
like($got{format}[1], qr/want svg or png, got pdf/, 'formats');
is($got{options}[0], 'false', 'options');
is(-s "$tmp/err", 0, 'nothing is said beside') or diag `cat $tmp/err`;
done_testing;
