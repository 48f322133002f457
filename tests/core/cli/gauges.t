#!/usr/bin/perl
# cnnrun gauges, and c.gauges in a script: meters and knobs of a made-up plugin with its own clock.
use strict;
use warnings;
use Test::More;

my $root = $0 =~ s{tests/core/cli/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
my $plugin = "$build/tests/core/host/gauges/gauges.so";
my $work = `mktemp -d`;
chomp $work;
END { system 'rm', '-rf', $work if $work }

my $out = `$build/cnnrun gauges --plugin-dir $plugin --clock fake-time 2>&1`;
is($?, 0, 'the list');
like($out, qr/^fake-meter +gpu +energy +[\d.]+ J +feeds opencl:0$/m, 'a counter');
like($out, qr/^fake-meter +chip +temperature +45\.5 C/m, 'a temperature');
like($out, qr/^fake-knob +gpu +knob +600 MHz +feeds opencl:0 177 to 600 MHz$/m, 'a knob');
unlike($out, qr/absent|serial/, 'nothing that is not there');
$out = `$build/cnnrun gauges --json --meter-address /dev/ttyFAKE --plugin-dir $plugin 2>&1`;
like($out, qr/"name":"serial".*"quantity":"power".*"estimated":true.*"value":2500000/,
    'at an address, as JSON');
like($out, qr/"name":"gpu".*"quantity":"knob".*"hz":600000000,.*"load_percent":37,"cores":4/, 'the knob');
open my $bad, '>', "$work/bad" or die;
close $bad;
$out = `$build/cnnrun gauges --sysfs-root $work --plugin-dir $plugin 2>&1`;
like($out, qr/^fake-meter +gpu +energy +unread +feeds opencl:0 the sensor does not answer$/m,
    'what does not answer is not 0');
$out = `$build/cnnrun gauges --clock tomorrow --plugin-dir $plugin 2>&1`;
isnt($?, 0, 'a clock that nobody brought');
like($out, qr/no plugin brought a clock of that name/, 'is reported');

open my $script, '>', "$work/gauges.lua" or die;
print $script <<'END';
local c = require "cnnrun"
return function()
  local before = c.now()
  for _, g in ipairs(c.gauges { address = "/dev/ttyFAKE" }) do
    print(g.plugin, g.name, g.quantity, g.feeds, g.value, g.hz, g.load, g.cores, g.temperature)
  end
  print("took " .. (c.now() - before < 1 and "little" or "much"), #c.gauges())
end
END
close $script;
$out = `$build/cnnrun --trust --plugin-dir $plugin $work/gauges.lua 2>&1`;
is($?, 0, 'a script') or diag($out);
like($out, qr/^fake-meter\tserial\tpower\tnil\t2\.5\t/m, 'reads watts');
like($out, qr/^fake-knob\tgpu\tknob\topencl:0\tnil\t6[0.e+8]+\t0\.37\t4/m, 'and a knob');
like($out, qr/^took little\t4$/m, 'with and without an address');
done_testing;
