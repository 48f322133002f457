#!/usr/bin/perl
# Every Markdown file: tables have as many cells in each row as in their head, links lead to files and
# headings that exist, and paths in backticks exist.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

# Cells of a table row. A bar within backticks or behind a backslash is text.
sub cells_of {
    my $row = shift;
    $row =~ s/`[^`]*`/x/g;
    $row =~ s/\\\|/x/g;
    $row =~ s/^\s*\||\|\s*$//g;
    return scalar(() = $row =~ /\|/g) + 1;
}

# Lines of a text outside of code, as [number, text].
sub prose_of {
    my ($number, $fenced, @lines) = (0, 0);
    for (split /\n/, shift) {
        $number++;
        $fenced = !$fenced if /^\s*```/;
        push @lines, [$number, $_] unless $fenced || /^\s*```/ || /^ {4}/;
    }
    return @lines;
}

# Faults of tables.
sub table_problems {
    my ($head, $previous, @bad) = (0, '');
    for (@_) {
        my ($number, $line) = @$_;
        if ($line !~ /^\|/) { ($head, $previous) = (0, ''); next }
        push @bad, "$number: " . cells_of($line) . " cells under a head of $head"
            if $head && cells_of($line) != $head;
        push @bad, "$number: a table without a head"
            if $previous eq '' && !grep { $_->[0] == $number + 1 && $_->[1] =~ /^\|[\s:|-]+$/ } @_;
        $head ||= cells_of($line);
        $previous = $line;
    }
    return @bad;
}

# The name by which a link reaches a heading.
sub anchor_of {
    my $text = lc shift;
    $text =~ s/[^\w\s-]//g;
    return $text =~ s/\s/-/gr;
}

# Faults of links.
sub link_problems {
    my ($file, @lines) = @_;
    my @bad;
    for (@lines) {
        my ($number, $line) = @$_;
        while ($line =~ /\]\(([^)\s]+)\)/g) {
            my ($path, $anchor) = split /#/, $1, 2;
            next if $path =~ /^\w+:/;
            my $target = $path eq '' ? $file : dirname($file) . "/$path";
            if (!-e $target) { push @bad, "$number: no $path"; next }
            next unless defined $anchor;
            my $found = grep { /^#+\s+(.*)/ && anchor_of($1) eq $anchor } split /\n/, slurp($target);
            push @bad, "$number: $path has no heading for #$anchor" unless $found;
        }
    }
    return @bad;
}

# Paths in backticks that begin with a folder of this tree; "NAME", "*" and "{" stand for others.
sub path_problems {
    my ($file, @lines) = @_;
    my @bad;
    for (@lines) {
        my ($number, $line) = @$_;
        while ($line =~ m{`((?:core|plugins|kernels|scripts|governors|tests|tools)/[\w./-]+)`}g) {
            my $path = $1;
            next if $path =~ m{NAME|mine|ROOM};
            push @bad, "$number: no $path" unless -e $path || -e dirname($file) . "/$path";
        }
    }
    return @bad;
}

# The text of a file; dies if it can't be read.
sub slurp { open my $in, '<', $_[0] or die "$_[0]: $!"; local $/; return scalar <$in> }

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
chdir $root or die "$root: $!";
my @self = ("| a | b |\n|---|---|\n| 1 |\n", "| a |\n\n", "[x](nowhere.md)", "[x](README.md#no-such)",
    "`core/nowhere.c`");
for my $text (@self) {
    my @lines = prose_of($text);
    my @bad = (table_problems(@lines), link_problems('README.md', @lines), path_problems('README.md', @lines));
    is(scalar @bad, 1, "finds the problem of '" . $text =~ s/\n.*//sr . "'") or diag @bad;
}

# Files that a recipe has its reader write.
my %written = map { $_ => 1 } split ' ', `sed -n 's/^[0-9]*[.] Write \`\\([^\`]*\\)\`.*/\\1/p' core/docs/*.md */*/README.md`;
for my $file (map { s{^\./}{}r } sort split /\n/, `find . -name '*.md' ! -path './build*' ! -path '*/venv/*'`) {
    my @lines = prose_of(slurp($file));
    my @bad = grep { !/no (\S+)$/ || !$written{$1} }
        table_problems(@lines), link_problems($file, @lines), path_problems($file, @lines);
    is(join("\n", @bad), '', $file);
}
done_testing;
