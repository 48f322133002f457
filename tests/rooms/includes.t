#!/usr/bin/perl
# Who may include whom: the order of the rooms, Lua on top only, plugins see public headers alone.
use strict;
use warnings;
use File::Find;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
$root =~ s{(.)/$}{$1};

# watch listens to what run tells: the types of its events, which stand in run.h, and no more.
my %only = ('watch > run' => 'core/run/run.h');

sub slurp {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!";
    local $/;
    return scalar <$in>;
}

# Room -> rooms that it may include besides itself, out of the table in core/README.md.
my %allowed;
for (split /\n/, slurp("$root/core/README.md")) {
    $allowed{$1} = [split ' ', $2] if /^\| `(\w+)` \|[^|]*\|([a-z ]*)\|$/;
}
cmp_ok(scalar keys %allowed, '>=', 10, 'core/README.md says who may include whom');

sub sources {
    my ($folder) = @_;
    my @found;
    return () if !-d $folder;
    find({ wanted => sub { push @found, $_ if /\.(c|h|cpp|cc|inc)$/ }, no_chdir => 1 }, $folder);
    return sort @found;
}

sub includes {
    my ($path) = @_;
    return slurp($path) =~ /^[ \t]*#[ \t]*include[ \t]*([<"][^>"]+[>"])/mg;
}

# What is wrong with an include in a file of a room; '' when nothing is.
sub fault_in_room {
    my ($room, $path, $what) = @_;
    my ($open, $name) = $what =~ /^(.)(.*).$/;
    return $room eq 'lua' ? '' : 'Lua belongs to core/lua' if $name =~ /^(lua|lauxlib|lualib)\.h$/;
    return '' if $open eq '<' && $name !~ m{^core/|^plugins/};
    my ($other) = $name =~ m{^core/(\w+)/[\w.]+$} or return 'want "core/room/file.h"';
    return "no file $name" if !-e "$root/$name";
    return '' if $other eq $room;
    my $only = $only{"$room > $other"};
    return "only $only of core/$other" if $only && $name ne $only;
    return (grep { $_ eq $other } @{ $allowed{$room} }) ? '' : "core/$room is below core/$other";
}

for my $room (sort keys %allowed) {
    ok(-d "$root/core/$room", "$room, of the table, is a folder of core/");
    is(join(' ', grep { !$allowed{$_} } @{ $allowed{$room} }), '', "$room may include what is there");
}

opendir my $dir, "$root/core" or die "$root/core: $!";
my @rooms = grep { !/^\./ && !/^(include|cmake|docs)$/ && -d "$root/core/$_" } sort readdir $dir;
for my $room (@rooms) {
    ok(exists $allowed{$room}, "core/$room is in the table") or next;
    my @faults;
    for my $path (sources("$root/core/$room")) {
        for my $what (includes($path)) {
            my $fault = fault_in_room($room, $path, $what);
            push @faults, "$path: $what: $fault" if $fault;
        }
    }
    ok(!@faults, "core/$room includes what it may") or diag(join "\n", @faults);
}

# Private headers stay in their room: other rooms use the one named after it. lua.h is Lua's own.
my %header = (lua => 'script');
my @private;
for my $room (@rooms) {
    for my $path (sources("$root/core/$room")) {
        for my $what (includes($path)) {
            my ($other, $file) = $what =~ m{^"core/(\w+)/(\w+)\.h"$} or next;
            push @private, "$path: $what" if $other ne $room && $file ne ($header{$other} // $other);
        }
    }
}
ok(!@private, 'rooms see each other by one header each') or diag(join "\n", @private);

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
isnt(fault_in_room('base', 'x', '"core/host/host.h"'), '', 'base may not include host');
isnt(fault_in_room('plan', 'x', '<lua.h>'), '', 'plan may not include Lua');
isnt(fault_in_room('host', 'x', '"host.h"'), '', 'rooms are named in full');
is(fault_in_room('host', 'x', '"core/base/base.h"'), '', 'host may include base');
done_testing;
