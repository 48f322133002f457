#!/usr/bin/perl
# Libraries of core/ use only those that core/README.md allows, by the symbols of their objects; and the
# shared libraries export the public C API alone.
use strict;
use warnings;
use File::Temp 'tempdir';
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || './';
my $build = $ENV{CNNRUN_BUILD} || 'build';
my %allowed;
open my $in, '<', "${root}core/README.md" or die $!;
while (<$in>) {
    my ($name, $may) = /^\| (\w+) \|[^|]*\|([a-z ]*)\|$/ or next;
    $allowed{$name} = { map { $_ => 1 } split ' ', $may } if -d "$build/core/CMakeFiles/cnnrun-$name-objects.dir";
}
is(join(' ', sort keys %allowed), 'check common engine lab power script', 'the table names the libraries that the build makes');

# Symbols of all objects below a folder: defined => [file...], or used.
sub symbols_of {
    my ($folder, %s) = shift;
    for (`find $folder -name '*.o' -exec nm -A {} +`) {
        my ($file, $type, $symbol) = /^(.*?[.]o):\S*\s+([A-Z]) (\S+)$/ or next;
        next if $file =~ m{[.]dir/(.*[.]c)[.]o$} && !-e "${root}core/$1"; # objects of files that are gone stay in a build
        push @{$s{$type eq 'U' ? 'used' : 'defined'}{$symbol}}, $file =~ s{.*/}{}r;
    }
    return \%s;
}
# Edges between libraries, and wrong ones.
sub edges {
    my %library = @_; # name => symbols
    my (%home, @bad);
    for my $name (keys %library) { $home{$_} = $name for keys %{$library{$name}{defined}} }
    for my $name (sort keys %library) {
        for my $symbol (sort keys %{$library{$name}{used}}) {
            my $other = $home{$symbol} // next;
            push @bad, "$name uses $symbol of $other: @{$library{$name}{used}{$symbol}}"
                unless $other eq $name || $allowed{$name}{$other};
        }
    }
    return @bad;
}

my %library = map { $_ => symbols_of("$build/core/CMakeFiles/cnnrun-$_-objects.dir") } keys %allowed;
cmp_ok(scalar(keys %{$library{$_}{defined}}), '>', 20, "$_ defines symbols") for sort keys %library;
is(join("\n", edges(%library)), '', 'no edge that the table forbids');

my $dir = tempdir(CLEANUP => 1);
open my $c, '>', "$dir/up.c" or die $!;
print $c "void cnri_lua_install(void); void up(void); void up(void) { cnri_lua_install(); }\n";
close $c;
system("cc -c -o $dir/up.o $dir/up.c") == 0 or die 'cc';
my $up = symbols_of($dir);
push @{$library{engine}{used}{$_}}, 'up.o' for keys %{$up->{used}};
like(join("\n", edges(%library)), qr/^engine uses cnri_lua_install of script: up\.o$/, 'an edge made on purpose is found');

for my $name ('cnnrun', 'cnnrun-engine') {
  SKIP: {
        skip "$build/lib$name.so is not built", 2 unless -e "$build/lib$name.so";
        my @names = map { (split ' ')[-1] } grep { !/ A / } `nm -D --defined-only $build/lib$name.so`;
        is(join(' ', grep { !/^cnr_\w+@/ } @names), '', "lib$name.so exports cnr_ names alone");
        cmp_ok(scalar @names, '>', 40, 'and has them');
    }
}
# Functions that a header declares.
sub declared {
    my $header = shift;
    open my $in, '<', "${root}core/include/cnnrun/$header" or die "$header: $!";
    my $text = do { local $/; <$in> };
    $text =~ s{/\*.*?\*/}{}gs;
    return $text =~ /^(?!typedef)[\w \t*]*?\b(cnr_\w+)\([^;{]*\);/mg;
}
for (['cnnrun-engine', 'engine.h', 'placement.h'], ['cnnrun', qw(engine.h placement.h power.h lab.h object.h)]) {
    my ($name, @headers) = @$_;
  SKIP: {
        skip "$build/lib$name.so is not built", 2 unless -e "$build/lib$name.so";
        my %has = map { /\b(cnr_\w+)@/ ? ($1 => 1) : () } `nm -D --defined-only $build/lib$name.so`;
        my @wanted = map { declared($_) } @headers;
        cmp_ok(scalar @wanted, '>', 35, "functions of @headers");
        is(join(' ', grep { !$has{$_} } @wanted), '', "lib$name.so has them all");
    }
}
my $needs = `objdump -p $build/libcnnrun-engine.so`;
unlike($needs, qr/NEEDED.*lua/, 'the engine needs no Lua') if -e "$build/libcnnrun-engine.so";
done_testing;
