#!/usr/bin/perl
# What `cnnrun devices` tells of OpenCL devices; two of one machine (PoCL makes as many as it is asked for)
# each run a net, and halves of one.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
my $nets = abs_path(dirname($0) . '/../../../scripts/nets');
my $dir = tempdir(CLEANUP => 1);
my $digit = "$nets/digits/three.png";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
delete @ENV{grep { /^CNNRUN_OPENCL/ } keys %ENV};
$ENV{CNNRUN_CACHE} = "$dir/cache";
$ENV{POCL_CACHE_DIR} //= "$build/opencl-cache/pocl";

# Runs the program; returns status, output and messages.
sub cnnrun {
    my $code = system 'sh', '-c', 'exec "$@" >"$0/out" 2>"$0/err"', $dir, "$build/cnnrun", @_;
    local $/;
    my @text = map { open my $f, '<', "$dir/$_" or die; <$f> // '' } qw(out err);
    return ($code >> 8, @text);
}

my ($code, $out, $err) = cnnrun('devices', '--json', '--measure', '--device', 'opencl:0');
plan skip_all => 'no OpenCL device' if $code == 6;
is $code, 0, 'a device is measured' or diag $err;
my $d = decode_json($out);
my @texts = grep { !length($d->{$_} // '') } qw(name hardware driver version plugin);
my @counts = grep { !(($d->{$_} // 0) > 0) } qw(memory_bytes units max_clock_mhz local_bytes wave);
my @flags = grep { !defined $d->{$_} } qw(fp16 images local_own);
my @rates = grep { !(($d->{$_} // 0) > 0) }
    qw(fma_gflops read_gbs copy_gbs to_device_gbs from_device_gbs launch_us);
is "@texts @counts @flags @rates", '   ', 'all that there is to know is told' or diag $out;
($code, $out) = cnnrun('devices', '--json', '--device', 'opencl:0');
$d = decode_json($out);
ok $code == 0 && $d->{units} && !exists $d->{launch_us}, 'without --measure nothing is timed';

SKIP: {
    skip 'not PoCL', 5 unless $d->{driver} =~ /Portable Computing Language/;
    local $ENV{POCL_DEVICES} = 'pthread pthread';
    my @names = map { decode_json($_)->{name} } split /\n/, (cnnrun('devices', '--json'))[1];
    is_deeply [sort grep { /^opencl/ } @names], ['opencl:0', 'opencl:1'], 'two are told apart';
    for my $place ('"opencl:0"', '"opencl:1"',
                   '{ conv1 = "opencl:1", ["*"] = "opencl:0" }',
                   '{ conv2 = { axis = 1, ["opencl:0"] = 0.5, ["opencl:1"] = 0.5 }, ["*"] = "opencl:1" }') {
        (my $text = do { local (@ARGV, $/) = "$nets/lenet5.lua"; <> }) =~ s/\bweights\s*=\s*"[^"]*",?//;
        $text =~ s/(name\s*=\s*"[^"]*",)/$1 weights = "$nets\/lenet5.cnr", place = $place,/;
        my ($file) = "$dir/two.lua";
        open my $net, '>', $file or die;
        print $net $place =~ /^"/ ? $text =~ s/place = $place,//r : $text;
        close $net;
        my @on = $place =~ /^"(.*)"$/ ? ('--device', $1) : ();
        ($code, $out, $err) = cnnrun('run', '--trust', @on, $file, $digit);
        ok $code == 0 && $out =~ /^\s*3 100/m, $place or diag "exit $code\n$out$err";
    }
}
done_testing;
