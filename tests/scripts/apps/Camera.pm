# A network camera: pictures over HTTP (multipart) at a given rate, for every client and
# without end. ffmpeg makes the pictures once.
package Camera;
use strict;
use warnings;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

# So many a second, of the test picture ("320x240"), or of what these words of ffmpeg's give; undef: no ffmpeg.
sub start {
    my ($class, $rate, $size, @words) = @_;
    @words = ('-f', 'lavfi', '-i', "testsrc2=size=$size:rate=$rate") unless @words;
    open my $in, '-|', qw(ffmpeg -v error -nostdin), @words, qw(-frames:v 90 -c:v mjpeg -q:v 2 -f mpjpeg -boundary_tag cut pipe:) or return;
    binmode $in;
    my $all = do { local $/; <$in> } // '';
    close $in;
    my @pictures = grep { length } map { s/^.*?\r\n\r\n//sr =~ s/\r\n\z//r } grep { /\r\n\r\n/ } split /--cut\r\n/, $all;
    return unless @pictures;
    my $self = bless { of => $$, rate => $rate, pictures => \@pictures, port => 0 }, $class;
    return $self->back ? $self : undef;
}

# Starts the camera, or restarts it at the same address.
sub back {
    my $self = shift;
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $self->{port}, Listen => 20, ReuseAddr => 1) or return;
    $self->{port} = $server->sockport;
    my $parent = $$;
    $self->{pid} = fork // return;
    if ($self->{pid}) {
        setpgrp $self->{pid}, $self->{pid};
        return 1;
    }
    setpgrp 0, 0;
    $SIG{CHLD} = 'IGNORE';
    while (getppid == $parent) {
        my $ready = '';
        vec($ready, fileno $server, 1) = 1;
        select $ready, undef, undef, 1 or next;
        my $client = $server->accept or next;
        next if fork // next;
        close $server;
        play($client, $self->{rate}, $parent, @{ $self->{pictures} });
        require POSIX;
        POSIX::_exit(0);
    }
    require POSIX;
    POSIX::_exit(0);
}

# Stops the camera: connections are closed, and new ones get no answer.
sub leave {
    my $self = shift;
    return unless $self->{pid};
    kill 'KILL', -$self->{pid};
    waitpid delete $self->{pid}, 0;
}

# Serves pictures to a client.
sub play {
    my ($client, $rate, $parent, @pictures) = @_;
    local $SIG{PIPE} = 'IGNORE';
    while (defined(my $line = <$client>)) { last if $line =~ /^\r?\n$/ }
    $client->autoflush(1);
    print $client "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=cut\r\n\r\n";
    my $begin = time;
    for (my $i = 0; kill(0, $parent); $i++) {
        my $wait = $begin + $i / $rate - time;
        sleep $wait if $wait > 0;
        my $picture = $pictures[$i % @pictures];
        print $client "--cut\r\nContent-Type: image/jpeg\r\nContent-Length: " . length($picture) . "\r\n\r\n$picture\r\n" or last;
    }
}

# The camera's address.
sub url { return "http://127.0.0.1:$_[0]{port}/camera.mjpg" }

# Ends the camera.
sub DESTROY {
    local ($?, $@);
    $_[0]->leave if $_[0]{pid} && $_[0]{of} == $$; # a child of the test's leaves it alone
}

1;
