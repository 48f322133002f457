#!/usr/bin/perl
# cnnrun devices: facts about devices from plugins, and measured ones; the same in scripts.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);

# The rows of `cnnrun devices`, by name.
sub devices { my %of = map { ($_->{name} => $_) } map { decode_json $_ } `$build/cnnrun devices @_ --json 2>/dev/null`; return \%of }

my $cpu = devices('--device cpu')->{cpu};
cmp_ok($cpu->{threads}, '>', 0, 'threads of the processor');
ok(length $cpu->{isa}, 'its instruction set');
ok(!exists $cpu->{fma_gflops}, 'nothing is measured unasked');

my $measured = devices('--device cpu --measure --threads 1')->{cpu};
is($measured->{threads}, 1, 'measured with the threads that are asked for');
for my $what ('fma_gflops', 'read_gbs') { cmp_ok($measured->{$what} // 0, '>', 0, $what) }

# caches as the system tells them: of data and unified, not of instructions
my @tree = ([1, 'Data', '32K'], [1, 'Instruction', '99K'], [2, 'Unified', '1M']);
for my $i (0 .. $#tree) {
    my $folder = "$tmp/sys/devices/system/cpu/cpu0/cache/index$i";
    make_path($folder);
    my %of = (level => $tree[$i][0], type => $tree[$i][1], size => $tree[$i][2]);
    for my $name (keys %of) { open my $f, '>', "$folder/$name" or die; print $f "$of{$name}\n" }
}
{
    local $ENV{CNNRUN_SYSFS_ROOT} = $tmp;
    is_deeply(devices('--device cpu')->{cpu}{caches}, { l1d => 32768, l2 => 1048576 }, 'caches, in bytes');
}

my $sim = devices('--board odroid_xu3,dry');
ok($sim->{'sim:gpu4'} && $sim->{cpu}, "a board's devices stand beside the machine's");
like(`$build/cnnrun devices --device cpu`, qr/^cpu .*\n +threads \d+/, 'lines for people');
like(`$build/cnnrun devices --device nope 2>&1`, qr/nope: no such device; there are: /, 'an unknown one is an error');
is($? >> 8, 6, 'with its exit code') or diag $? >> 8;

open my $f, '>', "$tmp/d.lua" or die;
print $f <<'END';
local c = require "cnnrun"
return function()
  for _, d in ipairs(c.devices { measure = true }) do
    if d.name == "cpu" then print(d.isa ~= nil, d.fma_gflops > 0, d.read_gbs > 0, type(d.caches)) end
  end
end
END
close $f;
like(`$build/cnnrun $tmp/d.lua 2>&1`, qr/^true\ttrue\ttrue\t(table|nil)$/, 'scripts see the same');

done_testing;
