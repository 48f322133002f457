# Keeps compiled OpenCL programs in the build folder, so that only the first run of tests waits for compilers.
# `use Programs 'quick'` makes PoCL compile without optimisation: a test of many small cases spends its time
# in the compiler. Others (nets.t, lenet.t, sparse-csr/opencl.t, README commands) try optimised programs.
# POCL_EXTRA_BUILD_FLAGS, even if empty, and folders given by the caller have precedence.
package Programs;
use strict;
use warnings;

# Sets the environment of a test: the build's folder and its cache of OpenCL programs.
sub import {
    my ($class, $how) = @_;
    my $build = $ENV{CNNRUN_BUILD} // './build';
    my $folder = "$build/opencl-cache";
    if (($how // '') eq 'quick' && !defined $ENV{POCL_EXTRA_BUILD_FLAGS}) {
        $ENV{POCL_EXTRA_BUILD_FLAGS} = '-cl-opt-disable';
        $folder .= '-quick';
    }
    $ENV{CNNRUN_CACHE} ||= $folder;
    $ENV{POCL_CACHE_DIR} //= "$folder/pocl";
}

1;
