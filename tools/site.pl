#!/usr/bin/perl
# Makes a site of all Markdown pages, with reference pages of commands, Lua and C, by mkdocs:
#     tools/site.pl PROGRAM OUT
use strict;
use warnings;
use Cwd 'abs_path';
use File::Basename qw(dirname);
use File::Copy 'copy';
use File::Path qw(make_path remove_tree);

my ($program, $out) = @ARGV;
die "usage: tools/site.pl PROGRAM OUT\n" unless @ARGV == 2 && -x $program;
my $root = dirname(dirname(abs_path($0)));
$program = abs_path($program);
my $pages = "$out.pages";
remove_tree($pages);
chdir $root or die;

sub page {
    my ($name, $text) = @_;
    make_path(dirname("$pages/$name"));
    open my $to, '>', "$pages/$name" or die "$pages/$name: $!\n";
    print $to $text;
    close $to or die "$pages/$name: $!\n";
}
sub said { my $text = `$program @_`; die "$program @_ failed\n" if $?; return $text }
sub block { my $text = shift; $text =~ s/^/    /mg; return $text }

# ---- the pages of the tree, and the pictures that they show ----
my @found = grep { !m{/CHANGELOG|^\.github/|/venv/} } split /\n/, `git ls-files '*.md' '*.png'`;
@found = grep { /\.md$/ || m{^core/docs/} } @found;
die "no pages: is this a clone?\n" unless @found;
for my $path (@found) {
    make_path(dirname("$pages/$path"));
    copy($path, "$pages/$path") or die "$path: $!\n";
}

# ---- reference: commands, Lua, C ----
my @commands = said('help', 'commands') =~ /^  ([a-z]+)  +\S/mg;
my ($applications) = said('help') =~ /^applications: (.*)$/m;
page('reference/commands.md', join "\n", "# Commands\n", map { "## $_\n\n" . block(said('help', $_)) }
    'options', 'exit', grep({ $_ ne 'help' } @commands), split ' ', $applications // '');
page('reference/lua.md', "# Lua\n\n" . block(said('lua')));
page('reference/operators.md', "# Operators\n\n" . block(said('ops')));
my $headers = "# C\n\nThe public headers, as they are installed. `<cnnrun/cnnrun.h>` includes those for applications.\n";
for my $header (sort glob 'core/include/cnnrun/*.h*') {
    open my $in, '<', $header or die "$header: $!\n";
    local $/;
    $headers .= "\n## " . ($header =~ s{.*include/}{}r) . "\n\n```c\n" . <$in> . "```\n";
}
page('reference/c.md', $headers);

open my $config, '>', "$out.yml" or die "$out.yml: $!\n";
print $config <<"END";
site_name: cnnrun
docs_dir: $pages
site_dir: $out
use_directory_urls: false
theme: { name: mkdocs, highlightjs: false, nav_style: light }
plugins: [search]
nav:
  - Home: README.md
  - Documentation: core/docs/README.md
  - Tutorials: core/docs/tutorials.md
  - How to:
    - Using cnnrun: core/docs/using.md
    - Python: core/docs/python.md
    - Importing models: plugins/IMPORTING.md
    - Applications: scripts/apps/README.md
    - Packages: core/docs/packages.md
    - The ABI for plugins: core/docs/abi.md
    - Scripts: scripts/README.md
    - Experiments and sweeps: scripts/experiments/README.md
    - The documents' experiments: scripts/documents/README.md
    - Pruning: scripts/prune/README.md
    - Plugins: plugins/README.md
  - Reference:
    - Commands: reference/commands.md
    - Lua: reference/lua.md
    - Operators: reference/operators.md
    - C: reference/c.md
  - Why:
    - Design: core/docs/design.md
    - The five documents: core/docs/documents.md
    - The map of the source: core/README.md
END
close $config or die "$out.yml: $!\n";
# links that lead to files of the tree which are no pages are told, and do no harm
exec 'mkdocs', 'build', '--quiet', '--clean', '--config-file', "$out.yml" or die "mkdocs can't be started: $!\n";
