#!/usr/bin/perl
# CNNdroid's CIFAR-10 net as stored on a phone, and NetFiles whose parameters are missing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

with_data('Cifar10', ['cnndroid/cifar10/Cifar10_def.txt', 'cifar10-jpg/test'], sub {
    my $net = imported('cifar10', data('cnndroid/cifar10/Cifar10_def.txt'));
    my $got = right($net, '--data', data('cifar10-jpg/test'));
    is $got->{n}, 1000, 'a thousand pictures';
    near($got->{top1}, 732, 5, "Cifar10: $got->{top1} right");
});
with_data('AlexNet', ['cnndroid/netfile-examples/AlexNet_def.txt'], sub {
    my ($code, $out, $err) = cnnrun('import', data('cnndroid/netfile-examples/AlexNet_def.txt'),
        '-o', "$Models::dir/none.cnr");
    isnt $code, 0, 'a NetFile without its parameters is refused';
    like $err, qr/_conv$_\.msg/, "parameters of conv$_ are missed" for 1 .. 5;
    ok !-e "$Models::dir/none.cnr", 'and nothing is written';
});
done_testing;
