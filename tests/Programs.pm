# Where tests keep compiled OpenCL programs: in the build folder, so that only the first run waits for compilers.
# `use Programs 'quick'` has PoCL compile without optimisation: judging many small cases, a test spends its time
# in the compiler. Others (nets.t, lenet.t, sparse-csr/opencl.t, README commands) try optimised programs.
# POCL_EXTRA_BUILD_FLAGS, also empty, and folders that the caller names win.
package Programs;
use strict;
use warnings;

sub import {
    my ($class, $how) = @_;
    my $build = $ENV{CNNRUN_BUILD} // './build';
    my $folder = "$build/opencl-cache";
    if (($how // '') eq 'quick' && !defined $ENV{POCL_EXTRA_BUILD_FLAGS}) {
        $ENV{POCL_EXTRA_BUILD_FLAGS} = '-cl-opt-disable';
        $folder .= '-quick';
    }
    $ENV{CNNRUN_CACHE} //= $folder;
    $ENV{POCL_CACHE_DIR} //= "$folder/pocl";
}

1;
