#!/usr/bin/perl
# Files are written in one place: core/engine/base/output.c, which plugins reach through the host.
use strict;
use warnings;
use File::Find;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
$root =~ s{(.)/$}{$1};

# What only the writer may call; removing is for it and for who keeps folders small.
my %excused = (
    'core/engine/base/output.c' => 'the writer',
    'core/engine/graph/aside.c' => 'a file without a name, which nobody else sees',
    'core/power/govern/socket.c' => 'a socket: its own is removed, and one that nobody listens at',
    'core/common/keep/folder.c' => 'throws the oldest plans away',
    'core/lab/train/checkpoint.c' => 'throws away what a finished training needs no more',
    'core/check/conform/sample.c' => 'damaged copies of files, in a folder of its own',
    'core/check/conform/conform.c' => 'removes what a judged process left',
    'plugins/opencl-common/probe.c' => 'takes its own links away, which a driver\'s loader has read',
    'plugins/template-kinds/c/knob.c' => 'an attribute of /sys',
    'plugins/template-kinds/cpp/knob.cpp' => 'an attribute of /sys',
    'core/program/cli/group.c' => 'standard output of the processes that tell nobody goes to /dev/null',
    'core/script/lua/disk.c' => 'remove() of a script takes away what that script may write',
    'plugins/gauge-common/sysfs.c' => 'an attribute of /sys takes orders; nothing is made or replaced',
);
my $writer = qr/(?<![\w.>])(?:
    fopen\s*\([^;]*?,\s*"[^"]*[wa+] | freopen\s*\( | creat\s*\( | mkstemps?\s*\( | mkostemps?\s*\( |
    rename(?:at2?)?\s*\( | unlink(?:at)?\s*\( | remove\s*\( | f?truncate\s*\( | O_CREAT | O_WRONLY |
    O_RDWR | std::ofstream | png_init_io\s*\( | cairo_surface_write_to_png\s*\( )/x;

# Calls in a C text that write files.
sub writers_in {
    my ($text) = @_;
    # comments go, and texts but for modes
    $text =~ s{("[rwabex+]+")|"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*}{$1 // '""'}gse;
    my @found;
    my $number = 0;
    for my $line (split /\n/, $text) {
        $number++;
        push @found, "$number: $line" if $line =~ $writer;
    }
    return @found;
}
is(scalar(writers_in(qq{fopen(path, "rb"); /* rename(a, b) */\nx = fopen(p, "wb");\nrename(a, b);})), 2,
    'a writer is found where there is one');

my (@files, %seen);
find({ wanted => sub { push @files, $_ if /\.(c|h|cc|cpp|inc)$/ }, no_chdir => 1 }, "$root/core",
    "$root/plugins");
cmp_ok(scalar @files, '>', 100, 'there are files to look through');
for my $file (sort @files) {
    my $name = $file =~ s{^\Q$root\E/?}{}r =~ s{^\./}{}r;
    local (@ARGV, $/) = ($file);
    my @found = writers_in(scalar <>);
    $seen{$name} = 1 if @found;
    next if $excused{$name} || !@found;
    fail("$name writes through cnri_write_begin or host->output_begin");
    diag("$name:$_") for @found;
}
ok(!(grep { !$seen{$_} } keys %excused), 'every excuse is needed')
    or diag(join ', ', grep { !$seen{$_} } keys %excused);
done_testing;
