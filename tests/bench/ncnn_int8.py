#!/usr/bin/env python3
"""SqueezeNet v1.1 in ncnn's int8 with weights at random, as ncnn2int8 writes it, run a number of times on one thread.

    python3 ncnn_int8.py FOLDER PASSES

Run by an AArch64 Python with the packages ncnn and numpy under qemu with the plugin of tests/cross/count.c, for 1 and for 3
passes, half of the difference is the instructions of a pass. passes.lua does the same for cnnrun."""
import os, random, struct, sys

layers, weights = [], bytearray()


def conv(name, source, outputs, inputs, kernel, stride=1, pad=0, requantised=False):
    """Adds a convolution with drawn weights; returns its name."""
    draw, n = random.Random(name), outputs * inputs * kernel * kernel
    layers.append("Convolution {0} 1 1 {1} {0} 0={2} 1={3} 3={4} 4={5} 5=1 6={6} 8={7} 9=1".format(
        name, source, outputs, kernel, stride, pad, n, 102 if requantised else 2))
    weights.extend(struct.pack("<I", 0x000D4B38) + bytes(draw.randrange(1, 256) for _ in range(n)) + bytes(-n % 4))
    weights.extend(struct.pack("<%df" % outputs, *[0.01] * outputs))   # biases
    weights.extend(struct.pack("<%df" % outputs, *[300.0] * outputs))  # scales of weights
    weights.extend(struct.pack("<%df" % (1 + requantised), *[20.0] * (1 + requantised)))  # of inputs and outputs
    return name


def pool(name, source):
    """Adds a pooling; returns its name."""
    layers.append("Pooling {0} 1 1 {1} {0} 0=0 1=3 2=2 5=0".format(name, source))
    return name


def fire(name, source, inputs, squeezed, expanded):
    """Adds SqueezeNet's fire module; returns its output's name."""
    small = conv(name + "_s", source, squeezed, inputs, 1, requantised=True)
    layers.append("Split {0}_p 1 2 {1} {0}_a {0}_b".format(name, small))
    one = conv(name + "_1", name + "_a", expanded, squeezed, 1)
    three = conv(name + "_3", name + "_b", expanded, squeezed, 3, pad=1)
    layers.append("Concat {0} 2 1 {1} {2} {0} 0=0".format(name, one, three))
    return name


def write(folder):
    """Writes the net's two files."""
    layers.append("Input data 0 1 data 0=227 1=227 2=3")
    x = pool("p1", conv("c1", "data", 64, 3, 3, 2))
    x = pool("p3", fire("f3", fire("f2", x, 64, 16, 64), 128, 16, 64))
    x = pool("p5", fire("f5", fire("f4", x, 128, 32, 128), 256, 32, 128))
    x = fire("f7", fire("f6", x, 256, 48, 192), 384, 48, 192)
    x = conv("c10", fire("f9", fire("f8", x, 384, 64, 256), 512, 64, 256), 1000, 512, 1)
    layers.append("Pooling mean 1 1 %s mean 0=1 4=1" % x)
    layers.append("Softmax prob 1 1 mean prob 0=0")
    blobs = sum(int(line.split()[3]) for line in layers)
    with open(os.path.join(folder, "net.param"), "w") as file:
        file.write("7767517\n%d %d\n%s\n" % (len(layers), blobs, "\n".join(layers)))
    with open(os.path.join(folder, "net.bin"), "wb") as file:
        file.write(weights)


def run(folder, passes):
    """Times the net by ncnn."""
    import ncnn
    import numpy as np
    net = ncnn.Net()
    net.opt.num_threads = 1
    net.load_param(os.path.join(folder, "net.param"))
    net.load_model(os.path.join(folder, "net.bin"))
    for _ in range(passes):
        with net.create_extractor() as one:
            one.input("data", ncnn.Mat(np.ones((3, 227, 227), "f4")))
            status, answer = one.extract("prob")
    print(status, float(np.array(answer).sum()))


if __name__ == "__main__":
    write(sys.argv[1])
    run(sys.argv[1], int(sys.argv[2]))
