# Blocks of code in Markdown pages, and the commands that run them. readme.t runs them; chapter.py runs the Python ones
# of core/docs.
package Blocks;
use strict;
use warnings;
use Exporter 'import';
our @EXPORT_OK = qw(blocks_of code_commands missing_lines);

my $starts = qr{^(?:cnnrun|ninja|build/|tools/|cmake|cd|mkdir|sed|echo|cp|prove|python3|perl|pip|tar|apt-get|tests/|[A-Z_]+=\S+ )\b};

# Commands of a block one by one, unless they build on each other.
sub commands_of {
    my $text = shift;
    return $text if $text =~ /^(?:cd|cp|sed|cmake|tar) /m;
    return split /\n(?=(?:cnnrun|build\/|tools\/|tests\/|python3|perl)\b)/, $text;
}

# Blocks of one text: run (a command), output (of the command above it), or code in a language.
sub rows_of {
    my ($language, $text, $line) = @_;
    if ($language eq 'console') {
        my ($command, $output) = $text =~ /^\$ ([^\n]*)\n?(.*)/s;
        return (['run', $command, $line], ['output', $output, $line + 1]);
    }
    $text =~ s/^   (?=\S)//mg if $language eq '';
    return map { ['run', $_, $line] } commands_of($text) if $language eq 'sh' || $language eq '' && $text =~ $starts;
    return ['output', $text, $line] if $language =~ /^(?:|text|json)$/;
    return ['code', $text, $line, $language];
}

