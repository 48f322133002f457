#!/usr/bin/perl
# The batch file of core/docs/groups.md, checked by Slurm's sbatch and a controller of this test, for machines
# that exist in its configuration only. The controller says when the job would start; nothing is run.
use strict;
use warnings;
use File::Temp 'tempdir';
use IO::Socket::INET;
use Test::More;
use Time::HiRes 'sleep';

for my $program (qw(sbatch slurmctld)) {
    plan skip_all => "no $program (slurm-client, slurmctld)" if !grep { -x "$_/$program" } qw(/usr/bin /usr/sbin);
}
my $dir = tempdir(CLEANUP => 1);
# Writes a file, given as path and text; dies if it can't.
sub spew { my ($f, $t) = @_; open my $o, '>', $f or die "$f: $!"; print $o $t; close $o }
# The whole text of a file; empty: there is none.
sub slurp { my ($f) = @_; open my $in, '<', $f or return ''; local $/; return scalar <$in> // '' }
my $port = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport;
my ($host, $user) = (`uname -n` =~ s/\s+$//r, scalar getpwuid $>);
mkdir "$dir/state";
spew("$dir/slurm.conf", <<"CONF");
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/none
CredType=cred/none
SlurmUser=$user
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/pid
ProctrackType=proctrack/pgid
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=600
NodeName=n[1-4] CPUs=16 RealMemory=64000 State=CLOUD
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
$ENV{SLURM_CONF} = "$dir/slurm.conf";
my $controller = fork // die;
if (!$controller) {
    open STDOUT, '>', "$dir/log";
    open STDERR, '>&', \*STDOUT;
    exec '/usr/sbin/slurmctld', '-D' or die;
}
my $up = 0;
for (1 .. 100) { last if $up = slurp("$dir/log") =~ /Running as primary controller/; sleep 0.1 }
# What sbatch says of a script, without starting it.
sub sbatch { my ($file) = @_; my $said = `timeout 10 sbatch --test-only $file net.lua mnist:DIR net.cnr 2>&1`; return ($? >> 8, $said) }

SKIP: {
    if (!$up) { diag slurp("$dir/log"); skip 'the controller does not start here', 4 }
    my ($code, $said) = sbatch('core/docs/groups.sbatch');
    is($code, 0, 'sbatch takes the batch file') or diag $said;
    like($said, qr/to start at .* using 16 processors on nodes/, 'two machines, four tasks each, two processors a task');
    spew("$dir/wrong.sbatch", slurp('core/docs/groups.sbatch') =~ s/--ntasks-per-node=4/--ntasks-per-machine=4/r);
    ($code, $said) = sbatch("$dir/wrong.sbatch");
    isnt($code, 0, 'an option that Slurm has not');
    like($said, qr/unrecognized option/, 'is refused');
}
kill TERM => $controller;
waitpid $controller, 0;
done_testing();
