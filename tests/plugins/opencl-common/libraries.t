#!/usr/bin/perl
# Where OpenCL's library is looked for: by name, on Android in the vendor's folders, or where CNNRUN_OPENCL says.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $here = abs_path(dirname($0));
my $source = abs_path("$here/../../../plugins/opencl-common");
my $dir = tempdir(CLEANUP => 1);
delete $ENV{CNNRUN_OPENCL};

sub built { # built NAME, FLAGS...
    my ($name, @flags) = @_;
    my $said = `cc -Wall -Wextra -Werror @flags -I$source -I$dir -o $dir/$name $here/libraries.c -ldl -lpthread 2>&1`;
    return $? ? "$said" : '';
}

# The names that a program tries.
sub tried {
    my ($program, $chosen) = @_;
    local $ENV{CNNRUN_OPENCL} = $chosen;
    delete $ENV{CNNRUN_OPENCL} unless defined $chosen;
    return [split /\n/, `$dir/$program`];
}

my $broken = built('names');
plan skip_all => "no C compiler, or no CL/cl.h: $broken" if $broken =~ m{CL/cl\.h: No such file|cc: not found};
is $broken, '', 'api.c compiles';
my @names = qw(libOpenCL.so.1 libOpenCL.so libGLES_mali.so libmali.so libPVROCL.so);
is_deeply tried('names'), [@names, "no OpenCL library (libOpenCL.so.1 or a vendor's)"], 'names, on Linux';
my $app = "no OpenCL library; an app's manifest names libOpenCL.so as uses-native-library";
for (['lib64'], ['lib', '-DNARROW']) {
    my ($lib, @flags) = @$_;
    is built("android_$lib", '-D__ANDROID__', @flags), '', "api.c compiles as for Android, $lib";
    my @paths = ("/vendor/$lib/libOpenCL.so", "/system/vendor/$lib/libOpenCL.so", "/system/$lib/libOpenCL.so",
                 "/vendor/$lib/egl/libGLES_mali.so", "/system/vendor/$lib/egl/libGLES_mali.so",
                 "/vendor/$lib/libPVROCL.so", "/system/vendor/$lib/libPVROCL.so");
    is_deeply tried("android_$lib"), [@names, @paths, $app], "names, then the vendor's folders in $lib";
}

open my $list, '>', "$dir/names.h" or die;
my ($functions) = do { local (@ARGV, $/) = "$source/api.h"; <> } =~ /FUNCTION_LIST\(X\) \\\n(.*?)\n\//s;
print $list $functions =~ s/\\//gr, "\n";
close $list;
is built('libOpenCL.so', '-DFAKE', '-shared', '-fPIC'), '', 'a library with those functions';
is system("echo 'int nothing(void); int nothing(void) { return 0; }' | cc -shared -fPIC -x c -o $dir/other.so -"), 0,
    'and one without';
my ($fake, $other) = ("$dir/libOpenCL.so", "$dir/other.so");
is_deeply tried('android_lib64', $fake), [$fake, 'opened'], 'CNNRUN_OPENCL names a file';
is_deeply tried('android_lib64', "/nowhere/libOpenCL.so:$other:$fake:/never.so"),
    ['/nowhere/libOpenCL.so', $other, $fake, 'opened'], 'or several: the first that has OpenCL';
is_deeply tried('names', "/nowhere.so:$other"), ['/nowhere.so', $other, 'the OpenCL library lacks clGetPlatformIDs'],
    'none of them has it: no other is tried';
is_deeply tried('names', 'none'), ['switched off by CNNRUN_OPENCL=none'], 'none';
done_testing;
