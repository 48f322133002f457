#!/usr/bin/perl
# The core knows nothing by name: no string and no enum constant in core/ is what a plugin registered.
use strict;
use warnings;
use File::Find;
use JSON::PP;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";

# Words of English that a plugin happened to choose and that the core needs in another sense; each
# with its reason.
my %excused = (
    simulated => 'where a figure comes from, as measured and estimated are',
    sub => 'string.sub of Lua itself, which the sandbox must offer under that name',
);

# name -> what it is, as the program itself tells
my %registered;

# JSON rows of a command.
sub ask {
    my ($what) = @_;
    my @lines = `$build/cnnrun $what --json`;
    return $? ? () : map { decode_json($_) } @lines;
}

for my $plugin (ask('plugins')) {
    next if defined $plugin->{refused};
    $registered{ $plugin->{name} } = 'plugin';
    $registered{$_} = 'device family' for @{ $plugin->{families} };
    for my $kind (keys %{ $plugin->{provides} }) {
        $registered{$_} = $kind for @{ $plugin->{provides}{$kind} };
    }
}
for my $op (ask('ops')) {
    $registered{$_} = "alias of $op->{name}" for @{ $op->{aliases} };
}
cmp_ok(scalar keys %registered, '>', 20, 'plugins registered names to look for');
diag(scalar(keys %registered) . " registered names");

my @files;
find({ wanted => sub { push @files, $_ if /\.(c|h|in|lua)$/ }, no_chdir => 1 }, "$root/core");
cmp_ok(scalar @files, '>', 30, 'and the core has files to look through');

# Comments become blanks; strings and the lines stay.
sub without_comments {
    my ($text, $lua) = @_;
    my $string = qr/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/;
    my $comment = $lua ? qr/--\[\[.*?\]\]|--[^\n]*/s : qr{/\*.*?\*/|//[^\n]*}s;
    $text =~ s/($string)|($comment)/defined $1 ? $1 : $2 =~ s{[^\n]}{ }gr/ge;
    return $text;
}

# All [line, string] of a text, neighbours joined as the compiler joins them.
sub strings_in {
    my ($text, $lua) = @_;
    my @found;
    my $quotes = $lua ? qr/"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'/ : qr/"((?:[^"\\\n]|\\.)*)"/;
    while ($text =~ /$quotes/g) {
        my $string = defined $1 ? $1 : $2;
        my $line = 1 + (substr($text, 0, $-[0]) =~ tr/\n//);
        push @found, [$line, $string];
    }
    return @found;
}

# All [line, constant] of the enums of a text.
sub constants_in {
    my ($text) = @_;
    my @found;
    while ($text =~ /\benum\b\s*\w*\s*\{([^}]*)\}/g) {
        my ($body, $line) = ($1, 1 + (substr($text, 0, $-[1]) =~ tr/\n//));
        $body =~ s/=[^,]*//g;
        push @found, map { [$line, $_] } $body =~ /(\w+)/g;
    }
    return @found;
}

# The registered name that a constant stands for: CONV, CNRI_OP_CONV and LAYER_CONV are all conv.
sub name_of_constant {
    my ($constant) = @_;
    my @parts = split /_/, lc $constant;
    shift @parts while @parts && $parts[0] =~ /^(cnr|cnri|op|kind|layer|device|format|encoding)$/;
    my $name = join '_', @parts;
    my $dashed = $name =~ tr/_/-/r;
    return (grep { exists $registered{$_} } $name, $dashed)[0] // ();
}

# What importers and exporters are called: not even a part of a string is.
my @formats = grep { $registered{$_} =~ /^(importer|exporter)/ } sort keys %registered;

my (@strings, @constants, @words);
for my $path (sort @files) {
    open my $in, '<', $path or die "$path: $!";
    my $lua = $path =~ /\.lua$/;
    my $text = without_comments(do { local $/; <$in> }, $lua);
    $text =~ s/^[ \t]*#[ \t]*include[^\n]*//mg;
    for my $found (strings_in($text, $lua)) {
        my ($line, $string) = @$found;
        push @words, map { "$path:$line: \"$string\" names $_" } grep { $string =~ /\b\Q$_\E\b/i } @formats;
        next if !exists $registered{$string} || exists $excused{$string};
        push @strings, "$path:$line: \"$string\" is a registered $registered{$string}";
    }
    next if $lua;
    for my $found (constants_in($text)) {
        my ($line, $constant) = @$found;
        push @constants, "$path:$line: $constant" for name_of_constant($constant);
    }
}
ok(!@strings, 'no string literal in core/ is a registered name') or diag(join "\n", @strings);
ok(!@words, 'no string literal in core/ names a format of a plugin') or diag(join "\n", @words);
ok(!@constants, 'no enum constant in core/ is one') or diag(join "\n", @constants);

# That the search finds what it should.
my ($some) = sort grep { /^\w+$/ } keys %registered;
$some = 'x' if !defined $some;
my $sample = without_comments("/* \"$some\" */ if (is(\"$some\")) // \"$some\"\n enum { A, \U$some\E = 3 };", 0);
is(scalar(grep { $_->[1] eq $some } strings_in($sample, 0)), 1, 'a string is found, comments are not');
is(scalar(map { name_of_constant($_->[1]) } constants_in($sample)), 1, 'and a constant');
is_deeply([sort keys %excused], [sort grep { exists $registered{$_} } keys %excused],
    'nothing is excused that nobody registers');
done_testing;
