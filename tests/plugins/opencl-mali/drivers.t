#!/usr/bin/perl
# Drivers that are old, fail or crash: through a library that passes calls to the machine's own OpenCL
# (shim.c), and a driver that aborts when it is loaded.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
my $here = abs_path(dirname($0));
my $nets = abs_path("$here/../../../scripts/nets");
my $dir = tempdir(CLEANUP => 1);
my @digit = ("$nets/digits/three.png");
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
$ENV{CNNRUN_CACHE} = "$dir/cache";
$ENV{POCL_CACHE_DIR} //= "$build/opencl-cache/pocl";
delete @ENV{grep { /^(SHIM_|CNNRUN_OPENCL)/ } keys %ENV};

# Exit status, or 256 + signal; standard output; standard error.
sub cnnrun {
    my ($env, @words) = @_;
    local %ENV = (%ENV, %$env);
    my $code = system 'sh', '-c', 'exec "$@" >"$0/out" 2>"$0/err"', $dir, "$build/cnnrun", @words;
    local $/;
    my @text = map { open my $f, '<', "$dir/$_" or die; <$f> // '' } qw(out err);
    return ($code & 127 ? 256 + ($code & 127) : $code >> 8, @text);
}

my $shim = "$dir/shim.so";
my $warnings = `cc -shared -fPIC -Wall -Wextra -Werror -o $shim $here/shim.c -ldl 2>&1`;
plan skip_all => "no C compiler, or no CL/cl.h: $warnings" if $?;
my ($code, $out, $err) = cnnrun({}, 'show', '--device', 'opencl:0', "$nets/lenet5.lua");
plan skip_all => 'no OpenCL device' if $code == 6;
my %on = (CNNRUN_OPENCL => $shim);

# ---- which class drives what ----

sub class_of { # by the names of the kernels
    my ($code, $text, $err) = cnnrun({%on, @_}, 'show', '--device', 'opencl:0', "$nets/lenet5.lua");
    return $text =~ /\b(mali|adreno|desktop)_conv/ ? $1 : "$code $err";
}
is class_of(SHIM_LOCAL => 2), 'mali', 'local memory that is a part of the global one: opencl-mali';
is class_of(SHIM_LOCAL => 1), 'desktop', 'memory of its own: opencl-desktop';
is class_of(SHIM_NAME => 'Mali-G78', SHIM_LOCAL => 1), 'mali', 'its own family comes first';
is class_of(SHIM_NAME => 'QUALCOMM Adreno(TM)', SHIM_LOCAL => 2), 'adreno', 'for both';
is class_of(CNNRUN_OPENCL_CLASS => 'opencl-adreno', SHIM_NAME => 'Mali-G78'), 'adreno',
    'either can be forced';
is class_of(CNNRUN_OPENCL_CLASS => 'opencl-mali', SHIM_LOCAL => 1), 'mali', 'the other too';

# ---- OpenCL 1.1 ----

open my $net, '>', "$dir/split.lua" or die;
(my $text = do { local (@ARGV, $/) = "$nets/lenet5.lua"; <> }) =~ s/\bweights\s*=\s*"[^"]*",?//;
print $net $text =~ s/(name\s*=\s*"[^"]*",)/$1 weights = "$nets\/lenet5.cnr",
    place = { conv2 = { axis = 1, cpu = 0.5, ["opencl:0"] = 0.5 } },/r;
close $net;
# Whether a run gives the right class.
sub answer {
    my ($code, $text, $err) = cnnrun(@_);
    return $code == 0 && $text =~ /"class":"?3\b|^\s*3 100/m ? 'three' : "exit $code: $text$err";
}
is answer({%on, SHIM_VERSION => '1.1'}, 'run', '--device', 'opencl:0', "$nets/lenet5.lua", @digit),
    'three', 'a device of 1.1 runs a net';
is answer({%on, SHIM_VERSION => '1.1', SHIM_CALLS => "$dir/calls"}, 'run', '--trust',
          "$dir/split.lua", @digit),
    'three', 'and shares a layer with the processor';
my %calls = map { split } `cat $dir/calls`;
ok $calls{clEnqueueMarker} > 0 && $calls{clBuildProgram} > 0, 'by marks as 1.1 has them'
    or diag explain \%calls;
is $calls{clCreateImage} + $calls{clEnqueueMarkerWithWaitList}, 0, 'and nothing of 1.2';
($code, $out, $err) = cnnrun({%on, SHIM_VERSION => '1.0'}, 'run', '--device', 'opencl:0', '-v',
                             "$nets/lenet5.lua", @digit);
ok $code == 6 && $err =~ /older than 1\.1/, '1.0 is refused, and why' or diag $err;

# ---- each call fails in turn ----

