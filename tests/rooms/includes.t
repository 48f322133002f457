#!/usr/bin/perl
# Who may include whom: the order of the rooms, Lua on top only, plugins see public headers alone.
use strict;
use warnings;
use File::Find;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
$root =~ s{(.)/$}{$1};

# The text of a file; dies if it can't be read.
sub slurp {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!";
    local $/;
    return scalar <$in>;
}

my %header = (lua => 'script'); # lua.h is Lua's own

# Room -> rooms that it may include besides itself, out of the table in core/README.md.
my %allowed;
for (split /\n/, slurp("$root/core/README.md")) {
    $allowed{$1} = [split ' ', $2] if /^\| `(\w+)` \|[^|]*\|([a-z\/ ]*)\|$/;
}
cmp_ok(scalar keys %allowed, '>=', 10, 'core/README.md says who may include whom');

# C sources below a folder.
sub sources {
    my ($folder) = @_;
    my @found;
    return () if !-d $folder;
    find({ wanted => sub { push @found, $_ if /\.(c|h|cpp|cc|inc)$/ }, no_chdir => 1 }, $folder);
    return sort @found;
}

# What a file includes.
sub includes {
    my ($path) = @_;
    return slurp($path) =~ /^[ \t]*#[ \t]*include[ \t]*([<"][^>"]+[>"])/mg;
}

# Room -> its folder. Every room lies in a library's folder, and its name is nobody else's.
my %folder;
for my $path (glob "$root/core/*/*") {
    my ($library, $room) = $path =~ m{core/(\w+)/(\w+)$} or next;
    $folder{$room} = $path if -d $path && $library !~ /^(include|cmake|docs|bind)$/;
}
is(join(' ', sort keys %folder), join(' ', sort keys %allowed), 'the table names the rooms that are there');

# What is wrong with an include in a file of a room; '' when nothing is.
sub fault_in_room {
    my ($room, $what) = @_;
    my ($open, $name) = $what =~ /^(.)(.*).$/;
    return $room eq 'lua' ? '' : 'Lua belongs to the room lua' if $name =~ /^(lua|lauxlib|lualib)\.h$/;
    return '' if $open eq '<';
    my ($other, $file) = $name =~ m{^(\w+)/(\w+)\.h$} or return 'want "room/file.h"';
    return "no room $other" if !$folder{$other};
    return "no file $name" if !-e "$folder{$other}/$file.h";
    return '' if $other eq $room || grep { $_ eq "$other/$file" } @{ $allowed{$room} };
    return "$room may not use $other" if !grep { $_ eq $other } @{ $allowed{$room} };
    return $file eq ($header{$other} // $other) ? '' : "$name is for the room $other alone";
}

for my $room (sort keys %folder) {
    is(join(' ', grep { !$allowed{s{/.*}{}r} } @{ $allowed{$room} }), '', "$room may include what is there");
    my @faults;
    for my $path (sources($folder{$room})) {
        for my $what (includes($path)) {
            my $fault = fault_in_room($room, $what);
            push @faults, "$path: $what: $fault" if $fault;
        }
    }
    ok(!@faults, "$room includes what it may, and of other rooms the header of their name") or
        diag(join "\n", @faults);
}

my @public;
for my $path (sources("$root/core/include/cnnrun")) {
    push @public, map { "$path: $_" } grep { !m{^<(cnnrun/\w+|std\w+|string)\.h>$} } includes($path);
}
ok(!@public, 'public headers include each other and the C library') or diag(join "\n", @public);

my @strangers;
for my $path (sources("$root/plugins")) {
    my ($plugin) = $path =~ m{plugins/([^/]+)/} or next;
    for my $what (includes($path)) {
        push @strangers, "$path: $what" if $what =~ m{core/|\.\./|plugins/(?!\Q$plugin\E)};
        push @strangers, "$path: $what" if $what =~ m{^"cnnrun/};
    }
}
ok(!@strangers, 'plugins include public headers and their own files') or diag(join "\n", @strangers);

# That the check above can fail.
isnt(fault_in_room('base', '"host/host.h"'), '', 'base may not include host');
isnt(fault_in_room('host', '"base/sha256.h"'), '', 'nor anybody a header that is not named as its room');
isnt(fault_in_room('plan', '<lua.h>'), '', 'plan may not include Lua');
isnt(fault_in_room('host', '"host.h"'), '', 'rooms are named in full');
is(fault_in_room('host', '"base/base.h"'), '', 'host may include base');
done_testing;
