#!/usr/bin/perl
# The pages of the reference have every public declaration: C's headers, symbols that the library exports, what Lua's
# annotations and Python's __all__ name, commands and operators.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use Test::More;

my $root = abs_path($0 =~ s{tests/outside/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $dir = tempdir(CLEANUP => 1);
my $said = `$root/tools/reference.pl $build/cnnrun $dir 2>&1`;
is $?, 0, 'the pages are made' or diag $said;

# The text of a file; dies if it can't be read.
sub slurp { open my $in, '<', $_[0] or die "$_[0]: $!"; local $/; return scalar <$in> }
sub lacks { # names that are no heading of the page, and, with code, in no block of it
    my ($text, $code, @names) = @_;
    my %there = map { $_ => 1 } $code ? $text =~ /(\w+)/g : $text =~ /^##+ (?:\w+[.:])*(\w+)/mg;
    return grep { !$there{$_} } @names;
}
for my $header (glob "$root/core/include/cnnrun/*.h") {
    my $name = $header =~ s{.*/|\.h$}{}gr;
    my $text = slurp($header) =~ s{/\*.*?\*/}{}gsr;
    my $page = slurp("$dir/c/$name.md");
    my @functions = $text =~ /^(?!typedef|#|\s|return)[\w *]*?\b(cnr_\w+)\(/mg;
    my @types = ($text =~ /^(?:typedef [^{};]*?|\} ?)\b(cnr_\w+);/mg, $text =~ /^typedef[^;{]*\(\*(\w+)\)/mg);
    my @macros = grep { !/_H$/ } $text =~ /^# *define (\w+)/mg;
    @macros = grep { /^CNR/ } @macros;
    my @constants = map { /\b(CNR_\w+)\s*(?:=|,|\n)/g } $text =~ /^(?:typedef )?enum[^{;]*\{(.*?)^\}/msg;
    my @lacking = (lacks($page, 0, @functions, @types, @macros), lacks($page, 1, @constants));
    is "@lacking", '', "$name.h: " . @functions . ' functions, ' . @types . ' types, ' . @macros . ' macros';
}
my $all = join '', map { slurp($_) } glob "$dir/c/*.md";
my @exported = `nm -D --defined-only $build/libcnnrun.so.1 2>/dev/null` =~ /\b(cnr_\w+)\@\@CNNRUN_(?!INSIDE)\w+/g;
SKIP: {
    skip 'no libcnnrun.so.1', 1 unless @exported;
    @exported = grep { $_ ne 'cnr_lua_open' } @exported; # what core/bind/lua/cnnrun.lua calls
    is join(' ', lacks($all, 0, @exported)), '', @exported . ' symbols that the library exports';
}
my $python = slurp("$root/core/bind/python/cnnrun/__init__.py");
my ($names) = $python =~ /__all__ = \[(.*?)\]/s;
is join(' ', lacks(slurp("$dir/python.md"), 0, $names =~ /"(\w+)"/g)), '', 'what Python exports';
`$build/cnnrun lua --annotations $dir/types`;
my $lua = slurp("$dir/lua.md");
my @absent = grep { index($lua, "### $_") < 0 } slurp("$dir/types/cnnrun.lua") =~ /^function ([\w.:]+)/mg;
is "@absent", '', 'functions of Lua';
my @operators = `$build/cnnrun ops --json` =~ /^\{"name":"(\w+)"/mg;
is join(' ', lacks(slurp("$dir/operators.md"), 0, @operators)), '', @operators . ' operators';
my @commands = `$build/cnnrun help commands` =~ /^  ([a-z]+)  +\S/mg;
is join(' ', lacks(slurp("$dir/commands.md"), 0, grep { $_ ne 'help' } @commands)), '', @commands . ' commands';
done_testing;