cnnrun({%on, SHIM_CALLS => "$dir/calls"}, 'run', '--device', 'opencl:0', "$nets/lenet5.lua", @digit);
%calls = map { split } `cat $dir/calls`;
my %codes = (clBuildProgram => -11, clCreateBuffer => -4, clCreateImage => -4, clCreateContext => -2);
for my $call (sort grep { $calls{$_} } keys %calls) {
    for my $from ($calls{$call} > 1 ? (1, $calls{$call}) : 1) {
        my $fail = "$call $from " . ($codes{$call} // -5);
        local $ENV{CNNRUN_CACHE} = $call =~ /Program|Kernel/ ? "$dir/cache-$call-$from" : "$dir/cache";
        my ($code, $out, $err) = cnnrun({%on, SHIM_FAIL => $fail}, 'run', '--device', 'opencl:0',
                                        "$nets/lenet5.lua", @digit);
        my $good = $code == 0 ? $out =~ /^\s*3 100/m : $code < 128 && $err =~ /^cnnrun.*: \S/m;
        ok $good, "$fail: " . ($code ? (split /\n/, $err)[-1] // '' : 'the answer is right')
            or diag "exit $code\n$out$err";
        next unless $code;
        ($code, $out, $err) = cnnrun({%on, SHIM_FAIL => $fail}, 'run', '--device', 'opencl:0',
                                     '--fallback', 'cpu', "$nets/lenet5.lua", @digit);
        my @told = $err =~ /^cnnrun: warning: .*: (\S.*); from here on lenet5 runs on cpu$/mg;
        ok $code == 0 && $out =~ /^\s*3 100/m && @told == 1, "the processor takes over: @told"
            or diag "exit $code\n$out$err";
    }
}
($code, $out, $err) = cnnrun({%on, SHIM_FAIL => 'clBuildProgram 1 -11', CNNRUN_CACHE => "$dir/none"},
                             'run', '--device', 'opencl:0', '--fallback', 'opencl:7,cpu', '--trust',
                             "$dir/split.lua", @digit);
ok $code == 0 && $out =~ /^\s*3 100/m && $err =~ /opencl:7: no such device.*runs on cpu/,
    'the second takes over from the first, also where the net places its layers' or diag "$code $err";
open my $script, '>', "$dir/falls.lua" or die;
print $script <<"END";
local c = require "cnnrun"
return function()
    local net = c.load("$nets/lenet5.lua", { device = "opencl:0", fallback = { "cpu" } })
    print(net:profile({ runs = 1 })[1].device)
end
END
close $script;
($code, $out, $err) = cnnrun({%on, SHIM_FAIL => 'clBuildProgram 1 -11', CNNRUN_CACHE => "$dir/none"},
                             "--trust", "$dir/falls.lua");
ok $code == 0 && $out eq "cpu\n", 'from Lua too' or diag "exit $code\n$out$err";
($code, $out, $err) = cnnrun({%on, SHIM_FAIL => 'clEnqueueNDRangeKernel 12 -36'}, 'bench', '--device', 'opencl:0',
                             '--fallback', 'cpu', '--profile', '--no-energy', "$nets/lenet5.lua");
ok $code == 0 && $out =~ / on cpu\b/ && $out =~ /conv_f32_\w+/ && $out !~ /opencl:0/,
    'what is timed then is the processor' or diag "exit $code\n$out$err";
($code, $out, $err) = cnnrun({}, 'run', '--device', 'cpu', '--fallback', 'cpu:0', '--memory-limit', '1K',
                             "$nets/lenet5.lua", @digit);
ok $code == 9 && (() = $err =~ /from here on/g) == 1, 'a device of two names falls once' or diag "exit $code\n$err";

# ---- timing survives what kernels do ----

my @tune = ('tune', "$nets/lenet5.lua", '--devices', 'opencl:0', '--no-energy', '--cache', "$dir/tuned",
            '--hang-ms', 4000);
($code, $out, $err) = cnnrun({%on, SHIM_HANG => 'conv_packed'}, @tune);
my $record = `cat $dir/tuned/tuning.jsonl`;
ok $code == 0 && $err =~ /conv_f32_buffer does not end on opencl:0 in 4 s: left out/ &&
    $record =~ /conv_f32_buffer","ns":9(e\+?14|0{14})\b/ && $record =~ /_softmax_f32/,
    'a kernel that hangs is left out, and the others are timed' or diag "exit $code\n$err\n$record";
($code, $out, $err) = cnnrun({%on, SHIM_HANG => 'conv_packed'}, @tune, '--again');
ok $code == 0 && $err !~ /does not end/, 'for good' or diag "exit $code\n$err";
($code, $out, $err) = cnnrun({%on, SHIM_HANG => 'conv_packed'}, @tune[0 .. 4], '--repeat', 2, '--cache',
                             "$dir/twice", '--hang-ms', 4000);
ok $code == 0 && (() = $err =~ /conv_f32_buffer does not end/g) == 2, 'once a layer, with repeats too'
    or diag "exit $code\n$err";
($code, $out, $err) = cnnrun({%on, CNNRUN_CACHE => "$dir/tuned"}, 'show', '--device', 'opencl:0',
                             "$nets/lenet5.lua");
ok $code == 0 && $out !~ /conv_f32_buffer/, 'nor is it chosen' or diag $out;
($code, $out, $err) = cnnrun({%on, SHIM_FAIL => 'clEnqueueNDRangeKernel 1 -5'}, @tune, '--again');
ok $code == 0 && $err =~ /tune: mali_\w+: .*CL_OUT_OF_RESOURCES.*: left out/,
    'so is one that fails' or diag "exit $code\n$err";

($code, $out, $err) = cnnrun({%on, SHIM_FAIL => 'clEnqueueReadBuffer 1 -5'}, 'devices', '--measure');
ok $code == 10 && $err =~ /opencl:0: read: CL_OUT_OF_RES/ && $out =~ /^opencl:0 .*?^    units/ms && $out =~ /^cpu /m,
    'a device that fails while it is measured is told of, and the others are listed' or diag "$code $out$err";

# ---- programs are built at once; the host's part of a run ----

(my $cores = `getconf _NPROCESSORS_ONLN`) =~ s/\D//g;
SKIP: {
    skip 'one core', 1 if $cores < 2;
    cnnrun({%on, SHIM_BUILD_MS => 300, SHIM_CALLS => "$dir/calls", CNNRUN_CACHE => "$dir/at-once"},
           'show', '--device', 'opencl:0', "$nets/lenet5.lua");
    %calls = map { split } `cat $dir/calls`;
    ok $calls{builds_at_once} > 1 && $calls{builds_at_once} <= $cores + 1, # who waits helps
        "of $calls{clBuildProgram} programs $calls{builds_at_once} are built at once";
}
for my $device ('opencl:0', 'cpu') {
    ($code, $out, $err) = cnnrun({}, 'bench', '--device', $device, '--profile', '--json', '--runs', 3,
                                 '--no-energy', "$nets/lenet5.lua");
    my ($queued) = $out =~ /"enqueue_ms":([\d.e-]+)/;
    my ($whole) = $out =~ /"ms_median":([\d.e-]+)/;
    if ($device eq 'cpu') { ok $code == 0 && !defined $queued, 'a processor queues nothing' }
    else { ok $code == 0 && $queued > 0 && $queued <= $whole, 'a run is queued before it ends' }
}

# ---- a run's launches are one command where the driver can ----

my @bench = ('bench', '--device', 'opencl:0', '--runs', 40, '--no-energy', "$nets/lenet5.lua");
($code, $out, $err) = cnnrun({%on, CNNRUN_OPENCL_RECORD => 'all', SHIM_CALLS => "$dir/calls"}, @bench, '-vv');
my ($launches) = $err =~ /(\d+) launches are recorded as one command/;
my %once = map { split } `cat $dir/calls`;
SKIP: {
    skip 'the driver has no cl_khr_command_buffer', 2 unless $launches;
    cnnrun({%on, CNNRUN_OPENCL_RECORD => 'none', SHIM_CALLS => "$dir/calls"}, @bench);
    my %each = map { split } `cat $dir/calls`;
    my $call = 'clEnqueueNDRangeKernel';
    ok $each{$call} >= 42 * $launches && $once{$call} <= 4 * $launches,
        "$launches launches a run: $each{$call} calls, or $once{$call}" or diag $err;
    my @pictures = (sort(glob "$nets/digits/*.png")) x 3;
    my @answers = map { (cnnrun({CNNRUN_OPENCL_RECORD => $_}, 'run', '--json', '--top', 10, '--device',
                                'opencl:0', "$nets/lenet5.lua", @pictures))[1] =~ s/"ms":[^,]*,//gr }
        'all', 'none';
    ok length $answers[0] && $answers[0] eq $answers[1], @pictures . ' answers are the same either way'
        or diag explain \@answers;
}

# ---- a driver that crashes ----

open my $c, '>', "$dir/crash.c" or die;
print $c "#include <stdlib.h>\n__attribute__((constructor)) static void die(void) { abort(); }\n";
close $c;
system "cc -shared -fPIC -o $dir/crash.so $dir/crash.c";
mkdir "$dir/vendors";
system "cp /etc/OpenCL/vendors/*.icd $dir/vendors/ 2>/dev/null";
open my $icd, '>', "$dir/vendors/0crash.icd" or die;
print $icd "$dir/crash.so\n";
close $icd;
SKIP: {
    skip 'the loader reads no folder of ours', 3 unless -e '/etc/OpenCL/vendors';
    my %with = (OCL_ICD_VENDORS => "$dir/vendors", TMPDIR => $dir);
    for my $again (0, 1) {
        ($code, $out, $err) = cnnrun(\%with, 'run', '--device', 'opencl:0', "$nets/lenet5.lua", @digit);
        ok $code == 0 && $out =~ /^\s*3 100/m, 'the others are there' . ($again ? ' again' : '')
            or diag $err;
        like $err, qr/0crash\.icd: its driver crashes when it is asked: left out/, 'which is told'
            unless $again;
    }
    unlink glob "$dir/vendors/[!0]*.icd";
    ($code, $out, $err) = cnnrun(\%with, 'run', '--device', 'opencl:0', "$nets/lenet5.lua", @digit);
    ok $code == 6, 'where it is the only one there is no device' or diag "$code $err";
}
done_testing;
