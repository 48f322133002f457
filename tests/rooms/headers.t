#!/usr/bin/perl
# Each public header compiles alone, as C99 and as C++, without a warning; all together stay small.
use strict;
use warnings;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
my @headers = sort glob("$root/core/include/cnnrun/*.h"), "$build/include/cnnrun/version.h";

my $c = '-x c -std=c99 -pedantic -Wstrict-prototypes';
my $cpp = '-x c++ -std=c++11 -pedantic';
my @compilers = (['gcc', $c], ['clang', $c], ['g++', $cpp], ['clang++', $cpp]);

# Compiles a text; returns what the compiler said.
sub complaints {
    my ($compiler, $flags, $text) = @_;
    my $file = "/tmp/cnnrun-header-$$.txt";
    open my $out, '>', $file or die "$file: $!";
    print $out $text;
    close $out;
    my $said = `$compiler $flags -Wall -Wextra -Werror -fsyntax-only -I$root/core/include -I$build/include $file 2>&1`;
    my $failed = $?;
    unlink $file;
    return $failed ? $said || 'failed' : '';
}

for my $compiler (@compilers) {
    my ($name, $flags) = @$compiler;
SKIP: {
        skip "$name is not installed", 1 if system("command -v $name >/dev/null 2>&1") != 0;
        my @faults;
        for my $header (@headers) {
            my ($file) = $header =~ m{([^/]+)$};
            my $once = "#include <cnnrun/$file>\n";
            my $said = complaints($name, $flags, "$once${once}int cnrt_here(void);\n");
            push @faults, "$file: $said" if $said;
        }
        ok(!@faults, "each of " . @headers . " headers compiles alone with $name")
            or diag(join "\n", @faults);
    }
}
isnt(complaints('gcc', $c, "#include <cnnrun/op.h>\nint f(cnr_plugin *p);\n"), '',
    'a header does not bring what it does not need');

# How much an author of plugins has to read.
my $lines = 0;
for my $header (@headers) {
    open my $in, '<', $header or die "$header: $!";
    local $/;
    my $text = <$in>;
    $text =~ s{/\*.*?\*/}{}gs;
    $lines += grep { /\S/ } split /\n/, $text;
}
ok($lines > 300, "the public headers were read");
cmp_ok($lines, "<=", 1_750, "an author of plugins has at most 1,750 lines to read, without comments");
diag("public headers: $lines lines without comments");
done_testing;
