#!/usr/bin/perl
# Writes the pages of the reference as Markdown: commands from their help, Lua from its annotations, C from the comments
# of the public headers, Python from its docstrings.
#     tools/reference.pl PROGRAM FOLDER
use strict;
use warnings;
use Cwd 'abs_path';
use File::Basename qw(basename dirname);
use File::Path 'make_path';
use File::Temp 'tempdir';

my ($program, $out) = @ARGV;
die "usage: tools/reference.pl PROGRAM FOLDER\n" unless @ARGV == 2 && -x $program;
$program = abs_path($program);
make_path("$out/c");
$out = abs_path($out);
chdir dirname(dirname(abs_path($0))) or die;

# The text of a file; dies where it can't be read.
sub slurp { open my $in, '<', $_[0] or die "$_[0]: $!\n"; local $/; return scalar <$in> }
# Writes a page, NAME.md, into the folder; dies where it can't.
sub page {
    my ($name, $text) = @_;
    open my $to, '>', "$out/$name.md" or die "$out/$name.md: $!\n";
    print $to $text;
    close $to or die "$out/$name.md: $!\n";
}
# What the program prints with these words; dies where it fails.
sub said { my $text = `$program @_`; die "$program @_ failed\n" if $?; return $text }
# A block of code in Markdown, of that language.
sub fence { return "```$_[0]\n" . ($_[1] =~ s/\s+\z//r) . "\n```\n" }

# Text in which Markdown sees no marks, but for backticks. Known names become links.
my %page_of;
# The text with letters escaped that Markdown would take.
sub escaped {
    my ($text, $here) = @_;
    my @parts = split /(`[^`]*`)/, $text;
    for (@parts) {
        next if /^`/;
        s/([<*\[\]|\\])/$1 eq '<' ? '&lt;' : "\\$1"/ge;
        s/\b(cnr_\w+|CNR_\w+|\w+_\w+)/`$1`/g;
        s/`(cnr_\w+)`/$page_of{$1} ? "[`$1`](" . ($page_of{$1} eq $here ? '' : "$page_of{$1}.md") . "#$1)" : "`$1`"/ge
            if defined $here;
    }
    return join '', @parts;
}

# ---- C ----

# A comment's text: its lines without stars.
sub comment_text { return join "\n", map { s{^\s*\*(?: |$)}{}r } split /\n/, $_[0] =~ s{^/\*\s?|\s*\*/$}{}gr }

# The name that a declaration gives; the first constant for enums without one.
sub name_of {
    my $code = shift =~ s{/\*.*?\*/}{}gsr;
    my $flat = $code =~ s/\{.*\}/{}/sr; # without members
    return $1 if $code =~ /^#define (\w+)/;
    return $1 if $flat =~ /^typedef[^{]*\(\*(\w+)\)/;
    return $1 if $flat =~ /^typedef.*?(\w+)(?:\[\w+\])?;$/s;
    return $1 if $code =~ /^enum \{\s*(\w+)/;
    return $1 if $flat =~ /^(?:struct|enum|union) (\w+) \{/;
    return $1 if $flat =~ /(\w+)\(/ || $flat =~ /(\w+)(?:\[\])?(?: =.*)?;$/s;
    return;
}

# The next declaration of a text from its position on, without the body of a function.
sub declaration_at {
    my $text = shift;
    my ($depth, $start, $body) = (0, pos $$text);
    while ($$text =~ m{\G(?:/\*.*?\*/|"(?:\\.|[^"])*"|'(?:\\.|[^'])*'|(.))}gcs) {
        my $c = $1 // '';
        if ($c eq '{' && $depth == 0 && substr($$text, $start, pos($$text) - $start) =~ /\)\s*\{\z/) { $body = pos($$text) - 1 }
        $depth++ if $c =~ /[{(]/;
        $depth-- if $c =~ /[})]/;
        return substr($$text, $start, $body - $start) =~ s/\s*\z/;/r if $c eq '}' && $depth == 0 && defined $body;
        return substr $$text, $start, pos($$text) - $start if $c eq ';' && $depth == 0;
    }
    return;
}

# A header as rows: [section, title], [prose, text], [item, name, code, text].
sub header_rows {
    my $text = shift;
    $text =~ s{^/\* clang-format o(?:n|ff) \*/\n}{}mg;
    $text =~ s{^(\#ifdef __(?:cplusplus|GNUC__)\n.*?^\#endif\n)}{my $lines = $1; $lines =~ /^#define/m ? $lines : ''}msge;
    $text =~ s/^#(?:include|ifn?def|if|else|elif|endif|undef|pragma|error)\b[^\n]*\n//mg;
    $text =~ s/^CNR_(?:BEGIN|END)_EXPORTS\n//mg;
    my (@rows, $comment);
    pos $text = 0;
    while (1) {
        if ($text =~ m{\G\s*\n\s*\n}gc && defined $comment) { push @rows, ['prose', $comment]; undef $comment }
        $text =~ /\G\s+/gc;
        if ($text =~ m{\G(/\*.*?\*/)}gcs) {
            push @rows, ['prose', $comment] if defined $comment;
            $comment = comment_text($1);
            if ($comment =~ /^-{2,} (.*?) -{2,}$/s) { push @rows, ['section', $1 =~ s/\s+/ /gr]; undef $comment }
            next;
        }
        my $code = $text =~ /\G(#define (?:[^\n]*\\\n)*[^\n]*)/gc ? $1 : declaration_at(\$text);
        last unless defined $code;
        $comment = defined $comment ? "$comment\n\n" . comment_text($1) : comment_text($1)
            if $text =~ m{\G[ \t]*(/\*.*?\*/)}gcs;
        my $name = name_of($code) // next;
        next if $code =~ /^(?:struct|enum|union) \w+;$/;
        $code =~ s/\\\n.*/.../s if ($code =~ tr/\n//) > 5 && $code =~ /^#define \w+\(/ && $code !~ /_LIST\(/;
        push @rows, ['item', $name, $code, $comment // ''];
        undef $comment;
    }
    return @rows;
}

# Paragraphs of a comment; what is indented is code.
sub prose {
    my ($text, $here) = @_;
    my @parts = split /\n\s*\n/, $text;
    return join "\n", map { /^ {4}/ ? fence('c', $_ =~ s/^ {4}//mgr) : escaped($_, $here) . "\n" } @parts;
}

my %rows = map { basename($_, '.h') => [header_rows(slurp($_))] } glob 'core/include/cnnrun/*.h';
for my $header (sort keys %rows) {
    $page_of{$_->[1]} //= $header for grep { $_->[0] eq 'item' } @{$rows{$header}};
}
my $list = '';
for my $header (sort keys %rows) {
    my ($about, @rest) = @{$rows{$header}};
    my $text = "# C: cnnrun/$header.h\n\n" . prose($about->[1], $header) . "\n`#include <cnnrun/$header.h>`\n";
    for (@rest) {
        my ($kind, $name, $code, $comment) = @$_;
        $text .= "\n## " . escaped($name) . "\n" if $kind eq 'section';
        $text .= "\n" . prose($name, $header) if $kind eq 'prose';
        $text .= "\n### $name\n\n" . fence('c', $code) . ($comment eq '' ? '' : "\n" . prose($comment, $header)) if $kind eq 'item';
    }
    page("c/$header", $text);
    my ($first) = $about->[1] =~ /^(.*?(?:\.(?=\s)|\z))/s;
    $list .= "| [$header.h]($header.md) | " . (escaped($first, $header) =~ s/\s+/ /gr) . " |\n";
}
page('c/index', "# C\n\nApplications include `cnnrun/cnnrun.h`, plugins `cnnrun/plugin.h` or `cnnrun/kit.h`.\n" .
     "[cnnrun.hpp](cpp.md) is the header for C++.\n\n| header | is |\n|---|---|\n$list");
page('c/cpp', "# C++: cnnrun/cnnrun.hpp\n\n" . fence('cpp', slurp('core/bind/cpp/include/cnnrun/cnnrun.hpp')));

# ---- commands, operators ----
my @commands = grep { $_ ne 'help' } said('help', 'commands') =~ /^  ([a-z]+)  +\S/mg;
my ($applications) = said('help') =~ /^applications: (.*)$/m;
page('commands', join "\n", "# Commands\n", map { "## $_\n\n" . fence('', said('help', $_)) }
    'options', 'exit', @commands, split ' ', $applications // '');
my @operators = said('ops', '--json') =~ /^\{"name":"(\w+)"/mg;
page('operators', join "\n", "# Operators\n\n" . fence('', said('ops')), map { "## $_\n\n" . fence('', said('ops', $_)) } @operators);

# ---- Lua ----
my $folder = tempdir(CLEANUP => 1);
said('lua', '--annotations', $folder, '>/dev/null');
my ($lua, @about, %fields) = ("# Lua\n\n`require \"cnnrun\"` gives `c`. Operators are constructors of layers: " .
    "[Operators](operators.md).\n");
my $class = '';
for (split /\n/, slurp("$folder/cnnrun.lua")) {
    if (/^---\@class ([\w.]+)/) {
        $class = $1;
        $lua .= "\n## $class\n\n" . join('', map { escaped($_) . "\n" } @about) unless $class =~ /\.table$/;
        @about = ();
    } elsif (/^---\@field (.*)/) {
        my ($name, $type, $text) = $1 =~ /^(\[\w+\]|\S+) ((?:"[^"]*"|\([^)]*\)(?:\[\])?|<[^>]*>|[^\s<("]|(?<=,) )+) ?(.*)$/ or next;
        push @{$fields{$class}}, "| `$name` | `" . ($type =~ s/\|/\\|/gr) . '` | ' . escaped($text) . " |\n";
    } elsif (/^function ([\w.:]+\(.*?\)) end/) {
        my $head = $1;
        my @tables = map { /\@param \S+ .*?(cnnrun\.[\w.]+\.table)/ ? $1 : () } @about;
        $lua .= "\n### $head\n\n" . join('', map { s/^\@(\w+) (\S+) ?(.*)/"- $1 `$2`" . ($3 eq '' ? '' : " `$3`")/er . "\n" }
            map { /^\@/ ? $_ : escaped($_) . "\n" } @about);
        $lua .= "\n| key | type | meaning |\n|---|---|---|\n" . join '', @{$fields{$_} // []} for @tables;
        @about = ();
    } elsif (/^---(?!@(?:meta|overload|type|alias))(.*)/) {
        push @about, $1;
    } else {
        @about = () if !/^---/;
    }
}
page('lua', $lua);

# ---- Python ----
page('python', scalar `python3 tools/reference.py core/bind/python/cnnrun`);
die "tools/reference.py failed\n" if $?;
