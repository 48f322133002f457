#!/usr/bin/perl
# NULL in every argument of every public function, each call in a process of its own. The functions are read
# from the headers, so new ones are tested too.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use Test::More;

my $root = $0 =~ s{tests/core/run/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
$build = abs_path($build);
my $dir = tempdir(CLEANUP => 1);
plan skip_all => 'no C compiler' if system('command -v cc >/dev/null 2>&1') != 0;
plan skip_all => "no $build/libcnnrun.a" unless -e "$build/libcnnrun.a";

my $text = '';
for my $header (qw(engine power lab object)) {
    open my $in, '<', "$root/core/include/cnnrun/$header.h" or die;
    $text .= do { local $/; <$in> };
}
$text =~ s{/\*.*?\*/}{}gs;
$text =~ s{^\s*#.*$}{}gm;
$text =~ s{\{[^{}]*\}}{}g; # bodies of structs
$text =~ s{([(,]\s*)\w+ \(\*(\w+)\)\([^()]*\)}{$1cnr_given_fn $2}g; # parameters that are functions
$text =~ s{(\w+) (\w+)\[\d+\](?=[,)])}{$1 *$2}g; # parameters that are arrays

# What may be NULL, as the header says it: any parameter of a type, or "function.name".
my %may = map { $_ => 1 } ('cnr_error *', 'const cnr_open_options *', 'const cnr_load_options *',
    'void *', 'cnr_tap_fn', 'cnr_plan_for.shapes',
    'cnr_session_bind_input.value', 'cnr_session_bind_output.value', 'cnr_observer_fn');
# What stands for the others; of types that are not here NULL does.
my %object = ('cnr_runtime *' => 'rt', 'const cnr_runtime *' => 'rt', 'cnr_model *' => 'model',
    'const cnr_model *' => 'model', 'cnr_plan *' => 'plan', 'const cnr_plan *' => 'plan',
    'cnr_session *' => 'session', 'const cnr_session *' => 'session', 'const char *' => '"x"',
    'const cnr_tensor *' => '&tensor', 'const cnr_tensor **' => 'outs',
    'const cnr_tensor *const *' => 'ins', 'cnr_top *' => 'top', 'cnr_runtime **' => '&rt2',
    'cnr_model **' => '&model2', 'cnr_plan **' => '&plan2', 'cnr_session **' => '&session2',
    'cnr_error *' => '&err');

my (@calls, %names);
while ($text =~ /^((?:const )?\w+ \**)\s*(cnr_\w+)\(([^()]*)\);/mg) {
    my ($returns, $name, $list) = ($1, $2, $3);
    $list =~ s/\s+/ /g;
    $returns =~ s/ $//;
    $names{$name} = 1;
    my @parameters = map { /^\s*(.*?) ?(\w+)\s*$/ ? [$1, $2] : () } split /,/, $list;
    my @pointers = grep { $parameters[$_][0] =~ /\*$|_fn$/ } 0 .. $#parameters;
    for my $null (@pointers, -1) { # -1: all of them at once
        my @words = map {
            my ($type) = $parameters[$_][0];
            my $pointer = $type =~ /\*$|_fn$/;
            !$pointer ? 'index' eq $parameters[$_][1] ? '0' : '1'
                : $null < 0 || $null == $_ ? 'NULL' : $object{$type} // 'NULL';
        } 0 .. $#parameters;
        my $asked = $null < 0 ? 'all' : $parameters[$null][1];
        my ($optional) = map { $may{$_} || $may{"$name.$asked"} } $null < 0 ? 'none' : $parameters[$null][0];
        push @calls, [$name, $asked, $returns, "$name(" . join(', ', @words) . ')', $optional, scalar @pointers];
    }
}
cmp_ok scalar keys %names, '>=', 29, 'the headers have ' . scalar(keys %names) . ' functions';
my %mentioned = map { $_ => 1 } $text =~ /\b(cnr_\w+)\s*\((?!\*)/g; # no types of functions
delete $mentioned{$_} for keys %names;
is join(' ', sort keys %mentioned), '', 'and none that this test can not read';

open my $out, '>', "$dir/calls.c" or die;
print $out <<'C';
#include <cnnrun/cnnrun.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static cnr_error err = CNR_ERROR_INIT;
static cnr_runtime *rt, *rt2;
static cnr_model *model, *model2;
static cnr_plan *plan, *plan2;
static cnr_session *session, *session2;
static float data[1];
static cnr_tensor tensor = {.size = sizeof tensor, .dtype = CNR_f32, .rank = 1, .dim = {1},
                            .data = data, .bytes = sizeof data};
static const cnr_tensor *ins[2] = {&tensor}, *outs[2];
static cnr_top top[1];
static void unused(void) {
    (void)rt2; (void)model2; (void)plan2; (void)session2; (void)ins; (void)outs; (void)top;
}
int main(int argc, char **argv) {
    (void)argc;
    unused();
    const cnr_load_options weights = {.size = sizeof weights, .weights = "none"};
    if (cnr_open(&rt, NULL, &err) || cnr_load(rt, argv[1], &weights, &model, &err) ||
        cnr_plan_for(model, NULL, 0, &plan, &err) || cnr_session_open(plan, &session, &err)) {
        printf("%s: %s\n", err.where, err.text);
        return 1;
    }
#define CALL(number, what) do { \
        int status; \
        fflush(stdout); \
        if (fork() == 0) { what; _exit(0); } \
        wait(&status); \
        printf("%d %s\n", number, WIFSIGNALED(status) ? "crashed" : WEXITSTATUS(status) == 0 ? "survived" : \
               WEXITSTATUS(status) == 1 ? "refused" : "other"); \
    } while (0)
C
for my $i (0 .. $#calls) {
    my ($name, undef, $returns, $call) = @{$calls[$i]};
    my $what = $returns eq 'void' ? $call
        : $returns eq 'cnr_status' ? "{ cnr_status s = $call; _exit(s == CNR_E_ARG ? 1 : s == CNR_OK ? 0 : 2); }"
        : "_exit($call ? 2 : 1)";
    print $out "    CALL($i, $what);\n";
}
print $out "    return 0;\n}\n";
close $out;
open my $net, '>', "$dir/net.lua" or die;
print $net "local c = require 'cnnrun'\nreturn c.net { input = { 'data', shape = { 1 } }, c.relu {} }\n";
close $net;

my ($sanitize) = do { local @ARGV = "$build/CMakeCache.txt"; map { /^CNNRUN_SANITIZE\b[^=]*=(.+)/ } <> };
my ($compiler) = do { local @ARGV = "$build/CMakeCache.txt"; map { /^CMAKE_C_COMPILER:[^=]*=(.+)/ } <> };
my $flags = $sanitize ? "-fsanitize=$sanitize" : '';
my $said = `$compiler $flags -std=gnu11 -I$root/core/include -I$build/include -o $dir/calls $dir/calls.c $build/libcnnrun.a -lm -ldl -lpthread 2>&1`;
is $said, '', 'the calls compile' or BAIL_OUT 'no calls';
my %got = map { /^(\d+) (\w+)$/ ? ($1 => $2) : () }
    `CNNRUN_PLUGIN_PATH=$build/plugins $dir/calls $dir/net.lua`;
is scalar keys %got, scalar @calls, 'all were made' or diag `CNNRUN_PLUGIN_PATH=$build/plugins $dir/calls $dir/net.lua | head`;
for my $i (0 .. $#calls) {
    my ($name, $asked, $returns, undef, $optional, $pointers) = @{$calls[$i]};
    next if $asked eq 'all' && $pointers < 2;
    my $what = $got{$i} // 'nothing';
    if ($returns eq 'void') { is $what, 'survived', "$name without $asked" }
    elsif ($optional) { ok $what ne 'crashed' && $what ne 'nothing', "$name without $asked: $what" }
    else { is $what, 'refused', "$name without $asked: CNR_E_ARG, 0 or NULL" }
}
done_testing;