# Every block of a page, in order: [kind, text, line, language or file].
sub blocks_of {
    my @lines = split /\n/, shift;
    my (@blocks, $file);
    for (my $i = 0; $i < @lines; $i++) {
        if ($lines[$i] =~ /^\s*```(\w*)/) {
            my ($language, $first, @text) = ($1, $i + 2);
            push @text, $lines[$i] while ++$i < @lines && $lines[$i] !~ /^\s*```/;
            push @blocks, rows_of($language, join("\n", @text), $first);
            next;
        }
        if (($i == 0 || $lines[$i - 1] =~ /^\s*$/) && $lines[$i] =~ /^( {4,})\S/) {
            my ($indent, $first, @text) = ($1, $i + 1);
            push @text, substr $lines[$i++], length $indent while $i < @lines && $lines[$i] =~ /^$indent/;
            my $text = join "\n", @text;
            push @blocks, $text =~ /^#include/ && $file ? ['file', $text, $first, $file] : rows_of('', $text, $first);
            next;
        }
        $file = $1 if $lines[$i] =~ /^\d+\. Write `(\S+)`/;
        push @blocks, ['run', $1, $i + 1] while $lines[$i] =~ /`((?:(?:build\/)?cnnrun|cmake) [^`]+)`/g;
    }
    return @blocks;
}

my $pictures = 'for i in 1 2 3 4 5; do cat digits.txt; done >twenty.txt';
my $train = "$pictures; cnnrun train NET --data images:twenty.txt --epochs 1 -o trained.cnr --overwrite";
my $schedule = 'require "lib.prune".schedule';
# Code by language and by a pattern in it; the command that runs it (CODE is the file), and text before and after it.
my @runs = (
    [lua => qr/scores: \[pictures, classes\]/, 'cnnrun eval NET --data images:digits.txt --metric CODE'],
    [lua => qr/place = function\(rows.*sim:/s, 'cnnrun place NET --board odroid_xu3,dry --policy CODE --runs 1'],
    [lua => qr/place = function\(rows/, 'cnnrun run NET PICTURE --policy CODE --devices cpu'],
    [lua => qr/^criterion = /, "$pictures; cnnrun prune NET CODE --data images:twenty.txt -o criterion.cnr",
     "return $schedule { layers = { ip1 = 0.5 }, rates = 'once', scan = false, saliency = { batches = 1, batch = 2 },\n" .
     'train = { epochs = 1, rate = 1e-4 },', '}'],
    [lua => qr/\Q$schedule/, "$pictures; cnnrun prune NET CODE --data images:twenty.txt -o pruned.cnr --validation 0.5"],
    [lua => qr/^  weights = /, 'cnnrun show CODE --weights random:1', "local c = require 'cnnrun'\nreturn c.net {\n",
     "input = { 'data', shape = { 1, 8 } }, c.dense { 'fc', out = 2 } }"],
    [lua => qr/return c\.net/, 'cnnrun show CODE --weights random:1'],
    [lua => qr/return function\(p\)/,
     "$pictures; cnnrun sweep CODE NET images:twenty.txt --grid rate=.01,.1 --seeds 1..2 -o swept"],
    [lua => qr/step = function\(seen/, 'cnnrun govern CODE --scene monitor'],
    [lua => qr/return function\(found, frame\)/, 'cnnrun monitor yolox_nano.onnx dog.jpg --on CODE --json'],
    [lua => qr/return function\(scores, labels/, "$train --loss CODE"],
    [lua => qr/return function\(weight, gradient, state/, "$train --lr 0.0001 --optimizer CODE"],
    [lua => qr/c\.load\("squeezenet\.onnx"\)/, 'LUA_PATH="$PREFIX/share/lua/5.4/?.lua" lua5.4 CODE'],
    [lua => qr/return function\(args\)/, "$pictures; cnnrun CODE NET images:twenty.txt out.npy"],
    [java => qr/class Digit/, 'cp CODE Digit.java'], # the block behind it compiles and runs it
    [python => qr//, q{python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' CODE}],
    [cpp => qr//, 'c++ -std=c++17 -I"$PREFIX/include" CODE -L"$PREFIX/lib" -lcnnrun -Wl,-rpath,"$PREFIX/lib" -o code && ./code',
     "#include <iostream>\n"],
    [c => qr//, 'cc -Wall -Werror -I"$PREFIX/include" CODE -L"$PREFIX/lib" -lcnnrun -Wl,-rpath,"$PREFIX/lib" -o code && ./code'],
);

# The shell commands that write a block of code into a file and run it; nothing if no row fits. A comment
# "-- cnnrun NAME.lua WORDS" in Lua code is the command.
sub code_commands {
    my ($code, $language, $number) = @_;
    my ($row) = grep { $_->[0] eq $language && $code =~ $_->[1] } @runs or return;
    my ($command, $before, $after) = ($row->[2], $row->[3] // '', $row->[4] // '');
    my $file = "code$number." . ($language eq 'python' ? 'py' : $language);
    if ($code =~ /-- cnnrun (.*?(\w+\.lua)\b.*)/ && $code !~ /opencl:/) {
        $file = $2;
        $command = "$pictures; cnnrun $1" =~ s/(?<= )(?:mnist:DIR|SPEC)\b/images:twenty.txt/r;
    }
    $code =~ s/^(?!#include)(.*)\z/int main() {\n$1\n}/ms if $language =~ /^c(?:pp)?$/ && $code !~ /\bmain\(/;
    $command =~ s/\bCODE\b/$file/g;
    return ("cat >$file <<'END_OF_CODE'\n$before$code\n$after\nEND_OF_CODE\n", $command);
}

# A line in a form for comparison: numbers, bars and blanks are equal.
sub kind_of {
    my $line = shift;
    $line =~ s/\d[\d.,]*/N/g;
    $line =~ s/#+/#/g;
    $line =~ s/^energy\s.*/energy/; # of the machine's meters
    return $line =~ s/\s+/ /gr =~ s/^ | $//gr;
}

# Lines of a page's output that are missing in the printed text.
sub missing_lines {
    my ($wanted, $printed) = @_;
    my %printed = map { kind_of($_) => 1 } split /\n/, $printed;
    return grep { /\S/ && !/^\s*\.\.\.$/ && !$printed{kind_of($_)} } split /\n/, $wanted;
}

1;
