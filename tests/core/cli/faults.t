#!/usr/bin/perl
# A plugin that crashes is named, with its kernel and node; Ctrl-C names the call that the program waits for.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use POSIX qw(:signal_h :sys_wait_h);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
my $digit = "$root/scripts/nets/digits/three.png";
open my $f, '>', "$tmp/twice.lua" or die;
print $f 'local c = require "cnnrun" return c.net { name = "t", input = { "x", shape = { 1, 1, 28, 28 }, scale = 1 / 255 }, c["acme.twice"] { "here" }, c.flatten {} }';
close $f;
my @run = ("$build/cnnrun", 'run', '--plugin-dir', "$build/tests/core/host/neighbours/acme", "$tmp/twice.lua", $digit);
my $sanitised = `nm $build/cnnrun 2>/dev/null` =~ /__asan_init|__tsan_init/;

# The text of a file; '' if it can't be read.
sub text_of { my ($name) = @_; open my $in, '<', "$tmp/$name" or return ''; local $/; return <$in> // '' }

# A child with its stderr in a file; its id.
sub begin {
    my ($fault, @more) = @_;
    unlink "$tmp/err";
    my $pid = fork // die;
    return $pid if $pid;
    $ENV{ACME_FAULT} = $fault;
    open STDOUT, '>', '/dev/null' or die;
    open STDERR, '>', "$tmp/err" or die;
    exec(@run, @more) or die;
}

# Until its stderr says so; a child that ends says nothing more.
sub await {
    my ($pid, $what) = @_;
    until (text_of('err') =~ $what) {
        waitpid($pid, WNOHANG) and return;
        select undef, undef, undef, 0.02;
    }
}

my %number = (SEGV => SIGSEGV, BUS => SIGBUS, FPE => SIGFPE, ILL => SIGILL, ABRT => SIGABRT);
for my $name (sort keys %number) {
    waitpid begin($name), 0;
    my ($signal, $err) = ($? & 127, text_of('err'));
    like($err, qr/^cnnrun: plugin acme crashed \(SIG$name\) while running kernel acme_twice for node here on cpu$/m, "SIG$name: plugin, kernel and node");
    is($signal, $number{$name}, 'and it ends the process as ever') unless $sanitised;
}
waitpid begin('prepare'), 0;
like(text_of('err'), qr/^cnnrun: plugin acme crashed \(SIGSEGV\) while preparing weights of kernel acme_twice for node here on cpu$/m, 'while weights are prepared');
SKIP: {
    skip 'one processor has no other threads', 1 if `nproc` < 2;
    waitpid begin('thread', '--threads', 2), 0;
    like(text_of('err'), qr/crashed \(SIGSEGV\) while .*running kernel acme_twice for node here on cpu$/m, 'in a thread of the pool, too');
}
waitpid begin(''), 0;
is($?, 0, 'nothing crashes');
unlike(text_of('err'), qr/crash/, 'and nothing is said');

# Ctrl-C while a device does not come back.
my $pid = begin('stuck', '--device', 'acme');
await($pid, qr/acme waits/);
kill INT => $pid;
await($pid, qr/Ctrl-C/);
like(text_of('err'), qr/^cnnrun: stopping; plugin acme is waiting for its device on acme; Ctrl-C again ends the program$/m, 'Ctrl-C says what is waited for');
kill INT => $pid;
waitpid $pid, 0;
is($? & 127, SIGINT, 'and the second one ends the program');
done_testing;
