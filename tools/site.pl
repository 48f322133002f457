#!/usr/bin/perl
# Makes a site of all Markdown pages, with the pages of the reference (reference.pl), by mkdocs:
#     tools/site.pl PROGRAM OUT
use strict;
use warnings;
use Cwd 'abs_path';
use File::Basename qw(basename dirname);
use File::Copy 'copy';
use File::Path qw(make_path remove_tree);

my ($program, $out) = @ARGV;
die "usage: tools/site.pl PROGRAM OUT\n" unless @ARGV == 2 && -x $program;
my $root = dirname(dirname(abs_path($0)));
$program = abs_path($program);
my $pages = "$out.pages";
remove_tree($pages);
chdir $root or die;

# ---- the pages of the tree, and the pictures that they show ----
my @found = grep { !m{/CHANGELOG|^\.github/|/venv/} } split /\n/, `git ls-files '*.md' '*.png'`;
@found = grep { /\.md$/ || m{^core/docs/} } @found;
die "no pages: is this a clone?\n" unless @found;
for my $path (@found) {
    make_path(dirname("$pages/$path"));
    copy($path, "$pages/$path") or die "$path: $!\n";
}

system("tools/reference.pl", $program, "$pages/reference") == 0 or die "tools/reference.pl failed\n";
my $headers = join "\n", map { my $name = basename($_, '.md'); "      - $name.h: reference/c/$name.md" }
    grep { !m{/(?:index|cpp)\.md$} } sort glob "$pages/reference/c/*.md";

# a narrow screen scrolls wide tables and code, never the page
open my $style, '>', "$pages/narrow.css" or die "$pages/narrow.css: $!\n";
print $style <<'END';
table { display: block; overflow-x: auto; }
pre { overflow-x: auto; }
pre code { white-space: pre; }
p, li, h1, h2, h3, h4 { overflow-wrap: anywhere; }
.dropdown-menu { max-height: 80vh; overflow-y: auto; }
END
close $style or die "$pages/narrow.css: $!\n";

open my $config, '>', "$out.yml" or die "$out.yml: $!\n";
print $config <<"END";
site_name: cnnrun
docs_dir: $pages
site_dir: $out
use_directory_urls: false
theme: { name: mkdocs, highlightjs: false, nav_style: light }
plugins: [search]
extra_css: [narrow.css]
nav:
  - Home: README.md
  - Documentation: core/docs/README.md
  - Tutorials:
    - First steps: core/docs/tutorials.md
    - Parts of your own: core/docs/extend.md
  - How to:
    - Using cnnrun: core/docs/using.md
    - Python: core/docs/python.md
    - Importing models: plugins/IMPORTING.md
    - Applications: core/docs/applications.md
    - Cameras, zones, a home: core/docs/cameras.md
    - Packages: core/docs/packages.md
    - Simulated boards: core/docs/boards.md
    - Several machines: core/docs/groups.md
    - Boards and phones: core/docs/machines.md
    - Measuring beside others: core/docs/benchmarks.md
    - Android: core/docs/android.md
    - One model in a program: core/docs/pack.md
    - Java: core/docs/java.md
    - Scripts: core/docs/scripting.md
    - Experiments and sweeps: scripts/experiments/README.md
    - The documents' experiments: scripts/documents/README.md
    - Pruning: core/docs/pruning.md
    - Pruning schedules: scripts/prune/README.md
    - Placing layers on devices: core/docs/placement.md
    - Plugins:
      - Plugins that come with cnnrun: plugins/README.md
      - Judging, permissions, names: core/docs/plugins.md
      - Add an operator: core/docs/operators.md
      - Add a kernel: core/docs/kernels.md
      - OpenCL kernels: core/docs/opencl.md
      - Add a device: core/docs/devices.md
      - Add another part: core/docs/parts.md
  - Reference:
    - Commands: reference/commands.md
    - Lua: reference/lua.md
    - Operators: reference/operators.md
    - Frequency policies: core/docs/governors.md
    - Python: reference/python.md
    - The ABI for plugins: core/docs/abi.md
    - The source, and its glossary: core/docs/source.md
    - C++: reference/c/cpp.md
    - C:
      - Headers: reference/c/index.md
$headers
  - Why:
    - Design: core/docs/design.md
    - The five documents: core/docs/documents.md
    - How the tracker is judged: core/docs/tracker.md
    - The map of the source: core/README.md
    - One inference, from Lua to kernel: core/docs/inference.md
    - Stored plans and measured times: core/docs/plans.md
    - Rules of the core: core/docs/rules.md
END
close $config or die "$out.yml: $!\n";
# links that lead to files of the tree which are no pages are told, and do no harm
exec 'mkdocs', 'build', '--quiet', '--clean', '--config-file', "$out.yml" or die "mkdocs can't be started: $!\n";
